#pragma once

#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "framework/kernel.hpp"
#include "framework/submit.hpp"
#include "framework/tensor.hpp"

namespace weft {

namespace detail {

template <class T>
struct IsTensorArgument : std::false_type {};
template <class T, Access kMode>
struct IsTensorArgument<TensorArgument<T, kMode>> : std::true_type {};

template <class Param, class Given>
constexpr void check_argument() {
  using G = std::remove_cvref_t<Given>;
  using P = std::remove_cvref_t<Param>;
  if constexpr (is_view<P>) {
    static_assert(IsTensorArgument<G>::value,
                  "this parameter is a tensor: pass in(t), out(t), inout(t) or reduce(t)");
    static_assert(G::kAccess == P::kAccess,
                  "the access at the call differs from the kernel's: In<T> takes in(t), Out<T> "
                  "out(t), InOut<T> inout(t), Reduce<T> reduce(t)");
    static_assert(std::is_same_v<typename G::Element, typename P::Element>,
                  "the tensor's element type differs from the kernel's");
  } else {
    static_assert(!IsTensorArgument<G>::value, "this parameter is a scalar, not a tensor");
    static_assert(std::is_convertible_v<Given, P>, "the scalar does not convert to the parameter");
  }
}

template <class T>
void add_elements(void* into, const void* from, std::size_t count) {
  auto* to = static_cast<T*>(into);
  const auto* add = static_cast<const T*>(from);
  for (std::size_t i = 0; i < count; ++i) to[i] += add[i];
}

template <class Given>
Argument to_argument(const Given& given) {
  if constexpr (Given::kAccess == Access::Reduce)
    return {given.tensor, Given::kAccess, add_elements<typename Given::Element>};
  else
    return {given.tensor, Given::kAccess, nullptr};
}

// A tuple of those of `given` that are tensor arguments (or are not).
template <bool kTensors, class Given>
auto pick(Given&& given) {
  if constexpr (IsTensorArgument<std::remove_cvref_t<Given>>::value == kTensors)
    return std::tuple<Given&&>(std::forward<Given>(given));
  else
    return std::tuple<>();
}

}  // namespace detail

/// A handle to one device of a runtime, or to whichever suits an op best (`Runtime::anywhere`):
/// where ops are submitted. Cheap to copy; any thread.
class Device {
 public:
  Device(Fabric& fabric, Place& place) : fabric_(&fabric), place_(&place) {}
  /// Anywhere: `policy` chooses the device of each op; `place` is where the program's data are.
  Device(Fabric& fabric, Place& place, PlacementPolicy& policy)
      : fabric_(&fabric), place_(&place), policy_(&policy) {}

  /// `socket0`, `gpu1`; of anywhere, as all that follows, the first socket's.
  [[nodiscard]] const std::string& name() const { return place_->name; }
  [[nodiscard]] bool is_anywhere() const { return policy_ != nullptr; }
  [[nodiscard]] DeviceKind kind() const { return place_->kind; }
  [[nodiscard]] Fabric& fabric() const { return *fabric_; }
  [[nodiscard]] Place& place() const { return *place_; }

  /// The same device for ops that go before others which could begin there too (or after them): on
  /// a lane, among those that have not been started or issued, and in the window of submissions. It
  /// changes no order that data ask for.
  [[nodiscard]] Device with(Priority priority) const {
    Device made = *this;
    made.priority_ = priority;
    return made;
  }

  /// Sends one op to this device. Arguments as the kernel's parameters: scalars, and `in(t)`,
  /// `out(t)`, `inout(t)`, `reduce(t)` for views; `after(future)` may follow. Returns the op's
  /// future at once; waits only at the admission limits. Throws `UsageError` for a call that cannot
  /// be right.
  template <class... Params, class... Given>
  Future submit(const Kernel<Params...>& kernel, Given&&... given) const {
    return Future(make_call([this](const Call& call) { return weft::submit(*fabric_, call); },
                            kernel, std::forward<Given>(given)...));
  }

  /// What an op's run time here would go with; nothing is submitted. Throws `UsageError` before
  /// `Runtime::anywhere` or `Runtime::split` were asked for.
  template <class... Params, class... Given>
  [[nodiscard]] OpForecast forecast(const Kernel<Params...>& kernel, const Given&... given) const {
    return make_call([this](const Call& call) { return weft::forecast(*fabric_, call); }, kernel,
                     given...);
  }

  /// Runs a function once as an op: `run("name", [=](Cpu&, In<float> x) {…}, in(x))`. The function
  /// is copied into the op. Its first parameter says where it can run: `Cpu&` on sockets and
  /// emulated GPUs, `Cuda&` on CUDA devices.
  template <class Function, class... Given>
  Future run(const char* name, Function function, Given&&... given) const {
    using Signature = detail::FunctionSignature<Function>;
    return run_typed<typename Signature::Device>(
        std::type_identity<typename Signature::Parameters>{}, name, std::move(function),
        std::forward<Given>(given)...);
  }

  /// An uninitialised tensor: it must be written before it is read. Its bytes come with the first
  /// write.
  template <class T>
  [[nodiscard]] Tensor<T> tensor(const Shape& shape) const {
    return Tensor<T>(
        TensorHandle(make_tensor_state(*fabric_, shape, sizeof(T), element_type_of<T>())));
  }

