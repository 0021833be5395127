#pragma once

namespace weft::test {

/// Whether this program is linked with the fake CUDA runtime, whose kernels do nothing. Then, at
/// the first call, weft's own kernels get variants that run on the host.
bool runs_on_fake_cuda();

}  // namespace weft::test
