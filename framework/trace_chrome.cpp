#include "framework/trace_chrome.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace weft {
namespace {

constexpr std::size_t kFlushBytes = 1 << 16;
// How long a submission is drawn, at most: a point could carry no arrow.
constexpr std::int64_t kSubmissionNs = 1000;

using nlohmann::json;

const char* category(SpanKind kind) {
  switch (kind) {
    case SpanKind::Kernel:
      return "kernel";
    case SpanKind::Copy:
      return "copy";
    case SpanKind::Collective:
      return "collective";
  }
  return "kernel";
}

class Writer {
 public:
  Writer(const TraceData& data, std::ostream& to) : data_(data), to_(to) {
    places_.reserve(data.tracks.size());
    for (const auto& track : data.tracks) {
      const auto process = processes_.try_emplace(track.actor, Process{processes_.size() + 1, 0});
      places_.push_back({process.first->second.id, ++process.first->second.threads});
    }
    first_span_.reserve(data.spans.size());
    for (std::size_t i = 0; i < data.spans.size(); ++i) first_span_.emplace_back(op_of(i), i);
    std::sort(first_span_.begin(), first_span_.end());
    causes_.resize(data.causes.size());
    for (std::size_t i = 0; i < causes_.size(); ++i) causes_[i] = i;
    std::sort(causes_.begin(), causes_.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(data.causes[a].op, a) < std::pair(data.causes[b].op, b);
    });
  }

  void write() {
    put(R"({"displayTimeUnit":"ns","traceEvents":[)");
    write_names();
    write_submissions();
    for (std::size_t i = 0; i < data_.spans.size(); ++i) write_span(i);
    for (const auto& cause : data_.causes) write_cause(cause);
    put("\n],\"otherData\":{\"dropped\":");
    put(data_.dropped);
    put("}}\n");
    flush();
  }

 private:
  struct Process {
    std::size_t id, threads;
  };
  struct Place {
    std::size_t process, thread;
  };

  [[nodiscard]] std::uint64_t op_of(std::size_t span) const { return data_.spans[span].op; }

  // The earliest span of an op; null if it never ran.
  [[nodiscard]] const TraceData::Span* span_of(std::uint64_t op) const {
    const auto found =
        std::lower_bound(first_span_.begin(), first_span_.end(), std::pair(op, std::size_t{0}));
    return found != first_span_.end() && found->first == op ? &data_.spans[found->second] : nullptr;
  }

