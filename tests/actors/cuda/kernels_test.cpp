// The element-wise and learning kernels of a CUDA device against their definitions.
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "actors/cuda/device_sum.hpp"
#include "actors/cuda/kernels/elementwise.hpp"
#include "actors/cuda/kernels/learning.hpp"
#include "actors/cuda/plain_cuda.hpp"
#include "framework/device.hpp"
#include "framework/failure.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/random_values.hpp"

namespace weft::cuda {
namespace {

using test::DeviceArray;
using test::PlainCuda;
using test::random_values;

constexpr std::size_t kCounts[] = {0, 1, 3, 4, 5, 255, 1000, 1025, 3'000'001};
constexpr std::size_t kShifts[] = {0, 1, 4};  // elements behind an aligned address

// `body(count, shift)` for every size and alignment.
template <class Body>
void for_sizes(const Body& body) {
  for (const std::size_t count : kCounts)
    for (const std::size_t shift : kShifts) {
      INFO("count " << count << " shift " << shift);
      body(count, shift);
    }
}

TEST_CASE("fill gives every element the value and touches no other", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  for_sizes([&](std::size_t count, std::size_t shift) {
    const DeviceArray<float> x(count, shift);
    fill(cuda.stream(), x.data(), count, 2.5f);
    CHECK(x.values() == std::vector<float>(count, 2.5f));
  });
}

TEST_CASE("uniform gives the host's numbers to the bit", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  for_sizes([&](std::size_t count, std::size_t shift) {
    const float low = -0.7f, high = 1.3f;
    const DeviceArray<float> x(count, shift);
    uniform(cuda.stream(), x.data(), count, 42, low, high);
    const auto is = x.values();
    std::vector<float> wanted(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t z = 42 + (i + 1) * 0x9e3779b97f4a7c15ull;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
      z ^= z >> 31;
      const volatile float product = (high - low) * (static_cast<float>(z >> 40) * 0x1p-24f);
      wanted[i] = low + product;  // rounded twice
    }
    CHECK(std::memcmp(is.data(), wanted.data(), count * sizeof(float)) == 0);
  });
}

template <class T>
void check_sum(PlainCuda& cuda) {
  for_sizes([&](std::size_t count, std::size_t shift) {
    const auto a = random_values<T>(count, 1), b = random_values<T>(count, 2);
    const DeviceArray<T> into(a, shift), from(b, shift);
    device_sum_of(detail::add_elements<T>, sizeof(T), "test")(cuda.stream(), into.data(),
                                                              from.data(), count);
    std::vector<T> wanted(count);
    for (std::size_t i = 0; i < count; ++i) wanted[i] = static_cast<T>(a[i] + b[i]);
    CHECK(into.values() == wanted);
  });
}

TEST_CASE("sums of every element type equal the host's", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  check_sum<float>(cuda);
  check_sum<double>(cuda);
  check_sum<std::int8_t>(cuda);
  check_sum<std::uint8_t>(cuda);
  check_sum<std::int16_t>(cuda);
  check_sum<std::uint16_t>(cuda);
  check_sum<std::uint32_t>(cuda);
  check_sum<std::uint64_t>(cuda);
  // Signed sums that do not overflow: on the host that would be undefined.
  for (const std::size_t count : kCounts) {
    std::vector<std::int64_t> a(count, -5), b(count, 1'000'000'000'000);
    const DeviceArray<std::int64_t> into(a), from(b);
    device_sum_of(detail::add_elements<long long>, 8, "test")(cuda.stream(), into.data(),
                                                              from.data(), count);
    CHECK(into.values() == std::vector<std::int64_t>(count, 999'999'999'995));
    std::vector<std::int32_t> c(count, -5), d(count, 7);
    const DeviceArray<std::int32_t> into32(c), from32(d);
    device_sum_of(detail::add_elements<int>, 4, "test")(cuda.stream(), into32.data(), from32.data(),
                                                        count);
    CHECK(into32.values() == std::vector<std::int32_t>(count, 2));
  }
}

struct Pair {
  double a, b;
  Pair& operator+=(const Pair& other) {
    a += other.a;
    b += other.b;
    return *this;
  }
};

TEST_CASE("a sum that no device can do is refused with what can be done", "[cuda]") {
  CHECK_THROWS_WITH(device_sum_of(detail::add_elements<Pair>, sizeof(Pair), "sum_partials"),
                    contains_text("sum_partials: no CUDA device adds up") &&
                        contains_text("16 bytes") && contains_text("socket"));
}

TEST_CASE("a copy moves all bytes, small or large, however they lie", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  for (const std::size_t count : {0, 1, 15, 16, 17, 4096, 70'001, 5'000'003})
    for (const std::size_t shift : {0, 1, 16}) {
      INFO("count " << count << " shift " << shift);
      const auto a = random_values<std::uint8_t>(count, 1);
      const DeviceArray<std::uint8_t> from(a), to(count, shift);
      copy(cuda.stream(), to.data(), from.data(), count);
      CHECK(to.values() == a);
    }
}

TEST_CASE("floats become half as wide and back with the rounding to nearest", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  for_sizes([&](std::size_t count, std::size_t shift) {
    const auto a = random_values<float>(count, 1);
    const DeviceArray<float> from(a, shift), back(count, shift);
    const DeviceArray<std::uint16_t> narrow(count, shift);
    float_to_bf16(cuda.stream(), narrow.data(), from.data(), count);
    bf16_to_float(cuda.stream(), back.data(), narrow.data(), count);
    cuda.synchronise();
    auto is = back.values();
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &a[i], 4);
      bits += 0x7fff + (bits >> 16 & 1);
      bits &= 0xffff0000u;
      float wanted = 0;
      std::memcpy(&wanted, &bits, 4);
      if (is[i] != wanted) FAIL("bf16 of " << a[i] << " is " << is[i]);
    }
    float_to_f16(cuda.stream(), narrow.data(), from.data(), count);
    f16_to_float(cuda.stream(), back.data(), narrow.data(), count);
    cuda.synchronise();
    is = back.values();
    for (std::size_t i = 0; i < count; ++i)
      if (!(std::abs(is[i] - a[i]) <= std::abs(a[i]) * 0x1p-11f + 0x1p-25f))
        FAIL("f16 of " << a[i] << " is " << is[i]);
  });
}

TEST_CASE("the rectifier and a step of descent equal the host's", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  for_sizes([&](std::size_t count, std::size_t shift) {
    const auto a = random_values<float>(count, 1), g = random_values<float>(count, 2),
               speed = random_values<float>(count, 3);
    const DeviceArray<float> from(a, shift), w(a, shift), gradient(g, shift), v(speed, shift),
        rectified(count, shift);
    relu(cuda.stream(), rectified.data(), from.data(), count);
    sgd(cuda.stream(), w.data(), gradient.data(), count, 0.1f);
    cuda.synchronise();
    const auto r = rectified.values(), plain = w.values();
    sgd(cuda.stream(), w.data(), v.data(), gradient.data(), count, 0.1f, 0.9f);
    cuda.synchronise();
    const auto after = w.values(), faster = v.values();
    double worst = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (r[i] != std::max(a[i], 0.0f)) FAIL("relu of " << a[i] << " is " << r[i]);
      worst = std::max(worst, std::abs(plain[i] - (double(a[i]) - 0.1f * double(g[i]))));
      const double wanted = 0.9f * double(speed[i]) + g[i];
      worst = std::max(worst, std::abs(faster[i] - wanted));
      worst = std::max(worst, std::abs(after[i] - (plain[i] - 0.1f * wanted)));
    }
    CHECK(worst < 5e-7);
  });
}

TEST_CASE("pictures become rows of numbers with a one and zeros behind", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  for (const std::size_t pixels : {1, 3, 64, 784})
    for (const std::size_t more : {1, 2, 8})
      for (const bool with_order : {false, true}) {
        INFO("pixels " << pixels << " more " << more << " order " << with_order);
        // With an order labels lie apart, else behind the pixels of their row.
        const std::size_t rows = 37, width = pixels + more, samples = 50;
        const std::size_t pitch = with_order ? pixels : (pixels + 16) / 16 * 16;
        const auto images = random_values<std::uint8_t>(samples * pitch, 1);
        const auto offsets = random_values<float>(pixels, 2);
        const auto labels = random_values<std::uint8_t>(samples, 3);
        std::vector<std::uint32_t> order(rows);
        for (std::size_t r = 0; r < rows; ++r)
          order[r] = static_cast<std::uint32_t>(with_order ? (r * 31 + 7) % samples : r);
        const DeviceArray<std::uint8_t> from(images), from_labels(labels), y(rows);
        const DeviceArray<float> base(offsets), x(rows * width);
        const DeviceArray<std::uint32_t> device_order(order);
        ByteRows source{from.data(), pitch, from.data() + pixels, pitch, nullptr};
        if (with_order) source = {from.data(), pitch, from_labels.data(), 1, device_order.data()};
        normalise(cuda.stream(), x.data(), y.data(), rows, pixels, width, source, 0.25f,
                  base.data());
        cuda.synchronise();
        const auto is = x.values();
        const auto ys = y.values();
        for (std::size_t r = 0; r < rows; ++r) {
          REQUIRE(ys[r] == (with_order ? labels[order[r]] : images[r * pitch + pixels]));
          for (std::size_t p = 0; p < width; ++p) {
            const double wanted =
                p < pixels ? 0.25 * images[order[r] * pitch + p] + offsets[p] : p == pixels;
            REQUIRE(std::abs(is[r * width + p] - wanted) < 1e-5);
          }
        }
      }
}

TEST_CASE("softmax and loss equal their definition, the same bits each time", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  for (const std::size_t classes : {1, 2, 10, 33, 200})
    for (const std::size_t rows : {0, 1, 7, 1000}) {
      INFO("classes " << classes << " rows " << rows);
      const auto logits = random_values<float>(rows * classes, 1);
      std::vector<std::uint8_t> labels(rows);
      for (std::size_t r = 0; r < rows; ++r) labels[r] = static_cast<std::uint8_t>(r % classes);
      const DeviceArray<std::uint8_t> y(labels);
      std::vector<double> first;
      for (int repeat = 0; repeat < 3; ++repeat) {
        const DeviceArray<float> z(logits);
        const DeviceArray<double> score(std::vector<double>{0.5, 3});
        softmax_cross_entropy(cuda.stream(), z.data(), rows, classes, y.data(), 0.5f, score.data());
        cuda.synchronise();
        const auto is = z.values();
        const auto sums = score.values();
        if (repeat == 0) first = sums;
        CHECK(sums == first);
        double loss = 0.5, right = 3;
        for (std::size_t r = 0; r < rows; ++r) {
          const float* row = logits.data() + r * classes;
          double whole = 0;
          for (std::size_t c = 0; c < classes; ++c) whole += std::exp(double(row[c]));
          loss += std::log(whole) - row[labels[r]];
          right += std::max_element(row, row + classes) == row + labels[r];
          for (std::size_t c = 0; c < classes; ++c) {
            const double wanted = 0.5 * (std::exp(double(row[c])) / whole - (c == labels[r]));
            REQUIRE(std::abs(is[r * classes + c] - wanted) < 1e-6);
          }
        }
        CHECK(std::abs(sums[0] - loss) < 1e-6 * (1 + loss));
        CHECK(sums[1] == right);
      }
    }
}

}  // namespace
}  // namespace weft::cuda
