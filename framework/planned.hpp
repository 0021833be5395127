#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/future.hpp"
#include "framework/tensor.hpp"

namespace weft {

class PlanState;

/// The plans of one repeated step, by what its calls are told apart by: shapes and types of the
/// tensors it is called with, which of them are the same, its other arguments, and the devices that
/// were lost by then.
class PlanCache {
 public:
  /// Keeps so many plans, those used last.
  explicit PlanCache(Fabric& fabric, std::size_t most = 16);
  ~PlanCache();
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  /// One call with these tensors. `values`: the bytes of the other arguments. Replays a plan that
  /// fits, or records one: that runs `body(context)`.
  Future call(const std::vector<TensorState*>& tensors, const std::vector<std::byte>& values,
              void (*body)(void* context), void* context);
  [[nodiscard]] std::size_t recordings() const;
  /// `Plan::explain` of the plan that was used last.
  [[nodiscard]] std::string explain() const;

 private:
  using Key = std::vector<std::uint64_t>;
  // An argument is *free* once the body was recorded with another tensor in its place and made the
  // same ops otherwise: before, a tensor that is given may be one that the body captures.
  struct Entry {
    Key key;
    std::shared_ptr<PlanState> plan;
    std::vector<TensorHandle> recorded_with;
    std::vector<std::optional<std::uint32_t>> numbers;  ///< of the arguments among plan's tensors
    std::vector<bool> is_free;

    [[nodiscard]] bool takes(const std::vector<TensorState*>& tensors) const;
  };
  using Entries = std::list<Entry>;

  [[nodiscard]] Key key_of(const std::vector<TensorState*>& tensors,
                           const std::vector<std::byte>& values) const;
  // With the lock.
  Entries::iterator find(const Key& key);
  Future record(Key key, const std::vector<TensorState*>& tensors, void (*body)(void* context),
                void* context);
  void keep(Entry made);

  Fabric& fabric_;  // counted
  const std::size_t most_;
  mutable std::mutex mutex_;  // not held while ops are submitted
  std::list<Entry> entries_;  // the one used last first
  std::size_t recordings_ = 0;
};

/// A step of a program that plans itself: a function of tensors (and numbers), called again and
/// again. The first call with tensors of some shapes runs the body as it is and records it, and so
/// does the first with other tensors: if it makes the same ops, all further calls replay them with
/// the tensors given. Another shape or another number, the same tensor given twice, a device that
/// was lost since: recorded anew. Made by `Runtime::planned`; copies share their plans.
///
/// The body takes `Tensor<T>` and numbers, by value, and returns nothing: what it makes is in the
/// tensors it is given and in those it captures, which stay the same from call to call. What it
/// does besides submitting happens only when it is recorded, and a captured number that changes is
/// not seen: give it as an argument. A body that changes a tensor which it makes with a value of
/// its own (`from_host`) is run each time. A plan keeps the tensors of its first and its newest
/// call. Any thread.
template <class Body>
class Planned {
 public:
  Planned(Fabric& fabric, Body body) : shared_(std::make_shared<Shared>(fabric, std::move(body))) {}

  /// Returns at once, as a submission does; the future is done when all ops are. Throws what the
  /// body throws, `UsageError` for an empty tensor, one of another runtime, and what cannot be
  /// replayed: see `record_plan`. In a recording of the caller's its ops become part of that.
  template <class... Given>
  Future operator()(const Given&... given) const {
    static_assert(std::is_void_v<std::invoke_result_t<Body&, const Given&...>>,
                  "the body of a planned step returns nothing: give it the tensors to write");
    std::vector<TensorState*> tensors;
    std::vector<std::byte> values;
    (add(given, tensors, values), ...);
    auto call = [&] { shared_->body(given...); };
    return shared_->plans.call(
        tensors, values, [](void* context) { (*static_cast<decltype(call)*>(context))(); }, &call);
  }

  /// How often the body was run.
  [[nodiscard]] std::size_t recordings() const { return shared_->plans.recordings(); }
  /// What the newest call's plan does; see `Plan::explain`.
  [[nodiscard]] std::string explain() const { return shared_->plans.explain(); }

 private:
  struct Shared {
    Shared(Fabric& fabric, Body given) : body(std::move(given)), plans(fabric) {}
    Body body;
    PlanCache plans;
  };

  // Each argument leaves its kind among the values: tensors none else.
  template <class T>
  static void add(const Tensor<T>& tensor, std::vector<TensorState*>& tensors,
                  std::vector<std::byte>& values) {
    values.push_back(std::byte{0});
    tensors.push_back(tensor.state());
  }
  template <class Number>
  static void add(const Number& number, std::vector<TensorState*>&,
                  std::vector<std::byte>& values) {
    static_assert(std::is_arithmetic_v<Number> || std::is_enum_v<Number>,
                  "a planned step takes tensors and numbers; capture anything else");
    static_assert(!std::is_same_v<Number, long double>, "its unused bytes may be anything");
    values.push_back(std::byte{sizeof number | std::is_floating_point_v<Number> << 6 |
                               std::is_signed_v<Number> << 5});
    const std::size_t at = values.size();
    values.resize(at + sizeof number);
    std::memcpy(values.data() + at, &number, sizeof number);
  }

  std::shared_ptr<Shared> shared_;
};

}  // namespace weft
