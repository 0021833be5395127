#include "topology/describe.hpp"

#include <algorithm>

#include "topology/names.hpp"
#include "topology/quantity.hpp"

namespace weft {
namespace {

std::string counted(std::size_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

template <class List>
std::string joined(const List& ids) {
  std::string text;
  for (const auto id : ids) text += (text.empty() ? "" : ", ") + to_string(Node(id));
  return text;
}

std::string describe_socket(const Socket& socket) {
  std::string text = socket.model.empty() ? "" : socket.model + ", ";
  text += counted(socket.cores.size(), "core");
  if (socket.cpus.size() != socket.cores.size())
    text += ", " + counted(socket.cpus.size(), "thread");
  text += " (cpus " + format_cpu_list(socket.cpus) + ")";
  for (const Cache& cache : socket.caches) {
    text += ", L" + std::to_string(cache.level) + " ";
    if (cache.count > 1) text += std::to_string(cache.count) + "x";
    text += format_bytes(cache.bytes);
  }
  return text;
}

std::string describe_memory(const Memory& memory) {
  std::string text = to_string(memory.kind);
  text += memory.bytes ? " " + format_bytes(memory.bytes) : ", size unknown";
  if (memory.gpu.is_valid()) text += ", of " + to_string(Node(memory.gpu));
  if (memory.near.size() > 1) text += ", near " + joined(memory.near);
  return text;
}

std::string describe_gpu(const Machine& machine, const Gpu& gpu) {
  std::string text = gpu.model.find(gpu.vendor) == std::string::npos ? gpu.vendor : "";
  if (!gpu.model.empty()) text += (text.empty() ? "" : " ") + gpu.model;
  if (text.empty()) text = "unknown model";
  if (gpu.memory.is_valid()) {
    const Memory& memory = machine.memories[gpu.memory.value];
    text += memory.kind == MemoryKind::Gpu ? ", " : ", shares ";
    if (memory.bytes) text += format_bytes(memory.bytes) + " ";
    text += "(" + to_string(Node(gpu.memory)) + ")";
  }
  if (gpu.pci) text += ", " + to_string(*gpu.pci);
  if (!gpu.shares_with.empty()) text += ", one chip with " + joined(gpu.shares_with);
  if (!gpu.unused_reason.empty()) text += ", not used: " + gpu.unused_reason;
  return text;
}

std::string describe_hub(const Hub& hub) {
  static constexpr const char* kWords[] = {"host bridge", "PCIe switch", "NVSwitch",
                                           "package without usable cores", "network"};
  const std::string kind = kWords[static_cast<std::size_t>(hub.kind)];
  return hub.name.empty() || hub.name.find(kind) == 0 ? (hub.name.empty() ? kind : hub.name)
                                                      : kind + ", " + hub.name;
}

}  // namespace

std::string describe(const Machine& machine, Node node) {
  std::string text = to_string(node) + "  ";
  switch (node.kind) {
    case NodeKind::Socket:
      return text + describe_socket(machine.sockets.at(node.index));
    case NodeKind::Memory:
      return text + describe_memory(machine.memories.at(node.index));
    case NodeKind::Gpu:
      return text + describe_gpu(machine, machine.gpus.at(node.index));
    case NodeKind::Hub:
      return text + describe_hub(machine.hubs.at(node.index));
    case NodeKind::Nic: {
      const Nic& nic = machine.nics.at(node.index);
      return text + "nic " + nic.name + (nic.pci ? ", " + to_string(*nic.pci) : "");
    }
    case NodeKind::Disk: {
      const Disk& disk = machine.disks.at(node.index);
      return text + "disk " + disk.name + (disk.bytes ? ", " + format_bytes(disk.bytes) : "") +
             (disk.pci ? ", " + to_string(*disk.pci) : "");
    }
  }
  return text;
}

std::string describe(const Link& link) {
  std::string text = to_string(link.kind);
  if (link.generation)
    text += " " + std::to_string(link.generation) + (link.kind == LinkKind::Pcie ? ".0" : "");
  if (link.width) text += " x" + std::to_string(link.width);
  text += " " + format_rate(link.bytes_per_second[0]);
  if (link.bytes_per_second[0] != link.bytes_per_second[1])
    text += ", back " + format_rate(link.bytes_per_second[1]);
  return text + " (" + to_string(link.provenance) + ")";
}

std::string summary(const Machine& machine) {
  std::size_t cores = 0, threads = 0, bytes = 0;
  for (const Socket& socket : machine.sockets) {
    cores += socket.cores.size();
    threads += socket.cpus.size();
  }
  for (const Memory& memory : machine.memories)
    if (memory.kind != MemoryKind::Gpu && memory.kind != MemoryKind::Disk) bytes += memory.bytes;
  std::string text = counted(machine.sockets.size(), "socket") + ", " + counted(cores, "core") +
                     ", " + counted(threads, "hardware thread");
  if (bytes) text += ", " + format_bytes(bytes) + " memory";
  if (!machine.gpus.empty()) text += ", " + counted(machine.gpus.size(), "GPU");
  if (!machine.nics.empty()) text += ", " + counted(machine.nics.size(), "NIC");
  return text;
}

}  // namespace weft
