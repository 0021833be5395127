#include "actors/pinned_actor.hpp"

#include <pthread.h>
#include <sched.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include "actors/caf_shim.hpp"
#include "actors/messages.hpp"
#include "framework/fabric.hpp"
#include "framework/spin.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

// Waking a parked thread costs tens of microseconds: spin about that long before parking.
constexpr auto kSpin = std::chrono::microseconds(50);
// With work on a device that nobody will report, the thread looks without a pause for this long.
constexpr auto kEager = std::chrono::microseconds(200);
// After this much of a spin the thread gives its core to whoever wants it between looks.
constexpr auto kPolite = std::chrono::microseconds(4);

constexpr unsigned kPauses = 4;

void pin(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(static_cast<unsigned>(cpu), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

class PinnedCafActor final : public caf::blocking_actor {
 public:
  PinnedCafActor(caf::actor_config& config, std::vector<Body*> bodies, PinnedActorOptions options,
                 std::shared_ptr<std::promise<void>> ended)
      : caf::blocking_actor(config),
        bodies_(std::move(bodies)),
        options_(std::move(options)),
        ended_(std::move(ended)) {}

  void act() override {
    pthread_setname_np(pthread_self(), options_.name.substr(0, 15).c_str());
    pin(options_.cpus);
    thread_must_not_wait() = options_.must_not_wait;
    for (Body* body : bodies_) body->thread_begins();
    while (run_until_idle()) park();
    for (Body* body : bodies_) body->thread_ends();
    ended_->set_value();
  }

 private:
  // False: stopped, and nothing left to do.
  bool run_until_idle() {
    auto last_work = Clock::now();
    for (unsigned round = 0;; ++round) {
      if (run_some(bodies_, options_.name)) {
        if (is_idle_) set_idle(false);
        last_work = Clock::now();
        continue;
      }
      if (has_next_message()) {
        read_message();
        continue;
      }
      if (stopping_) return false;
      // Not too eager: what arrives meanwhile comes in one batch, and each look takes a cache line
      // away from those who push.
      for (unsigned i = 0; i < kPauses; ++i) relax();
      if (round % 4 != 0) continue;
      const auto waited = Clock::now() - last_work;
      if (waited < kPolite) continue;
      if (!is_idle_) set_idle(true);
      if (waited > kSpin && !must_look_again()) return true;
      // What a device has in hand ends within some ten microseconds as a rule: worth the core.
      if (waited > kEager || !must_look_again()) std::this_thread::yield();
    }
  }

  [[nodiscard]] bool must_look_again() const {
    return std::any_of(bodies_.begin(), bodies_.end(),
                       [](const Body* body) { return body->must_look_again(); });
  }

  void park() {
    if (prepare_to_park(bodies_)) read_message();
  }

  void set_idle(bool idle) {
    is_idle_ = idle;
    for (Body* body : bodies_) body->idle_changes(idle);
  }

  void read_message() {
    receive([](const Wake&) {}, [this](const Stop&) { stopping_ = true; });
  }

  std::vector<Body*> bodies_;
  PinnedActorOptions options_;
  std::shared_ptr<std::promise<void>> ended_;
  bool stopping_ = false;
  bool is_idle_ = false;
};

}  // namespace

bool run_some(const std::vector<Body*>& bodies, const std::string& actor) {
  bool did = false;
  for (Body* body : bodies) {
    try {
      did = body->run_some() || did;
    } catch (const std::exception& error) {
      spdlog::critical("actor {}: {}", actor, error.what());
    } catch (...) {
      spdlog::critical("actor {}: unknown exception", actor);
    }
  }
  return did;
}

bool prepare_to_park(const std::vector<Body*>& bodies) {
  return std::all_of(bodies.begin(), bodies.end(),
                     [](Body* body) { return body->prepare_to_park(); });
}

struct PinnedActor::Handle {
  caf::actor actor;
  std::shared_future<void> ended;
  bool joined = false;
};

PinnedActor::PinnedActor(caf::actor_system& system, std::vector<Body*> bodies,
                         PinnedActorOptions options)
    : handle_(std::make_unique<Handle>()) {
  auto ended = std::make_shared<std::promise<void>>();
  handle_->ended = ended->get_future().share();
  handle_->actor = system.spawn<PinnedCafActor, caf::detached>(
      std::move(bodies), std::move(options), std::move(ended));
}

PinnedActor::~PinnedActor() {
  join();
}

void PinnedActor::wake() {
  shim::anon_send(handle_->actor, Wake{});
}

void PinnedActor::join() {
  if (handle_->joined) return;
  shim::anon_send(handle_->actor, Stop{});
  handle_->ended.wait();
  handle_->joined = true;
}

}  // namespace weft
