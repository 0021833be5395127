#include "framework/trace.hpp"

#include <algorithm>
#include <atomic>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "framework/fabric.hpp"
#include "framework/kernel_code.hpp"
#include "framework/op_cost.hpp"
#include "framework/residency.hpp"
#include "framework/submit.hpp"

namespace weft {

namespace {

// Records in the order in which they came. Keeps its memory when it is cleared.
template <class T>
class Log {
 public:
  void push(const T& record) {
    if (at_ == end_) next_chunk();
    // Memory that is not in the cache: fetched ahead, for soon an atomic write waits for all
    // stores.
    __builtin_prefetch(reinterpret_cast<const char*>(at_) + kAhead, 1);
    *at_++ = record;
  }
  void clear() {
    used_ = 0;
    at_ = end_ = nullptr;
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t c = 0; c < used_; ++c) {
      const T* const end = c + 1 < used_ ? chunks_[c].get() + kChunk : at_;
      for (const T* record = chunks_[c].get(); record != end; ++record) visit(*record);
    }
  }

 private:
  static constexpr std::size_t kAhead = 512;  // bytes
  static constexpr std::size_t kChunk = (64 << 10) / sizeof(T);
  void next_chunk() {
    if (used_ == chunks_.size()) chunks_.push_back(std::make_unique_for_overwrite<T[]>(kChunk));
    at_ = chunks_[used_++].get();
    end_ = at_ + kChunk;
  }
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::size_t used_ = 0;
  T* at_ = nullptr;
  T* end_ = nullptr;
};

constexpr std::uint64_t kIdsAtOnce = 1024;  // a thread takes so many numbers for its ops

// A submission, and how many of the thread's causes are its own.
struct Sent {
  std::uint64_t op;
  const KernelCode* code;
  std::uint64_t at_ticks;
  std::uint64_t causes;
};

}  // namespace

struct Tracer::Record {
  std::uint64_t op = 0;
  const KernelCode* code = nullptr;
  std::uint64_t start = 0, end = 0;  // nanoseconds, or ticks
  std::uint64_t bytes = 0;
  std::uint32_t track = 0;
  bool in_ticks = false;
  bool failed = false;
};

struct Tracer::Part {
  std::uint64_t whole = 0, part = 0;
};

struct Tracer::Buffer {
  std::uint32_t submitter_track = 0;
  std::uint64_t next_id = 0, ids_left = 0;
  std::size_t count = 0;  // of submissions and spans
  std::uint64_t dropped = 0;
  Log<Sent> sent;
  Log<std::uint64_t> causes;  // twice the producer's number, one more for an edge that only orders
  Log<Record> spans;
  Log<Part> parts;
  Log<TraceData::OpCost> costs;
};

namespace {
std::atomic<std::uint64_t> next_tracer{1};
}

Tracer::Tracer(std::size_t limit) : limit_(limit), number_(next_tracer.fetch_add(1)) {}
Tracer::~Tracer() = default;

std::uint32_t Tracer::add_track(std::string actor, std::string lane, TrackKind kind) {
  std::lock_guard lock(mutex_);
  tracks_.push_back({std::move(actor), std::move(lane), kind});
  return static_cast<std::uint32_t>(tracks_.size() - 1);
}

Tracer::Buffer& Tracer::buffer() {
  thread_local std::uint64_t tracer = 0;
  thread_local Buffer* mine = nullptr;
  if (tracer != number_) {
    std::lock_guard lock(mutex_);
    buffers_.push_back(std::make_unique<Buffer>());
    mine = buffers_.back().get();
    tracks_.push_back(
        {"callers", "thread " + std::to_string(buffers_.size()), TrackKind::Submitter});
    mine->submitter_track = static_cast<std::uint32_t>(tracks_.size() - 1);
    tracer = number_;
  }
  return *mine;
}

void Tracer::submitted(Fabric& fabric, Op& op, const DependencySet& needs) {
  if (!wants_ops()) return;
  Buffer& mine = buffer();
  if (mine.ids_left == 0) {
    mine.next_id = fabric.next_op.fetch_add(kIdsAtOnce, std::memory_order_relaxed);
    mine.ids_left = kIdsAtOnce;
  }
  --mine.ids_left;
  op.id = mine.next_id++;
  std::uint64_t at = 0;
  if (program_)
    at = static_cast<std::uint64_t>(thread_must_not_wait() ? clock_->now()
                                                           : program_->submitted(op.id));
  else
    at = ticks();
  if (!is_recording()) return;
  if (mine.count >= limit_) {
    ++mine.dropped;
    return;
  }
  ++mine.count;
  std::uint64_t causes = 0;
  for (const Dependency& need : needs.all()) {
    if (!need.producer->id) continue;
    mine.causes.push(2 * need.producer->id + (need.order_only ? 1 : 0));
    ++causes;
  }
  mine.sent.push({op.id, op.code, at, causes});
}

