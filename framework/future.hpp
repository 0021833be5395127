#pragma once

#include <chrono>
#include <coroutine>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/failure.hpp"
#include "framework/op.hpp"

namespace weft {

/// The name of one settling: an op's, a copy's, a promise's. Cheap to copy, any thread. An empty
/// future is done.
class Future {
 public:
  Future() = default;
  /// Takes over one reference to `op`.
  explicit Future(Op* op) : op_(op) {}
  Future(const Future& other) : op_(other.op_) {
    if (op_) acquire(op_);
  }
  Future(Future&& other) noexcept : op_(std::exchange(other.op_, nullptr)) {}
  Future& operator=(Future other) noexcept {
    std::swap(op_, other.op_);
    return *this;
  }
  ~Future() {
    if (op_) release(op_);
  }

  /// Blocks until done. Spins for some ten microseconds, then sleeps. Throws `OpError` if the op
  /// failed, `UsageError` on an actor's thread, where waiting would stop a device: use `then` or
  /// `co_await`.
  void wait() const;
  /// Blocks until settled or until `timeout` has passed; true if settled. Does not throw `OpError`.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds timeout) const;

  /// Has its place on a lane, or is settled.
  [[nodiscard]] bool is_issued() const { return !op_ || op_->is_settled() || op_->is_issued(); }
  /// Done or failed. In virtual time, asking takes a microsecond, so a loop that asks goes on.
  [[nodiscard]] bool is_settled() const {
    return !op_ || op_->is_settled() || is_settled_after_a_look();
  }
  [[nodiscard]] bool has_failed() const { return op_ && op_->is_settled() && op_->has_failed(); }
  /// Why it failed; empty if it has not.
  [[nodiscard]] FailureRef failure() const;

  /// Calls `callback` once, when settled: at once if it is, else in the thread that settles it.
  /// Must be short and must not throw or wait; may submit.
  void on_settled(std::function<void()> callback) const;

  /// `co_await future`: goes on in the thread that settles it. Throws `OpError` if the op failed.
  auto operator co_await() const;

  [[nodiscard]] Op* op() const { return op_; }

 private:
  [[nodiscard]] bool is_settled_after_a_look() const;
  Op* op_ = nullptr;
};

/// Done when all of `futures` are done; fails with the first of them that fails.
Future when_all(std::span<const Future> futures);
Future when_all(std::initializer_list<Future> futures);
/// The same for a range of things with a future, such as host arrays.
template <class Range>
requires requires(const Range& range) {
  range.begin()->future();
}
Future when_all(const Range& range) {
  std::vector<Future> futures;
  for (const auto& item : range) futures.push_back(item.future());
  return when_all(std::span<const Future>(futures));
}

/// A future that the program settles itself, for events that no op stands for. Dropping it
/// unsettled fails the future as cancelled. One thread settles it.
class Promise {
 public:
  /// `name` appears in wait-for graphs and failure chains.
  explicit Promise(std::string_view name = "promise");
  Promise(Promise&& other) noexcept : op_(std::exchange(other.op_, nullptr)) {}
  Promise& operator=(Promise other) noexcept {
    std::swap(op_, other.op_);
    return *this;
  }
  ~Promise();

  [[nodiscard]] Future future() const;
  /// Done. Dependents start. Once.
  void fulfil();
  /// Failed with `message`. Once.
  void fail(std::string message);

 private:
  Op* op_ = nullptr;  // unsettled; holds the runner's reference and one of ours
};

/// Whether another thread is inside `Promise::fulfil` or `fail`. What it makes ready has gone to
/// actors by the time this is false, which may be after its dependents have settled.
bool promises_are_settling();

namespace detail {
struct FutureAwaiter {
  Future future;
  [[nodiscard]] bool await_ready() const { return !future.op() || future.op()->is_settled(); }
  void await_suspend(std::coroutine_handle<> handle) const {
    future.on_settled([handle] { handle.resume(); });
  }
  void await_resume() const {
    if (FailureRef failure = future.failure()) throw OpError(std::move(failure));
  }
};
}  // namespace detail

inline auto Future::operator co_await() const {
  return detail::FutureAwaiter{*this};
}

/// A coroutine that starts at once and settles a future when it returns or throws.
class Task {
 public:
  struct promise_type {
    Promise promise{"task"};
    Task get_return_object() { return Task(promise.future()); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() { promise.fulfil(); }
    void unhandled_exception();
  };

  [[nodiscard]] const Future& future() const { return future_; }
  void wait() const { future_.wait(); }
  auto operator co_await() const { return future_.operator co_await(); }

 private:
  explicit Task(Future future) : future_(std::move(future)) {}
  Future future_;
};

}  // namespace weft
