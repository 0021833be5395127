#pragma once

#include <functional>
#include <memory>

namespace weft {

/// Threads that may block in the system: reads and writes of files.
class IoThreads {
 public:
  explicit IoThreads(unsigned count);
  /// Lets what was posted end.
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  /// Runs `work`, which must not throw, on one of them; returns at once. Any thread.
  void post(std::function<void()> work);
  /// Waits until all that was posted has ended; nothing may be posted afterwards. Idempotent.
  void join();

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace weft
