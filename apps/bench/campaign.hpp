#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/bench/measurement.hpp"
#include "apps/bench/probe.hpp"

namespace weft::apps {
class Output;
}

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
  std::uint32_t admission = 0;  ///< ops weft takes in ahead of execution; 0: as usual
};

/// A measurement and what its rounds gave.
struct Measured {
  Measurement wanted;
  std::vector<Figures> rounds;  ///< as `measure` returned them
  std::string failure;          ///< why there is none; empty if all is well
};

/// All values of one figure, over all rounds.
std::vector<double> sample(const Measured& measured, const std::string& figure);

/// Makes all `wanted` measurements `rounds` times, each in a process of its own, round robin, with
/// a line to `progress` for each.
std::vector<Measured> run_rounds(const std::vector<Measurement>& wanted, std::uint32_t rounds,
                                 std::FILE* progress);

/// The tables for people.
void print_tables(std::FILE* out, const std::vector<Measured>& all);
/// The JSON document described in the command's help.
std::string to_document(const std::vector<Measured>& all, const HostProbe& probe);
/// The machine, the build, what its cores cost each other, and the peers that are left out.
void print_head(std::FILE* out, const HostProbe& probe);

/// What `weft bench matmul` and `weft bench overlap` were asked for.
struct FigureOptions {
  std::uint32_t n = 2048;      ///< rows and columns of the matrices
  std::uint32_t kernels = 50;  ///< kernels a GPU runs
  std::uint32_t threads = 0;   ///< cores; 0: all
  std::uint32_t repeats = 3;   ///< rounds, each in processes of their own
};

/// Everything the subcommands do. They return the exit code: 1 if a system of ours failed.
int run_dispatch(const DispatchOptions& options, apps::Output& output);
int run_matmul(const FigureOptions& options, apps::Output& output);
int run_overlap(const FigureOptions& options, apps::Output& output);

}  // namespace weft::bench
