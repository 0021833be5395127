#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "framework/cpu.hpp"
#include "framework/cuda.hpp"
#include "framework/kernel_code.hpp"
#include "framework/memory_pool.hpp"
#include "framework/tensor_state.hpp"
#include "framework/view.hpp"

namespace weft {

namespace detail {

template <class Param>
inline constexpr bool is_view = IsView<std::remove_cvref_t<Param>>::value;

// The scalars of a parameter list as one tuple, in order.
template <class... Params>
using Scalars = decltype(std::tuple_cat(
    std::declval<std::conditional_t<is_view<Params>, std::tuple<>,
                                    std::tuple<std::remove_cvref_t<Params>>>>()...));

// How many of the first `index` parameters are views, or are not.
template <bool kViews, class... Params>
constexpr std::size_t count_before(std::size_t index) {
  constexpr bool kIs[] = {is_view<Params>..., false};
  std::size_t count = 0;
  for (std::size_t i = 0; i < index; ++i) count += kIs[i] == kViews;
  return count;
}

// A parameter through which a variant may change what the op holds.
template <class Param>
inline constexpr bool changes_scalar = !is_view<Param> && std::is_lvalue_reference_v<Param> &&
                                       !std::is_const_v<std::remove_reference_t<Param>>;

// Numbers are compared by their bits, so that one which is not a number is the same as itself.
template <class T>
inline constexpr bool has_plain_bits = (std::is_arithmetic_v<T> &&
                                        !std::is_same_v<T, long double>) ||
                                       std::has_unique_object_representations_v<T>;
template <class T>
inline constexpr bool can_compare = has_plain_bits<T> || std::is_same_v<T, std::string>;

template <class T>
bool are_same(const T& a, const T& b) {
  if constexpr (has_plain_bits<T>)
    return std::memcmp(&a, &b, sizeof a) == 0;
  else
    return a == b;
}
template <class Tuple, std::size_t... kIndex>
bool are_same([[maybe_unused]] const void* a, [[maybe_unused]] const void* b,
              std::index_sequence<kIndex...>) {
  return (are_same(std::get<kIndex>(*static_cast<const Tuple*>(a)),
                   std::get<kIndex>(*static_cast<const Tuple*>(b))) &&
          ...);
}

inline void clear(Cpu&, void* data, std::size_t bytes) {
  if (bytes) std::memset(data, 0, bytes);
}
inline void clear(Cuda& cuda, void* data, std::size_t bytes) {
  cuda.clear(data, bytes);
}

template <class Param, std::size_t kView, std::size_t kScalar, class Context, class Tuple>
decltype(auto) argument(Context& context, Op& op, Tuple& scalars) {
  if constexpr (is_view<Param>) {
    using V = std::remove_cvref_t<Param>;
    const Replica& replica = *op.args()[kView].replica();
    if constexpr (V::kAccess == Access::Reduce) clear(context, replica.data, replica.bytes);
    return V(static_cast<typename V::Element*>(replica.data), replica.tensor->shape);
  } else {
    (void)context;
    return (std::get<kScalar>(scalars));
  }
}

template <class... Params, class Function, class Context, std::size_t... kIndex>
void call(const Function& function, Context& context, Op& op, std::index_sequence<kIndex...>) {
  auto& scalars = *static_cast<Scalars<Params...>*>(op.scalars());
  function(context, argument<Params, count_before<true, Params...>(kIndex),
                             count_before<false, Params...>(kIndex)>(context, op, scalars)...);
}

struct NoContext {};
inline void clear(NoContext&, void*, std::size_t) {}

template <class... Params, class Function, std::size_t... kIndex>
Cost cost_of(const Function& function, Op& op, std::index_sequence<kIndex...>) {
  auto& scalars = *static_cast<Scalars<Params...>*>(op.scalars());
  NoContext none;
  return function(argument<Params, count_before<true, Params...>(kIndex),
                           count_before<false, Params...>(kIndex)>(none, op, scalars)...);
}

template <class T>
struct Signature;
template <class Result, class Class, class Context, class... Params>
struct Signature<Result (Class::*)(Context, Params...) const> {
  using Device = Context;
  using Parameters = std::tuple<Params...>;
};
template <class Result, class Context, class... Params>
struct Signature<Result (*)(Context, Params...)> {
  using Device = Context;
  using Parameters = std::tuple<Params...>;
};
template <class Function, class = void>
struct FunctionSignature : Signature<std::decay_t<Function>> {};
template <class Function>
struct FunctionSignature<Function, std::void_t<decltype(&std::decay_t<Function>::operator())>>
    : Signature<decltype(&std::decay_t<Function>::operator())> {};

}  // namespace detail

/// A named computation with one variant per kind of device. A value: copies share the same kernel.
///
/// The first variant fixes the parameters: views (`In`, `Out`, `InOut`, `Reduce`) for tensors, any
/// other type for scalars, which are copied into the op.
///
///     const auto axpy = weft::Kernel("axpy").cpu(
///         [](weft::Cpu& cpu, float a, weft::In<float> x, weft::InOut<float> y) {
///           cpu.parallel_for(y.size(), [&](std::size_t i) { y[i] += a * x[i]; });
///         });
///
/// A variant may be called by several threads at once for different ops. What it throws fails its
/// op.
template <class... Params>
class Kernel {
 public:
  template <class P>
  static constexpr bool kIsTensor = detail::is_view<P>;
  static_assert(((detail::is_view<Params> || alignof(std::remove_cvref_t<Params>) <= 8) && ...),
                "scalar arguments of a kernel are aligned to at most 8 bytes");

