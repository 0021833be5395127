#include "actors/cuda/measure_links.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>
#include <string>

#include "actors/cuda/link_flows.hpp"
#include "topology/names.hpp"
#include "topology/node_buffer.hpp"

namespace weft {
namespace {

constexpr std::size_t kBytes = std::size_t{128} << 20;  // start-up is far below 1 % of such a copy
constexpr int kRounds = 7;
constexpr int kCopies = 4;         // of each flow under test in a round
constexpr int kSmallCopies = 512;  // in a row, for the latency
constexpr std::size_t kSmallBytes = 64;
constexpr std::size_t kProbeBytes = std::size_t{8} << 20;

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw TopologyError(std::string("measuring links: ") + call + ": " + cudaGetErrorString(error));
}

/// Pinned memory of one NUMA node, where the system has several.
class HostBuffer {
 public:
  HostBuffer(const Memory& memory, std::size_t bytes) : pages_(memory, bytes) {
    check(cudaHostRegister(pages_.data(), bytes, cudaHostRegisterPortable), "cudaHostRegister");
  }
  ~HostBuffer() { cudaHostUnregister(pages_.data()); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  [[nodiscard]] void* data() const { return pages_.data(); }

 private:
  NodeBuffer pages_;
};

/// Memory of one GPU.
class GpuBuffer {
 public:
  GpuBuffer(int device, std::size_t bytes) : device_(device) {
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaMalloc(&data_, bytes), "cudaMalloc");
  }
  ~GpuBuffer() {
    cudaSetDevice(device_);
    cudaFree(data_);
  }
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;

  [[nodiscard]] void* data() const { return data_; }

 private:
  int device_;
  void* data_ = nullptr;
};

/// A stream of one GPU with two events on it.
class Lane {
 public:
  explicit Lane(int device) : device_(device) {
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Lane() {
    cudaSetDevice(device_);
    cudaStreamSynchronize(stream_);
    if (end_) cudaEventDestroy(end_);
    if (begin_) cudaEventDestroy(begin_);
    cudaStreamDestroy(stream_);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  void begin() const { record(begin_); }
  void end() const { record(end_); }
  void wait() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }
  /// Of what lies between `begin` and `end`, after `wait`.
  [[nodiscard]] double seconds() const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  void record(cudaEvent_t event) const {
    check(cudaSetDevice(device_), "cudaSetDevice");
    check(cudaEventRecord(event, stream_), "cudaEventRecord");
  }

  int device_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// A flow with its buffers.
class Copier {
 public:
  Copier(const Machine& machine, const std::vector<int>& ordinals, const LinkFlow& flow)
      : from_(ordinal(ordinals, flow.from)),
        to_(ordinal(ordinals, flow.to)),
        lane_(from_ >= 0 ? from_ : to_) {
    source_ = buffer(machine, flow.from, from_, source_host_, source_gpu_);
    target_ = buffer(machine, flow.to, to_, target_host_, target_gpu_);
  }

  [[nodiscard]] const Lane& lane() const { return lane_; }

  void copy(std::size_t bytes) const {
    check(cudaSetDevice(lane_.device()), "cudaSetDevice");
    if (from_ >= 0 && to_ >= 0)
      check(cudaMemcpyPeerAsync(target_, to_, source_, from_, bytes, lane_.stream()),
            "cudaMemcpyPeerAsync");
    else
      check(cudaMemcpyAsync(target_, source_, bytes,
                            from_ >= 0 ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice,
                            lane_.stream()),
            "cudaMemcpyAsync");
  }

 private:
  static int ordinal(const std::vector<int>& ordinals, Node node) {
    return node.kind == NodeKind::Gpu ? ordinals.at(node.index) : -1;
  }

  static void* buffer(const Machine& machine, Node node, int device,
                      std::unique_ptr<HostBuffer>& host, std::unique_ptr<GpuBuffer>& gpu) {
    if (device >= 0) {
      gpu = std::make_unique<GpuBuffer>(device, kBytes);
      return gpu->data();
    }
    host = std::make_unique<HostBuffer>(machine.memories.at(node.index), kBytes);
    return host->data();
  }

  int from_, to_;
  std::unique_ptr<HostBuffer> source_host_, target_host_;
  std::unique_ptr<GpuBuffer> source_gpu_, target_gpu_;
  void *source_ = nullptr, *target_ = nullptr;
  Lane lane_;  // the first to go: it waits for copies that use the buffers
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

struct CudaLinkMeter::Impl {
  Machine machine;
  std::vector<int> ordinals;
  std::map<std::pair<int, int>, bool> peers;  ///< access as far as it has been asked for

  [[nodiscard]] std::vector<bool> usable() const {
    std::vector<bool> is_usable;
    for (const int ordinal : ordinals) is_usable.push_back(ordinal >= 0);
    is_usable.resize(machine.gpus.size());
    return is_usable;
  }

  /// Lets two GPUs reach each other. False if they cannot.
  bool join(int a, int b) {
    const auto [entry, is_new] = peers.try_emplace({std::min(a, b), std::max(a, b)}, false);
    if (!is_new) return entry->second;
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      int can_access = 0;
      check(cudaDeviceCanAccessPeer(&can_access, from, to), "cudaDeviceCanAccessPeer");
      if (!can_access) return false;
      check(cudaSetDevice(from), "cudaSetDevice");
      const cudaError_t error = cudaDeviceEnablePeerAccess(to, 0);
      if (error != cudaErrorPeerAccessAlreadyEnabled) check(error, "cudaDeviceEnablePeerAccess");
      cudaGetLastError();
    }
    return entry->second = true;
  }

  [[nodiscard]] bool is_possible(const LinkFlow& flow) {
    if (flow.from.kind != NodeKind::Gpu || flow.to.kind != NodeKind::Gpu) return true;
    return join(ordinals.at(flow.from.index), ordinals.at(flow.to.index));
  }

  using Copiers = std::vector<std::unique_ptr<Copier>>;

  [[nodiscard]] Copiers copiers(const std::vector<LinkFlow>& flows) const {
    Copiers made;
    for (const LinkFlow& flow : flows)
      made.push_back(std::make_unique<Copier>(machine, ordinals, flow));
    return made;
  }

  /// Bytes per second of all flows under test together.
  static double rate(const Copiers& under_test, const Copiers& neighbours) {
    std::vector<double> rates;
    for (int round = -1; round < kRounds; ++round) {  // the first is the warm-up
      // Neighbours start first and have three times as much to do, so that they are still at it
      // when what is measured ends.
      for (int i = 0; i < 3 * kCopies; ++i) {
        for (const auto& neighbour : neighbours) neighbour->copy(kBytes);
        if (i == 0)
          for (const auto& copier : under_test) copier->lane().begin();
        if (i < kCopies)
          for (const auto& copier : under_test) copier->copy(kBytes);
        if (i == kCopies - 1)
          for (const auto& copier : under_test) copier->lane().end();
      }
      double longest = 0;
      for (const auto& copier : under_test) {
        copier->lane().wait();
        longest = std::max(longest, copier->lane().seconds());
      }
      const double bytes = static_cast<double>(kBytes) * kCopies;
      for (const auto& neighbour : neighbours) neighbour->lane().wait();
      if (round >= 0) rates.push_back(bytes * static_cast<double>(under_test.size()) / longest);
    }
    return median(std::move(rates));
  }

  static std::chrono::nanoseconds latency(const Copier& copier) {
    std::vector<double> seconds;
    for (int round = -1; round < kRounds; ++round) {
      copier.lane().begin();
      for (int i = 0; i < kSmallCopies; ++i) copier.copy(kSmallBytes);
      copier.lane().end();
      copier.lane().wait();
      if (round >= 0) seconds.push_back(copier.lane().seconds() / kSmallCopies);
    }
    return std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * median(std::move(seconds))));
  }

