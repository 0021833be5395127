#include <algorithm>
#include <numeric>

#include "topology/gpu_fabric.hpp"
#include "topology/gpu_facts.hpp"
#include "topology/machine_check.hpp"
#include "topology/make_link.hpp"
#include "topology/names.hpp"
#include "topology/rates.hpp"
#include "topology/reach.hpp"

namespace weft {
namespace {

class GpuMerge {
 public:
  GpuMerge(Machine machine, const GpuFacts& facts)
      : m_(std::move(machine)), facts_(facts), gpu_of_(facts.gpus.size()) {}

  Machine run() {
    say_what_is_missing();
    for (std::size_t f = 0; f < facts_.gpus.size(); ++f)
      if (is_unit(f)) match(f);
    share_functions();
    fact_of_.assign(m_.gpus.size(), nullptr);
    for (std::size_t f = 0; f < facts_.gpus.size(); ++f)
      if (gpu_of_[f].is_valid()) fact_of_[gpu_of_[f].value] = &facts_.gpus[f];
    for (std::uint32_t g = 0; g < m_.gpus.size(); ++g) {
      if (fact_of_[g]) fill(GpuId{g}, *fact_of_[g]);
      Gpu& gpu = m_.gpus[g];
      if (gpu.vendor == "NVIDIA") gpu.unused_reason = why_unused(g);
    }
    if (narrow_bridges()) drop_settled_warning();
    sort_by_address();
    add_nvlinks(m_, facts_, gpu_of_);
    warn_unreachable(m_);
    check_machine(m_);
    return std::move(m_);
  }

 private:
  void warn(std::string code, std::string text) {
    m_.warnings.push_back({std::move(code), std::move(text)});
  }

  void say_what_is_missing() {
    m_.warnings.insert(m_.warnings.end(), facts_.warnings.begin(), facts_.warnings.end());
    if (!facts_.cuda_problem.empty())
      warn("cuda_unavailable", "no GPU is driven through CUDA: " + facts_.cuda_problem);
    else if (!facts_.nvml_problem.empty())
      warn("nvml_missing", facts_.nvml_problem +
                               ": NVLinks are guessed from peer access, and GPUs that CUDA hides "
                               "cannot be told apart");
    if (const auto bad = bad_visible_device(facts_))
      warn("visible_devices_bad", "CUDA_VISIBLE_DEVICES=" + visible_devices() + ": there is no \"" +
                                      bad->substr(0, 60) +
                                      "\"; CUDA leaves it and all after it out");
  }

  [[nodiscard]] std::string visible_devices() const {
    return "\"" + printable(facts_.visible_devices->substr(0, 60)) + "\"";
  }

  /// Whether a fact stands for a GPU of the machine: instances stand for the GPU that is split.
  [[nodiscard]] bool is_unit(std::size_t f) const {
    const GpuFact& fact = facts_.gpus[f];
    if (fact.is_mig_instance() || !fact.is_mig_enabled) return true;
    return std::none_of(facts_.gpus.begin(), facts_.gpus.end(), [&](const GpuFact& other) {
      return other.is_mig_instance() && other.pci && fact.pci &&
             is_same_function(*other.pci, *fact.pci);
    });
  }

  [[nodiscard]] bool is_matched(std::uint32_t g) const {
    return std::find(gpu_of_.begin(), gpu_of_.end(), GpuId{g}) != gpu_of_.end();
  }

  void match(std::size_t f) {
    const GpuFact& fact = facts_.gpus[f];
    const auto at_address = [&](const Gpu& gpu) {
      return gpu.pci && fact.pci && is_same_function(*gpu.pci, *fact.pci);
    };
    const auto by_uuid = [&](const Gpu& gpu) {
      return !fact.uuid.empty() && gpu.uuid == fact.uuid;
    };
    for (std::uint32_t g = 0; g < m_.gpus.size(); ++g)
      if (!is_matched(g) && by_uuid(m_.gpus[g])) return void(gpu_of_[f] = GpuId{g});
    for (std::uint32_t g = 0; g < m_.gpus.size(); ++g)
      if (!is_matched(g) && fact.pci && m_.gpus[g].pci == fact.pci)
        return void(gpu_of_[f] = GpuId{g});
    for (std::uint32_t g = 0; g < m_.gpus.size(); ++g)
      if (!is_matched(g) && at_address(m_.gpus[g])) return void(gpu_of_[f] = GpuId{g});
    const auto sibling = std::find_if(m_.gpus.begin(), m_.gpus.end(), at_address);
    if (sibling == m_.gpus.end())
      gpu_of_[f] = add_unseen(fact);
    else
      gpu_of_[f] = add_instance(fact, static_cast<std::uint32_t>(sibling - m_.gpus.begin()));
  }

