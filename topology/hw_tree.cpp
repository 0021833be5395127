#include "topology/hw_tree.hpp"

#include <algorithm>

namespace weft {

std::string_view HwObject::info(std::string_view key) const {
  for (const auto& [name, value] : infos)
    if (name == key) return value;
  return {};
}

std::uint32_t HwTree::host_ancestor(std::uint32_t object) const {
  while (object != 0) {
    object = objects[object].parent;
    const HwType type = objects[object].type;
    if (type != HwType::Bridge && type != HwType::Pci && type != HwType::OsDevice) break;
  }
  return object;
}

std::optional<std::uint32_t> HwTree::above(std::uint32_t object, HwType type) const {
  while (object != 0) {
    object = objects[object].parent;
    if (objects[object].type == type) return object;
  }
  return std::nullopt;
}

std::vector<std::uint32_t> HwTree::cpus_of(std::uint32_t object) const {
  std::vector<std::uint32_t> cpus;
  for (std::uint32_t p = objects[object].pu_begin; p < objects[object].pu_end; ++p)
    cpus.push_back(static_cast<std::uint32_t>(objects[pus[p]].os_index));
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

void HwTree::index_pus(const std::optional<std::vector<std::uint32_t>>& usable) {
  pus.clear();
  for (std::uint32_t i = 0; i < objects.size(); ++i) {
    HwObject& object = objects[i];
    object.pu_begin = static_cast<std::uint32_t>(pus.size());
    if (object.type != HwType::Pu) continue;
    const auto cpu = static_cast<std::uint32_t>(object.os_index);
    if (!usable || std::binary_search(usable->begin(), usable->end(), cpu)) pus.push_back(i);
  }
  for (HwObject& object : objects)
    object.pu_end = object.end < objects.size() ? objects[object.end].pu_begin
                                                : static_cast<std::uint32_t>(pus.size());
}

}  // namespace weft
