#include "topology/machine_edit.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "topology/machine_file.hpp"
#include "topology/machine_match.hpp"
#include "topology/names.hpp"
#include "topology/reach.hpp"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

const char* list_of(NodeKind kind) {
  static constexpr const char* kLists[] = {"sockets", "memories", "gpus", "hubs", "nics", "disks"};
  return kLists[static_cast<std::size_t>(kind)];
}

/// Marks what goes and renumbers what stays.
class Removal {
 public:
  explicit Removal(const Machine& machine) : m_(machine) {
    const std::size_t sizes[] = {m_.sockets.size(), m_.memories.size(), m_.gpus.size(),
                                 m_.hubs.size(),    m_.nics.size(),     m_.disks.size()};
    for (int kind = 0; kind < 6; ++kind) gone_[kind].resize(sizes[kind]);
    gone_links_.resize(m_.links.size());
  }

  void take(Node n) {
    gone_[static_cast<std::size_t>(n.kind)][n.index] = true;
    if (n.kind == NodeKind::Gpu) own_memory(m_.gpus[n.index].memory, MemoryKind::Gpu);
    if (n.kind == NodeKind::Disk) own_memory(m_.disks[n.index].memory, MemoryKind::Disk);
  }
  void take_link(std::size_t i) { gone_links_[i] = true; }

  Machine result() {
    for (int kind = 0; kind < 6; ++kind) {
      std::uint32_t next = 0;
      for (const bool gone : gone_[kind]) moved_[kind].push_back(gone ? Id<void>::kNone : next++);
    }
    for (std::size_t i = 0; i < m_.links.size(); ++i)
      if (is_gone(m_.links[i].a) || is_gone(m_.links[i].b)) gone_links_[i] = true;
    Machine r = m_;
    filter(r.sockets, gone_[0]);
    filter(r.memories, gone_[1]);
    filter(r.gpus, gone_[2]);
    filter(r.hubs, gone_[3]);
    filter(r.nics, gone_[4]);
    filter(r.disks, gone_[5]);
    filter(r.links, gone_links_);
    for (Socket& socket : r.sockets) move(socket.memories);
    for (Memory& memory : r.memories) move(memory.near), move(memory.gpu);
    for (Gpu& gpu : r.gpus) move(gpu.near), move(gpu.shares_with), move(gpu.memory);
    for (Hub& hub : r.hubs) move(hub.near);
    for (Nic& nic : r.nics) move(nic.near);
    for (Disk& disk : r.disks) move(disk.memory);
    for (Link& link : r.links)
      for (Node* end : {&link.a, &link.b})
        end->index = moved_[static_cast<std::size_t>(end->kind)][end->index];
    warn_unreachable(r);
    return r;
  }

 private:
  bool is_gone(Node n) const { return gone_[static_cast<std::size_t>(n.kind)][n.index]; }

  void own_memory(MemoryId id, MemoryKind kind) {
    if (!id.is_valid() || m_.memories[id.value].kind != kind) return;
    for (std::size_t g = 0; g < m_.gpus.size(); ++g)
      if (m_.gpus[g].memory == id && !gone_[2][g]) return;  // a partition still needs it
    gone_[1][id.value] = true;
  }

  template <class List>
  static void filter(List& list, const std::vector<bool>& gone) {
    List kept;
    for (std::size_t i = 0; i < list.size(); ++i)
      if (!gone[i]) kept.push_back(std::move(list[i]));
    list = std::move(kept);
  }

  template <class Tag>
  void move(Id<Tag>& id) const {
    if (id.is_valid()) id.value = moved_[static_cast<std::size_t>(Node(id).kind)][id.value];
  }
  template <class Tag>
  void move(std::vector<Id<Tag>>& ids) const {
    for (Id<Tag>& id : ids) move(id);
    std::erase_if(ids, [](Id<Tag> id) { return !id.is_valid(); });
  }

  const Machine& m_;
  std::vector<bool> gone_[6];
  std::vector<bool> gone_links_;
  std::vector<std::uint32_t> moved_[6];
};

/// A value in the machine file: the list it is in, its place there, and its key.
struct Place {
  std::string list;
  std::size_t index = 0;
  std::string key;
};

/// The memory whose own figures `memory.` leads to.
MemoryId memory_of(const Machine& machine, Node node) {
  if (node.kind == NodeKind::Gpu) return machine.gpus[node.index].memory;
  if (node.kind == NodeKind::Disk) return machine.disks[node.index].memory;
  return {};
}

std::vector<Place> places_of(const Machine& machine, const std::string& path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos || dot + 1 == path.size())
    refuse_thing(path, "expected an id and a key, for example gpu0.model, link3.bytes_per_second");
  const Things things = find_things(machine, path.substr(0, dot));
  const std::string key = path.substr(dot + 1), through = "memory.";
  std::vector<Place> places;
  for (const Node node : things.nodes) {
    if (!key.starts_with(through)) {
      places.push_back({list_of(node.kind), node.index, key});
      continue;
    }
    const MemoryId memory = memory_of(machine, node);
    if (!memory.is_valid()) refuse_thing(path, to_string(node) + " has no memory of its own");
    places.push_back({list_of(NodeKind::Memory), memory.value, key.substr(through.size())});
  }
  for (const LinkId link : things.links) places.push_back({"links", link.value, key});
  return places;
}

}  // namespace

Machine with_value(const Machine& machine, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse_thing(assignment, "expected PATH=VALUE, for example link3.bytes_per_second=12 GB/s");
  const std::string path = assignment.substr(0, equals), text = assignment.substr(equals + 1);
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) value = text;

  Json document = Json::parse(write_machine_file(machine));
  if (path == "source") {
    document["source"] = value;
  } else {
    for (const Place& place : places_of(machine, path)) {
      Json& thing = document[place.list][place.index];
      thing[place.key] = value;
      // A changed figure of a link is what somebody assumes.
      if (place.list == "links" && place.key != "provenance") thing["provenance"] = "assumed";
    }
  }
  try {
    Machine changed = read_machine_file(document.dump(), "--set " + path);
    warn_unreachable(changed);
    return changed;
  } catch (const Json::exception& error) {
    refuse_thing(assignment, error.what());
  }
}

Machine without(const Machine& machine, const std::string& thing) {
  Removal removal(machine);
  const std::size_t dash = thing.find('-');
  if (dash == std::string::npos || thing.find(':') != std::string::npos) {
    const Things things = find_things(machine, thing);
    for (const Node node : things.nodes) removal.take(node);
    for (const LinkId link : things.links) removal.take_link(link.value);
    return removal.result();
  }
  const auto a = parse_node(thing.substr(0, dash)), b = parse_node(thing.substr(dash + 1));
  if (!a || !b)
    refuse_thing(
        thing,
        "expected an id such as gpu1 or link3, a pattern such as link:nvlink*, or two nodes "
        "such as gpu0-gpu1");
  bool any = false;
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    const Link& link = machine.links[i];
    if ((link.a == *a && link.b == *b) || (link.a == *b && link.b == *a)) {
      removal.take_link(i);
      any = true;
    }
  }
  if (!any) refuse_thing(thing, "no link joins these two");
  return removal.result();
}

Machine edited(Machine machine, const MachineEdits& edits) {
  for (const std::string& thing : edits.remove) machine = without(machine, thing);
  for (const std::string& text : edits.add) machine = with_added(machine, text);
  for (const std::string& assignment : edits.set) machine = with_value(machine, assignment);
  return machine;
}

}  // namespace weft
