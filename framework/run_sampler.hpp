#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft {

struct KernelCode;

/// Which runs are timed where timing one costs something: of each kernel and power of two of its
/// amount the first few behind the very first, which loads code, and then one in many. Counts in a
/// table of fixed size; kernels and sizes beyond it share a count. One thread.
class RunSampler {
 public:
  static constexpr std::uint32_t kFirst = 4;
  static constexpr std::uint32_t kOneIn = 32;

  /// Counts a run of `code` with so much to do (flops, or bytes); whether it is to be timed.
  bool wants(const KernelCode& code, double amount);

 private:
  struct Slot {
    const KernelCode* code = nullptr;
    int power = 0;
    std::uint32_t runs = 0;
  };
  static constexpr std::size_t kSlots = 256;  // a power of two
  static constexpr std::size_t kTries = 8;

  Slot* slot_of(const KernelCode& code, int power);

  std::array<Slot, kSlots> slots_{};
  std::uint32_t others_ = 0;  // runs of those that have no slot
};

}  // namespace weft