  /// A tensor in this device's memory, filled by a copy from the program's own memory, which must
  /// live and stay as it is until `tensor.future()` has settled (`Runtime::from_host` copies at
  /// once instead). Waits at memory limits only. Throws `UsageError` if the count is not the
  /// shape's.
  template <class T>
  [[nodiscard]] Tensor<T> copy_from(std::span<const T> values, const Shape& shape) const {
    return Tensor<T>(copy_from_program(*fabric_, *place_, std::as_bytes(values), shape, sizeof(T),
                                       element_type_of<T>()));
  }
  template <class T>
  [[nodiscard]] Tensor<T> copy_from(const std::vector<T>& values, const Shape& shape) const {
    return copy_from(std::span<const T>(values), shape);
  }
  template <class T>
  Tensor<T> copy_from(std::vector<T>&&, const Shape&) const = delete;  // it would be gone at once

  /// `a · b` for a of [m, k] and b of [k, n]. Throws `UsageError` for shapes that do not fit.
  [[nodiscard]] Tensor<float> matmul(const Tensor<float>& a, const Tensor<float>& b) const;
  [[nodiscard]] Tensor<double> matmul(const Tensor<double>& a, const Tensor<double>& b) const;

 private:
  // Returns what `use` makes of the call.
  template <class Use, class... Params, class... Given>
  auto make_call(const Use& use, const Kernel<Params...>& kernel, Given&&... given) const {
    if constexpr (sizeof...(Given) == sizeof...(Params)) {
      return fill_call<Params...>(use, kernel.code(), {}, std::forward<Given>(given)...);
    } else {
      static_assert(sizeof...(Given) > sizeof...(Params), "too few arguments for this kernel");
      std::tuple<Given&&...> all(std::forward<Given>(given)...);
      return with_after<Params...>(std::make_index_sequence<sizeof...(Given) - sizeof...(Params)>(),
                                   std::make_index_sequence<sizeof...(Params)>(), use, kernel, all);
    }
  }

  template <class... Params, std::size_t... kExtra, std::size_t... kFirst, class Use,
            class... Given>
  auto with_after(std::index_sequence<kExtra...>, std::index_sequence<kFirst...>, const Use& use,
                  const Kernel<Params...>& kernel, std::tuple<Given...>& given) const {
    static_assert(
        (std::is_same_v<std::remove_cvref_t<
                            std::tuple_element_t<sizeof...(kFirst) + kExtra, std::tuple<Given...>>>,
                        After> &&
         ...),
        "what follows the kernel's arguments must be after(future)");
    std::array<Op*, sizeof...(kExtra)> producers{
        std::get<sizeof...(kFirst) + kExtra>(given).future.op()...};
    return fill_call<Params...>(use, kernel.code(), producers,
                                std::forward<std::tuple_element_t<kFirst, std::tuple<Given...>>>(
                                    std::get<kFirst>(given))...);
  }

  template <class Context, class... Params, class Function, class... Given>
  Future run_typed(std::type_identity<std::tuple<Params...>>, const char* name, Function function,
                   Given&&... given) const {
    constexpr bool kIsCuda = std::is_same_v<Context, Cuda&>;
    static_assert(kIsCuda || std::is_same_v<Context, Cpu&>,
                  "the first parameter of a function that is run is weft::Cpu& or weft::Cuda&");
    // One code per place in the source: the function's own state travels as a scalar of the op.
    const auto call = [](Context context, Function& f, Params... params) {
      f(context, std::forward<Params>(params)...);
    };
    static const auto kernel = [&] {
      if constexpr (kIsCuda)
        return Kernel(name).cuda(call).at_each_launch();
      else
        return Kernel(name).cpu(call).at_each_launch();
    }();
    return submit(kernel, std::move(function), std::forward<Given>(given)...);
  }

  template <class... Params, class Use, class... Given>
  auto fill_call(const Use& use, const std::shared_ptr<const KernelCode>& code,
                 std::span<Op* const> after, Given&&... given) const {
    (detail::check_argument<Params, Given>(), ...);
    using Scalars = detail::Scalars<Params...>;
    auto scalars = std::tuple_cat(detail::pick<false>(std::forward<Given>(given))...);
    const auto tensors = std::tuple_cat(detail::pick<true>(std::forward<Given>(given))...);
    const auto arguments = std::apply(
        [](const auto&... argument) {
          return std::array<Argument, sizeof...(argument)>{detail::to_argument(argument)...};
        },
        tensors);
    Call call;
    call.place = place_;
    call.policy = policy_;
    call.priority = priority_;
    call.code = &code;
    call.arguments = arguments;
    call.after = after;
    if constexpr (std::tuple_size_v < Scalars >> 0) {
      call.scalar_bytes = sizeof(Scalars);
      call.context = &scalars;
      call.write_scalars = [](void* where, void* context) {
        auto& from = *static_cast<decltype(scalars)*>(context);
        std::apply(
            [&](auto&... value) { new (where) Scalars(std::forward<decltype(value)>(value)...); },
            from);
      };
    }
    return use(call);
  }

  Fabric* fabric_;
  Place* place_;
  PlacementPolicy* policy_ = nullptr;  // of the runtime
  Priority priority_ = Priority::Normal;
};

}  // namespace weft
