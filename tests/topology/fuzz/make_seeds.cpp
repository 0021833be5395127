// Writes the seed corpora of the fuzz targets, one folder each, into the folder named on the
// command line: samples, shipped machines and, where they are, captured files.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "topology/corpus.hpp"
#include "topology/import.hpp"
#include "topology/machine_file.hpp"
#include "topology/samples.hpp"
#include "topology/shipped.hpp"

using namespace weft;

namespace {

constexpr std::uintmax_t kMostBytes = 20'000;  // small seeds fuzz better

void put(const std::filesystem::path& folder, const std::string& name, const std::string& text) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name, std::ios::binary) << text;
}

void copy_all(const std::filesystem::path& folder, const std::string& part) {
  for (const std::string& file : corpus::files(part))
    if (std::filesystem::file_size(file) < kMostBytes)
      std::filesystem::copy_file(file, folder / std::filesystem::path(file).filename(),
                                 std::filesystem::copy_options::overwrite_existing);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_seeds FOLDER\n";
    return 1;
  }
  const std::filesystem::path root = argv[1];
  put(root / "hwloc_xml", "v1", samples::kHwlocV1);
  put(root / "hwloc_xml", "v2", samples::kHwlocV2);
  put(root / "nccl_xml", "nccl", samples::kNccl);
  put(root / "smi_text", "smi", samples::kSmi);
  put(root / "machine_file", "sample", samples::kMachineFile);
  for (const char* text : {samples::kHwlocV1, samples::kNccl, samples::kSmi})
    put(root / "machine_file", std::to_string(std::string_view(text).size()),
        write_machine_file(import_machine(text, "seed")));
  for (const std::string& name : shipped_machines())
    if (shipped_machine_file(name).size() < kMostBytes)
      put(root / "machine_file", name, shipped_machine_file(name));
  int count = 0;
  for (const char* text :
       {"2 sockets x 8 cores, 2 gpus", "1 socket x 4 cores x 2 threads, 4 gpus, nvlink 300 GB/s",
        "pcie 25 GB/s, memory 64 GB, gpu memory 16 GB, 3 hosts, 1 gpu", "nvlink, 8 gpus"})
    put(root / "description", std::to_string(count++), text);
  if (corpus::folder().empty()) return 0;
  copy_all(root / "hwloc_xml", "hwloc");
  copy_all(root / "nccl_xml", "nccl");
  copy_all(root / "smi_text", "smi");
  return 0;
}
