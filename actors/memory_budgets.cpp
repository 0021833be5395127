#include "actors/memory_budgets.hpp"

#include <sstream>

#include "framework/failure.hpp"
#include "topology/machine_match.hpp"
#include "topology/quantity.hpp"

namespace weft {
namespace {

[[noreturn]] void refuse_budget(const std::string& part, const std::string& why) {
  throw DeviceError(
      "memory \"" + part + "\": " + why +
      "; wanted NAME=SIZE such as gpu0=2GB, gpu*=512MB, mem0=8GB, disk0=100GB or pinned=4GB");
}

// `by_pattern`: the name fits several things. Of memories a disk's is not meant then: `disk*` is.
void set_budget(const Machine& machine, Node node, std::size_t bytes, bool by_pattern,
                std::vector<std::optional<std::size_t>>& budgets) {
  const bool is_of_disk =
      node.kind == NodeKind::Memory && machine.memories[node.index].kind == MemoryKind::Disk;
  if (node.kind == NodeKind::Memory && !(by_pattern && is_of_disk)) budgets[node.index] = bytes;
  if (node.kind == NodeKind::Disk && machine.disks[node.index].memory.is_valid())
    budgets[machine.disks[node.index].memory.value] = bytes;
  if (node.kind == NodeKind::Gpu) budgets[machine.gpus[node.index].memory.value] = bytes;
  if (node.kind == NodeKind::Socket)
    for (const MemoryId memory : machine.sockets[node.index].memories)
      budgets[memory.value] = bytes;
}

constexpr const char* kPinned = "pinned";

struct Part {
  std::string text, name;
  std::size_t bytes = 0;
};

// Throws for what is no NAME=SIZE.
std::vector<Part> parts_of(const std::string& text) {
  std::vector<Part> made;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    if (trimmed(part).empty()) continue;
    const auto equals = part.find('=');
    if (equals == std::string::npos) refuse_budget(part, "has no size");
    const auto bytes = parse_bytes(trimmed(std::string_view(part).substr(equals + 1)));
    if (!bytes) refuse_budget(part, "is no size");
    made.push_back({part, std::string(trimmed(std::string_view(part).substr(0, equals))),
                    static_cast<std::size_t>(*bytes)});
  }
  return made;
}

}  // namespace

std::optional<std::size_t> pinned_budget(const std::string& text) {
  std::optional<std::size_t> budget;
  for (const Part& part : parts_of(text))
    if (part.name == kPinned) budget = part.bytes;
  return budget;
}

std::vector<std::optional<std::size_t>> memory_budgets(const std::string& text,
                                                       const Machine& machine) {
  std::vector<std::optional<std::size_t>> budgets(machine.memories.size());
  for (const Part& part : parts_of(text)) {
    if (part.name == kPinned) continue;
    Things things;
    try {
      things = find_things(machine, part.name);
    } catch (const TopologyError& error) {
      refuse_budget(part.text, error.what());
    }
    bool has_memory = false, is_disk = false;
    for (const Node node : things.nodes) {
      is_disk = is_disk || node.kind == NodeKind::Disk;
      has_memory = has_memory ||
                   (node.kind == NodeKind::Disk && machine.disks[node.index].memory.is_valid());
      has_memory = has_memory || node.kind == NodeKind::Memory || node.kind == NodeKind::Gpu ||
                   node.kind == NodeKind::Socket;
      set_budget(machine, node, part.bytes, part.name.find('*') != std::string::npos, budgets);
    }
    if (!has_memory && is_disk)
      refuse_budget(part.text, "is a disk that nothing is spilled to: name a directory on it");
    if (!has_memory) refuse_budget(part.text, "names nothing that has a memory");
  }
  return budgets;
}

}  // namespace weft
