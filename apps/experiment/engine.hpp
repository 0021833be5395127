#pragma once

#include <memory>
#include <optional>
#include <string>

#include "actors/runtime.hpp"
#include "apps/experiment/spec.hpp"

namespace weft::experiment {

/// The machine that was chosen, changed as the spec says. Throws `SpecError` naming its line.
Machine machine_of(const MachineChoice& choice);

/// What a point's runtime is made of; nothing if it cannot be, and then `reason` says why.
/// `machine` is the point's; throws as `machine_of` for options that are not understood.
std::optional<RuntimeOptions> runtime_options(const Point& point, const Machine& machine,
                                              std::string& reason);

/// A runtime of `options` for the point. With the engine real there are no emulated GPUs, not even
/// where the machine has none that can be driven.
std::unique_ptr<Runtime> runtime_of(const Point& point, RuntimeOptions options);

}  // namespace weft::experiment
