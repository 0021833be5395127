#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace weft {

/// A clock that moves from event to event, in nanoseconds since it was made. What is scheduled for
/// the same instant happens in the order in which it was scheduled, so two runs are alike.
///
/// One thread; `now` may be asked by any.
class VirtualTime {
 public:
  using Ns = std::int64_t;
  static constexpr Ns kNever = std::numeric_limits<Ns>::max();

  /// Something that will happen. Not scheduled any more when it is destroyed.
  class Event {
   public:
    Event() = default;
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    [[nodiscard]] bool is_scheduled() const { return slot_ != kNone; }

   protected:
    ~Event() = default;

   private:
    friend class VirtualTime;
    virtual void happens() = 0;

    static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
    Ns at_ = 0;
    std::uint64_t order_ = 0;
    std::size_t slot_ = kNone;
  };

  [[nodiscard]] Ns now() const { return now_.load(std::memory_order_relaxed); }
  /// When the next event happens; `kNever` if none will.
  [[nodiscard]] Ns next() const { return heap_.empty() ? kNever : heap_.front()->at_; }

  /// `event` happens at `at`, not before now, instead of any time set before.
  void schedule(Event& event, Ns at);
  void cancel(Event& event);

  /// Moves on to the next event and lets it happen. False: there is none.
  bool step();
  /// Moves on to `at` if nothing happens before it.
  void pass_until(Ns at);

 private:
  static bool is_before(const Event& a, const Event& b) {
    return a.at_ != b.at_ ? a.at_ < b.at_ : a.order_ < b.order_;
  }
  void put(std::size_t slot, Event* event) {
    heap_[slot] = event;
    event->slot_ = slot;
  }
  void rise(std::size_t slot, Event* event);
  void sink(std::size_t slot, Event* event);
  void take_out(Event& event);

  std::atomic<Ns> now_{0};
  std::uint64_t next_order_ = 0;
  std::vector<Event*> heap_;  // binary, the earliest first
};

}  // namespace weft
