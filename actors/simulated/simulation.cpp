#include "actors/simulated/simulation.hpp"

#include <chrono>

#include "framework/fabric.hpp"
#include "framework/wait_graph.hpp"

namespace weft {

struct Simulation::Actor final : Runnable {
  Actor(std::vector<Body*> given, std::string given_name)
      : bodies(std::move(given)), name(std::move(given_name)) {}

  void run() override {
    do {
      while (run_some(bodies, name)) {
      }
    } while (!prepare_to_park(bodies));
  }

  const std::vector<Body*> bodies;
  const std::string name;
};

Simulation::Simulation(VirtualTime::Ns submission_ns, VirtualTime::Ns notice_ns)
    : program_(time_, submission_ns, notice_ns) {}

Simulation::~Simulation() {
  stop();
}

void Simulation::add(std::vector<Body*> bodies, const std::vector<ActorMailbox*>& mailboxes,
                     const std::string& name) {
  actors_.push_back(std::make_unique<Actor>(std::move(bodies), name));
  Actor* actor = actors_.back().get();
  for (ActorMailbox* mailbox : mailboxes) mailbox->set_waker([this, actor] { wake(*actor); });
  actor->run();  // parks, so that a push wakes it
}

void Simulation::wake(Runnable& runnable) {
  if (runnable.is_queued_.exchange(true, std::memory_order_acq_rel)) return;
  std::lock_guard lock(queue_mutex_);
  queue_.push_back(&runnable);
}

Simulation::Runnable* Simulation::next() {
  std::lock_guard lock(queue_mutex_);
  if (queue_.empty()) return nullptr;
  Runnable* first = queue_.front();
  queue_.pop_front();
  first->is_queued_.store(false, std::memory_order_release);
  return first;
}

void Simulation::start(Fabric& fabric) {
  fabric_ = &fabric;
  virtual_waits::add(*this);
  watcher_ = std::thread([this] { watch_actors(); });
}

void Simulation::stop() {
  if (!fabric_) return;
  {
    std::lock_guard lock(watch_mutex_);
    is_ending_ = true;
  }
  watch_ended_.notify_one();
  watcher_.join();
  virtual_waits::remove(*this);
  fabric_ = nullptr;
}

bool Simulation::move(const std::function<bool()>& done, std::int64_t nanoseconds) {
  std::unique_lock moving(moving_, std::try_to_lock);
  if (!moving) {  // another thread does, for this one too
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    return true;
  }
  struct OnActorsThread {
    const bool was = std::exchange(thread_must_not_wait(), true);
    ~OnActorsThread() { thread_must_not_wait() = was; }
  } here;
  const VirtualTime::Ns end = nanoseconds < 0 ? VirtualTime::kNever : time_.now() + nanoseconds;
  bool did = false;
  for (;;) {
    while (Runnable* runnable = next()) {
      runnable->run();
      did = true;
    }
    if (done() || virtual_waits::has_messages_in_flight()) break;
    share_.update();
    if (time_.next() > end) break;
    if (!time_.step()) break;
    did = true;
  }
  if (end != VirtualTime::kNever && !done() && !virtual_waits::has_messages_in_flight()) {
    did = did || time_.now() < end;
    time_.pass_until(end);
  }
  if (did) moves_.fetch_add(1, std::memory_order_relaxed);
  return did;
}

std::string Simulation::describe() {
  return fabric_ ? describe_waits(*fabric_) : std::string();
}

// Time goes on for actors of the program that wait for a future, while its threads wait for them.
void Simulation::watch_actors() {
  constexpr auto kLook = std::chrono::milliseconds(20);
  std::uint64_t seen = 0;
  std::unique_lock lock(watch_mutex_);
  while (!watch_ended_.wait_for(lock, kLook, [this] { return is_ending_; })) {
    const std::uint64_t moves = moves_.load(std::memory_order_relaxed);
    if (std::exchange(seen, moves) != moves || !virtual_waits::are_futures_awaited()) continue;
    move([] { return !virtual_waits::are_futures_awaited(); }, -1);
    seen = moves_.load(std::memory_order_relaxed);
  }
}

}  // namespace weft
