#pragma once

#include "framework/kernel.hpp"

namespace weft::test {

/// Gives `code` a cuda variant made of its cpu variant: arguments are copied to host memory, the
/// variant runs there, its results are copied back, all of it in stream order. So one test serves
/// all engines, down to the bit. What the cpu variant throws on the way ends the process: a kernel
/// that throws needs a variant that throws when it is launched.
void add_variant_through_host(KernelCode& code);
/// The same work for one op, for variants of one's own.
void run_through_host(Cuda& gpu, Op& op);
/// The same work, but what the cpu variant throws is thrown when it is launched: it is tried on
/// zeros first, so it must throw by its scalars alone, or not at all.
void add_variant_at_launch(KernelCode& code);

/// `kernel`, for sockets, emulated GPUs and CUDA devices.
template <class K>
K on_all(K kernel) {
#if WEFT_HAVE_CUDA
  add_variant_through_host(const_cast<KernelCode&>(*kernel.code()));
#endif
  return kernel;
}
template <class K>
K thrower_on_all(K kernel) {
#if WEFT_HAVE_CUDA
  add_variant_at_launch(const_cast<KernelCode&>(*kernel.code()));
#endif
  return kernel;
}

}  // namespace weft::test
