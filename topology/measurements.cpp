#include "topology/measurements.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "topology/names.hpp"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

/// FNV-1a, 64 bits.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) step(static_cast<unsigned char>(c));
    step(0xff);
  }
  void add(std::uint64_t value) {
    for (int i = 0; i < 8; ++i) step(static_cast<unsigned char>(value >> 8 * i));
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void step(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3ull; }
  std::uint64_t value_ = 0xcbf29ce484222325ull;
};

}  // namespace

std::string fingerprint(const Machine& machine) {
  Hash hash;
  for (const Socket& socket : machine.sockets) {
    hash.add(socket.model);
    hash.add(socket.cores.size());
    for (const std::uint32_t cpu : socket.cpus) hash.add(cpu);
    for (const Cache& cache : socket.caches) {
      hash.add(cache.level);
      hash.add(cache.bytes);
    }
  }
  for (const Memory& memory : machine.memories) {
    if (memory.kind == MemoryKind::Disk) continue;
    hash.add(static_cast<std::uint64_t>(memory.kind));
  }
  for (const Gpu& gpu : machine.gpus) {
    hash.add(gpu.model);
    hash.add(gpu.pci ? to_string(*gpu.pci) : "");
  }
  for (const Link& link : machine.links) {
    if (link.kind == LinkKind::Disk) continue;
    hash.add(static_cast<std::uint64_t>(link.kind));
    hash.add(to_string(link.a));
    hash.add(to_string(link.b));
  }
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash.value()));
  return text;
}

Machine with_measurements(Machine machine, const Measurements& measurements) {
  const std::string own = fingerprint(machine);
  if (own != measurements.fingerprint)
    throw TopologyError("measurements of machine " + measurements.fingerprint.substr(0, 40) +
                        ": this machine is " + own + "; measure it with weft topo --measure");
  for (const Measurements::Entry& entry : measurements.links)
    for (Link& link : machine.links) {
      if (link.kind != entry.kind || link.a != entry.a || link.b != entry.b) continue;
      for (const std::size_t i : {0u, 1u})
        if (entry.figures.alone[i] > 0) link.bytes_per_second[i] = entry.figures.alone[i];
      if (entry.figures.latency.count() > 0) link.latency = entry.figures.latency;
      link.provenance = Provenance::Measured;
    }
  return machine;
}

std::string write_measurements(const Measurements& measurements) {
  Json document;
  document["kind"] = "weft-measurements";
  document["version"] = 1;
  document["fingerprint"] = measurements.fingerprint;
  document["links"] = Json::array();
  for (const Measurements::Entry& entry : measurements.links)
    document["links"].push_back({{"kind", to_string(entry.kind)},
                                 {"a", to_string(entry.a)},
                                 {"b", to_string(entry.b)},
                                 {"bytes_per_second", entry.figures.alone},
                                 {"busy_bytes_per_second", entry.figures.busy},
                                 {"latency_ns", entry.figures.latency.count()}});
  return document.dump(2) + "\n";
}

Measurements read_measurements(std::string_view text, const std::string& name) {
  const auto fail = [&](const std::string& what) -> TopologyError {
    return TopologyError(name + ": " + what + "; remove it and run weft topo --measure again");
  };
  if (text.size() > (std::size_t{8} << 20)) throw fail("too large for stored measurements");
  Measurements measurements;
  try {
    const Json document = Json::parse(text);
    if (document.at("kind") != "weft-measurements" || document.at("version") != 1)
      throw fail("no file of stored measurements");
    measurements.fingerprint = document.at("fingerprint").get<std::string>();
    for (const Json& item : document.at("links")) {
      Measurements::Entry entry;
      const auto kind = parse_link_kind(item.at("kind").get<std::string>());
      const auto a = parse_node(item.at("a").get<std::string>());
      const auto b = parse_node(item.at("b").get<std::string>());
      if (!kind || !a || !b) throw fail("a link that cannot be understood");
      entry.kind = *kind;
      entry.a = *a;
      entry.b = *b;
      entry.figures.alone = item.at("bytes_per_second").get<std::array<double, 2>>();
      entry.figures.busy = item.at("busy_bytes_per_second").get<std::array<double, 2>>();
      entry.figures.latency = std::chrono::nanoseconds(item.at("latency_ns").get<std::int64_t>());
      for (const double rate : entry.figures.alone)
        if (!std::isfinite(rate) || rate < 0) throw fail("a rate that cannot be");
      measurements.links.push_back(entry);
    }
  } catch (const Json::exception& error) {
    throw fail(error.what());
  }
  return measurements;
}

std::string measurements_path(const std::string& fingerprint) {
  std::string folder;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache && *cache == '/')
    folder = cache;
  else if (home && *home)
    folder = std::string(home) + "/.cache";
  else
    return {};
  return folder + "/weft/measured-" + fingerprint + ".json";
}

}  // namespace weft
