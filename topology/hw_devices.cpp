#include <algorithm>
#include <map>

#include "topology/hw_build.hpp"
#include "topology/names.hpp"
#include "topology/pci_ids.hpp"
#include "topology/rates.hpp"

namespace weft {
namespace {

bool is_network(const HwObject& object) {
  return object.type == HwType::OsDevice &&
         (object.os_device == HwOsDevice::Network || object.os_device == HwOsDevice::OpenFabrics);
}

bool is_disk(const HwObject& object) {
  if (object.type != HwType::OsDevice || object.os_device != HwOsDevice::Block) return false;
  if (object.subtype == "Removable Media Device" || object.subtype == "Tape" ||
      object.subtype == "CXLMem")
    return false;
  return !object.name.starts_with("sr") && !object.name.starts_with("dax");
}

/// Walks the I/O part of a tree and adds hubs, NICs, disks and, at the end, GPUs.
class DeviceWalk {
 public:
  explicit DeviceWalk(HwBuild& build) : build_(build), tree_(build.tree) {
    any_network_name_ = std::any_of(tree_.objects.begin(), tree_.objects.end(), is_network);
    mark_interesting();
  }

  void run() {
    for (std::uint32_t i = 0; i < tree_.objects.size(); ++i) {
      if (is_io(i) && !is_io(tree_.objects[i].parent) && interest_[i] > 0) top(i);
    }
    add_nics();
    // OpenCL's list is not tied to PCI functions where its driver does not say which: then it only
    // repeats what is there.
    if (gpus_.empty()) gpus_ = std::move(opencl_gpus_);
    add_gpus(build_, std::move(gpus_));
  }

 private:
  struct FoundNic {
    Nic nic;
    Link link;
    double rate = 0;         ///< of its port
    std::int64_t order = 0;  ///< among those without a PCI address
    std::vector<std::uint32_t> objects;
  };

  [[nodiscard]] bool is_io(std::uint32_t i) const {
    const HwType type = tree_.objects[i].type;
    return type == HwType::Bridge || type == HwType::Pci || type == HwType::OsDevice;
  }

  [[nodiscard]] bool is_below_pci(std::uint32_t i) const {
    return tree_.above(i, HwType::Pci).has_value();
  }

  /// Os-devices directly or indirectly below `object`, but none below another PCI function.
  [[nodiscard]] std::vector<std::uint32_t> os_devices(std::uint32_t object, bool deep) const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t c = object + 1; c < tree_.objects[object].end;) {
      if (tree_.objects[c].type == HwType::Pci) {
        c = tree_.objects[c].end;
        continue;
      }
      if (tree_.objects[c].type == HwType::OsDevice) found.push_back(c);
      c = deep ? c + 1 : tree_.objects[c].end;
    }
    return found;
  }

  [[nodiscard]] PciRole role(std::uint32_t i) const {
    const HwObject& object = tree_.objects[i];
    if (object.subtype == "NVSwitch") return PciRole::NvSwitch;
    if (object.subtype == "GPU") return PciRole::Gpu;
    if (object.subtype == "NIC") return PciRole::Network;
    const PciRole role = pci_role(object.pci_class, object.pci_vendor, object.pci_device);
    if (role != PciRole::None) return role;
    for (const std::uint32_t os : os_devices(i, false)) {
      const HwObject& device = tree_.objects[os];
      // OpenCL also drives FPGAs and processors, so it alone does not make a GPU.
      if (is_gpu_os_device(device) && !device.name.starts_with("opencl")) return PciRole::Gpu;
      if (device.name.starts_with("mic")) return PciRole::Gpu;
    }
    return PciRole::None;
  }

