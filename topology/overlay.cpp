#include "topology/overlay.hpp"

#include <algorithm>
#include <map>

#include "topology/machine_check.hpp"
#include "topology/names.hpp"
#include "topology/pci_ids.hpp"
#include "topology/rates.hpp"
#include "topology/reach.hpp"

namespace weft {
namespace {

class Overlay {
 public:
  Overlay(const Machine& base, const Machine& over) : result_(base), over_(over) {}

  Machine run() {
    result_.source += " + " + over_.source;
    match_gpus();
    match_nics();
    for (std::uint32_t i = 0; i < over_.gpus.size(); ++i) gpu(i);
    for (std::uint32_t i = 0; i < over_.nics.size(); ++i) nic(i);
    fabric();
    network();
    // What the base knows better is no news.
    for (const Warning& warning : over_.warnings)
      if (warning.code != "packages_unknown" && warning.code != "cpus_unknown" &&
          warning.code != "not_connected")
        result_.warnings.push_back(warning);
    warn_unreachable(result_);
    check_machine(result_);
    return std::move(result_);
  }

 private:
  void warn(std::string code, std::string text) {
    result_.warnings.push_back({std::move(code), std::move(text)});
  }

  void match_gpus() {
    gpu_of_.resize(over_.gpus.size());
    std::size_t matched = 0, hidden = 0;
    for (std::uint32_t i = 0; i < over_.gpus.size(); ++i) {
      const Gpu& gpu = over_.gpus[i];
      hidden += !gpu.pci && gpu.uuid.empty();
      for (std::uint32_t j = 0; j < result_.gpus.size(); ++j) {
        const Gpu& known = result_.gpus[j];
        const bool is_taken =
            std::find(gpu_of_.begin(), gpu_of_.begin() + i, GpuId{j}) != gpu_of_.begin() + i;
        const bool same_address = gpu.pci && gpu.pci == known.pci;
        const bool same_uuid = !gpu.uuid.empty() && gpu.uuid == known.uuid;
        if (!is_taken && (same_uuid || same_address)) {
          gpu_of_[i] = GpuId{j};
          ++matched;
          break;
        }
      }
    }
    if (matched > 0 || over_.gpus.empty() || result_.gpus.empty()) return;
    if (over_.gpus.size() != result_.gpus.size()) {
      const std::string both = std::to_string(result_.gpus.size()) + " and " +
                               std::to_string(over_.gpus.size()) + " GPUs";
      throw TopologyError(
          over_.source + ": cannot be laid over the other source: " + both +
          (hidden ? " and no PCI address in one of them" : " with no PCI address in common") +
          "; expected the same machine in both");
    }
    for (std::uint32_t i = 0; i < gpu_of_.size(); ++i) gpu_of_[i] = GpuId{i};
    warn("gpus_matched_by_order", over_.source +
                                      " names no PCI address the other source knows: its " +
                                      std::to_string(gpu_of_.size()) + " GPUs are taken in order");
  }

  void match_nics() {
    nic_of_.resize(over_.nics.size());
    for (std::uint32_t i = 0; i < over_.nics.size(); ++i)
      for (std::uint32_t j = 0; j < result_.nics.size(); ++j) {
        const Nic& a = over_.nics[i];
        const Nic& b = result_.nics[j];
        if ((a.pci && a.pci == b.pci) || (!a.name.empty() && a.name == b.name)) {
          nic_of_[i] = NicId{j};
          break;
        }
      }
  }

  /// The memory of the result with the NUMA number of one of `over`'s.
  MemoryId memory_like(const std::vector<MemoryId>& near) const {
    for (const MemoryId id : near) {
      const std::int64_t number = over_.memories[id.value].os_index;
      for (std::uint32_t m = 0; number >= 0 && m < result_.memories.size(); ++m)
        if (result_.memories[m].os_index == number && result_.memories[m].kind != MemoryKind::Gpu)
          return MemoryId{m};
    }
    return {};
  }

