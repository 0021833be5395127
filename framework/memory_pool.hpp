#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/resident_set.hpp"
#include "framework/spin.hpp"

namespace weft {

/// Is told when bytes of a memory are given back. Any thread; must be short.
class MemoryWatch {
 public:
  virtual void given_back() = 0;

 protected:
  ~MemoryWatch() = default;
};

/// The bytes of one memory: a budget that submissions reserve from in program order, and a pool of
/// blocks that the engine allocates for real when an op is launched.
///
/// What is reserved never exceeds the budget unless a submitter that may not wait says so, hence an
/// allocation at launch fits. Freed blocks are kept for reuse by size and returned under pressure.
class MemoryPool {
 public:
  struct Backing {
    std::function<void*(std::size_t bytes)> allocate;  ///< null pointer: out of memory
    std::function<void(void* data, std::size_t bytes)> free;
    bool poison = false;  ///< overwrite blocks when handed out and when freed; host-visible only
  };

  MemoryPool(std::string name, std::size_t budget_bytes, Backing backing);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// Sets `bytes` aside for a replica to come. False if the budget does not allow it. Any thread.
  bool try_reserve(std::size_t bytes);
  /// The same without asking the budget: for submitters that must not wait.
  void force_reserve(std::size_t bytes);
  /// Gives back what was set aside; `was_leaving`: `begin_leaving` has announced it.
  void unreserve(std::size_t bytes, bool was_leaving = false);
  /// The same without telling anybody.
  void cancel(std::size_t bytes);
  /// `bytes` will be given back without anybody's help: as soon as ops under way have settled.
  void begin_leaving(std::size_t bytes);
  /// Bytes announced and not given back yet.
  [[nodiscard]] std::size_t leaving() const { return leaving_.load(std::memory_order_seq_cst); }
  /// From now on tells `watch` (null: nobody) whenever bytes are given back. Borrowed. False if it
  /// was told before.
  bool set_watch(MemoryWatch* watch) {
    return watch_.exchange(watch, std::memory_order_seq_cst) != watch;
  }
  /// What is evicted from here goes to `below`, which messages name too. Borrowed; before any use.
  void set_below(const MemoryPool& below) { below_ = &below; }
  /// Null unless it was set.
  [[nodiscard]] const MemoryPool* below() const { return below_; }
  /// The valid replicas that it holds.
  [[nodiscard]] ResidentSet& residents() { return residents_; }

  /// Real memory for a reserved replica, 64-byte aligned; null for 0 bytes or if the engine has
  /// none left. Any thread.
  void* allocate(std::size_t bytes);
  /// Back into the pool. Any thread.
  void free(void* data, std::size_t bytes);
  /// Whether the engine had none left when it was asked last.
  [[nodiscard]] bool has_run_out() const { return has_run_out_.load(std::memory_order_relaxed); }
  /// Returns pooled blocks to the engine.
  void trim();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t budget() const { return budget_; }
  [[nodiscard]] std::size_t reserved() const { return reserved_.load(std::memory_order_acquire); }
  /// Bytes that could be set aside now.
  [[nodiscard]] std::size_t room() const {
    const std::size_t used = reserved();
    return used < budget_ ? budget_ - used : 0;
  }
  /// Blocks handed out and not freed.
  [[nodiscard]] std::int64_t live_blocks() const { return live_.load(std::memory_order_acquire); }
  [[nodiscard]] std::size_t peak_reserved() const { return peak_.load(std::memory_order_relaxed); }

  /// Sizes are rounded up so that blocks fit many requests: 64 B steps, then 1/8 of a power of two.
  static std::size_t round_up(std::size_t bytes);
  /// Fills with a pattern that is a quiet NaN in every float format, large blocks in samples.
  static void poison(void* data, std::size_t bytes);

 private:
  void note_peak(std::size_t now);

  const std::string name_;
  const std::size_t budget_;
  const Backing backing_;
  const MemoryPool* below_ = nullptr;
  std::atomic<std::size_t> reserved_{0};
  std::atomic<std::size_t> leaving_{0};
  std::atomic<std::size_t> peak_{0};
  std::atomic<std::int64_t> live_{0};
  std::atomic<bool> has_run_out_{false};
  std::atomic<MemoryWatch*> watch_{nullptr};
  ResidentSet residents_;
  SpinLock lock_;
  std::map<std::size_t, std::vector<void*>> spare_;  // by rounded size
  std::size_t spare_bytes_ = 0;
};

/// Memory of the host: pages from the allocator, huge pages advised from 4 MiB on.
MemoryPool::Backing host_backing(bool poison);

}  // namespace weft
