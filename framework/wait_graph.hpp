#pragma once

#include <string>

#include "framework/fabric.hpp"

namespace weft {

/// Who waits for whom among the pending ops of `fabric` and the promises and other inline ops
/// around them: one line per op, at most `limit`. Any thread, while the runtime is there: it holds
/// the ops it looks at. What settles or is submitted meanwhile may be missing.
std::string describe_waits(const Fabric& fabric, std::size_t limit = 200);

}  // namespace weft
