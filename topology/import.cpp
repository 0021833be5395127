#include "topology/import.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "topology/hw_tree.hpp"
#include "topology/machine_file.hpp"
#include "topology/quantity.hpp"
#include "topology/smi_text.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{64} << 20;

constexpr std::string_view kExpectedFormats =
    "expected hwloc XML (<topology>), NCCL topology XML (<system>), the output of nvidia-smi "
    "topo -m, or a weft machine file (JSON)";

/// The name of the first element of an XML text: skips declarations, comments, processing
/// instructions.
std::string_view root_name(std::string_view text) {
  while (true) {
    const std::size_t open = text.find('<');
    if (open == std::string_view::npos || open + 1 >= text.size()) return {};
    text.remove_prefix(open + 1);
    if (text.starts_with("!--")) {
      const std::size_t end = text.find("-->");
      if (end == std::string_view::npos) return {};
      text.remove_prefix(end);
    } else if (text[0] != '?' && text[0] != '!') {
      return text.substr(0, text.find_first_of(" \t\r\n/>"));
    }
  }
}

}  // namespace

const char* to_string(MachineFormat format) {
  switch (format) {
    case MachineFormat::HwlocXml:
      return "hwloc XML";
    case MachineFormat::NcclXml:
      return "NCCL XML";
    case MachineFormat::SmiMatrix:
      return "nvidia-smi topo -m";
    case MachineFormat::WeftJson:
      return "weft machine file";
  }
  return "";
}

MachineFormat recognise(std::string_view text, const std::string& name) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::string_view start = trimmed(text);
  if (start.empty()) throw TopologyError(name + ": empty; " + std::string(kExpectedFormats));
  if (start.find('\0') != std::string_view::npos)
    throw TopologyError(name + ": not a text; " + std::string(kExpectedFormats));
  if (start[0] == '{') return MachineFormat::WeftJson;
  if (start[0] == '<') {
    const std::string_view root = root_name(start);
    if (root == "topology") return MachineFormat::HwlocXml;
    if (root == "system") return MachineFormat::NcclXml;
    if (root == "graphs")
      throw TopologyError(name +
                          ": the root element is <graphs>, the rings and trees NCCL chose, not "
                          "the topology; set NCCL_TOPO_DUMP_FILE to write that");
    throw TopologyError(name + ": the root element is <" + std::string(root.substr(0, 40)) + ">; " +
                        std::string(kExpectedFormats));
  }
  if (looks_like_smi_matrix(text)) return MachineFormat::SmiMatrix;
  throw TopologyError(name + ": not understood; " + std::string(kExpectedFormats));
}

Machine import_machine(std::string_view text, const std::string& name) {
  switch (recognise(text, name)) {
    case MachineFormat::HwlocXml:
      return build_machine(read_hwloc_xml(text, name), name);
    case MachineFormat::NcclXml:
      return build_machine(read_nccl_xml(text, name), name);
    case MachineFormat::SmiMatrix:
      return build_machine(read_smi_text(text, name), name);
    case MachineFormat::WeftJson:
      break;
  }
  return read_machine_file(text, name);
}

Machine load_machine(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw TopologyError(path + ": a folder; expected a file that describes a machine");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw TopologyError(path + ": cannot be opened: " + std::strerror(errno));
  std::string text;
  char buffer[1 << 16];
  while (file.read(buffer, sizeof buffer) || file.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMostFileBytes)
      throw TopologyError(path + ": too large for a topology; at most 64 MiB are read");
  }
  if (file.bad()) throw TopologyError(path + ": cannot be read: " + std::strerror(errno));
  return import_machine(text, path);
}

}  // namespace weft
