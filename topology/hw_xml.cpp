#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "topology/hw_tree.hpp"
#include "topology/names.hpp"
#include "topology/quantity.hpp"
#include "topology/xml_text.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostMatrix = 4096;  ///< objects in one matrix

class HwlocXmlReader {
 public:
  HwlocXmlReader(std::string_view text, const std::string& name)
      : xml_(text, name, "topology", "an hwloc export, <topology>") {}

  HwTree read() {
    pugi::xml_node machine;
    for (const pugi::xml_node object : xml_.root().children("object")) {
      if (machine) xml_.fail(object, "a second root object; expected one Machine");
      machine = object;
    }
    if (!machine) xml_.fail(xml_.root(), "no object; expected <object type=\"Machine\">");
    if (const std::string_view type = machine.attribute("type").value(); type != "Machine")
      xml_.fail(machine,
                "the root object is a " + std::string(type) +
                    "; expected one Machine (several in a System are no longer supported)");
    object(machine, 0, 0);
    drop_disallowed(machine);
    for (const pugi::xml_node child : xml_.root().children()) {
      const std::string_view kind = child.name();
      if (kind == "distances2" || kind == "distances2hetero") matrix(child);
      if (kind == "memattr") memory_attribute(child);
      if (kind == "cpukind") cpu_kind(child);
    }
    return std::move(tree_);
  }

 private:
  static HwType type_of(std::string_view type) {
    if (type == "Machine") return HwType::Machine;
    if (type == "Package" || type == "Socket") return HwType::Package;
    if (type == "Core") return HwType::Core;
    if (type == "PU") return HwType::Pu;
    if (type == "NUMANode" || type == "Node") return HwType::Numa;
    if (type == "MemCache") return HwType::MemCache;
    if (type == "Bridge") return HwType::Bridge;
    if (type == "PCIDev") return HwType::Pci;
    if (type == "OSDev") return HwType::OsDevice;
    if (type == "Cache") return HwType::Cache;
    if (type.size() == 7 && type[0] == 'L' && type.ends_with("Cache")) return HwType::Cache;
    return HwType::Other;
  }

  void object(pugi::xml_node from, std::uint32_t parent, int bridges) {
    const auto self = static_cast<std::uint32_t>(tree_.objects.size());
    tree_.objects.push_back(fields(from));
    HwObject& to = tree_.objects.back();
    to.parent = parent;
    if (self != 0 && to.type == HwType::Machine)
      xml_.fail(from, "a Machine inside an object; expected one Machine, as the root");
    if (to.type == HwType::Bridge) {
      to.faces_up = bridges > 0 && bridges % 2 == 0;
      ++bridges;
    }
    by_gp_[to.gp_index] = self;
    if (to.type == HwType::Pu && !pus_.insert(to.os_index).second)
      xml_.fail(from, "PU " + std::to_string(to.os_index) + " is there twice");
    if (to.type == HwType::Numa) numa_by_os_[to.os_index] = self;
    for (const pugi::xml_node child : from.children()) {
      const std::string_view kind = child.name();
      if (kind == "object") object(child, self, bridges);
      if (kind == "info")
        tree_.objects[self].infos.emplace_back(child.attribute("name").value(),
                                               child.attribute("value").value());
    }
    tree_.objects[self].end = static_cast<std::uint32_t>(tree_.objects.size());
  }

  HwObject fields(pugi::xml_node from) {
    HwObject to;
    const std::string_view type = from.attribute("type").value();
    if (type.empty()) xml_.fail(from, "no type; expected type=\"Package\", \"Core\", \"PU\" …");
    to.type = type_of(type);
    to.name = from.attribute("name").value();
    to.subtype = from.attribute("subtype").value();
    to.gp_index = xml_.number(from, "gp_index", 0, ~std::uint64_t{0});
    constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
    switch (to.type) {
      case HwType::Pu:
        if (!from.attribute("os_index")) xml_.fail(from, "a PU without os_index");
        to.os_index = static_cast<std::int64_t>(xml_.number(from, "os_index", 0, kMaxCpu - 1));
        break;
      case HwType::Numa:
        to.os_index = static_cast<std::int64_t>(xml_.number(from, "os_index", 0, 0xffffffffu));
        to.bytes = xml_.number(from, "local_memory", 0, kMost);
        to.has_no_cpus = std::string_view(from.attribute("cpuset").value()) == "0x0";
        break;
      case HwType::Machine:
        to.bytes = xml_.number(from, "local_memory", 0, kMost);
        break;
      case HwType::Cache:
        to.bytes = xml_.number(from, "cache_size", 0, kMost);
        to.cache_depth = static_cast<std::uint32_t>(xml_.number(from, "depth", 0, 64));
        // Instruction caches hold no data of ours.
        if (std::string_view(from.attribute("cache_type").value()) == "2") to.type = HwType::Other;
        break;
      case HwType::Bridge:
        to.is_host_bridge =
            std::string_view(from.attribute("bridge_type").value()).starts_with("0");
        if (!to.is_host_bridge) pci(from, to);
        break;
      case HwType::Pci:
        pci(from, to);
        break;
      case HwType::OsDevice:
        to.os_device = static_cast<HwOsDevice>(std::min<std::uint64_t>(
            xml_.number(from, "osdev_type", 6, 1000), static_cast<unsigned>(HwOsDevice::Memory)));
        break;
      default:
        break;
    }
    return to;
  }

