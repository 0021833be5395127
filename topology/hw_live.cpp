#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <unordered_map>

#include "topology/discover.hpp"
#include "topology/hw_tree.hpp"

namespace weft {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using TopologyHandle = std::unique_ptr<hwloc_topology, TopologyDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using BitmapHandle = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

[[noreturn]] void fail(const std::string& call) {
  throw TopologyError("live machine: hwloc's " + call + " failed: " + std::strerror(errno));
}

TopologyHandle load(const DiscoverOptions& options) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) fail("hwloc_topology_init");
  TopologyHandle topology(raw);
  // Disallowed parts stay in the tree, so that a GPU beside a package that a cgroup hides is still
  // seen; `usable_cpus` takes their hardware threads out.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_icache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (options.io) {
    hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL);
  }
  if (hwloc_topology_load(raw) != 0) fail("hwloc_topology_load");
  return topology;
}

/// Bits of a bitmap up to `kMaxCpu`; an infinite one is cut there.
std::vector<std::uint32_t> bits_of(hwloc_const_bitmap_t bitmap) {
  std::vector<std::uint32_t> bits;
  for (int bit = hwloc_bitmap_first(bitmap); bit >= 0 && bit < (1 << 20);
       bit = hwloc_bitmap_next(bitmap, bit))
    bits.push_back(static_cast<std::uint32_t>(bit));
  return bits;
}

std::vector<std::uint32_t> usable_cpus(hwloc_topology_t topology) {
  const BitmapHandle set(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology)));
  const BitmapHandle bound(hwloc_bitmap_alloc());
  if (!set || !bound) fail("hwloc_bitmap_alloc");
  // The binding of the main thread is the process's: threads that libraries have started may be
  // bound elsewhere. Where binding cannot be asked, the allowed set is all there is to know.
  if (hwloc_get_proc_cpubind(topology, getpid(), bound.get(), HWLOC_CPUBIND_THREAD) == 0 &&
      !hwloc_bitmap_iszero(bound.get()))
    hwloc_bitmap_and(set.get(), set.get(), bound.get());
  return bits_of(set.get());
}

HwType type_of(hwloc_obj_t object) {
  switch (object->type) {
    case HWLOC_OBJ_MACHINE:
      return HwType::Machine;
    case HWLOC_OBJ_PACKAGE:
      return HwType::Package;
    case HWLOC_OBJ_CORE:
      return HwType::Core;
    case HWLOC_OBJ_PU:
      return HwType::Pu;
    case HWLOC_OBJ_NUMANODE:
      return HwType::Numa;
    case HWLOC_OBJ_MEMCACHE:
      return HwType::MemCache;
    case HWLOC_OBJ_BRIDGE:
      return HwType::Bridge;
    case HWLOC_OBJ_PCI_DEVICE:
      return HwType::Pci;
    case HWLOC_OBJ_OS_DEVICE:
      return HwType::OsDevice;
    default:
      return hwloc_obj_type_is_dcache(object->type) ? HwType::Cache : HwType::Other;
  }
}

class Converter {
 public:
  Converter(hwloc_topology_t topology, HwTree& tree) : topology_(topology), tree_(tree) {}

  void run() {
    convert(hwloc_get_root_obj(topology_), 0);
    tree_.index_pus(usable_cpus(topology_));
    drop_disallowed_memories();
    matrices();
    cpu_kinds();
    bandwidths();
  }

 private:
  void convert(hwloc_obj_t from, std::uint32_t parent, int bridges = 0) {
    const auto self = static_cast<std::uint32_t>(tree_.objects.size());
    index_[from] = self;
    tree_.objects.push_back(fields(from));
    tree_.objects[self].parent = parent;
    // Below a host bridge ports face down and up in turn: root port, a switch's upper port, its
    // lower port …
    tree_.objects[self].faces_up =
        from->type == HWLOC_OBJ_BRIDGE && bridges > 0 && bridges % 2 == 0;
    if (from->type == HWLOC_OBJ_BRIDGE) ++bridges;
    for (hwloc_obj_t child = from->memory_first_child; child; child = child->next_sibling)
      convert(child, self);
    for (hwloc_obj_t child = from->first_child; child; child = child->next_sibling)
      convert(child, self);
    for (hwloc_obj_t child = from->io_first_child; child; child = child->next_sibling)
      convert(child, self, bridges);
    tree_.objects[self].end = static_cast<std::uint32_t>(tree_.objects.size());
  }

  static HwObject fields(hwloc_obj_t from) {
    HwObject to;
    to.type = type_of(from);
    to.os_index =
        from->os_index == HWLOC_UNKNOWN_INDEX ? -1 : static_cast<std::int64_t>(from->os_index);
    to.gp_index = from->gp_index;
    if (from->name) to.name = from->name;
    if (from->subtype) to.subtype = from->subtype;
    for (unsigned i = 0; i < from->infos_count; ++i)
      to.infos.emplace_back(from->infos[i].name, from->infos[i].value);
    switch (to.type) {
      case HwType::Numa:
        to.bytes = from->attr->numanode.local_memory;
        to.has_no_cpus = hwloc_bitmap_iszero(from->cpuset);
        break;
      case HwType::Cache:
        to.bytes = from->attr->cache.size;
        to.cache_depth = from->attr->cache.depth;
        break;
      case HwType::Bridge:
        to.is_host_bridge = from->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST;
        if (!to.is_host_bridge) pci(from->attr->bridge.upstream.pci, to);
        break;
      case HwType::Pci:
        pci(from->attr->pcidev, to);
        break;
      case HwType::OsDevice:
        to.os_device = static_cast<HwOsDevice>(from->attr->osdev.type);
        break;
      default:
        break;
    }
    return to;
  }

