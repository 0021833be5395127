#include "actors/cuda/copy_lane.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>

#include "actors/cuda/check.hpp"
#include "framework/kernel_code.hpp"
#include "framework/submit.hpp"
#include "framework/tensor_state.hpp"

namespace weft::cuda {
namespace {

// Shorter copies say more about latency than about the rate.
constexpr std::int64_t kTellsRate = 1 << 20;

const CopyRange& range_of(Op& op) {
  return *static_cast<CopyRange*>(op.scalars());
}

// Two pieces of a large copy: what is more may be relieved.
constexpr std::int64_t kByteBudget = 64 << 20;
// A launch queue holds 1024 entries, and a launch into a full one blocks.
constexpr std::size_t kMostCopiesAhead = 256;

// For marks only: large copies get one of their own, so that who waits for one does not wait for
// the next.
double expected_ns(std::size_t bytes) {
  return 2'000 + static_cast<double>(bytes) / 50;
}

// Pieces that are on their way through a GPU's memory: enough that both links are always busy.
constexpr std::size_t kRelayPiece = 8 << 20;
constexpr std::size_t kRelayPieces = 4;

}  // namespace

// A ring in the memory of the GPU at the lane's end: one stream fills it from the other GPU, the
// lane's own empties it.
struct GpuCopyLane::Ring {
  Ring(DeviceState& at, cudaMemPool_t pool) : device(at) {
    try {
      make(pool);
    } catch (...) {
      clear();
      throw;
    }
  }
  ~Ring() { clear(); }

