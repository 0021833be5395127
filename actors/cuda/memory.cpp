#include "actors/cuda/memory.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "actors/cuda/check.hpp"

namespace weft::cuda {
namespace {

constexpr std::size_t kHugePage = 2 << 20;
constexpr std::size_t kSlab = 32 << 20;
constexpr std::size_t kOwnSlab = 8 << 20;  // blocks from here on have a slab of their own
constexpr std::size_t kAlign = 256;
// Left to the driver, to cuBLAS and to kernels' stacks.
constexpr std::size_t kReserve = std::size_t{768} << 20;

std::size_t round_to(std::size_t bytes, std::size_t step) {
  return (bytes + step - 1) / step * step;
}

void prefer_node(void* data, std::size_t bytes, int node) {
#ifdef SYS_mbind
  constexpr int kPreferred = 1;  // MPOL_PREFERRED of linux/mempolicy.h
  if (node < 0 || node >= 64) return;
  const unsigned long mask = 1ul << node;
  syscall(SYS_mbind, data, bytes, kPreferred, &mask, 64ul, 0u);  // a hint: failure is no harm
#endif
}

// Fresh pages cost more than the copy into them: several threads take them.
void touch(char* data, std::size_t bytes) {
  const std::size_t parts = std::clamp<std::size_t>(
      bytes / (16 << 20), 1, std::max(1u, std::min(8u, std::thread::hardware_concurrency())));
  const std::size_t part = round_to((bytes + parts - 1) / parts, kHugePage);
  std::vector<std::thread> threads;
  for (std::size_t begin = 0; begin < bytes; begin += part)
    threads.emplace_back([=] {
      const std::size_t end = std::min(bytes, begin + part);
      for (std::size_t at = begin; at < end; at += 4096) data[at] = 0;
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace

DeviceMemory::DeviceMemory(std::shared_ptr<DeviceState> device) : device_(std::move(device)) {
  const CurrentDevice current(device_->ordinal());
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device_->ordinal();
  WEFT_CHECK_CUDA(cudaMemPoolCreate(&pool_, &properties));
  std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
  WEFT_CHECK_CUDA(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep));
  // Else an allocation may wait for a lane that has freed scratch memory.
  int never = 0;
  WEFT_CHECK_CUDA(
      cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &never));
  WEFT_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

DeviceMemory::~DeviceMemory() {
  cudaSetDevice(device_->ordinal());
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
  cudaMemPoolDestroy(pool_);
  cudaGetLastError();
  DeviceState::forget_current();
}

void DeviceMemory::allow(int peer) {
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = peer;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  WEFT_CHECK_CUDA(cudaMemPoolSetAccess(pool_, &access, 1));
}

std::size_t DeviceMemory::budget() const {
  const CurrentDevice current(device_->ordinal());
  std::size_t free = 0, total = 0;
  WEFT_CHECK_CUDA(cudaMemGetInfo(&free, &total));
  return free > 2 * kReserve ? free - kReserve : free / 2;
}

void* DeviceMemory::allocate(std::size_t bytes) {
  if (device_->is_lost()) return nullptr;
  std::lock_guard lock(mutex_);
  device_->make_current();
  void* data = nullptr;
  // The stream is idle: waiting for it waits for the allocation alone, and then any stream may use
  // the block.
  if (cudaMallocFromPoolAsync(&data, bytes, pool_, stream_) != cudaSuccess ||
      cudaStreamSynchronize(stream_) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  return data;
}

void DeviceMemory::free(void* data) {
  if (device_->is_lost()) return;  // its memory went with it
  std::lock_guard lock(mutex_);
  device_->make_current();
  if (cudaFreeAsync(data, stream_) != cudaSuccess) cudaGetLastError();
}

MemoryPool::Backing DeviceMemory::backing(const std::shared_ptr<DeviceMemory>& memory) {
  return {.allocate = [memory](std::size_t bytes) { return memory->allocate(bytes); },
          .free = [memory](void* data, std::size_t) { memory->free(data); },
          .poison = false};
}

bool PinnedBudget::take(std::size_t bytes) {
  std::size_t left = left_.load(std::memory_order_relaxed);
  do {
    if (left < bytes) return false;
  } while (!left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed));
  return true;
}

PinnedMemory::~PinnedMemory() {
  for (const auto& [data, slab] : slabs_) give_slab_back(data, slab);
}

void PinnedMemory::give_slab_back(char* data, const Slab& slab) {
  if (slab.is_pinned) {
    if (cudaHostUnregister(data) != cudaSuccess) cudaGetLastError();
    budget_->give_back(slab.bytes);
  }
  munmap(data, slab.bytes);
}

char* PinnedMemory::take_slab(std::size_t bytes) {
  void* data =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  // Cut to huge pages' borders.
  char* begin = static_cast<char*>(data);
  char* aligned =
      reinterpret_cast<char*>(round_to(reinterpret_cast<std::uintptr_t>(begin), kHugePage));
  if (aligned > begin) munmap(begin, static_cast<std::size_t>(aligned - begin));
  const std::size_t rest = static_cast<std::size_t>(begin + kHugePage - aligned);
  if (rest > 0) munmap(aligned + bytes, rest);
  madvise(aligned, bytes, MADV_HUGEPAGE);
  prefer_node(aligned, bytes, numa_node_);
  touch(aligned, bytes);
  const Slab slab{bytes, budget_->take(bytes)};
  if (slab.is_pinned && !pin(aligned, bytes)) {
    budget_->give_back(bytes);
    munmap(aligned, bytes);
    return nullptr;
  }
  std::lock_guard lock(mutex_);
  slabs_[aligned] = slab;
  return aligned;
}

// By any device that is there: pinned for one is pinned for all.
bool PinnedMemory::pin(void* data, std::size_t bytes) {
  for (const auto& device : devices_) {
    if (device->is_lost()) continue;
    device->make_current();
    if (cudaHostRegister(data, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped) ==
        cudaSuccess)
      return true;
    cudaGetLastError();
  }
  return false;
}

void* PinnedMemory::allocate(std::size_t bytes) {
  bytes = round_to(bytes, kAlign);
  if (bytes >= kOwnSlab) return take_slab(round_to(bytes, kHugePage));
  std::lock_guard growing(open_mutex_);  // while a slab is taken, what comes back need not wait
  std::lock_guard lock(mutex_);
  if (auto found = spare_.find(bytes); found != spare_.end() && !found->second.empty()) {
    void* data = found->second.back();
    found->second.pop_back();
    return data;
  }
  if (open_bytes_ < bytes) {
    mutex_.unlock();
    open_ = take_slab(kSlab);
    mutex_.lock();
    open_bytes_ = open_ ? kSlab : 0;
    if (!open_) return nullptr;
  }
  void* data = open_;
  open_ += bytes;
  open_bytes_ -= bytes;
  return data;
}

void PinnedMemory::free(void* data, std::size_t bytes) {
  bytes = round_to(bytes, kAlign);
  Slab slab{};
  {
    std::lock_guard lock(mutex_);
    if (bytes < kOwnSlab) {
      spare_[bytes].push_back(data);
      return;
    }
    const auto found = slabs_.find(static_cast<char*>(data));
    slab = found->second;
    slabs_.erase(found);
  }
  give_slab_back(static_cast<char*>(data), slab);
}

MemoryPool::Backing PinnedMemory::backing(const std::shared_ptr<PinnedMemory>& memory) {
  return {.allocate = [memory](std::size_t bytes) { return memory->allocate(bytes); },
          .free = [memory](void* data, std::size_t bytes) { memory->free(data, bytes); },
          .poison = false};
}

}  // namespace weft::cuda
