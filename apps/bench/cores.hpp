#pragma once

#include <cstdint>
#include <vector>

#include "topology/machine.hpp"

namespace weft::bench {

/// The first hardware thread of each core this process may use, by OS index, socket by socket.
/// Worked out once, at the first call.
const std::vector<int>& core_cpus();

/// This machine with the first `threads` cores as one socket and nothing else. Throws
/// `std::invalid_argument` if there are fewer.
Machine machine_of(std::uint32_t threads);

/// Pins the calling thread to one hardware thread.
void pin_to(int cpu);
/// Lets it run on all of `core_cpus` again. A thread inherits its creator's mask, so pin late.
void unpin();

/// Where the thread that submits runs: on a core of its own if one is left, else anywhere. For
/// systems whose submitter runs no ops; to be called when their threads are there.
void place_submitter(std::uint32_t threads);

}  // namespace weft::bench
