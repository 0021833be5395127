#include <cstdint>
#include <vector>

#include "framework/next_uses.hpp"
#include "framework/resident_set.hpp"
#include "framework/victims.hpp"
#include "support/catch.hpp"

using namespace weft;

namespace {

constexpr std::uint64_t kNever = NextUses::kNever;

EvictionCandidate used(std::uint64_t next, std::uint64_t last = 0, std::size_t bytes = 1) {
  EvictionCandidate made;
  made.next_use = next;
  made.last_use = last;
  made.bytes = bytes;
  return made;
}

}  // namespace

TEST_CASE("the next use is the first that reads a tensor in that memory") {
  NextUses uses;
  TensorState a, b;
  CHECK(uses.next(&a, 1).position == kNever);
  uses.add(&a, {.position = 3, .memory = 0});
  uses.add(&a, {.position = 5, .memory = 1});
  uses.add(&b, {.position = 7, .memory = 1});
  CHECK(uses.next(&a, 0).position == 3);
  CHECK(uses.next(&a, 1).position == 5);
  CHECK(uses.next(&b, 0).position == kNever);
  CHECK(uses.size() == 2);

  uses.drop(&a, 3);
  CHECK(uses.next(&a, 0).position == kNever);
  CHECK(uses.next(&a, 1).position == 5);
  uses.drop(&a, 5);
  CHECK_FALSE(uses.is_used(&a));
  CHECK(uses.is_used(&b));
}

TEST_CASE("a value that is overwritten before it is read is dead") {
  NextUses uses;
  TensorState read_before, overwritten, changed_elsewhere, read_elsewhere;
  uses.add(&overwritten, {.position = 1, .memory = 0, .reads = false, .writes = true});
  uses.add(&overwritten, {.position = 2, .memory = 0});
  CHECK(uses.next(&overwritten, 0).is_dead);
  CHECK(uses.next(&overwritten, 0).position == kNever);

  uses.add(&read_before, {.position = 1, .memory = 1});
  uses.add(&read_before, {.position = 2, .memory = 0, .reads = false, .writes = true});
  CHECK_FALSE(uses.next(&read_before, 0).is_dead);
  CHECK(uses.next(&read_before, 0).position == kNever);

  uses.add(&changed_elsewhere, {.position = 1, .memory = 1, .reads = true, .writes = true});
  uses.add(&changed_elsewhere, {.position = 2, .memory = 0});
  CHECK(uses.next(&changed_elsewhere, 0).position == kNever);
  CHECK_FALSE(uses.next(&changed_elsewhere, 0).is_dead);

  uses.add(&read_elsewhere, {.position = 1, .memory = NextUses::kElsewhere});
  uses.add(&read_elsewhere, {.position = 4, .memory = 0});
  CHECK(uses.next(&read_elsewhere, 0).position == 4);
}

TEST_CASE("the farthest next use goes first, unknown ones before all, dead values before those") {
  CHECK(choose_victims({used(5), used(9), used(7)}, 1, 4) == std::vector<std::size_t>{1});
  CHECK(choose_victims({used(5), used(9), used(7)}, 2, 4) == std::vector<std::size_t>{1, 2});
  CHECK(choose_victims({used(5), used(9), used(kNever)}, 1, 4) == std::vector<std::size_t>{2});
  std::vector<EvictionCandidate> all = {used(kNever, 3), used(kNever, 1), used(kNever, 2)};
  CHECK(choose_victims(all, 2, 4) == std::vector<std::size_t>{1, 2});
  all[0].is_dead = true;
  CHECK(choose_victims(all, 1, 4) == std::vector<std::size_t>{0});
  CHECK(choose_victims(all, 100, 4).size() == 3);
  CHECK(choose_victims({}, 1, 4).empty());
}

