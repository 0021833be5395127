#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/bench/campaign.hpp"
#include "apps/bench/cores.hpp"
#include "apps/bench/statistics.hpp"
#include "apps/common/output.hpp"

namespace weft::bench {
namespace {

using nlohmann::json;

constexpr std::uint32_t kRepeats = 5;  // inside a process

std::uint32_t cores_or(std::uint32_t threads) {
  if (!threads) threads = static_cast<std::uint32_t>(core_cpus().size());
  (void)machine_of(threads);  // throws for too many
  return threads;
}

Measurement wanted(Aim aim, const char* system, std::uint32_t ops, std::uint32_t threads) {
  Measurement m;
  m.aim = aim;
  m.system = system;
  m.ops = ops;
  m.threads = threads;
  m.repeats = kRepeats;
  return m;
}

bool failed(const std::vector<Measured>& all) {
  return std::any_of(all.begin(), all.end(),
                     [](const Measured& measured) { return !measured.failure.empty(); });
}

}  // namespace

int run_matmul(const FigureOptions& options, apps::Output& output) {
  const std::uint32_t threads = cores_or(options.threads);
  const HostProbe probe = probe_host();
  print_head(output.text(), probe);
  const auto all = run_rounds({wanted(Aim::Matmul, "weft-host", options.n, threads),
                               wanted(Aim::Matmul, "openblas", options.n, threads)},
                              options.repeats, output.text());
  if (failed(all)) return 1;
  json document{{"results", json::array()}};
  std::vector<double> rates;
  for (const Measured& measured : all) {
    auto values = sample(measured, "flops_per_second");
    std::sort(values.begin(), values.end());
    rates.push_back(median(values));
    output.print("%-10s n=%u fp32, %u cores: %.1f GFLOP/s [%.1f .. %.1f]\n",
                 measured.wanted.system.c_str(), options.n, threads, rates.back() * 1e-9,
                 values.front() * 1e-9, values.back() * 1e-9);
    document["results"].push_back({{"system", measured.wanted.system},
                                   {"n", options.n},
                                   {"threads", threads},
                                   {"flops_per_second", rates.back()}});
  }
  document["ratio"] = rates[0] / rates[1];
  output.print("weft-host / openblas: %.3f\n", rates[0] / rates[1]);
  output.write_json(document.dump(2));
  return 0;
}

int run_overlap(const FigureOptions& options, apps::Output& output) {
  const HostProbe probe = probe_host();
  print_head(output.text(), probe);
  const auto all = run_rounds({wanted(Aim::Overlap, "weft-emulated", options.kernels, cores_or(0))},
                              options.repeats, output.text());
  if (failed(all)) return 1;
  const auto figure = [&](const char* name) { return median(sample(all[0], name)); };
  json document{{"experiments", json::array()}};
  const auto add = [&](const char* name, double seconds, double ideal) {
    output.print("%-14s %.4f s, ideal %.4f s, ratio %.3f\n", name, seconds, ideal, seconds / ideal);
    document["experiments"].push_back({{"name", name},
                                       {"seconds", seconds},
                                       {"ideal_seconds", ideal},
                                       {"ratio", seconds / ideal}});
  };
  add("both at once", figure("both_at_once"), figure("longer_one"));
  add("run and copy", figure("run_and_copy"), std::max(figure("run"), figure("copy")));
  output.write_json(document.dump(2));
  return 0;
}

}  // namespace weft::bench
