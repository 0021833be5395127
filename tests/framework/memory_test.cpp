#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "framework/memory_pool.hpp"
#include "framework/shape.hpp"
#include "framework/small_vector.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace weft;

TEST_CASE("sizes are rounded to steps of 64 bytes, then of an eighth", "[framework][memory]") {
  CHECK(MemoryPool::round_up(0) == 0);
  CHECK(MemoryPool::round_up(1) == 64);
  CHECK(MemoryPool::round_up(64) == 64);
  CHECK(MemoryPool::round_up(65) == 128);
  CHECK(MemoryPool::round_up(1024) == 1024);
  CHECK(MemoryPool::round_up(1025) == 1152);
  CHECK(MemoryPool::round_up(2048) == 2048);
  CHECK(MemoryPool::round_up(2049) == 2304);
  for (std::size_t bytes = 1; bytes < (std::size_t{1} << 62); bytes = bytes * 3 / 2 + 1) {
    const std::size_t rounded = MemoryPool::round_up(bytes);
    REQUIRE(rounded >= bytes);
    REQUIRE(rounded % 64 == 0);
    REQUIRE(rounded <= bytes + std::max<std::size_t>(64, bytes / 8 + 64));
    REQUIRE(MemoryPool::round_up(rounded) == rounded);  // a block fits what it was made for
  }
}

TEST_CASE("a budget is kept, and what is set aside comes back exactly", "[framework][memory]") {
  MemoryPool pool("mem1", 1000, host_backing(false));
  CHECK(pool.try_reserve(640));
  CHECK_FALSE(pool.try_reserve(400));  // 448 rounded
  CHECK(pool.try_reserve(320));
  CHECK(pool.reserved() == 960);
  CHECK_FALSE(pool.try_reserve(2000));
  CHECK_FALSE(pool.try_reserve(std::numeric_limits<std::size_t>::max() / 4));
  pool.force_reserve(500);
  CHECK(pool.reserved() == 960 + 512);
  CHECK(pool.peak_reserved() == 960 + 512);
  CHECK_FALSE(pool.try_reserve(1));
  for (std::size_t bytes : {640u, 320u, 500u}) pool.unreserve(bytes);
  CHECK(pool.reserved() == 0);
  CHECK(pool.try_reserve(0));
  CHECK(pool.try_reserve(1000 - 40));
}

TEST_CASE("blocks are aligned, counted, reused by size and poisoned", "[framework][memory]") {
  MemoryPool pool("gpu0", 1 << 20, host_backing(true));
  CHECK(pool.allocate(0) == nullptr);
  pool.free(nullptr, 100);
  auto* data = static_cast<float*>(pool.allocate(1000));
  REQUIRE(data);
  CHECK(reinterpret_cast<std::uintptr_t>(data) % 64 == 0);
  CHECK(pool.live_blocks() == 1);
  for (int i = 0; i < 250; ++i) REQUIRE(std::isnan(data[i]));
  std::memset(data, 0, 1000);
  pool.free(data, 1000);
  CHECK(pool.live_blocks() == 0);
  auto* again = static_cast<float*>(pool.allocate(990));  // the same rounded size
  CHECK(again == data);
  for (int i = 0; i < 247; ++i) REQUIRE(std::isnan(again[i]));
  pool.free(again, 990);
}

TEST_CASE("pooled blocks go back to an engine that has none left", "[framework][memory]") {
  int out = 0;
  constexpr int kMost = 2;
  MemoryPool::Backing backing;
  backing.allocate = [&](std::size_t bytes) -> void* {
    if (out == kMost) return nullptr;
    ++out;
    return std::malloc(bytes);
  };
  backing.free = [&](void* data, std::size_t) {
    --out;
    std::free(data);
  };
  {
    MemoryPool pool("gpu0", 1 << 20, backing);
    void* a = pool.allocate(64);
    void* b = pool.allocate(64);
    CHECK(pool.allocate(64) == nullptr);
    pool.free(a, 64);
    pool.free(b, 64);
    CHECK(out == 2);  // pooled
    void* c = pool.allocate(128);
    CHECK(c);
    CHECK(out == 1);
    pool.free(c, 128);
  }
  CHECK(out == 0);
}

TEST_CASE("several threads share a budget without exceeding it", "[framework][memory]") {
  MemoryPool pool("mem0", 64 * 10, host_backing(false));
  std::atomic<int> exceeded{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        if (!pool.try_reserve(64 * 3)) continue;
        void* block = pool.allocate(64 * 3);
        exceeded += pool.reserved() > pool.budget();
        pool.free(block, 64 * 3);
        pool.unreserve(64 * 3);
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(pool.reserved() == 0);
  CHECK(pool.live_blocks() == 0);
  CHECK(exceeded == 0);
  CHECK(pool.peak_reserved() <= 640);
}

TEST_CASE("shapes count elements beyond 32 bits", "[framework][shape]") {
  CHECK(Shape().size() == 1);
  CHECK(Shape().to_string() == "scalar");
  CHECK(Shape{0}.size() == 0);
  CHECK(Shape{5, 0, 7}.size() == 0);
  const Shape big{1 << 16, 1 << 15};
  CHECK(big.size() == std::int64_t{1} << 31);
  CHECK(big.to_string() == "65536 x 32768");
  CHECK(Shape{(std::int64_t{1} << 31) - 1}.size() == 2147483647);
  CHECK(Shape{(std::int64_t{1} << 31) + 1}.size() == 2147483649);
  CHECK(Shape{1ll << 31, 1ll << 30}.size() == std::int64_t{1} << 61);
  CHECK(big == Shape{65536, 32768});
  CHECK_FALSE(big == Shape{32768, 65536});
  CHECK_FALSE(Shape{4} == Shape{4, 1});
}

TEST_CASE("shapes that cannot be are refused", "[framework][shape]") {
  CHECK_THROWS_AS((Shape{-1}), UsageError);
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1}), UsageError);
  CHECK_THROWS_AS((Shape{1ll << 31, 1ll << 31}), UsageError);
  CHECK_THROWS_AS((Shape{std::numeric_limits<std::int64_t>::max()}), UsageError);
  CHECK(test::has(test::thrown<UsageError>([] { Shape{3, -7}; }), "-7"));
}

TEST_CASE("a small vector grows out of its place", "[framework][small_vector]") {
  SmallVector<int, 4> numbers;
  CHECK(numbers.empty());
  for (int i = 0; i < 1000; ++i) {
    numbers.push_back(i);
    REQUIRE(numbers.size() == static_cast<std::uint32_t>(i + 1));
  }
  int expected = 0;
  for (int n : numbers) REQUIRE(n == expected++);
  numbers.resize_down(3);
  numbers.pop_back();
  CHECK(numbers.size() == 2);
  CHECK(numbers[1] == 1);
  numbers.clear();
  CHECK(numbers.empty());
}
