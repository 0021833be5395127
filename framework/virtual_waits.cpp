#include "framework/virtual_waits.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "framework/failure.hpp"
#include "framework/spin.hpp"

namespace weft::virtual_waits {
namespace {

// Other threads of the program may be about to submit or to settle a promise: after so much silence
// they are not.
constexpr auto kPatience = std::chrono::seconds(2);
constexpr std::int64_t kPollNs = 1000;

std::atomic<int> count{0}, real{0}, messages{0}, awaited{0};

struct List {
  std::shared_mutex mutex;
  std::vector<Steered*> all;
};
List& list() {
  static List* const instance = new List;  // outlives every runtime
  return *instance;
}

bool move_all(const std::function<bool()>& done, std::int64_t nanoseconds) {
  std::shared_lock lock(list().mutex);
  bool did = false;
  for (Steered* steered : list().all) did = steered->move(done, nanoseconds) || did;
  return did;
}

void tell_waited() {
  std::shared_lock lock(list().mutex);
  for (Steered* steered : list().all) steered->waited();
}

std::string describe_all() {
  std::shared_lock lock(list().mutex);
  std::string text;
  for (Steered* steered : list().all) text += steered->describe();
  return text;
}

}  // namespace

void add(Steered& steered) {
  std::lock_guard lock(list().mutex);
  list().all.push_back(&steered);
  count.fetch_add(1, std::memory_order_release);
}

void remove(Steered& steered) {
  std::lock_guard lock(list().mutex);
  count.fetch_sub(1, std::memory_order_release);
  std::erase(list().all, &steered);
}

void count_real(int number) {
  real.fetch_add(number, std::memory_order_acq_rel);
}
bool are_mixed() {
  return any() && real.load(std::memory_order_acquire) > 0;
}

bool any() {
  return count.load(std::memory_order_acquire) != 0;
}

namespace {

void wait(const std::function<bool()>& done, const std::function<bool()>& asked_each_time) {
  auto last = std::chrono::steady_clock::now();
  if (done()) return;
  while (!done()) {
    if (move_all(asked_each_time, -1)) {
      last = std::chrono::steady_clock::now();
      continue;
    }
    if (done()) break;
    if (has_messages_in_flight() || are_mixed()) last = std::chrono::steady_clock::now();
    if (std::chrono::steady_clock::now() - last > kPatience)
      throw UsageError(
          "nothing can happen any more in virtual time, and what is waited for has not:\n" +
          describe_all());
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  tell_waited();
}

}  // namespace

void wait(const std::function<bool()>& done) {
  wait(done, done);
}

void wait_until_quiet(const std::function<bool()>& done) {
  wait(done, [] { return false; });
}

void wait_in_any_time(const std::function<bool()>& done) {
  if (any()) wait(done);
  wait_and_sleep(done);
}

bool wait_for(const std::function<bool()>& done, std::int64_t nanoseconds) {
  if (done()) return true;
  std::shared_lock lock(list().mutex);
  std::vector<std::int64_t> ends;
  for (const Steered* steered : list().all) ends.push_back(steered->now() + nanoseconds);
  auto last = std::chrono::steady_clock::now();
  while (!done()) {
    bool did = false, is_over = true;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      Steered& steered = *list().all[i];
      if (const std::int64_t left = ends[i] - steered.now(); left > 0)
        did = steered.move(done, left) || did;
      is_over = is_over && steered.now() >= ends[i];
    }
    if (is_over) break;
    // Messages are on their way: a program's actor is about to act.
    const auto now = std::chrono::steady_clock::now();
    if (did) last = now;
    if (now - last > kPatience) break;
    if (!did) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  if (!done()) return false;
  for (Steered* steered : list().all) steered->waited();
  return true;
}

MessageInFlight::MessageInFlight() {
  messages.fetch_add(1, std::memory_order_acq_rel);
}
MessageInFlight::~MessageInFlight() {
  messages.fetch_sub(1, std::memory_order_acq_rel);
}
bool has_messages_in_flight() {
  return messages.load(std::memory_order_acquire) != 0;
}

void add_awaited(int number) {
  awaited.fetch_add(number, std::memory_order_acq_rel);
}
bool are_futures_awaited() {
  return awaited.load(std::memory_order_acquire) > 0;
}

void poll() {
  move_all([] { return false; }, kPollNs);
}

}  // namespace weft::virtual_waits
