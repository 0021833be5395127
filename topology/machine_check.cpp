#include "topology/machine_check.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace weft {
namespace {

class Checker {
 public:
  explicit Checker(const Machine& machine) : m_(machine) {}

  void run() {
    sockets();
    each("memories", m_.memories, [&](const Memory& memory) {
      ids(memory.near, m_.sockets.size(), "near");
      if (memory.gpu.is_valid()) id(memory.gpu, m_.gpus.size(), "gpu");
      sorted(memory.cpus);
    });
    each("gpus", m_.gpus, [&](const Gpu& gpu) {
      if (gpu.memory.is_valid()) id(gpu.memory, m_.memories.size(), "memory");
      ids(gpu.near, m_.memories.size(), "near");
      ids(gpu.shares_with, m_.gpus.size(), "shares_with");
    });
    each("hubs", m_.hubs, [&](const Hub& hub) { ids(hub.near, m_.memories.size(), "near"); });
    each("nics", m_.nics, [&](const Nic& nic) { ids(nic.near, m_.memories.size(), "near"); });
    each("disks", m_.disks, [&](const Disk& disk) {
      if (disk.memory.is_valid()) id(disk.memory, m_.memories.size(), "memory");
    });
    each("links", m_.links, [&](const Link& link) {
      node(link.a, "a");
      node(link.b, "b");
      if (link.a == link.b) fail("leads from " + to_string(link.a) + " to itself");
      for (const double rate : link.bytes_per_second)
        if (!std::isfinite(rate) || rate < 0)
          fail("bytes_per_second: expected a rate of 0 or more");
      if (link.latency.count() < 0) fail("latency_ns: expected 0 or more");
    });
  }

 private:
  template <class List, class Check>
  void each(const char* list, const List& items, Check check) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      place_ = std::string(list) + "[" + std::to_string(i) + "]";
      check(items[i]);
    }
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw TopologyError((m_.source.empty() ? "machine" : m_.source) + ": " + place_ + ": " + what);
  }

  template <class SomeId>
  void id(SomeId value, std::size_t count, const char* field) const {
    if (value.value >= count)
      fail(std::string(field) + ": " + to_string(Node(value)) + " is not there; the machine has " +
           std::to_string(count) + " of that kind");
  }
  template <class List>
  void ids(const List& values, std::size_t count, const char* field) const {
    for (const auto value : values) id(value, count, field);
  }

  void node(Node n, const char* field) const {
    const std::size_t counts[] = {m_.sockets.size(), m_.memories.size(), m_.gpus.size(),
                                  m_.hubs.size(),    m_.nics.size(),     m_.disks.size()};
    if (n.index >= counts[static_cast<std::size_t>(n.kind)])
      fail(std::string(field) + ": " + to_string(n) + " is not there; the machine has " +
           std::to_string(counts[static_cast<std::size_t>(n.kind)]) + " of that kind");
  }

  void sorted(const std::vector<std::uint32_t>& cpus) const {
    if (std::adjacent_find(cpus.begin(), cpus.end(), std::greater_equal<>()) != cpus.end())
      fail("cpus: expected a rising list");
  }

  void sockets() {
    std::set<std::uint32_t> taken;
    each("sockets", m_.sockets, [&](const Socket& socket) {
      if (socket.cpus.empty()) fail("cpus: expected at least one hardware thread");
      sorted(socket.cpus);
      ids(socket.memories, m_.memories.size(), "memories");
      std::vector<std::uint32_t> in_cores;
      for (const Core& core : socket.cores) {
        if (core.pus.empty()) fail("a core without a hardware thread");
        sorted(core.pus);
        in_cores.insert(in_cores.end(), core.pus.begin(), core.pus.end());
      }
      std::sort(in_cores.begin(), in_cores.end());
      if (in_cores != socket.cpus)
        fail("core_cpus: expected every hardware thread of cpus in one core");
      for (const std::uint32_t cpu : socket.cpus)
        if (!taken.insert(cpu).second)
          fail("cpus: hardware thread " + std::to_string(cpu) + " is in two sockets");
    });
  }

  const Machine& m_;
  std::string place_;
};

}  // namespace

void check_machine(const Machine& machine) {
  Checker(machine).run();
}

}  // namespace weft
