#include "framework/op_pool.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define IS_POISONED(address) __asan_address_is_poisoned(address)
#else
#define IS_POISONED(address) false
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)0)
#endif

namespace weft::op_pool {
namespace {

constexpr std::size_t kGrain = 64;
constexpr std::size_t kClasses = 16;  // up to 1 KiB; larger blocks come from the heap
constexpr std::uint16_t kHeap = 0xffff;
constexpr std::size_t kSlabBytes = 256 << 10;
constexpr std::size_t kBatch = 64;  // blocks moved between a thread and the depot at once

// A free block is linked through its first word.
struct FreeBlock {
  FreeBlock* next;
};

struct Batch {
  FreeBlock* head = nullptr;
  std::size_t count = 0;
};

struct Depot {
  std::mutex mutex;
  std::array<std::vector<Batch>, kClasses> batches;
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
  std::array<Batch, kClasses> current{};
  std::atomic<std::int64_t> balance{0};  // allocated minus freed by this thread

  Cache() {
    std::lock_guard lock(cache_list().mutex);
    cache_list().caches.push_back(this);
  }
  ~Cache() {
    {
      std::lock_guard lock(depot().mutex);
      for (std::size_t c = 0; c < kClasses; ++c)
        if (current[c].head) depot().batches[c].push_back(current[c]);
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

void refill(Batch& batch, std::size_t size_class) {
  std::lock_guard lock(depot().mutex);
  auto& spare = depot().batches[size_class];
  if (!spare.empty()) {
    batch = spare.back();
    spare.pop_back();
    return;
  }
  const std::size_t block = (size_class + 1) * kGrain;
  char* slab = static_cast<char*>(std::aligned_alloc(4096, kSlabBytes));
  if (!slab) throw std::bad_alloc();
  std::memset(slab, 0, kSlabBytes);
  depot().slabs.emplace_back(slab, block);
  const std::size_t count = kSlabBytes / block;
  for (std::size_t first = 0; first < count; first += kBatch) {
    Batch made;
    const std::size_t last = std::min(count, first + kBatch);
    for (std::size_t i = last; i-- > first;) {
      char* start = slab + i * block;
      auto* free_block = reinterpret_cast<FreeBlock*>(start);
      free_block->next = made.head;
      made.head = free_block;
      ++made.count;
      ASAN_POISON_MEMORY_REGION(start + sizeof(FreeBlock), block - sizeof(FreeBlock));
    }
    if (first == 0)
      batch = made;
    else
      spare.push_back(made);
  }
}

void spill(Batch& batch, std::size_t size_class) {
  Batch kept, out;
  FreeBlock* at = batch.head;
  for (std::size_t i = 1; i < kBatch; ++i) at = at->next;
  out = {batch.head, kBatch};
  kept = {at->next, batch.count - kBatch};
  at->next = nullptr;
  batch = kept;
  std::lock_guard lock(depot().mutex);
  depot().batches[size_class].push_back(out);
}

}  // namespace

void* allocate(std::size_t bytes, std::uint16_t& size_class) {
  Cache& mine = cache();
  mine.add(1);
  const std::size_t index = (bytes - 1) / kGrain;
  if (index >= kClasses) {
    size_class = kHeap;
    void* block = std::aligned_alloc(kGrain, (bytes + kGrain - 1) / kGrain * kGrain);
    if (!block) throw std::bad_alloc();
    return block;
  }
  size_class = static_cast<std::uint16_t>(index);
  Batch& batch = mine.current[index];
  if (!batch.head) refill(batch, index);
  FreeBlock* block = batch.head;
  batch.head = block->next;
  --batch.count;
  ASAN_UNPOISON_MEMORY_REGION(block, (index + 1) * kGrain);
  return block;
}

void free(void* memory, std::uint16_t size_class) {
  Cache& mine = cache();
  mine.add(-1);
  if (size_class == kHeap) {
    std::free(memory);
    return;
  }
  auto* block = static_cast<FreeBlock*>(memory);
  Batch& batch = mine.current[size_class];
  block->next = batch.head;
  batch.head = block;
  ++batch.count;
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(memory) + sizeof(FreeBlock),
                            (size_class + 1) * kGrain - sizeof(FreeBlock));
  if (batch.count >= 2 * kBatch) spill(batch, size_class);
}

std::int64_t live() {
  std::lock_guard lock(cache_list().mutex);
  std::int64_t sum = cache_list().retired_balance;
  for (const Cache* c : cache_list().caches) sum += c->balance.load(std::memory_order_relaxed);
  return sum;
}

void for_each_block(const std::function<void(void*)>& visit) {
  std::lock_guard lock(depot().mutex);
  for (auto [slab, block] : depot().slabs)
    for (std::size_t i = 0; i < kSlabBytes / block; ++i)
      if (!IS_POISONED(slab + i * block + sizeof(FreeBlock))) visit(slab + i * block);
}

}  // namespace weft::op_pool
