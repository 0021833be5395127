// What programs on several devices do to each other's data: sum it up, and everybody sends to
// everybody. Elements are whole numbers small enough that their sums are exact in fp32.
#include <vector>

#include "apps/workloads/list.hpp"
#include "apps/workloads/measured.hpp"

namespace weft::workloads {
namespace {

constexpr std::uint64_t kRange = 1 << 10;

constexpr std::uint64_t element(std::uint64_t seed, std::uint64_t i) {
  return (seed * 7919 + i * 31) % kRange;
}

const auto& fill_part() {
  static const auto kernel = Kernel("fill_part")
                                 .cpu([](Cpu&, std::uint64_t seed, Out<float> part) {
                                   for (std::size_t i = 0; i < part.size(); ++i)
                                     part[i] = static_cast<float>(element(seed, i));
                                 })
                                 .cost([](std::uint64_t, Out<float> part) {
                                   return Cost{0, 4.0 * static_cast<double>(part.size())};
                                 });
  return kernel;
}

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

using Parts = std::vector<Tensor<float>>;

Tensor<float> filled(const Device& device, std::uint64_t seed, std::int64_t elements) {
  auto part = device.tensor<float>({elements});
  device.submit(fill_part(), seed, out(part));
  return part;
}

Result all_reduce(const Context& context) {
  const std::int64_t elements = context.values.number("elements");
  const auto rounds = static_cast<std::uint64_t>(context.values.number("rounds"));
  const std::uint64_t count = context.devices.size();
  std::vector<Parts> parts(rounds);
  for (std::uint64_t r = 0; r < rounds; ++r)
    for (std::uint64_t d = 0; d < count; ++d)
      parts[r].push_back(filled(context.devices[d], r * count + d, elements));
  const Collective group = context.runtime.collective(context.devices);

  Result result;
  result.seconds = timed(context.runtime, [&] {
    std::vector<Future> sums;
    for (const Parts& round : parts) sums.push_back(group.all_reduce(round));
    when_all(std::span<const Future>(sums)).wait();
  });
  result.ops = rounds;
  result.flops = static_cast<double>(elements) * static_cast<double>(rounds * (count - 1));
  // What each member has to send at least (Patarasuk, Yuan, "Bandwidth optimal all-reduce
  // algorithms for clusters of workstations", 2009), all members together.
  result.bytes = 8 * static_cast<double>(elements) * static_cast<double>(rounds * (count - 1));
  result.check = checked(context.runtime, "each member's sum against whole numbers", [&] {
    for (std::uint64_t r = 0; r < rounds; ++r)
      for (const auto& member : parts[r]) {
        const auto host = member.to_host();
        for (std::size_t i = 0; i < host.size(); ++i) {
          std::uint64_t expected = 0;
          for (std::uint64_t d = 0; d < count; ++d) expected += element(r * count + d, i);
          expect_near("sum", i, static_cast<double>(host[i]), static_cast<double>(expected), 0);
        }
      }
  });
  return result;
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
        sent[r].push_back(filled(context.devices[from], seed_of(r, from, to), elements));

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
                        static_cast<double>(element(seed, i)), 0);
        }
  });
  return result;
}

std::vector<Parameter> parameters(std::string elements_of) {
  return {number("elements", 1 << 14, 1, 1 << 28, "fp32 numbers " + std::move(elements_of)),
          number("rounds", 4, 1, 10'000, "rounds, independent of each other")};
}

}  // namespace

Workload allreduce_workload() {
  return {"allreduce",
          "sums over all devices, every device gets them",
          parameters("of a member"),
          {fill_part().code()},
          all_reduce};
}

Workload alltoall_workload() {
  return {"alltoall",
          "every device sends a part of its own to every other",
          parameters("from each to each"),
          {fill_part().code(), receive().code()},
          all_to_all};
}

}  // namespace weft::workloads
