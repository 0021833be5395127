#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "topology/hw_tree.hpp"
#include "topology/machine.hpp"
#include "topology/machine_check.hpp"
#include "topology/machine_file.hpp"
#include "topology/render.hpp"
#include "topology/route_finder.hpp"

namespace weft::fuzz {

/// Links and hardware threads.
inline std::size_t size_of(const Machine& machine) {
  std::size_t size = machine.links.size();
  for (const Socket& socket : machine.sockets) size += socket.cpus.size();
  return size;
}

/// What has to hold for any machine a reader lets through: sound, has routes, survives its own file
/// and has a picture. Ends the process otherwise. File and picture took most of the time of all
/// runs: `sample` says whether to try them with a machine that is not quite small; large ones are
/// right and slow.
inline void check(const Machine& machine, bool sample) {
  const std::size_t size = size_of(machine);
  const bool tried = size < 40 || (sample && size < 5000);
  try {
    check_machine(machine);
    if (tried && read_machine_file(write_machine_file(machine), "copy") != machine) std::abort();
  } catch (const TopologyError& error) {
    std::cerr << "a machine that was read is not sound: " << error.what() << '\n';
    std::abort();
  }
  const RouteFinder finder(machine);
  if (!machine.memories.empty() && !machine.gpus.empty())
    static_cast<void>(finder.find(MemoryId{0}, GpuId{0}));
  if (tried && machine.links.size() < 50) static_cast<void>(render_svg(machine));
}

/// Runs a reader on the input: a machine is checked, a `TopologyError` is the other right answer.
template <class Read>
int run(const std::uint8_t* data, std::size_t size, Read read) {
  try {
    check(read(std::string_view(reinterpret_cast<const char*>(data), size)), size % 8 == 0);
  } catch (const TopologyError&) {
  }
  return 0;
}

}  // namespace weft::fuzz
