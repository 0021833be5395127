#include "framework/op_pool.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "framework/op.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)0)
#endif

namespace weft::op_pool {
namespace {

constexpr std::size_t kGrain = 64;
constexpr std::size_t kClasses = 16;  // up to 1 KiB; larger blocks come from the heap
constexpr std::uint8_t kHeap = 0xff;
constexpr std::size_t kSlabBytes = 256 << 10;
constexpr std::size_t kAhead = 2;
constexpr std::size_t kBatch = 64;  // blocks moved between a thread and the depot at once

// Free blocks by address: taking one does not touch it, for its lines are often in another core's
// cache.
struct Batch {
  std::array<void*, kBatch> blocks;
};

// What a thread holds of one class: up to two batches.
struct Magazine {
  std::array<void*, 2 * kBatch> blocks;
  std::size_t count = 0;
};

struct Depot {
  std::mutex mutex;
  std::array<std::vector<Batch>, kClasses> batches;
  std::array<std::vector<void*>, kClasses> loose;    // of ended threads, and of a slab's rest
  std::vector<std::pair<char*, std::size_t>> slabs;  // start, block size
};

Depot& depot() {
  static Depot* const instance = new Depot;  // outlives every thread's cache
  return *instance;
}

struct Cache;
struct CacheList {
  std::mutex mutex;
  std::vector<Cache*> caches;
  std::int64_t retired_balance = 0;
};
CacheList& cache_list() {
  static CacheList* const instance = new CacheList;
  return *instance;
}

struct Cache {
  std::array<Magazine, kClasses> current{};
  std::atomic<std::int64_t> balance{0};  // allocated minus freed by this thread

  Cache() {
    std::lock_guard lock(cache_list().mutex);
    cache_list().caches.push_back(this);
  }
  ~Cache() {
    {
      std::lock_guard lock(depot().mutex);
      for (std::size_t c = 0; c < kClasses; ++c)
        for (std::size_t i = 0; i < current[c].count; ++i)
          depot().loose[c].push_back(current[c].blocks[i]);
    }
    std::lock_guard lock(cache_list().mutex);
    cache_list().retired_balance += balance.load(std::memory_order_relaxed);
    std::erase(cache_list().caches, this);
  }
  void add(std::int64_t n) {
    balance.store(balance.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
};

Cache& cache() {
  thread_local Cache instance;
  return instance;
}

constexpr std::size_t kFirstOpClass = (sizeof(Op) - 1) / kGrain;

// All but the references of an op, at which diagnosis looks first.
void poison(void* block, std::size_t size_class) {
  ASAN_POISON_MEMORY_REGION(block, (size_class + 1) * kGrain);
  if (size_class >= kFirstOpClass)
    ASAN_UNPOISON_MEMORY_REGION(static_cast<char*>(block) + offsetof(Op, references),
                                sizeof(Op::references));
  (void)block;
  (void)size_class;
}

void refill(Magazine& magazine, std::size_t size_class) {
  std::lock_guard lock(depot().mutex);
  auto& batches = depot().batches[size_class];
  auto& loose = depot().loose[size_class];
  if (!batches.empty()) {
    std::copy(batches.back().blocks.begin(), batches.back().blocks.end(), magazine.blocks.begin());
    magazine.count = kBatch;
    batches.pop_back();
    return;
  }
  if (loose.empty()) {
    const std::size_t block = (size_class + 1) * kGrain;
    char* slab = static_cast<char*>(std::aligned_alloc(4096, kSlabBytes));
    if (!slab) throw std::bad_alloc();
    std::memset(slab, 0, kSlabBytes);
    depot().slabs.emplace_back(slab, block);
    for (std::size_t i = kSlabBytes / block; i-- > 0;) {
      loose.push_back(slab + i * block);
      poison(slab + i * block, size_class);
    }
  }
  while (magazine.count < kBatch && !loose.empty()) {
    magazine.blocks[magazine.count++] = loose.back();
    loose.pop_back();
  }
}

void spill(Magazine& magazine, std::size_t size_class) {
  Batch batch;
  std::copy_n(magazine.blocks.begin(), kBatch, batch.blocks.begin());  // the oldest
  std::copy_n(magazine.blocks.begin() + kBatch, magazine.count - kBatch, magazine.blocks.begin());
  magazine.count -= kBatch;
  std::lock_guard lock(depot().mutex);
  depot().batches[size_class].push_back(batch);
}

}  // namespace

void* allocate(std::size_t bytes, std::uint8_t& size_class) {
  Cache& mine = cache();
  mine.add(1);
  const std::size_t index = (bytes - 1) / kGrain;
  if (index >= kClasses) {
    size_class = kHeap;
    void* block = std::aligned_alloc(kGrain, (bytes + kGrain - 1) / kGrain * kGrain);
    if (!block) throw std::bad_alloc();
    return block;
  }
  size_class = static_cast<std::uint8_t>(index);
  Magazine& magazine = mine.current[index];
  if (magazine.count == 0) refill(magazine, index);
  void* block = magazine.blocks[--magazine.count];
  // Blocks come back from the core that ran their ops: fetch the next but one while this one is
  // filled.
  if (magazine.count >= kAhead) {
    const char* next = static_cast<const char*>(magazine.blocks[magazine.count - kAhead]);
    for (std::size_t line = 0; line <= index; ++line) __builtin_prefetch(next + line * kGrain, 1);
  }
  ASAN_UNPOISON_MEMORY_REGION(block, (index + 1) * kGrain);
  return block;
}

void free(void* memory, std::uint8_t size_class) {
  Cache& mine = cache();
  mine.add(-1);
  if (size_class == kHeap) {
    std::free(memory);
    return;
  }
  Magazine& magazine = mine.current[size_class];
  poison(memory, size_class);
  magazine.blocks[magazine.count++] = memory;
  if (magazine.count == magazine.blocks.size()) spill(magazine, size_class);
}

std::int64_t live() {
  std::lock_guard lock(cache_list().mutex);
  std::int64_t sum = cache_list().retired_balance;
  for (const Cache* c : cache_list().caches) sum += c->balance.load(std::memory_order_relaxed);
  return sum;
}

void for_each_op_block(const std::function<void(void*)>& visit) {
  std::unique_lock lock(depot().mutex);
  const auto slabs = depot().slabs;  // they stay where they are
  lock.unlock();
  for (auto [slab, block] : slabs)
    if (block >= sizeof(Op))
      for (std::size_t i = 0; i < kSlabBytes / block; ++i) visit(slab + i * block);
}

}  // namespace weft::op_pool