  GpuId add_gpu(const GpuFact& fact, std::vector<MemoryId> near) {
    const GpuId id{static_cast<std::uint32_t>(m_.gpus.size())};
    Gpu gpu;
    gpu.vendor = "NVIDIA";
    gpu.pci = fact.pci;
    gpu.near = std::move(near);
    if (fact.is_integrated && !m_.memories.empty()) {
      gpu.memory = gpu.near.empty() ? MemoryId{0} : gpu.near.front();
    } else {
      gpu.memory = MemoryId{static_cast<std::uint32_t>(m_.memories.size())};
      Memory memory;
      memory.kind = MemoryKind::Gpu;
      memory.gpu = id;
      m_.memories.push_back(std::move(memory));
    }
    m_.gpus.push_back(std::move(gpu));
    return id;
  }

  GpuId add_instance(const GpuFact& fact, std::uint32_t sibling) {
    const GpuId id = add_gpu(fact, m_.gpus[sibling].near);
    m_.gpus[id.value].pci = m_.gpus[sibling].pci;
    if (const Link* pcie = pcie_of(GpuId{sibling})) {
      Link own = *pcie;
      own.b = id;
      m_.links.push_back(own);
    }
    return id;
  }

  /// A GPU that hwloc does not see hangs from a host bridge of its own.
  GpuId add_unseen(const GpuFact& fact) {
    const MemoryId memory = memory_of_node(fact.numa_node);
    std::vector<MemoryId> near;
    if (memory.is_valid()) near = {memory};
    if (near.empty() && m_.sockets.size() == 1) near = m_.sockets[0].memories;
    const GpuId id = add_gpu(fact, near);
    const std::string address = fact.pci ? to_string(*fact.pci) : std::string("no PCI address");
    warn("gpu_not_on_pci",
         fact.name + " (" + address +
             ") is listed by the NVIDIA driver and not among the PCI devices that hwloc "
             "sees; " +
             (near.empty() ? std::string("which socket it is near to is not known")
                           : "it is placed near " + to_string(Node(near.front()))));
    const HubId bridge{static_cast<std::uint32_t>(m_.hubs.size())};
    Hub hub;
    hub.name = "host bridge";
    hub.near = near;
    m_.hubs.push_back(std::move(hub));
    for (std::uint32_t s = 0; s < m_.sockets.size(); ++s)
      if (!memory.is_valid() || is_near(SocketId{s}, memory))
        add_link(LinkKind::Bus, SocketId{s}, bridge, rates::kMemoryBus, rates::kBusLatency);
    add_link(LinkKind::Pcie, bridge, id, rates::kPcieDefault, rates::kPcieLatency);
    return id;
  }

  void add_link(LinkKind kind, Node a, Node b, double rate, std::chrono::nanoseconds latency) {
    m_.links.push_back(make_link(kind, a, b, rate, latency));
  }

  [[nodiscard]] bool is_near(SocketId socket, MemoryId memory) const {
    const std::vector<SocketId>& near = m_.memories[memory.value].near;
    return near.empty() || std::find(near.begin(), near.end(), socket) != near.end();
  }

  [[nodiscard]] MemoryId memory_of_node(std::int64_t node) const {
    for (std::uint32_t i = 0; node >= 0 && i < m_.memories.size(); ++i)
      if (m_.memories[i].os_index == node && m_.memories[i].kind != MemoryKind::Gpu)
        return MemoryId{i};
    return {};
  }

  [[nodiscard]] Link* pcie_of(Node below) {
    for (Link& link : m_.links)
      if (link.kind == LinkKind::Pcie && link.b == below) return &link;
    return nullptr;
  }

