#include "apps/bench/weft_executor.hpp"

#include <array>
#include <utility>

#include "apps/bench/cores.hpp"
#include "apps/bench/work.hpp"
#include "framework/kernel.hpp"

namespace weft::bench {
namespace {

using Datum = std::uint64_t;

RuntimeOptions options_of(WeftExecutor::On on, const ExecutorSetup& setup) {
  RuntimeOptions options;
  options.machine = machine_of(setup.threads);
  options.gpus = on == WeftExecutor::On::Emulated ? GpuMode::Emulated : GpuMode::None;
  options.emulated_gpus = 1;
  options.emulated = EmulatedOptions{};
  options.emulated->compute_lanes = setup.threads;
  options.serial = false;
  options.trace = setup.trace;
  if (setup.admission) options.admission = setup.admission;
  return options;
}

const auto& write_kernel() {
  static const auto kernel = Kernel("write").cpu([](Cpu&, Out<Datum> x) { x[0] = 0; });
  return kernel;
}
const auto& update_kernel() {
  static const auto kernel =
      Kernel("update").cpu([](Cpu&, std::uint32_t op, InOut<Datum>) { run_op(op); });
  return kernel;
}
const auto& bare_kernel() {
  static const auto kernel = Kernel("bare").cpu([](Cpu&, std::uint32_t op) { run_op(op); });
  return kernel;
}

template <std::size_t>
using Read = In<Datum>;

template <std::size_t... kIndex>
const auto& read_kernel(std::index_sequence<kIndex...>) {
  static const auto kernel =
      Kernel("step").cpu([](Cpu&, std::uint32_t op, Read<kIndex>..., Out<Datum>) { run_op(op); });
  return kernel;
}

struct Target {
  const Device& device;
  const std::vector<Tensor<Datum>>& data;
  const Future* gate;
};

template <class K, class... Given>
void send(const Target& target, const K& kernel, const OpGraph::Node& node, Given&&... given) {
  if (target.gate && node.predecessor_count() == 0)
    target.device.submit(kernel, node.number(), std::forward<Given>(given)..., after(*target.gate));
  else
    target.device.submit(kernel, node.number(), std::forward<Given>(given)...);
}

using Reads = std::array<std::uint32_t, OpGraph::kMaxReads>;

template <std::size_t... kIndex>
void send_reads(const Target& target, const OpGraph::Node& node, const Reads& reads,
                std::index_sequence<kIndex...> indices) {
  send(target, read_kernel(indices), node, in(target.data[reads[kIndex]])...,
       out(target.data[node.written()]));
}

template <std::size_t kCount>
void send_counted(const Target& target, const OpGraph::Node& node, const Reads& reads) {
  send_reads(target, node, reads, std::make_index_sequence<kCount>());
}

template <std::size_t... kCount>
constexpr auto senders(std::index_sequence<kCount...>) {
  return std::array{&send_counted<kCount>...};
}
constexpr auto kSenders = senders(std::make_index_sequence<OpGraph::kMaxReads + 1>());

}  // namespace

WeftExecutor::WeftExecutor(On on, const ExecutorSetup& setup)
    : runtime_(options_of(on, setup)),
      device_(on == On::Host       ? runtime_.socket(0)
              : on == On::Emulated ? runtime_.gpu(0)
                                   : runtime_.anywhere()) {
  if (on != On::Emulated) place_submitter(setup.threads);
}

void WeftExecutor::prepare(const OpGraph& graph) {
  if (data_.size() == graph.data()) return;
  data_.clear();
  for (std::uint32_t i = 0; i < graph.data(); ++i) {
    data_.push_back(device_.tensor<Datum>({1}));
    device_.submit(write_kernel(), out(data_.back()));
  }
  wait();
}

void WeftExecutor::submit(const OpGraph& graph, const Future* gate) {
  const Target target{device_, data_, gate};
  for (std::uint32_t op = 0; op < graph.ops(); ++op) {
    const OpGraph::Node node = graph.node(op);
    if (node.written() == OpGraph::kNoData) {
      send(target, bare_kernel(), node);
    } else if (node.is_update()) {
      send(target, update_kernel(), node, inout(data_[node.written()]));
    } else {
      Reads reads;
      std::size_t count = 0;
      node.for_each_read([&](std::uint32_t datum) { reads[count++] = datum; });
      kSenders[count](target, node, reads);
    }
  }
}

void WeftExecutor::wait() {
  for (const auto& datum : data_) datum.future().wait();
  runtime_.wait_idle();
}

double WeftExecutor::run(const OpGraph& graph) {
  prepare(graph);
  const Stopwatch watch;
  submit(graph);
  wait();
  return watch.seconds();
}

namespace {

// The graph recorded once, which runs it, and then replayed: what is timed is a replay.
class PlanExecutor final : public Executor {
 public:
  PlanExecutor(WeftExecutor::On on, const ExecutorSetup& setup) : weft_(on, setup) {}

  double run(const OpGraph& graph) override {
    if (recorded_ != &graph || plan_.size() != graph.ops()) {
      OrderCheck* const check = std::exchange(work.check, nullptr);  // of the timed run only
      weft_.prepare(graph);
      plan_ = weft_.runtime().record([&] { weft_.submit(graph); });
      recorded_ = &graph;
      weft_.wait();
      work.check = check;
    }
    const Stopwatch watch;
    plan_.replay();
    weft_.wait();
    return watch.seconds();
  }

 private:
  WeftExecutor weft_;
  Plan plan_;
  const OpGraph* recorded_ = nullptr;
};

}  // namespace

std::unique_ptr<Executor> make_weft_plan(const ExecutorSetup& setup) {
  return std::make_unique<PlanExecutor>(WeftExecutor::On::Host, setup);
}
std::unique_ptr<Executor> make_weft_plan_emulated(const ExecutorSetup& setup) {
  return std::make_unique<PlanExecutor>(WeftExecutor::On::Emulated, setup);
}
std::unique_ptr<Executor> make_weft_host(const ExecutorSetup& setup) {
  return std::make_unique<WeftExecutor>(WeftExecutor::On::Host, setup);
}
std::unique_ptr<Executor> make_weft_anywhere(const ExecutorSetup& setup) {
  return std::make_unique<WeftExecutor>(WeftExecutor::On::Anywhere, setup);
}
std::unique_ptr<Executor> make_weft_emulated(const ExecutorSetup& setup) {
  return std::make_unique<WeftExecutor>(WeftExecutor::On::Emulated, setup);
}

}  // namespace weft::bench
