#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "framework/kernel_code.hpp"
#include "framework/submit.hpp"

namespace weft {

/// A call as an op that is not submitted: what costs are asked of. It holds the scalars until the
/// call's own op takes them.
class TrialOp {
 public:
  explicit TrialOp(const Call& call) : TrialOp(**call.code, call.arguments, call.scalar_bytes) {
    has_scalars_ = true;
    if (call.write_scalars) call.write_scalars(op_->scalars(), call.context);
  }
  /// The scalars stay the caller's, who has them at `scalars`: bytes to look at, no more.
  TrialOp(const KernelCode& code, std::span<const Argument> arguments, const void* scalars,
          std::size_t scalar_bytes)
      : TrialOp(code, arguments, scalar_bytes) {
    if (scalar_bytes > 0) std::memcpy(op_->scalars(), scalars, scalar_bytes);
  }
  ~TrialOp() {
    if (has_scalars_ && op_->code->destroy_scalars) op_->code->destroy_scalars(*op_);
    release(op_);
  }
  TrialOp(const TrialOp&) = delete;
  TrialOp& operator=(const TrialOp&) = delete;

  Op& op() { return *op_; }

  /// Makes `call` take its scalars from here.
  void give_scalars(Call& call) {
    if (bytes_ == 0) return;
    call.context = this;
    call.write_scalars = [](void* where, void* context) {
      auto& from = *static_cast<TrialOp*>(context);
      from.has_scalars_ = false;
      if (from.op_->code->move_scalars)
        from.op_->code->move_scalars(from.op_->scalars(), where);
      else
        std::memcpy(where, from.op_->scalars(), from.bytes_);
    };
  }

 private:
  TrialOp(const KernelCode& code, std::span<const Argument> arguments, std::size_t scalar_bytes)
      : op_(make_op(&code, arguments.size(), 0, scalar_bytes)), bytes_(scalar_bytes) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      Replica* replica = nullptr;
      if (i < kFew) {
        replica = &few_[i];
      } else {
        more_.push_back(std::make_unique<Replica>());
        replica = more_.back().get();
      }
      replica->tensor = arguments[i].tensor;
      replica->bytes = arguments[i].tensor->bytes();
      op_->args()[i] = ArgSlot(replica, arguments[i].access);
    }
  }

  static constexpr std::size_t kFew = 8;
  Op* op_;
  const std::size_t bytes_;
  bool has_scalars_ = false;
  std::array<Replica, kFew> few_;  // by themselves empty
  std::vector<std::unique_ptr<Replica>> more_;
};

}  // namespace weft