  std::optional<LinkFigures> measure(LinkId link) {
    std::optional<LinkFlows> load = flows_of_link(machine, link, usable());
    if (!load) return std::nullopt;
    for (const auto& flows : load->under_test)
      for (const LinkFlow& flow : flows)
        if (!is_possible(flow)) return std::nullopt;
    LinkFigures figures;
    for (const std::size_t i : {0u, 1u}) {
      const Copiers under_test = copiers(load->under_test[i]);
      figures.alone[i] = rate(under_test, {});
      if (i == 0) figures.latency = latency(*under_test.front());
      std::erase_if(load->neighbours[i], [&](const LinkFlow& flow) { return !is_possible(flow); });
      const Copiers neighbours = copiers(load->neighbours[i]);
      figures.busy[i] = neighbours.empty() ? figures.alone[i] : rate(under_test, neighbours);
    }
    return figures;
  }

  /// Whether a pattern comes through a direct copy as it was.
  static bool arrives(int from, int to) {
    const GpuBuffer source(from, kProbeBytes), target(to, kProbeBytes);
    std::vector<std::uint32_t> sent(kProbeBytes / sizeof(std::uint32_t)), received(sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i)
      sent[i] = static_cast<std::uint32_t>(i * 2654435761u) ^ static_cast<std::uint32_t>(from);
    check(cudaSetDevice(to), "cudaSetDevice");
    check(cudaMemset(target.data(), 0, kProbeBytes), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaSetDevice(from), "cudaSetDevice");
    check(cudaMemcpy(source.data(), sent.data(), kProbeBytes, cudaMemcpyHostToDevice),
          "cudaMemcpy");
    check(cudaMemcpyPeer(target.data(), to, source.data(), from, kProbeBytes), "cudaMemcpyPeer");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaSetDevice(to), "cudaSetDevice");
    check(cudaMemcpy(received.data(), target.data(), kProbeBytes, cudaMemcpyDeviceToHost),
          "cudaMemcpy");
    return sent == received;
  }
};

CudaLinkMeter::CudaLinkMeter(const Machine& machine, std::vector<int> ordinals)
    : impl_(new Impl{machine, std::move(ordinals), {}}) {
  impl_->ordinals.resize(machine.gpus.size(), -1);
}

CudaLinkMeter::~CudaLinkMeter() = default;

std::optional<LinkFigures> CudaLinkMeter::measure(LinkId link) {
  return impl_->measure(link);
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> CudaLinkMeter::damaged_peers() {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> damaged;
  for (std::uint32_t a = 0; a < impl_->ordinals.size(); ++a)
    for (std::uint32_t b = a + 1; b < impl_->ordinals.size(); ++b) {
      const int from = impl_->ordinals[a], to = impl_->ordinals[b];
      if (from < 0 || to < 0 || !impl_->join(from, to)) continue;
      if (!Impl::arrives(from, to) || !Impl::arrives(to, from)) damaged.emplace_back(a, b);
    }
  return damaged;
}

}  // namespace weft
