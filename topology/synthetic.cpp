#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <string_view>

#include "topology/discover.hpp"
#include "topology/make_link.hpp"
#include "topology/quantity.hpp"
#include "topology/rates.hpp"

namespace weft {
namespace {

constexpr std::string_view kGrammar =
    "expected comma-separated parts out of: N sockets [x M cores [x T threads]], N gpus, "
    "nvlink [N GB/s], pcie N GB/s, memory N GB, gpu memory N GB, N hosts, network N GB/s; for "
    "example "
    "\"2 sockets x 8 cores, 2 gpus\"";

// Enough for the largest clusters that are of use, small enough to answer at once.
constexpr std::size_t kMaxNodes = 1u << 20;

struct Description {
  std::uint32_t sockets = 1, cores = 1, threads = 1, gpus = 0, hosts = 1;
  double pcie = rates::kPcieDefault;
  double nvlink = 0;
  double network = rates::kNetwork;
  double memory = 64.0 * (1 << 30), gpu_memory = 16.0 * (1 << 30);
};

/// Words and numbers of one part, read from the left.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(trimmed(text)) {}

  bool take_number(std::uint32_t& value) {
    const auto result = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (result.ec != std::errc()) return false;
    advance(static_cast<std::size_t>(result.ptr - rest_.data()));
    return true;
  }
  /// Takes `word` or its plural, whatever the case.
  bool take(std::string_view word) {
    if (rest_.size() < word.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i)
      if (std::tolower(static_cast<unsigned char>(rest_[i])) != word[i]) return false;
    std::size_t length = word.size();
    if (length < rest_.size() && (rest_[length] == 's' || rest_[length] == 'S')) ++length;
    if (length < rest_.size() && std::isalpha(static_cast<unsigned char>(rest_[length])))
      return false;
    advance(length);
    return true;
  }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  void advance(std::size_t count) {
    rest_.remove_prefix(count);
    rest_ = trimmed(rest_);
  }
  std::string_view rest_;
};

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  Description parse() {
    std::string_view rest = text_;
    while (true) {
      const std::size_t comma = rest.find(',');
      part(rest.substr(0, comma));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    if (network_ && result_.hosts == 1) fail("network", "needs more than one host to join");
    // Every two sockets of a host are joined, and with NVLink every two GPUs.
    const std::uint64_t nodes =
        static_cast<std::uint64_t>(result_.hosts) *
        (static_cast<std::uint64_t>(result_.sockets) * result_.cores * result_.threads +
         static_cast<std::uint64_t>(result_.sockets) * result_.sockets / 2 +
         (result_.nvlink > 0 ? static_cast<std::uint64_t>(result_.gpus) * result_.gpus / 2 : 0) +
         3ull * result_.gpus);
    if (nodes > kMaxNodes)
      throw TopologyError("machine \"" + text_ + "\": too large, at most " +
                          std::to_string(kMaxNodes) + " hardware threads, GPUs and links in all");
    return result_;
  }

 private:
  [[noreturn]] void fail(std::string_view part, const std::string& why) const {
    throw TopologyError("machine \"" + text_ + "\": \"" + std::string(trimmed(part)) + "\" " + why +
                        "; " + std::string(kGrammar));
  }

  void once(std::string_view part, bool& seen) const {
    if (seen) fail(part, "says again what an earlier part said");
    seen = true;
  }

  std::uint32_t count(std::string_view part, std::uint32_t value, std::uint32_t least,
                      std::uint32_t most) const {
    if (value < least || value > most)
      fail(part, "is out of range, from " + std::to_string(least) + " to " + std::to_string(most));
    return value;
  }

  double quantity(std::string_view part, std::string_view text, bool rate) const {
    const std::optional<double> value = rate ? parse_rate(text) : parse_bytes(text);
    if (!value || *value < 1)
      fail(part, rate ? "needs a rate such as 25 GB/s" : "needs a size such as 64 GB");
    return *value;
  }

  void part(std::string_view part) {
    Words words(part);
    std::uint32_t number = 0;
    if (words.take_number(number)) {
      if (words.take("socket")) {
        once(part, sockets_);
        result_.sockets = count(part, number, 1, 4096);
        if (words.take("x")) {
          if (!words.take_number(number) || !words.take("core"))
            fail(part, "lacks M cores after x");
          result_.cores = count(part, number, 1, 65536);
          if (words.take("x")) {
            if (!words.take_number(number) || !words.take("thread"))
              fail(part, "lacks T threads after x");
            result_.threads = count(part, number, 1, 64);
          }
        }
      } else if (words.take("gpu")) {
        once(part, gpus_);
        result_.gpus = count(part, number, 0, 4096);
      } else if (words.take("host")) {
        once(part, hosts_);
        result_.hosts = count(part, number, 1, 65536);
      } else {
        fail(part, "is not understood");
      }
      if (!words.at_end()) fail(part, "has more than was expected");
      return;
    }
    if (words.take("nvlink")) {
      once(part, nvlink_);
      result_.nvlink = words.at_end() ? rates::kNvlinkPair : quantity(part, words.rest(), true);
    } else if (words.take("pcie")) {
      once(part, pcie_);
      result_.pcie = quantity(part, words.rest(), true);
    } else if (words.take("network")) {
      once(part, network_);
      result_.network = quantity(part, words.rest(), true);
    } else if (words.take("memory")) {
      once(part, memory_);
      result_.memory = quantity(part, words.rest(), false);
    } else if (words.take("gpu") && words.take("memory")) {
      once(part, gpu_memory_);
      result_.gpu_memory = quantity(part, words.rest(), false);
    } else {
      fail(part, trimmed(part).empty() ? "is empty" : "is not understood");
    }
  }

  const std::string& text_;
  Description result_;
  bool sockets_ = false, gpus_ = false, hosts_ = false, nvlink_ = false, pcie_ = false,
       memory_ = false, gpu_memory_ = false, network_ = false;
};

void add_host(Machine& machine, const Description& d, std::uint32_t host) {
  const auto first_socket = static_cast<std::uint32_t>(machine.sockets.size());
  const auto first_gpu = static_cast<std::uint32_t>(machine.gpus.size());
  std::uint32_t next_cpu = host * d.sockets * d.cores * d.threads;
  for (std::uint32_t s = 0; s < d.sockets; ++s) {
    const SocketId socket_id{first_socket + s};
    const MemoryId memory_id{static_cast<std::uint32_t>(machine.memories.size())};
    Socket socket;
    for (std::uint32_t c = 0; c < d.cores; ++c) {
      Core core;
      for (std::uint32_t t = 0; t < d.threads; ++t) core.pus.push_back(next_cpu++);
      socket.cpus.insert(socket.cpus.end(), core.pus.begin(), core.pus.end());
      socket.cores.push_back(std::move(core));
    }
    socket.memories = {memory_id};
    Memory memory;
    memory.bytes = static_cast<std::size_t>(d.memory);
    memory.near = {socket_id};
    memory.cpus = socket.cpus;
    memory.os_index = memory_id.value;
    machine.sockets.push_back(std::move(socket));
    machine.memories.push_back(std::move(memory));
    machine.links.push_back(
        make_link(LinkKind::Bus, memory_id, socket_id, rates::kMemoryBus, rates::kBusLatency));
  }
  for (std::uint32_t a = 0; a < d.sockets; ++a)
    for (std::uint32_t b = a + 1; b < d.sockets; ++b)
      machine.links.push_back(make_link(LinkKind::Socket, SocketId{first_socket + a},
                                        SocketId{first_socket + b}, rates::kSocketLink,
                                        rates::kSocketLatency));

  // One host bridge for each socket that has something to join to it.
  std::vector<HubId> bridges(d.sockets);
  const auto bridge_of = [&](std::uint32_t s) {
    if (bridges[s].is_valid()) return bridges[s];
    bridges[s] = HubId{static_cast<std::uint32_t>(machine.hubs.size())};
    const SocketId socket_id{first_socket + s};
    Hub hub;
    hub.name = "host bridge of " + to_string(Node(socket_id));
    hub.near = machine.sockets[socket_id.value].memories;
    hub.host = host;
    machine.hubs.push_back(std::move(hub));
    machine.links.push_back(
        make_link(LinkKind::Bus, socket_id, bridges[s], rates::kMemoryBus, rates::kBusLatency));
    return bridges[s];
  };
  for (std::uint32_t g = 0; g < d.gpus; ++g) {
    const std::uint32_t s =
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(g) * d.sockets / d.gpus);
    const HubId bridge = bridge_of(s);
    const GpuId gpu_id{first_gpu + g};
    const MemoryId memory_id{static_cast<std::uint32_t>(machine.memories.size())};
    Memory memory;
    memory.kind = MemoryKind::Gpu;
    memory.bytes = static_cast<std::size_t>(d.gpu_memory);
    memory.gpu = gpu_id;
    machine.memories.push_back(std::move(memory));
    Gpu gpu;
    gpu.model = "synthetic";
    gpu.memory = memory_id;
    gpu.near = machine.hubs[bridge.value].near;
    machine.gpus.push_back(std::move(gpu));
    machine.links.push_back(make_link(LinkKind::Pcie, bridge, gpu_id, d.pcie, rates::kPcieLatency));
  }
  if (d.nvlink > 0)
    for (std::uint32_t a = 0; a < d.gpus; ++a)
      for (std::uint32_t b = a + 1; b < d.gpus; ++b)
        machine.links.push_back(make_link(LinkKind::Nvlink, GpuId{first_gpu + a},
                                          GpuId{first_gpu + b}, d.nvlink, rates::kNvlinkLatency));
  if (d.hosts > 1) {
    const NicId nic_id{host};
    Nic nic;
    nic.name = "nic" + std::to_string(host);
    nic.near = machine.sockets[first_socket].memories;
    machine.nics.push_back(std::move(nic));
    machine.links.push_back(
        make_link(LinkKind::Pcie, bridge_of(0), nic_id, d.network, rates::kPcieLatency));
  }
}

}  // namespace

Machine parse_machine(const std::string& description) {
  const Description d = Parser(description).parse();
  Machine machine;
  machine.source = description;
  for (std::uint32_t host = 0; host < d.hosts; ++host) add_host(machine, d, host);
  if (d.hosts > 1) {
    const HubId network{static_cast<std::uint32_t>(machine.hubs.size())};
    Hub hub;
    hub.kind = HubKind::Network;
    hub.name = "network";
    machine.hubs.push_back(std::move(hub));
    for (std::uint32_t host = 0; host < d.hosts; ++host)
      machine.links.push_back(
          make_link(LinkKind::Network, NicId{host}, network, d.network, rates::kNetworkLatency));
  }
  return machine;
}

}  // namespace weft