  /// Instances of one GPU name each other.
  void share_functions() {
    for (std::size_t f = 0; f < facts_.gpus.size(); ++f)
      for (std::size_t o = 0; o < facts_.gpus.size(); ++o) {
        if (f == o || !gpu_of_[f].is_valid() || !gpu_of_[o].is_valid()) continue;
        const GpuFact &a = facts_.gpus[f], &b = facts_.gpus[o];
        if (!a.is_mig_instance() || !b.is_mig_instance() || !a.pci || !b.pci) continue;
        std::vector<GpuId>& others = m_.gpus[gpu_of_[f].value].shares_with;
        if (is_same_function(*a.pci, *b.pci) &&
            std::find(others.begin(), others.end(), gpu_of_[o]) == others.end())
          others.push_back(gpu_of_[o]);
      }
  }

  void fill(GpuId id, const GpuFact& fact) {
    Gpu& gpu = m_.gpus[id.value];
    gpu.vendor = "NVIDIA";
    if (!fact.name.empty()) gpu.model = printable(fact.name);
    if (!fact.uuid.empty()) gpu.uuid = printable(fact.uuid);
    if (!gpu.pci) gpu.pci = fact.pci;
    if (gpu.memory.is_valid()) {
      Memory& memory = m_.memories[gpu.memory.value];
      if (memory.kind == MemoryKind::Gpu && fact.memory_bytes > 0) memory.bytes = fact.memory_bytes;
    }
    const MemoryId told = memory_of_node(fact.numa_node);
    if (gpu.near.empty() && told.is_valid()) gpu.near = {told};
    if (told.is_valid() && std::find(gpu.near.begin(), gpu.near.end(), told) == gpu.near.end())
      warn("sources_disagree", to_string(Node(id)) + " is near " +
                                   to_string(Node(gpu.near.front())) +
                                   " as the PCI bus has it and " + to_string(Node(told)) +
                                   " as the NVIDIA driver has it; the first is kept");
    fill_pcie(id, fact);
  }

  /// A link that saves power while idle shows a lower generation than it works with.
  void fill_pcie(GpuId id, const GpuFact& fact) {
    const std::uint32_t width = fact.pcie_width ? fact.pcie_width : fact.max_pcie_width;
    const std::uint32_t generation = std::max(fact.pcie_generation, fact.max_pcie_generation);
    const double rate = rates::pcie(generation, width);
    Link* link = pcie_of(id);
    if (!link || rate <= 0 || link->provenance == Provenance::Measured) return;
    const bool is_idle = link->width == width && link->generation < generation;
    if (link->provenance != Provenance::Assumed && !is_idle) return;
    link->generation = generation;
    link->width = width;
    link->bytes_per_second[0] = link->bytes_per_second[1] = rate;
    link->provenance = Provenance::Reported;
  }

  /// Why CUDA cannot drive a GPU of the machine; empty if it can.
  [[nodiscard]] std::string why_unused(std::uint32_t g) const {
    const GpuFact* fact = fact_of_[g];
    if (!fact) {
      if (!facts_.cuda_problem.empty()) return facts_.cuda_problem;
      if (facts_.visible_devices && !facts_.nvml_problem.empty())
        return "CUDA does not show it; CUDA_VISIBLE_DEVICES is " + visible_devices();
      return "the NVIDIA driver does not show it to this process; a container shows only the GPUs "
             "it was given, and another driver (vfio-pci, nouveau) may hold it";
    }
    if (fact->is_prohibited)
      return "its compute mode is \"prohibited\"; nvidia-smi -c 0 allows it again";
    if (fact->cuda_ordinal >= 0) return too_old(*fact);
    if (fact->is_mig_instance() && !facts_.cuda_problem.empty() && !facts_.visible_devices)
      return facts_.cuda_problem;
    if (fact->is_mig_instance())
      return "CUDA shows a process one MIG instance; this one is chosen by CUDA_VISIBLE_DEVICES=" +
             (fact->uuid.empty() ? std::string("MIG-…") : fact->uuid);
    if (fact->is_mig_enabled)
      return "MIG mode is on and there is no instance of it to use; nvidia-smi mig -cgi makes one, "
             "nvidia-smi -mig 0 gives the whole GPU back";
    if (facts_.visible_devices) return "hidden by CUDA_VISIBLE_DEVICES=" + visible_devices();
    if (!facts_.cuda_problem.empty()) return facts_.cuda_problem;
    return "NVML lists it and CUDA does not; look for Xid errors in the kernel's log";
  }

