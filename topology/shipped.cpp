#include "topology/shipped.hpp"

#include <filesystem>

#include "topology/discover.hpp"
#include "topology/import.hpp"
#include "topology/shipped_texts.hpp"

namespace weft {

std::vector<std::string> shipped_machines() {
  std::vector<std::string> names;
  for (const ShippedText& shipped : kShippedTexts) names.emplace_back(shipped.name);
  return names;
}

std::string shipped_machine_file(const std::string& name) {
  for (const ShippedText& shipped : kShippedTexts)
    if (shipped.name == name) return std::string(shipped.text);
  return {};
}

Machine machine_from(const std::string& source) {
  if (source == "live") return discover();
  std::error_code error;
  if (std::filesystem::exists(source, error)) return load_machine(source);
  if (const std::string text = shipped_machine_file(source); !text.empty())
    return import_machine(text, source);
  if (source.find(' ') != std::string::npos) return parse_machine(source);
  std::string names;
  for (const std::string& name : shipped_machines()) names += (names.empty() ? "" : ", ") + name;
  throw TopologyError(
      source +
      ": no such file; expected live, a file, a description such as \"2 sockets x 8 "
      "cores, 2 gpus\", or one of " +
      names);
}

}  // namespace weft
