#include "framework/plan_bundles.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <utility>

namespace weft {
namespace {

// Which nodes go together: a number for each, that of its first member.
class Grouping {
 public:
  Grouping(const PlanGraph& plan, const std::vector<bool>& may_bundle,
           const std::vector<bool>& is_late)
      : plan_(plan),
        may_bundle_(may_bundle),
        is_late_(is_late),
        group_(plan.nodes.size()),
        members_(plan.nodes.size()),
        is_closed_(plan.nodes.size()) {
    std::vector<bool> is_wanted_elsewhere(plan.nodes.size());
    for (const PlanGraph::Node& node : plan.nodes)
      for (const PlanGraph::Edge& edge : node.edges)
        if (plan.nodes[edge.producer].owner != node.owner)
          is_wanted_elsewhere[edge.producer] = true;
    for (std::uint32_t n = 0; n < plan.nodes.size(); ++n) {
      group_[n] = n;
      members_[n] = {n};
      if (may_bundle[n]) join_producers(n);
      if (!may_bundle[n] || is_wanted_elsewhere[n]) is_closed_[group_[n]] = true;
    }
  }

  [[nodiscard]] const std::vector<std::uint32_t>& groups() const { return group_; }
  [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& members() const { return members_; }

 private:
  // Puts the node and the groups whose data it needs together, the newest first.
  void join_producers(std::uint32_t n) {
    std::vector<std::uint32_t> candidates;
    for (const PlanGraph::Edge& edge : plan_.nodes[n].edges)
      if (!edge.order_only) candidates.push_back(group_[edge.producer]);
    std::sort(candidates.begin(), candidates.end(), std::greater<>());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    for (const std::uint32_t group : candidates)
      if (may_merge(std::min(group, group_[n]), std::max(group, group_[n])))
        merge(std::min(group, group_[n]), std::max(group, group_[n]));
  }

  // What the younger group waits for beside the older one must be there in time anyway.
  [[nodiscard]] bool may_merge(std::uint32_t older, std::uint32_t younger) const {
    if (older == younger || is_closed_[older] || is_closed_[younger]) return false;
    for (const std::uint32_t member : members_[younger]) {
      const PlanGraph::Node& node = plan_.nodes[member];
      if (node.owner != plan_.nodes[older].owner || node.priority != plan_.nodes[older].priority)
        return false;
      for (const PlanGraph::Edge& edge : node.edges)
        if (plan_.nodes[edge.producer].owner != node.owner && !waits_for(older, edge.producer))
          return false;
      for (const PlanGraph::Entry& entry : node.entries)
        if (entry.slot != PlanGraph::kNone && is_late_[entry.slot] && !has_entry(older, entry.slot))
          return false;
    }
    // Nothing is behind the newest node yet.
    return !comes_around(older, younger) &&
           (members_[younger].size() == 1 || !comes_around(younger, older));
  }

  [[nodiscard]] bool waits_for(std::uint32_t group, std::uint32_t producer) const {
    return std::any_of(members_[group].begin(), members_[group].end(), [&](std::uint32_t member) {
      const auto& edges = plan_.nodes[member].edges;
      return std::any_of(edges.begin(), edges.end(),
                         [&](const auto& edge) { return edge.producer == producer; });
    });
  }

  [[nodiscard]] bool has_entry(std::uint32_t group, std::uint32_t slot) const {
    return std::any_of(members_[group].begin(), members_[group].end(), [&](std::uint32_t member) {
      const auto& entries = plan_.nodes[member].entries;
      return std::any_of(entries.begin(), entries.end(),
                         [&](const auto& known) { return known.slot == slot; });
    });
  }

  // Whether `to` is behind `from` by way of other groups: these would be in front of and behind it.
  [[nodiscard]] bool comes_around(std::uint32_t from, std::uint32_t to) const {
    constexpr std::size_t kFarEnough = 4096;  // nobody looks further: they stay apart then
    std::vector<std::uint32_t> open;
    std::vector<bool> is_seen(plan_.nodes.size());
    is_seen[to] = true;
    auto look_at = [&](std::uint32_t group) {
      for (const std::uint32_t member : members_[group])
        for (const PlanGraph::Edge& edge : plan_.nodes[member].edges) {
          const std::uint32_t other = group_[edge.producer];
          if (is_seen[other]) continue;
          if (group == to && other == from) continue;  // by no way of others
          is_seen[other] = true;
          open.push_back(other);
        }
    };
    look_at(to);
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (open[i] == from || i == kFarEnough) return true;
      look_at(open[i]);
    }
    return false;
  }

  void merge(std::uint32_t older, std::uint32_t younger) {
    for (const std::uint32_t member : members_[younger]) group_[member] = older;
    std::vector<std::uint32_t> all;
    std::merge(members_[older].begin(), members_[older].end(), members_[younger].begin(),
               members_[younger].end(), std::back_inserter(all));
    members_[older] = std::move(all);
    members_[younger].clear();
  }

