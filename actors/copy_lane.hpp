#pragma once

#include <cstdint>

#include "framework/op.hpp"

namespace weft {

/// The in-order lane of one direction of a link, as its actor drives it. Except where said, called
/// by the link actor's thread only.
class CopyLane {
 public:
  virtual ~CopyLane() = default;

  /// Puts a copy at the end; returns at once. The lane waits for its producers by itself and
  /// settles it. The target has its bytes.
  virtual void push(Op& op) = 0;
  /// The same for a copy from another GPU to the host, over memory `via` of the GPU at this lane's
  /// end. All hops are in the copy's segment. Its producers are done.
  virtual void relay(Op& op, std::uint32_t via) = 0;
  /// Makes ready for it if need be; false: it cannot.
  [[nodiscard]] virtual bool can_relay(std::uint32_t /*via*/) { return true; }
  /// Why a copy cannot be made at all, counted for the caller: a device at its ends is lost. Else
  /// null.
  [[nodiscard]] virtual Failure* loss(const Op& /*op*/) const { return nullptr; }
  /// Counts a copy's bytes in, in front of its `push`.
  virtual void add_busy_bytes(std::int64_t bytes) = 0;
  /// Bytes of copies counted in and not finished.
  [[nodiscard]] virtual std::int64_t busy_bytes() const = 0;
  /// False: the lane has enough ahead of it.
  [[nodiscard]] virtual bool has_room() const = 0;
  /// Whether one of them is no relay.
  [[nodiscard]] virtual bool has_own_copies() const = 0;

  /// Settles what is done, where somebody must look for that; what becomes ready goes to `sink`.
  /// Returns whether there was anything. `quiet`: the actor has nothing else to do.
  virtual bool progress(ReadySink& /*sink*/, bool /*quiet*/) { return false; }
  /// Whether `progress` must be called again before its actor may park.
  [[nodiscard]] virtual bool needs_progress() const { return false; }
};

}  // namespace weft
