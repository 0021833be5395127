#include "framework/virtual_time.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "framework/fair_share.hpp"
#include "framework/program_time.hpp"
#include "support/catch.hpp"

using namespace weft;

namespace {

struct Noted final : VirtualTime::Event {
  Noted(int given, std::vector<int>& to) : number(given), list(&to) {}
  void happens() override { list->push_back(number); }
  int number;
  std::vector<int>* list;
};

struct Flow final : FairShare::Flow {
  explicit Flow(VirtualTime& given) : time(&given) {}
  void flowed() override { ended_at = time->now(); }
  VirtualTime* time;
  VirtualTime::Ns ended_at = -1;
};

void run(VirtualTime& time, FairShare& share) {
  do share.update();
  while (time.step());
}

}  // namespace

TEST_CASE("events happen by time, then in the order of their scheduling", "[framework][virtual]") {
  VirtualTime time;
  std::vector<int> happened;
  Noted a(1, happened), b(2, happened), c(3, happened), d(4, happened);
  time.schedule(a, 30);
  time.schedule(b, 10);
  time.schedule(c, 30);
  time.schedule(d, 5);
  CHECK(time.next() == 5);
  time.schedule(d, 30);  // later than it was, and behind the others of that instant
  CHECK(time.step());
  CHECK(time.now() == 10);
  time.cancel(a);
  time.schedule(b, 0);  // not before now
  while (time.step()) {
  }
  CHECK(happened == std::vector<int>{2, 2, 3, 4});
  CHECK(time.now() == 30);
  CHECK_FALSE(a.is_scheduled());
  CHECK(time.next() == VirtualTime::kNever);
}

TEST_CASE("many events, moved and cancelled, happen as a sorted list says",
          "[framework][virtual]") {
  std::mt19937 random(5);
  VirtualTime time;
  std::vector<int> happened;
  std::vector<std::unique_ptr<Noted>> events;
  std::vector<std::pair<VirtualTime::Ns, int>> last;  // when, and how manyeth scheduling
  std::vector<int> order(500, -1);
  std::vector<VirtualTime::Ns> at(500, -1);
  int count = 0;
  for (int i = 0; i < 500; ++i) events.push_back(std::make_unique<Noted>(i, happened));
  for (int round = 0; round < 3000; ++round) {
    const std::size_t i = random() % 500;
    if (random() % 5 == 0) {
      time.cancel(*events[i]);
      order[i] = -1;
    } else {
      at[i] = static_cast<VirtualTime::Ns>(random() % 100);
      time.schedule(*events[i], at[i]);
      order[i] = count++;
    }
  }
  std::vector<int> expected;
  for (int i = 0; i < 500; ++i)
    if (order[static_cast<std::size_t>(i)] >= 0) expected.push_back(i);
  std::sort(expected.begin(), expected.end(), [&](int a, int b) {
    const auto x = static_cast<std::size_t>(a), y = static_cast<std::size_t>(b);
    return std::pair(at[x], order[x]) < std::pair(at[y], order[y]);
  });
  while (time.step()) {
  }
  CHECK(happened == expected);
}

TEST_CASE("a flow alone takes amount over rate", "[framework][virtual]") {
  VirtualTime time;
  FairShare share(time);
  const FairShare::Use over[] = {{share.add_resource(1e9), 1}, {share.add_resource(2e9), 1}};
  Flow a(time), limited(time), nothing(time), free(time);
  share.start(a, 1e6, over);
  run(time, share);
  CHECK(a.ended_at == 1'000'000);
  share.start(limited, 1e6, over, 0.5e9);
  share.start(nothing, 0, over);
  run(time, share);
  CHECK(nothing.ended_at == 1'000'000);
  CHECK(limited.ended_at == 3'000'000);
  share.start(free, 10, {}, 1e9);  // over nothing
  run(time, share);
  CHECK(free.ended_at == 3'000'010);
}

TEST_CASE("flows over one resource share it, and the rest of a shorter one's time",
          "[framework][virtual]") {
  VirtualTime time;
  FairShare share(time);
  const FairShare::Use over[] = {{share.add_resource(1e9), 1}};
  Flow a(time), b(time);
  share.start(a, 1e6, over);
  share.start(b, 3e6, over);
  share.update();
  CHECK(a.rate() == 0.5e9);
  CHECK(share.load(0) == 1e9);
  run(time, share);
  CHECK(a.ended_at == 2'000'000);
  CHECK(b.ended_at == 4'000'000);
}

