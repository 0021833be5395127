#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/bench/campaign.hpp"
#include "apps/bench/cores.hpp"
#include "apps/bench/executor.hpp"
#include "apps/bench/statistics.hpp"

namespace weft::bench {
namespace {

using nlohmann::json;

json middle(const Measured& measured, const char* key) {
  const auto values = sample(measured, key);
  // A figure that some round never reached has no middle worth the name.
  if (values.size() < measured.rounds.size() || values.empty()) return nullptr;
  return median(values);
}

json base_entry(const Measured& measured) {
  const Measurement& m = measured.wanted;
  json entry{{"system", m.system}, {"threads", m.threads}, {"rounds", measured.rounds.size()}};
  if (!m.graph.empty()) {
    const OpGraph graph(m.graph, m.width, 1);
    entry["graph"] = m.graph;
    entry["width"] = graph.width();
  }
  if (m.ops) entry["ops"] = m.ops;
  if (m.aim == Aim::Dispatch) {
    entry["op_ns"] = m.op_ns;
    entry["trace"] = m.trace;
  }
  return entry;
}

json entry_of(const Measured& measured) {
  json entry = base_entry(measured);
  switch (measured.wanted.aim) {
    case Aim::Dispatch: {
      const auto ns = sample(measured, "ns_per_op");
      entry["ns_per_op"] = median(ns);
      entry["min_ns_per_op"] = *std::min_element(ns.begin(), ns.end());
      entry["max_ns_per_op"] = *std::max_element(ns.begin(), ns.end());
      entry["cpu_ns_per_op"] = middle(measured, "cpu_ns_per_op");
      entry["peak_rss_bytes"] =
          static_cast<std::int64_t>(median(sample(measured, "peak_rss_bytes")));
      entry["rss_before_bytes"] =
          static_cast<std::int64_t>(median(sample(measured, "rss_before_bytes")));
      break;
    }
    case Aim::Metg:
      for (const char* key : {"d50_ns", "d80_ns"}) {
        entry[key] = middle(measured, key);
        const auto values = sample(measured, key);
        entry[std::string(key) + "_all"] = values;
      }
      break;
    case Aim::HandOff:
      for (const char* key : {"round_trip_ns", "after_idle_ns", "idle_cores"})
        entry[key] = middle(measured, key);
      break;
    case Aim::Memory:
      entry["bytes_per_op"] = middle(measured, "bytes_per_op");
      entry["peak_rss_bytes"] =
          static_cast<std::int64_t>(median(sample(measured, "peak_rss_bytes")));
      break;
    default:
      break;
  }
  return entry;
}

const char* list_of(const Measurement& m) {
  switch (m.aim) {
    case Aim::Dispatch:
      return m.trace || m.op_ns > 0 ? "trace_cost" : "results";
    case Aim::Metg:
      return "metg";
    case Aim::HandOff:
      return "hand_off";
    case Aim::Memory:
      return "memory";
    default:
      return "results";
  }
}

std::string number(const json& value, const char* format) {
  if (value.is_null()) return "never";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value.get<double>());
  return buffer;
}

const Measured* reference(const std::vector<Measured>& all, const Measurement& m) {
  for (const Measured& each : all)
    if (each.failure.empty() && each.wanted.system == "weft-host" && each.wanted.aim == m.aim &&
        each.wanted.graph == m.graph && each.wanted.width == m.width && each.wanted.ops == m.ops &&
        each.wanted.threads == m.threads && each.wanted.trace == m.trace &&
        each.wanted.op_ns == m.op_ns)
      return &each;
  return nullptr;
}

std::string ratio(const std::vector<Measured>& all, const Measured& measured, const char* key) {
  const Measured* ours = reference(all, measured.wanted);
  if (!ours) return "";
  const json mine = middle(*ours, key), theirs = middle(measured, key);
  if (mine.is_null() || theirs.is_null() || theirs.get<double>() <= 0) return "-";
  return number(mine.get<double>() / theirs.get<double>(), "%.3f");
}

std::string graph_name(const Measurement& m) {
  return m.graph + ":" + std::to_string(OpGraph(m.graph, m.width, 1).width());
}

void print_row(std::FILE* out, const std::vector<Measured>& all, const Measured& measured) {
  const Measurement& m = measured.wanted;
  const std::string system = m.system + (m.trace ? "+trace" : "");
  if (!measured.failure.empty()) {
    std::fprintf(out, "  %-16s %-14s %8u  failed: %s\n", system.c_str(), graph_name(m).c_str(),
                 m.ops, measured.failure.c_str());
    return;
  }
  const json entry = entry_of(measured);
  switch (m.aim) {
    case Aim::Dispatch:
      std::fprintf(out, "  %-16s %-14s %8u x%-2u %9.1f  [%.1f .. %.1f]  cpu %.0f  %.1f MiB  %s\n",
                   system.c_str(), graph_name(m).c_str(), m.ops, m.threads,
                   entry["ns_per_op"].get<double>(), entry["min_ns_per_op"].get<double>(),
                   entry["max_ns_per_op"].get<double>(), entry["cpu_ns_per_op"].get<double>(),
                   entry["peak_rss_bytes"].get<double>() / (1 << 20),
                   ratio(all, measured, "ns_per_op").c_str());
      break;
    case Aim::Metg:
      std::fprintf(out, "  %-16s %-14s x%-2u  50 %%: %10s  80 %%: %10s  %s\n", system.c_str(),
                   graph_name(m).c_str(), m.threads, number(entry["d50_ns"], "%.0f").c_str(),
                   number(entry["d80_ns"], "%.0f").c_str(), ratio(all, measured, "d80_ns").c_str());
      break;
    case Aim::HandOff:
      std::fprintf(out, "  %-16s x%-2u  recent %10s  after 3 ms %10s  idle %s cores\n",
                   system.c_str(), m.threads, number(entry["round_trip_ns"], "%.0f").c_str(),
                   number(entry["after_idle_ns"], "%.0f").c_str(),
                   number(entry["idle_cores"], "%.5f").c_str());
      break;
    case Aim::Memory:
      std::fprintf(out, "  %-16s %-14s %8u  %8s bytes/op\n", system.c_str(), graph_name(m).c_str(),
                   m.ops, number(entry["bytes_per_op"], "%.1f").c_str());
      break;
    default:
      break;
  }
}

const char* title(const std::string& list) {
  if (list == "results")
    return "cost of an empty op, ns: median [min .. max], processor time, peak memory, weft-host / "
           "it";
  if (list == "trace_cost") return "cost of an op with and without recording, ns";
  if (list == "metg") return "useful ns an op at an efficiency of 50 % and 80 %, weft-host / it";
  if (list == "hand_off") return "one op handed over and waited for, ns";
  return "memory of a pending op";
}

}  // namespace

