#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "topology/hw_tree.hpp"
#include "topology/hw_tree_builder.hpp"
#include "topology/names.hpp"
#include "topology/pci_ids.hpp"
#include "topology/quantity.hpp"
#include "topology/rates.hpp"
#include "topology/xml_text.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostGpus = 8192;

/// Interfaces that containers and tunnels make: no hardware of their own.
bool is_virtual_interface(std::string_view name) {
  for (const std::string_view prefix : {"cali", "br-", "tunl", "docker", "veth", "virbr", "flannel",
                                        "cni", "lo", "vxlan", "dummy", "kube-", "nodelocaldns"})
    if (name.starts_with(prefix)) return true;
  return false;
}

class NcclXmlReader {
 public:
  NcclXmlReader(std::string_view text, const std::string& name)
      : xml_(text, name, "system", "an NCCL or RCCL topology, <system>"), build_(tree_) {}

  HwTree read() {
    tree_.needs_pus = false;
    find_places();
    build_.open(HwTreeBuilder::of(HwType::Machine));
    for (const Cpu& cpu : cpus_) place(cpu);
    add_nvswitches();
    build_.close();
    tree_.index_pus(std::nullopt);
    add_links();
    say_what_is_unknown();
    return std::move(tree_);
  }

 private:
  struct Cpu {
    pugi::xml_node node;
    std::int64_t numa = -1;
    std::uint32_t host = 0;
    std::vector<std::uint32_t> affinity;
  };
  struct FabricEnd {
    pugi::xml_node node;
    std::uint32_t gpu = 0;  ///< object
    std::string target;
    std::uint32_t count = 0, host = 0;
    LinkKind kind = LinkKind::Nvlink;
  };

  void find_places() {
    std::map<std::string, std::uint32_t> hosts;
    for (const pugi::xml_node node : xml_.root().children("cpu")) {
      Cpu cpu;
      cpu.node = node;
      const std::string_view numa = node.attribute("numaid").value();
      if (numa != "-1")
        cpu.numa = static_cast<std::int64_t>(xml_.number(node, "numaid", 0, 1 << 20));
      const std::string host = node.attribute("host_hash").value();
      cpu.host = hosts.try_emplace(host, static_cast<std::uint32_t>(hosts.size())).first->second;
      cpu.affinity = affinity(node);
      cpus_.push_back(std::move(cpu));
    }
    if (cpus_.empty()) xml_.fail(xml_.root(), "no <cpu> element; expected at least one");
    std::stable_sort(cpus_.begin(), cpus_.end(), [](const Cpu& a, const Cpu& b) {
      return std::pair(a.host, a.numa) < std::pair(b.host, b.numa);
    });
    // Several hosts count their hardware threads from 0; ours are unique within a machine.
    std::uint32_t stride = 0;
    std::set<std::pair<std::uint32_t, std::uint32_t>> taken;
    for (const Cpu& cpu : cpus_)
      if (!cpu.affinity.empty()) stride = std::max(stride, cpu.affinity.back() + 1);
    for (Cpu& cpu : cpus_) {
      const auto is_taken = [&](std::uint32_t c) { return !taken.insert({cpu.host, c}).second; };
      const std::size_t before = cpu.affinity.size();
      std::erase_if(cpu.affinity, is_taken);
      if (cpu.affinity.size() != before)
        warn("cpus_in_two_places", "NUMA node " + std::to_string(cpu.numa) +
                                       " names hardware threads that an earlier one has already");
      if (static_cast<std::uint64_t>(cpu.host) * stride > kMaxCpu)
        xml_.fail(cpu.node, "too many hardware threads in all");
      for (std::uint32_t& c : cpu.affinity) c += cpu.host * stride;
    }
  }

  std::vector<std::uint32_t> affinity(pugi::xml_node node) {
    const std::string_view text = node.attribute("affinity").value();
    auto cpus = parse_cpu_mask(text, kMaxHostCpu);
    if (!cpus)
      xml_.fail(node,
                "affinity=\"" + std::string(text.substr(0, 40)) +
                    "\"; expected 32-bit words in hexadecimal, separated by commas, at most " +
                    std::to_string(kMaxHostCpu) + " bits");
    return std::move(*cpus);
  }

