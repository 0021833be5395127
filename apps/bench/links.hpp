#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/device_report.hpp"

namespace weft::bench {

/// What `weft bench links` was asked for.
struct LinkOptions : DeviceBenchOptions {
  std::size_t least = 4096;       ///< bytes of the smallest copy
  std::size_t most = 0;           ///< of the largest; 0: `usual_largest`
  std::vector<std::string> only;  ///< of pair, both_ways, all, pageable; empty: all of them
};

/// Copies that run at once: each tensor is written on `from` and read on `to`.
struct Flow {
  Device from, to;
};

struct Pattern {
  std::string kind;  ///< pair, both_ways, all
  std::string name;  ///< `gpu0 to socket0`
  std::vector<Flow> flows;
};

/// Every ordered pair of devices with memories of their own, every pair both ways, and all GPUs at
/// once to and from the first socket and along a ring.
std::vector<Pattern> patterns(const Runtime& runtime);

/// One line of the result.
struct LinkRow {
  std::string kind, name;
  std::size_t bytes = 0;     ///< of one copy
  std::uint32_t copies = 0;  ///< of each flow, one behind the other
  Spread rate;               ///< GB/s of all flows together
  double alone_us = 0;       ///< one copy of each flow, from submission until the host sees it done
};

/// How many copies of `bytes` each flow makes in a run: about 256 MiB, or `most` if that is less,
/// and 1 to 64.
std::uint32_t copies_of(std::size_t bytes, std::size_t most);

/// Copies between tensors.
LinkRow measure(const Runtime& runtime, const Pattern& pattern, std::size_t bytes,
                std::uint32_t copies, std::uint32_t repeats);

/// Between GPUs and memory that the program allocated and touched itself: to it, from it, both at
/// once; each GPU alone, then all. Checks what arrives; throws `std::runtime_error` for what is
/// wrong. Empty where it is not offered.
std::vector<LinkRow> measure_pageable(const Runtime& runtime, std::size_t bytes,
                                      std::uint32_t copies, std::uint32_t repeats);

/// Everything the subcommand does. Returns the exit code.
int run_links(const LinkOptions& options, apps::Output& output);

}  // namespace weft::bench
