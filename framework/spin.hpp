#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft {

/// Tells the core that this is a spin loop.
inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins a little, then gives the core away between looks: for waits that are short or rare.
class Backoff {
 public:
  void pause() {
    if (++rounds_ < 64)
      relax();
    else
      std::this_thread::yield();
  }
  [[nodiscard]] unsigned rounds() const { return rounds_; }

 private:
  unsigned rounds_ = 0;
};

/// Waits until `done()`, which is asked again and again: backs off, then sleeps between looks. For
/// waits of the program's threads that may be long.
template <class Done>
void wait_and_sleep(const Done& done) {
  Backoff backoff;
  while (!done()) {
    backoff.pause();
    if (backoff.rounds() > 2000) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

/// A lock of one byte for critical sections of some ten instructions. Works with std::lock_guard.
class SpinLock {
 public:
  void lock() {
    Backoff backoff;
    while (locked_.exchange(true, std::memory_order_acquire))
      while (locked_.load(std::memory_order_relaxed)) backoff.pause();
  }
  bool try_lock() { return !locked_.exchange(true, std::memory_order_acquire); }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

}  // namespace weft