  void place(const Cpu& cpu) {
    HwObject package = HwTreeBuilder::of(HwType::Package, cpu.numa);
    package.host = cpu.host;
    package.infos.emplace_back("CPUModel", model(cpu.node));
    host_ = cpu.host;
    place_ = build_.open(std::move(package));
    build_.leaf(HwTreeBuilder::of(HwType::Numa, cpu.numa));
    for (const std::uint32_t c : cpu.affinity) build_.leaf(HwTreeBuilder::of(HwType::Pu, c));
    HwObject bridge = HwTreeBuilder::of(HwType::Bridge);
    bridge.is_host_bridge = true;
    build_.open(std::move(bridge));
    for (const pugi::xml_node child : cpu.node.children()) {
      if (std::string_view(child.name()) == "pci") function(child);
      if (std::string_view(child.name()) == "nic") unplaced_nets(child);
    }
    build_.close();
    build_.close();
  }

  static std::string model(pugi::xml_node cpu) {
    std::string text = cpu.attribute("vendor").value();
    if (text == "AuthenticAMD") text = "AMD";
    if (text == "GenuineIntel") text = "Intel";
    const std::string arch = cpu.attribute("arch").value();
    if (!arch.empty()) text += (text.empty() ? "" : " ") + arch;
    const std::string family = cpu.attribute("familyid").value(),
                      number = cpu.attribute("modelid").value();
    if (!family.empty() && !number.empty()) text += " family " + family + " model " + number;
    return text;
  }

  /// `32.0 GT/s PCIe` and a width; 0 where either is missing.
  double link_speed(pugi::xml_node node) {
    const double transfers = node.attribute("link_speed").as_double();
    const std::uint64_t width = xml_.number(node, "link_width", 0, 64);
    for (std::uint32_t generation = 1; generation <= 6; ++generation) {
      static constexpr double kTransfers[] = {0, 2.5, 5, 8, 16, 32, 64};
      if (transfers == kTransfers[generation])
        return rates::pcie_coded(generation) * static_cast<double>(width);
    }
    return 0;
  }

