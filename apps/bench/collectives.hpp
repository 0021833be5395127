#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/collective.hpp"
#include "apps/bench/device_report.hpp"

namespace weft::bench {

/// What `weft bench collectives` was asked for.
struct CollectiveOptions : DeviceBenchOptions {
  std::vector<std::string> devices;     ///< the members; empty: all GPUs
  std::vector<std::string> operations;  ///< `all_reduce` …; empty: all of them
  std::vector<std::string> algorithms;  ///< `auto`, `ring` …; empty: auto and all that are offered
  std::size_t least = 4;                ///< bytes
  std::size_t most = 0;                 ///< bytes; 0: `usual_largest`
};

/// One collective operation on one size, with one algorithm.
///
/// `bytes` as NCCL-tests count them: what a member has before an all-reduce or a broadcast, all of
/// it before a reduce-scatter, all of it after an all-gather.
struct CollectiveCase {
  CollectiveKind kind = CollectiveKind::AllReduce;
  std::optional<CollectiveAlgorithm> algorithm;  ///< empty: by size and topology
  std::size_t bytes = 0;
};

struct CollectiveRow {
  CollectiveCase wanted;
  std::string algorithm;       ///< that was used
  std::uint32_t in_a_row = 0;  ///< operations of a run
  Spread us;                   ///< of an operation, one behind the other on the same tensors
  Spread alone_us;             ///< one, from submission until the host sees it done
};

/// Bus bandwidth over `bytes / time`: what each member's links must carry for it at the least, so
/// that operations and numbers of members can be compared (NCCL-tests, PERFORMANCE.md): 2(n−1)/n
/// for all-reduce, (n−1)/n for reduce-scatter and all-gather, 1 for broadcast.
double bus_factor(CollectiveKind kind, std::size_t members);

/// The algorithms that make a difference for `kind`.
std::vector<CollectiveAlgorithm> algorithms_of(CollectiveKind kind);

/// `bytes` as near as `kind` can have them with `members`: whole floats, and equal parts where the
/// data are parted.
std::size_t possible_bytes(CollectiveKind kind, std::size_t members, std::size_t bytes);

/// Checks the result on random data first (all elements of small ones, some of large ones) and
/// throws `std::runtime_error` for a wrong one.
CollectiveRow measure(const Runtime& runtime, Collective& collective, const CollectiveCase& wanted,
                      std::uint32_t repeats);

/// Everything the subcommand does. Returns the exit code.
int run_collectives(const CollectiveOptions& options, apps::Output& output);

}  // namespace weft::bench
