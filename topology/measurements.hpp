#pragma once

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// What was measured of one link. Rates in bytes per second: [0] from `a` to `b`, [1] back; 0 where
/// not measured.
struct LinkFigures {
  std::array<double, 2> alone{};  ///< nothing else running
  std::array<double, 2> busy{};   ///< while its neighbours are used as well
  std::chrono::nanoseconds latency{0};
};

/// Figures of the links of one machine.
struct Measurements {
  struct Entry {
    LinkKind kind = LinkKind::Bus;
    Node a, b;
    LinkFigures figures;
  };
  std::string fingerprint;
  std::vector<Entry> links;
};

/// Sixteen hexadecimal digits that tell machines apart by their hardware: processors, caches, kinds
/// of memories, GPUs with their addresses, links between them. Not by host name, operating system,
/// figures of links, or the size of memories, which changes while virtual machines run.
std::string fingerprint(const Machine& machine);

/// The machine with measured rates and latencies in place of the others, as `Measured`. Throws
/// `TopologyError` if they are those of another machine.
Machine with_measurements(Machine machine, const Measurements& measurements);

/// As a JSON text, and back. Reading throws `TopologyError`; `name` names the source in it.
std::string write_measurements(const Measurements& measurements);
Measurements read_measurements(std::string_view text, const std::string& name);

/// Where the measurements of a machine are kept: `measured-<fingerprint>.json` in the folder `weft`
/// of the user's cache (`XDG_CACHE_HOME`, else `~/.cache`). Empty if the user has neither.
std::string measurements_path(const std::string& fingerprint);

}  // namespace weft
