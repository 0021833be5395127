#include "actors/cuda/stager.hpp"

#include <algorithm>
#include <cstring>

#include "actors/cuda/check.hpp"
#include "actors/cuda/streaming_copy.hpp"
#include "framework/kernel_code.hpp"
#include "framework/trace.hpp"

namespace weft::cuda {
namespace {

// Smaller chunks leave the rate to the cost of a copy's issue: 256 KB reach 16 to 22 GB/s, 4 MB 51
// (an H200's host).
constexpr std::size_t kChunk = 4 << 20;
constexpr std::size_t kSmallestPiece = 512 << 10;  // of a copy that several threads share

}  // namespace

struct Stager::Shared {
  Job job;
  std::size_t piece = kChunk;
  std::size_t next = 0;  // offset of the next piece; with the stager's lock
  std::atomic<std::size_t> pieces_left{0};
  std::int64_t started_ns = 0;
  std::mutex mutex;
  std::string error;
};

Stager::Stager(std::uint32_t workers) {
  for (std::uint32_t i = 0; i < workers; ++i) workers_.push_back(std::make_unique<Worker>(*this));
}

Stager::~Stager() = default;

void Stager::push(Job job) {
  auto shared = std::make_shared<Shared>();
  shared->piece =
      std::clamp((job.bytes / workers_.size() + 4095) / 4096 * 4096, kSmallestPiece, kChunk);
  const std::size_t pieces = job.bytes == 0 ? 1 : (job.bytes + shared->piece - 1) / shared->piece;
  shared->job = std::move(job);
  shared->pieces_left.store(pieces, std::memory_order_relaxed);
  if (shared->job.tracer) shared->started_ns = shared->job.tracer->now();
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(shared));
    pieces_left_.fetch_add(static_cast<std::int64_t>(pieces), std::memory_order_seq_cst);
  }
  for (std::size_t i = 0; i < workers_.size() && i < pieces; ++i) workers_[i]->mailbox().nudge();
}

bool Stager::take(Piece& piece) {
  if (!has_work()) return false;
  std::lock_guard lock(mutex_);
  if (jobs_.empty()) return false;
  Shared& job = *jobs_.front();
  piece = {jobs_.front(), job.next, std::min(job.piece, job.job.bytes - job.next)};
  job.next += piece.bytes;
  if (job.next >= job.job.bytes) jobs_.pop_front();
  pieces_left_.fetch_sub(1, std::memory_order_seq_cst);
  return true;
}

Stager::Worker::~Worker() = default;

void Stager::Worker::thread_ends() {
  for (PerDevice& device : devices_) {
    cudaSetDevice(device.ordinal);
    for (cudaEvent_t event : device.events) cudaEventDestroy(event);
    cudaStreamDestroy(device.stream);
  }
  for (Slot& slot : slots_)
    if (slot.pinned) cudaFreeHost(slot.pinned);
}

bool Stager::Worker::run_some() {
  bool did = false;
  Piece piece;
  while (used_ < kSlots && stager_.take(piece)) {
    start(std::move(piece));
    did = true;
  }
  return finish_oldest() || did;
}

Stager::Worker::PerDevice& Stager::Worker::on(DeviceState& device) {
  device.make_current();
  for (PerDevice& known : devices_)
    if (known.ordinal == device.ordinal()) return known;
  PerDevice made{device.ordinal(), nullptr, {}};
  WEFT_CHECK_CUDA(cudaStreamCreateWithFlags(&made.stream, cudaStreamNonBlocking));
  for (cudaEvent_t& event : made.events)
    WEFT_CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  devices_.push_back(made);
  return devices_.back();
}

void Stager::Worker::start(Piece piece) {
  const Job& job = piece.job->job;
  if (job.direction == Direction::Host || piece.bytes == 0) {
    if (piece.bytes > 0)
      copy_streaming(job.to + piece.offset, job.from + piece.offset, piece.bytes);
    finish(piece, "");
    return;
  }
  if (job.device->is_lost()) {
    finish(piece, "lost");
    return;
  }
  const std::size_t index = (oldest_ + used_) % kSlots;
  Slot& slot = slots_[index];
  try {
    PerDevice& device = on(*job.device);
    if (!slot.pinned)
      WEFT_CHECK_CUDA(
          cudaHostAlloc(reinterpret_cast<void**>(&slot.pinned), kChunk, cudaHostAllocPortable));
    if (job.direction == Direction::ToHost) {
      WEFT_CHECK_CUDA(cudaMemcpyAsync(slot.pinned, job.from + piece.offset, piece.bytes,
                                      cudaMemcpyDeviceToHost, device.stream));
    } else {
      std::memcpy(slot.pinned, job.from + piece.offset, piece.bytes);
      WEFT_CHECK_CUDA(cudaMemcpyAsync(job.to + piece.offset, slot.pinned, piece.bytes,
                                      cudaMemcpyHostToDevice, device.stream));
    }
    slot.done = device.events[index];
    WEFT_CHECK_CUDA(cudaEventRecord(slot.done, device.stream));
  } catch (const DeviceError& error) {
    if (!devices_.empty()) job.device->is_gone(devices_.back().stream);
    finish(piece, error.what());
    return;
  }
  slot.piece = std::move(piece);
  ++used_;
}

bool Stager::Worker::finish_oldest() {
  if (used_ == 0) return false;
  Slot& slot = slots_[oldest_];
  const cudaError_t status = cudaEventQuery(slot.done);
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  const Job& job = slot.piece.job->job;
  if (status == cudaSuccess && job.direction == Direction::ToHost)
    copy_streaming(job.to + slot.piece.offset, slot.pinned, slot.piece.bytes);
  if (status != cudaSuccess) job.device->lose(cudaGetErrorString(status));
  const Piece piece = std::move(slot.piece);
  slot.piece = {};
  oldest_ = (oldest_ + 1) % kSlots;
  --used_;
  finish(piece, status == cudaSuccess ? "" : cudaGetErrorString(status));
  return true;
}

void Stager::Worker::finish(const Piece& piece, const std::string& error) {
  Shared& shared = *piece.job;
  if (!error.empty()) {
    std::lock_guard lock(shared.mutex);
    if (shared.error.empty()) shared.error = error;
  }
  if (shared.pieces_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const Job& job = shared.job;
  Failure* failure = nullptr;
  if (!shared.error.empty())
    failure = job.device && job.device->is_lost()
                  ? job.device->loss(job.op->code->name)
                  : Failure::make(FailureKind::DeviceError, job.op->code->name,
                                  job.device ? job.device->name() : "host", shared.error);
  const bool failed = failure || job.op->failure.load(std::memory_order_acquire);
  if (job.tracer) job.tracer->ran(job.track, *job.op, shared.started_ns, job.tracer->now(), failed);
  job.before_settle(*job.op, failed);
  settle(job.op, failure, send_to_owner());
  job.after_settle();
}

}  // namespace weft::cuda
