#include "topology/gpu_fabric.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "topology/names.hpp"
#include "topology/pci_ids.hpp"
#include "topology/rates.hpp"

namespace weft {
namespace {

/// A bundle of links between the same two ends.
struct Bundle {
  std::uint32_t there = 0, back = 0, generation = 0;
  double one = 0;  ///< bytes per second of one link

  [[nodiscard]] std::uint32_t width() const { return std::max(there, back); }
};

using SwitchKey = std::optional<PciAddress>;  ///< nothing: a virtual machine hides it

class Fabric {
 public:
  Fabric(Machine& machine, const GpuFacts& facts, const std::vector<GpuId>& gpu_of)
      : m_(machine), facts_(facts), gpu_of_(gpu_of) {}

  void run() {
    add_c2c_links();
    for (std::size_t f = 0; f < facts_.gpus.size(); ++f)
      if (gpu_of_[f].is_valid())
        for (const NvlinkFact& link : facts_.gpus[f].nvlinks) sort_in(f, link);
    if (pairs_.empty() && to_switch_.empty() && to_cpu_.empty()) {
      if (!facts_.nvml_problem.empty() || nowhere_ > 0) assume_from_peers();
      return;
    }
    add_cpu_links();
    drop_known();
    drop_unusable();
    for (const auto& [ends, bundle] : pairs_)
      add_link(GpuId{ends.first}, GpuId{ends.second}, bundle);
    add_switches();
    if (nowhere_ > 0)
      warn("nvlinks_to_hidden_gpus",
           std::to_string(nowhere_) + " NVLinks lead to GPUs that are not part of this machine");
  }

 private:
  void warn(std::string code, std::string text) {
    m_.warnings.push_back({std::move(code), std::move(text)});
  }

  void sort_in(std::size_t f, const NvlinkFact& link) {
    const std::uint32_t gpu = gpu_of_[f].value;
    const std::optional<std::uint32_t> other = link.pci ? gpu_at(*link.pci) : std::nullopt;
    Bundle* bundle = nullptr;
    bool is_back = false;
    if (other && *other != gpu && link.remote != NvlinkRemote::Switch) {
      is_back = *other < gpu;
      bundle = &pairs_[{std::min(gpu, *other), std::max(gpu, *other)}];
    } else if (link.remote == NvlinkRemote::Cpu) {
      bundle = &to_cpu_[gpu];
    } else if (link.remote == NvlinkRemote::Gpu) {
      ++nowhere_;
      return;
    } else {
      bundle = &to_switch_[link.pci][gpu];
    }
    ++(is_back ? bundle->back : bundle->there);
    bundle->generation =
        link.generation ? link.generation : nvlink_generation_of(m_.gpus[gpu].model);
    // The data sheets' payload rate; NVML's own figure is the signalling rate, some percent higher.
    bundle->one = rates::nvlink(bundle->generation);
    if (bundle->one <= 0) bundle->one = link.bytes_per_second;
  }

  [[nodiscard]] std::optional<std::uint32_t> gpu_at(const PciAddress& address) const {
    for (std::uint32_t g = 0; g < m_.gpus.size(); ++g)
      if (m_.gpus[g].pci && is_same_function(*m_.gpus[g].pci, address)) return g;
    return std::nullopt;
  }

  /// The fact of a GPU that CUDA shows; nothing otherwise.
  [[nodiscard]] const GpuFact* shown(std::uint32_t gpu) const {
    for (std::size_t f = 0; f < gpu_of_.size(); ++f)
      if (gpu_of_[f] == GpuId{gpu} && facts_.gpus[f].cuda_ordinal >= 0) return &facts_.gpus[f];
    return nullptr;
  }

  /// Whether CUDA copies directly between two GPUs; nothing if it does not show both.
  [[nodiscard]] std::optional<bool> are_peers(std::uint32_t a, std::uint32_t b) const {
    const GpuFact *from = shown(a), *to = shown(b);
    if (!from || !to) return std::nullopt;
    const auto reaches = [](const GpuFact& x, const GpuFact& y) {
      const auto ordinal = static_cast<std::size_t>(y.cuda_ordinal);
      return ordinal < x.peers.size() && x.peers[ordinal].can_access;
    };
    return reaches(*from, *to) || reaches(*to, *from);
  }

  [[nodiscard]] bool is_gpu_side(Node node) const {
    return node.kind == NodeKind::Gpu ||
           (node.kind == NodeKind::Hub && m_.hubs[node.index].kind == HubKind::NvSwitch);
  }

  void drop_known() {
    std::erase_if(m_.links, [&](const Link& link) {
      return link.kind == LinkKind::Nvlink && is_gpu_side(link.a) && is_gpu_side(link.b);
    });
  }

