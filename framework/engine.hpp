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
  /// order only) failed, or if `op.failure` is set already. Else outputs are allocated. Errors
  /// settle the op as failed.
  virtual void issue(Op& op, std::uint32_t lane) = 0;
  /// Ops issued on `lane` and not settled.
  [[nodiscard]] virtual std::size_t queued(std::uint32_t lane) const = 0;
  /// Number of lane 0 among the lanes of its domain: `Op::lane` counts from there.
  [[nodiscard]] virtual std::uint32_t first_lane() const { return 0; }
  /// How many of the lanes an op should choose from that would fill the device by itself.
  [[nodiscard]] virtual std::uint32_t lanes_for(const Op& /*op*/) const { return lanes(); }
  /// The first of the lanes that such ops never choose and that the device serves before the
  /// others; `lanes()` if there are none.
  [[nodiscard]] virtual std::uint32_t first_small_lane() const { return lanes(); }
  /// Whether the op takes less time than a wait for another lane is worth.
  [[nodiscard]] virtual bool is_short(const Op& /*op*/) const { return false; }
  /// Of several ops that are ready, whether the one that was submitted first is to be issued first,
  /// so that a program says by its order what is urgent; else the one that became ready first.
  [[nodiscard]] virtual bool takes_by_submission() const { return false; }
  /// Whether nothing was issued behind `op` on its lane.
  [[nodiscard]] virtual bool is_tail(const Op& /*op*/) const { return true; }
  /// Loses the device on purpose: what is issued from now on fails. False: it cannot be.
  virtual bool lose() { return false; }
  /// Why nothing runs on the device any more, for `op`, counted for the caller; null if it does.
  [[nodiscard]] virtual Failure* loss(const Op& /*op*/) const { return nullptr; }
  /// False: as much is issued as the device can take ahead; more when something has settled.
  [[nodiscard]] virtual bool has_room() const { return true; }

  /// Settles what is done, where somebody must look for that; what becomes ready goes to `sink`.
  /// Returns whether there was anything. `quiet`: the actor has nothing to issue.
  virtual bool progress(ReadySink& /*sink*/, bool /*quiet*/) { return false; }
  /// Whether `progress` must be called again before its actor may park.
  [[nodiscard]] virtual bool needs_progress() const { return false; }
};

}  // namespace weft
