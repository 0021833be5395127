#include "apps/workloads/cuda_variants.hpp"

#include <mutex>

namespace weft::workloads {

void add_cuda_variants() {
#if WEFT_HAVE_CUDA
  static std::once_flag once;
  std::call_once(once, [] {
    add_tile_variants();
    add_stencil_variants();
  });
#endif
}

}  // namespace weft::workloads
