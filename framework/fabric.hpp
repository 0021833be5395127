#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "framework/admission.hpp"
#include "framework/op.hpp"

namespace weft {

class Gate;
class Mailbox;
class MemoryPool;
class Placer;
class StandingRun;
class Tracer;
struct KernelCode;

/// On which devices a plan's short ops go out together; see `Bundle`.
enum class Bundles : std::uint8_t { None, Cuda, AllGpus };

enum class DeviceKind : std::uint8_t { Socket, Gpu };

/// What a link direction publishes about itself: read by every submission that chooses a source.
struct LinkLoad {
  std::atomic<std::int64_t> queued_bytes{0};
  std::atomic<std::int64_t> total_bytes{0};  ///< of all copies it was given so far
  std::atomic<double> bytes_per_second{0};   ///< assumed at first, then as measured

  /// A copy of so many bytes is given to the direction.
  void queue(std::size_t bytes) {
    queued_bytes.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
    total_bytes.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  }
};

/// A stretch of a route without a memory in between: one copy op, sent to the actor of its link.
struct Segment {
  Mailbox* owner = nullptr;        ///< the link's actor, in this direction
  Domain domain = Domain::Host;    ///< how its engine waits
  std::uint32_t from = 0, to = 0;  ///< memories
  LinkLoad* load = nullptr;        ///< of the slowest link
  std::chrono::nanoseconds latency{0};
  std::vector<std::uint32_t> hops;  ///< link index * 2 + (0 forward, 1 backward), in order
};

/// The way between two memories; more than one segment where data must rest in between.
struct Path {
  std::vector<Segment> segments;  ///< empty: no way, or the same memory
  /// Large copies over one segment are cut into pieces of so many bytes, which other links may help
  /// with; 0: they are not.
  std::size_t piece_bytes = 0;
};

/// A device as a submission sees it.
struct Place {
  std::string name;  ///< `socket0`, `gpu1`
  DeviceKind kind = DeviceKind::Socket;
  std::uint32_t number = 0;  ///< among its kind
  std::uint32_t index = 0;   ///< among all devices
  Domain domain = Domain::Host;
  std::uint32_t memory = 0;  ///< where its kernels find their data
  std::unique_ptr<Admission> admission;
  std::vector<Mailbox*> lanes;  ///< sockets: one a core; GPUs: the actor's
  std::atomic<std::uint32_t> next_lane{0};
  std::atomic<bool> is_lost{false};  ///< nothing is placed there any more
};

/// Everything that submission reads: devices, memories, ways. Built once by the runtime; the lists
/// do not change afterwards.
struct Fabric {
  std::atomic<std::uint32_t> references{1};  ///< the runtime's, and one per tensor
  std::atomic<bool> closed{false};           ///< the runtime has ended: nothing may be submitted
  std::vector<std::unique_ptr<Place>> places;
  std::vector<std::unique_ptr<MemoryPool>> memories;
  /// Marks replicas whose bytes are the program's own; hands out and frees nothing.
  std::unique_ptr<MemoryPool> program_memory;
  /// The memory, on a disk, that host memories evict to; no device works in it.
  std::optional<std::uint32_t> spill;
  std::vector<Path> paths;  ///< from memory * memories.size() + to memory
  std::vector<std::unique_ptr<LinkLoad>> loads;
  std::vector<std::unique_ptr<Admission>> link_admissions;  ///< of links and collectives
  const Mailbox* collectives = nullptr;                     ///< of the actor that runs collectives
  std::uint32_t runtime_number = 0;                         ///< unique in the process, never 0
  Tracer* tracer = nullptr;                                 ///< null: tracing is off
  /// Who places ops; null until the program asks for that: nobody wants to know run times.
  std::atomic<Placer*> placer{nullptr};
  Gate* gate = nullptr;  ///< where submissions wait for memory; null: in their callers
  /// Who has set bytes aside that are no replica's yet: see `InHand`.
  Admission in_hand{0};
  std::atomic<std::uint64_t> next_op{1};

  Bundles bundles = Bundles::Cuda;
  bool serial = false;  ///< `WEFT_SERIAL=1`: every op waits for the one before
  std::mutex serial_mutex;
  Op* last_serial = nullptr;  // counted

  mutable std::mutex standing_mutex;
  std::vector<StandingRun*> standing_runs;  ///< of all plans; for diagnosis

  std::mutex adopted_mutex;
  std::vector<std::shared_ptr<const KernelCode>> adopted;

  [[nodiscard]] const Path& path(std::uint32_t from, std::uint32_t to) const {
    return paths[from * memories.size() + to];
  }
  /// Ops and copies submitted and not settled, and who is about to submit one.
  [[nodiscard]] std::int64_t in_flight() const;
  /// Ops and copies settled so far.
  [[nodiscard]] std::int64_t settled() const;
};

/// Drops a reference; the last deletes the fabric.
void release(Fabric* fabric);

/// True on threads that must not wait: actors' own. A submission there skips the admission limits.
bool& thread_must_not_wait();

}  // namespace weft
