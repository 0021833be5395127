#pragma once

#include "apps/workloads/workload.hpp"

namespace weft::workloads {

// One of each file here; `all()` has them.
Workload run_on_all_workload();
Workload run_and_copy_workload();
Workload mlp_workload();
Workload cholesky_workload();
Workload gemm_workload();
Workload stencil_workload();
Workload fft_workload();
Workload layers_workload();
Workload allreduce_workload();
Workload alltoall_workload();
Workload parameter_server_workload();

}  // namespace weft::workloads
