#include "framework/memory_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace weft {

MemoryPool::MemoryPool(std::string name, std::size_t budget_bytes, Backing backing)
    : name_(std::move(name)), budget_(budget_bytes), backing_(std::move(backing)) {}

MemoryPool::~MemoryPool() {
  trim();
}

std::size_t MemoryPool::round_up(std::size_t bytes) {
  if (bytes <= 1024) return (bytes + 63) / 64 * 64;
  const std::size_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) / step * step;
}

void MemoryPool::note_peak(std::size_t now) {
  std::size_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

bool MemoryPool::try_reserve(std::size_t bytes) {
  if (bytes == 0) return true;  // even if others were forced to exceed the budget
  bytes = round_up(bytes);
  std::size_t now = reserved_.load(std::memory_order_relaxed);
  do {
    if (bytes > budget_ || now > budget_ - bytes) return false;
  } while (!reserved_.compare_exchange_weak(now, now + bytes, std::memory_order_acq_rel));
  note_peak(now + bytes);
  return true;
}

void MemoryPool::force_reserve(std::size_t bytes) {
  bytes = round_up(bytes);
  note_peak(reserved_.fetch_add(bytes, std::memory_order_acq_rel) + bytes);
}

// In this order: whoever sees nothing leaving any more sees the room, and whoever saw it leaving is
// told.
void MemoryPool::unreserve(std::size_t bytes, bool was_leaving) {
  bytes = round_up(bytes);
  reserved_.fetch_sub(bytes, std::memory_order_seq_cst);
  if (was_leaving) leaving_.fetch_sub(bytes, std::memory_order_seq_cst);
  if (MemoryWatch* watch = watch_.load(std::memory_order_seq_cst)) watch->given_back();
}

void MemoryPool::cancel(std::size_t bytes) {
  reserved_.fetch_sub(round_up(bytes), std::memory_order_acq_rel);
}

void MemoryPool::begin_leaving(std::size_t bytes) {
  leaving_.fetch_add(round_up(bytes), std::memory_order_seq_cst);
}

void* MemoryPool::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::size_t rounded = round_up(bytes);
  void* data = nullptr;
  {
    std::lock_guard lock(lock_);
    if (auto found = spare_.find(rounded); found != spare_.end() && !found->second.empty()) {
      data = found->second.back();
      found->second.pop_back();
      spare_bytes_ -= rounded;
    }
  }
  if (!data) data = backing_.allocate(rounded);
  if (!data) {
    trim();
    data = backing_.allocate(rounded);
  }
  has_run_out_.store(!data, std::memory_order_relaxed);
  if (!data) return nullptr;
  live_.fetch_add(1, std::memory_order_relaxed);
  if (backing_.poison) poison(data, rounded);
  return data;
}

void MemoryPool::free(void* data, std::size_t bytes) {
  if (!data) return;
  const std::size_t rounded = round_up(bytes);
  if (backing_.poison) poison(data, rounded);
  bool keep = false;
  {
    std::lock_guard lock(lock_);
    // What is pooled and what is live stay within the budget together.
    keep = reserved_.load(std::memory_order_relaxed) + spare_bytes_ <= budget_;
    if (keep) {
      spare_[rounded].push_back(data);
      spare_bytes_ += rounded;
    }
  }
  if (!keep) backing_.free(data, rounded);
  live_.fetch_sub(1, std::memory_order_release);
}

void MemoryPool::trim() {
  std::map<std::size_t, std::vector<void*>> spare;
  {
    std::lock_guard lock(lock_);
    spare.swap(spare_);
    spare_bytes_ = 0;
  }
  for (auto& [bytes, blocks] : spare)
    for (void* block : blocks) backing_.free(block, bytes);
}

void MemoryPool::poison(void* data, std::size_t bytes) {
  constexpr int kPattern = 0xff;
  constexpr std::size_t kWhole = 256 << 10, kPage = 4096, kSample = 64;
  if (bytes <= kWhole) {
    std::memset(data, kPattern, bytes);
    return;
  }
  char* start = static_cast<char*>(data);
  for (std::size_t at = 0; at < bytes; at += kPage)
    std::memset(start + at, kPattern, std::min(kSample, bytes - at));
}

MemoryPool::Backing host_backing(bool poison) {
  constexpr std::size_t kHuge = 2 << 20;
  return {.allocate = [](std::size_t bytes) -> void* {
            const std::size_t alignment = bytes >= 2 * kHuge ? kHuge : 64;
            void* data =
                std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
            if (data && alignment == kHuge) madvise(data, bytes, MADV_HUGEPAGE);
            return data;
          },
          .free = [](void* data, std::size_t) { std::free(data); },
          .poison = poison};
}

}  // namespace weft