  /// A switch whose fabric manager does not run has links that carry nothing.
  void drop_unusable() {
    std::string names;
    const auto drop = [&](std::uint32_t a, const std::string& to) {
      names += (names.empty() ? "" : ", ") + to_string(Node(GpuId{a})) + to;
    };
    std::erase_if(pairs_, [&](const auto& pair) {
      const auto [a, b] = pair.first;
      if (are_peers(a, b).value_or(true)) return false;
      drop(a, "-" + to_string(Node(GpuId{b})));
      return true;
    });
    std::set<std::uint32_t> joined;
    for (const auto& [key, gpus] : to_switch_)
      for (const auto& [gpu, bundle] : gpus) joined.insert(gpu);
    for (const std::uint32_t gpu : joined) {
      std::size_t known = 0, reached = 0;
      for (const std::uint32_t other : joined) {
        if (other == gpu) continue;
        const std::optional<bool> is_peer = are_peers(gpu, other);
        known += is_peer.has_value();
        reached += is_peer.value_or(false);
      }
      if (known == 0 || reached > 0) continue;
      drop(gpu, " to its switch");
      for (auto& [key, gpus] : to_switch_) gpus.erase(gpu);
    }
    if (!names.empty())
      warn("nvlink_without_peer_access",
           "NVLinks are up and CUDA copies nothing over them (" + names +
               "): they are left out; with NVSwitches see that nvidia-fabricmanager runs");
  }

  void add_link(Node a, Node b, const Bundle& bundle) {
    Link link;
    link.kind = LinkKind::Nvlink;
    link.a = a;
    link.b = b;
    link.width = bundle.width();
    link.generation = bundle.generation;
    link.latency = rates::kNvlinkLatency;
    link.provenance = bundle.one > 0 ? Provenance::Reported : Provenance::Assumed;
    const double one = bundle.one > 0 ? bundle.one : rates::nvlink(3);
    link.bytes_per_second[0] = link.bytes_per_second[1] = one * link.width;
    m_.links.push_back(link);
  }

  void add_switches() {
    std::map<std::set<std::uint32_t>, std::vector<SwitchKey>> groups;
    for (const auto& [key, gpus] : to_switch_) {
      std::set<std::uint32_t> set;
      for (const auto& [gpu, bundle] : gpus) set.insert(gpu);
      if (!set.empty()) groups[set].push_back(key);
    }
    for (const auto& [gpus, switches] : groups) {
      const HubId hub = hub_of(switches);
      for (const std::uint32_t gpu : gpus) {
        Bundle all;
        for (const SwitchKey& key : switches) {
          const Bundle& one = to_switch_[key][gpu];
          all.there += one.width();
          all.generation = one.generation;
          all.one = one.one;
        }
        add_link(GpuId{gpu}, hub, all);
      }
    }
  }

  /// The hub that hwloc has made of these switches, else one that no GPU is joined to, else a new
  /// one.
  HubId hub_of(const std::vector<SwitchKey>& switches) {
    std::string names;
    std::optional<HubId> found;
    for (const SwitchKey& key : switches)
      if (key) names += (names.empty() ? "" : ", ") + to_string(*key);
    for (std::uint32_t h = 0; h < m_.hubs.size() && !found; ++h) {
      if (m_.hubs[h].kind != HubKind::NvSwitch || taken_hubs_.count(h)) continue;
      const bool is_named =
          std::any_of(switches.begin(), switches.end(), [&](const SwitchKey& key) {
            return !key || m_.hubs[h].name.find(to_string(*key)) != std::string::npos;
          });
      if (is_named) found = HubId{h};
    }
    if (!found) {
      found = HubId{static_cast<std::uint32_t>(m_.hubs.size())};
      Hub hub;
      hub.kind = HubKind::NvSwitch;
      hub.name = names;
      if (switches.size() > 1) hub.name = std::to_string(switches.size()) + " NVSwitches " + names;
      m_.hubs.push_back(std::move(hub));
    }
    taken_hubs_.insert(found->value);
    return *found;
  }

  [[nodiscard]] bool is_joined_to_socket(Node gpu) const {
    return std::any_of(m_.links.begin(), m_.links.end(), [&](const Link& link) {
      const bool is_fabric = link.kind == LinkKind::Nvlink || link.kind == LinkKind::C2c;
      return is_fabric && ((link.a.kind == NodeKind::Socket && link.b == gpu) ||
                           (link.b.kind == NodeKind::Socket && link.a == gpu));
    });
  }

  [[nodiscard]] std::optional<Node> socket_of(Node gpu) const {
    const std::vector<MemoryId>& near = m_.gpus[gpu.index].near;
    if (near.empty() || m_.memories[near.front().value].near.empty()) return std::nullopt;
    return Node(m_.memories[near.front().value].near.front());
  }

