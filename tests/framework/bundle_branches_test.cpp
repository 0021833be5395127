#include "framework/bundle_branches.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "support/catch.hpp"

using namespace weft;

namespace {

using Numbers = std::vector<std::uint32_t>;

std::vector<BranchTurn> turns_of(const Bundle::Order& order, std::uint32_t most,
                                 double ns = 10'000) {
  return branch_out(order, std::vector<double>(order.size(), ns), most);
}

// By member: all that end before it begins.
std::vector<std::set<std::uint32_t>> ancestors(const std::vector<Numbers>& behind) {
  std::vector<std::set<std::uint32_t>> all(behind.size());
  for (std::size_t n = 0; n < behind.size(); ++n)
    for (const std::uint32_t before : behind[n]) {
      all[n].insert(before);
      all[n].insert(all[before].begin(), all[before].end());
    }
  return all;
}

std::vector<Numbers> behind_of(const std::vector<BranchTurn>& turns) {
  std::vector<Numbers> behind;
  for (const BranchTurn& turn : turns) behind.push_back(turn.behind);
  return behind;
}

}  // namespace

TEST_CASE("a chain stays on one branch", "[bundle]") {
  const auto turns = turns_of({{}, {0}, {1}, {0, 2}}, 3);
  for (std::uint32_t n = 0; n < turns.size(); ++n) {
    CHECK(turns[n].branch == 0);
    CHECK(turns[n].behind == (n == 0 ? Numbers{} : Numbers{n - 1}));
  }
}

TEST_CASE("what needs nothing of the others runs beside them", "[bundle]") {
  // Steps that each load their own data: load, work, load, work, load, work.
  const auto turns = turns_of({{}, {0}, {}, {1, 2}, {}, {3, 4}}, 2);
  CHECK(turns[1].branch == turns[0].branch);
  CHECK(turns[2].branch != turns[0].branch);
  CHECK(turns[2].behind.empty());
  CHECK(turns[3].branch == turns[0].branch);
  CHECK(turns[3].behind == Numbers{1, 2});
  CHECK(turns[4].branch == turns[2].branch);
  CHECK(turns[4].behind == Numbers{2});
  CHECK(turns[5].behind == Numbers{3, 4});
}

TEST_CASE("what gains less than a wait across costs stays where it is", "[bundle]") {
  const Bundle::Order fork{{}, {0}, {0}, {1, 2}};
  for (const BranchTurn& turn : branch_out(fork, {5000, 1500, 5000, 5000}, 3))
    CHECK(turn.branch == 0);
  const auto turns = branch_out(fork, {5000, 9000, 9000, 5000}, 3);
  CHECK(turns[1].branch != turns[2].branch);
  CHECK(turns[3].behind.size() == 2);
}

TEST_CASE("members on one branch are in order, with no wait that another implies", "[bundle]") {
  std::mt19937_64 random(23);
  std::size_t beside = 0;
  for (int round = 0; round < 500; ++round) {
    const auto count = static_cast<std::uint32_t>(2 + random() % 40);
    const auto most = static_cast<std::uint32_t>(1 + random() % 4);
    Bundle::Order order(count);
    std::vector<double> ns;
    for (std::uint32_t n = 0; n < count; ++n) {
      std::set<std::uint32_t> before;
      for (std::uint64_t i = random() % 4; n > 0 && i > 0; --i)
        before.insert(static_cast<std::uint32_t>(random() % n));
      order[n].assign(before.begin(), before.end());
      ns.push_back(static_cast<double>(2000 + random() % 10'000));
    }
    const auto turns = branch_out(order, ns, most);
    REQUIRE(turns.size() == count);
    const auto after = ancestors(behind_of(turns));
    for (std::uint32_t n = 0; n < count; ++n) {
      REQUIRE(turns[n].branch < most);
      for (const std::uint32_t before : order[n]) REQUIRE(after[n].contains(before));
      std::set<std::uint32_t> branches;
      for (const std::uint32_t before : turns[n].behind) {
        REQUIRE(branches.insert(turns[before].branch).second);
        for (const std::uint32_t other : turns[n].behind)
          REQUIRE_FALSE(after[other].contains(before));
      }
      for (std::uint32_t other = 0; other < n; ++other) {
        if (turns[other].branch == turns[n].branch) REQUIRE(after[n].contains(other));
        beside += !after[n].contains(other);
      }
    }
  }
  CHECK(beside > 1000);
}