// A link of 10 with three flows, one of which also crosses a link of 2; and a fourth of which the
// rest of that is: the textbook's example of max-min fairness.
TEST_CASE("rates are max-min fair over several resources", "[framework][virtual]") {
  VirtualTime time;
  FairShare share(time);
  const std::uint32_t wide = share.add_resource(10), narrow = share.add_resource(2);
  const FairShare::Use both[] = {{wide, 1}, {narrow, 1}}, one[] = {{wide, 1}},
                       other[] = {{narrow, 1}};
  Flow a(time), b(time), c(time), d(time);
  share.start(a, 1e9, both);
  share.start(b, 1e9, one);
  share.start(c, 1e9, one);
  share.start(d, 1e9, other);
  share.update();
  CHECK(a.rate() == 1);
  CHECK(d.rate() == 1);
  CHECK(b.rate() == 4.5);
  CHECK(c.rate() == 4.5);
  share.set_limit(b, 2);
  share.update();
  CHECK(b.rate() == 2);
  CHECK(c.rate() == 7);
}

TEST_CASE("a flow may need several units of a resource", "[framework][virtual]") {
  VirtualTime time;
  FairShare share(time);
  const std::uint32_t cores = share.add_resource(4), memory = share.add_resource(100);
  const FairShare::Use computes[] = {{cores, 0.1}, {memory, 1}}, reads[] = {{memory, 1}};
  Flow a(time), b(time);
  share.start(a, 1e9, computes);
  share.update();
  CHECK(a.rate() == 40);  // by its cores
  share.start(b, 1e9, reads);
  share.update();
  CHECK(a.rate() == 40);
  CHECK(b.rate() == 60);
}

TEST_CASE("flows that need very different amounts of a resource leave each other the rest",
          "[framework][virtual]") {
  VirtualTime time;
  FairShare share(time);
  const std::uint32_t cores = share.add_resource(4);
  // A large kernel that touches a byte, and two that touch many: units a byte.
  const FairShare::Use large[] = {{cores, 1e3}}, small[] = {{cores, 1e-14}};
  Flow a(time), b(time), c(time);
  share.start(a, 1, large, 1e-3);
  share.start(b, 1e14, small);
  share.start(c, 1e14, small);
  share.update();
  CHECK(a.rate() == 1e-3);
  CHECK(b.rate() == Approx(1.5e14));
  CHECK(c.rate() == Approx(1.5e14));
  CHECK(share.passed(cores) == Approx(1e3 + 2));
}

TEST_CASE("ops of several threads were submitted when they were", "[framework][virtual]") {
  const VirtualTime devices;
  ProgramTime program(devices, 350, 0);
  // Each thread numbers its ops from where it likes.
  const std::uint64_t numbers[] = {256, 0, 257, 258, 1, 512, 2, 3};
  for (const std::uint64_t number : numbers) program.submitted(number);
  VirtualTime::Ns at = 0;
  for (const std::uint64_t number : numbers) CHECK(program.of(number) == (at += 350));
  CHECK(program.of(4) == 0);
  CHECK(program.of(259) == 0);
  CHECK(program.now() == at);
}

// No flow can be given more without taking it from one that has no more: each is at its limit or
// crosses a full resource on which nobody is faster.
TEST_CASE("random flows are max-min fair at every moment", "[framework][virtual]") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    VirtualTime time;
    FairShare share(time);
    constexpr std::uint32_t kResources = 6;
    for (std::uint32_t r = 0; r < kResources; ++r)
      share.add_resource(1.0 + static_cast<double>(random() % 9));
    std::vector<std::unique_ptr<Flow>> flows;
    std::vector<std::vector<FairShare::Use>> uses;
    std::vector<double> limits;
    for (int i = 0; i < 12; ++i) {
      std::vector<FairShare::Use> over;
      for (std::uint32_t r = 0; r < kResources; ++r)
        if (random() % 3 == 0) over.push_back({r, 1});
      if (over.empty()) over.push_back({0, 1});
      limits.push_back(random() % 2 ? 0.5 + static_cast<double>(random() % 4)
                                    : FairShare::kUnlimited);
      uses.push_back(over);
      flows.push_back(std::make_unique<Flow>(time));
      share.start(*flows.back(), 1 + static_cast<double>(random() % 20), over, limits.back());
      if (random() % 3 == 0) {
        share.update();
        time.step();
      }
    }
    for (;;) {
      share.update();
      for (std::size_t i = 0; i < flows.size(); ++i) {
        if (!flows[i]->is_flowing()) continue;
        CHECK(flows[i]->rate() <= limits[i] * (1 + 1e-9));
        bool is_bound = flows[i]->rate() >= limits[i] * (1 - 1e-9);
        for (const FairShare::Use& use : uses[i]) {
          CHECK(share.load(use.resource) <= share.capacity(use.resource) * (1 + 1e-9));
          if (share.load(use.resource) < share.capacity(use.resource) * (1 - 1e-9)) continue;
          double most = 0;
          for (std::size_t j = 0; j < flows.size(); ++j)
            for (const FairShare::Use& other : uses[j])
              if (flows[j]->is_flowing() && other.resource == use.resource)
                most = std::max(most, flows[j]->rate());
          is_bound = is_bound || flows[i]->rate() >= most * (1 - 1e-9);
        }
        CHECK(is_bound);
      }
      if (!time.step()) break;
    }
    for (const auto& flow : flows) CHECK(flow->ended_at >= 0);
  }
}
