#include "actors/cuda/peers.hpp"

#include <cuda_runtime_api.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "actors/cuda/check.hpp"

namespace weft::cuda {
namespace {

constexpr std::size_t kPatternBytes = 1 << 20;

// Memory of one device for the length of the trial.
class Block {
 public:
  Block(int device, cudaMemPool_t pool) : device_(device) {
    const CurrentDevice current(device_);
    WEFT_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    WEFT_CHECK_CUDA(cudaMallocFromPoolAsync(&data_, kPatternBytes, pool, stream_));
    WEFT_CHECK_CUDA(cudaStreamSynchronize(stream_));
  }
  ~Block() {
    cudaSetDevice(device_);
    if (data_) cudaFreeAsync(data_, stream_);
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
  void* data_ = nullptr;
};

std::vector<std::uint32_t> pattern(std::uint32_t seed) {
  std::vector<std::uint32_t> words(kPatternBytes / sizeof(std::uint32_t));
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = (static_cast<std::uint32_t>(i) + seed) * 0x9e3779b9u;
  return words;
}

// Whether a copy from one device to the other arrives as it was sent.
bool arrives(int from, const Block& source, const Block& target, std::uint32_t seed) {
  const std::vector<std::uint32_t> sent = pattern(seed);
  std::vector<std::uint32_t> received(sent.size());
  const CurrentDevice current(from);
  WEFT_CHECK_CUDA(cudaMemcpyAsync(source.data(), sent.data(), kPatternBytes, cudaMemcpyHostToDevice,
                                  source.stream()));
  WEFT_CHECK_CUDA(cudaMemcpyAsync(target.data(), source.data(), kPatternBytes, cudaMemcpyDefault,
                                  source.stream()));
  WEFT_CHECK_CUDA(cudaMemcpyAsync(received.data(), target.data(), kPatternBytes,
                                  cudaMemcpyDeviceToHost, source.stream()));
  WEFT_CHECK_CUDA(cudaStreamSynchronize(source.stream()));
  return received == sent;
}

bool can_reach(int from, int to) {
  int can = 0;
  WEFT_CHECK_CUDA(cudaDeviceCanAccessPeer(&can, from, to));
  return can != 0;
}

}  // namespace

void enable_peer(int from, int to) {
  static std::mutex mutex;
  static std::set<std::pair<int, int>> enabled;
  std::lock_guard lock(mutex);
  if (!enabled.insert({from, to}).second) return;
  const CurrentDevice current(from);
  const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return;
  }
  WEFT_CHECK_CUDA(status);
}

std::vector<bool> connect_peers(const std::vector<DeviceState*>& devices,
                                const std::vector<DeviceMemory*>& memories) {
  const std::size_t n = devices.size();
  std::vector<bool> connected(n * n, false);
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = a + 1; b < n; ++b) {
      const int first = devices[a]->ordinal(), second = devices[b]->ordinal();
      // Partitions of one GPU have no way to each other.
      if (first == second) continue;
      if (!can_reach(first, second) || !can_reach(second, first)) {
        spdlog::info(
            "{} and {} do not reach each other's memory: copies between them go through "
            "the host",
            devices[a]->name(), devices[b]->name());
        continue;
      }
      std::string trouble;
      try {
        enable_peer(first, second);
        enable_peer(second, first);
        memories[a]->allow(second);
        memories[b]->allow(first);
        const Block at_first(first, memories[a]->pool()), at_second(second, memories[b]->pool());
        if (!arrives(first, at_first, at_second, 1) || !arrives(second, at_second, at_first, 2))
          trouble = "a pattern arrived changed";
      } catch (const DeviceError& error) {
        trouble = error.what();
      }
      connected[a * n + b] = connected[b * n + a] = trouble.empty();
      if (!trouble.empty())
        spdlog::warn(
            "{} and {} should reach each other's memory but do not ({}): copies between "
            "them go through the host; see weft doctor",
            devices[a]->name(), devices[b]->name(), trouble);
    }
  return connected;
}

}  // namespace weft::cuda
