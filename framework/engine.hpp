#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/op.hpp"

namespace weft {

/// What makes an asynchronous device or a link real: in-order lanes that take ops ahead of
/// execution.
///
/// The actor that owns the engine calls it from its own thread only. The engine settles each op,
/// from any thread, in lane order.
class Engine {
 public:
  virtual ~Engine() = default;

  [[nodiscard]] virtual Domain domain() const = 0;
  /// Number of lanes, fixed.
  [[nodiscard]] virtual std::uint32_t lanes() const = 0;
  /// Puts `op` behind what `lane` holds; returns at once. Every op in `op.waits()` has been issued;
  /// the lane waits for all of them by itself and then fails the op if one of them (not marked as
  /// order only) failed. Outputs are allocated. Errors settle the op as failed.
  virtual void issue(Op& op, std::uint32_t lane) = 0;
  /// Ops issued on `lane` and not settled.
  [[nodiscard]] virtual std::size_t queued(std::uint32_t lane) const = 0;
};

}  // namespace weft
