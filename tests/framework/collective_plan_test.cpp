#include "framework/collective_plan.hpp"

#include <map>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace weft;

namespace {

// Runs a plan on integers: member m's data has one value per region.
class Interpreter {
 public:
  explicit Interpreter(const CollectivePlan& plan) : plan_(plan) {}

  void set(std::uint32_t member, std::uint32_t slot, std::uint32_t region, long value) {
    values_[{member, slot, region}] = value;
  }
  long get(std::uint32_t member, std::uint32_t slot, std::uint32_t region) {
    const auto found = values_.find({member, slot, region});
    REQUIRE(found != values_.end());
    return found->second;
  }
  void run() {
    for (const auto& step : plan_.steps) {
      const long value = get(step.from.member, step.from.slot, step.region);
      if (step.kind == CollectiveStep::Kind::Copy) {
        values_[{step.to.member, step.to.slot, step.region}] = value;
      } else {
        CHECK(step.from.member == step.to.member);
        values_[{step.to.member, step.to.slot, step.region}] =
            get(step.to.member, step.to.slot, step.region) + value;
      }
      CHECK(step.to.slot < CollectiveBuffer::kFirstTemporary + plan_.temporaries);
    }
  }

 private:
  const CollectivePlan& plan_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, long> values_;
};

long value_of(std::uint32_t member, std::uint32_t region) {
  return 1000 * (member + 1) + region;
}

void fill(Interpreter& run, const CollectivePlan& plan) {
  for (std::uint32_t m = 0; m < plan.members; ++m)
    for (std::uint32_t r = 0; r < plan.regions; ++r)
      run.set(m, CollectiveBuffer::kData, r, value_of(m, r));
}

long sum_of(const CollectivePlan& plan, std::uint32_t region) {
  long sum = 0;
  for (std::uint32_t m = 0; m < plan.members; ++m) sum += value_of(m, region);
  return sum;
}

constexpr CollectiveAlgorithm kAll[] = {CollectiveAlgorithm::Ring, CollectiveAlgorithm::Tree,
                                        CollectiveAlgorithm::Star};

}  // namespace

TEST_CASE("every all-reduce leaves the sum of all members with every member", "[collective]") {
  for (auto algorithm : kAll)
    for (std::uint32_t n = 1; n <= 9; ++n)
      for (std::uint32_t root = 0; root < n; ++root) {
        const auto plan = plan_collective(CollectiveKind::AllReduce, algorithm, n, root);
        Interpreter run(plan);
        fill(run, plan);
        run.run();
        for (std::uint32_t m = 0; m < n; ++m)
          for (std::uint32_t r = 0; r < plan.regions; ++r)
            CHECK(run.get(m, CollectiveBuffer::kData, r) == sum_of(plan, r));
      }
}

TEST_CASE("every broadcast leaves the root's data with every member", "[collective]") {
  for (auto algorithm : kAll)
    for (std::uint32_t n = 1; n <= 9; ++n)
      for (std::uint32_t root = 0; root < n; ++root) {
        const auto plan = plan_collective(CollectiveKind::Broadcast, algorithm, n, root);
        Interpreter run(plan);
        fill(run, plan);
        run.run();
        for (std::uint32_t m = 0; m < n; ++m)
          for (std::uint32_t r = 0; r < plan.regions; ++r)
            CHECK(run.get(m, CollectiveBuffer::kData, r) == value_of(root, r));
      }
}

TEST_CASE("reduce-scatter gives member i the sum of region i and keeps the data", "[collective]") {
  for (std::uint32_t n = 1; n <= 9; ++n) {
    const auto plan =
        plan_collective(CollectiveKind::ReduceScatter, CollectiveAlgorithm::Ring, n, 0);
    Interpreter run(plan);
    fill(run, plan);
    run.run();
    for (std::uint32_t m = 0; m < n; ++m) {
      CHECK(run.get(m, CollectiveBuffer::kResult, m) == sum_of(plan, m));
      for (std::uint32_t r = 0; r < n; ++r)
        CHECK(run.get(m, CollectiveBuffer::kData, r) == value_of(m, r));
    }
  }
}

TEST_CASE("all-gather gives every member all parts in order", "[collective]") {
  for (std::uint32_t n = 1; n <= 9; ++n) {
    const auto plan = plan_collective(CollectiveKind::AllGather, CollectiveAlgorithm::Ring, n, 0);
    Interpreter run(plan);
    for (std::uint32_t m = 0; m < n; ++m) run.set(m, CollectiveBuffer::kData, m, value_of(m, 0));
    run.run();
    for (std::uint32_t m = 0; m < n; ++m)
      for (std::uint32_t r = 0; r < n; ++r)
        CHECK(run.get(m, CollectiveBuffer::kResult, r) == value_of(r, 0));
  }
}

TEST_CASE("a ring all-reduce moves 2(n-1)/n of the data over each way", "[collective]") {
  for (std::uint32_t n = 2; n <= 9; ++n) {
    const auto plan = plan_collective(CollectiveKind::AllReduce, CollectiveAlgorithm::Ring, n, 0);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> regions_sent;
    for (const auto& step : plan.steps)
      if (step.from.member != step.to.member) ++regions_sent[{step.from.member, step.to.member}];
    CHECK(regions_sent.size() == n);
    for (const auto& [way, count] : regions_sent) {
      CHECK(way.second == (way.first + 1) % n);
      CHECK(count == 2 * (n - 1));
    }
    CHECK(plan.regions == n);
  }
}

TEST_CASE("latency chooses for small data, bandwidth for large", "[collective]") {
  CollectiveSituation situation{CollectiveKind::AllReduce, 4, 1024, true, false};
  CHECK(choose_algorithm(situation) == CollectiveAlgorithm::Tree);
  situation.all_direct = false;
  situation.host_member = true;
  CHECK(choose_algorithm(situation) == CollectiveAlgorithm::Star);
  situation.bytes = 64 << 20;
  CHECK(choose_algorithm(situation) == CollectiveAlgorithm::Ring);
  // Of many members each would pass on a little, very often.
  situation = {CollectiveKind::AllReduce, 1024, 1 << 20, true, false};
  CHECK(choose_algorithm(situation) == CollectiveAlgorithm::Tree);
  situation.bytes = std::size_t{1} << 30;
  CHECK(choose_algorithm(situation) == CollectiveAlgorithm::Ring);
}
