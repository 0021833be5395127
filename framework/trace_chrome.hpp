#pragma once

#include <iosfwd>

#include "framework/trace.hpp"

namespace weft {

/// Writes the recording in the trace-event format that Perfetto and chrome://tracing read.
///
/// A process per actor, a thread per lane, and a thread per submitting thread. Spans are `X` events
/// of category `kernel`, `copy` or `collective`, submissions short `X` events of category `submit`.
/// `args` holds `op` (its id), `bytes` (copies), `failed` (if so) and `after` (ids of the ops it
/// waited for). Arrows (`s` and `f` events) lead from a submission to its op (`submit`) and from an
/// op to those that waited for it (`data`; `order` if only its end mattered). Times are
/// microseconds, to the nanosecond.
///
/// Written as it goes, without a copy of the whole in memory. Errors are the stream's.
void write_chrome_trace(const TraceData& data, std::ostream& to);

}  // namespace weft
