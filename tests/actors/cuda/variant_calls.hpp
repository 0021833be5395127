#pragma once

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/cuda/plain_cuda.hpp"
#include "framework/kernel.hpp"

namespace weft::test {

/// A core by itself.
class SerialCpu final : public Cpu {
 public:
  [[nodiscard]] std::size_t team_size() const override { return 1; }

 private:
  void share(std::size_t n, std::size_t, Range range) override { range.run(range.body, 0, n); }
};

/// A tensor with a replica on the host and one on the device, without a runtime: one kernel's
/// variants are called on both and compared.
template <class T>
class TwinTensor {
 public:
  TwinTensor(const Shape& shape, std::vector<T> values)
      : host_(std::move(values)), device_(host_), state_(std::make_unique<TensorState>()) {
    state_->shape = shape;
    state_->element_bytes = sizeof(T);
    for (Replica* replica : {&on_host_, &on_device_}) {
      replica->tensor = state_.get();
      replica->bytes = host_.size() * sizeof(T);
    }
    on_host_.data = host_.data();
    on_device_.data = device_.data();
  }
  explicit TwinTensor(const Shape& shape)
      : TwinTensor(shape, std::vector<T>(static_cast<std::size_t>(shape.size()))) {}
  TwinTensor(const TwinTensor&) = delete;
  TwinTensor& operator=(const TwinTensor&) = delete;

  [[nodiscard]] const Shape& shape() const { return state_->shape; }
  [[nodiscard]] const std::vector<T>& host() const { return host_; }
  [[nodiscard]] std::vector<T> device() const { return device_.values(); }
  [[nodiscard]] TensorState& state() { return *state_; }
  Replica* replica(bool is_on_device) { return is_on_device ? &on_device_ : &on_host_; }

 private:
  std::vector<T> host_;
  DeviceArray<T> device_;
  std::unique_ptr<TensorState> state_;
  Replica on_host_, on_device_;
};

/// An op of `kernel` with its replicas on the device or on the host. Not submitted, nothing waits.
class LooseOp {
 public:
  LooseOp(const KernelCode& code, const std::vector<ArgSlot>& arguments, std::size_t scalar_bytes)
      : op_(make_op(&code, arguments.size(), 0, scalar_bytes)) {
    for (std::size_t i = 0; i < arguments.size(); ++i) op_->args()[i] = arguments[i];
  }
  ~LooseOp() { release(op_); }
  LooseOp(const LooseOp&) = delete;
  LooseOp& operator=(const LooseOp&) = delete;
  Op& operator*() const { return *op_; }

 private:
  Op* op_;
};

namespace detail {

template <class Param, class Given>
void add_argument(std::vector<ArgSlot>& arguments, bool is_on_device, Given& given) {
  if constexpr (weft::detail::is_view<Param>)
    arguments.emplace_back(given.replica(is_on_device), std::remove_cvref_t<Param>::kAccess);
}

template <class Param, class Given>
auto scalar(Given& given) {
  if constexpr (weft::detail::is_view<Param>)
    return std::tuple<>();
  else
    return std::tuple<std::remove_cvref_t<Param>>(given);
}

}  // namespace detail

/// Calls one variant of `kernel`, on the device or on the host, and waits. Arguments as the
/// kernel's: scalars, and `TwinTensor`s for views.
template <class... Params, class... Given>
void call_one(PlainCuda& cuda, bool is_on_device, const Kernel<Params...>& kernel,
              Given&&... given) {
  using Scalars = weft::detail::Scalars<Params...>;
  static_assert(std::is_trivially_destructible_v<Scalars>);
  std::vector<ArgSlot> arguments;
  (detail::add_argument<Params>(arguments, is_on_device, given), ...);
  const LooseOp op(*kernel.code(), arguments, sizeof(Scalars));
  new ((*op).scalars()) Scalars(std::tuple_cat(detail::scalar<Params>(given)...));
  if (is_on_device) {
    kernel.code()->cuda(cuda, *op);
    cuda.synchronise();
  } else {
    SerialCpu cpu;
    kernel.code()->cpu(cpu, *op);
  }
}

/// Calls both variants of `kernel`.
template <class... Params, class... Given>
void call_both(PlainCuda& cuda, const Kernel<Params...>& kernel, Given&&... given) {
  for (const bool is_on_device : {false, true}) call_one(cuda, is_on_device, kernel, given...);
}

}  // namespace weft::test
