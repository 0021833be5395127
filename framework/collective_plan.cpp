#include "framework/collective_plan.hpp"

#include <cmath>

namespace weft {
namespace {

using Buffer = CollectiveBuffer;
using Kind = CollectiveStep::Kind;

// Below this a step's latency outweighs its bytes on PCIe-class links (25 GB/s × some
// microseconds).
constexpr std::size_t kSmall = 64 << 10;

class Builder {
 public:
  explicit Builder(std::uint32_t members) { plan_.members = members; }

  void copy(Buffer from, Buffer to, std::uint32_t region) {
    plan_.steps.push_back({Kind::Copy, from, to, region});
  }
  void add(Buffer from, Buffer to, std::uint32_t region) {
    plan_.steps.push_back({Kind::Add, from, to, region});
  }
  // Brings `from`'s region into a temporary of `to`'s member and adds it there.
  void send_and_add(Buffer from, Buffer to, std::uint32_t region, std::uint32_t temporary) {
    const Buffer landing{to.member, Buffer::kFirstTemporary + temporary};
    if (temporary >= plan_.temporaries) plan_.temporaries = temporary + 1;
    copy(from, landing, region);
    add(landing, to, region);
  }
  void set_regions(std::uint32_t regions) { plan_.regions = regions; }
  CollectivePlan take() { return std::move(plan_); }

 private:
  CollectivePlan plan_;
};

Buffer data(std::uint32_t member) {
  return {member, Buffer::kData};
}
Buffer result(std::uint32_t member) {
  return {member, Buffer::kResult};
}

// After it member i has the whole sum of region (i + 1) mod n.
void ring_reduce(Builder& builder, std::uint32_t n) {
  for (std::uint32_t step = 0; step + 1 < n; ++step)
    for (std::uint32_t i = 0; i < n; ++i)
      builder.send_and_add(data(i), data((i + 1) % n), (i + n - step) % n, 0);
}

CollectivePlan ring_all_reduce(std::uint32_t n) {
  Builder builder(n);
  builder.set_regions(n);
  ring_reduce(builder, n);
  for (std::uint32_t step = 0; step + 1 < n; ++step)
    for (std::uint32_t i = 0; i < n; ++i)
      builder.copy(data(i), data((i + 1) % n), (i + 1 + n - step) % n);
  return builder.take();
}

// Binomial tree over members numbered from the root: child = parent + 2^level.
void tree_reduce(Builder& builder, std::uint32_t n, std::uint32_t root) {
  std::uint32_t level = 0;
  for (std::uint32_t distance = 1; distance < n; distance *= 2, ++level)
    for (std::uint32_t parent = 0; parent + distance < n; parent += 2 * distance)
      builder.send_and_add(data((parent + distance + root) % n), data((parent + root) % n), 0,
                           level);
}

void tree_broadcast(Builder& builder, std::uint32_t n, std::uint32_t root) {
  std::uint32_t distance = 1;
  while (distance < n) distance *= 2;
  for (distance /= 2; distance >= 1; distance /= 2)
    for (std::uint32_t parent = 0; parent + distance < n; parent += 2 * distance)
      builder.copy(data((parent + root) % n), data((parent + distance + root) % n), 0);
}

CollectivePlan tree_all_reduce(std::uint32_t n, std::uint32_t root) {
  Builder builder(n);
  if (n == 2) {  // both at once, in opposite directions
    for (std::uint32_t i = 0; i < 2; ++i)
      builder.copy(data(i), {1 - i, Buffer::kFirstTemporary}, 0);
    for (std::uint32_t i = 0; i < 2; ++i) builder.add({i, Buffer::kFirstTemporary}, data(i), 0);
    CollectivePlan plan = builder.take();
    plan.temporaries = 1;
    return plan;
  }
  tree_reduce(builder, n, root);
  tree_broadcast(builder, n, root);
  return builder.take();
}

CollectivePlan star_all_reduce(std::uint32_t n, std::uint32_t root) {
  Builder builder(n);
  std::uint32_t temporary = 0;
  for (std::uint32_t i = 0; i < n; ++i)
    if (i != root) builder.send_and_add(data(i), data(root), 0, temporary++);
  for (std::uint32_t i = 0; i < n; ++i)
    if (i != root) builder.copy(data(root), data(i), 0);
  return builder.take();
}

CollectivePlan ring_broadcast(std::uint32_t n, std::uint32_t root) {
  // A pipeline of parts along the ring.
  constexpr std::uint32_t kParts = 8;
  Builder builder(n);
  builder.set_regions(n > 2 ? kParts : 1);
  for (std::uint32_t region = 0; region < (n > 2 ? kParts : 1); ++region)
    for (std::uint32_t i = 0; i + 1 < n; ++i)
      builder.copy(data((root + i) % n), data((root + i + 1) % n), region);
  return builder.take();
}

CollectivePlan star_broadcast(std::uint32_t n, std::uint32_t root) {
  Builder builder(n);
  for (std::uint32_t i = 0; i < n; ++i)
    if (i != root) builder.copy(data(root), data(i), 0);
  return builder.take();
}

// The data stay as they are: sums travel in temporaries, ending at member i with region i.
CollectivePlan ring_reduce_scatter(std::uint32_t n) {
  Builder builder(n);
  builder.set_regions(n);
  for (std::uint32_t step = 0; step + 1 < n; ++step)
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t to = (i + 1) % n, region = (i + 2 * n - 1 - step) % n;
      const Buffer landing{to, Buffer::kFirstTemporary};
      builder.copy(step == 0 ? data(i) : Buffer{i, Buffer::kFirstTemporary}, landing, region);
      builder.add(data(to), landing, region);
    }
  for (std::uint32_t i = 0; i < n; ++i)
    builder.copy(n == 1 ? data(i) : Buffer{i, Buffer::kFirstTemporary}, result(i), i);
  CollectivePlan plan = builder.take();
  plan.temporaries = n > 1 ? 1 : 0;
  return plan;
}

// Data of member i is region i of every result.
CollectivePlan ring_all_gather(std::uint32_t n) {
  Builder builder(n);
  builder.set_regions(n);
  for (std::uint32_t i = 0; i < n; ++i) builder.copy(data(i), result(i), i);
  for (std::uint32_t step = 0; step + 1 < n; ++step)
    for (std::uint32_t i = 0; i < n; ++i)
      builder.copy(result(i), result((i + 1) % n), (i + n - step) % n);
  return builder.take();
}

}  // namespace

