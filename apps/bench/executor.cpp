#include "apps/bench/executor.hpp"

#include <stdexcept>

namespace weft::bench {
namespace {

#ifdef WEFT_BENCH_TBB
constexpr auto kTbbFlow = make_tbb_flow, kTbbGroup = make_tbb_group,
               kTbbFlowReused = make_tbb_flow_reused;
#else
constexpr decltype(&make_tbb_flow) kTbbFlow = nullptr, kTbbGroup = nullptr,
                                   kTbbFlowReused = nullptr;
#endif
#ifdef WEFT_BENCH_OPENMP
constexpr auto kOpenMp = make_openmp, kOpenMpReused = make_openmp_reused;
#else
constexpr decltype(&make_openmp) kOpenMp = nullptr, kOpenMpReused = nullptr;
#endif
#ifdef WEFT_BENCH_STARPU
constexpr auto kStarPu = make_starpu;
#else
constexpr decltype(&make_starpu) kStarPu = nullptr;
#endif

System peer(const char* name, const char* about, const char* package, bool is_usual,
            decltype(&make_starpu) make) {
  const std::string missing = std::string("built without it: needs ") + package;
  return {name, about, make ? "" : missing, is_usual, make};
}

}  // namespace

const std::vector<System>& systems() {
  static const std::vector<System> all{
      {"weft-host", "ops with tracked tensors on a socket actor", "", true, make_weft_host},
      {"weft-emulated", "the same on an emulated GPU", "", true, make_weft_emulated},
      peer("tbb-flow", "oneTBB flow graph, built and run", "libtbb-dev", true, kTbbFlow),
      {"weft-anywhere", "ops that are placed, on a host of one socket", "", false,
       make_weft_anywhere},
      {"weft-plan", "a replay of the same ops, recorded before", "", false, make_weft_plan},
      {"weft-plan-emulated", "the same on an emulated GPU", "", false, make_weft_plan_emulated},
      peer("tbb-flow-reused", "oneTBB flow graph, built before and run again", "libtbb-dev", false,
           kTbbFlowReused),
      peer("tbb-group", "oneTBB task_group; edges and counters given by the harness", "libtbb-dev",
           true, kTbbGroup),
      peer("openmp", "OpenMP tasks with depend, a fresh address per op",
           "a compiler with OpenMP 5 and no sanitizer", true, kOpenMp),
      peer("openmp-reused", "OpenMP tasks with depend, an address per datum",
           "a compiler with OpenMP 5 and no sanitizer", false, kOpenMpReused),
      peer("starpu-stf", "StarPU sequential task flow with data handles, lws",
           "libstarpu-dev (pkg-config starpu-1.3)", true, kStarPu),
  };
  return all;
}

std::unique_ptr<Executor> make_executor(const std::string& system, const ExecutorSetup& setup) {
  std::string names;
  for (const System& known : systems()) {
    if (known.name == system) {
      if (known.left_out.empty()) return known.make(setup);
      throw std::invalid_argument("system " + system + " is left out: " + known.left_out);
    }
    names += (names.empty() ? "" : ", ") + known.name;
  }
  throw std::invalid_argument("system \"" + system + "\": wanted one of " + names);
}

}  // namespace weft::bench
