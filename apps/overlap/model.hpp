#pragma once

#include <cstdint>
#include <string>

#include "actors/emulated/options.hpp"

namespace weft::apps {

/// How emulated GPUs behave in these experiments unless the user says otherwise: slow enough that a
/// small host computes for all of them in time, so that what one sees is the overlap and not the
/// host's few cores. A kernel takes 1 ms for n = 128, growing with its work up to 10 ms; a link
/// moves five n × n results in the time in which a GPU makes four.
EmulatedOptions paced_gpus(std::int64_t n, std::size_t element_bytes);

/// `launch 1 ms, links 131 MB/s, 2 lanes`: what of the time is modelled; empty if nothing is.
std::string describe_pace(const EmulatedOptions& options);

/// `value` as printf's `pattern` writes a double, at most 63 characters.
std::string format(const char* pattern, double value);

}  // namespace weft::apps
