#include <nlohmann/json.hpp>

#include "topology/machine_file.hpp"
#include "topology/names.hpp"
#include "topology/quantity.hpp"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

template <class List>
Json ids_of(const List& ids) {
  Json list = Json::array();
  for (const auto id : ids) list.push_back(to_string(Node(id)));
  return list;
}

template <class SomeId>
Json id_or_null(SomeId id) {
  return id.is_valid() ? Json(to_string(Node(id))) : Json();
}

Json pci_of(const std::optional<PciAddress>& pci) {
  return pci ? Json(to_string(*pci)) : Json();
}

Json socket_of(const Socket& socket) {
  Json json;
  if (!socket.model.empty()) json["model"] = socket.model;
  json["cpus"] = format_cpu_list(socket.cpus);
  json["cores"] = socket.cores.size();
  Json core_cpus = Json::array(), efficiency = Json::array();
  bool any_efficiency = false;
  for (const Core& core : socket.cores) {
    core_cpus.push_back(format_cpu_list(core.pus));
    efficiency.push_back(core.efficiency);
    any_efficiency |= core.efficiency != -1;
  }
  json["core_cpus"] = core_cpus;
  if (any_efficiency) json["core_efficiency"] = efficiency;
  Json caches = Json::array();
  for (const Cache& cache : socket.caches)
    caches.push_back({{"level", cache.level}, {"bytes", cache.bytes}, {"count", cache.count}});
  json["caches"] = caches;
  json["memories"] = ids_of(socket.memories);
  return json;
}

Json memory_of(const Memory& memory) {
  Json json;
  json["kind"] = to_string(memory.kind);
  json["bytes"] = memory.bytes;
  json["near"] = ids_of(memory.near);
  if (!memory.cpus.empty()) json["cpus"] = format_cpu_list(memory.cpus);
  if (memory.gpu.is_valid()) json["gpu"] = to_string(Node(memory.gpu));
  if (memory.os_index >= 0) json["os_index"] = memory.os_index;
  return json;
}

Json gpu_of(const Gpu& gpu) {
  Json json;
  json["vendor"] = gpu.vendor;
  json["model"] = gpu.model;
  json["pci"] = pci_of(gpu.pci);
  json["memory"] = id_or_null(gpu.memory);
  json["near"] = ids_of(gpu.near);
  json["shares_with"] = ids_of(gpu.shares_with);
  if (!gpu.uuid.empty()) json["uuid"] = gpu.uuid;
  if (!gpu.unused_reason.empty()) json["unused_reason"] = gpu.unused_reason;
  return json;
}

Json link_of(const Link& link) {
  Json json;
  json["kind"] = to_string(link.kind);
  json["a"] = to_string(link.a);
  json["b"] = to_string(link.b);
  json["bytes_per_second"] = {link.bytes_per_second[0], link.bytes_per_second[1]};
  json["latency_ns"] = link.latency.count();
  if (link.width) json["width"] = link.width;
  if (link.generation) json["generation"] = link.generation;
  json["provenance"] = to_string(link.provenance);
  return json;
}

/// A list with `id` first in each of its items.
template <class List, class Make>
Json list_of(const List& items, const std::string& prefix, Make make) {
  Json list = Json::array();
  for (std::size_t i = 0; i < items.size(); ++i) {
    Json json;
    json["id"] = prefix + std::to_string(i);
    json.update(make(items[i]));
    list.push_back(std::move(json));
  }
  return list;
}

/// The document with one item of a list per line: short enough to read, long enough to edit.
std::string laid_out(const Json& document) {
  std::string text = "{\n";
  bool first = true;
  for (const auto& [key, value] : document.items()) {
    if (!first) text += ",\n";
    first = false;
    text += "  " + Json(key).dump() + ": ";
    if (!value.is_array() || value.empty()) {
      text += value.dump(-1, ' ', false, Json::error_handler_t::replace);
      continue;
    }
    text += "[\n";
    for (std::size_t i = 0; i < value.size(); ++i)
      text += "    " + value[i].dump(-1, ' ', false, Json::error_handler_t::replace) +
              (i + 1 < value.size() ? ",\n" : "\n");
    text += "  ]";
  }
  return text + "\n}\n";
}

}  // namespace

std::string write_machine_file(const Machine& machine) {
  Json document;
  document["kind"] = "weft-machine";
  document["version"] = 1;
  document["source"] = machine.source;
  document["sockets"] = list_of(machine.sockets, "socket", socket_of);
  document["memories"] = list_of(machine.memories, "mem", memory_of);
  document["gpus"] = list_of(machine.gpus, "gpu", gpu_of);
  document["nics"] = list_of(machine.nics, "nic", [](const Nic& nic) {
    return Json{{"name", nic.name}, {"pci", pci_of(nic.pci)}, {"near", ids_of(nic.near)}};
  });
  document["disks"] = list_of(machine.disks, "disk", [](const Disk& disk) {
    return Json{{"name", disk.name},
                {"bytes", disk.bytes},
                {"pci", pci_of(disk.pci)},
                {"memory", id_or_null(disk.memory)}};
  });
  document["hubs"] = list_of(machine.hubs, "hub", [](const Hub& hub) {
    return Json{{"kind", to_string(hub.kind)},
                {"name", hub.name},
                {"near", ids_of(hub.near)},
                {"host", hub.host}};
  });
  document["links"] = list_of(machine.links, "link", link_of);
  Json warnings = Json::array();
  for (const Warning& warning : machine.warnings)
    warnings.push_back({{"code", warning.code}, {"text", warning.text}});
  document["warnings"] = warnings;
  return laid_out(document);
}

}  // namespace weft
