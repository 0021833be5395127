#include "apps/bench/campaign.hpp"

#include <algorithm>
#include <chrono>

#include "apps/bench/cores.hpp"
#include "apps/bench/process.hpp"

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
  if (m.aim != Aim::HandOff) text += " " + m.graph;
  if (m.width) text += ":" + std::to_string(m.width);
  if (m.ops) text += " " + std::to_string(m.ops) + " ops";
  if (m.op_ns > 0) text += " of " + std::to_string(static_cast<int>(m.op_ns)) + " ns";
  return text + " x" + std::to_string(m.threads);
}

std::string headline(const Measurement& m, const nlohmann::json& result) {
  const auto text = [](const nlohmann::json& value, const char* unit) {
    if (value.is_null()) return std::string("never");
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.1f %s", value.get<double>(), unit);
    return std::string(buffer);
  };
  switch (m.aim) {
    case Aim::Dispatch: {
      std::vector<double> ns = result.at("ns_per_op").get<std::vector<double>>();
      return text(*std::min_element(ns.begin(), ns.end()), "ns/op");
    }
    case Aim::Metg:
      return "80 % at " + text(result.at("d80_ns"), "ns");
    case Aim::HandOff:
      return text(result.at("round_trip_ns"), "ns round trip");
    case Aim::Memory:
      return text(result.at("bytes_per_op"), "bytes/op");
  }
  return "";
}

}  // namespace

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
        measured.rounds.push_back(nlohmann::json::parse(child.output));
        line = headline(measured.wanted, measured.rounds.back());
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
