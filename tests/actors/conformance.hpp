#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/runtime.hpp"
#include "support/catch.hpp"
#include "tests/actors/cuda/fake_variants.hpp"
#include "tests/actors/cuda/host_stream.hpp"
#include "topology/discover.hpp"

namespace weft::test {

/// One engine under the conformance suite: how to make a runtime with it, and which of its devices
/// to use.
struct EngineCase {
  std::string name;
  std::string machine;
  bool gpu = false;  ///< the device is `gpu(0)`, another is `gpu(1)`; else sockets
  std::uint32_t lanes = 1;
  int cuda = 0;  ///< so many CUDA devices of this machine; 0: none, the machine is described
  bool p2p = true;
  bool simulate = false;

  [[nodiscard]] RuntimeOptions options() const {
    RuntimeOptions made;
    if (cuda == 0) made.machine = parse_machine(machine);
    made.gpus = cuda ? GpuMode::Cuda : gpu ? GpuMode::Emulated : GpuMode::None;
    made.cuda_lanes = lanes;
    made.p2p = p2p;
    made.gpu_memory_bytes = std::size_t{64} << 20;
    made.emulated = EmulatedOptions{};
    made.emulated->compute_lanes = lanes;
    made.emulated->memory_bytes = std::size_t{64} << 20;
    made.host_memory_bytes = std::size_t{512} << 20;
    made.serial = false;
    made.simulate = simulate;
    made.data = SimulatedData::Real;
    made.pin = false;
    made.watchdog = std::chrono::seconds(20);
    return made;
  }
  [[nodiscard]] Device device(const Runtime& runtime) const {
    return gpu ? runtime.gpu(0) : runtime.socket(0);
  }
  /// Another device with a memory of its own.
  [[nodiscard]] Device other(const Runtime& runtime) const {
    if (cuda == 1) return runtime.socket(0);
    return gpu ? runtime.gpu(1) : runtime.socket(1);
  }
};

/// All engines that the suite runs over. A new engine is one more line here.
inline const std::vector<EngineCase>& engines() {
  static const std::vector<EngineCase> all = [] {
    std::vector<EngineCase> made = {
        {"host, one core", "2 sockets x 1 core", false, 1},
        {"host, a team", "2 sockets x 3 cores", false, 1},
        {"emulated, one lane", "1 socket x 1 core, 2 gpus", true, 1},
        {"emulated, three lanes, nvlink", "2 sockets x 1 core, 2 gpus, nvlink", true, 3},
        {"simulated, sockets", "2 sockets x 3 cores", false, 1, 0, true, true},
        {"simulated, one lane", "1 socket x 1 core, 2 gpus", true, 1, 0, true, true},
        {"simulated, three lanes, nvlink", "2 sockets x 2 cores, 2 gpus, nvlink", true, 3, 0, true,
         true},
    };
#if WEFT_HAVE_CUDA
    const bool is_fake = runs_on_fake_cuda();
    const int devices = cuda_device_count();
    if (is_fake) made.clear();  // the rest is tested without it
    if (devices == 1) made.push_back({"cuda, a GPU and a socket", "live", true, 3, 1});
    if (devices > 1) {
      made.push_back({"cuda, one lane", "live", true, 1, devices});
      made.push_back({"cuda, four lanes", "live", true, 4, devices});
      made.push_back({"cuda, through the host", "live", true, 2, devices, false});
    }
    if (devices == 0) WARN("no CUDA device: the suite runs over the host and emulated engines");
#else
    WARN("built without CUDA: the suite runs over the host and emulated engines");
#endif
    return made;
  }();
  return all;
}

}  // namespace weft::test
