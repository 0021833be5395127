#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

#include "apps/bench/collectives.hpp"
#include "apps/bench/device_stopwatch.hpp"

namespace weft::bench {
namespace {

constexpr std::size_t kCheckedElements = 4096;
constexpr double kRunSeconds = 0.03;               // a run takes about this long …
constexpr std::uint32_t kFewest = 2, kMost = 300;  // … or so many operations

bool has_results(CollectiveKind kind) {
  return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllGather;
}

// The tensors of one case and the operation on them.
class Operation {
 public:
  Operation(const Runtime& runtime, const Collective& collective, CollectiveKind kind,
            std::size_t bytes)
      : collective_(collective), kind_(kind) {
    const auto& members = collective.members();
    const auto n = static_cast<std::int64_t>(members.size());
    const auto all = static_cast<std::int64_t>(bytes / sizeof(float));
    const std::int64_t own = kind == CollectiveKind::AllGather ? all / n : all;
    for (std::size_t m = 0; m < members.size(); ++m) {
      data_.push_back(runtime.uniform({own}, members[m], m + 1));
      if (has_results(kind))
        results_.push_back(
            members[m].tensor<float>({kind == CollectiveKind::AllGather ? all : own / n}));
    }
  }

  [[nodiscard]] Future start() const {
    switch (kind_) {
      case CollectiveKind::AllReduce:
        return collective_.all_reduce(data_);
      case CollectiveKind::Broadcast:
        return collective_.broadcast(data_);
      case CollectiveKind::ReduceScatter:
        return collective_.reduce_scatter(data_, results_);
      case CollectiveKind::AllGather:
        return collective_.all_gather(data_, results_);
    }
    return {};
  }

  /// Runs it once, on the values that the constructor gave, and looks at the result.
  void check() const {
    std::vector<HostArray<float>> before;
    for (const auto& tensor : data_) before.push_back(tensor.to_host());
    start().wait();
    for (std::size_t m = 0; m < data_.size(); ++m)
      check_member(m, before, (has_results(kind_) ? results_ : data_)[m].to_host());
  }

 private:
  void check_member(std::size_t m, const std::vector<HostArray<float>>& before,
                    const HostArray<float>& after) const {
    std::vector<std::span<const float>> from;
    for (const auto& array : before) from.push_back(array.span());
    const auto got = after.span();
    std::mt19937_64 random(m);
    const std::size_t looks = std::min(got.size(), kCheckedElements);
    for (std::size_t k = 0; k < looks; ++k) {
      const std::size_t i = got.size() <= kCheckedElements ? k : random() % got.size();
      double expected = 0, size = 0;
      if (kind_ == CollectiveKind::Broadcast) {
        expected = from[0][i];
      } else if (kind_ == CollectiveKind::AllGather) {
        expected = from[i / from[0].size()][i % from[0].size()];
      } else {
        const std::size_t at = kind_ == CollectiveKind::AllReduce ? i : m * got.size() + i;
        for (const auto& values : from) {
          expected += static_cast<double>(values[at]);
          size += std::abs(static_cast<double>(values[at]));
        }
      }
      // Sums of n numbers in any order: n − 1 roundings of at most half a unit in the last place.
      const double bound = size * static_cast<double>(from.size() - 1) * 0x1p-24;
      if (!(std::abs(static_cast<double>(got[i]) - expected) <= bound))
        throw std::runtime_error(std::string(to_string(kind_)) + ": element " + std::to_string(i) +
                                 " of member " + std::to_string(m) + " is " +
                                 std::to_string(got[i]) + ", not " + std::to_string(expected));
    }
  }

  const Collective& collective_;
  const CollectiveKind kind_;
  std::vector<Tensor<float>> data_, results_;
};

}  // namespace

double bus_factor(CollectiveKind kind, std::size_t members) {
  const auto n = static_cast<double>(members);
  switch (kind) {
    case CollectiveKind::AllReduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllGather:
      return (n - 1) / n;
    case CollectiveKind::Broadcast:
      break;
  }
  return 1;
}

std::vector<CollectiveAlgorithm> algorithms_of(CollectiveKind kind) {
  std::vector<CollectiveAlgorithm> all{CollectiveAlgorithm::Ring};
  if (!has_results(kind)) {
    all.push_back(CollectiveAlgorithm::Tree);
    all.push_back(CollectiveAlgorithm::Star);
  }
  all.push_back(CollectiveAlgorithm::Nccl);
  if (kind == CollectiveKind::AllReduce) all.push_back(CollectiveAlgorithm::Peer);
  return all;
}

std::size_t possible_bytes(CollectiveKind kind, std::size_t members, std::size_t bytes) {
  const std::size_t unit = sizeof(float) * (has_results(kind) ? members : 1);
  return std::max<std::size_t>(bytes / unit, 1) * unit;
}

CollectiveRow measure(const Runtime& runtime, Collective& collective, const CollectiveCase& wanted,
                      std::uint32_t repeats) {
  collective.set_algorithm(wanted.algorithm);
  const Operation operation(runtime, collective, wanted.kind, wanted.bytes);
  CollectiveRow row;
  row.wanted = wanted;
  row.algorithm = to_string(collective.algorithm_for(wanted.kind, wanted.bytes));
  if (runtime.has_data()) operation.check();
  const auto run = [&](std::uint32_t count) {
    runtime.wait_idle();
    Future last;
    const DeviceStopwatch watch(runtime);
    for (std::uint32_t i = 0; i < count; ++i) last = operation.start();
    last.wait();
    return watch.seconds();
  };
  run(kFewest);
  row.in_a_row = static_cast<std::uint32_t>(
      std::clamp<double>(kRunSeconds * kFewest / run(kFewest), kFewest, kMost));
  std::vector<double> us, alone;
  for (std::uint32_t r = 0; r <= repeats; ++r) {
    const double one = run(1), many = run(row.in_a_row);
    if (r == 0) continue;
    alone.push_back(1e6 * one);
    us.push_back(1e6 * many / row.in_a_row);
  }
  row.us = spread_of(us);
  row.alone_us = spread_of(alone);
  collective.set_algorithm({});
  return row;
}

}  // namespace weft::bench