  /// Whether an object itself becomes a device of the machine.
  [[nodiscard]] bool is_endpoint(std::uint32_t i) const {
    const HwObject& object = tree_.objects[i];
    if (object.type == HwType::OsDevice)
      return is_disk(object) ||
             (!is_below_pci(i) && (is_network(object) || is_gpu_os_device(object)));
    if (object.type != HwType::Pci) return false;
    switch (role(i)) {
      case PciRole::Gpu:
        return true;
      case PciRole::Network: {
        // Ethernet functions without a driver are virtual ones that nobody uses, unless the source
        // names no network device at all; InfiniBand and Omni-Path adapters have no such.
        const auto devices = os_devices(i, true);
        return !any_network_name_ || object.pci_class == 0x0207 || object.pci_class == 0x0208 ||
               std::any_of(devices.begin(), devices.end(),
                           [&](auto os) { return is_network(tree_.objects[os]); });
      }
      default: {
        const auto devices = os_devices(i, true);
        return std::any_of(devices.begin(), devices.end(),
                           [&](auto os) { return is_network(tree_.objects[os]); });
      }
    }
  }

  void mark_interesting() {
    interest_.assign(tree_.objects.size(), 0);
    for (std::uint32_t i = static_cast<std::uint32_t>(tree_.objects.size()); i-- > 0;) {
      interest_[i] += is_endpoint(i);
      if (i > 0) interest_[tree_.objects[i].parent] += interest_[i];
    }
  }

  /// An I/O object that hangs from a package, a NUMA node, the machine …
  void top(std::uint32_t i) {
    const HwObject& object = tree_.objects[i];
    if (object.type == HwType::OsDevice) {
      const auto places = build_.places_near(i);
      os_device(i, build_.places.at(places.front()), 0, 0);
      return;
    }
    const Node bridge = host_bridge(i);
    if (object.type == HwType::Bridge && object.is_host_bridge)
      tree_.each_child(i, [&](std::uint32_t c) { below(c, bridge, 0, 0); });
    else
      below(i, bridge, 0, 0);
  }

  /// A new host bridge for the bridge object `i`, or the one shared by all that hangs directly from
  /// the same host object.
  Node host_bridge(std::uint32_t i) {
    const std::uint32_t host = tree_.host_ancestor(i);
    const bool is_own = tree_.objects[i].is_host_bridge;
    if (!is_own) {
      const auto known = bridge_of_.find(host);
      if (known != bridge_of_.end()) return known->second;
    }
    const HubId id{static_cast<std::uint32_t>(build_.machine.hubs.size())};
    build_.machine.hubs.emplace_back();
    const auto places = build_.places_near(i);
    Hub& hub = build_.machine.hubs[id.value];
    hub.name = "host bridge";
    if (!places.empty()) hub.host = build_.hosts[places.front()];
    hub.near = build_.memories_near(i);
    if (!is_own) bridge_of_[host] = id;
    const bool is_anywhere = build_.locality(i) == 0 && places.size() > 1;
    if (is_anywhere && !said_locality_) {
      said_locality_ = true;
      build_.warn("io_locality_unknown",
                  "the source does not say which socket PCI devices are near to; " +
                      to_string(Node(id)) + " and others are joined to all of them");
    }
    for (const std::uint32_t place : places)
      build_.add_link(LinkKind::Bus, build_.places[place], id, rates::kMemoryBus,
                      rates::kBusLatency, Provenance::Assumed);
    return id;
  }

  [[nodiscard]] static double slower(double a, double b) {
    if (a <= 0) return b;
    return b <= 0 ? a : std::min(a, b);
  }

