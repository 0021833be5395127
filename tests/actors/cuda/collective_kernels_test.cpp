// Both ways in which a group of CUDA devices runs a collective operation, against the host's sums.
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <thread>
#include <type_traits>

#include "actors/cuda/device_group.hpp"
#include "actors/cuda/nccl_group.hpp"
#include "actors/cuda/peer_reduce.hpp"
#include "framework/failure.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/random_values.hpp"

namespace weft::cuda {
namespace {

using test::random_values;

using test::DeviceGroup;

#define WEFT_NEEDS_PEERS(devices)                                                      \
  WEFT_NEEDS_GPU();                                                                    \
  if (!test::are_peers(devices)) {                                                     \
    WARN("skipped: it needs " << (devices) << " GPUs that reach each other's memory"); \
    return;                                                                            \
  }                                                                                    \
  static_cast<void>(0)

constexpr std::size_t kCounts[] = {1, 3, 1000, 65'536, 1 << 20, 5'000'001};
constexpr std::size_t kGuard = 64;  // elements on both sides that nobody may write

template <class T>
constexpr ElementKind kind_of() {
  if constexpr (std::is_same_v<T, float>) return ElementKind::F32;
  if constexpr (std::is_same_v<T, double>) return ElementKind::F64;
  if constexpr (std::is_same_v<T, std::int8_t>) return ElementKind::I8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return ElementKind::U8;
  if constexpr (std::is_same_v<T, std::int32_t>) return ElementKind::I32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return ElementKind::U32;
  if constexpr (std::is_same_v<T, std::int64_t>) return ElementKind::I64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return ElementKind::U64;
}

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a + b;
  } else {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(
        static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  }
}

// Elements on each device of a group, between guards, `shift` elements behind an aligned address.
template <class T>
class Arrays {
 public:
  Arrays(DeviceGroup& group, std::size_t count, std::size_t shift = 0)
      : group_(group), count_(count), begin_(kGuard + shift) {
    for (int device = 0; device < group.size(); ++device)
      blocks_.push_back(static_cast<T*>(group.allocate(device, all() * sizeof(T))));
  }
  [[nodiscard]] T* data(int device) const { return blocks_[index(device)] + begin_; }
  void upload(const std::vector<std::vector<T>>& values) {
    for (int device = 0; device < group_.size(); ++device)
      group_.upload(device, data(device), values[index(device)].data(), count_ * sizeof(T));
  }
  [[nodiscard]] std::vector<T> values(int device) const {
    std::vector<T> read(all());
    group_.download(device, read.data(), blocks_[index(device)], all() * sizeof(T));
    const std::vector<unsigned char> untouched(begin_ * sizeof(T), 0xff);
    const std::size_t end = begin_ + count_;
    CHECK(std::memcmp(read.data(), untouched.data(), begin_ * sizeof(T)) == 0);
    CHECK(std::memcmp(read.data() + end, untouched.data(), (all() - end) * sizeof(T)) == 0);
    return {read.begin() + static_cast<std::ptrdiff_t>(begin_),
            read.begin() + static_cast<std::ptrdiff_t>(end)};
  }

 private:
  static std::size_t index(int device) { return static_cast<std::size_t>(device); }
  [[nodiscard]] std::size_t all() const { return begin_ + count_ + kGuard; }