  void pci(pugi::xml_node from, HwObject& to) {
    const std::string_view address = from.attribute("pci_busid").value();
    const auto parsed = parse_pci_address(address);
    if (!parsed)
      xml_.fail(from, "pci_busid=\"" + std::string(address.substr(0, 40)) +
                          "\"; expected domain:bus:device.function");
    to.pci = *parsed;
    // "0302 [10de:1db8] [10de:131d] a1": class, vendor and device, subsystem, revision.
    const std::string_view type = from.attribute("pci_type").value();
    const auto hex = [&](std::size_t at) {
      std::uint16_t value = 0;
      if (type.size() >= at + 4) std::from_chars(type.data() + at, type.data() + at + 4, value, 16);
      return value;
    };
    to.pci_class = hex(0);
    to.pci_vendor = hex(6);
    to.pci_device = hex(11);
    const double gigabytes = from.attribute("pci_link_speed").as_double();
    if (gigabytes > 0 && gigabytes < 1e6) to.link_speed = 1e9 * gigabytes;
  }

  void drop_disallowed(pugi::xml_node machine) {
    std::optional<std::vector<std::uint32_t>> cpus, nodes;
    if (const auto set = machine.attribute("allowed_cpuset")) cpus = bitmap(machine, set);
    if (const auto set = machine.attribute("allowed_nodeset")) nodes = bitmap(machine, set);
    if (nodes)
      for (HwObject& object : tree_.objects)
        if (object.type == HwType::Numa &&
            !std::binary_search(nodes->begin(), nodes->end(),
                                static_cast<std::uint32_t>(object.os_index)))
          object.type = HwType::Other;
    tree_.index_pus(cpus);
    say_what_is_hidden(machine);
    if (tree_.pus.empty())
      xml_.fail(machine, "no PU that may be used; expected at least one <object type=\"PU\">");
  }

  /// Parts that the whole machine has and the export, made inside a cpuset or cgroup, has not.
  void say_what_is_hidden(pugi::xml_node machine) {
    const auto hidden = [&](const char* attribute, auto is_there) {
      const auto all = parse_cpu_mask(machine.attribute(attribute).value());
      std::size_t count = 0;
      if (all)
        count = static_cast<std::size_t>(
            std::count_if(all->begin(), all->end(), std::not_fn(is_there)));
      return count;
    };
    std::set<std::int64_t> cpus, nodes;
    for (const std::uint32_t pu : tree_.pus) cpus.insert(tree_.objects[pu].os_index);
    for (const HwObject& object : tree_.objects)
      if (object.type == HwType::Numa) nodes.insert(object.os_index);
    if (const auto count = hidden("complete_cpuset", [&](auto cpu) { return cpus.count(cpu) > 0; }))
      tree_.warnings.push_back(
          {"cpus_not_allowed", std::to_string(count) +
                                   " more hardware threads are "
                                   "offline or outside the cpuset or cgroup of the export"});
    if (nodes.empty()) return;
    if (const auto count =
            hidden("complete_nodeset", [&](auto node) { return nodes.count(node) > 0; }))
      tree_.warnings.push_back(
          {"memories_not_allowed",
           std::to_string(count) + " more NUMA nodes are "
                                   "empty, offline or outside the cpuset or cgroup of the export"});
  }

