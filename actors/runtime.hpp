#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/emulated/options.hpp"
#include "actors/socket_lanes.hpp"
#include "framework/cuda.hpp"
#include "framework/device.hpp"
#include "framework/placement.hpp"
#include "framework/plan.hpp"
#include "framework/planned.hpp"
#include "framework/split.hpp"
#include "topology/machine.hpp"

namespace caf {
class actor_system;
}

namespace weft {

class Tracer;
struct Calibration;

/// Which engine makes the GPUs real.
enum class GpuMode : std::uint8_t {
  Auto,      ///< CUDA where there are GPUs it can drive, else two emulated ones
  Cuda,      ///< CUDA or an error
  Emulated,  ///< `emulated_gpus` of them, or those of the machine
  None,      ///< sockets only
};

/// What of a simulated op is real.
enum class SimulatedData : std::uint8_t {
  Real,  ///< kernels compute and copies move bytes on the host: right results in virtual time
  None,  ///< only shapes: nothing is computed, and what the program reads is zeros
};

/// What a runtime is made of. Unset values come from the environment: `WEFT_MACHINE`, `WEFT_GPUS`
/// (`auto`, `cuda`, `emulated:N`, `none`), `WEFT_EMULATED`, `WEFT_SERIAL`, `WEFT_WATCHDOG`
/// (seconds), `WEFT_MEMORY` (`gpu0=2GB,…`), `WEFT_SPILL` (a directory), `WEFT_PLACEMENT`,
/// `WEFT_RUN_COSTS` (a file), `WEFT_LANES` (`cores`, `threads`, `fast-cores`), `WEFT_PRECISION`
/// (`fp32`, `tf32`, `bf16`), `WEFT_P2P` (0 or 1), `WEFT_BUNDLES` (0 or 1), `WEFT_SIMULATE` (0 or
/// 1), `WEFT_DATA` (`real`, `none`), `WEFT_CALIBRATION` (a file), `WEFT_SIMULATED_SCALE`,
/// `WEFT_SIMULATED_REPORT` (a file).
struct RuntimeOptions {
  std::optional<Machine> machine;  ///< default: `WEFT_MACHINE` as a description, else this machine
  std::optional<GpuMode> gpus;
  std::uint32_t emulated_gpus = 0;  ///< 0: as many as the machine has, else 2
  std::optional<EmulatedOptions> emulated;
  /// Sockets, GPUs and links of the machine in virtual time: each op takes what a model of its
  /// device says, and a program's results and its trace are the same in every run.
  std::optional<bool> simulate;
  std::optional<SimulatedData> data;  ///< of a simulation; default real
  /// What of a simulated machine is so many times as fast: `link:pcie=2,gpu.flops=1.5`; see
  /// `SimulatedScale`. Default: nothing.
  std::optional<std::string> simulated_scale;
  /// A file that a simulated runtime adds a line to when it ends: how long it took, and what might
  /// be made faster. Default: none.
  std::optional<std::string> simulated_report;
  /// Measured figures that simulated devices, links and memories of the same models take; null: as
  /// the environment says, else none.
  std::shared_ptr<const Calibration> calibration;
  /// Policy of `Runtime::anywhere`: see `make_placement`; default `auto`.
  std::optional<std::string> placement;
  /// A file of what runs took: read when the runtime starts, if it is there, and written when it
  /// ends. Default: none; what is learnt lasts as long as the runtime.
  std::optional<std::string> run_costs;
  std::optional<bool> serial;
  std::optional<Precision> precision;  ///< of fp32 matrix products on CUDA devices; default fp32
  /// On CUDA devices, for products that come often: time cuBLASLt's other algorithms between the
  /// program's ops and keep the fastest. Which one that is, and from when on, differs from run to
  /// run, and with it the order of sums. Default: no; two runs give the same bits.
  std::optional<bool> tune_products;
  std::optional<bool> p2p;  ///< copies between GPUs directly where they can; default true
  bool relay = true;        ///< idle links to the host take copies of other GPUs
  /// Short ops of a plan that follow each other on a GPU go there as one: a CUDA graph. Default: on
  /// CUDA devices; true: on emulated and simulated ones, too. Not while a trace is recorded.
  std::optional<bool> bundles;
  std::uint32_t cuda_lanes = 4;       ///< in-order lanes of a CUDA device
  std::uint32_t staging_threads = 0;  ///< for pageable memory; 0: by the number of processors
  bool trace = false;                 ///< record what happens
  bool pin = true;                    ///< pin a socket's lanes to its cores
  /// What of a socket runs ops: its cores (default), its hardware threads, or the fast cores of a
  /// hybrid processor. Simulated sockets compute with their cores, whatever threads they have.
  std::optional<SocketLanes> socket_lanes;
  /// Ops a device takes in ahead of execution. Their blocks (some 200 bytes each) should fit into a
  /// core's cache.
  std::int64_t admission = 4096;
  std::size_t host_memory_bytes = 0;  ///< budget of each host memory; 0: 3/4 of what it has
  std::size_t gpu_memory_bytes = 0;   ///< budget of each CUDA device's memory; 0: what is free
  /// Budgets by name, before all others: `gpu0=2GB,gpu*=1GB,mem0=8GB`; see `memory_budgets`. What
  /// does not fit is evicted and brought back. `pinned=4GB`: what the host's side of CUDA devices
  /// may pin (`pinned_budget`). Default: nothing.
  std::optional<std::string> memory;
  /// A directory that host memories evict to when they are short: in a file without a name, which
  /// goes with the process. Its disk is a memory as others, `disk0=100GB` in `memory`; 9/10 of what
  /// is free otherwise. Empty: no disk, which is the default.
  std::optional<std::string> spill;
  std::optional<std::chrono::nanoseconds>
      watchdog;                         ///< silence before it speaks; default 30 s, 0: never
  caf::actor_system* system = nullptr;  ///< the program's own; null: the runtime makes one
};

class Collective;

/// Turns a machine into actors, one per socket, GPU and link, and is the door to them.
///
///     weft::Runtime rt;
///     auto g0 = rt.gpu(0);
///     auto x = rt.uniform({4000, 4000}, g0);
///     auto y = g0.matmul(x, x).to_host();
///     y.wait();
///
/// Constructed and destroyed by one thread; everything else from any thread. The destructor lets
/// what is in flight finish; promises that the program still holds must be settled or dropped for
/// that.
class Runtime {
 public:
  /// This machine.
  Runtime();
  /// Throws `DeviceError` or `TopologyError` for options that cannot be met.
  explicit Runtime(RuntimeOptions options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  [[nodiscard]] const Machine& machine() const;
  [[nodiscard]] std::size_t socket_count() const;
  [[nodiscard]] std::size_t gpu_count() const;
  /// Throws `DeviceError` naming those there are.
  [[nodiscard]] Device socket(std::size_t index) const;
  [[nodiscard]] Device gpu(std::size_t index) const;
  /// `socket0`, `gpu1`. Throws `DeviceError`.
  [[nodiscard]] Device device(const std::string& name) const;
  [[nodiscard]] std::vector<Device> devices() const;
  /// Wherever each op suits best: it is submitted as to a device, and the runtime's placement
  /// policy (`RuntimeOptions::placement`) chooses among those that have a variant of its kernel, by
  /// what runs took so far, where its arguments are and what devices and links have ahead.
  ///
  /// Anything but `submit`, `run` and what is made of them concerns the first socket.
  [[nodiscard]] Device anywhere() const;
  /// The same by a policy of the program's own, which the runtime keeps. Throws `UsageError` for
  /// none.
  [[nodiscard]] Device anywhere(std::shared_ptr<PlacementPolicy> policy) const;
  /// One op over several devices, each with rows that go with its share; see `Split`. Without
  /// `weights` by speed, which is corrected as runs are known.
  [[nodiscard]] Split split(std::vector<Device> devices, std::vector<double> weights = {}) const;
  /// `host`, `emulated`, `cuda`, `simulated`.
  [[nodiscard]] std::string engine_of(const Device& device) const;

  /// A tensor without a value.
  template <class T>
  [[nodiscard]] Tensor<T> tensor(const Shape& shape) const {
    return socket(0).tensor<T>(shape);
  }
  /// A tensor with a copy of `values`, in the first socket's memory. Throws `UsageError` if the
  /// count is not the shape's.
  template <class T>
  [[nodiscard]] Tensor<T> from_host(std::span<const T> values, const Shape& shape) const {
    return Tensor<T>(copy_in(std::as_bytes(values), shape, sizeof(T), element_type_of<T>()));
  }
  template <class T>
  [[nodiscard]] Tensor<T> from_host(const std::vector<T>& values, const Shape& shape) const {
    return from_host(std::span<const T>(values), shape);
  }
  [[nodiscard]] Tensor<float> zeros(const Shape& shape, const Device& on) const;
  /// Uniform in [-1, 1), the same values on every device for one seed.
  [[nodiscard]] Tensor<float> uniform(const Shape& shape, const Device& on,
                                      std::uint64_t seed = 0) const;

  /// A fixed group that reduces, broadcasts and gathers together. At least one device, each once.
  [[nodiscard]] Collective collective(const std::vector<Device>& devices) const;

  /// Runs `body` once, as it is, and records what it submits from this thread as a plan that can be
  /// replayed; see `record_plan` for what cannot.
  template <class Body>
  [[nodiscard]] Plan record(Body&& body) const {
    return record_plan(fabric(), std::forward<Body>(body));
  }

  /// A step that plans itself: `body`, a function of tensors and numbers, is recorded when it is
  /// called with other shapes than before, and replayed else. See `Planned`.
  template <class Body>
  [[nodiscard]] Planned<std::decay_t<Body>> planned(Body&& body) const {
    return Planned<std::decay_t<Body>>(fabric(), std::forward<Body>(body));
  }

  /// Time since the runtime began, as its devices see it: virtual on a simulated machine, which
  /// moves only while the program waits; the steady clock's else. Any thread.
  [[nodiscard]] std::chrono::nanoseconds now() const;
  /// Whether devices and links run in virtual time.
  [[nodiscard]] bool is_simulated() const;
  /// Whether the fastest algorithms of products are looked for: `RuntimeOptions::tune_products`.
  [[nodiscard]] bool tunes_products() const;
  /// False: kernels and copies take their time but compute and move nothing, and what the program
  /// reads back is zeros (simulation with `--data none`).
  [[nodiscard]] bool has_data() const;
  /// What was used of a simulated machine so far and might be made faster: targets for
  /// `RuntimeOptions::simulated_scale`. Empty in real time. While nothing is in flight.
  [[nodiscard]] std::vector<std::string> scale_targets() const;

  /// Blocks until everything submitted has settled. Failures stay in their futures.
  void wait_idle() const;
  /// Ops and copies submitted and not settled.
  [[nodiscard]] std::int64_t in_flight() const;
  /// Null unless the options asked for a trace.
  [[nodiscard]] Tracer* tracer() const;
  /// Who waits for whom, one line per pending op, for a person.
  [[nodiscard]] std::string wait_for_graph() const;
  /// From now on every op of this emulated or simulated GPU fails with `DeviceLost`. Throws
  /// `DeviceError` for another kind of device.
  void lose(const Device& device);

  /// The actor system that the runtime's actors live in, for the program's own.
  [[nodiscard]] caf::actor_system& system() const;
  [[nodiscard]] Fabric& fabric() const;

  struct Parts;
  [[nodiscard]] Parts& parts() const { return *parts_; }

 private:
  [[nodiscard]] TensorHandle copy_in(std::span<const std::byte> bytes, const Shape& shape,
                                     std::uint32_t element_bytes, std::uint32_t element_type) const;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weft
