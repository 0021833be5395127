#include "actors/cuda/collectives.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>

#include "actors/cuda/check.hpp"
#include "actors/cuda/collective_part.hpp"
#include "actors/cuda/kernels/peer_reduce.hpp"
#include "actors/cuda/peer_reduce.hpp"
#include "framework/kernel_code.hpp"
#include "framework/tagged.hpp"
#include "framework/tensor.hpp"
#include "framework/trace.hpp"
#if WEFT_HAVE_NCCL
#include "actors/cuda/nccl_group.hpp"
#endif

namespace weft::cuda {
namespace {

// NCCL is asked for errors now and then only: it costs some hundred nanoseconds.
constexpr std::uint32_t kLooksBetween = 4096;
// Longer than any operation takes whose data are there.
constexpr std::chrono::seconds kPatience{60};
// For marks only: about what a small and a large operation take over NVLink.
constexpr double kLatencyNs = 3'000, kBytesPerNs = 300;

// Half floats are numbers without a type of C++20.
std::optional<ElementKind> kind_of(std::uint32_t element_type) {
  if (element_type == element_type_of<float>()) return ElementKind::F32;
  if (element_type == element_type_of<double>()) return ElementKind::F64;
  if (element_type == element_type_of<std::int8_t>()) return ElementKind::I8;
  if (element_type == element_type_of<std::uint8_t>()) return ElementKind::U8;
  if (element_type == element_type_of<std::int32_t>()) return ElementKind::I32;
  if (element_type == element_type_of<std::uint32_t>()) return ElementKind::U32;
  if (element_type == element_type_of<std::int64_t>()) return ElementKind::I64;
  if (element_type == element_type_of<std::uint64_t>()) return ElementKind::U64;
  return std::nullopt;
}

}  // namespace

struct GpuCollectives::Group {
  std::unique_ptr<PeerReduce> peer;  // null: not all are peers
#if WEFT_HAVE_NCCL
  std::unique_ptr<NcclGroup> nccl;
#endif
  std::atomic<bool> has_nccl{false};  // false: built without, or it does not start
  std::atomic<bool> is_ended{false};  // by an error or a lost member: what waits for it would hang
};

GpuCollectives::GpuCollectives(Setup setup) : setup_(std::move(setup)) {
  std::vector<Lane*> all;
  for (DeviceState* device : setup_.devices) {
    Lane::Setup lane;
    lane.device = device;
    lane.table = setup_.table;
    lane.tracer = setup_.tracer;
    if (setup_.tracer)
      lane.track = setup_.tracer->add_track(device->name(), "collectives", TrackKind::Collective);
    lane.part_done = [this](Op& op, Failure* failure, ReadySink& sink) {
      part_done(op, failure, sink);
    };
    lanes_.push_back(std::make_unique<Lane>(std::move(lane)));
    all.push_back(lanes_.back().get());
  }
  setup_.table->set_member_lanes(std::move(all));
}

GpuCollectives::~GpuCollectives() = default;

GpuCollectives::Key GpuCollectives::key_of(const std::vector<Place*>& members) const {
  Key key;
  for (const Place* place : members) key.push_back(place->index - setup_.first_place);
  return key;
}

GpuCollectives::Group* GpuCollectives::group_of(const Key& key) const {
  std::lock_guard lock(mutex_);
  const auto found = groups_.find(key);
  return found == groups_.end() ? nullptr : found->second.get();
}

void GpuCollectives::prepare(const std::vector<Place*>& members) {
  const Key key = key_of(members);
  // GPUs are bits in `Op::lane`.
  const std::size_t last = *std::max_element(key.begin(), key.end());
  if (last >= LaneTable::kMostMembers || group_of(key)) return;
  auto group = std::make_unique<Group>();
  const std::size_t n = setup_.devices.size();
  bool all_peers = true;
  std::vector<int> ordinals;
  for (std::size_t a : key) {
    for (std::size_t b : key) all_peers = all_peers && (a == b || setup_.peers[a * n + b]);
    ordinals.push_back(setup_.devices[a]->ordinal());
  }
  // Partitions that share an ordinal are one device to both.
  std::vector<int> sorted = ordinals;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return;
  if (all_peers && key.size() <= kMostPeers) group->peer = std::make_unique<PeerReduce>(ordinals);
#if WEFT_HAVE_NCCL
  try {
    group->nccl = std::make_unique<NcclGroup>(ordinals);
    group->has_nccl = true;
  } catch (const DeviceError& error) {
    spdlog::warn("NCCL is not used: {}", error.what());
  }
#endif
  DeviceState::forget_current();
  std::lock_guard lock(mutex_);
  groups_.try_emplace(key, std::move(group));
}

bool GpuCollectives::takes(const std::vector<Place*>& members,
                           const DeviceOperation& operation) const {
  const Group* group = group_of(key_of(members));
  const auto kind = kind_of(operation.element_type);
  if (!group || !kind || group->is_ended.load(std::memory_order_acquire)) return false;
  if (operation.algorithm == CollectiveAlgorithm::Peer)
    return group->peer && operation.kind == CollectiveKind::AllReduce &&
           group->peer->takes(operation.count, *kind);
  return group->has_nccl.load(std::memory_order_acquire);
}

std::optional<CollectiveAlgorithm> GpuCollectives::best(const std::vector<Place*>& members,
                                                        DeviceOperation operation) const {
  // Own kernels are faster at every size from 4 B to 256 MB on two H200 (`weft bench collectives`).
  for (const auto algorithm : {CollectiveAlgorithm::Peer, CollectiveAlgorithm::Nccl}) {
    operation.algorithm = algorithm;
    if (takes(members, operation)) return algorithm;
  }
  return std::nullopt;
}

void GpuCollectives::issue(Op& whole, const std::vector<Place*>& members,
                           const DeviceOperation& operation) {
  const Key gpus = key_of(members);
  Group& group = *group_of(gpus);
  Failure* failure = nullptr;
  std::uint64_t ticket = 0;
  std::uint32_t mask = 0;
  for (std::size_t gpu : gpus) {
    Lane& lane = *lanes_[gpu];
    // Only what is timed makes events of its own; to wait and to mark needs no current device.
    if (setup_.tracer) lane.device().make_current();
    Failure* cause = lane.begin(whole);
    if (failure && cause) cause->release();
    if (!failure) failure = cause;
    ticket = std::max(ticket, lane.last_ticket() + 1);
    mask |= 1u << gpu;
  }
  if (!failure && !whole.failure.load(std::memory_order_relaxed)) {
    try {
      run(group, gpus, whole, operation);
    } catch (const DeviceError& error) {
      failure =
          Failure::make(FailureKind::DeviceError, whole.code->name, members[0]->name, error.what());
      end(group, error.what());  // a member may have its part and wait for the others
    }
    DeviceState::forget_current();
  }
  if (failure) {
    Failure* expected = nullptr;
    if (!whole.failure.compare_exchange_strong(expected, failure)) failure->release();
  }
  const double expected_ns =
      kLatencyNs +
      static_cast<double>(operation.count * (operation.element_type & 0xff)) / kBytesPerNs;
  whole.lane = LaneTable::kOnMembers | mask;
  whole.ticket = static_cast<std::uint32_t>(ticket);
  in_flight_.push_back({&whole, &group, static_cast<std::uint32_t>(gpus.size())});
  for (std::size_t gpu : gpus) {
    if (setup_.tracer) lanes_[gpu]->device().make_current();
    lanes_[gpu]->enqueued_part(whole, ticket, expected_ns);
  }
}

void GpuCollectives::run(Group& group, const Key& gpus, Op& whole,
                         const DeviceOperation& operation) {
  const std::size_t n = gpus.size();
  const bool has_results = whole.arg_count > n;
  std::vector<CollectivePart> parts;
  for (std::size_t i = 0; i < n; ++i) {
    void* data = whole.args()[i].replica()->data;
    parts.push_back({data, has_results ? whole.args()[n + i].replica()->data : data,
                     lanes_[gpus[i]]->stream()});
  }
  const ElementKind kind = *kind_of(operation.element_type);
  if (operation.count == 0) return;
  if (group.is_ended.load(std::memory_order_relaxed))
    throw DeviceError("the group has ended after an error or the loss of a member");
  if (operation.algorithm == CollectiveAlgorithm::Peer) {
    group.peer->all_reduce(parts, operation.count, kind);
    return;
  }
#if WEFT_HAVE_NCCL
  switch (operation.kind) {
    case CollectiveKind::AllReduce:
      return group.nccl->all_reduce(parts, operation.count, kind);
    case CollectiveKind::Broadcast:
      return group.nccl->broadcast(parts, operation.count, kind, operation.root);
    case CollectiveKind::ReduceScatter:
      return group.nccl->reduce_scatter(parts, operation.count / n, kind);
    case CollectiveKind::AllGather:
      return group.nccl->all_gather(parts, operation.count, kind);
  }
#endif
}

void GpuCollectives::part_done(Op& whole, Failure* failure, ReadySink& sink) {
  if (failure) {
    Failure* expected = nullptr;
    if (!whole.failure.compare_exchange_strong(expected, failure)) failure->release();
  }
  const auto found = std::find_if(in_flight_.begin(), in_flight_.end(),
                                  [&](const InFlight& entry) { return entry.op == &whole; });
  if (--found->parts_left > 0) return;
  in_flight_.erase(found);
  settle(&whole, nullptr, sink);
}

bool GpuCollectives::progress(ReadySink& sink, bool quiet) {
  if (in_flight_.empty()) return false;
  bool did = false;
  for (auto& lane : lanes_) did = lane->progress(sink, quiet) || did;
  if (!did && ++looks_ % kLooksBetween == 0) look_for_errors();
  return did;
}

// Fails what the group has in flight and lets its kernels end: without all members they would wait
// for ever, and their results mean nothing.
void GpuCollectives::end(Group& group, const std::string& reason) {
  if (group.is_ended.exchange(true, std::memory_order_acq_rel)) return;
  for (InFlight& entry : in_flight_) {
    if (entry.group != &group) continue;
    Failure* failure =
        Failure::make(FailureKind::DeviceError, entry.op->code->name, "a collective", reason);
    Failure* expected = nullptr;
    if (!entry.op->failure.compare_exchange_strong(expected, failure)) failure->release();
  }
  if (group.peer) group.peer->abort();
#if WEFT_HAVE_NCCL
  if (group.nccl) group.nccl->abort();
#endif
  DeviceState::forget_current();
}

bool GpuCollectives::is_overdue(InFlight& entry) {
  for (std::size_t i = 0; i < entry.op->wait_count; ++i)
    if (!untagged(entry.op->waits()[i])->is_settled()) return false;
  const auto now = std::chrono::steady_clock::now();
  if (entry.alone_since == std::chrono::steady_clock::time_point{}) entry.alone_since = now;
  return now - entry.alone_since > kPatience;
}

// A lost member, or what NCCL reports by itself, would leave kernels waiting for ever.
void GpuCollectives::look_for_errors() {
  if (!in_flight_.empty() && is_overdue(in_flight_.front()))
    end(*in_flight_.front().group,
        "not done " + std::to_string(kPatience.count()) + " s after all it waits for");
  for (std::size_t i = 0; i < in_flight_.size(); ++i) {
    Group& group = *in_flight_[i].group;
    for (std::size_t gpu = 0; gpu < lanes_.size() && gpu < LaneTable::kMostMembers; ++gpu)
      if ((in_flight_[i].op->lane >> gpu & 1) != 0 && lanes_[gpu]->device().is_lost())
        end(group, lanes_[gpu]->device().name() + " is lost");
#if WEFT_HAVE_NCCL
    if (!group.has_nccl.load(std::memory_order_relaxed) ||
        group.is_ended.load(std::memory_order_relaxed))
      continue;
    if (const std::string error = group.nccl->asynchronous_error(); !error.empty())
      end(group, "NCCL: " + error);
#endif
  }
}

}  // namespace weft::cuda
