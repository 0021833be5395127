#pragma once

/// Everything a program needs: `weft::Runtime`, devices, tensors, kernels, futures. No CAF:
/// programs that write actors of their own include `actors/then.hpp` too.

#include "actors/collective.hpp"  // IWYU pragma: export
#include "actors/runtime.hpp"     // IWYU pragma: export
#include "framework/builtin.hpp"  // IWYU pragma: export
#include "framework/device.hpp"   // IWYU pragma: export
#include "framework/future.hpp"   // IWYU pragma: export
#include "framework/kernel.hpp"   // IWYU pragma: export
#include "framework/tensor.hpp"   // IWYU pragma: export
