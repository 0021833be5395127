#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/device_report.hpp"

namespace weft::bench {

/// What `weft bench cholesky` was asked for.
struct CholeskyOptions : DeviceBenchOptions {
  std::int64_t n = 0;  ///< the matrix is n x n; 0: 16384 on CUDA devices, else 2048
  std::int64_t tile =
      0;  ///< tiles are tile x tile; 0: an eighth of n, 128 to 2048, or 4096 for large ones
  std::int64_t panel = 0;  ///< columns of tiles in a panel (`for_each_step`); 0: by the memory
  std::string dtype = "fp32";
  std::string policy = "auto";
  std::vector<std::string> devices;  ///< among which ops are placed; empty: all
  bool no_peer = false;
};

/// Times a tiled Cholesky factorisation whose ops are placed by a policy, beside a library's own of
/// the whole matrix (`measure_peer`); checks sampled elements of L·Lᵀ. Returns the exit code.
/// Throws for machines, devices and policies that there are not and for a wrong result.
int run_cholesky(const CholeskyOptions& options, apps::Output& output);

}  // namespace weft::bench
