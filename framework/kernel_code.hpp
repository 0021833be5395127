#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace weft {

class Cpu;
class Cuda;
struct Op;

/// What one call of a kernel costs, for models and placement.
struct Cost {
  double flops = 0;  ///< floating-point operations
  double bytes = 0;  ///< bytes read and written in the device's memory
};

/// A kernel without its types: how to run an op of it on each kind of device.
///
/// Shared by all its ops; kept alive by every runtime that ran it, so ops hold a plain pointer.
struct KernelCode {
  std::string name;
  std::uint32_t version = 0;             ///< run times of another are not comparable
  std::function<void(Cpu&, Op&)> cpu;    ///< empty: no variant for sockets and emulated GPUs
  std::function<void(Cuda&, Op&)> cuda;  ///< empty: no variant for CUDA devices
  std::function<Cost(Op&)> cost;         ///< empty: unknown
  /// For ops that run inline in the thread that settles their last producer; must be short.
  void (*inline_run)(Op&) = nullptr;
  /// For ops with an owner that fail before they reach it: gives back what submission counted in.
  void (*abandon)(Op&) = nullptr;
  /// Ends the life of the op's scalar arguments; null if they need no destructor.
  void (*destroy_scalars)(Op&) = nullptr;
  /// Makes a copy of scalar arguments for one more call; null: their bytes will do.
  void (*copy_scalars)(const void* from, void* to) = nullptr;
  /// Whether two calls have the same scalar arguments; null: that cannot be told.
  bool (*same_scalars)(const void* a, const void* b) = nullptr;
  /// Moves the scalar arguments to a call made later and ends their life here; null: their bytes
  /// will do.
  void (*move_scalars)(void* from, void* to) = nullptr;
  /// Its flops are those of matrix products, which devices do in the runtime's precision.
  bool is_product = false;
  /// Nobody waits for its ops: they give something back. No reason to look whether an op is done.
  bool is_lazy = false;
  /// Its ops stand for others: they fail as those do, without a name of their own.
  bool is_stand_in = false;
  /// Its variants do something on the host at each launch that a graph would not do again.
  bool is_never_bundled = false;
  /// A variant takes a scalar by reference: each op must have a copy that none has run with.
  bool changes_scalars = false;
  /// A copy between two memories, run by a link's engine.
  bool is_copy = false;
  /// A collective, run by its collective's actor.
  bool is_collective = false;
  /// Smoothed run time on a socket's core in ns; 0 until measured. Decides what is worth spreading.
  mutable std::atomic<std::uint32_t> typical_ns{0};
  /// Number of the runtime that keeps it alive; 0 for none yet.
  mutable std::atomic<std::uint32_t> adopted_by{0};
};

}  // namespace weft
