#include "tests/actors/cuda/fake_variants.hpp"

#include "actors/collective_step.hpp"
#include "actors/cuda/builtin_variants.hpp"
#include "framework/builtin.hpp"
#include "framework/own_kernels.hpp"
#include "tests/actors/cuda/through_host.hpp"

namespace weft::test {

bool runs_on_fake_cuda() {
  static const bool is_done = [] {
    cuda::add_cuda_variants();  // now, so that it does not overwrite ours later
    on_all(kernels::matmul());
    on_all(kernels::matmul_f64());
    on_all(kernels::fill());
    on_all(kernels::uniform());
    for (KernelCode* code :
         {&local_copy_kernel(), &sum_partials_kernel(), &collective_step_kernel()})
      add_variant_through_host(*code);
    return true;
  }();
  return is_done;
}

}  // namespace weft::test