const char* to_string(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllReduce:
      return "all_reduce";
    case CollectiveKind::Broadcast:
      return "broadcast";
    case CollectiveKind::ReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::AllGather:
      return "all_gather";
  }
  return "collective";
}

const char* to_string(CollectiveAlgorithm algorithm) {
  switch (algorithm) {
    case CollectiveAlgorithm::Ring:
      return "ring";
    case CollectiveAlgorithm::Tree:
      return "tree";
    case CollectiveAlgorithm::Star:
      return "star";
    case CollectiveAlgorithm::Nccl:
      return "nccl";
    case CollectiveAlgorithm::Peer:
      return "peer";
  }
  return "algorithm";
}

CollectivePlan plan_collective(CollectiveKind kind, CollectiveAlgorithm algorithm,
                               std::uint32_t members, std::uint32_t root) {
  switch (kind) {
    case CollectiveKind::AllReduce:
      if (members == 1) return Builder(1).take();
      if (algorithm == CollectiveAlgorithm::Ring) return ring_all_reduce(members);
      if (algorithm == CollectiveAlgorithm::Tree) return tree_all_reduce(members, root);
      return star_all_reduce(members, root);
    case CollectiveKind::Broadcast: {
      if (algorithm == CollectiveAlgorithm::Ring) return ring_broadcast(members, root);
      if (algorithm == CollectiveAlgorithm::Star) return star_broadcast(members, root);
      Builder builder(members);
      tree_broadcast(builder, members, root);
      return builder.take();
    }
    case CollectiveKind::ReduceScatter:
      return ring_reduce_scatter(members);
    case CollectiveKind::AllGather:
      return ring_all_gather(members);
  }
  return {};
}

namespace {

// From so many bytes on a ring's 2 (n-1) steps of 1/n of the data take less than a tree's 2 log2 n
// of all of it, each with the latency in which a link moves kPerLatency bytes.
double least_for_ring(std::uint32_t members) {
  constexpr double kPerLatency = 200e3;  // 10 µs at 20 GB/s
  if (members < 3) return 0;
  const double n = members, depth = std::ceil(std::log2(n));
  return kPerLatency * (n - 1 - depth) / (depth - (n - 1) / n);
}

}  // namespace

CollectiveAlgorithm choose_algorithm(const CollectiveSituation& situation) {
  if (situation.bytes > kSmall &&
      static_cast<double>(situation.bytes) > least_for_ring(situation.members))
    return CollectiveAlgorithm::Ring;
  if (!situation.all_direct && situation.host_member) return CollectiveAlgorithm::Star;
  return CollectiveAlgorithm::Tree;
}

}  // namespace weft
