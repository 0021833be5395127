#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <tbb/task_scheduler_observer.h>

#include <atomic>

#include "apps/bench/cores.hpp"
#include "apps/bench/executor.hpp"
#include "apps/bench/work.hpp"

namespace weft::bench {
namespace {

// Slot i of the arena on core i; the thread that calls has slot 0.
class PinSlots final : public tbb::task_scheduler_observer {
 public:
  explicit PinSlots(tbb::task_arena& arena) : tbb::task_scheduler_observer(arena) { observe(true); }
  ~PinSlots() override { observe(false); }
  void on_scheduler_entry(bool) override {
    const auto slot = static_cast<std::size_t>(tbb::this_task_arena::current_thread_index());
    pin_to(core_cpus()[slot % core_cpus().size()]);
  }
  void on_scheduler_exit(bool) override { unpin(); }
};

class Arena {
 public:
  explicit Arena(std::uint32_t threads)
      : limit_(tbb::global_control::max_allowed_parallelism, threads),
        arena_(static_cast<int>(threads)),
        pin_(arena_) {}
  template <class Function>
  void execute(const Function& function) {
    arena_.execute(function);
  }

 private:
  tbb::global_control limit_;
  tbb::task_arena arena_;
  PinSlots pin_;
};

class FlowExecutor final : public Executor {
 public:
  FlowExecutor(const ExecutorSetup& setup, bool is_reused)
      : is_reused_(is_reused), arena_(setup.threads) {}

  double run(const OpGraph& graph) override {
    double seconds = 0;
    arena_.execute([&] {
      if (is_reused_ && (built_for_ != &graph || built_->nodes.size() != graph.ops())) {
        built_ = std::make_unique<Built>(graph);
        built_for_ = &graph;
      }
      const Stopwatch watch;
      if (is_reused_)
        built_->run(graph);
      else
        Built(graph).run(graph);
      seconds = watch.seconds();
    });
    return seconds;
  }

 private:
  using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;

  struct Built {
    explicit Built(const OpGraph& graph) {
      nodes.reserve(graph.ops());
      for (std::uint32_t op = 0; op < graph.ops(); ++op) {
        nodes.push_back(
            std::make_unique<Node>(flow, [op](const tbb::flow::continue_msg&) { run_op(op); }));
        graph.node(op).for_each_predecessor(
            [&](std::uint32_t before) { tbb::flow::make_edge(*nodes[before], *nodes[op]); });
      }
    }
    void run(const OpGraph& graph) {
      for (std::uint32_t op = 0; op < graph.ops(); ++op)
        if (graph.node(op).predecessor_count() == 0) nodes[op]->try_put(tbb::flow::continue_msg());
      flow.wait_for_all();
    }
    tbb::flow::graph flow;
    std::vector<std::unique_ptr<Node>> nodes;
  };

  const bool is_reused_;
  std::unique_ptr<Built> built_;
  const OpGraph* built_for_ = nullptr;
  Arena arena_;
};

class GroupExecutor final : public Executor {
 public:
  explicit GroupExecutor(const ExecutorSetup& setup) : arena_(setup.threads) {}

  double run(const OpGraph& graph) override {
    double seconds = 0;
    arena_.execute([&] {
      const Stopwatch watch;
      count_and_run(graph);
      seconds = watch.seconds();
    });
    return seconds;
  }

 private:
  struct Run {
    const OpGraph& graph;
    std::unique_ptr<std::atomic<std::uint32_t>[]> left;
    tbb::task_group group;

    void start(std::uint32_t op) {
      group.run([this, op] {
        run_op(op);
        graph.node(op).for_each_successor([this](std::uint32_t behind) {
          if (left[behind].fetch_sub(1, std::memory_order_acq_rel) == 1) start(behind);
        });
      });
    }
  };

  static void count_and_run(const OpGraph& graph) {
    Run run{
        graph,
        std::unique_ptr<std::atomic<std::uint32_t>[]>(new std::atomic<std::uint32_t>[graph.ops()]),
        {}};
    for (std::uint32_t op = 0; op < graph.ops(); ++op)
      run.left[op].store(graph.node(op).predecessor_count(), std::memory_order_relaxed);
    for (std::uint32_t op = 0; op < graph.ops(); ++op)
      if (graph.node(op).predecessor_count() == 0) run.start(op);
    run.group.wait();
  }

  Arena arena_;
};

}  // namespace

std::unique_ptr<Executor> make_tbb_flow(const ExecutorSetup& setup) {
  return std::make_unique<FlowExecutor>(setup, false);
}
std::unique_ptr<Executor> make_tbb_flow_reused(const ExecutorSetup& setup) {
  return std::make_unique<FlowExecutor>(setup, true);
}
std::unique_ptr<Executor> make_tbb_group(const ExecutorSetup& setup) {
  return std::make_unique<GroupExecutor>(setup);
}

}  // namespace weft::bench
