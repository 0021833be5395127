#include <starpu.h>

#include <cstdlib>
#include <stdexcept>

#include "apps/bench/cores.hpp"
#include "apps/bench/executor.hpp"
#include "apps/bench/work.hpp"

namespace weft::bench {
namespace {

void run_codelet(void**, void* argument) {
  run_op(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(argument)));
}

class StarPuExecutor final : public Executor {
 public:
  explicit StarPuExecutor(const ExecutorSetup& setup) {
    if (setup.threads > STARPU_MAXCPUS)
      throw std::invalid_argument("threads " + std::to_string(setup.threads) +
                                  ": this StarPU was built for at most " +
                                  std::to_string(STARPU_MAXCPUS) + " cores");
    setenv("STARPU_SILENT", "1", 0);
    setenv("STARPU_CALIBRATE", "0", 0);
    starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = static_cast<int>(setup.threads);
    conf.ncuda = 0;
    conf.nopencl = 0;
    conf.sched_policy_name = "lws";
    conf.use_explicit_workers_bindid = 1;
    for (std::uint32_t i = 0; i < setup.threads; ++i)
      conf.workers_bindid[i] = static_cast<unsigned>(core_cpus()[i]);
    if (starpu_init(&conf)) throw std::runtime_error("StarPU did not start");
    starpu_codelet_init(&codelet_);
    codelet_.cpu_funcs[0] = run_codelet;
    codelet_.cpu_funcs_name[0] = "run_codelet";
    codelet_.nbuffers = STARPU_VARIABLE_NBUFFERS;
    codelet_.name = "op";
    place_submitter(setup.threads);
  }
  ~StarPuExecutor() override { starpu_shutdown(); }

  double run(const OpGraph& graph) override {
    data_.assign(graph.data(), 0);
    handles_.resize(graph.data());
    for (std::uint32_t i = 0; i < graph.data(); ++i)
      starpu_variable_data_register(&handles_[i], STARPU_MAIN_RAM,
                                    reinterpret_cast<std::uintptr_t>(&data_[i]), sizeof data_[i]);
    const Stopwatch watch;
    for (std::uint32_t op = 0; op < graph.ops(); ++op) submit(graph.node(op));
    starpu_task_wait_for_all();
    const double seconds = watch.seconds();
    for (starpu_data_handle_t handle : handles_) starpu_data_unregister(handle);
    return seconds;
  }

 private:
  void submit(const OpGraph::Node& node) {
    starpu_data_descr descriptions[OpGraph::kMaxReads + 1];
    int count = 0;
    node.for_each_read([&](std::uint32_t datum) {
      descriptions[count++] = {handles_[datum], STARPU_R};
    });
    if (node.written() != OpGraph::kNoData)
      descriptions[count++] = {handles_[node.written()], node.is_update() ? STARPU_RW : STARPU_W};
    void* const argument = reinterpret_cast<void*>(std::uintptr_t{node.number()});
    if (starpu_task_insert(&codelet_, STARPU_DATA_MODE_ARRAY, descriptions, count,
                           STARPU_CL_ARGS_NFREE, argument, sizeof(std::uint32_t), 0))
      throw std::runtime_error("StarPU refused a task");
  }

  starpu_codelet codelet_{};
  std::vector<std::uint64_t> data_;
  std::vector<starpu_data_handle_t> handles_;
};

}  // namespace

std::unique_ptr<Executor> make_starpu(const ExecutorSetup& setup) {
  return std::make_unique<StarPuExecutor>(setup);
}

}  // namespace weft::bench