  static void pci(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& from, HwObject& to) {
    to.pci = PciAddress{from.domain, from.bus, from.dev, from.func};
    to.pci_class = from.class_id;
    to.pci_vendor = from.vendor_id;
    to.pci_device = from.device_id;
    to.link_speed = 1e9 * static_cast<double>(from.linkspeed);
  }

  /// A NUMA node that the process may not allocate on is none of its memories.
  void drop_disallowed_memories() {
    const hwloc_const_nodeset_t allowed = hwloc_topology_get_allowed_nodeset(topology_);
    for (HwObject& object : tree_.objects)
      if (object.type == HwType::Numa &&
          !hwloc_bitmap_isset(allowed, static_cast<unsigned>(object.os_index)))
        object.type = HwType::Other;
  }

  void matrices() {
    unsigned count = 64;
    hwloc_distances_s* found[64];
    if (hwloc_distances_get(topology_, &count, found, 0, 0) != 0) return;
    for (unsigned d = 0; d < std::min(count, 64u); ++d) {
      HwMatrix matrix;
      if (const char* name = hwloc_distances_get_name(topology_, found[d])) matrix.name = name;
      for (unsigned i = 0; i < found[d]->nbobjs; ++i)
        matrix.objects.push_back(index_.at(found[d]->objs[i]));
      matrix.values.assign(found[d]->values,
                           found[d]->values + found[d]->nbobjs * found[d]->nbobjs);
      tree_.matrices.push_back(std::move(matrix));
      hwloc_distances_release(topology_, found[d]);
    }
  }

  void cpu_kinds() {
    const int count = hwloc_cpukinds_get_nr(topology_, 0);
    for (int i = 0; i < count; ++i) {
      const BitmapHandle cpus(hwloc_bitmap_alloc());
      int efficiency = -1;
      unsigned infos_count = 0;
      hwloc_info_s* infos = nullptr;
      if (hwloc_cpukinds_get_info(topology_, static_cast<unsigned>(i), cpus.get(), &efficiency,
                                  &infos_count, &infos, 0) != 0)
        continue;
      HwCpuKind kind;
      kind.cpus = bits_of(cpus.get());
      for (unsigned n = 0; n < infos_count; ++n)
        kind.infos.emplace_back(infos[n].name, infos[n].value);
      tree_.cpu_kinds.push_back(std::move(kind));
    }
  }

  void bandwidths() {
    for (hwloc_obj_t node = nullptr;
         (node = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_NUMANODE, node));) {
      HwBandwidth bandwidth;
      bandwidth.numa = index_.at(node);
      const auto ask = [&](hwloc_memattr_id_t attribute) {
        hwloc_location location;
        location.type = HWLOC_LOCATION_TYPE_CPUSET;
        location.location.cpuset = node->cpuset;
        hwloc_uint64_t value = 0;
        if (hwloc_memattr_get_value(topology_, attribute, node, &location, 0, &value) != 0)
          return 0.0;
        return 1e6 * static_cast<double>(value);  // hwloc's unit is MiB/s, filled from MB/s
      };
      bandwidth.read = ask(HWLOC_MEMATTR_ID_READ_BANDWIDTH);
      bandwidth.write = ask(HWLOC_MEMATTR_ID_WRITE_BANDWIDTH);
      if (bandwidth.read == 0) bandwidth.read = ask(HWLOC_MEMATTR_ID_BANDWIDTH);
      if (bandwidth.write == 0) bandwidth.write = bandwidth.read;
      if (bandwidth.read > 0) tree_.bandwidths.push_back(bandwidth);
    }
  }

  hwloc_topology_t topology_;
  HwTree& tree_;
  std::unordered_map<hwloc_obj_t, std::uint32_t> index_;
};

/// Why no engine of this process can drive a GPU of this machine; empty if nothing speaks against
/// it.
std::string unused_reason(const Gpu& gpu) {
  if (gpu.vendor != "NVIDIA") {
    const std::string who = gpu.vendor.empty() ? "this vendor's" : gpu.vendor;
    return "weft has no engine for " + who + " GPUs";
  }
  if (!std::ifstream("/proc/driver/nvidia/version")) return "no NVIDIA driver is loaded";
#ifdef WEFT_HAVE_CUDA
  return {};
#else
  return "this build of weft has no CUDA engine";
#endif
}

}  // namespace

Machine discover(const DiscoverOptions& options) {
  const TopologyHandle topology = load(options);
  HwTree tree;
  Converter(topology.get(), tree).run();
  Machine machine = build_machine(tree, "live");
  for (Gpu& gpu : machine.gpus) gpu.unused_reason = unused_reason(gpu);
  return machine;
}

}  // namespace weft