  [[nodiscard]] std::string too_old(const GpuFact& fact) const {
    if (fact.compute_capability == 0 || fact.compute_capability >= facts_.lowest_capability)
      return {};
    const std::string own = std::to_string(fact.compute_capability);
    return "it is an sm_" + own + " and this weft is built for sm_" +
           std::to_string(facts_.lowest_capability) +
           " and newer; configure with -DCMAKE_CUDA_ARCHITECTURES=" + own;
  }

  /// A host bridge whose place the PCI bus does not tell is joined to every socket. If all GPUs
  /// below it are near the same memory, it is where they are.
  /// True if that was so for any.
  bool narrow_bridges() {
    bool any = false;
    std::vector<std::vector<std::uint32_t>> below(m_.hubs.size());
    for (std::uint32_t g = 0; g < m_.gpus.size(); ++g) {
      const Link* link = pcie_of(GpuId{g});
      for (std::size_t hops = 0; link && link->a.kind == NodeKind::Hub && hops < m_.hubs.size();
           ++hops) {
        below[link->a.index].push_back(g);
        link = pcie_of(link->a);
      }
    }
    for (std::uint32_t h = 0; h < m_.hubs.size(); ++h) {
      if (below[h].empty() || !m_.hubs[h].near.empty()) continue;
      const std::vector<MemoryId> near = m_.gpus[below[h].front()].near;
      const bool is_one =
          near.size() == 1 && std::all_of(below[h].begin(), below[h].end(),
                                          [&](auto g) { return m_.gpus[g].near == near; });
      if (!is_one) continue;
      any = true;
      m_.hubs[h].near = near;
      const auto leads_up = [&](const Link& link, bool to_near) {
        return link.kind == LinkKind::Bus && link.b == Node(HubId{h}) &&
               link.a.kind == NodeKind::Socket &&
               is_near(SocketId{link.a.index}, near.front()) == to_near;
      };
      if (std::any_of(m_.links.begin(), m_.links.end(),
                      [&](const Link& link) { return leads_up(link, true); }))
        std::erase_if(m_.links, [&](const Link& link) { return leads_up(link, false); });
    }
    return any;
  }

  /// The warning that the place of PCI devices is not known goes where no bridge is left that it
  /// speaks of.
  void drop_settled_warning() {
    std::vector<std::size_t> ways_up(m_.hubs.size());
    for (const Link& link : m_.links)
      if (link.kind == LinkKind::Bus && link.a.kind == NodeKind::Socket &&
          link.b.kind == NodeKind::Hub)
        ++ways_up[link.b.index];
    if (std::any_of(ways_up.begin(), ways_up.end(), [](std::size_t ways) { return ways > 1; }))
      return;
    std::erase_if(m_.warnings,
                  [](const Warning& warning) { return warning.code == "io_locality_unknown"; });
  }

  /// Added GPUs move to their place in PCI order, and every id that names a GPU with them.
  void sort_by_address() {
    std::vector<std::uint32_t> order(m_.gpus.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t x, std::uint32_t y) {
      const auto &a = m_.gpus[x].pci, &b = m_.gpus[y].pci;
      return a && b ? *a < *b : a.has_value() && !b.has_value();
    });
    std::vector<std::uint32_t> moved(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) moved[order[i]] = i;
    const auto move = [&](GpuId& id) {
      if (id.is_valid()) id.value = moved[id.value];
    };
    std::vector<Gpu> gpus;
    for (const std::uint32_t g : order) gpus.push_back(std::move(m_.gpus[g]));
    m_.gpus = std::move(gpus);
    for (Gpu& gpu : m_.gpus) {
      for (GpuId& other : gpu.shares_with) move(other);
      std::sort(gpu.shares_with.begin(), gpu.shares_with.end());
    }
    for (GpuId& id : gpu_of_) move(id);
    for (Memory& memory : m_.memories) move(memory.gpu);
    for (Link& link : m_.links)
      for (Node* end : {&link.a, &link.b})
        if (end->kind == NodeKind::Gpu) end->index = moved[end->index];
  }

  Machine m_;
  const GpuFacts& facts_;
  std::vector<GpuId> gpu_of_;            ///< by fact
  std::vector<const GpuFact*> fact_of_;  ///< by GPU of the machine, before they are sorted
};

}  // namespace

Machine with_gpu_facts(Machine machine, const GpuFacts& facts) {
  return GpuMerge(std::move(machine), facts).run();
}

}  // namespace weft
