#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "framework/fabric.hpp"
#include "framework/tensor_state.hpp"

namespace weft {

class PlacementPolicy;

/// Whether what is set aside must fit into a memory's budget.
enum class Budget : std::uint8_t {
  Strict,   ///< it must
  Gate,     ///< it must, and nobody is told of what is given back: the gate tries
  Waiting,  ///< it must where the thread may wait for room; actors' own threads may not
  Ignored,  ///< it need not
};

/// One tensor argument of a submission, in the order of the kernel's tensor arguments.
struct Argument {
  TensorState* tensor = nullptr;
  Access access = Access::In;
  /// `reduce`: adds `count` elements of `from` to `into`.
  void (*sum)(void* into, const void* from, std::size_t count) = nullptr;
};

/// A call of a kernel, before anything is decided.
struct Call {
  Place* place = nullptr;
  PlacementPolicy* policy = nullptr;  ///< not null: chooses the place
  const std::shared_ptr<const KernelCode>* code = nullptr;
  std::span<const Argument> arguments;
  /// Memory of each argument; empty: the place's memory for all.
  std::span<const std::uint32_t> memories;
  /// Further ops to wait for, failures included.
  std::span<Op* const> after;
  Priority priority = Priority::Normal;
  std::size_t scalar_bytes = 0;
  /// Constructs the scalar arguments in the op; `context` is the caller's.
  void (*write_scalars)(void* where, void* context) = nullptr;
  void* context = nullptr;
  Mailbox* owner = nullptr;      ///< not null: this actor runs it, not a lane of the place
  std::optional<Domain> domain;  ///< how the owner waits; default: as the place does
};

/// Works out in the caller what the op must wait for and which replica is missing where, sends the
/// copies to their links and the op to its device. Returns the op; the caller owns one reference.
///
/// Any thread. Takes the tensors' locks in address order, so concurrent submissions are serialised.
/// Waits only at the admission limits of the device and of its memory, and never on an actor's
/// thread. Throws `UsageError` for a call that breaks the rules and `DeviceError` where no way
/// leads to a replica; nothing is submitted then. An op whose arguments can never fit returns a
/// failed future.
Op* submit(Fabric& fabric, const Call& call);

/// Throws `UsageError` for a call that breaks the rules; `on_place`: also if its place cannot run
/// it.
void check_call(const Fabric& fabric, const Call& call, bool on_place);

/// The bytes of the call's arguments in one memory if those that have no memory of their own are in
/// memory `at`, what is there already included.
struct CallBytes {
  std::size_t asked = 0;  ///< of the tensors
  std::size_t taken = 0;  ///< as pools hand them out
};
CallBytes bytes_in(const Fabric& fabric, const MemoryPool& pool, const Call& call,
                   std::uint32_t at);

/// Where and by how much memory is short.
struct Shortage {
  MemoryPool* pool = nullptr;
  std::size_t missing = 0;  ///< bytes that must be set aside there
};

/// What a call's run time on a device goes with.
struct OpForecast {
  double amount = 0;   ///< flops, or bytes without any
  double assumed = 0;  ///< seconds by published figures
};
/// Asks the runtime's placer. Throws `UsageError` if there is none: see `Runtime::anywhere`.
OpForecast forecast(Fabric& fabric, const Call& call);

/// One try of `submit`: null if memory is short, and `shortage` says where. Waits for nothing.
Op* try_submit(Fabric& fabric, const Call& call, Budget budget, Shortage& shortage);
/// The call's op, which fails at once with `failure` (taken over).
Op* fail_call(Fabric& fabric, const Call& call, Failure* failure);

/// The same for `submit_transfer`.
Op* try_transfer(Fabric& fabric, TensorState* source, TensorState* target, std::uint32_t memory,
                 Place& place, Budget budget, Shortage& shortage);
Op* fail_transfer(Fabric& fabric, TensorState* source, TensorState* target, Place& place,
                  Failure* failure);

/// Copies the value of `source` into `target` (same bytes) in memory `memory`, over the links if
/// need be. Returns the copy; the caller owns one reference. As `submit` otherwise.
Op* submit_transfer(Fabric& fabric, TensorState* source, TensorState* target, std::uint32_t memory,
                    Place& place);

/// What a copy op carries as its scalars.
struct CopyRange {
  std::size_t offset = 0, bytes = 0;  ///< in the source replica
  const Segment* segment = nullptr;
  std::size_t to_offset = 0;  ///< in the target replica
};

/// Bytes that a copy over a link moves; 0 for any other op.
std::size_t copied_bytes(const Op& op);

/// The kernel of copies over links.
const std::shared_ptr<const KernelCode>& copy_code();

/// Sets `data` of every replica the op writes that has none yet. Called by the actor that launches
/// it. Null, or the failure if the engine has no memory left.
Failure* allocate_outputs(Op& op, const Place& place);

/// Keeps `code` alive as long as the fabric.
void adopt(Fabric& fabric, const std::shared_ptr<const KernelCode>& code);

}  // namespace weft
