#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// What each of the machine's memories may hold by `text`, in bytes: `gpu0=2GB,gpu*=1GB,mem0=64MB`.
/// A name is a memory's, or a device's or disk's for its memory; `*` stands for any letters; a
/// later one counts more. By memory; nothing where `text` says nothing. `pinned` is left to
/// `pinned_budget`. Throws `DeviceError` naming the part that is not understood.
std::vector<std::optional<std::size_t>> memory_budgets(const std::string& text,
                                                       const Machine& machine);

/// How much of the hosts' memory a runtime with CUDA devices may pin, by the same text:
/// `pinned=4GB`. What is beyond it is pageable, and copies of it go through pinned memory piece by
/// piece. Nothing where `text` does not say. Throws `DeviceError` for what is no size.
std::optional<std::size_t> pinned_budget(const std::string& text);

}  // namespace weft