  void make(cudaMemPool_t pool) {
    const CurrentDevice current(device.ordinal());
    WEFT_CHECK_CUDA(cudaStreamCreateWithFlags(&fill, cudaStreamNonBlocking));
    for (cudaEvent_t* event : events())
      WEFT_CHECK_CUDA(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    void* memory = nullptr;
    WEFT_CHECK_CUDA(cudaMallocFromPoolAsync(&memory, kRelayPiece * kRelayPieces, pool, fill));
    WEFT_CHECK_CUDA(cudaStreamSynchronize(fill));
    data = static_cast<char*>(memory);
  }
  void clear() {
    cudaSetDevice(device.ordinal());
    for (cudaEvent_t* event : events())
      if (*event) cudaEventDestroy(*event);
    if (fill) {
      cudaStreamSynchronize(fill);
      if (data) cudaFreeAsync(data, fill);
      cudaStreamDestroy(fill);
    }
    cudaGetLastError();
    DeviceState::forget_current();
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  std::vector<cudaEvent_t*> events() {
    std::vector<cudaEvent_t*> all;
    for (std::size_t i = 0; i < kRelayPieces; ++i) {
      all.push_back(&filled[i]);
      all.push_back(&emptied[i]);
    }
    return all;
  }

  void pass(const char* from, char* to, std::size_t bytes, cudaStream_t empty) {
    for (std::size_t done = 0; done < bytes; done += kRelayPiece, ++next) {
      const std::size_t piece = std::min(kRelayPiece, bytes - done), slot = next % kRelayPieces;
      char* between = data + slot * kRelayPiece;
      if (next >= kRelayPieces) WEFT_CHECK_CUDA(cudaStreamWaitEvent(fill, emptied[slot], 0));
      WEFT_CHECK_CUDA(cudaMemcpyAsync(between, from + done, piece, cudaMemcpyDefault, fill));
      WEFT_CHECK_CUDA(cudaEventRecord(filled[slot], fill));
      WEFT_CHECK_CUDA(cudaStreamWaitEvent(empty, filled[slot], 0));
      WEFT_CHECK_CUDA(cudaMemcpyAsync(to + done, between, piece, cudaMemcpyDefault, empty));
      WEFT_CHECK_CUDA(cudaEventRecord(emptied[slot], empty));
    }
  }

  DeviceState& device;
  cudaStream_t fill = nullptr;
  char* data = nullptr;
  cudaEvent_t filled[kRelayPieces] = {}, emptied[kRelayPieces] = {};
  std::size_t next = 0;
};

GpuCopyLane::GpuCopyLane(Setup setup) : setup_(std::move(setup)) {}
GpuCopyLane::~GpuCopyLane() = default;

void GpuCopyLane::push(Op& op) {
  own_copies_.fetch_add(1, std::memory_order_relaxed);
  const Replica &from = *op.args()[0].replica(), &to = *op.args()[1].replica();
  DeviceState* device = setup_.device_of_memory[from.memory];
  if (!device) device = setup_.device_of_memory[to.memory];
  if (!device || is_pageable(from) || is_pageable(to)) {
    stage(op, device);
  } else if (Lane* lane = lane_on(*device)) {
    copy(op, *lane);
  } else {
    if (!op.failure.load(std::memory_order_relaxed)) op.failure.store(loss_of(*device, op));
    stage(op, device);  // settles it without moving anything
  }
}

Failure* GpuCopyLane::loss_of(const DeviceState& device, const Op& op) {
  if (device.is_lost()) return device.loss(op.code->name);
  return Failure::make(FailureKind::DeviceError, op.code->name, device.name(),
                       "no stream can be made on it");
}

Failure* GpuCopyLane::loss(const Op& op) const {
  auto& copy = const_cast<Op&>(op);
  for (std::size_t i = 0; i < 2; ++i)
    if (const DeviceState* device = setup_.device_of_memory[copy.args()[i].replica()->memory])
      if (device->is_lost()) return device->loss(op.code->name);
  return nullptr;
}

bool GpuCopyLane::has_room() const {
  return busy_bytes() < kByteBudget && std::all_of(lanes_.begin(), lanes_.end(), [](const auto& l) {
           return l->queued() < kMostCopiesAhead;
         });
}

Lane* GpuCopyLane::lane_on(DeviceState& device) {
  for (auto& lane : lanes_)
    if (&lane->device() == &device) return lane.get();
  Lane::Setup setup;
  setup.device = &device;
  setup.table = setup_.table;
  setup.tracer = setup_.tracer;
  setup.track = setup_.track;
  setup.before_settle = [this](Op& op, bool failed) {
    measure(range_of(op).segment->load, static_cast<std::int64_t>(range_of(op).bytes), failed);
    copied(op);
  };
  try {
    lanes_.push_back(std::make_unique<Lane>(std::move(setup)));
  } catch (const DeviceError&) {
    return nullptr;
  }
  return lanes_.back().get();
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
    if (status != cudaSuccess)
      failure = failure_of(op, lane, std::string("cudaMemcpyAsync: ") + cudaGetErrorString(status));
  }
  lane.enqueued(op, failure, expected_ns(range.bytes));
}

Failure* GpuCopyLane::failure_of(const Op& op, Lane& lane, const std::string& message) {
  if (lane.device().is_gone(lane.stream())) return lane.device().loss(op.code->name);
  return Failure::make(FailureKind::DeviceError, op.code->name, lane.device().name(), message);
}

bool GpuCopyLane::can_relay(std::uint32_t via) {
  DeviceState& device = *setup_.device_of_memory[via];
  if (device.is_lost() || !lane_on(device)) return false;
  const auto [found, is_new] = rings_.try_emplace(via);
  if (is_new) {
    try {
      found->second = std::make_unique<Ring>(device, setup_.pool_of_memory[via]);
    } catch (const DeviceError& error) {
      spdlog::warn("{} relays no copies: {}", device.name(), error.what());
    }
  }
  return found->second != nullptr;
}

void GpuCopyLane::relay(Op& op, std::uint32_t via) {
  const CopyRange& range = range_of(op);
  Lane& lane = *lane_on(*setup_.device_of_memory[via]);
  lane.device().make_current();
  Failure* failure = lane.begin(op);
  if (!failure && range.bytes > 0) {
    try {
      rings_[via]->pass(static_cast<const char*>(op.args()[0].replica()->data) + range.offset,
                        static_cast<char*>(op.args()[1].replica()->data) + range.to_offset,
                        range.bytes, lane.stream());
    } catch (const DeviceError& error) {
      failure = failure_of(op, lane, error.what());
    }
  }
  lane.enqueued(op, failure, expected_ns(range.bytes));
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
  job.direction = !device                                ? Stager::Direction::Host
                  : setup_.device_of_memory[from.memory] ? Stager::Direction::ToHost
                                                         : Stager::Direction::ToDevice;
  job.tracer = setup_.tracer;
  job.track = setup_.track;
  job.before_settle = [this](Op& done, bool /*failed*/) { copied(done); };
  job.after_settle = setup_.on_copied;
  setup_.stager->push(std::move(job));
}

bool GpuCopyLane::is_pageable(const Replica& replica) const {
  if (setup_.device_of_memory[replica.memory]) return false;
  if (replica.pool != setup_.program_memory && !setup_.has_pageable) return false;
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, replica.data) != cudaSuccess) {
    cudaGetLastError();
    return true;
  }
  return attributes.type == cudaMemoryTypeUnregistered;
}

void GpuCopyLane::copied(Op& op) {
  const auto bytes = static_cast<std::int64_t>(range_of(op).bytes);
  LinkLoad* load = range_of(op).segment->load;  // of another link, if it is a relief
  if (load == setup_.load) own_copies_.fetch_sub(1, std::memory_order_relaxed);
  load->queued_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  busy_bytes_.fetch_sub(bytes, std::memory_order_seq_cst);
}

void GpuCopyLane::measure(LinkLoad* load, std::int64_t bytes, bool failed) {
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - busy_since_).count();
  busy_since_ = now;
  if (failed || load != setup_.load || bytes < kTellsRate || seconds <= 0) return;
  auto& rate = load->bytes_per_second;
  const double known = rate.load(std::memory_order_relaxed);
  const double measured = static_cast<double>(bytes) / seconds;
  // Several may be found done at one look: only a rate that can be is a measurement.
  if (measured < 4 * known) rate.store(0.9 * known + 0.1 * measured, std::memory_order_relaxed);
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
