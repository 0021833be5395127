#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "topology/hw_tree.hpp"
#include "topology/hw_tree_builder.hpp"
#include "topology/quantity.hpp"
#include "topology/rates.hpp"
#include "topology/smi_text.hpp"

namespace weft {
namespace {

// No GPU has more NVLinks than H100 and B200. More in a row means they all go to switches.
constexpr std::uint32_t kMostNvlinks = 18;

/// Groups of indices joined by pairs.
class Groups {
 public:
  explicit Groups(std::size_t count) : leader_(count) {
    std::iota(leader_.begin(), leader_.end(), std::size_t{0});
  }
  std::size_t of(std::size_t i) {
    while (leader_[i] != i) i = leader_[i] = leader_[leader_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    leader_[std::max(of(a), of(b))] = std::min(of(a), of(b));
  }

 private:
  std::vector<std::size_t> leader_;
};

class SmiTree {
 public:
  explicit SmiTree(SmiMatrix matrix)
      : matrix_(std::move(matrix)), build_(tree_), places_(matrix_.devices.size()) {}

  HwTree make() {
    tree_.needs_pus = false;
    find_places();
    build_.open(HwTreeBuilder::of(HwType::Machine));
    std::map<std::size_t, std::vector<std::size_t>> members;
    for (std::size_t i = 0; i < count(); ++i) members[places_.of(i)].push_back(i);
    for (const auto& [leader, devices] : members) place(devices);
    const std::vector<std::size_t> switched = behind_nvswitch();
    std::uint32_t hub = 0;
    if (!switched.empty()) {
      HwObject object = HwTreeBuilder::of(HwType::Pci);
      object.subtype = "NVSwitch";
      hub = build_.leaf(std::move(object));
    }
    build_.close();
    tree_.index_pus(std::nullopt);
    nvlinks(switched, hub);
    warnings();
    return std::move(tree_);
  }

 private:
  [[nodiscard]] std::size_t count() const { return matrix_.devices.size(); }
  const SmiMatrix::Device& device(std::size_t i) const { return matrix_.devices[i]; }
  SmiRelation relation(std::size_t i, std::size_t j) const { return device(i).relations[j]; }

  /// Devices of one NUMA node: by affinity where stated, else by being no further than NODE.
  void find_places() {
    for (std::size_t i = 0; i < count(); ++i)
      for (std::size_t j = i + 1; j < count(); ++j) {
        const auto& a = device(i);
        const auto& b = device(j);
        const bool both_stated =
            (a.affinity != 0 && b.affinity != 0) || (a.numa >= 0 && b.numa >= 0);
        const bool same = a.affinity == b.affinity && a.numa == b.numa;
        if (both_stated ? same : relation(i, j) <= SmiRelation::Node) places_.join(i, j);
        if (both_stated && same && relation(i, j) == SmiRelation::Sys) far_within_place_ = true;
      }
    // GPUs joined by NVLink alone, none with an affinity: nothing says that they are apart.
    for (std::size_t i = 0; i < count(); ++i)
      for (std::size_t j = i + 1; j < count(); ++j)
        if (device(i).affinity == 0 && device(j).affinity == 0 && device(i).numa < 0 &&
            device(j).numa < 0 && relation(i, j) == SmiRelation::Unknown)
          places_.join(i, j);
  }

  void place(const std::vector<std::size_t>& devices) {
    std::vector<std::uint32_t> cpus;
    std::int64_t numa = -1;
    for (const std::size_t i : devices) {
      if (cpus.empty()) cpus = matrix_.affinities[device(i).affinity];
      if (numa < 0) numa = device(i).numa;
    }
    std::erase_if(cpus, [&](std::uint32_t cpu) { return !taken_.insert(cpu).second; });
    build_.open(HwTreeBuilder::of(HwType::Package, numa));
    if (!cpus.empty()) build_.leaf(HwTreeBuilder::of(HwType::Numa, numa));
    for (const std::uint32_t cpu : cpus) build_.leaf(HwTreeBuilder::of(HwType::Pu, cpu));
    for (const auto& bridge : split(devices, SmiRelation::Phb)) {
      HwObject object = HwTreeBuilder::of(HwType::Bridge);
      object.is_host_bridge = true;
      build_.open(std::move(object));
      for (const auto& outer : split(bridge, SmiRelation::Pxb)) {
        const auto inner = split(outer, SmiRelation::Pix);
        const bool has_outer = inner.size() > 1;
        if (has_outer) open_switch();
        for (const auto& together : inner) {
          if (together.size() > 1) open_switch();
          for (const std::size_t i : together) leaf(i);
          if (together.size() > 1) build_.close();
        }
        if (has_outer) build_.close();
      }
      build_.close();
    }
    build_.close();
  }

