// Every device has a part for every other.
#include <algorithm>
#include <vector>

#include "apps/workloads/list.hpp"
#include "apps/workloads/measured.hpp"
#include "apps/workloads/parts.hpp"

namespace weft::workloads {
namespace {

// `to` = `from`, on the device that receives.
const auto& receive() {
  static const auto kernel = Kernel("receive")
                                 .cpu([](Cpu&, In<float> from, Out<float> to) {
                                   std::copy(from.begin(), from.end(), to.begin());
                                 })
                                 .cost([](In<float> from, Out<float>) {
                                   return Cost{0, 8.0 * static_cast<double>(from.size())};
                                 });
  return kernel;
}

Result all_to_all(const Context& context) {
  const std::int64_t elements = context.values.number("elements");
  const auto rounds = static_cast<std::uint64_t>(context.values.number("rounds"));
  const std::uint64_t count = context.devices.size();
  const auto seed_of = [&](std::uint64_t round, std::uint64_t from, std::uint64_t to) {
    return (round * count + from) * count + to;
  };
  std::vector<Parts> sent(rounds), got(rounds);
  for (std::uint64_t r = 0; r < rounds; ++r)
    for (std::uint64_t from = 0; from < count; ++from)
      for (std::uint64_t to = 0; to < count; ++to)
        sent[r].push_back(filled_part(context.devices[from], seed_of(r, from, to), elements));

  Counted ops;
  Result result;
  result.seconds = timed(context.runtime, [&] {
    std::vector<Future> arrived;
    for (std::uint64_t r = 0; r < rounds; ++r)
      for (std::uint64_t shift = 0; shift < count; ++shift)  // each receives from another at a time
        for (std::uint64_t to = 0; to < count; ++to) {
          const std::uint64_t from = (to + shift) % count;
          got[r].push_back(context.devices[to].tensor<float>({elements}));
          arrived.push_back(ops.submit(context.devices[to], receive(),
                                       in(sent[r][from * count + to]), out(got[r].back())));
        }
    when_all(std::span<const Future>(arrived)).wait();
  });
  result.ops = ops.ops();
  result.bytes = 4 * static_cast<double>(elements) * static_cast<double>(rounds * count) *
                 static_cast<double>(count - 1);
  result.check = checked(context.runtime, "each part received against what was sent", [&] {
    for (std::uint64_t r = 0; r < rounds; ++r)
      for (std::uint64_t shift = 0; shift < count; ++shift)
        for (std::uint64_t to = 0; to < count; ++to) {
          const auto host = got[r][shift * count + to].to_host();
          const std::uint64_t seed = seed_of(r, (to + shift) % count, to);
          for (std::size_t i = 0; i < host.size(); ++i)
            expect_near("part", i, static_cast<double>(host[i]),
                        static_cast<double>(part_element(seed, i)), 0);
        }
  });
  return result;
}

}  // namespace

Workload alltoall_workload() {
  return {"alltoall",
          "every device sends a part of its own to every other",
          part_parameters("from each to each"),
          {fill_part().code(), receive().code()},
          all_to_all};
}

}  // namespace weft::workloads
