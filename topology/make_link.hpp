#pragma once

#include <chrono>

#include "topology/machine.hpp"

namespace weft {

/// A link with the same rate, in bytes per second, both ways; assumed until told otherwise.
inline Link make_link(LinkKind kind, Node a, Node b, double rate,
                      std::chrono::nanoseconds latency) {
  Link link;
  link.kind = kind;
  link.a = a;
  link.b = b;
  link.bytes_per_second[0] = link.bytes_per_second[1] = rate;
  link.latency = latency;
  return link;
}

}  // namespace weft