  /// An object under a bridge. Bridges of odd depth face down (root ports, a switch's lower ports):
  /// their speed is that of what is below, if that does not say. Bridges of even depth face up:
  /// their link is one more hop, which is part of a longer one where the switch joins only one
  /// thing.
  void below(std::uint32_t i, Node parent, double port_speed, double chain_speed) {
    if (interest_[i] == 0) return;
    const HwObject& object = tree_.objects[i];
    if (object.type == HwType::Bridge) {
      std::uint32_t branches = 0;
      tree_.each_child(i, [&](std::uint32_t c) { branches += interest_[c] > 0; });
      if (object.faces_up) {
        const double uplink =
            slower(chain_speed, object.link_speed > 0 ? object.link_speed : port_speed);
        chain_speed = uplink;
        port_speed = 0;
        if (branches > 1) {
          const HubId id{static_cast<std::uint32_t>(build_.machine.hubs.size())};
          Hub hub;
          hub.kind = HubKind::PcieSwitch;
          const std::string_view name = object.info("PCIDevice");
          hub.name = name.empty() ? std::string() : trade_name(name);
          hub.near = build_.memories_near(i);
          hub.host = build_.machine.hubs[parent.index].host;
          build_.machine.hubs.push_back(std::move(hub));
          Link link = pcie_link(uplink, rates::kPcieDefault);
          link.a = parent;
          link.b = id;
          build_.machine.links.push_back(link);
          parent = id;
          chain_speed = 0;
        }
      } else {
        port_speed = object.link_speed;
      }
      tree_.each_child(i, [&](std::uint32_t c) { below(c, parent, port_speed, chain_speed); });
    } else if (object.type == HwType::Pci) {
      function(i, parent, object.link_speed > 0 ? object.link_speed : port_speed, chain_speed);
    } else {
      os_device(i, parent, port_speed, chain_speed);
    }
  }

  void function(std::uint32_t i, Node parent, double own_speed, double chain_speed) {
    const HwObject& object = tree_.objects[i];
    const double speed = slower(own_speed, chain_speed);
    if (role(i) == PciRole::Gpu) {
      for (FoundGpu& gpu : gpus_of(tree_, i, os_devices(i, false))) {
        gpu.parent = parent;
        gpu.chip = i;
        gpu.gpu.near = build_.memories_near(i);
        gpu.link = pcie_link(speed, rates::kPcieDefault);
        gpus_.push_back(std::move(gpu));
      }
    } else if (is_endpoint(i)) {
      FoundNic found;
      found.objects = os_devices(i, true);
      found.objects.push_back(i);
      for (const HwOsDevice kind : {HwOsDevice::OpenFabrics, HwOsDevice::Network})
        for (const std::uint32_t os : found.objects)
          if (found.nic.name.empty() && is_network(tree_.objects[os]) &&
              tree_.objects[os].os_device == kind)
            found.nic.name = tree_.objects[os].name;
      if (found.nic.name.empty()) found.nic.name = to_string(object.pci);
      for (const std::uint32_t os : found.objects) found.rate += tree_.objects[os].network_rate;
      if (object.has_address) found.nic.pci = object.pci;
      found.nic.near = build_.memories_near(i);
      found.order = object.os_index;
      found.link = pcie_link(speed, rates::kPcieDevice);
      found.link.a = parent;
      nics_.push_back(std::move(found));
    }
    for (const std::uint32_t os : os_devices(i, true))
      if (is_disk(tree_.objects[os])) disk(os, parent, speed, object.pci);
  }

  /// An os-device without a PCI function.
  void os_device(std::uint32_t i, Node parent, double port_speed, double chain_speed) {
    const HwObject& object = tree_.objects[i];
    const double speed = slower(port_speed, chain_speed);
    if (is_disk(object)) {
      disk(i, parent, speed, std::nullopt);
    } else if (is_network(object)) {
      FoundNic found;
      found.nic.name = object.name;
      found.nic.near = build_.memories_near(i);
      found.link = pcie_link(speed, rates::kPcieDevice);
      found.link.a = parent;
      found.objects = {i};
      found.rate = object.network_rate;
      nics_.push_back(std::move(found));
    } else if (is_gpu_os_device(object) && !said_gpus_[tree_.objects[i].parent]) {
      const std::uint32_t host = object.parent;
      said_gpus_[host] = true;
      for (FoundGpu& gpu : gpus_of(tree_, std::nullopt, os_devices(host, false))) {
        gpu.parent = parent;
        gpu.chip = gpu.objects.empty() ? i : gpu.objects.front();
        gpu.gpu.near = build_.memories_near(i);
        const bool is_grace = gpu.gpu.model.find("GH200") != std::string::npos ||
                              gpu.gpu.model.find("GB200") != std::string::npos ||
                              gpu.gpu.model.find("GB10") != std::string::npos;
        gpu.link = pcie_link(0, is_grace ? rates::kC2c : rates::kPcieDefault);
        if (is_grace) gpu.link.kind = LinkKind::C2c;
        (object.name.starts_with("opencl") ? opencl_gpus_ : gpus_).push_back(std::move(gpu));
      }
    }
  }

