#pragma once

namespace weft::bench {

/// What two cores of this machine cost each other; zeros where there is one core.
struct HostProbe {
  double hop_ns = 0;   ///< a cache line from core to core, one way
  double wake_ns = 0;  ///< a parked thread woken on another core, one way
  double both_ratio =
      1;  ///< time of a kernel on two cores at once over alone: 1 where both are whole
};

/// Measures for about a tenth of a second. Leaves the thread unpinned.
HostProbe probe_host();

/// Only `both_ratio`: a shared host may give less than two cores for a while.
double probe_both_cores();

}  // namespace weft::bench
