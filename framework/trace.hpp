#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/program_time.hpp"
#include "framework/tick_clock.hpp"
#include "framework/virtual_time.hpp"

namespace weft {

struct Fabric;
struct KernelCode;
struct Op;
class DependencySet;

enum class TrackKind : std::uint8_t { Socket, Gpu, Link, Collective, Submitter };
enum class SpanKind : std::uint8_t { Kernel, Copy, Collective };

/// What was recorded, as plain data: tracks, spans on them, and who caused what. Times in
/// nanoseconds since the start of the recording.
struct TraceData {
  struct Track {
    std::string actor;  ///< `gpu0`, `link1`
    std::string lane;   ///< `compute 0`, `to gpu0`, `core 3`
    TrackKind kind = TrackKind::Socket;
  };
  struct Span {
    std::uint64_t op = 0;
    std::uint32_t track = 0;
    SpanKind kind = SpanKind::Kernel;
    bool failed = false;
    std::string name;
    std::int64_t start_ns = 0, end_ns = 0;
    std::uint64_t bytes = 0;  ///< moved by a copy
  };
  struct Submission {
    std::uint64_t op = 0;
    std::uint32_t track = 0;  ///< of the submitting thread
    std::int64_t at_ns = 0;
    std::string name;
  };
  /// `op` waited for `producer`. A collective has no span; what waited for it waited for its parts,
  /// and what it waited for its first parts did.
  struct Cause {
    std::uint64_t op = 0, producer = 0;
    bool order_only = false;
  };
  /// What a kernel's op had to do; of a runtime that records costs.
  struct OpCost {
    std::uint64_t op = 0;
    double flops = 0, bytes = 0;
    bool is_fp64 = false;     ///< by its largest argument
    bool is_product = false;  ///< done in the runtime's precision, unless in fp64
  };
  std::vector<Track> tracks;
  std::vector<Span> spans;
  std::vector<OpCost> costs;  ///< an op that several lanes shared has several, all the same
  std::vector<Submission> submissions;
  std::vector<Cause> causes;
  std::uint64_t dropped = 0;  ///< records beyond the limit
};

/// Records what happens, a buffer per thread. Recording is some stores and a reading of the
/// processor's own clock; nothing is converted or formatted before `collect`.
class Tracer {
 public:
  /// Keeps at most `limit` records per thread.
  explicit Tracer(std::size_t limit = 4'000'000);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// Adds a track; before anything runs on it. Any thread.
  std::uint32_t add_track(std::string actor, std::string lane, TrackKind kind);

  /// Whether anything is noted; true at first. Recording what GPUs do costs them some microseconds
  /// an op. Changed while nothing is in flight.
  void set_recording(bool is_recording) {
    is_recording_.store(is_recording, std::memory_order_relaxed);
  }
  /// Every op must be shown to it when it is submitted: it records, or time goes on with each.
  [[nodiscard]] bool wants_ops() const { return is_recording() || program_; }
  [[nodiscard]] bool is_recording() const { return is_recording_.load(std::memory_order_relaxed); }

  /// From now on what each kernel's op costs is recorded too, which takes its thread some time
  /// behind the op. Before anything runs.
  void record_costs() { records_costs_.store(true, std::memory_order_relaxed); }

  /// Takes times of virtual clocks, which outlive it, and tells `program` what is submitted,
  /// whether it is recorded or not. Before anything is.
  void set_clock(const VirtualTime& clock, ProgramTime& program) {
    clock_ = &clock;
    program_ = &program;
  }

  /// Nanoseconds since the recording began.
  [[nodiscard]] std::int64_t now() const {
    if (program_) return program_->now();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                                start_)
        .count();
  }
  /// A point of the steady clock on the recording's axis.
  [[nodiscard]] std::int64_t at(std::chrono::steady_clock::time_point time) const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time - start_).count();
  }

  /// Gives `op` its id and notes who submitted it and what it waits for. In the submitting thread.
  void submitted(Fabric& fabric, Op& op, const DependencySet& needs);
  /// Notes that `op` ran on `track`, or a part of it if several lanes share it. In the thread that
  /// ran it, before the op settles.
  void ran(std::uint32_t track, const Op& op, std::int64_t start_ns, std::int64_t end_ns,
           bool failed = false);
  /// The same with readings of `ticks()`, for short ops.
  void ran_ticks(std::uint32_t track, const Op& op, std::uint64_t start, std::uint64_t end,
                 bool failed = false);

  /// Notes that `whole`, which has no span of its own, is done when all its parts are. In the
  /// thread that makes the parts.
  void made_part(const Op& whole, const Op& part);

  /// All records so far, spans by start time. While nothing is in flight.
  [[nodiscard]] TraceData collect() const;
  /// Forgets all records but keeps their memory; the clock goes on. While nothing is in flight.
  void clear();

 private:
  struct Record;
  struct Buffer;
  struct Part;
  Buffer& buffer();
  void add_span(const Record& record, const Op& op);
  static void resolve_parts(const std::vector<Part>& parts, std::vector<TraceData::Cause>& causes);

  const std::size_t limit_;
  std::atomic<bool> is_recording_{true}, records_costs_{false};
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const std::uint64_t start_ticks_ = ticks();
  const VirtualTime* clock_ = nullptr;  // null: the steady clock and the processor's
  ProgramTime* program_ = nullptr;
  const std::uint64_t number_;
  mutable std::mutex mutex_;
  std::vector<TraceData::Track> tracks_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

}  // namespace weft
