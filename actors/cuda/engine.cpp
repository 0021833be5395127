#include "actors/cuda/engine.hpp"

#include <cublasLt.h>
#include <cublas_v2.h>

#include <algorithm>

#include "actors/cuda/check.hpp"
#include "framework/kernel_code.hpp"
#include "framework/op_cost.hpp"
#include "framework/placer.hpp"
#include "framework/trace.hpp"

namespace weft::cuda {
namespace {

// A launch queue holds 1024 entries; a launch into a full one blocks, and with it the actor. An op
// is up to three entries.
constexpr std::size_t kMostOpsAhead = 256;
// Longer ops fill the device by themselves.
constexpr double kLargeNs = 100'000;
constexpr std::uint32_t kLanesForLarge = 2;
// A wait for another lane costs the host half a microsecond and the device one or two.
constexpr double kShortNs = 10'000;
constexpr double kLeastNs = 2'000;
constexpr double kUnknownNs = 1'000;  // of an op without a cost: a small kernel

// fp32 operations per clock of one multiprocessor (CUDA C++ Programming Guide, arithmetic
// throughput, compute capability 8.6 to 10.0; 64 FMA units before).
double fp32_per_clock(int major, int minor) {
  return major > 8 || (major == 8 && minor > 0) ? 256 : 128;
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  WEFT_CHECK_CUDA(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

}  // namespace

LaneContext::LaneContext(Lane& lane, cudaMemPool_t pool, cublasLtContext* blas_lt,
                         Products products)
    : lane_(lane), pool_(pool), blas_lt_(blas_lt), products_(products) {}

LaneContext::~LaneContext() {
  if (blas_) cublasDestroy(blas_);
  if (scratch_) cudaFreeAsync(scratch_, lane_.stream());
}

cublasContext* LaneContext::blas() {
  if (blas_) return blas_;
  cublasHandle_t made = nullptr;
  WEFT_CHECK_CUBLAS(cublasCreate(&made));
  if (const cublasStatus_t status = cublasSetStream(made, lane_.stream());
      status != CUBLAS_STATUS_SUCCESS) {
    cublasDestroy(made);
    WEFT_CHECK_CUBLAS(status);
  }
  return blas_ = made;
}

Cuda& LaneContext::branch(std::uint32_t number) {
  if (number == 0) return *this;
  while (branches_.size() < number)
    branches_.push_back(std::make_unique<LaneContext>(lane_, pool_, blas_lt_, products_));
  return *branches_[number - 1];
}

cusolverDnContext* LaneContext::solver() {
  if (!solver_) solver_ = std::make_unique<SolverHandle>(lane_.stream());
  return solver_->get();
}

void* LaneContext::scratch(std::size_t bytes) {
  if (bytes <= scratch_bytes_) return scratch_;
  // What is allocated in a graph is the graph's own.
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  WEFT_CHECK_CUDA(cudaStreamIsCapturing(lane_.stream(), &capturing));
  if (capturing != cudaStreamCaptureStatusNone)
    throw DeviceError("more scratch memory than before, in a graph");
  // In stream order: ops before this one may still use the old block.
  if (scratch_) WEFT_CHECK_CUDA(cudaFreeAsync(scratch_, lane_.stream()));
  scratch_ = nullptr;
  const std::size_t wanted = std::max(bytes, 2 * scratch_bytes_);
  scratch_bytes_ = 0;
  WEFT_CHECK_CUDA(cudaMallocFromPoolAsync(&scratch_, wanted, pool_, lane_.stream()));
  scratch_bytes_ = wanted;
  return scratch_;
}

void LaneContext::clear(void* data, std::size_t bytes) {
  if (bytes > 0) WEFT_CHECK_CUDA(cudaMemsetAsync(data, 0, bytes, lane_.stream()));
}

GpuEngine::GpuEngine(const Setup& setup) : device_(*setup.device) {
  const int ordinal = device_.ordinal();
  const CurrentDevice current(ordinal);
  const double clock_per_ns = 1e-6 * attribute(cudaDevAttrClockRate, ordinal);
  flops_per_ns_ = attribute(cudaDevAttrMultiProcessorCount, ordinal) * clock_per_ns *
                  fp32_per_clock(attribute(cudaDevAttrComputeCapabilityMajor, ordinal),
                                 attribute(cudaDevAttrComputeCapabilityMinor, ordinal));
  // Two transfers a clock on a bus of so many bits.
  bytes_per_ns_ = 2e-6 * attribute(cudaDevAttrMemoryClockRate, ordinal) *
                  attribute(cudaDevAttrGlobalMemoryBusWidth, ordinal) / 8;
  WEFT_CHECK_CUBLAS(cublasLtCreate(&blas_lt_));
  for (std::uint32_t i = 0; i < setup.lanes; ++i) {
    Lane::Setup lane;
    lane.device = &device_;
    lane.table = setup.table;
    lane.tracer = setup.tracer;
    lane.is_first = i >= kLanesForLarge;
    if (setup.tracer)
      lane.track =
          setup.tracer->add_track(device_.name(), "compute " + std::to_string(i), TrackKind::Gpu);
    lanes_.push_back(std::make_unique<Lane>(std::move(lane)));
    contexts_.push_back(
        std::make_unique<LaneContext>(*lanes_.back(), setup.pool, blas_lt_, setup.products));
    (void)contexts_.back()->blas();  // not in front of an op
  }
}

GpuEngine::~GpuEngine() {
  cudaSetDevice(device_.ordinal());
  contexts_.clear();
  cublasLtDestroy(blas_lt_);
  DeviceState::forget_current();
}

double GpuEngine::expected_ns(const Op& op) const {
  if (&op == costed_) return costed_ns_;
  costed_ = &op;
  costed_ns_ = kUnknownNs;
  if (!op.code->cost) return costed_ns_;
  try {
    const Cost cost = op.code->cost(const_cast<Op&>(op));
    double ns = kLeastNs;
    if (flops_per_ns_ > 0) ns = std::max(ns, cost.flops / flops_per_ns_);
    if (bytes_per_ns_ > 0) ns = std::max(ns, cost.bytes / bytes_per_ns_);
    costed_ns_ = ns;
  } catch (...) {  // only an estimate: the op runs without
  }
  return costed_ns_;
}

std::uint32_t GpuEngine::lanes_for(const Op& op) const {
  return expected_ns(op) > kLargeNs ? std::min(kLanesForLarge, lanes()) : lanes();
}

std::uint32_t GpuEngine::first_small_lane() const {
  return std::min(kLanesForLarge, lanes());
}

bool GpuEngine::is_short(const Op& op) const {
  return expected_ns(op) < kShortNs;
}

bool GpuEngine::is_sampled(Op& op) {
  if (!wants_run(op) || op.failure.load(std::memory_order_relaxed)) return false;
  try {
    return sampler_.wants(*op.code, amount_of(op));
  } catch (...) {  // what a kernel says it costs may throw
    return false;
  }
}

bool GpuEngine::is_tail(const Op& op) const {
  const std::uint32_t lane = op.lane - first_lane();
  return lane < lanes() && static_cast<std::uint32_t>(lanes_[lane]->last_ticket()) == op.ticket;
}

void GpuEngine::issue(Op& op, std::uint32_t lane) {
  device_.make_current();
  Failure* failure = lanes_[lane]->begin(op, is_sampled(op));
  if (!failure && !op.failure.load(std::memory_order_relaxed)) failure = run(op, lane);
  lanes_[lane]->enqueued(op, failure, expected_ns(op));
  costed_ = nullptr;
}

Failure* GpuEngine::run(Op& op, std::uint32_t lane) {
  FailureKind kind = FailureKind::KernelThrew;
  std::string message;
  cudaGetLastError();  // what calls of others have left in this thread is not this op's
  try {
    op.code->cuda(*contexts_[lane], op);
    const cudaError_t status = cudaGetLastError();
    if (status == cudaSuccess) return nullptr;
    kind = FailureKind::DeviceError;
    message = cudaGetErrorString(status);
  } catch (const DeviceError& error) {
    kind = FailureKind::DeviceError;
    message = error.what();
  } catch (const std::exception& error) {
    message = error.what();
  } catch (...) {
    message = "unknown exception";
  }
  if (device_.is_gone(lanes_[lane]->stream())) return device_.loss(op.code->name);
  return Failure::make(kind, op.code->name, device_.name(), message);
}

bool GpuEngine::has_room() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const auto& lane) { return lane->queued() < kMostOpsAhead; });
}

Failure* GpuEngine::loss(const Op& op) const {
  return device_.is_lost() ? device_.loss(op.code->name) : nullptr;
}

bool GpuEngine::progress(ReadySink& sink, bool quiet) {
  bool did = false;
  for (auto& lane : lanes_) did = lane->progress(sink, quiet) || did;
  return did;
}

bool GpuEngine::needs_progress() const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [](const auto& lane) { return lane->queued() > 0; });
}

}  // namespace weft::cuda
