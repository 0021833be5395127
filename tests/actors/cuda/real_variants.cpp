#include "tests/actors/cuda/fake_variants.hpp"

namespace weft::test {

bool runs_on_fake_cuda() {
  return false;
}

}  // namespace weft::test
