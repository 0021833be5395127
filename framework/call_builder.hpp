#pragma once

#include <optional>

#include "framework/admit.hpp"
#include "framework/residency.hpp"
#include "framework/small_vector.hpp"
#include "framework/submit.hpp"

namespace weft {

/// Bytes that a call sets aside in several memories: all or nothing, given back unless committed.
class Reservation {
 public:
  explicit Reservation(Fabric& fabric, Budget budget = Budget::Waiting)
      : fabric_(fabric), budget_(budget) {}
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  /// False if the memory has no room now; `short_of` and `missing` say which and how much.
  bool add(std::uint32_t memory, std::size_t bytes);
  /// Room for what `send_copies` makes along the way, the last memory included if `with_end`.
  bool add_way(const TensorState& tensor, const Source& source, bool with_end);
  /// The bytes belong to replicas now.
  void commit() { parts_.clear(); }
  [[nodiscard]] MemoryPool* short_of() const { return short_of_; }
  /// The bytes there must be room for: those and what was set aside in that memory before them.
  [[nodiscard]] std::size_t missing() const { return missing_; }

 private:
  struct Part {
    std::uint32_t memory;
    std::size_t bytes;
  };
  Fabric& fabric_;
  const Budget budget_;
  std::optional<InHand> in_hand_;  // not of the gate's own: it is the one who must know
  SmallVector<Part, 8> parts_;
  MemoryPool* short_of_ = nullptr;
  std::size_t missing_ = 0;
};

/// One submission under its tensors' locks: first `prepare`, then `build`.
class CallBuilder {
 public:
  CallBuilder(Fabric& fabric, const Call& call, std::span<const Argument> arguments)
      : fabric_(fabric), call_(call), arguments_(arguments) {}

  /// Finds a source for every replica that is missing and sets memory aside. Changes no tensor but
  /// for taking out what failed copies left. False: not enough memory now, or (nothing is short)
  /// the value of an argument was dropped for what waits at the gate. Throws as `submit` does.
  bool prepare(Reservation& reservation);

  /// Makes the op and sends it; the caller owns one reference. With `doomed` (taken over) the op is
  /// not run but fails at once, and what it would have written fails with it.
  Op* build(Failure* doomed);

 private:
  [[nodiscard]] std::uint32_t memory_of(std::size_t i) const {
    return call_.memories.empty() ? call_.place->memory : call_.memories[i];
  }
  Replica* replica_for(std::size_t i);

  Fabric& fabric_;
  const Call& call_;
  std::span<const Argument> arguments_;
  SmallVector<Source, 12> sources_;
};

}  // namespace weft
