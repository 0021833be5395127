#include "apps/bench/cholesky_order.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "support/catch.hpp"

namespace weft::bench {
namespace {

using Kind = CholeskyStep::Kind;
using Tile = std::pair<std::int64_t, std::int64_t>;

// Runs the steps one after the other and looks at what each finds.
class Checker {
 public:
  explicit Checker(std::int64_t count) : count_(count) {}

  void take(const CholeskyStep& step) {
    const auto [kind, i, j, k] = step;
    REQUIRE((0 <= k && k <= j && j <= i && i < count_));
    CHECK_FALSE(is_done({i, j}));
    switch (kind) {
      case Kind::Factor:
        CHECK((i == j && k == j));
        CHECK(updates_[{i, j}].size() == static_cast<std::size_t>(j));
        done_.insert({i, j});
        break;
      case Kind::Solve:
        CHECK((i > j && k == j));
        CHECK(is_done({j, j}));
        CHECK(updates_[{i, j}].size() == static_cast<std::size_t>(j));
        done_.insert({i, j});
        break;
      case Kind::Product:
      case Kind::Square:
        CHECK((kind == Kind::Square) == (i == j));
        CHECK(k < j);
        CHECK(is_done({i, k}));
        CHECK(is_done({j, k}));
        CHECK(updates_[{i, j}].insert(k).second);
        break;
    }
  }
  [[nodiscard]] std::size_t done() const { return done_.size(); }

 private:
  [[nodiscard]] bool is_done(const Tile& tile) const { return done_.count(tile) > 0; }

  std::int64_t count_;
  std::set<Tile> done_;
  std::map<Tile, std::set<std::int64_t>> updates_;
};

TEST_CASE("every step of a factorisation comes once and behind what it needs", "[bench]") {
  for (const std::int64_t count : {0, 1, 2, 3, 7, 12})
    for (const std::int64_t panel : {1, 2, 3, 5, 12, 100}) {
      INFO(count << " tiles, panels of " << panel);
      Checker checker(count);
      for_each_step(count, panel, [&](const CholeskyStep& step) { checker.take(step); });
      CHECK(checker.done() == static_cast<std::size_t>(count * (count + 1) / 2));
    }
}

// Tiles that are fetched for the steps by a memory of so many, the least recently used leaving.
std::size_t fetched(std::int64_t count, std::int64_t panel, std::size_t room) {
  std::vector<Tile> held;  // the least recently used first
  std::size_t fetches = 0;
  const auto use = [&](const Tile& tile) {
    const auto found = std::find(held.begin(), held.end(), tile);
    if (found == held.end()) {
      ++fetches;
      if (held.size() == room) held.erase(held.begin());
    } else {
      held.erase(found);
    }
    held.push_back(tile);
  };
  for_each_step(count, panel, [&](const CholeskyStep& step) {
    use({step.i, step.k});
    use({step.j, step.k});
    use({step.i, step.j});
  });
  return fetches;
}

TEST_CASE("panels keep what is fetched near what they must", "[bench]") {
  constexpr std::int64_t kCount = 24;
  constexpr std::size_t kAll = kCount * (kCount + 1) / 2, kRoom = kAll / 4;
  const std::int64_t panel = panel_columns(kCount, 1, kRoom);
  CHECK(panel == 1);
  CHECK(panel_columns(kCount, 1, 2 * kAll) == kCount);
  CHECK(panel_columns(kCount, 1, 4 * kCount * 2) == 4);
  CHECK(panel_columns(kCount, 100, 1) == 1);
  CHECK(panel_columns(0, 1, 1) == 1);
  CHECK(fetched(kCount, kCount, kAll) == kAll);
  // Right-looking reads and writes all that remains in each step.
  CHECK(2 * fetched(kCount, 3, kRoom) < fetched(kCount, kCount, kRoom));
}

}  // namespace
}  // namespace weft::bench