  explicit Kernel(std::string name) : code_(std::make_shared<KernelCode>()), shared_(code_) {
    code_->name = std::move(name);
  }
  explicit Kernel(std::shared_ptr<KernelCode> code) : code_(std::move(code)), shared_(code_) {}

  /// The variant for sockets and emulated GPUs: `void(Cpu&, Params...)`.
  template <class Function>
  auto cpu(Function function) const {
    return variant(std::move(function), &KernelCode::cpu);
  }
  /// The variant for CUDA devices: `void(Cuda&, Params...)`; enqueues on the given stream and
  /// returns.
  template <class Function>
  auto cuda(Function function) const {
    return variant(std::move(function), &KernelCode::cuda);
  }
  /// What a call costs: `Cost(Params...)`; views have sizes, no data that may be read.
  template <class Function>
  auto cost(Function function) const {
    static_assert(sizeof...(Params) > 0, "give a variant first: it fixes the parameters");
    code_->cost = [function = std::move(function)](Op& op) {
      return detail::cost_of<Params...>(function, op, std::index_sequence_for<Params...>());
    };
    return *this;
  }

  /// Counts versions: what was learnt of run times is forgotten when the number changes.
  auto version(std::uint32_t number) const {
    code_->version = number;
    return *this;
  }

  /// Its flops are those of matrix products: devices that are faster at them in the runtime's
  /// precision count them so.
  auto products() const {
    code_->is_product = true;
    return *this;
  }

  /// Its variants do something on the host at each launch (count calls, draw numbers): its ops are
  /// never part of a CUDA graph, which would not do that again.
  auto at_each_launch() const {
    code_->is_never_bundled = true;
    return *this;
  }

  [[nodiscard]] const std::string& name() const { return code_->name; }
  [[nodiscard]] const std::shared_ptr<const KernelCode>& code() const { return shared_; }

 private:
  template <class Function, class Member>
  auto variant(Function function, Member member) const {
    using Given = typename detail::FunctionSignature<Function>::Parameters;
    if constexpr (sizeof...(Params) == 0) {
      return typed(std::type_identity<Given>{}, std::move(function), member);
    } else {
      static_assert(std::is_same_v<Given, std::tuple<Params...>>,
                    "all variants of a kernel take the same parameters after the context");
      return typed(std::type_identity<Given>{}, std::move(function), member);
    }
  }

  template <class... Given, class Function, class Member>
  Kernel<Given...> typed(std::type_identity<std::tuple<Given...>>, Function function,
                         Member member) const {
    (*code_).*member = [function = std::move(function)](auto& context, Op& op) {
      detail::call<Given...>(function, context, op, std::index_sequence_for<Given...>());
    };
    if constexpr ((detail::changes_scalar<Given> || ...)) code_->changes_scalars = true;
    using Tuple = detail::Scalars<Given...>;
    // A tuple itself is never trivially copyable.
    constexpr bool kArePlain =
        ((kIsTensor<Given> || std::is_trivially_copyable_v<std::remove_cvref_t<Given>>)&&...);
    if constexpr (!std::is_trivially_destructible_v<Tuple>)
      code_->destroy_scalars = [](Op& op) { std::destroy_at(static_cast<Tuple*>(op.scalars())); };
    if constexpr (!kArePlain)
      code_->move_scalars = [](void* from, void* to) {
        new (to) Tuple(std::move(*static_cast<Tuple*>(from)));
        std::destroy_at(static_cast<Tuple*>(from));
      };
    if constexpr (!kArePlain && std::is_copy_constructible_v<Tuple>)
      code_->copy_scalars = [](const void* from, void* to) {
        new (to) Tuple(*static_cast<const Tuple*>(from));
      };
    if constexpr (((kIsTensor<Given> || detail::can_compare<std::remove_cvref_t<Given>>)&&...))
      code_->same_scalars = [](const void* a, const void* b) {
        return detail::are_same<Tuple>(a, b, std::make_index_sequence<std::tuple_size_v<Tuple>>());
      };
    return Kernel<Given...>(code_);
  }

  std::shared_ptr<KernelCode> code_;
  std::shared_ptr<const KernelCode> shared_;  // the same, as submissions take it
};
Kernel(const char*)->Kernel<>;
Kernel(std::string)->Kernel<>;

}  // namespace weft