  DeviceGroup& group_;
  std::size_t count_, begin_;
  std::vector<T*> blocks_;
};

template <class T>
std::vector<CollectivePart> parts_of(const DeviceGroup& group, const Arrays<T>& from,
                                     const Arrays<T>& to) {
  std::vector<CollectivePart> parts;
  for (int device = 0; device < group.size(); ++device)
    parts.push_back({from.data(device), to.data(device), group.stream(device)});
  return parts;
}

template <class T>
std::vector<std::vector<T>> random_parts(const DeviceGroup& group, std::size_t count) {
  std::vector<std::vector<T>> parts;
  for (int device = 0; device < group.size(); ++device)
    parts.push_back(random_values<T>(count, 7 * count + static_cast<std::size_t>(device)));
  return parts;
}

// In the order of the members.
template <class T>
std::vector<T> sum_of(const std::vector<std::vector<T>>& parts) {
  std::vector<T> sum = parts[0];
  for (std::size_t member = 1; member < parts.size(); ++member)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = plus(sum[i], parts[member][i]);
  return sum;
}

template <class T>
bool are_equal_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

std::vector<int> first_devices(int count) {
  std::vector<int> ordinals(static_cast<std::size_t>(count));
  std::iota(ordinals.begin(), ordinals.end(), 0);
  return ordinals;
}

// Sizes of groups that this machine has the devices for.
std::vector<int> group_sizes() {
  std::vector<int> sizes;
  for (const int size : {2, 3, 4, 8})
    if (test::are_peers(size)) sizes.push_back(size);
  return sizes;
}

using AllReduce = std::function<void(std::span<const CollectivePart>, std::size_t, ElementKind)>;

template <class T>
void check_all_reduce(DeviceGroup& group, const AllReduce& all_reduce, bool is_ordered) {
  for (const std::size_t count : kCounts)
    for (const std::size_t shift : {0, 1})
      for (const bool in_place : {true, false}) {
        INFO("count " << count << ", shift " << shift << ", in place " << in_place << ", kind "
                      << static_cast<int>(kind_of<T>()) << ", devices " << group.size());
        DeviceGroup memory(group.size());
        const auto values = random_parts<T>(group, count);
        Arrays<T> from(memory, count, shift), other(memory, in_place ? 0 : count, shift);
        const Arrays<T>& to = in_place ? from : other;
        from.upload(values);
        all_reduce(parts_of(group, from, to), count, kind_of<T>());
        for (int device = 0; device < group.size(); ++device) group.synchronise(device);
        const std::vector<T> wanted = sum_of(values), first = to.values(0);
        if (is_ordered || std::is_integral_v<T> || group.size() == 2) {
          CHECK(are_equal_bits(first, wanted));
        } else {
          std::size_t wrong = 0;
          for (std::size_t i = 0; i < count; ++i)
            wrong += !(std::abs(static_cast<double>(first[i]) - static_cast<double>(wanted[i])) <=
                       8 * group.size() * static_cast<double>(std::numeric_limits<T>::epsilon()));
          CHECK(wrong == 0);
        }
        for (int device = 1; device < group.size(); ++device)
          CHECK(are_equal_bits(to.values(device), first));
        if (!in_place)
          for (int device = 0; device < group.size(); ++device)
            CHECK(are_equal_bits(from.values(device), values[static_cast<std::size_t>(device)]));
      }
}

TEST_CASE("peer sums are those of the members in order, to the bit, on all of them",
          "[cuda][gpu]") {
  WEFT_NEEDS_PEERS(2);
  for (const int size : group_sizes()) {
    DeviceGroup group(size);
    PeerReduce reduce(first_devices(size));
    const AllReduce all_reduce = [&](auto... arguments) { reduce.all_reduce(arguments...); };
    check_all_reduce<float>(group, all_reduce, true);
    check_all_reduce<double>(group, all_reduce, true);
    check_all_reduce<std::int32_t>(group, all_reduce, true);
    check_all_reduce<std::uint32_t>(group, all_reduce, true);
    check_all_reduce<std::int64_t>(group, all_reduce, true);
    check_all_reduce<std::uint64_t>(group, all_reduce, true);
  }
}

TEST_CASE("ten thousand peer sums of changing sizes follow each other without a pause",
          "[cuda][gpu]") {
  WEFT_NEEDS_PEERS(2);
  constexpr std::size_t kCalls = 10'000, kSource = 200'000;
  for (const int size : group_sizes()) {
    INFO("devices " << size);
    DeviceGroup group(size);
    PeerReduce reduce(first_devices(size));
    std::mt19937_64 random(5);
    struct Call {
      std::size_t count, from, to;
    };
    std::vector<Call> calls;
    std::size_t total = 0;
    for (std::size_t i = 0; i < kCalls; ++i) {
      std::size_t count = 1 + random() % 300;
      if (i % 25 == 7) count = 66'000 + random() % 4'000;  // above 256 KB
      if (i % 20 == 4) count = 1 + random() % 65'536;
      // Every other call begins at multiples of 16 bytes.
      const std::size_t step = i % 2 == 1 ? 4 : 1;
      total = (total + step - 1) / step * step;
      calls.push_back({count, random() % (kSource - count) / step * step, total});
      total += count;
    }
    const auto values = random_parts<float>(group, kSource);
    Arrays<float> source(group, kSource), log(group, total);
    source.upload(values);
    for (std::size_t i = 0; i < kCalls; ++i) {
      // One member, then another, is late.
      if (i % 37 == 0) group.delay(static_cast<int>(i / 37 % static_cast<std::size_t>(size)), 40);
      std::vector<CollectivePart> parts;
      for (int device = 0; device < size; ++device)
        parts.push_back({source.data(device) + calls[i].from, log.data(device) + calls[i].to,
                         group.stream(device)});
      reduce.all_reduce(parts, calls[i].count, ElementKind::F32);
    }
    const std::vector<float> sums = sum_of(values);
    for (int device = 0; device < size; ++device) {
      const std::vector<float> read = log.values(device);
      std::size_t wrong = 0, first = kCalls;
      for (std::size_t i = 0; i < kCalls; ++i)
        if (std::memcmp(&read[calls[i].to], &sums[calls[i].from], calls[i].count * sizeof(float)) !=
            0) {
          ++wrong;
          first = std::min(first, i);
        }
      INFO("device " << device << ", first wrong call " << first);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("peer sums in place feed the next ones", "[cuda][gpu]") {
  WEFT_NEEDS_PEERS(2);
  constexpr int kRounds = 20;  // sums double in each: exact in a float
  for (const std::size_t count : {std::size_t{513}, std::size_t{300'000}}) {
    INFO("count " << count);
    DeviceGroup group(2);
    PeerReduce reduce({0, 1});
    std::vector<std::vector<float>> values(2, std::vector<float>(count));
    for (std::size_t i = 0; i < count; ++i) {
      values[0][i] = static_cast<float>(i % 7);
      values[1][i] = static_cast<float>(i % 5);
    }
    Arrays<float> data(group, count);
    data.upload(values);
    for (int round = 0; round < kRounds; ++round)
      reduce.all_reduce(parts_of(group, data, data), count, ElementKind::F32);
    std::vector<float> wanted = sum_of(values);
    for (float& value : wanted) value *= static_cast<float>(1 << (kRounds - 1));
    CHECK(data.values(0) == wanted);
    CHECK(data.values(1) == wanted);
  }
}

TEST_CASE("captured peer sums may be launched again and mixed with others", "[cuda][gpu]") {
  WEFT_NEEDS_PEERS(2);
  constexpr std::size_t kSmall = 1000, kLarge = 100'000;
  DeviceGroup group(2);
  PeerReduce reduce({0, 1});
  const auto values = random_parts<float>(group, kLarge);
  Arrays<float> from(group, kLarge), small(group, kSmall), large(group, kLarge);
  from.upload(values);
  test::CapturedStream first(group, 0), second(group, 1);
  reduce.all_reduce(parts_of(group, from, small), kSmall, ElementKind::F32);
  reduce.all_reduce(parts_of(group, from, large), kLarge, ElementKind::F32);
  first.end();
  second.end();
  first.instantiate();
  second.instantiate();
  const std::vector<float> sums = sum_of(values);
  const std::vector<float> head(sums.begin(), sums.begin() + kSmall);
  for (int round = 0; round < 5; ++round) {
    first.launch();
    second.launch();
    for (int device = 0; device < 2; ++device) {
      CHECK(small.values(device) == head);
      CHECK(large.values(device) == sums);
    }
    reduce.all_reduce(parts_of(group, from, small), 10 + static_cast<std::size_t>(round),
                      ElementKind::F32);
  }
}

bool ends_within(const DeviceGroup& group, int device, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!group.is_idle(device))
    if (std::chrono::steady_clock::now() > end) return false;
  return true;
}

TEST_CASE("aborted peer sums do not wait for a late member", "[cuda][gpu]") {
  WEFT_NEEDS_PEERS(2);
  for (const std::size_t count : {std::size_t{100}, std::size_t{300'000}}) {
    INFO("count " << count);
    DeviceGroup group(2);
    PeerReduce reduce({0, 1});
    Arrays<float> data(group, count);
    data.upload(random_parts<float>(group, count));
    group.delay(1, 2'000'000);
    reduce.all_reduce(parts_of(group, data, data), count, ElementKind::F32);
    CHECK_FALSE(group.is_idle(0));
    reduce.abort();
    CHECK(ends_within(group, 0, std::chrono::seconds(1)));
    CHECK_FALSE(group.is_idle(1));
    CHECK(ends_within(group, 1, std::chrono::seconds(20)));
    CHECK_THROWS_AS(reduce.all_reduce(parts_of(group, data, data), count, ElementKind::F32),
                    DeviceError);
  }
}

TEST_CASE("peer sums say what they do not take", "[cuda][gpu]") {
  CHECK_THROWS_AS(PeerReduce({0}), UsageError);
  CHECK_THROWS_AS(PeerReduce({0, 0}), UsageError);
  CHECK_THROWS_AS(PeerReduce(first_devices(9)), UsageError);
  WEFT_NEEDS_PEERS(2);
  DeviceGroup group(2);
  PeerReduce reduce({0, 1});
  for (const auto kind : {ElementKind::I8, ElementKind::U8, ElementKind::F16, ElementKind::BF16})
    CHECK_FALSE(reduce.takes(1, kind));
  for (const auto kind : {ElementKind::I32, ElementKind::U32, ElementKind::I64, ElementKind::U64,
                          ElementKind::F32, ElementKind::F64})
    CHECK(reduce.takes(1, kind));
  Arrays<float> data(group, 4);
  const auto parts = parts_of(group, data, data);
  CHECK_THROWS_AS(reduce.all_reduce(parts, 4, ElementKind::F16), UsageError);
  CHECK_THROWS_AS(reduce.all_reduce(std::span(parts).first(1), 4, ElementKind::F32), UsageError);
  reduce.all_reduce(parts, 0, ElementKind::F32);  // nothing, and no wait
  CHECK(group.is_idle(0));
}

#if WEFT_HAVE_NCCL

TEST_CASE("NCCL sums a group's elements of each kind", "[cuda][gpu]") {
  WEFT_NEEDS_PEERS(2);
  for (const int size : group_sizes()) {
    DeviceGroup group(size);
    NcclGroup nccl(first_devices(size));
    const AllReduce all_reduce = [&](auto... arguments) { nccl.all_reduce(arguments...); };
    check_all_reduce<float>(group, all_reduce, false);
    check_all_reduce<double>(group, all_reduce, false);
    check_all_reduce<std::int8_t>(group, all_reduce, false);
    check_all_reduce<std::uint8_t>(group, all_reduce, false);
    check_all_reduce<std::int32_t>(group, all_reduce, false);
    check_all_reduce<std::uint32_t>(group, all_reduce, false);
    check_all_reduce<std::int64_t>(group, all_reduce, false);
    check_all_reduce<std::uint64_t>(group, all_reduce, false);
    CHECK(nccl.asynchronous_error().empty());
  }
}

TEST_CASE("NCCL sums numbers of 16 bits", "[cuda][gpu]") {
  WEFT_NEEDS_PEERS(2);
  constexpr std::size_t kCount = 10'001;
  DeviceGroup group(2);
  NcclGroup nccl({0, 1});
  // 1 + 2 = 3 and 2 + 2 = 4, by their bits.
  struct Case {
    ElementKind kind;
    std::uint16_t one, two, three, four;
  };
  for (const Case& bits : {Case{ElementKind::F16, 0x3c00, 0x4000, 0x4200, 0x4400},
                           Case{ElementKind::BF16, 0x3f80, 0x4000, 0x4040, 0x4080}}) {
    std::vector<std::vector<std::uint16_t>> values(2, std::vector(kCount, bits.two));
    std::vector<std::uint16_t> wanted(kCount, bits.four);
    for (std::size_t i = 0; i < kCount; i += 3) {
      values[0][i] = bits.one;
      wanted[i] = bits.three;
    }
    Arrays<std::uint16_t> data(group, kCount);
    data.upload(values);
    nccl.all_reduce(parts_of(group, data, data), kCount, bits.kind);
    CHECK(data.values(0) == wanted);
    CHECK(data.values(1) == wanted);
  }
}

TEST_CASE("NCCL hands the root's elements to all", "[cuda][gpu]") {
  WEFT_NEEDS_PEERS(2);
  DeviceGroup group(2);
  NcclGroup nccl({0, 1});
  for (const std::size_t count : kCounts)
    for (const std::size_t root : {0, 1}) {
      INFO("count " << count << ", root " << root);
      DeviceGroup memory(2);
      const auto values = random_parts<std::int64_t>(group, count);
      Arrays<std::int64_t> from(memory, count), to(memory, count);
      from.upload(values);
      auto parts = parts_of(group, from, to);
      parts[1 - root].from = nullptr;
      nccl.broadcast(parts, count, ElementKind::I64, root);
      nccl.broadcast(parts_of(group, from, from), count, ElementKind::I64, root);
      for (int device = 0; device < 2; ++device) {
        group.synchronise(device);
        CHECK(to.values(device) == values[root]);
        CHECK(from.values(device) == values[root]);
      }
    }
  CHECK_THROWS_AS(nccl.broadcast({}, 1, ElementKind::F32, 2), UsageError);
}

TEST_CASE("NCCL scatters sums and gathers parts", "[cuda][gpu]") {
  WEFT_NEEDS_PEERS(2);
  DeviceGroup group(2);
  NcclGroup nccl({0, 1});
  for (const std::size_t count : kCounts) {
    INFO("count " << count);
    DeviceGroup memory(2);
    const auto values = random_parts<float>(group, 2 * count);
    Arrays<float> from(memory, 2 * count), shares(memory, count), all(memory, 2 * count);
    from.upload(values);
    nccl.reduce_scatter(parts_of(group, from, shares), count, ElementKind::F32);
    nccl.all_gather(parts_of(group, shares, all), count, ElementKind::F32);
    const std::vector<float> sums = sum_of(values);
    for (int device = 0; device < 2; ++device) {
      group.synchronise(device);
      const auto begin = sums.begin() + device * static_cast<std::ptrdiff_t>(count);
      CHECK(shares.values(device) ==
            std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count)));
      CHECK(all.values(device) == sums);
    }
  }
}

TEST_CASE("NCCL and peer sums take turns on the same streams", "[cuda][gpu]") {
  WEFT_NEEDS_PEERS(2);
  constexpr std::size_t kCalls = 1000, kSource = 100'000;
  DeviceGroup group(2);
  NcclGroup nccl({0, 1});
  PeerReduce reduce({0, 1});
  const auto values = random_parts<float>(group, kSource);
  std::mt19937_64 random(9);
  std::vector<std::size_t> counts, begins{0};
  for (std::size_t i = 0; i < kCalls; ++i) {
    counts.push_back(i % 20 == 0 ? 80'000 : 1 + random() % 2000);
    begins.push_back(begins.back() + counts.back());
  }
  Arrays<float> source(group, kSource), log(group, begins.back());
  source.upload(values);
  for (std::size_t i = 0; i < kCalls; ++i) {
    std::vector<CollectivePart> parts;
    for (int device = 0; device < 2; ++device)
      parts.push_back(
          {source.data(device) + i, log.data(device) + begins[i], group.stream(device)});
    if (i % 3 == 1)
      nccl.all_reduce(parts, counts[i], ElementKind::F32);
    else
      reduce.all_reduce(parts, counts[i], ElementKind::F32);
  }
  const std::vector<float> sums = sum_of(values);
  for (int device = 0; device < 2; ++device) {
    const std::vector<float> read = log.values(device);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kCalls; ++i)
      wrong += std::memcmp(&read[begins[i]], &sums[i], counts[i] * sizeof(float)) != 0;
    CHECK(wrong == 0);
  }
}

TEST_CASE("an aborted NCCL group ends what is enqueued and takes no more", "[cuda][gpu]") {
  WEFT_NEEDS_PEERS(2);
  DeviceGroup group(2);
  NcclGroup nccl({0, 1});
  Arrays<float> data(group, 5'000'000);
  data.upload(random_parts<float>(group, 5'000'000));
  const auto parts = parts_of(group, data, data);
  for (int i = 0; i < 100; ++i) nccl.all_reduce(parts, 5'000'000, ElementKind::F32);
  nccl.abort();
  CHECK(ends_within(group, 0, std::chrono::seconds(20)));
  CHECK(ends_within(group, 1, std::chrono::seconds(20)));
  CHECK_THROWS_AS(nccl.all_reduce(parts, 1, ElementKind::F32), DeviceError);
  nccl.abort();  // again: nothing happens
}

TEST_CASE("an NCCL group says what it does not take", "[cuda][gpu]") {
  CHECK_THROWS_AS(NcclGroup({}), UsageError);
  CHECK_THROWS_AS(NcclGroup({0, 0}), UsageError);
  WEFT_NEEDS_PEERS(2);
  CHECK_THROWS_AS(NcclGroup({0, 99}), DeviceError);
  NcclGroup nccl({0, 1});
  CHECK_THROWS_AS(nccl.all_reduce({}, 1, ElementKind::F32), UsageError);
}

#endif

}  // namespace
}  // namespace weft::cuda
