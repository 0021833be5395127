#include "apps/mlp/cuda_variants.hpp"

#include <mutex>

#include "apps/mlp/layer_variants.hpp"

namespace weft::mlp {

void add_cuda_variants() {
#if WEFT_HAVE_CUDA
  static std::once_flag once;
  std::call_once(once, [] {
    add_layer_variants();
    add_data_variants();
  });
#endif
}

}  // namespace weft::mlp
