#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// What each of the machine's memories may hold by `text`, in bytes: `gpu0=2GB,gpu*=1GB,mem0=64MB`.
/// A name is a memory's, or a device's or disk's for its memory; `*` stands for any letters; a
/// later one counts more. By memory; nothing where `text` says nothing. Throws `DeviceError` naming
/// the part that is not understood.
std::vector<std::optional<std::size_t>> memory_budgets(const std::string& text,
                                                       const Machine& machine);

}  // namespace weft
