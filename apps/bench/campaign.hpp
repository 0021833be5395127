#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/bench/measurement.hpp"
#include "apps/bench/probe.hpp"

namespace weft::bench {

/// What `weft bench dispatch` was asked for. Empty lists: the usual ones of each mode.
struct DispatchOptions {
  std::vector<std::string> graphs;  ///< `stencil` or `stencil:WIDTH`
  std::vector<std::uint32_t> ops;
  std::vector<std::string> systems;
  std::vector<std::uint32_t> threads;
  std::uint32_t repeats = 3;  ///< rounds, each a process per measurement
  bool metg = false, hand_off = false, memory = false, trace_cost = false;
  bool check = false;
  std::string json;  ///< file, `-` for standard output, empty for none
};

/// A measurement and what its rounds gave.
struct Measured {
  Measurement wanted;
  std::vector<nlohmann::json> rounds;  ///< as `measure` returned them
  std::string failure;                 ///< why there is none; empty if all is well
};

/// Makes all `wanted` measurements `rounds` times, each in a process of its own, round robin, with
/// a line to `progress` for each.
std::vector<Measured> run_rounds(const std::vector<Measurement>& wanted, std::uint32_t rounds,
                                 std::FILE* progress);

/// The tables for people.
void print_tables(std::FILE* out, const std::vector<Measured>& all);
/// The document described in the command's help.
nlohmann::json to_json(const std::vector<Measured>& all, const HostProbe& probe);

/// Everything `weft bench dispatch` does. Returns the exit code: 1 if a system of ours failed.
int run_dispatch(const DispatchOptions& options);

}  // namespace weft::bench