  const PlanGraph& plan_;
  const std::vector<bool>& may_bundle_;
  const std::vector<bool>& is_late_;  // by slot
  std::vector<std::uint32_t> group_;
  std::vector<std::vector<std::uint32_t>> members_;  // by group
  std::vector<bool> is_closed_;                      // by group: it takes no more
};

// The groups in an order that puts each behind all it needs, else by their last members.
std::vector<std::uint32_t> order_of(const PlanGraph& plan, const std::vector<std::uint32_t>& group,
                                    const std::vector<std::vector<std::uint32_t>>& members) {
  const std::size_t count = plan.nodes.size();
  std::vector<std::uint32_t> waits(count);
  std::vector<std::vector<std::uint32_t>> followers(count);
  for (std::uint32_t n = 0; n < count; ++n)
    for (const PlanGraph::Edge& edge : plan.nodes[n].edges) {
      if (group[edge.producer] == group[n]) continue;
      followers[group[edge.producer]].push_back(group[n]);
      ++waits[group[n]];
    }
  using Turn = std::pair<std::uint32_t, std::uint32_t>;  // last member, group
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> ready;
  for (std::uint32_t g = 0; g < count; ++g)
    if (!members[g].empty() && waits[g] == 0) ready.emplace(members[g].back(), g);
  std::vector<std::uint32_t> order;
  while (!ready.empty()) {
    const std::uint32_t g = ready.top().second;
    ready.pop();
    order.push_back(g);
    for (const std::uint32_t follower : followers[g])
      if (--waits[follower] == 0) ready.emplace(members[follower].back(), follower);
  }
  return order;
}

void add_edge(std::vector<PlanGraph::Edge>& edges, const PlanGraph::Edge& edge) {
  for (PlanGraph::Edge& known : edges)
    if (known.producer == edge.producer) {
      known.order_only = known.order_only && edge.order_only;
      known.until_done = known.until_done || edge.until_done;
      return;
    }
  edges.push_back(edge);
}

// Whom each member comes behind within its group.
std::vector<std::vector<std::uint32_t>> order_within(const PlanGraph& plan,
                                                     const std::vector<std::uint32_t>& members) {
  std::vector<std::vector<std::uint32_t>> order;
  for (const std::uint32_t n : members) {
    order.emplace_back();
    for (const PlanGraph::Edge& edge : plan.nodes[n].edges) {
      const auto found = std::lower_bound(members.begin(), members.end(), edge.producer);
      if (found != members.end() && *found == edge.producer)
        order.back().push_back(static_cast<std::uint32_t>(found - members.begin()));
    }
  }
  return order;
}

void add_entry(std::vector<PlanGraph::Entry>& entries, const PlanGraph::Entry& entry) {
  for (const PlanGraph::Entry& known : entries)
    if (known.slot == entry.slot && known.tensor == entry.tensor) return;
  entries.push_back(entry);
}

}  // namespace

BundledPlan bundle_nodes(const PlanGraph& plan, const std::vector<bool>& may_bundle,
                         const std::vector<bool>& is_late) {
  const Grouping grouping(plan, may_bundle, is_late);
  const std::vector<std::uint32_t>& group = grouping.groups();
  const std::vector<std::vector<std::uint32_t>>& members = grouping.members();
  const std::vector<std::uint32_t> order = order_of(plan, group, members);
  const auto groups = static_cast<std::size_t>(std::count_if(
      members.begin(), members.end(), [](const auto& each) { return !each.empty(); }));
  if (order.size() != groups) return {};                // a circle: nothing is put together
  std::vector<std::uint32_t> place(plan.nodes.size());  // by group
  for (std::uint32_t at = 0; at < order.size(); ++at) place[order[at]] = at;

  BundledPlan made;
  made.graph.slots = plan.slots;
  made.graph.tensors = plan.tensors;
  made.graph.waits_recorded = plan.waits_recorded;
  for (const std::uint32_t g : order) {
    PlanGraph::Node node = plan.nodes[members[g].front()];
    if (members[g].size() > 1) {
      ++made.bundles;
      node.code = nullptr;
      node.pattern = nullptr;
      node.scalar_bytes = 0;
      node.arguments.clear();
    }
    node.edges.clear();
    node.after.clear();
    node.entries.clear();
    node.is_sink = true;
    for (const std::uint32_t n : members[g]) {
      for (PlanGraph::Edge edge : plan.nodes[n].edges) {
        if (group[edge.producer] == g) continue;
        edge.producer = place[group[edge.producer]];
        add_edge(node.edges, edge);
      }
      for (const std::uint32_t before : plan.nodes[n].after)
        if (group[before] != g) node.after.push_back(place[group[before]]);
      for (const PlanGraph::Entry& entry : plan.nodes[n].entries) add_entry(node.entries, entry);
    }
    std::sort(
        node.edges.begin(), node.edges.end(),
        [](const PlanGraph::Edge& a, const PlanGraph::Edge& b) { return a.producer < b.producer; });
    made.members.push_back(members[g]);
    made.orders.push_back(order_within(plan, members[g]));
    made.graph.nodes.push_back(std::move(node));
  }
  auto moved = [&](std::uint32_t n) {
    return n == PlanGraph::kNone ? PlanGraph::kNone : place[group[n]];
  };
  for (PlanGraph::Slot& slot : made.graph.slots) slot.ready = moved(slot.ready);
  for (PlanGraph::Tensor& tensor : made.graph.tensors) {
    tensor.writer = moved(tensor.writer);
    for (std::uint32_t& reader : tensor.readers) reader = moved(reader);
    std::sort(tensor.readers.begin(), tensor.readers.end());
    tensor.readers.erase(std::unique(tensor.readers.begin(), tensor.readers.end()),
                         tensor.readers.end());
    std::erase(tensor.readers, tensor.writer);  // it comes behind itself
  }
  made.graph.trim();
  made.graph.waits_recorded = plan.waits_recorded;
  return made;
}

}  // namespace weft