  static std::uint16_t hex(pugi::xml_node node, const char* attribute) {
    std::string_view text = node.attribute(attribute).value();
    if (text.starts_with("0x")) text.remove_prefix(2);
    std::uint32_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, 16);
    // A class has six digits, of which the last two (the programming interface) do not matter.
    return static_cast<std::uint16_t>(text.size() > 4 ? value >> 8 : value);
  }

  void function(pugi::xml_node node) {
    const std::string_view busid = node.attribute("busid").value();
    const auto address = parse_pci_address(busid);
    if (!address)
      xml_.fail(node, "busid=\"" + std::string(busid.substr(0, 40)) +
                          "\"; expected domain:bus:device.function");
    HwObject object;
    object.pci = *address;
    object.pci_class = hex(node, "class");
    object.pci_vendor = hex(node, "vendor");
    object.pci_device = hex(node, "device");
    object.link_speed = link_speed(node);
    if (node.child("pci")) {
      // Bus numbers of switches may be made up and need not be unique.
      object.type = HwType::Bridge;
      object.faces_up = true;
      build_.open(std::move(object));
      for (const pugi::xml_node child : node.children("pci")) function(child);
      build_.close();
      return;
    }
    object.type = HwType::Pci;
    const pugi::xml_node gpu = node.child("gpu");
    const PciRole role = pci_role(object.pci_class, object.pci_vendor, object.pci_device);
    // A class alone decides where a file names no vendor.
    const bool is_gpu = gpu || role == PciRole::Gpu || (object.pci_class >> 8 == 0x03) ||
                        (object.pci_class >> 8 == 0x12 && object.pci_vendor == 0);
    const bool is_nic = node.child("nic") || role == PciRole::Network;
    if (!is_gpu && !is_nic) {
      if (object.pci_class == 0) ++unknown_functions_;
      return;
    }
    if (!seen_.insert({host_, *address}).second) {
      warn("function_twice", to_string(*address) + " is there twice; the second is left out");
      return;
    }
    object.subtype = is_gpu ? "GPU" : "NIC";
    if (is_gpu) {
      if (by_address_.size() >= kMostGpus) xml_.fail(node, "more than 8192 GPUs");
      const std::string name = gpu_name(object.pci_vendor, object.pci_device);
      object.name = name.empty() ? architecture(gpu) : name;
    }
    const std::uint32_t self = build_.open(std::move(object));
    if (is_gpu) by_address_[{host_, to_string(*address)}] = self;
    for (const pugi::xml_node link : gpu.children()) fabric(link, self);
    for (const pugi::xml_node nic : node.children("nic"))
      for (const pugi::xml_node net : nic.children("net")) net_device(net);
    build_.close();
  }

  static std::string architecture(pugi::xml_node gpu) {
    const std::string gcn = gpu.attribute("gcn").value(), sm = gpu.attribute("sm").value();
    if (!gcn.empty()) return gcn.starts_with("gfx") ? gcn : "gfx" + gcn;
    return sm.empty() ? std::string() : "sm_" + sm;
  }

  void net_device(pugi::xml_node net) {
    HwObject device;
    device.type = HwType::OsDevice;
    device.name = net.attribute("name").value();
    const bool is_ethernet = device.name.starts_with("e") || device.name.starts_with("br");
    device.os_device = is_ethernet ? HwOsDevice::Network : HwOsDevice::OpenFabrics;
    double megabits = static_cast<double>(xml_.number(net, "speed", 0, 1'000'000'000));
    // 1.6 Tb/s is the fastest port there is: more is a figure in kb/s.
    if (megabits > 3.2e6) {
      warn("net_speed_unit", device.name + ": speed " + net.attribute("speed").value() +
                                 " is no number of Mb/s; taken as kb/s");
      megabits /= 1000;
    }
    device.network_rate = megabits * 1e6 / 8;
    build_.leaf(std::move(device));
  }

  /// Nets that no PCI function carries: one NIC for each real one, however often it is listed.
  void unplaced_nets(pugi::xml_node nic) {
    for (const pugi::xml_node net : nic.children("net")) {
      const std::string name = net.attribute("name").value();
      if (is_virtual_interface(name))
        ++virtual_nets_;
      else if (nets_.insert(name).second)
        net_device(net);
    }
  }

  void fabric(pugi::xml_node node, std::uint32_t gpu) {
    const std::string_view kind = node.name();
    if (kind != "nvlink" && kind != "xgmi" && kind != "c2c") return;
    FabricEnd end;
    end.node = node;
    end.gpu = gpu;
    end.host = host_;
    end.kind = kind == "nvlink" ? LinkKind::Nvlink
               : kind == "xgmi" ? LinkKind::Xgmi
                                : LinkKind::C2c;
    end.target = node.attribute("target").value();
    end.count = static_cast<std::uint32_t>(xml_.number(node, "count", 1, 1024));
    const std::string_view target_class = node.attribute("tclass").value();
    if (end.kind == LinkKind::C2c || target_class == "0x068001") {
      end.target.clear();
      to_package_.emplace_back(end, place_);
      return;
    }
    if (target_class == "0x068000") switches_[{host_, end.target}] = 0;
    ends_.push_back(std::move(end));
  }

  void add_nvswitches() {
    for (auto& [key, object] : switches_) {
      HwObject hub = HwTreeBuilder::of(HwType::Pci);
      hub.subtype = "NVSwitch";
      // Virtual machines hide the switch behind an address that cannot be.
      hub.pci = parse_pci_address(key.second).value_or(PciAddress{0xffffffffu, 0xff, 0xff, 0});
      object = build_.leaf(std::move(hub));
    }
  }

  double one_link(const FabricEnd& end) const {
    const HwObject& gpu = tree_.objects[end.gpu];
    if (end.kind == LinkKind::C2c) return rates::kC2c / std::max(1u, end.count);
    if (end.kind == LinkKind::Xgmi) return rates::xgmi(gpu.name);
    const double rate = rates::nvlink(nvlink_generation_of(gpu.name));
    return rate > 0 ? rate : rates::nvlink(end.node.parent().attribute("sm").as_int() < 70 ? 1 : 2);
  }

  void add_links() {
    struct Pair {
      std::uint32_t there = 0, back = 0;
      double one = 0;
      LinkKind kind = LinkKind::Nvlink;
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, Pair> pairs;
    for (const FabricEnd& end : ends_) {
      std::uint32_t target = 0;
      const auto hub = switches_.find({end.host, end.target});
      const auto address = parse_pci_address(end.target);
      const auto gpu = by_address_.find({end.host, address ? to_string(*address) : end.target});
      if (hub != switches_.end())
        target = hub->second;
      else if (gpu != by_address_.end())
        target = gpu->second;
      if (target == end.gpu) {
        warn("link_to_itself", std::to_string(end.count) + " NVLinks of " +
                                   to_string(tree_.objects[end.gpu].pci) +
                                   " are said to lead to itself; the file hides where they lead");
        continue;
      }
      if (target == 0) {
        warn("link_to_nowhere", "a link of " + to_string(tree_.objects[end.gpu].pci) +
                                    " leads to " + end.target.substr(0, 40) +
                                    ", which is not in the file");
        continue;
      }
      const bool forward = hub != switches_.end() || end.gpu < target;
      Pair& pair = pairs[forward ? std::pair(end.gpu, target) : std::pair(target, end.gpu)];
      (forward ? pair.there : pair.back) += end.count;
      pair.kind = end.kind;
      pair.one = one_link(end);
      if (hub != switches_.end()) pair.back += end.count;
    }
    for (auto& [ends, pair] : pairs) {
      if (pair.there == 0 || pair.back == 0) {
        warn("link_one_sided", "only one end names the link between " +
                                   to_string(tree_.objects[ends.first].pci) + " and " +
                                   to_string(tree_.objects[ends.second].pci));
        pair.there = pair.back = std::max(pair.there, pair.back);
      }
      add_link(pair.kind, ends.first, ends.second, pair.there, pair.back, pair.one);
    }
    for (const auto& [end, package] : to_package_)
      add_link(end.kind, package, end.gpu, end.count, end.count, one_link(end));
  }

  void add_link(LinkKind kind, std::uint32_t a, std::uint32_t b, std::uint32_t there,
                std::uint32_t back, double one) {
    HwLink link;
    link.kind = kind;
    link.a = a;
    link.b = b;
    link.there = one * there;
    link.back = one * back;
    link.width = std::max(there, back);
    tree_.links.push_back(link);
  }

  void say_what_is_unknown() {
    if (unknown_functions_ > 0)
      warn("function_of_unknown_class",
           std::to_string(unknown_functions_) +
               " PCI functions have no class: whether they are GPUs or NICs cannot be told, and "
               "they are left out; lay this file over one that names them");
    if (virtual_nets_ > 0)
      warn("virtual_nets",
           std::to_string(virtual_nets_) +
               " network devices are those of containers and tunnels and are left out");
    if (tree_.pus.empty())
      warn("cpus_unknown",
           "the file names no hardware thread: its NUMA nodes are shown as "
           "packages without cores");
    else
      warn("packages_unknown",
           "NCCL files name NUMA nodes, not packages or cores: each NUMA node "
           "is shown as a socket, each hardware thread as a core");
  }

  void warn(std::string code, std::string text) {
    if (tree_.warnings.size() < 100) tree_.warnings.push_back({std::move(code), std::move(text)});
  }

  XmlText xml_;
  HwTree tree_;
  HwTreeBuilder build_;
  std::vector<Cpu> cpus_;
  std::uint32_t place_ = 0, host_ = 0;  ///< package being filled and its host
  std::set<std::pair<std::uint32_t, PciAddress>> seen_;
  std::set<std::string> nets_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> by_address_;  ///< GPUs by host
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> switches_;  ///< by host and target
  std::vector<FabricEnd> ends_;
  std::vector<std::pair<FabricEnd, std::uint32_t>> to_package_;
  std::size_t unknown_functions_ = 0, virtual_nets_ = 0;
};

}  // namespace

HwTree read_nccl_xml(std::string_view text, const std::string& name) {
  return NcclXmlReader(text, name).read();
}

}  // namespace weft