void print_tables(std::FILE* out, const std::vector<Measured>& all) {
  for (const char* list : {"results", "trace_cost", "metg", "hand_off", "memory"}) {
    std::vector<const Measured*> rows;
    for (const Measured& measured : all)
      if (std::string(list_of(measured.wanted)) == list) rows.push_back(&measured);
    if (rows.empty()) continue;
    std::fprintf(out, "\n%s\n", title(list));
    for (const Measured* row : rows) print_row(out, all, *row);
  }
}

std::string to_document(const std::vector<Measured>& all, const HostProbe& probe) {
  json document{{"results", json::array()}, {"failed", json::array()}};
  document["machine"] = {{"cores", core_cpus().size()},
                         {"hop_ns", probe.hop_ns},
                         {"wake_ns", probe.wake_ns},
                         {"both_cores_ratio", probe.both_ratio}};
  document["left_out"] = json::object();
  for (const System& system : systems())
    if (!system.left_out.empty()) document["left_out"][system.name] = system.left_out;
  for (const Measured& measured : all) {
    if (measured.failure.empty()) {
      document[list_of(measured.wanted)].push_back(entry_of(measured));
    } else {
      json entry = base_entry(measured);
      entry["failure"] = measured.failure;
      document["failed"].push_back(entry);
    }
  }
  return document.dump(2);
}

}  // namespace weft::bench
