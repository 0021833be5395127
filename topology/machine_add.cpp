#include <algorithm>
#include <sstream>

#include "topology/machine_check.hpp"
#include "topology/machine_edit.hpp"
#include "topology/machine_match.hpp"
#include "topology/make_link.hpp"
#include "topology/names.hpp"
#include "topology/quantity.hpp"
#include "topology/rates.hpp"
#include "topology/reach.hpp"

namespace weft {
namespace {

constexpr const char* kExpectedAddition =
    "expected \"gpu like gpu0 [on socket1]\", \"link like link3 from gpu0 to gpu2\" or \"socket "
    "like socket0\"";

/// Adds to a copy of a machine; each function says what is like what.
class Addition {
 public:
  Addition(const Machine& machine, const std::string& text) : m_(machine), text_(text) {
    std::istringstream stream(text);
    for (std::string word; stream >> word;) words_.push_back(word);
  }

  Machine result() {
    if (words_.size() < 3 || words_[1] != "like") fail(kExpectedAddition);
    if (words_[0] == "gpu" && (words_.size() == 3 || (words_.size() == 5 && words_[3] == "on")))
      gpu(node(words_[2], NodeKind::Gpu),
          words_.size() == 5 ? SocketId{node(words_[4], NodeKind::Socket)} : SocketId{});
    else if (words_[0] == "link" && words_.size() == 7 && words_[3] == "from" && words_[5] == "to")
      link();
    else if (words_[0] == "socket" && words_.size() == 3)
      socket(SocketId{node(words_[2], NodeKind::Socket)});
    else
      fail(kExpectedAddition);
    check_machine(m_);
    warn_unreachable(m_);
    return std::move(m_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw TopologyError("--add \"" + text_ + "\": " + what);
  }

  /// The index of the one thing of a kind that a word names.
  std::uint32_t node(const std::string& word, NodeKind kind) const {
    const auto named = parse_node(word);
    if (!named || named->kind != kind) {
      std::string example = to_string(Node(kind, 0));
      fail("\"" + word + "\" where " + example + " or the like was expected");
    }
    static_cast<void>(find_things(m_, word));
    return named->index;
  }

  void like(Link link, Node a, Node b) {
    link.a = a;
    link.b = b;
    link.provenance = Provenance::Assumed;
    m_.links.push_back(link);
  }

  /// The model's link with one end moved: `model` becomes `self`, the other end `other`.
  void like(const Link& link, Node model, Node self, Node other) {
    if (link.a == model)
      like(link, self, other);
    else
      like(link, other, self);
  }

  std::vector<LinkId> links_of(Node n) const {
    std::vector<LinkId> found;
    for (std::uint32_t i = 0; i < m_.links.size(); ++i)
      if (m_.links[i].a == n || m_.links[i].b == n) found.push_back(LinkId{i});
    return found;
  }
  Node other_end(const Link& link, Node n) const { return link.a == n ? link.b : link.a; }
  bool joined(Node a, Node b) const {
    return std::any_of(m_.links.begin(), m_.links.end(), [&](const Link& link) {
      return (link.a == a && link.b == b) || (link.a == b && link.b == a);
    });
  }

  /// The host bridge of a socket to which fewest things are joined; made where there is none.
  HubId bridge_of(SocketId socket, std::uint32_t host) {
    HubId best;
    std::size_t fewest = ~std::size_t{0};
    for (const LinkId id : links_of(socket)) {
      const Node end = other_end(m_.links[id.value], socket);
      if (end.kind != NodeKind::Hub || m_.hubs[end.index].kind != HubKind::HostBridge) continue;
      if (const std::size_t count = links_of(end).size(); count < fewest)
        fewest = count, best = HubId{end.index};
    }
    if (best.is_valid()) return best;
    Hub hub;
    hub.name = "host bridge";
    hub.near = m_.sockets[socket.value].memories;
    hub.host = host;
    m_.hubs.push_back(std::move(hub));
    best = HubId{static_cast<std::uint32_t>(m_.hubs.size() - 1)};
    m_.links.push_back(
        make_link(LinkKind::Bus, socket, best, rates::kMemoryBus, rates::kBusLatency));
    return best;
  }

  std::uint32_t host_of(Node n) const {
    for (const LinkId id : links_of(n)) {
      const Node end = other_end(m_.links[id.value], n);
      if (end.kind == NodeKind::Hub) return m_.hubs[end.index].host;
    }
    return 0;
  }

  bool is_near(const Gpu& gpu, SocketId socket) const {
    const auto& local = m_.sockets[socket.value].memories;
    return std::any_of(gpu.near.begin(), gpu.near.end(), [&](MemoryId id) {
      return std::find(local.begin(), local.end(), id) != local.end();
    });
  }

  void gpu(std::uint32_t model_index, SocketId on) {
    const Node model = GpuId{model_index};
    const GpuId self{static_cast<std::uint32_t>(m_.gpus.size())};
    Gpu copy = m_.gpus[model_index];
    copy.pci.reset();
    copy.uuid.clear();
    copy.shares_with.clear();
    if (on.is_valid() && is_near(copy, on)) on = SocketId{};  // where the model is too
    if (on.is_valid()) copy.near = m_.sockets[on.value].memories;
    if (copy.memory.is_valid() && m_.memories[copy.memory.value].kind == MemoryKind::Gpu) {
      Memory memory = m_.memories[copy.memory.value];
      memory.gpu = self;
      memory.os_index = -1;
      copy.memory = MemoryId{static_cast<std::uint32_t>(m_.memories.size())};
      m_.memories.push_back(std::move(memory));
    }
    m_.gpus.push_back(std::move(copy));

    std::vector<Node> peers;
    LinkId to_peer;
    for (const LinkId id : links_of(model)) {
      const Link link = m_.links[id.value];
      const Node end = other_end(link, model);
      if (end.kind == NodeKind::Gpu) {
        like(link, model, self, end);
        peers.push_back(end);
        to_peer = id;
      } else if (on.is_valid() && end.kind == NodeKind::Socket) {
        like(link, model, self, on);
      } else if (on.is_valid() && link.kind == LinkKind::Pcie) {
        like(link, model, self, bridge_of(on, host_of(model)));
      } else {
        like(link, model, self, end);
      }
    }
    bool all_joined = !peers.empty();
    for (std::size_t i = 0; i < peers.size(); ++i)
      for (std::size_t k = i + 1; k < peers.size(); ++k)
        all_joined = all_joined && joined(peers[i], peers[k]);
    if (all_joined) like(m_.links[to_peer.value], model, self);
  }

  void link() {
    const auto model = parse_link_id(words_[2]);
    if (!model) fail("\"" + words_[2] + "\" where link0 or the like was expected");
    static_cast<void>(find_things(m_, words_[2]));
    const auto from = parse_node(words_[4]), to = parse_node(words_[6]);
    if (!from || !to)
      fail("\"" + words_[from ? 6 : 4] + "\" where a node such as gpu0, socket1 was expected");
    for (const std::size_t word : {4u, 6u}) static_cast<void>(find_things(m_, words_[word]));
    like(m_.links[model->value], *from, *to);
  }

  void socket(SocketId model) {
    std::uint32_t next_cpu = 0;
    for (const Socket& socket : m_.sockets)
      for (const std::uint32_t cpu : socket.cpus) next_cpu = std::max(next_cpu, cpu + 1);
    std::int64_t next_os_index = 0;
    for (const Memory& memory : m_.memories)
      next_os_index = std::max(next_os_index, memory.os_index + 1);

    const SocketId self{static_cast<std::uint32_t>(m_.sockets.size())};
    Socket copy = m_.sockets[model.value];
    copy.cpus.clear();
    for (Core& core : copy.cores)
      for (std::uint32_t& cpu : core.pus) copy.cpus.push_back(cpu = next_cpu++);
    if (next_cpu > kMaxCpu) fail("more hardware threads than " + std::to_string(kMaxCpu));
    const std::vector<LinkId> links = links_of(model);
    const std::vector<MemoryId> memories = copy.memories;
    copy.memories.clear();
    for (const MemoryId id : memories) {
      Memory memory = m_.memories[id.value];
      memory.near = {self};
      if (!memory.cpus.empty()) memory.cpus = copy.cpus;
      if (memory.os_index >= 0) memory.os_index = next_os_index++;
      const MemoryId added{static_cast<std::uint32_t>(m_.memories.size())};
      m_.memories.push_back(std::move(memory));
      copy.memories.push_back(added);
      for (const LinkId link : links)
        if (other_end(m_.links[link.value], model) == Node(id))
          like(m_.links[link.value], model, self, added);
    }
    m_.sockets.push_back(std::move(copy));

    bool has_bridge = false;
    Link between =
        make_link(LinkKind::Socket, model, self, rates::kSocketLink, rates::kSocketLatency);
    for (const LinkId id : links) {
      const Link link = m_.links[id.value];
      const Node end = other_end(link, model);
      if (end.kind == NodeKind::Socket) {
        like(link, model, self, end);
        between = link;
      } else if (end.kind == NodeKind::Hub && !has_bridge &&
                 m_.hubs[end.index].kind == HubKind::HostBridge) {
        has_bridge = true;
        Hub hub = m_.hubs[end.index];
        hub.near = m_.sockets[self.value].memories;
        m_.hubs.push_back(std::move(hub));
        like(link, model, self, HubId{static_cast<std::uint32_t>(m_.hubs.size() - 1)});
      }
    }
    like(between, model, self);
  }

  Machine m_;
  const std::string& text_;
  std::vector<std::string> words_;
};

}  // namespace

Machine with_added(const Machine& machine, const std::string& text) {
  return Addition(machine, text).result();
}

}  // namespace weft
