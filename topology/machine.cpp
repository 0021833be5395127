#include "topology/machine.hpp"

namespace weft {

std::string to_string(Node node) {
  static constexpr const char* kNames[] = {"socket", "mem", "gpu", "hub", "nic", "disk"};
  return kNames[static_cast<std::size_t>(node.kind)] + std::to_string(node.index);
}

}  // namespace weft
