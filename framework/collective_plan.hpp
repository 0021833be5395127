#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft {

enum class CollectiveKind : std::uint8_t { AllReduce, Broadcast, ReduceScatter, AllGather };
/// `Ring`, `Tree` and `Star` are plans of copies and sums, on any devices. With `Nccl` and `Peer`
/// (own kernels that read the peers' memory) all members' devices run the operation at once.
enum class CollectiveAlgorithm : std::uint8_t { Ring, Tree, Star, Nccl, Peer };

const char* to_string(CollectiveKind kind);
const char* to_string(CollectiveAlgorithm algorithm);

/// A buffer of one member: its data, its result (where the operation has one of its own), or a
/// temporary.
struct CollectiveBuffer {
  static constexpr std::uint32_t kData = 0, kResult = 1, kFirstTemporary = 2;
  std::uint32_t member = 0;
  std::uint32_t slot = kData;
  friend bool operator==(const CollectiveBuffer&, const CollectiveBuffer&) = default;
};

/// One step: `to[region]` becomes, or is increased by, `from[region]`. Copies may cross members,
/// sums do not.
struct CollectiveStep {
  enum class Kind : std::uint8_t { Copy, Add };
  Kind kind = Kind::Copy;
  CollectiveBuffer from, to;
  std::uint32_t region = 0;
};

/// A collective operation as steps in an order that is right if executed one by one. What may
/// overlap follows from the buffers and regions they touch.
struct CollectivePlan {
  std::uint32_t members = 1;
  std::uint32_t regions = 1;      ///< equal parts of the data
  std::uint32_t temporaries = 0;  ///< slots a member needs, each as large as the data
  std::vector<CollectiveStep> steps;
};

/// The plan for `members` ≥ 1. `root` is the member that has (broadcast) or gathers (star, tree)
/// the data.
///
/// Ring: 2(n−1) steps of 1/n of the data per member, the least traffic (Patarasuk, Yuan 2009).
/// Tree: binomial, 2⌈log₂ n⌉ steps of all the data. Star: everything through the root, two steps
/// deep. Reduce-scatter and all-gather have `members` regions, region i belonging to member i, and
/// are rings.
/// `Ring`, `Tree` or `Star` only.
CollectivePlan plan_collective(CollectiveKind kind, CollectiveAlgorithm algorithm,
                               std::uint32_t members, std::uint32_t root);

/// What a choice of algorithm depends on.
struct CollectiveSituation {
  CollectiveKind kind = CollectiveKind::AllReduce;
  std::uint32_t members = 1;
  std::size_t bytes = 0;
  bool all_direct = true;    ///< every pair has a way without a stop in between
  bool host_member = false;  ///< a socket is among the members
};

/// Latency decides for small data (tree, or star over a host member where peers are not direct),
/// bandwidth for large (ring).
CollectiveAlgorithm choose_algorithm(const CollectiveSituation& situation);

}  // namespace weft
