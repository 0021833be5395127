#include "tests/actors/random_graph.hpp"

#include <algorithm>

#include "tests/actors/cuda/through_host.hpp"

namespace weft::test {
namespace {

std::uint64_t mixed(std::uint64_t z) {  // SplitMix64
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

float small_real(std::uint64_t bits) {
  return static_cast<float>(bits >> 40) * 0x1p-24f - 0.25f;
}

// A tensor as a step sees it, in the oracle and in the kernel.
struct Block {
  void* data;
  std::size_t count;
  bool real;
  GraphUse use;
};

// The arithmetic of a step: what is read decides what is written.
void compute(const GraphStep& step, std::span<const Block> blocks) {
  std::uint64_t hash = mixed(step.salt);
  for (const Block& block : blocks) {
    if (block.use.access != Access::In) continue;
    for (std::size_t i = 0; i < block.count; ++i) {
      std::uint64_t bits = 0;
      if (block.real)
        std::memcpy(&bits, static_cast<const float*>(block.data) + i, sizeof(float));
      else
        bits = static_cast<const std::uint64_t*>(block.data)[i];
      hash = (hash ^ bits) * 0x100000001b3ull;
    }
    hash = mixed(hash);
  }
  for (const Block& block : blocks) {
    if (block.use.access == Access::In) continue;
    const bool keeps = block.use.access == Access::InOut;
    for (std::size_t i = 0; i < block.count; ++i) {
      const std::uint64_t fresh = mixed(hash + i);
      if (block.real) {
        float& x = static_cast<float*>(block.data)[i];
        x = keeps ? x * 0.5f + small_real(fresh) : small_real(fresh);
      } else {
        std::uint64_t& x = static_cast<std::uint64_t*>(block.data)[i];
        x = keeps ? (block.use.adds ? x + fresh : x * 3 + fresh) : fresh;
      }
    }
  }
}

struct KernelScalars {
  const GraphStep* step;
};

void run_step(Cpu&, Op& op) {
  const GraphStep& step = *static_cast<const KernelScalars*>(op.scalars())->step;
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < op.arg_count; ++i) {
    const Replica& replica = *op.args()[i].replica();
    const bool real = replica.tensor->element_type == element_type_of<float>();
    blocks.push_back(
        {replica.data, replica.bytes / replica.tensor->element_bytes, real, step.uses[i]});
  }
  if (step.throws) throw std::runtime_error("fault " + std::to_string(step.number));
  compute(step, blocks);
}

const std::shared_ptr<const KernelCode>& step_code() {
  static const std::shared_ptr<const KernelCode> code = [] {
    auto made = std::make_shared<KernelCode>();
    made->name = "step";
    made->cpu = run_step;
#if WEFT_HAVE_CUDA
    made->cuda = [](Cuda& gpu, Op& op) {
      const GraphStep& step = *static_cast<const KernelScalars*>(op.scalars())->step;
      if (step.throws) throw std::runtime_error("fault " + std::to_string(step.number));
      run_through_host(gpu, op);
    };
#endif
    return made;
  }();
  return code;
}

std::uint32_t element_bytes(const GraphTensor& tensor) {
  return tensor.real ? 4 : 8;
}

TensorHandle new_tensor(const Runtime& runtime, const GraphTensor& tensor) {
  const auto type = tensor.real ? element_type_of<float>() : element_type_of<std::uint64_t>();
  return TensorHandle(
      make_tensor_state(runtime.fabric(), {tensor.size}, element_bytes(tensor), type));
}

GraphStep first_value(std::uint32_t tensor) {
  GraphStep step;
  step.uses = {{tensor, Access::Out, false}};
  step.salt = tensor;
  return step;
}

Future submit_step(const Runtime& runtime, const GraphStep& step,
                   const std::vector<TensorHandle>& tensors, std::span<Op* const> after,
                   PlacementPolicy* policy = nullptr) {
  std::vector<Argument> arguments;
  for (const GraphUse& use : step.uses) {
    TensorState* tensor = tensors[use.tensor].state();
    const bool real = tensor->element_type == element_type_of<float>();
    arguments.push_back({tensor, use.access,
                         use.access != Access::Reduce ? nullptr
                         : real                       ? detail::add_elements<float>
                                                      : detail::add_elements<std::uint64_t>});
  }
  const auto devices = runtime.devices();
  Call call;
  call.place = &devices[step.device % devices.size()].place();
  call.policy = policy;
  call.code = &step_code();
  call.arguments = arguments;
  call.after = after;
  KernelScalars scalars{&step};
  call.scalar_bytes = sizeof scalars;
  call.context = &scalars;
  call.write_scalars = [](void* where, void* context) {
    new (where) KernelScalars(*static_cast<KernelScalars*>(context));
  };
  return Future(submit(runtime.fabric(), call));
}

}  // namespace

std::vector<TensorHandle> fill_shared(const Runtime& runtime,
                                      const std::vector<GraphTensor>& shared) {
  std::vector<TensorHandle> tensors;
  for (const GraphTensor& tensor : shared) tensors.push_back(new_tensor(runtime, tensor));
  for (std::uint32_t t = 0; t < shared.size(); ++t) {
    const GraphStep step = first_value(t);
    submit_step(runtime, step, tensors, {}).wait();
  }
  return tensors;
}

StepResult read_tensor(const TensorHandle& tensor, bool away) {
  StepResult result;
  if (away) {
    result.bytes = std::make_shared<std::vector<std::byte>>(tensor.state()->bytes());
    result.future = copy_to_program(tensor.state(), *result.bytes);
    return result;
  }
  result.value = copy_to_host(tensor.state(), result.future);
  return result;
}

void submit_ops(const Runtime& runtime, const Graph& graph,
                const std::vector<TensorHandle>& tensors) {
  for (const GraphStep& step : graph.steps)
    if (step.kind == StepKind::Run) submit_step(runtime, step, tensors, {}, graph.policy);
}

std::vector<StepResult> submit_graph(const Runtime& runtime, const Graph& graph,
                                     const std::vector<TensorHandle>& shared) {
  std::vector<TensorHandle> tensors = shared;
  while (tensors.size() < graph.tensors.size())
    tensors.push_back(new_tensor(runtime, graph.tensors[tensors.size()]));
  std::vector<StepResult> results(graph.steps.size());
  Promise gate("gate");
  const Future gate_opens = gate.future();
  for (std::size_t s = 0; s < graph.steps.size(); ++s) {
    const GraphStep& step = graph.steps[s];
    if (step.kind == StepKind::Read) {
      results[s] = read_tensor(tensors[step.tensor], graph.reads_away);
    } else if (step.kind == StepKind::Renew) {
      tensors[step.tensor] = new_tensor(runtime, graph.tensors[step.tensor]);
    } else {
      std::vector<Op*> after;
      if (step.gated) after.push_back(gate_opens.op());
      if (step.after >= 0)
        after.push_back(results[static_cast<std::size_t>(step.after)].future.op());
      results[s].future = submit_step(runtime, step, tensors, after, graph.policy);
    }
  }
  gate.fulfil();
  return results;
}

Graph make_graph(std::mt19937_64& random, const GraphLimits& limits) {
  auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
  auto chance = [&](double share) { return static_cast<double>(random() >> 11) * 0x1p-53 < share; };
  Graph graph;
  graph.tensors = limits.shared;
  const auto shared = static_cast<std::uint32_t>(limits.shared.size());
  const std::uint32_t own = 1 + below(limits.most_tensors);
  const bool has_large = chance(0.02);
  for (std::uint32_t t = 0; t < own; ++t) {
    static constexpr std::int64_t kSizes[] = {0, 1, 1, 2, 7, 16, 33, 100, 257};
    graph.tensors.push_back({chance(0.5), kSizes[below(std::size(kSizes))]});
  }
  if (has_large) graph.tensors[shared].size = 150'000;  // copied in chunks
  std::vector<bool> written(graph.tensors.size());
  for (std::uint32_t t = 0; t < shared; ++t) written[t] = true;

  auto choose_use = [&](std::uint32_t t) -> GraphUse {
    // One that fails would fail those of other threads that happen to come later.
    if (t < shared / 2 || (t < shared && limits.throwing > 0)) return {t, Access::In, false};
    if (t < shared)
      return limits.reduces && chance(0.5) ? GraphUse{t, Access::Reduce, false}
                                           : GraphUse{t, Access::InOut, true};
    const double roll = static_cast<double>(below(100));
    if (limits.reduces && roll < 15) return {t, Access::Reduce, false};
    if (!written[t] || roll < 35) return {t, Access::Out, false};
    if (roll < 55) return {t, Access::InOut, false};
    return {t, Access::In, false};
  };
  const double skew = static_cast<double>(below(1000)) / 1000;
  const std::uint32_t ops = 1 + static_cast<std::uint32_t>(skew * skew * (limits.most_ops - 1));
  for (std::uint32_t n = 0; n < ops; ++n) {
    GraphStep step;
    step.number = limits.first_step + static_cast<std::uint32_t>(graph.steps.size());
    const std::uint32_t picked = shared + below(own);
    if (chance(0.05) && written[picked]) {
      step.kind = StepKind::Read;
      step.tensor = picked;
      graph.steps.push_back(step);
      continue;
    }
    if (chance(0.03)) {
      step.kind = StepKind::Renew;
      step.tensor = picked;
      written[picked] = false;
      graph.steps.push_back(step);
      continue;
    }
    step.device = below(64);
    step.salt = random();
    step.throws = chance(limits.throwing);
    step.gated = chance(0.01);
    const std::uint32_t uses = 1 + below(4);
    for (std::uint32_t u = 0; u < uses; ++u) {
      const auto t = below(graph.tensors.size());
      const bool known = std::any_of(step.uses.begin(), step.uses.end(),
                                     [&](const GraphUse& use) { return use.tensor == t; });
      if (!known) step.uses.push_back(choose_use(t));
    }
    if (step.uses[0].access == Access::In && chance(0.1)) step.uses.push_back(step.uses[0]);
    for (const GraphUse& use : step.uses)
      if (use.access != Access::In) written[use.tensor] = true;
    if (chance(0.05) && !graph.steps.empty()) {
      const auto earlier = below(graph.steps.size());
      if (graph.steps[earlier].kind == StepKind::Run)
        step.after = static_cast<std::int32_t>(earlier);
    }
    graph.steps.push_back(std::move(step));
  }
  for (std::uint32_t t = shared; t < graph.tensors.size(); ++t) {
    if (!written[t]) continue;
    GraphStep step;
    step.kind = StepKind::Read;
    step.tensor = t;
    step.number = limits.first_step + static_cast<std::uint32_t>(graph.steps.size());
    graph.steps.push_back(step);
  }
  return graph;
}

Oracle::Oracle(const std::vector<GraphTensor>& shared) : shared_count_(shared.size()) {
  for (std::uint32_t t = 0; t < shared.size(); ++t) {
    OracleValue value;
    value.bytes.resize(static_cast<std::size_t>(shared[t].size) * element_bytes(shared[t]));
    value.written = true;
    const GraphStep step = first_value(t);
    const Block block{value.bytes.data(), static_cast<std::size_t>(shared[t].size), shared[t].real,
                      step.uses[0]};
    compute(step, {&block, 1});
    shared_.push_back(std::move(value));
  }
}

void Oracle::report(const std::string& line) {
  if (mismatch_.size() < 2000) mismatch_ += line + "\n";
}

bool Oracle::check_failure(const std::string& what, const std::set<std::string>& roots,
                           const Future& future, std::set<std::string>& actual,
                           bool may_lose_copy) {
  const FailureRef failure = future.failure();
  if (!failure) {
    if (!roots.empty()) report(what + " is done, expected " + *roots.begin());
    return false;
  }
  ++failures_;
  const std::string& root = failure->root_message();
  if (!roots.contains(root)) {
    const bool lost = may_lose_copy && failure->root_op() == "copy";
    if (!lost)
      report(what + " failed with \"" + failure->describe() + "\", expected " +
             (roots.empty() ? "none" : *roots.begin()));
  }
  actual = {root};
  return true;
}

void Oracle::run(const Graph& graph, std::span<const StepResult> results) {
  values_.assign(graph.tensors.size(), {});
  roots_of_step_.assign(graph.steps.size(), {});
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    if (t < shared_count_)
      values_[t] = std::move(shared_[t]);
    else
      values_[t].bytes.resize(static_cast<std::size_t>(graph.tensors[t].size) *
                              element_bytes(graph.tensors[t]));
  }
  for (std::size_t s = 0; s < graph.steps.size(); ++s) {
    const GraphStep& step = graph.steps[s];
    if (step.kind == StepKind::Renew)
      values_[step.tensor].written = values_[step.tensor].reduced = false,
      values_[step.tensor].roots.clear();
    else if (step.kind == StepKind::Read)
      compare(step, graph.tensors[step.tensor], values_[step.tensor], results[s]);
    else
      run_op(graph, step, results[s]);
  }
  for (std::size_t t = 0; t < shared_count_; ++t) shared_[t] = std::move(values_[t]);
}