  static const Link* pcie_of(const Machine& machine, Node node) {
    for (const Link& link : machine.links)
      if (link.kind == LinkKind::Pcie && link.b == node) return &link;
    return nullptr;
  }

  void gpu(std::uint32_t i) {
    const Gpu& told = over_.gpus[i];
    if (!gpu_of_[i].is_valid()) {
      gpu_of_[i] = add_gpu(told);
      if (const Link* pcie = pcie_of(over_, GpuId{i})) add_pcie(*pcie, gpu_of_[i], told.near);
      return;
    }
    const Node self = gpu_of_[i];
    Gpu& gpu = result_.gpus[gpu_of_[i].value];
    if (gpu.model.empty()) gpu.model = told.model;
    if (gpu.vendor.empty()) gpu.vendor = told.vendor;
    if (!gpu.pci) gpu.pci = told.pci;
    if (gpu.uuid.empty()) gpu.uuid = told.uuid;
    if (gpu.memory.is_valid() && told.memory.is_valid()) {
      Memory& memory = result_.memories[gpu.memory.value];
      if (memory.bytes == 0 && memory.kind == MemoryKind::Gpu)
        memory.bytes = over_.memories[told.memory.value].bytes;
    }
    const MemoryId near = memory_like(told.near);
    if (gpu.near.empty() && near.is_valid()) gpu.near = {near};
    if (near.is_valid() && std::find(gpu.near.begin(), gpu.near.end(), near) == gpu.near.end())
      warn("sources_disagree", to_string(self) + " is near " + to_string(Node(gpu.near.front())) +
                                   " in one source and " + to_string(Node(near)) +
                                   " in the other; "
                                   "the first is kept");
    take_pcie(pcie_of(over_, GpuId{i}), self);
  }

  void take_pcie(const Link* told, Node self) {
    if (!told || told->provenance == Provenance::Assumed) return;
    for (Link& link : result_.links)
      if (link.kind == LinkKind::Pcie && link.b == self && link.provenance == Provenance::Assumed) {
        std::copy_n(told->bytes_per_second, 2, link.bytes_per_second);
        link.generation = told->generation;
        link.width = told->width;
        link.provenance = told->provenance;
      }
  }

  GpuId add_gpu(const Gpu& told) {
    const GpuId id{static_cast<std::uint32_t>(result_.gpus.size())};
    Gpu gpu = told;
    gpu.shares_with.clear();
    gpu.near.clear();
    if (const MemoryId near = memory_like(told.near); near.is_valid()) gpu.near = {near};
    const bool is_shared =
        told.memory.is_valid() && over_.memories[told.memory.value].kind != MemoryKind::Gpu;
    if (is_shared && !gpu.near.empty()) {
      gpu.memory = gpu.near.front();
    } else {
      gpu.memory = MemoryId{static_cast<std::uint32_t>(result_.memories.size())};
      Memory memory;
      memory.kind = MemoryKind::Gpu;
      if (told.memory.is_valid()) memory.bytes = over_.memories[told.memory.value].bytes;
      memory.gpu = id;
      result_.memories.push_back(std::move(memory));
    }
    result_.gpus.push_back(std::move(gpu));
    return id;
  }

  /// Joins a new device to a host bridge of its own at the place its memory is at.
  void add_pcie(const Link& told, Node self, const std::vector<MemoryId>& near) {
    Node place = SocketId{0};
    if (result_.sockets.empty()) return;
    Hub hub;
    hub.name = "host bridge";
    if (const MemoryId memory = memory_like(near); memory.is_valid()) {
      hub.near = {memory};
      for (const Link& link : result_.links)
        if (link.kind == LinkKind::Bus && link.a == Node(memory)) place = link.b;
    }
    const HubId bridge{static_cast<std::uint32_t>(result_.hubs.size())};
    result_.hubs.push_back(std::move(hub));
    Link bus;
    bus.kind = LinkKind::Bus;
    bus.a = place;
    bus.b = bridge;
    bus.bytes_per_second[0] = bus.bytes_per_second[1] = rates::kMemoryBus;
    bus.latency = rates::kBusLatency;
    result_.links.push_back(bus);
    Link pcie = told;
    pcie.a = bridge;
    pcie.b = self;
    result_.links.push_back(pcie);
  }