  /// Grace: the driver says that the link is there, not how fast it is.
  void add_c2c_links() {
    for (std::size_t f = 0; f < facts_.gpus.size(); ++f) {
      if (!facts_.gpus[f].has_c2c || !gpu_of_[f].is_valid()) continue;
      const Node self = gpu_of_[f];
      const std::optional<Node> socket = socket_of(self);
      if (!socket || is_joined_to_socket(self)) continue;
      Link link;
      link.kind = LinkKind::C2c;
      link.a = *socket;
      link.b = self;
      link.bytes_per_second[0] = link.bytes_per_second[1] = rates::kC2c;
      link.latency = rates::kNvlinkLatency;
      m_.links.push_back(link);
    }
  }

  /// NVLinks to the processor: POWER8 and POWER9.
  void add_cpu_links() {
    for (const auto& [gpu, bundle] : to_cpu_) {
      const Node self = GpuId{gpu};
      const std::optional<Node> socket = socket_of(self);
      if (socket && !is_joined_to_socket(self)) add_link(*socket, self, bundle);
    }
  }

  /// Without NVML: native atomics between peers are there over NVLink and not over PCIe.
  void assume_from_peers() {
    const auto is_nvlink = [](const Link& link) { return link.kind == LinkKind::Nvlink; };
    if (std::any_of(m_.links.begin(), m_.links.end(), is_nvlink)) return;
    std::map<std::uint32_t, std::vector<std::uint32_t>> peers;
    std::size_t pairs = 0, with_peers = 0;
    for (std::uint32_t a = 0; a < m_.gpus.size(); ++a)
      for (std::uint32_t b = 0; b < m_.gpus.size(); ++b)
        if (a != b && has_atomics(a, b) && nvlink_generation_of(m_.gpus[a].model) > 0)
          peers[a].push_back(b), ++pairs;
    with_peers = peers.size();
    if (peers.empty()) return;
    // More than four GPUs that all reach each other are joined by switches: no GPU has links
    // enough for that many bundles of its own.
    const bool is_switched = with_peers > 4 && pairs == with_peers * (with_peers - 1);
    std::optional<HubId> hub;
    if (is_switched) hub = hub_of({std::nullopt});
    for (const auto& [gpu, others] : peers) {
      Bundle bundle;
      bundle.generation = nvlink_generation_of(m_.gpus[gpu].model);
      bundle.there = links_of(bundle.generation);
      bundle.one = rates::nvlink(bundle.generation);
      if (hub) {
        add_link(GpuId{gpu}, *hub, bundle);
        m_.links.back().provenance = Provenance::Assumed;
        continue;
      }
      bundle.there =
          std::max<std::uint32_t>(1, bundle.there / static_cast<std::uint32_t>(others.size()));
      for (const std::uint32_t other : others) {
        if (other < gpu) continue;
        add_link(GpuId{gpu}, GpuId{other}, bundle);
        m_.links.back().provenance = Provenance::Assumed;
      }
    }
    warn("nvlinks_assumed", std::to_string(with_peers) +
                                " GPUs reach each other as they do over NVLink; how many links "
                                "there are is assumed, for NVML does not tell");
  }

  [[nodiscard]] bool has_atomics(std::uint32_t a, std::uint32_t b) const {
    const GpuFact *from = shown(a), *to = shown(b);
    if (!from || !to) return false;
    const auto ordinal = static_cast<std::size_t>(to->cuda_ordinal);
    return ordinal < from->peers.size() && from->peers[ordinal].can_access &&
           from->peers[ordinal].has_atomics;
  }

  /// Links of a generation's largest module: P100 4, V100 6, A100 12, H100 and B200 18 (data
  /// sheets).
  static std::uint32_t links_of(std::uint32_t generation) {
    static constexpr std::uint32_t kLinks[] = {0, 4, 6, 12, 18, 18};
    return generation < std::size(kLinks) ? kLinks[generation] : 0;
  }

  Machine& m_;
  const GpuFacts& facts_;
  const std::vector<GpuId>& gpu_of_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Bundle> pairs_;
  std::map<SwitchKey, std::map<std::uint32_t, Bundle>> to_switch_;
  std::map<std::uint32_t, Bundle> to_cpu_;
  std::set<std::uint32_t> taken_hubs_;
  std::size_t nowhere_ = 0;
};

}  // namespace

void add_nvlinks(Machine& machine, const GpuFacts& facts, const std::vector<GpuId>& gpu_of) {
  Fabric(machine, facts, gpu_of).run();
}

}  // namespace weft