  /// Nothing means "all".
  std::optional<std::vector<std::uint32_t>> bitmap(pugi::xml_node node, pugi::xml_attribute set) {
    const std::string_view text = set.value();
    if (text.empty() || text.starts_with("0xf...f")) return std::nullopt;  // infinite
    auto bits = parse_cpu_mask(text);
    if (!bits)
      xml_.fail(node, std::string(set.name()) + "=\"" + std::string(text.substr(0, 40)) +
                          "\"; expected 32-bit words in hexadecimal, separated by commas");
    return bits;
  }

  template <class Use>
  static void each_word(pugi::xml_node node, const char* child, Use use) {
    for (const pugi::xml_node part : node.children(child)) {
      std::string_view text = part.text().get();
      while (!(text = trimmed(text)).empty()) {
        const std::size_t end = std::min(text.find_first_of(" \t\r\n"), text.size());
        use(text.substr(0, end));
        text.remove_prefix(end);
      }
    }
  }

  void matrix(pugi::xml_node from) {
    HwMatrix matrix;
    matrix.name = from.attribute("name").value();
    const std::uint64_t count = xml_.number(from, "nbobjs", 0, kMostMatrix);
    const bool by_os = std::string_view(from.attribute("indexing").value()) == "os";
    bool all_known = true;
    each_word(from, "indexes", [&](std::string_view word) {
      const std::size_t colon = word.find(':');
      if (colon != std::string_view::npos) word.remove_prefix(colon + 1);
      std::uint64_t index = 0;
      std::from_chars(word.data(), word.data() + word.size(), index);
      if (by_os) {
        const auto found = numa_by_os_.find(static_cast<std::int64_t>(index));
        all_known &= found != numa_by_os_.end();
        if (found != numa_by_os_.end()) matrix.objects.push_back(found->second);
      } else {
        const auto found = by_gp_.find(index);
        all_known &= index != 0 && found != by_gp_.end();
        if (found != by_gp_.end()) matrix.objects.push_back(found->second);
      }
    });
    each_word(from, "u64values", [&](std::string_view word) {
      std::uint64_t value = 0;
      std::from_chars(word.data(), word.data() + word.size(), value);
      matrix.values.push_back(value);
    });
    if (!all_known || matrix.objects.size() != count || matrix.values.size() != count * count) {
      tree_.warnings.push_back({"matrix_incomplete", "the matrix " + matrix.name +
                                                         " names objects that are not there or "
                                                         "has too few values; it is left out"});
      return;
    }
    tree_.matrices.push_back(std::move(matrix));
  }

  void memory_attribute(pugi::xml_node from) {
    const std::string_view name = from.attribute("name").value();
    const bool both = name == "Bandwidth", read = name == "ReadBandwidth",
               write = name == "WriteBandwidth";
    if (!both && !read && !write) return;
    for (const pugi::xml_node value : from.children("memattr_value")) {
      const auto found =
          by_gp_.find(xml_.number(value, "target_obj_gp_index", 0, ~std::uint64_t{0}));
      if (found == by_gp_.end() || tree_.objects[found->second].type != HwType::Numa) continue;
      const double rate = 1e6 * static_cast<double>(xml_.number(value, "value", 0, 100'000'000));
      if (rate <= 0) continue;
      auto& list = tree_.bandwidths;
      auto entry = std::find_if(list.begin(), list.end(), [&](const HwBandwidth& bandwidth) {
        return bandwidth.numa == found->second;
      });
      if (entry == list.end()) entry = list.insert(list.end(), {found->second, rate, rate});
      // The same memory seen from elsewhere is slower: the best is the local one.
      if (read || both) entry->read = std::max(entry->read, rate);
      if (write || both) entry->write = write ? rate : std::max(entry->write, rate);
    }
  }

  void cpu_kind(pugi::xml_node from) {
    HwCpuKind kind;
    const auto cpus = parse_cpu_mask(from.attribute("cpuset").value());
    if (!cpus) return;
    kind.cpus = *cpus;
    for (const pugi::xml_node info : from.children("info"))
      kind.infos.emplace_back(info.attribute("name").value(), info.attribute("value").value());
    tree_.cpu_kinds.push_back(std::move(kind));
  }

  XmlText xml_;
  HwTree tree_;
  std::map<std::uint64_t, std::uint32_t> by_gp_;
  std::map<std::int64_t, std::uint32_t> numa_by_os_;
  std::set<std::int64_t> pus_;
};

}  // namespace

HwTree read_hwloc_xml(std::string_view text, const std::string& name) {
  return HwlocXmlReader(text, name).read();
}

}  // namespace weft
