#include "framework/future.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <thread>

#include "framework/fabric.hpp"
#include "framework/kernel_code.hpp"
#include "framework/spin.hpp"
#include "framework/virtual_waits.hpp"

namespace weft {
namespace {

constexpr auto kSpin = std::chrono::microseconds(30);

// Codes of inline ops live as long as the process: ops may settle while it ends.
const KernelCode& make_code(const char* name, void (*inline_run)(Op&),
                            void (*destroy_scalars)(Op&) = nullptr) {
  auto* code = new KernelCode;
  code->name = name;
  code->inline_run = inline_run;
  code->destroy_scalars = destroy_scalars;
  return *code;
}

// Makes `op` (built, unconnected) wait for the producers.
void follow(Op* op, std::span<const Future> futures, bool order_only) {
  std::uint32_t closed = 0;
  publish(op);
  op->pending.store(static_cast<std::uint32_t>(futures.size()) + 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < futures.size(); ++i) {
    Op* producer = futures[i].op();
    if (producer) note_wait(*op, *producer);
    if (producer && add_follower(producer, Stage::Done, op, order_only)) continue;
    ++closed;
    if (!producer || order_only) continue;
    if (Failure* cause = producer->failure.load(std::memory_order_acquire)) {
      Failure* failure = Failure::dependent(cause, op->code->name);
      Failure* expected = nullptr;
      if (!op->failure.compare_exchange_strong(expected, failure)) failure->release();
    }
  }
  if (closed) op->pending.fetch_sub(closed, std::memory_order_acq_rel);
  satisfy(op, send_to_owner());
}

struct Waiter {
  std::atomic<std::uint32_t> settled{0};
};

void wake_waiter(Op& op) {
  auto waiter = static_cast<std::shared_ptr<Waiter>*>(op.scalars());
  (*waiter)->settled.store(1, std::memory_order_release);
  (*waiter)->settled.notify_all();
}

void run_callback(Op& op) {
  (*static_cast<std::function<void()>*>(op.scalars()))();
}

std::atomic<std::int64_t> settling_promises{0};
thread_local std::int64_t settling_here = 0;

// Settles a promise's op; both its references are given up.
void settle_promise(Op* op) {
  settling_promises.fetch_add(1, std::memory_order_acq_rel);
  ++settling_here;
  satisfy(op, send_to_owner());
  release(op);
  --settling_here;
  settling_promises.fetch_sub(1, std::memory_order_release);
}

template <class T>
void destroy_scalar(Op& op) {
  std::destroy_at(static_cast<T*>(op.scalars()));
}

}  // namespace

FailureRef Future::failure() const {
  if (!has_failed()) return {};
  Failure* failure = op_->failure.load(std::memory_order_acquire);
  failure->acquire();
  return FailureRef(failure);
}

bool Future::is_settled_after_a_look() const {
  if (virtual_waits::any() && !thread_must_not_wait()) virtual_waits::poll();
  return op_->is_settled();
}

bool Future::wait_for(std::chrono::nanoseconds timeout) const {
  if (op_ && !op_->is_settled() && virtual_waits::any() && !thread_must_not_wait())
    if (virtual_waits::wait_for([this] { return op_->is_settled(); }, timeout.count()) ||
        !virtual_waits::are_mixed())
      return op_->is_settled();
  const auto start = std::chrono::steady_clock::now();
  while (!is_settled()) {
    for (int i = 0; i < 32 && !is_settled(); ++i) relax();
    const auto waited = std::chrono::steady_clock::now() - start;
    if (waited > timeout) return is_settled();
    if (waited > kSpin)
      std::this_thread::sleep_for(
          std::min<std::chrono::nanoseconds>(std::chrono::microseconds(100), timeout - waited));
  }
  return true;
}

void Future::wait() const {
  if (op_ && !op_->is_settled()) {
    if (thread_must_not_wait())
      throw UsageError("wait() on an actor's thread would stop a device: use then() or co_await");
    if (virtual_waits::any()) virtual_waits::wait([this] { return op_->is_settled(); });
    const auto start = std::chrono::steady_clock::now();
    Backoff backoff;
    while (!op_->is_settled()) {
      backoff.pause();
      if (backoff.rounds() % 16 == 0 && std::chrono::steady_clock::now() - start > kSpin) break;
    }
    if (!op_->is_settled()) {
      static const KernelCode& code =
          make_code("wait", wake_waiter, destroy_scalar<std::shared_ptr<Waiter>>);
      auto waiter = std::make_shared<Waiter>();
      Op* op = make_op(&code, 0, 0, sizeof(waiter));
      new (op->scalars()) std::shared_ptr<Waiter>(waiter);
      follow(op, {this, 1}, true);
      while (waiter->settled.load(std::memory_order_acquire) == 0)
        waiter->settled.wait(0, std::memory_order_acquire);
    }
  }
  if (FailureRef cause = failure()) throw OpError(std::move(cause));
}

void Future::on_settled(std::function<void()> callback) const {
  if (!op_ || op_->is_settled()) {
    callback();
    return;
  }
  static const KernelCode& code =
      make_code("callback", run_callback, destroy_scalar<std::function<void()>>);
  Op* op = make_op(&code, 0, 0, sizeof(callback));
  new (op->scalars()) std::function<void()>(std::move(callback));
  follow(op, {this, 1}, true);
}

Future when_all(std::span<const Future> futures) {
  static const KernelCode& code = make_code("when_all", nullptr);
  Op* op = make_op(&code, 0, 0, 0, 2);
  follow(op, futures, false);
  return Future(op);
}

Future when_all(std::initializer_list<Future> futures) {
  return when_all(std::span<const Future>(futures.begin(), futures.size()));
}

// Its name is bytes in the block that need no destructor, so that whoever holds the op may read it.
Promise::Promise(std::string_view name) {
  static const KernelCode& code = make_code("promise", nullptr);
  op_ = make_op(&code, 0, 0, name.size() + 1, 2);
  op_->waits_for_program = true;
  char* bytes = static_cast<char*>(op_->scalars());
  *std::copy(name.begin(), name.end(), bytes) = '\0';
  publish(op_);
}

Promise::~Promise() {
  if (op_) fail("its promise was dropped");
}

Future Promise::future() const {
  if (!op_) throw UsageError("promise: it is settled already, take its future before");
  acquire(op_);
  return Future(op_);
}

void Promise::fulfil() {
  if (!op_) throw UsageError("promise: it is settled already");
  settle_promise(std::exchange(op_, nullptr));
}

void Promise::fail(std::string message) {
  if (!op_) throw UsageError("promise: it is settled already");
  Op* op = std::exchange(op_, nullptr);
  op->failure.store(Failure::make(FailureKind::Cancelled, static_cast<char*>(op->scalars()),
                                  "the program", std::move(message)),
                    std::memory_order_release);
  settle_promise(op);
}

bool promises_are_settling() {
  return settling_promises.load(std::memory_order_acquire) != settling_here;
}

void Task::promise_type::unhandled_exception() {
  try {
    throw;
  } catch (const std::exception& error) {
    promise.fail(error.what());
  } catch (...) {
    promise.fail("unknown exception");
  }
}

}  // namespace weft
