#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "actors/runtime.hpp"

namespace weft::test {

/// How one step uses one tensor. `adds` makes an `inout` commute: it only adds to each element.
struct GraphUse {
  std::uint32_t tensor = 0;
  Access access = Access::In;
  bool adds = false;
};

enum class StepKind : std::uint8_t {
  Run,    ///< an op
  Read,   ///< `to_host` of `tensor`
  Renew,  ///< the handle is dropped, a tensor of the same shape takes its place
};

struct GraphStep {
  StepKind kind = StepKind::Run;
  std::uint32_t device = 0;  ///< index into `Runtime::devices()`, taken modulo their number
  std::vector<GraphUse> uses;
  std::uint64_t salt = 0;
  bool throws = false;      ///< the kernel throws `fault N`, N the step's number
  bool gated = false;       ///< waits for a promise that is fulfilled after the last submission
  std::int32_t after = -1;  ///< number of an earlier op to wait for
  std::uint32_t tensor = 0;
  std::uint32_t number = 0;
};

struct GraphTensor {
  bool real = false;  ///< float, else 64-bit integers
  std::int64_t size = 0;
};

/// What one thread submits. The first tensors may be shared with other threads.
struct Graph {
  std::vector<GraphTensor> tensors;
  std::vector<GraphStep> steps;
  bool reads_away =
      false;  ///< reads go to the program's own memory: they take no room in the host's
  /// Not null: places the ops, whatever devices the steps name.
  PlacementPolicy* policy = nullptr;
};

struct GraphLimits {
  std::uint32_t most_ops = 200;
  std::uint32_t most_tensors = 30;
  std::uint32_t first_step = 0;  ///< number of the first
  double throwing = 0;           ///< share of ops that throw
  bool reduces = true;
  /// Tensors that all threads share: the first half are only read, the second only added to
  /// (or read, if ops may throw).
  std::vector<GraphTensor> shared;
};

/// A random graph; the same for the same generator. Tensors are written before they are read.
Graph make_graph(std::mt19937_64& random, const GraphLimits& limits);

/// The value of one tensor in the oracle.
struct OracleValue {
  std::vector<std::byte> bytes;
  bool written = false;
  std::set<std::string> roots;  ///< not empty: failed, with one of these root messages
  bool reduced = false;         ///< by an op whose copies nobody sees
};

/// What an op or read came to.
struct StepResult {
  Future future;
  TensorHandle value;                             ///< of a read
  std::shared_ptr<std::vector<std::byte>> bytes;  ///< of one into the program's own memory
};

/// Runs graphs one op at a time in plain memory. With results of a real run, takes faults in copies
/// as they came there and checks that each failure is one: see `mismatch`.
class Oracle {
 public:
  /// Shared tensors start with values of their own, as `fill_shared` gives them.
  explicit Oracle(const std::vector<GraphTensor>& shared);

  /// Runs `graph`; compares each read with `results` and each failure with those that must be.
  void run(const Graph& graph, std::span<const StepResult> results);
  /// Compares a value read after all threads ended.
  void compare_shared(std::uint32_t tensor, const StepResult& result);
  /// What did not agree, one line each; empty if all did.
  [[nodiscard]] const std::string& mismatch() const { return mismatch_; }
  [[nodiscard]] std::size_t failures() const { return failures_; }

 private:
  void run_op(const Graph& graph, const GraphStep& step, const StepResult& result);
  void compare(const GraphStep& step, const GraphTensor& tensor, const OracleValue& value,
               const StepResult& result);
  bool check_failure(const std::string& what, const std::set<std::string>& roots,
                     const Future& future, std::set<std::string>& actual, bool may_lose_copy);
  void report(const std::string& line);

  std::size_t shared_count_;
  std::vector<OracleValue> shared_;
  std::vector<OracleValue> values_;
  std::vector<std::set<std::string>> roots_of_step_;
  std::string mismatch_;
  std::size_t failures_ = 0;
};

/// Shared tensors with their first values.
std::vector<TensorHandle> fill_shared(const Runtime& runtime,
                                      const std::vector<GraphTensor>& shared);

/// Submits all steps and returns without waiting for them.
std::vector<StepResult> submit_graph(const Runtime& runtime, const Graph& graph,
                                     const std::vector<TensorHandle>& shared);

/// Submits the ops among the steps to these tensors, one for each of the graph's, without gates and
/// without `after`.
void submit_ops(const Runtime& runtime, const Graph& graph,
                const std::vector<TensorHandle>& tensors);

/// A read of `tensor`, as a step does it; `away`: into the program's own memory.
StepResult read_tensor(const TensorHandle& tensor, bool away = false);

}  // namespace weft::test
