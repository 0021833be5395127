// Sums over all devices: every device gives a part and gets the sum of all.
#include <vector>

#include "apps/workloads/list.hpp"
#include "apps/workloads/measured.hpp"
#include "apps/workloads/parts.hpp"

namespace weft::workloads {
namespace {

Result all_reduce(const Context& context) {
  const std::int64_t elements = context.values.number("elements");
  const auto rounds = static_cast<std::uint64_t>(context.values.number("rounds"));
  const std::uint64_t count = context.devices.size();
  std::vector<Parts> parts(rounds);
  for (std::uint64_t r = 0; r < rounds; ++r)
    for (std::uint64_t d = 0; d < count; ++d)
      parts[r].push_back(filled_part(context.devices[d], r * count + d, elements));
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
          for (std::uint64_t d = 0; d < count; ++d) expected += part_element(r * count + d, i);
          expect_near("sum", i, static_cast<double>(host[i]), static_cast<double>(expected), 0);
        }
      }
  });
  return result;
}

}  // namespace

Workload allreduce_workload() {
  return {"allreduce",
          "sums over all devices, every device gets them",
          part_parameters("of a member"),
          {fill_part().code()},
          all_reduce};
}

}  // namespace weft::workloads
