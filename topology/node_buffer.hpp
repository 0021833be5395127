#pragma once

#include <cstddef>
#include <cstdint>

#include "topology/machine.hpp"

namespace weft {

/// Zeroed memory of one NUMA node, where the system has several: for measurements.
class NodeBuffer {
 public:
  /// Blocks until the pages are there. Throws `TopologyError` if there is no memory for them.
  NodeBuffer(const Memory& memory, std::size_t bytes);
  ~NodeBuffer();
  NodeBuffer(const NodeBuffer&) = delete;
  NodeBuffer& operator=(const NodeBuffer&) = delete;

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// The same as 64-bit words, `count()` of them.
  [[nodiscard]] std::uint64_t* words() const { return static_cast<std::uint64_t*>(data_); }
  [[nodiscard]] std::size_t count() const { return bytes_ / sizeof(std::uint64_t); }

 private:
  void* data_;
  std::size_t bytes_;
};

}  // namespace weft
