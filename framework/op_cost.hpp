#pragma once

#include "framework/kernel_code.hpp"

namespace weft {

/// What a call of a kernel costs: what the kernel says, else the bytes of its arguments. The op is
/// built and has its replicas.
Cost cost_of(Op& op);

/// What a kernel's run times go with: the call's flops, or bytes where it has none. At least 1.
double amount_of(Op& op);

/// Whether it computes in double precision, by its largest argument.
bool is_fp64(Op& op);

}  // namespace weft
