#include "framework/trace.hpp"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <unordered_set>

#include "framework/fabric.hpp"
#include "framework/kernel_code.hpp"
#include "framework/residency.hpp"
#include "framework/submit.hpp"

namespace weft {

struct Tracer::Record {
  std::uint64_t op = 0;
  const KernelCode* code = nullptr;
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint64_t bytes = 0;
  std::uint32_t track = 0;
  bool is_span = false;  // else a submission
  bool failed = false;
};

struct Tracer::Part {
  std::uint64_t whole = 0, part = 0;
};

struct Tracer::Buffer {
  std::uint32_t submitter_track = 0;
  std::deque<Record> records;
  std::deque<TraceData::Cause> causes;
  std::deque<Part> parts;
  std::uint64_t dropped = 0;
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
  if (!is_recording()) return;
  op.id = fabric.next_op.fetch_add(1, std::memory_order_relaxed);
  Buffer& mine = buffer();
  if (mine.records.size() >= limit_) {
    ++mine.dropped;
    return;
  }
  mine.records.push_back({op.id, op.code, now(), 0, 0, mine.submitter_track, false, false});
  for (const Dependency& need : needs.all())
    if (need.producer->id) mine.causes.push_back({op.id, need.producer->id, need.order_only});
}

void Tracer::ran(std::uint32_t track, const Op& op, std::int64_t start_ns, std::int64_t end_ns,
                 bool failed) {
  if (!is_recording()) return;
  Buffer& mine = buffer();
  if (mine.records.size() >= limit_) {
    ++mine.dropped;
    return;
  }
  const std::uint64_t bytes =
      op.code->is_copy ? static_cast<const CopyRange*>(const_cast<Op&>(op).scalars())->bytes : 0;
  mine.records.push_back({op.id, op.code, start_ns, end_ns, bytes, track, true, failed});
}

void Tracer::made_part(const Op& whole, const Op& part) {
  if (!is_recording()) return;
  buffer().parts.push_back({whole.id, part.id});
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
  data.tracks = tracks_;
  for (const auto& buffer : buffers_) {
    data.dropped += buffer->dropped;
    for (const Record& record : buffer->records) {
      if (!record.is_span) {
        data.submissions.push_back({record.op, record.track, record.start_ns, record.code->name});
        continue;
      }
      const SpanKind kind = record.code->is_copy         ? SpanKind::Copy
                            : record.code->is_collective ? SpanKind::Collective
                                                         : SpanKind::Kernel;
      data.spans.push_back({record.op, record.track, kind, record.failed, record.code->name,
                            record.start_ns, record.end_ns, record.bytes});
    }
    data.causes.insert(data.causes.end(), buffer->causes.begin(), buffer->causes.end());
    parts.insert(parts.end(), buffer->parts.begin(), buffer->parts.end());
  }
  resolve_parts(parts, data.causes);
  std::sort(data.spans.begin(), data.spans.end(),
            [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  return data;
}

void Tracer::clear() {
  std::lock_guard lock(mutex_);
  for (auto& buffer : buffers_) {
    buffer->records.clear();
    buffer->causes.clear();
    buffer->parts.clear();
    buffer->dropped = 0;
  }
}

}  // namespace weft
