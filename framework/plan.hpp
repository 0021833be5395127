#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "framework/future.hpp"
#include "framework/kernel.hpp"
#include "framework/plan_recorder.hpp"
#include "framework/tensor.hpp"

namespace weft {

class PlanState;

/// A recorded sequence of ops, copies and collectives that is replayed as a whole: who waits for
/// whom, on which lane each op runs and which bytes it uses is worked out once. A cheap handle:
/// copies name the same plan. May be dropped while a replay is in flight. Made by
/// `Runtime::record`.
///
/// A replay is what the recorded submissions would be, made again in that order: it reads the
/// tensors as they are now, copies in what is not where the plan wants it, and other submissions,
/// other plans and further replays line up before and behind it tensor by tensor. Tensors and
/// the memory that their replicas take stay with the plan for as long as it lives.
class Plan {
 public:
  Plan() = default;
  explicit Plan(std::shared_ptr<PlanState> state) : state_(std::move(state)) {}

  /// Sends the plan's ops once more and returns at once; waits only at the admission limits, as a
  /// submission does. The future is done when all ops are, and fails with the first failure; the
  /// next replay starts anew. Any thread, one replay of a plan at a time. Throws `UsageError` if a
  /// tensor it reads has no value, and when the runtime has ended.
  Future replay() const;

  /// From the next replay on, `now` stands in for `recorded`, which the recorded ops used. Throws
  /// `UsageError` if the plan does not use it, the shapes differ (record again for another shape),
  /// or two tensors of the plan, one of them written, would become the same.
  template <class T>
  const Plan& bind(const Tensor<T>& recorded, const Tensor<T>& now) const {
    bind_states(recorded.state(), now.state());
    return *this;
  }

  /// From the next replay on, every call of `kernel` gets `value` as its scalar number `kScalar`
  /// (counted among scalars). Throws `UsageError` if the plan does not call it.
  template <std::size_t kScalar, class... Params, class Value>
  const Plan& set_scalar(const Kernel<Params...>& kernel, const Value& value) const {
    return set_scalar_of<kScalar>(kernel, kEveryCall, value);
  }
  /// The same for one call: number `call` of those of `kernel`, in the order of the recording.
  template <std::size_t kScalar, class... Params, class Value>
  const Plan& set_scalar_of(const Kernel<Params...>& kernel, std::size_t call,
                            const Value& value) const {
    using Scalars = detail::Scalars<Params...>;
    static_assert(kScalar < std::tuple_size_v<Scalars>, "the kernel has fewer scalars");
    change_scalars(
        kernel.code().get(), call,
        [](void* scalars, const void* given) {
          std::get<kScalar>(*static_cast<Scalars*>(scalars)) =
              static_cast<std::tuple_element_t<kScalar, Scalars>>(
                  *static_cast<const Value*>(given));
        },
        &value);
    return *this;
  }

  /// Ops and copies of one replay.
  [[nodiscard]] std::size_t size() const;
  explicit operator bool() const { return bool(state_); }

  /// What each actor does in a replay: its ops in order, what they still wait for and how many
  /// waits were found redundant. For people; the same as Graphviz; the same as JSON.
  [[nodiscard]] std::string explain() const;
  [[nodiscard]] std::string dot() const;
  [[nodiscard]] std::string json() const;

 private:
  void bind_states(TensorState* recorded, TensorState* now) const;
  static constexpr std::size_t kEveryCall = ~std::size_t{0};
  void change_scalars(const KernelCode* kernel, std::size_t call,
                      void (*change)(void* scalars, const void* given), const void* given) const;

  std::shared_ptr<PlanState> state_;
};

/// Runs `body` once, as it is, and records what this thread submits to `fabric` meanwhile. Throws
/// what `body` throws (what it submitted goes on, nothing is recorded), and `UsageError` for what
/// cannot be replayed: copies from or to the program's memory, `after` of a future that is no op of
/// the recording, an op that failed at once, a recording within a recording.
template <class Body>
Plan record_plan(Fabric& fabric, Body&& body) {
  PlanRecorder recorder(fabric);
  std::forward<Body>(body)();
  return Plan(recorder.finish());
}

}  // namespace weft
