#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// Why an op failed.
enum class FailureKind : std::uint8_t {
  KernelThrew,  ///< a variant threw an exception
  OutOfMemory,  ///< a memory cannot hold a replica the op needs
  DeviceLost,   ///< the device that should run it is gone
  DeviceError,  ///< the device or its driver reported an error
  NoRoute,      ///< no way leads to the memory an argument is wanted in
  Injected,     ///< a fault that a test asked for
  Cancelled,    ///< the promise it waits for was dropped or refused
};

/// `kernel threw`, `out of memory` …
const char* to_string(FailureKind kind);

/// The reason of a failed future: the root cause and the chain of ops it went through. Immutable,
/// shared between all futures that fail for the same reason.
class Failure {
 public:
  /// A root cause: `op` on `device` failed with `message`.
  static Failure* make(FailureKind kind, std::string op, std::string device, std::string message);

  /// `op` fails because what it needs failed with `cause`. Takes a reference to `cause`.
  static Failure* dependent(Failure* cause, std::string op);

  void acquire() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() const;

  [[nodiscard]] FailureKind kind() const { return root().kind_; }
  /// Name of the op that failed first.
  [[nodiscard]] const std::string& root_op() const { return root().op_; }
  /// Name of the op this failure belongs to.
  [[nodiscard]] const std::string& op() const { return op_; }
  [[nodiscard]] const std::string& root_message() const { return root().message_; }
  /// Op names from the root cause to this op; the middle of a long chain is left out.
  [[nodiscard]] std::vector<std::string> chain() const;
  /// One line for a person: root cause, device and chain.
  [[nodiscard]] std::string describe() const;

 private:
  Failure() = default;
  ~Failure() = default;
  [[nodiscard]] const Failure& root() const { return root_ ? *root_ : *this; }

  mutable std::atomic<std::uint32_t> references_{1};
  FailureKind kind_ = FailureKind::KernelThrew;
  std::string op_, device_, message_;
  Failure* root_ = nullptr;   // null: this is the root; else counted by us
  Failure* cause_ = nullptr;  // one step nearer to the root; counted by us
};

/// Owns one reference to a `Failure`, or none.
class FailureRef {
 public:
  FailureRef() = default;
  /// Takes over the caller's reference.
  explicit FailureRef(Failure* failure) : failure_(failure) {}
  FailureRef(const FailureRef& other) : failure_(other.failure_) {
    if (failure_) failure_->acquire();
  }
  FailureRef(FailureRef&& other) noexcept : failure_(std::exchange(other.failure_, nullptr)) {}
  FailureRef& operator=(FailureRef other) noexcept {
    std::swap(failure_, other.failure_);
    return *this;
  }
  ~FailureRef() {
    if (failure_) failure_->release();
  }

  explicit operator bool() const { return failure_ != nullptr; }
  const Failure& operator*() const { return *failure_; }
  const Failure* operator->() const { return failure_; }
  [[nodiscard]] Failure* get() const { return failure_; }
  [[nodiscard]] Failure* detach() { return std::exchange(failure_, nullptr); }

 private:
  Failure* failure_ = nullptr;
};

/// Thrown where a failed future is waited for. `what()` is `Failure::describe()`.
class OpError : public std::runtime_error {
 public:
  explicit OpError(FailureRef failure)
      : std::runtime_error(failure->describe()), failure_(std::move(failure)) {}
  [[nodiscard]] const Failure& failure() const { return *failure_; }

 private:
  FailureRef failure_;
};

/// Thrown by a submission that breaks the interface's rules: a wrong shape, a tensor that was never
/// written, a kernel without a variant for the device. Nothing was submitted.
class UsageError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Thrown at set-up: a device, machine or option that does not exist or cannot be used.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace weft