  void put(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= kFlushBytes) flush();
  }
  void put(std::uint64_t number) {
    char digits[24];
    put({digits, std::to_chars(digits, digits + sizeof digits, number).ptr});
  }
  void put_us(std::int64_t ns) {
    if (ns < 0) put("-");
    const auto size = static_cast<std::uint64_t>(ns < 0 ? -ns : ns);
    put(size / 1000);
    const std::uint64_t rest = size % 1000;
    const char fraction[] = {'.', static_cast<char>('0' + rest / 100),
                             static_cast<char>('0' + rest / 10 % 10),
                             static_cast<char>('0' + rest % 10)};
    put({fraction, sizeof fraction});
  }
  void put_quoted(const std::string& text) {
    auto [known, is_new] = quoted_.try_emplace(text);
    if (is_new) known->second = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
    put(known->second);
  }
  void flush() {
    to_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  // Up to where "name" goes; every event begins with it.
  void begin(const char* phase, const char* category, std::uint32_t track) {
    put(first_ ? "\n" : ",\n");
    first_ = false;
    put(R"({"ph":")");
    put(phase);
    put(R"(","cat":")");
    put(category);
    put(R"(","pid":)");
    put(places_[track].process);
    put(R"(,"tid":)");
    put(places_[track].thread);
  }
  void put_ts(std::int64_t ns) {
    put(R"(,"ts":)");
    put_us(ns);
  }

  void write_name(std::uint32_t track, const char* what, const std::string& name) {
    begin("M", "__metadata", track);
    put(R"(,"name":")");
    put(what);
    put(R"(","args":{"name":)");
    put_quoted(name);
    put("}}");
  }
  void write_order(std::uint32_t track, const char* what, std::size_t order) {
    begin("M", "__metadata", track);
    put(R"(,"name":")");
    put(what);
    put(R"(","args":{"sort_index":)");
    put(order);
    put("}}");
  }

  // Callers first, then in order of the tracks.
  void write_names() {
    for (std::uint32_t t = 0; t < data_.tracks.size(); ++t) {
      const auto& track = data_.tracks[t];
      if (places_[t].thread == 1) {
        write_name(t, "process_name", track.actor);
        write_order(t, "process_sort_index",
                    track.kind == TrackKind::Submitter ? 0 : places_[t].process);
      }
      write_name(t, "thread_name", track.lane);
      write_order(t, "thread_sort_index", places_[t].thread);
    }
  }

  void write_submissions() {
    std::vector<std::int64_t> next(data_.tracks.size(), INT64_MAX);
    // Backwards, each knows the one after it on its track.
    for (std::size_t i = data_.submissions.size(); i-- > 0;) {
      const auto& submission = data_.submissions[i];
      const std::int64_t room = next[submission.track] - submission.at_ns;
      next[submission.track] = submission.at_ns;
      const TraceData::Span* span = span_of(submission.op);
      begin("X", "submit", submission.track);
      put_ts(submission.at_ns);
      put(R"(,"dur":)");
      put_us(std::clamp<std::int64_t>(room, 0, kSubmissionNs));
      put(R"(,"name":)");
      put_quoted("submit " + submission.name);
      put(R"(,"args":{"op":)");
      put(submission.op);
      put("}}");
      if (!span) continue;
      write_arrow("s", "submit", submission.track, submission.at_ns, submission.op);
      write_arrow("f", "submit", span->track, span->start_ns, submission.op);
    }
  }

  void write_span(std::size_t i) {
    const auto& span = data_.spans[i];
    begin("X", category(span.kind), span.track);
    put_ts(span.start_ns);
    put(R"(,"dur":)");
    put_us(span.end_ns - span.start_ns);
    put(R"(,"name":)");
    put_quoted(span.name);
    put(R"(,"args":{"op":)");
    put(span.op);
    if (span.kind == SpanKind::Copy) {
      put(R"(,"bytes":)");
      put(span.bytes);
    }
    if (span.failed) put(R"(,"failed":true)");
    auto cause =
        std::lower_bound(causes_.begin(), causes_.end(), span.op,
                         [&](std::size_t c, std::uint64_t op) { return data_.causes[c].op < op; });
    if (cause != causes_.end() && data_.causes[*cause].op == span.op) {
      const char* separator = R"(,"after":[)";
      for (; cause != causes_.end() && data_.causes[*cause].op == span.op; ++cause) {
        put(separator);
        put(data_.causes[*cause].producer);
        separator = ",";
      }
      put("]");
    }
    put("}}");
  }

  void write_cause(const TraceData::Cause& cause) {
    const TraceData::Span* producer = span_of(cause.producer);
    const TraceData::Span* op = span_of(cause.op);
    if (!producer || !op) return;
    const char* kind = cause.order_only ? "order" : "data";
    // Just before its end, so that the arrow hangs on the producer and not on what follows it.
    const std::int64_t end = std::max(producer->start_ns, producer->end_ns - 1);
    ++arrows_;
    write_arrow("s", kind, producer->track, end, arrows_);
    write_arrow("f", kind, op->track, op->start_ns, arrows_);
  }

  void write_arrow(const char* phase, const char* category, std::uint32_t track, std::int64_t at,
                   std::uint64_t id) {
    begin(phase, category, track);
    put_ts(at);
    put(R"(,"name":")");
    put(category);
    put(R"(","id":)");
    put(id);
    put(*phase == 'f' ? R"(,"bp":"e"})" : "}");
  }

  const TraceData& data_;
  std::ostream& to_;
  std::string buffer_;
  bool first_ = true;
  std::uint64_t arrows_ = 0;
  std::unordered_map<std::string, Process> processes_;
  std::vector<Place> places_;                                      // by track
  std::vector<std::pair<std::uint64_t, std::size_t>> first_span_;  // op, span; sorted
  std::vector<std::size_t> causes_;                                // by op
  std::unordered_map<std::string, std::string> quoted_;            // few different names
};

}  // namespace

void write_chrome_trace(const TraceData& data, std::ostream& to) {
  Writer(data, to).write();
}

}  // namespace weft
