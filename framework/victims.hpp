#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

/// A replica that could make room.
struct EvictionCandidate {
  std::uint64_t next_use = 0;  ///< position; `NextUses::kNever` if none is known
  std::uint64_t last_use = 0;  ///< position; 0: before anything waited for memory
  bool is_dead = false;        ///< its value is never read again
  bool is_clean = false;       ///< the value is elsewhere too: nothing is to be written back
  bool is_busy = false;        ///< ops under way use it: room comes when they are done
  std::size_t bytes = 0;
};

/// Which candidates to evict for `wanted` bytes, as indices; all if they do not suffice.
///
/// Belady's rule (L. A. Belady: A study of replacement algorithms for a virtual-storage computer,
/// IBM Systems Journal 5, 1966): the farthest next use first. Those without a known next use come
/// before all others, the longest unused first. Of several whose next uses are about equally far,
/// one that no op under way uses, so that the room comes at once and copies overlap with kernels.
std::vector<std::size_t> choose_victims(const std::vector<EvictionCandidate>& candidates,
                                        std::size_t wanted, std::uint64_t now);

/// Which candidates to evict ahead of need, for at most `most` bytes: those without a known next
/// use, and clean ones whose next use is about as far as any. None that ops under way use.
std::vector<std::size_t> choose_spare(const std::vector<EvictionCandidate>& candidates,
                                      std::size_t most, std::uint64_t now);

/// The same of those whose next use is about as far as any, if that is at least twice as far as
/// there are candidates: then most of what comes next is not here, and will need room.
std::vector<std::size_t> choose_far(const std::vector<EvictionCandidate>& candidates,
                                    std::size_t most, std::uint64_t now);

}  // namespace weft
