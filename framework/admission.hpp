#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace weft {

/// How many ops a device or link has taken in and not settled yet. Submitters stop at `limit`, so a
/// loop of a million submissions runs in constant memory. Counting costs one uncontended atomic.
class Admission {
 public:
  explicit Admission(std::int64_t limit) : limit_(limit) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  /// Counts ops in. Any thread.
  void take_in(std::int64_t ops = 1) { submitted_.fetch_add(ops, std::memory_order_relaxed); }

  /// Counts an op out. Any thread.
  void let_out() { stripes_[stripe()].count.fetch_add(1, std::memory_order_release); }

  /// Room for one more and `spare` others? Looks at the other threads' counters only when the last
  /// look is used up.
  bool has_room(std::int64_t spare = 0) {
    const std::int64_t submitted = submitted_.load(std::memory_order_relaxed) + spare;
    if (submitted - seen_settled_.load(std::memory_order_relaxed) < limit_) return true;
    const std::int64_t settled = count_settled();
    seen_settled_.store(settled, std::memory_order_relaxed);
    return submitted - settled < limit_;
  }

  /// Ops taken in and not settled.
  [[nodiscard]] std::int64_t in_flight() const {
    const std::int64_t settled = count_settled();  // first: never negative
    return submitted() - settled;
  }
  [[nodiscard]] std::int64_t submitted() const {
    return submitted_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::int64_t settled() const { return count_settled(); }
  [[nodiscard]] std::int64_t limit() const { return limit_; }

 private:
  struct alignas(64) Stripe {
    std::atomic<std::int64_t> count{0};
  };
  static constexpr std::size_t kStripes = 16;

  static std::size_t stripe() {
    static std::atomic<std::size_t> next{0};
    thread_local const std::size_t mine = next.fetch_add(1) % kStripes;
    return mine;
  }
  [[nodiscard]] std::int64_t count_settled() const {
    std::int64_t sum = 0;
    for (const auto& s : stripes_) sum += s.count.load(std::memory_order_acquire);
    return sum;
  }

  const std::int64_t limit_;
  alignas(64) std::atomic<std::int64_t> submitted_{0};
  alignas(64) std::atomic<std::int64_t> seen_settled_{0};
  std::array<Stripe, kStripes> stripes_;
};

}  // namespace weft
