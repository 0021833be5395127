#pragma once

#include <cstdint>

#include "actors/runtime.hpp"
#include "actors/simulated/calibration.hpp"

namespace weft::calibrate {

/// What ops cost beside what they compute.
struct DispatchFigures {
  Calibration::Figure submission_ns;   ///< of the submitting thread, an op behind the one before
  Calibration::Figure chain_ns;        ///< an op of one element behind the one before
  Calibration::Figure independent_ns;  ///< an op of one element among others, all ready at once
};

/// Blocks for some tens of milliseconds. `runtime` does not record.
DispatchFigures measure_dispatch(const Runtime& runtime, const Device& device,
                                 std::uint32_t repeats);

/// What a program sees of one op on an idle device.
struct HandOffFigures {
  Calibration::Figure start_ns;   ///< from the submission until the op starts
  Calibration::Figure notice_ns;  ///< from its end until the thread that waits goes on
  Calibration::Figure short_ns;   ///< the op of one element itself
};

/// Of ops so long that the program's thread sleeps. `runtime` records.
HandOffFigures measure_hand_off(const Runtime& runtime, const Device& device,
                                std::uint32_t repeats);

}  // namespace weft::calibrate