void Oracle::run_op(const Graph& graph, const GraphStep& step, const StepResult& result) {
  const std::string what = "op " + std::to_string(step.number);
  std::set<std::string> roots;
  for (const GraphUse& use : step.uses)
    if (!overwrites(use.access))
      roots.insert(values_[use.tensor].roots.begin(), values_[use.tensor].roots.end());
  if (step.after >= 0) {
    const auto& earlier = roots_of_step_[static_cast<std::size_t>(step.after)];
    roots.insert(earlier.begin(), earlier.end());
  }
  if (step.throws && roots.empty()) roots.insert("fault " + std::to_string(step.number));
  std::set<std::string> actual;
  const bool failed = check_failure(what, roots, result.future, actual, true);
  const std::size_t index = static_cast<std::size_t>(&step - graph.steps.data());
  if (failed) roots_of_step_[index] = actual;

  std::vector<std::vector<std::byte>> contributions(step.uses.size());
  std::vector<Block> blocks;
  for (std::size_t u = 0; u < step.uses.size(); ++u) {
    OracleValue& value = values_[step.uses[u].tensor];
    const GraphTensor& tensor = graph.tensors[step.uses[u].tensor];
    void* data = value.bytes.data();
    if (step.uses[u].access == Access::Reduce) {
      contributions[u].resize(value.bytes.size());
      data = contributions[u].data();
    }
    blocks.push_back({data, static_cast<std::size_t>(tensor.size), tensor.real, step.uses[u]});
  }
  if (!failed) compute(step, blocks);
  for (std::size_t u = 0; u < step.uses.size(); ++u) {
    const GraphUse& use = step.uses[u];
    if (use.access == Access::In) continue;
    OracleValue& value = values_[use.tensor];
    if (use.access == Access::Out) value.roots.clear(), value.reduced = false;
    if (failed) value.roots.insert(actual.begin(), actual.end());
    if (use.access == Access::Reduce && !failed) {
      const Block& block = blocks[u];
      if (!value.written)
        value.bytes = contributions[u];
      else if (block.real)
        detail::add_elements<float>(value.bytes.data(), block.data, block.count);
      else
        detail::add_elements<std::uint64_t>(value.bytes.data(), block.data, block.count);
    }
    if (use.access == Access::Reduce) value.reduced = true;
    value.written = true;
  }
}

void Oracle::compare(const GraphStep& step, const GraphTensor& tensor, const OracleValue& value,
                     const StepResult& result) {
  const std::string what = "read " + std::to_string(step.number) + " of tensor " +
                           std::to_string(step.tensor) + (tensor.real ? " (real)" : " (integer)");
  std::set<std::string> actual;
  if (check_failure(what, value.roots, result.future, actual, true)) return;
  std::span<const std::byte> read;
  if (result.bytes) {
    read = *result.bytes;
  } else {
    const Replica& replica = *result.value.state()->replicas[0];
    read = {static_cast<const std::byte*>(replica.data), replica.bytes};
  }
  if (read.size() != value.bytes.size())
    report(what + " has the wrong size");
  else if (!std::equal(read.begin(), read.end(), value.bytes.begin()))
    report(what + " differs");
}

void Oracle::compare_shared(std::uint32_t tensor, const StepResult& result) {
  GraphStep step;
  step.tensor = tensor;
  compare(step, {}, shared_[tensor], result);
}

}  // namespace weft::test
