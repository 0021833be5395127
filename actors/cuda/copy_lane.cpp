#include "actors/cuda/copy_lane.hpp"

#include <algorithm>

#include "actors/cuda/check.hpp"
#include "framework/kernel_code.hpp"
#include "framework/submit.hpp"
#include "framework/tensor_state.hpp"

namespace weft::cuda {
namespace {

// Shorter copies say more about latency than about the rate.
constexpr std::size_t kTellsRate = 1 << 20;

const CopyRange& range_of(Op& op) {
  return *static_cast<CopyRange*>(op.scalars());
}

}  // namespace

void GpuCopyLane::push(Op& op) {
  const Replica &from = *op.args()[0].replica(), &to = *op.args()[1].replica();
  DeviceState* device = setup_.device_of_memory[from.memory];
  if (!device) device = setup_.device_of_memory[to.memory];
  if (!device || is_pageable(from) || is_pageable(to))
    stage(op, device);
  else
    copy(op, lane_on(*device));
}

Lane& GpuCopyLane::lane_on(DeviceState& device) {
  for (auto& lane : lanes_)
    if (&lane->device() == &device) return *lane;
  Lane::Setup setup;
  setup.device = &device;
  setup.table = setup_.table;
  setup.tracer = setup_.tracer;
  setup.track = setup_.track;
  setup.before_settle = [this](Op& op, bool failed) { copied(op, failed); };
  lanes_.push_back(std::make_unique<Lane>(std::move(setup)));
  return *lanes_.back();
}

void GpuCopyLane::copy(Op& op, Lane& lane) {
  const CopyRange& range = range_of(op);
  lane.device().make_current();
  Failure* failure = lane.begin(op);
  if (lane.queued() == 0) busy_since_ = std::chrono::steady_clock::now();
  if (!failure && !op.failure.load(std::memory_order_relaxed) && range.bytes > 0) {
    const auto* from = static_cast<const char*>(op.args()[0].replica()->data) + range.offset;
    auto* to = static_cast<char*>(op.args()[1].replica()->data) + range.to_offset;
    const cudaError_t status =
        cudaMemcpyAsync(to, from, range.bytes, cudaMemcpyDefault, lane.stream());
    if (status != cudaSuccess) {
      cudaGetLastError();
      failure = Failure::make(FailureKind::DeviceError, op.code->name, lane.device().name(),
                              std::string("cudaMemcpyAsync: ") + cudaGetErrorString(status));
    }
  }
  // Each copy gets a mark of its own: who waits for it should not wait for the next.
  lane.enqueued(op, failure, 1e9);
}

// The stager knows no streams to wait for: such copies begin when the host knows that their
// producers are done (`Domain::Host`).
void GpuCopyLane::stage(Op& op, DeviceState* device) {
  const CopyRange& range = range_of(op);
  const Replica &from = *op.args()[0].replica(), &to = *op.args()[1].replica();
  Stager::Job job;
  job.op = &op;
  job.from = static_cast<const char*>(from.data) + range.offset;
  job.to = static_cast<char*>(to.data) + range.to_offset;
  job.bytes = op.failure.load(std::memory_order_relaxed) ? 0 : range.bytes;
  job.device = device;
  job.direction = !device                                     ? Stager::Direction::Host
                  : setup_.device_of_memory[from.memory] ? Stager::Direction::ToHost
                                                              : Stager::Direction::ToDevice;
  job.tracer = setup_.tracer;
  job.track = setup_.track;
  job.before_settle = [this](Op& done, bool failed) {
    const std::int64_t bytes = static_cast<std::int64_t>(range_of(done).bytes);
    setup_.load->queued_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    busy_bytes_.fetch_sub(bytes, std::memory_order_seq_cst);
    (void)failed;
  };
  job.after_settle = setup_.on_copied;
  setup_.stager->push(std::move(job));
}

bool GpuCopyLane::is_pageable(const Replica& replica) const {
  if (replica.pool != setup_.program_memory) return false;
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, replica.data) != cudaSuccess) {
    cudaGetLastError();
    return true;
  }
  return attributes.type == cudaMemoryTypeUnregistered;
}

void GpuCopyLane::copied(Op& op, bool failed) {
  const std::size_t bytes = range_of(op).bytes;
  const auto now = std::chrono::steady_clock::now();
  if (bytes >= kTellsRate && !failed) {
    const double seconds = std::chrono::duration<double>(now - busy_since_).count();
    auto& rate = setup_.load->bytes_per_second;
    // Several may be found done at one look: only a time that can be is a measurement.
    const double measured = seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
    const double known = rate.load(std::memory_order_relaxed);
    if (measured > 0 && measured < 4 * known)
      rate.store(0.9 * known + 0.1 * measured, std::memory_order_relaxed);
  }
  busy_since_ = now;
  setup_.load->queued_bytes.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  busy_bytes_.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_seq_cst);
}

bool GpuCopyLane::progress(ReadySink& sink, bool quiet) {
  bool did = false;
  for (auto& lane : lanes_) did = lane->progress(sink, quiet) || did;
  return did;
}

bool GpuCopyLane::needs_progress() const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [](const auto& lane) { return lane->queued() > 0; });
}

}  // namespace weft::cuda
