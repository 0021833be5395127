#include "apps/workloads/list.hpp"

#include <algorithm>

#include "apps/workloads/cuda_variants.hpp"

namespace weft::workloads {

const std::vector<Workload>& all() {
  static const std::vector<Workload> list = [] {
    add_cuda_variants();
    std::vector<Workload> made{run_on_all_workload(),
                               run_and_copy_workload(),
                               mlp_workload(),
                               cholesky_workload(),
                               gemm_workload(),
                               stencil_workload(),
                               fft_workload(),
                               layers_workload(),
                               allreduce_workload(),
                               alltoall_workload(),
                               parameter_server_workload()};
    std::sort(made.begin(), made.end(),
              [](const Workload& a, const Workload& b) { return a.name < b.name; });
    return made;
  }();
  return list;
}

const Workload& find(const std::string& name) {
  std::string names;
  for (const Workload& each : all()) {
    if (each.name == name) return each;
    names += (names.empty() ? "" : ", ") + each.name;
  }
  throw std::invalid_argument("\"" + name + "\" is no workload; there are " + names);
}

}  // namespace weft::workloads
