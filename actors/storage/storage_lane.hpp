#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "actors/copy_lane.hpp"
#include "actors/emulated/options.hpp"
#include "actors/storage/io_threads.hpp"
#include "actors/storage/spill_file.hpp"
#include "framework/fabric.hpp"

namespace weft {

class Tracer;

/// One direction of the link to a disk: copies between a host memory and a spill file, in pieces of
/// which several are read or written at once. Copies begin and settle in order; one begins as soon
/// as the one before has no piece left to begin.
///
/// What the system refuses fails the copy with the directory, the call and the reason.
class StorageLane final : public CopyLane {
 public:
  struct Setup {
    std::string name;                        ///< `link3 to disk0`
    std::string device;                      ///< `link3`
    std::uint32_t disk = 0;                  ///< the memory that stands for the file
    std::shared_ptr<SpillFile> file;         ///< its replicas' data are tokens of this
    IoThreads* threads = nullptr;            ///< borrowed
    const EmulatedOptions* hooks = nullptr;  ///< borrowed: faults and delays for tests
    Tracer* tracer = nullptr;
    std::uint32_t track = 0;
    LinkLoad* load = nullptr;         ///< what to publish to
    std::function<void()> on_copied;  ///< bytes are off the lane
  };
  explicit StorageLane(Setup setup) : setup_(std::move(setup)) {}

  /// The copy's producers are done: it is an op of the host's domain.
  void push(Op& op) override;
  /// There is no way over a disk.
  void relay(Op& op, std::uint32_t /*via*/) override { push(op); }
  [[nodiscard]] bool can_relay(std::uint32_t /*via*/) override { return false; }
  void add_busy_bytes(std::int64_t bytes) override {
    busy_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t busy_bytes() const override {
    return busy_bytes_.load(std::memory_order_seq_cst);
  }
  [[nodiscard]] bool has_room() const override { return busy_bytes() < kByteBudget; }
  [[nodiscard]] bool has_own_copies() const override { return busy_bytes() > 0; }

  /// How many pieces of one direction are under way at most.
  static constexpr unsigned kPieces = 3;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Transfer {
    Op* op = nullptr;
    std::size_t bytes = 0, next = 0;  // from `next` on nothing has begun
    unsigned under_way = 0;           // pieces
    bool has_begun = false;
    bool is_refused = false;  // it had failed before it came here
    Failure* failure = nullptr;
    Time begun{};
  };
  struct Piece {
    Transfer* transfer = nullptr;
    std::size_t offset = 0, bytes = 0;
    bool is_first = false;
  };

  void work();
  std::optional<Piece> take_piece();
  Failure* move(const Piece& piece);
  Failure* consult_hooks(const Op& op, Time begun);
  void settle_in_order(std::unique_lock<std::mutex>& lock);
  void end(const Transfer& transfer);
  void note_rate(std::size_t bytes, double seconds);

  static constexpr std::int64_t kByteBudget = 64 << 20;
  const Setup setup_;
  std::atomic<std::int64_t> busy_bytes_{0};
  std::mutex mutex_;
  std::deque<Transfer> transfers_;  // the oldest first; elements stay where they are
  unsigned workers_ = 0;
  bool is_settling_ = false;  // one thread settles, so that the order is kept
  // Its:
  Time last_end_{};
  double gathered_bytes_ = 0, gathered_seconds_ = 0;
};

}  // namespace weft
