#include "actors/cuda/peer_reduce.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "actors/cuda/check.hpp"
#include "actors/cuda/device_state.hpp"
#include "actors/cuda/kernels/peer_reduce.hpp"
#include "actors/cuda/peers.hpp"
#include "framework/failure.hpp"

namespace weft::cuda {
namespace {

// One device's memory of the group: inbox, flags, counts. From cudaMalloc, which all devices with
// peer access reach without further ado.
class Exchange {
 public:
  Exchange(int ordinal, unsigned members) : ordinal_(ordinal), members_(members) {
    const std::size_t bytes =
        peer_inbox_bytes(members) + peer_flag_bytes(members) + 2 * kPeerBlocks * sizeof(unsigned);
    const CurrentDevice current(ordinal_);
    WEFT_CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&data_), bytes));
    cudaStream_t stream = nullptr;
    cudaError_t status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (status == cudaSuccess) status = cudaMemsetAsync(data_, 0, bytes, stream);
    if (status == cudaSuccess) status = cudaStreamSynchronize(stream);
    if (stream) cudaStreamDestroy(stream);
    if (status != cudaSuccess) cudaFree(data_);
    WEFT_CHECK_CUDA(status);
  }
  ~Exchange() {
    int before = 0;
    cudaGetDevice(&before);
    cudaSetDevice(ordinal_);
    cudaFree(data_);
    cudaSetDevice(before);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  [[nodiscard]] void* inbox() const { return data_; }
  [[nodiscard]] unsigned* flags() const { return words(peer_inbox_bytes(members_)); }
  [[nodiscard]] unsigned* pushes() const {
    return words(peer_inbox_bytes(members_) + peer_flag_bytes(members_));
  }
  [[nodiscard]] unsigned* pulls() const { return pushes() + kPeerBlocks; }

 private:
  [[nodiscard]] unsigned* words(std::size_t offset) const {
    return reinterpret_cast<unsigned*>(data_ + offset);
  }

  int ordinal_;
  unsigned members_;
  std::byte* data_ = nullptr;
};

// The word that makes waiting kernels of all devices give up.
class StopWord {
 public:
  StopWord() {
    WEFT_CHECK_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&word_), sizeof *word_,
                                  cudaHostAllocPortable | cudaHostAllocMapped));
    *word_ = 0;
  }
  ~StopWord() { cudaFreeHost(word_); }
  StopWord(const StopWord&) = delete;
  StopWord& operator=(const StopWord&) = delete;

  void set() { std::atomic_ref(*word_).store(1); }
  [[nodiscard]] bool is_set() const { return std::atomic_ref(*word_).load() != 0; }
  // With unified addressing, the host's address is every device's too.
  [[nodiscard]] const unsigned* data() const { return word_; }

 private:
  unsigned* word_ = nullptr;
};

void reach(int from, int to) {
  int can = 0;
  WEFT_CHECK_CUDA(cudaDeviceCanAccessPeer(&can, from, to));
  if (!can)
    throw DeviceError("peer sums: device " + std::to_string(from) + " cannot reach the memory of " +
                      "device " + std::to_string(to) + "; all members must reach each other");
  enable_peer(from, to);
}

void check_members(const std::vector<int>& ordinals) {
  std::string names;
  for (const int ordinal : ordinals) names += (names.empty() ? "" : ", ") + std::to_string(ordinal);
  std::vector<int> sorted = ordinals;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() < 2 || sorted.size() > kMostPeers ||
      std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw UsageError("peer sums over devices [" + names + "]: 2 to " + std::to_string(kMostPeers) +
                     " devices are wanted, each of them once");
}

}  // namespace

struct PeerReduce::State {
  explicit State(const std::vector<int>& members) : ordinals(members) {
    for (const int ordinal : ordinals)
      exchanges.push_back(
          std::make_unique<Exchange>(ordinal, static_cast<unsigned>(ordinals.size())));
  }

  ~State() {
    // All before the first block goes: a late member still writes to the others'.
    int before = 0;
    cudaGetDevice(&before);
    for (const int ordinal : ordinals)
      if (cudaSetDevice(ordinal) == cudaSuccess) cudaDeviceSynchronize();
    cudaSetDevice(before);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] PeerGroup view(std::size_t member) const {
    return {.members = static_cast<unsigned>(ordinals.size()),
            .me = static_cast<unsigned>(member),
            .pushes = exchanges[member]->pushes(),
            .pulls = exchanges[member]->pulls(),
            .stop = stop.data()};
  }
  void push(std::span<const Part> parts, std::size_t count, ElementKind kind) const;
  void pull(std::span<const Part> parts, std::size_t count, ElementKind kind) const;

  std::vector<int> ordinals;
  StopWord stop;
  std::vector<std::unique_ptr<Exchange>> exchanges;
};

void PeerReduce::State::push(std::span<const Part> parts, std::size_t count,
                             ElementKind kind) const {
  PeerPush push;
  for (std::size_t i = 0; i < exchanges.size(); ++i) push.inboxes[i] = exchanges[i]->inbox();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    push.group = view(i);
    push.from = parts[i].from;
    push.to = parts[i].to;
    WEFT_CHECK_CUDA(cudaSetDevice(ordinals[i]));
    peer_reduce(parts[i].stream, push, count, kind);
  }
}

void PeerReduce::State::pull(std::span<const Part> parts, std::size_t count,
                             ElementKind kind) const {
  PeerPull pull;
  for (std::size_t i = 0; i < exchanges.size(); ++i) {
    pull.flags[i] = exchanges[i]->flags();
    pull.from[i] = parts[i].from;
    pull.to[i] = parts[i].to;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    pull.group = view(i);
    WEFT_CHECK_CUDA(cudaSetDevice(ordinals[i]));
    peer_reduce(parts[i].stream, pull, count, kind);
  }
}

PeerReduce::PeerReduce(const std::vector<int>& ordinals) {
  check_members(ordinals);
  for (const int from : ordinals)
    for (const int to : ordinals)
      if (from != to) reach(from, to);
  const CurrentDevice current(ordinals.front());
  state_ = std::make_unique<State>(ordinals);
  for (const int ordinal : ordinals) {
    const CurrentDevice each(ordinal);
    load_peer_reduce();
  }
}

PeerReduce::~PeerReduce() = default;

bool PeerReduce::takes(std::size_t /*count*/, ElementKind kind) const {
  return is_summed_by_peers(kind);
}

void PeerReduce::all_reduce(std::span<const Part> parts, std::size_t count, ElementKind kind) {
  const std::size_t members = state_->ordinals.size();
  if (parts.size() != members)
    throw UsageError("peer sums: " + std::to_string(parts.size()) + " parts for a group of " +
                     std::to_string(members) + " devices; one a device is wanted");
  if (!takes(count, kind))
    throw UsageError("peer sums: elements of kind number " +
                     std::to_string(static_cast<int>(kind)) +
                     " are not taken; float, double and integers of 32 and 64 bits are");
  if (state_->stop.is_set())
    throw DeviceError("peer sums: the group was aborted; a new one has to be made");
  if (count == 0) return;
  const CurrentDevice current(state_->ordinals.front());
  try {
    // A push sends everything to every other member: the limit keeps what leaves a device the same
    // for groups of any size.
    if (count <= std::size_t{8} * kPeerUnits / (members - 1) / element_bytes(kind))
      state_->push(parts, count, kind);
    else
      state_->pull(parts, count, kind);
  } catch (const DeviceError&) {
    abort();  // what members before this one launched would wait for ever
    throw;
  }
}

void PeerReduce::abort() noexcept {
  state_->stop.set();
}

}  // namespace weft::cuda