  /// The parts of `devices` within which all are at most `furthest` apart, by way of others.
  std::vector<std::vector<std::size_t>> split(const std::vector<std::size_t>& devices,
                                              SmiRelation furthest) const {
    Groups groups(devices.size());
    for (std::size_t i = 0; i < devices.size(); ++i)
      for (std::size_t j = i + 1; j < devices.size(); ++j)
        if (relation(devices[i], devices[j]) <= furthest) groups.join(i, j);
    std::map<std::size_t, std::vector<std::size_t>> parts;
    for (std::size_t i = 0; i < devices.size(); ++i) parts[groups.of(i)].push_back(devices[i]);
    std::vector<std::vector<std::size_t>> result;
    for (auto& [leader, part] : parts) result.push_back(std::move(part));
    return result;
  }

  void open_switch() {
    HwObject object = HwTreeBuilder::of(HwType::Bridge);
    object.faces_up = true;
    build_.open(std::move(object));
  }

  void leaf(std::size_t i) {
    HwObject object = HwTreeBuilder::of(HwType::Pci);
    object.pci_vendor = device(i).is_gpu ? 0x10de : 0;
    object.subtype = device(i).is_gpu ? "GPU" : "NIC";
    object.has_address = false;
    object.os_index = static_cast<std::int64_t>(i);  // the matrix's order is the devices'
    objects_[i] = build_.open(std::move(object));
    if (!device(i).is_gpu) {
      HwObject port = HwTreeBuilder::of(HwType::OsDevice);
      port.os_device = HwOsDevice::OpenFabrics;
      port.name = device(i).name;
      build_.leaf(std::move(port));
    }
    build_.close();
  }

  /// GPUs that have more NVLinks to all the others than a GPU can have: they share NVSwitches.
  std::vector<std::size_t> behind_nvswitch() const {
    std::vector<std::size_t> switched;
    for (std::size_t i = 0; i < count(); ++i) {
      const auto& links = device(i).nvlinks;
      if (std::accumulate(links.begin(), links.end(), 0u) > kMostNvlinks) switched.push_back(i);
    }
    return switched;
  }

  void nvlinks(const std::vector<std::size_t>& switched, std::uint32_t hub) {
    // The text does not say which GPU it is: second-generation NVLinks and later carry 25 GB/s.
    const double one = rates::nvlink(2);
    const auto add = [&](std::uint32_t a, std::uint32_t b, std::uint32_t width) {
      HwLink link;
      link.a = a;
      link.b = b;
      link.width = width;
      link.there = link.back = one * width;
      link.provenance = Provenance::Assumed;
      tree_.links.push_back(link);
    };
    const auto is_switched = [&](std::size_t i) {
      return std::binary_search(switched.begin(), switched.end(), i);
    };
    for (const std::size_t i : switched)
      add(objects_[i], hub, *std::max_element(device(i).nvlinks.begin(), device(i).nvlinks.end()));
    for (std::size_t i = 0; i < count(); ++i)
      for (std::size_t j = i + 1; j < count(); ++j)
        if (device(i).nvlinks[j] > 0 && !(is_switched(i) && is_switched(j)))
          add(objects_[i], objects_[j], device(i).nvlinks[j]);
  }

  void warnings() {
    const auto warn = [&](std::string code, std::string text) {
      tree_.warnings.push_back({std::move(code), std::move(text)});
    };
    if (tree_.pus.empty())
      warn("cpus_unknown",
           "the matrix states no CPU affinity: places are shown as packages without "
           "cores");
    else
      warn("packages_unknown",
           "the matrix names CPU affinities, not packages or cores: each affinity is shown as a "
           "socket, each hardware thread as a core");
    if (matrix_.hides_nvlinks)
      warn("nvlinks_hidden",
           "made by nvidia-smi topo -mp, which leaves NVLink out: SYS does not "
           "mean that there is none");
    if (far_within_place_)
      warn("sys_within_node",
           "devices of one NUMA node are said to be SYS apart; they are shown "
           "under host bridges of their own");
  }

  SmiMatrix matrix_;
  HwTree tree_;
  HwTreeBuilder build_;
  Groups places_;
  std::map<std::size_t, std::uint32_t> objects_;
  std::set<std::uint32_t> taken_;
  bool far_within_place_ = false;
};

}  // namespace

HwTree read_smi_text(std::string_view text, const std::string& name) {
  return SmiTree(parse_smi_matrix(text, name)).make();
}

}  // namespace weft