void Tracer::add_span(const Record& record, const Op& op) {
  if (!is_recording()) return;
  Buffer& mine = buffer();
  if (mine.count >= limit_) {
    ++mine.dropped;
    return;
  }
  ++mine.count;
  mine.spans.push(record);
  const KernelCode& code = *op.code;
  if (!records_costs_.load(std::memory_order_relaxed) || record.failed || code.is_copy ||
      code.is_collective)
    return;
  Op& asked = const_cast<Op&>(op);
  const Cost cost = cost_of(asked);
  mine.costs.push({op.id, cost.flops, cost.bytes, is_fp64(asked), code.is_product});
}

void Tracer::ran(std::uint32_t track, const Op& op, std::int64_t start_ns, std::int64_t end_ns,
                 bool failed) {
  const std::uint64_t bytes = copied_bytes(op);
  add_span({op.id, op.code, static_cast<std::uint64_t>(start_ns),
            static_cast<std::uint64_t>(end_ns), bytes, track, false, failed},
           op);
}

void Tracer::ran_ticks(std::uint32_t track, const Op& op, std::uint64_t start, std::uint64_t end,
                       bool failed) {
  add_span({op.id, op.code, start, end, 0, track, true, failed}, op);
}

void Tracer::made_part(const Op& whole, const Op& part) {
  if (!is_recording()) return;
  buffer().parts.push({whole.id, part.id});
}

// Parts take the place of their wholes among the causes.
void Tracer::resolve_parts(const std::vector<Part>& parts, std::vector<TraceData::Cause>& causes) {
  if (parts.empty()) return;
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> parts_of;
  for (const Part& part : parts) parts_of[part.whole].push_back(part.part);
  std::unordered_set<std::uint64_t> with_cause;
  for (const auto& cause : causes) with_cause.insert(cause.op);
  std::vector<TraceData::Cause> resolved;
  for (const auto& cause : causes) {
    const auto producers = parts_of.find(cause.producer);
    const auto ops = parts_of.find(cause.op);
    const std::vector<std::uint64_t> itself{cause.producer}, alone{cause.op};
    for (std::uint64_t producer : producers == parts_of.end() ? itself : producers->second)
      for (std::uint64_t op : ops == parts_of.end() ? alone : ops->second)
        if (ops == parts_of.end() || !with_cause.count(op))
          resolved.push_back({op, producer, cause.order_only});
  }
  causes = std::move(resolved);
}

TraceData Tracer::collect() const {
  std::lock_guard lock(mutex_);
  TraceData data;
  std::vector<Part> parts;
  // Over the whole recording, so that the two clocks do not drift apart.
  const std::uint64_t elapsed = ticks() - start_ticks_;
  const double ns_per_tick =
      elapsed ? static_cast<double>(now()) / static_cast<double>(elapsed) : 0;
  const auto ns_of = [&](std::uint64_t at) {
    if (clock_) return static_cast<std::int64_t>(at);
    return static_cast<std::int64_t>(
        ns_per_tick * static_cast<double>(static_cast<std::int64_t>(at - start_ticks_)));
  };
  data.tracks = tracks_;
  for (const auto& buffer : buffers_) {
    data.dropped += buffer->dropped;
    std::vector<std::uint64_t> causes;
    buffer->causes.for_each([&](std::uint64_t cause) { causes.push_back(cause); });
    std::size_t next_cause = 0;
    buffer->sent.for_each([&](const Sent& sent) {
      data.submissions.push_back(
          {sent.op, buffer->submitter_track, ns_of(sent.at_ticks), sent.code->name});
      for (std::uint64_t i = 0; i < sent.causes; ++i, ++next_cause)
        data.causes.push_back({sent.op, causes[next_cause] / 2, causes[next_cause] % 2 == 1});
    });
    buffer->spans.for_each([&](const Record& span) {
      const SpanKind kind = span.code->is_copy         ? SpanKind::Copy
                            : span.code->is_collective ? SpanKind::Collective
                                                       : SpanKind::Kernel;
      const auto ns = [&](std::uint64_t at) {
        return span.in_ticks ? ns_of(at) : static_cast<std::int64_t>(at);
      };
      data.spans.push_back({span.op, span.track, kind, span.failed, span.code->name, ns(span.start),
                            ns(span.end), span.bytes});
    });
    buffer->parts.for_each([&](const Part& part) { parts.push_back(part); });
    buffer->costs.for_each([&](const TraceData::OpCost& cost) { data.costs.push_back(cost); });
  }
  resolve_parts(parts, data.causes);
  std::sort(data.spans.begin(), data.spans.end(), [](const auto& a, const auto& b) {
    return std::tie(a.start_ns, a.track, a.op) < std::tie(b.start_ns, b.track, b.op);
  });
  return data;
}

void Tracer::clear() {
  std::lock_guard lock(mutex_);
  for (auto& buffer : buffers_) {
    buffer->sent.clear();
    buffer->causes.clear();
    buffer->spans.clear();
    buffer->parts.clear();
    buffer->costs.clear();
    buffer->count = buffer->dropped = 0;
  }
}

}  // namespace weft
