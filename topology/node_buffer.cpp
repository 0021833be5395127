#include "topology/node_buffer.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "topology/quantity.hpp"

namespace weft {

NodeBuffer::NodeBuffer(const Memory& memory, std::size_t bytes) : bytes_(bytes) {
  data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED)
    throw TopologyError("measuring: no memory for a buffer of " + format_bytes(bytes));
  if (memory.os_index >= 0 && memory.os_index < 1024) {
    unsigned long mask[16] = {};
    const auto node = static_cast<std::size_t>(memory.os_index);
    mask[node / 64] = 1ul << node % 64;
    constexpr int kBind = 2;  // MPOL_BIND; a refusal leaves the kernel's own choice
    syscall(SYS_mbind, data_, bytes, kBind, mask, 1024, 0);
  }
  std::memset(data_, 0, bytes);
}

NodeBuffer::~NodeBuffer() {
  munmap(data_, bytes_);
}

}  // namespace weft
