#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace weft::corpus {

/// The folder of captured topologies: `WEFT_TOPOLOGIES`, or `shared/topologies` beside the source
/// tree. Empty, with one line that says so, where there is none.
inline std::filesystem::path folder() {
  std::filesystem::path path;
  if (const char* set = std::getenv("WEFT_TOPOLOGIES"))
    path = set;
  else
    path = std::filesystem::path(WEFT_SOURCE_DIR) / ".." / "shared" / "topologies";
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return path;
  std::cout << "skipped: no captured topologies at " << path.lexically_normal().string()
            << "; set WEFT_TOPOLOGIES to their folder\n";
  return {};
}

/// The files below `folder()/part`, sorted; none where there is no folder.
inline std::vector<std::string> files(const std::string& part) {
  std::vector<std::string> found;
  const std::filesystem::path root = folder();
  if (root.empty()) return found;
  for (const auto& entry : std::filesystem::directory_iterator(root / part))
    if (entry.is_regular_file()) found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

/// Everything that loads: hwloc, NCCL and nvidia-smi files.
inline std::vector<std::string> good_files() {
  std::vector<std::string> all;
  for (const char* part : {"hwloc", "nccl", "smi"}) {
    const std::vector<std::string> some = files(part);
    all.insert(all.end(), some.begin(), some.end());
    if (some.empty()) break;
  }
  return all;
}

}  // namespace weft::corpus
