#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "apps/bench/graph.hpp"

namespace weft::bench {

/// Notes which ops ran, and whether each ran once and behind those it follows.
class OrderCheck {
 public:
  explicit OrderCheck(const OpGraph& graph)
      : graph_(graph), ran_(new std::atomic<std::uint8_t>[graph.ops()]) {
    for (std::uint32_t op = 0; op < graph.ops(); ++op) ran_[op] = 0;
  }
  /// At the begin and at the end of an op. Any thread.
  void begins(std::uint32_t op) {
    graph_.node(op).for_each_predecessor([&](std::uint32_t before) {
      if (!ran_[before].load()) wrong_.fetch_add(1);
    });
  }
  void ends(std::uint32_t op) {
    if (ran_[op].exchange(1)) wrong_.fetch_add(1);
    count_.fetch_add(1);
  }
  /// Every op once, none too early. When all is over.
  [[nodiscard]] bool is_right() const { return wrong_ == 0 && count_ == graph_.ops(); }

 private:
  const OpGraph& graph_;
  std::unique_ptr<std::atomic<std::uint8_t>[]> ran_;
  std::atomic<std::uint32_t> wrong_{0}, count_{0};
};

/// What each op of a measurement does. One per process, as a process measures one thing: so that
/// every system's op carries its number and nothing else.
struct Work {
  std::uint64_t iterations = 0;  ///< multiply-adds, one behind the other; 0: empty ops
  OrderCheck* check = nullptr;
};
inline Work work;

/// `iterations` dependent multiply-adds, no memory traffic; about four cycles each.
inline double multiply_adds(std::uint64_t iterations, double value) {
  for (std::uint64_t i = 0; i < iterations; ++i) {
    value = value * 0.999999 + 1e-6;
#if defined(__x86_64__)
    asm volatile("" : "+x"(value));
#elif defined(__aarch64__)
    asm volatile("" : "+w"(value));
#endif
  }
  return value;
}

/// The body of op `number`, on whatever thread a system runs it.
inline void run_op(std::uint32_t number) {
  if (work.check) work.check->begins(number);
  if (work.iterations) {
    // Carried from op to op, so that short ops do not overlap in the processor's window.
    thread_local double carried = 1.0;
    carried = multiply_adds(work.iterations, carried);
  }
  if (work.check) work.check->ends(number);
}

}  // namespace weft::bench