TEST_CASE("of about equally far ones an idle one goes first, and a clean one of equals") {
  std::vector<EvictionCandidate> all = {used(1000), used(999), used(500)};
  all[0].is_busy = true;
  CHECK(choose_victims(all, 1, 0) == std::vector<std::size_t>{1});
  all[1].is_busy = true;  // too near, though idle
  CHECK(choose_victims(all, 1, 0) == std::vector<std::size_t>{0});

  std::vector<EvictionCandidate> equals = {used(kNever, 1), used(kNever, 1)};
  equals[1].is_clean = true;
  CHECK(choose_victims(equals, 1, 2) == std::vector<std::size_t>{1});
}

TEST_CASE("no more is evicted than needed") {
  // The small one came first; the large one alone suffices.
  CHECK(choose_victims({used(9, 0, 10), used(8, 0, 100)}, 90, 1) == std::vector<std::size_t>{1});
  CHECK(choose_victims({used(9, 0, 10), used(8, 0, 100)}, 110, 1) ==
        std::vector<std::size_t>{0, 1});
}

TEST_CASE("ahead of need goes what nobody is known to need, and no more than asked for") {
  using Chosen = std::vector<std::size_t>;
  // Known to be needed, and nowhere else.
  CHECK(choose_spare({used(5), used(9)}, 10, 4).empty());
  CHECK(choose_spare({used(5), used(kNever, 2), used(kNever, 1)}, 10, 4) == Chosen{2, 1});
  CHECK(choose_spare({used(kNever, 2), used(kNever, 1)}, 1, 4) == Chosen{1});
  // One that is too large is left where it is.
  CHECK(choose_spare({used(kNever, 1, 10), used(kNever, 2, 3)}, 9, 4) == Chosen{1});
  std::vector<EvictionCandidate> all = {used(1000), used(999), used(20)};
  for (EvictionCandidate& each : all) each.is_clean = true;
  CHECK(choose_spare(all, 10, 4) == Chosen{0, 1});  // far, and elsewhere too
  all[0].is_busy = true;
  CHECK(choose_spare(all, 10, 4) == Chosen{1});
  all[2].is_dead = true;
  CHECK(choose_spare(all, 1, 4) == Chosen{2});
}

TEST_CASE("far ones go ahead of need if most of what comes next is not there") {
  using Chosen = std::vector<std::size_t>;
  CHECK(choose_far({used(5), used(6), used(7)}, 10, 4).empty());  // nearly all is there
  CHECK(choose_far({used(5), used(20), used(19)}, 10, 4) == Chosen{1, 2});
  CHECK(choose_far({used(5), used(20), used(19)}, 1, 4) == Chosen{1});
  std::vector<EvictionCandidate> all = {used(5), used(20)};
  all[1].is_busy = true;
  CHECK(choose_far(all, 10, 4).empty());
  CHECK(choose_far({}, 10, 4).empty());
}

TEST_CASE("the next use of a value is its first, wherever that is") {
  NextUses uses;
  TensorState read, overwritten, unused;
  uses.add(&read, {.position = 3, .memory = 2});
  uses.add(&read, {.position = 5, .memory = 0});
  uses.add(&overwritten, {.position = 4, .memory = 1, .reads = false, .writes = true});
  CHECK(uses.next_anywhere(&read).position == 3);
  CHECK(uses.next_anywhere(&overwritten).position == kNever);
  CHECK(uses.next_anywhere(&overwritten).is_dead);
  CHECK(uses.next_anywhere(&unused).position == kNever);
  CHECK_FALSE(uses.next_anywhere(&unused).is_dead);
}

TEST_CASE("a memory's set keeps its valid replicas in order") {
  ResidentSet set;
  Replica a, b, c;
  auto bytes = [&] {
    std::vector<std::size_t> found;
    set.for_each([&](const Replica& replica) { found.push_back(replica.bytes); });
    return found;
  };
  a.bytes = 1, b.bytes = 2, c.bytes = 3;
  set.add(a), set.add(b), set.add(c);
  CHECK(bytes() == std::vector<std::size_t>{1, 2, 3});
  set.remove(b);
  CHECK_FALSE(b.is_resident);
  CHECK(bytes() == std::vector<std::size_t>{1, 3});
  set.remove(a);
  set.remove(c);
  CHECK(bytes().empty());
  set.add(b);
  CHECK(bytes() == std::vector<std::size_t>{2});
}
