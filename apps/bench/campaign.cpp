#include "apps/bench/campaign.hpp"

#include <algorithm>
#include <chrono>

#include "apps/bench/cores.hpp"
#include "apps/bench/process.hpp"
#include "apps/bench/statistics.hpp"

namespace weft::bench {
namespace {

constexpr std::chrono::seconds kLimit{180};
constexpr double kWhole = 1.10;  // two cores at once may take this much longer than one alone
constexpr int kProbes = 8;

// A shared host may give less than two cores for a while: wait a little for better times.
void wait_for_whole_cores() {
  for (int i = 0; i < kProbes && probe_both_cores() > kWhole; ++i) {
  }
}

std::vector<std::pair<std::string, std::string>> settings_for(const Measurement& wanted) {
  if (wanted.system == "openblas")
    return {{"OPENBLAS_NUM_THREADS", std::to_string(wanted.threads)}};
  if (wanted.system.rfind("openmp", 0) != 0) return {};
  std::string places;
  for (std::uint32_t i = 0; i < wanted.threads && i < core_cpus().size(); ++i)
    places += (i ? ",{" : "{") + std::to_string(core_cpus()[i]) + "}";
  return {{"OMP_PLACES", places}, {"OMP_PROC_BIND", "true"}, {"OMP_DYNAMIC", "false"}};
}

std::string failure_of(const ChildResult& child) {
  if (child.timed_out) return "took longer than " + std::to_string(kLimit.count()) + " s";
  return "its process ended with code " + std::to_string(child.exit_code);
}

std::string described(const Measurement& m) {
  std::string text = m.system;
  if (m.trace) text += "+trace";
  if (!m.graph.empty()) text += " " + m.graph;
  if (m.width) text += ":" + std::to_string(m.width);
  if (m.ops && !m.graph.empty()) text += " " + std::to_string(m.ops) + " ops";
  if (m.op_ns > 0) text += " of " + std::to_string(static_cast<int>(m.op_ns)) + " ns";
  return text + " x" + std::to_string(m.threads);
}

struct Headline {
  const char* figure;
  const char* unit;
  double scale;
};

Headline headline_of(Aim aim) {
  switch (aim) {
    case Aim::Dispatch:
      return {"ns_per_op", "ns/op", 1};
    case Aim::Metg:
      return {"d80_ns", "ns at 80 %", 1};
    case Aim::HandOff:
      return {"round_trip_ns", "ns there and back", 1};
    case Aim::Memory:
      return {"bytes_per_op", "bytes/op", 1};
    case Aim::Matmul:
      return {"flops_per_second", "GFLOP/s", 1e-9};
    case Aim::Overlap:
      return {"both_at_once", "s both at once", 1};
  }
  return {"", "", 1};
}

std::string first_words(const Measured& measured) {
  const Headline headline = headline_of(measured.wanted.aim);
  const auto& values = measured.rounds.back().at(headline.figure);
  if (values.empty()) return "never reached";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.6g %s", median(values) * headline.scale, headline.unit);
  return buffer;
}

}  // namespace

std::vector<double> sample(const Measured& measured, const std::string& figure) {
  std::vector<double> values;
  for (const Figures& round : measured.rounds) {
    const auto& some = round.at(figure);
    values.insert(values.end(), some.begin(), some.end());
  }
  return values;
}

std::vector<Measured> run_rounds(const std::vector<Measurement>& wanted, std::uint32_t rounds,
                                 std::FILE* progress) {
  std::vector<Measured> all;
  for (const Measurement& measurement : wanted) all.push_back({measurement, {}, {}});
  const std::size_t count = all.size() * rounds;
  std::size_t number = 0;
  for (std::uint32_t round = 0; round < rounds; ++round)
    for (Measured& measured : all) {
      ++number;
      if (!measured.failure.empty()) continue;  // it would fail again
      if (measured.wanted.aim == Aim::Metg) wait_for_whole_cores();
      const ChildResult child = run_self({"bench", "measure", to_text(measured.wanted)},
                                         settings_for(measured.wanted), kLimit);
      std::string line;
      if (child.exit_code == 0) {
        measured.rounds.push_back(figures_from(child.output));
        line = first_words(measured);
      } else {
        measured.failure = line = failure_of(child);
      }
      std::fprintf(progress, "[%zu/%zu] %s: %s\n", number, count,
                   described(measured.wanted).c_str(), line.c_str());
      std::fflush(progress);
    }
  return all;
}

}  // namespace weft::bench
