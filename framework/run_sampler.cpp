#include "framework/run_sampler.hpp"

#include <cmath>
#include <functional>

namespace weft {

// A kernel that is gone leaves its slots behind, for another at its address to go on with.
RunSampler::Slot* RunSampler::slot_of(const KernelCode& code, int power) {
  const std::size_t home =
      std::hash<const void*>()(&code) / alignof(std::max_align_t) + static_cast<std::size_t>(power);
  for (std::size_t i = 0; i < kTries; ++i) {
    Slot& slot = slots_[(home + i) % kSlots];
    if (!slot.code) slot = {&code, power, 0};
    if (slot.code == &code && slot.power == power) return &slot;
  }
  return nullptr;
}

bool RunSampler::wants(const KernelCode& code, double amount) {
  const int power = amount >= 1 && std::isfinite(amount) ? std::ilogb(amount) : 0;
  Slot* const slot = slot_of(code, power);
  if (!slot) return others_++ % kOneIn == 0;
  const std::uint32_t run = slot->runs++;
  return (run > 0 && run <= kFirst) || (run > kFirst && run % kOneIn == 0);
}

}  // namespace weft
