#include "framework/failure.hpp"

#include <algorithm>

namespace weft {

const char* to_string(FailureKind kind) {
  switch (kind) {
    case FailureKind::KernelThrew:
      return "kernel threw";
    case FailureKind::OutOfMemory:
      return "out of memory";
    case FailureKind::DeviceLost:
      return "device lost";
    case FailureKind::DeviceError:
      return "device error";
    case FailureKind::NoRoute:
      return "no route";
    case FailureKind::Injected:
      return "injected fault";
    case FailureKind::Cancelled:
      return "cancelled";
  }
  return "failure";
}

Failure* Failure::make(FailureKind kind, std::string op, std::string device, std::string message) {
  auto* failure = new Failure;
  failure->kind_ = kind;
  failure->op_ = std::move(op);
  failure->device_ = std::move(device);
  failure->message_ = std::move(message);
  return failure;
}

Failure* Failure::dependent(Failure* cause, std::string op) {
  auto* failure = new Failure;
  failure->op_ = std::move(op);
  failure->cause_ = cause;
  failure->root_ = cause->root_ ? cause->root_ : cause;
  failure->cause_->acquire();
  failure->root_->acquire();
  return failure;
}

void Failure::release() const {
  // Chains can be as long as a program: unlink them in a loop, not by recursion.
  const Failure* failure = this;
  while (failure && failure->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    const Failure* cause = failure->cause_;
    const Failure* root = failure->root_;
    delete failure;
    // The root has no cause and no root: this call never nests deeper than once.
    if (root) root->release();
    failure = cause;
  }
}

std::vector<std::string> Failure::chain() const {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> last;
  std::size_t length = 0;
  for (const Failure* failure = this; failure; failure = failure->cause_, ++length)
    if (length < kShown) last.push_back(failure->op_);
  std::reverse(last.begin(), last.end());
  if (length > kShown) {
    last.insert(last.begin(), "… " + std::to_string(length - kShown - 1) + " more");
    last.insert(last.begin(), root().op_);
  }
  return last;
}

std::string Failure::describe() const {
  const Failure& cause = root();
  std::string text = cause.op_ + " on " + cause.device_ + ": " + to_string(cause.kind_);
  if (!cause.message_.empty()) text += ": " + cause.message_;
  if (root_) {
    text += " (reached ";
    bool first = true;
    for (const auto& name : chain()) {
      if (!first) text += " → ";
      text += name;
      first = false;
    }
    text += ")";
  }
  return text;
}

}  // namespace weft
