#include "apps/bench/cores.hpp"

#include <pthread.h>
#include <sched.h>

#include <stdexcept>
#include <string>

#include "topology/discover.hpp"

namespace weft::bench {
namespace {

const Machine& this_machine() {
  static const Machine machine = discover({.io = false});
  return machine;
}

}  // namespace

const std::vector<int>& core_cpus() {
  static const std::vector<int> all = [] {
    std::vector<int> cpus;
    for (const Socket& socket : this_machine().sockets)
      for (const Core& core : socket.cores) cpus.push_back(static_cast<int>(core.pus.front()));
    return cpus;
  }();
  return all;
}

Machine machine_of(std::uint32_t threads) {
  Machine machine;
  machine.source = "live";
  Socket socket;
  for (const Socket& each : this_machine().sockets)
    for (const Core& core : each.cores) {
      if (socket.cores.size() == threads) break;
      socket.cores.push_back(core);
      socket.cpus.push_back(core.pus.front());
    }
  if (threads == 0 || socket.cores.size() < threads)
    throw std::invalid_argument("threads " + std::to_string(threads) + ": this machine has " +
                                std::to_string(core_cpus().size()) + " cores");
  Memory memory;
  memory.near = {SocketId{0}};
  memory.cpus = socket.cpus;
  for (const Memory& each : this_machine().memories)
    if (each.kind == MemoryKind::Dram) memory.bytes += each.bytes;
  socket.memories = {MemoryId{0}};
  Link bus;
  bus.kind = LinkKind::Bus;
  bus.a = SocketId{0};
  bus.b = MemoryId{0};
  machine.sockets = {socket};
  machine.memories = {memory};
  machine.links = {bus};
  return machine;
}

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void unpin() {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : core_cpus()) CPU_SET(static_cast<unsigned>(cpu), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void place_submitter(std::uint32_t threads) {
  if (threads < core_cpus().size()) pin_to(core_cpus()[threads]);
}

}  // namespace weft::bench
