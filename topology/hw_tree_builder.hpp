#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "topology/hw_tree.hpp"

namespace weft {

/// Appends objects to a tree in preorder for sources that are no tree of hwloc objects themselves:
/// `open` starts an object below the innermost open one, `close` ends it.
class HwTreeBuilder {
 public:
  explicit HwTreeBuilder(HwTree& tree) : tree_(tree) {}

  std::uint32_t open(HwObject object) {
    const auto self = static_cast<std::uint32_t>(tree_.objects.size());
    object.parent = open_.empty() ? 0 : open_.back();
    tree_.objects.push_back(std::move(object));
    open_.push_back(self);
    return self;
  }
  void close() {
    tree_.objects[open_.back()].end = static_cast<std::uint32_t>(tree_.objects.size());
    open_.pop_back();
  }
  std::uint32_t leaf(HwObject object) {
    const std::uint32_t self = open(std::move(object));
    close();
    return self;
  }

  static HwObject of(HwType type, std::int64_t os_index = -1) {
    HwObject object;
    object.type = type;
    object.os_index = os_index;
    return object;
  }

 private:
  HwTree& tree_;
  std::vector<std::uint32_t> open_;
};

}  // namespace weft