  void disk(std::uint32_t i, Node parent, double speed, std::optional<PciAddress> pci) {
    const HwObject& object = tree_.objects[i];
    Disk disk;
    disk.name = object.name;
    disk.bytes = bytes_of_kib(object.info("Size"));
    disk.pci = pci;
    const DiskId id{static_cast<std::uint32_t>(build_.machine.disks.size())};
    build_.machine.disks.push_back(std::move(disk));
    const bool is_nvme = object.name.starts_with("nvme");
    double rate = is_nvme ? rates::kDisk : rates::kSlowDisk;
    if (object.name.starts_with("pmem")) rate = rates::kSlowMemoryBus;
    if (is_nvme && speed > 0) rate = std::min(rate, rates::pcie_payload(speed));
    build_.add_link(LinkKind::Disk, parent, id, rate, rates::kDiskLatency, Provenance::Assumed);
  }

  static Link pcie_link(double coded_speed, double assumed) {
    Link link;
    link.kind = LinkKind::Pcie;
    link.latency = rates::kPcieLatency;
    const rates::PcieShape shape = rates::pcie_shape(coded_speed);
    link.generation = shape.generation;
    link.width = shape.width;
    const double rate = coded_speed > 0 ? rates::pcie_payload(coded_speed) : assumed;
    link.bytes_per_second[0] = link.bytes_per_second[1] = rate;
    link.provenance = coded_speed > 0 ? Provenance::Reported : Provenance::Assumed;
    return link;
  }

  void add_nics() {
    std::stable_sort(nics_.begin(), nics_.end(), [](const FoundNic& a, const FoundNic& b) {
      if (!a.nic.pci && !b.nic.pci) return a.order < b.order;
      return a.nic.pci && b.nic.pci ? *a.nic.pci < *b.nic.pci : a.nic.pci.has_value();
    });
    for (FoundNic& found : nics_) {
      const NicId id{static_cast<std::uint32_t>(build_.machine.nics.size())};
      for (const std::uint32_t object : found.objects) build_.node_of.emplace(object, id);
      found.link.b = id;
      build_.machine.nics.push_back(std::move(found.nic));
      build_.machine.links.push_back(found.link);
    }
    // What the cables lead to, where the source states how fast they are.
    std::optional<HubId> network;
    for (std::uint32_t n = 0; n < nics_.size(); ++n) {
      if (nics_[n].rate <= 0) continue;
      if (!network) {
        network = HubId{static_cast<std::uint32_t>(build_.machine.hubs.size())};
        Hub hub;
        hub.kind = HubKind::Network;
        hub.name = "network";
        build_.machine.hubs.push_back(std::move(hub));
      }
      build_.add_link(LinkKind::Network, NicId{n}, *network, nics_[n].rate, rates::kNetworkLatency,
                      Provenance::Reported);
    }
  }

  HwBuild& build_;
  const HwTree& tree_;
  bool any_network_name_ = false;
  bool said_locality_ = false;
  std::vector<std::uint32_t> interest_;  ///< endpoints at or below an object
  std::map<std::uint32_t, Node> bridge_of_;
  std::vector<FoundGpu> opencl_gpus_;  // without a PCI function
  std::map<std::uint32_t, bool> said_gpus_;
  std::vector<FoundGpu> gpus_;
  std::vector<FoundNic> nics_;
};

}  // namespace

void add_devices(HwBuild& build) {
  DeviceWalk(build).run();
}

}  // namespace weft
