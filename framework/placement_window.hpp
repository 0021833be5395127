#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

struct Place;

/// The ops that wait for a device, oldest first, with all that is known of them: what a policy
/// plans. Times are in seconds from now, unknown or impossible ones infinite.
struct PlacementWindow {
  struct Device {
    const Place* place = nullptr;
    std::vector<double> free_at;  ///< of each op it runs at a time: when the next may begin
  };
  struct Tensor {
    std::size_t bytes = 0;
    std::vector<double> there;  ///< by device: when its value can be in that device's memory
  };
  struct Argument {
    std::uint32_t tensor = 0;
    bool reads = true, writes = false;
  };
  struct Op {
    std::vector<double> run;  ///< by device
    std::vector<Argument> arguments;
    std::vector<std::uint32_t> after;  ///< further ops of the window, before it, that end first
    int priority = 0;                  ///< the higher ones go first where there is a choice
  };

  std::vector<Device> devices;
  std::vector<Tensor> tensors;
  std::vector<Op> ops;
  /// Ops that wait, further ones included that are not looked at; 0: these are all.
  std::size_t waiting = 0;
  /// Of a copy between two devices' memories without any queue: from * devices.size() + to.
  std::vector<double> latency, seconds_per_byte;

  [[nodiscard]] double copy_seconds(std::size_t from, std::size_t to, std::size_t bytes) const {
    const std::size_t way = from * devices.size() + to;
    return latency[way] + static_cast<double>(bytes) * seconds_per_byte[way];
  }
};

/// Where and when an op of the window runs.
struct PlannedOp {
  std::uint32_t op = 0, device = 0;
  double begin = 0;
};

/// Plans the window by HEFT (Topcuoglu, Hariri, Wu: Performance-effective and low-complexity task
/// scheduling for heterogeneous computing, IEEE Transactions on Parallel and Distributed Systems
/// 13, 2002): by mean time left to the end of all that follows, the longest first, each op goes
/// where it ends first, into gaps too; then some are tried elsewhere, the first ones first, and
/// left there if all of the window ends sooner. A device that is too slow for all of that gets an
/// op that nothing waits for if it has run it before all that waits has run. Higher priorities, and
/// what they need, come before that. Ops that no device can run, and those behind them, are left
/// out. In order of beginning.
std::vector<PlannedOp> plan_by_heft(const PlacementWindow& window);

}  // namespace weft