  void nic(std::uint32_t i) {
    if (nic_of_[i].is_valid()) {
      take_pcie(pcie_of(over_, NicId{i}), nic_of_[i]);
      return;
    }
    nic_of_[i] = NicId{static_cast<std::uint32_t>(result_.nics.size())};
    Nic nic = over_.nics[i];
    nic.near.clear();
    if (const MemoryId near = memory_like(over_.nics[i].near); near.is_valid()) nic.near = {near};
    result_.nics.push_back(std::move(nic));
    if (const Link* pcie = pcie_of(over_, NicId{i}))
      add_pcie(*pcie, nic_of_[i], over_.nics[i].near);
  }

  HubId hub_like(std::uint32_t i) {
    const auto [entry, is_new] =
        hub_of_.try_emplace(i, HubId{static_cast<std::uint32_t>(result_.hubs.size())});
    if (is_new) {
      Hub hub = over_.hubs[i];
      hub.near.clear();
      result_.hubs.push_back(std::move(hub));
    }
    return entry->second;
  }

  /// The result's node for an end of one of `over`'s links; nothing if there is none.
  std::optional<Node> node_like(Node n) {
    switch (n.kind) {
      case NodeKind::Gpu:
        return Node(gpu_of_[n.index]);
      case NodeKind::Nic:
        return Node(nic_of_[n.index]);
      case NodeKind::Hub:
        return Node(hub_like(n.index));
      case NodeKind::Socket:
        if (const MemoryId m = memory_like(over_.sockets[n.index].memories); m.is_valid())
          if (const auto& near = result_.memories[m.value].near; !near.empty())
            return Node(near.front());
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

  void fabric() {
    const auto has_fabric = [](const Link& link) { return is_fabric(link.kind); };
    if (std::none_of(over_.links.begin(), over_.links.end(), has_fabric)) return;
    std::erase_if(result_.links, has_fabric);
    for (Link link : over_.links) {
      if (!is_fabric(link.kind)) continue;
      const auto a = node_like(link.a), b = node_like(link.b);
      if (!a || !b) continue;
      link.a = *a;
      link.b = *b;
      for (const Node end : {link.a, link.b}) {
        if (end.kind != NodeKind::Gpu || link.kind != LinkKind::Nvlink || link.generation != 0)
          continue;
        link.generation = nvlink_generation_of(result_.gpus[end.index].model);
        if (link.generation == 0 || link.provenance != Provenance::Assumed) continue;
        // Now that the model is known, so is the rate of one link.
        link.bytes_per_second[0] = link.bytes_per_second[1] =
            rates::nvlink(link.generation) * link.width;
      }
      result_.links.push_back(link);
    }
  }

  void network() {
    const auto is_network = [](const Link& link) { return link.kind == LinkKind::Network; };
    if (std::any_of(result_.links.begin(), result_.links.end(), is_network)) return;
    for (Link link : over_.links) {
      if (!is_network(link)) continue;
      const auto a = node_like(link.a), b = node_like(link.b);
      if (!a || !b) continue;
      link.a = *a;
      link.b = *b;
      result_.links.push_back(link);
    }
  }

  Machine result_;
  const Machine& over_;
  std::vector<GpuId> gpu_of_;  ///< by index in `over_`
  std::vector<NicId> nic_of_;
  std::map<std::uint32_t, HubId> hub_of_;
};

}  // namespace

Machine overlay(const Machine& base, const Machine& over) {
  if (base.sockets.empty() && !over.sockets.empty()) return Overlay(over, base).run();
  return Overlay(base, over).run();
}

}  // namespace weft
