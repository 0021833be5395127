#pragma once

#include <optional>
#include <vector>

#include "actors/runtime.hpp"
#include "apps/bench/executor.hpp"

namespace weft::bench {

/// Runs graphs on one device of a weft runtime, or wherever its policy says on a host
/// of one socket: each op is a call of a kernel whose tensors say
/// what it follows.
class WeftExecutor final : public Executor {
 public:
  enum class On : std::uint8_t { Host, Emulated, Anywhere };

  WeftExecutor(On on, const ExecutorSetup& setup);
  double run(const OpGraph& graph) override;

  /// Makes the tensors of `graph`, each with a value.
  void prepare(const OpGraph& graph);
  /// Submits all ops; with `gate`, those that follow none wait for it.
  void submit(const OpGraph& graph, const Future* gate = nullptr);
  /// Blocks until all that was submitted has settled.
  void wait();

  [[nodiscard]] Runtime& runtime() { return runtime_; }
  /// Where the ops go.
  [[nodiscard]] const Device& device() const { return device_; }

 private:
  Runtime runtime_;
  Device device_;
  std::vector<Tensor<std::uint64_t>> data_;
};

}  // namespace weft::bench
