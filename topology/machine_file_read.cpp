#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "topology/machine_check.hpp"
#include "topology/machine_file.hpp"
#include "topology/names.hpp"
#include "topology/quantity.hpp"

namespace weft {
namespace {

using ParsedJson = nlohmann::json;

constexpr std::size_t kMostMachineBytes = std::size_t{16} << 20;
constexpr int kMostDepth = 8;

/// A JSON object being read: knows where it stands, refuses keys it does not know.
class Fields {
 public:
  Fields(const ParsedJson& json, std::string source, std::string place,
         std::initializer_list<std::string_view> known)
      : json_(json), source_(std::move(source)), place_(std::move(place)) {
    if (!json.is_object()) fail("", "expected an object, {…}");
    for (const auto& [key, value] : json.items())
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        std::string list;
        for (const std::string_view name : known)
          list += (list.empty() ? "" : ", ") + std::string(name);
        fail(key.substr(0, 40), "unknown key; expected one of " + list);
      }
  }

  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    std::string where = place_;
    if (!key.empty()) where += (where.empty() ? "" : ".") + key;
    throw TopologyError(source_ + ": " + (where.empty() ? "" : where + ": ") + what);
  }

  [[nodiscard]] const ParsedJson* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  [[nodiscard]] std::string text(const char* key) const {
    const ParsedJson* value = find(key);
    if (!value) return {};
    if (!value->is_string()) fail(key, "expected a text");
    return value->get<std::string>();
  }

  [[nodiscard]] std::int64_t integer(const char* key, std::int64_t fallback, std::int64_t least,
                                     std::int64_t most) const {
    const ParsedJson* value = find(key);
    return value ? integer(*value, key, least, most) : fallback;
  }
  [[nodiscard]] std::int64_t integer(const ParsedJson& value, const std::string& key,
                                     std::int64_t least, std::int64_t most) const {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most));
    if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
      fail(key,
           "expected a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return value.get<std::int64_t>();
  }

  /// A number of bytes, or a text such as `64 GB`.
  [[nodiscard]] std::size_t bytes(const char* key) const {
    const ParsedJson* value = find(key);
    if (!value) return 0;
    if (value->is_string()) {
      const auto parsed = parse_bytes(value->get_ref<const std::string&>());
      if (!parsed) fail(key, "expected a number of bytes or a size such as \"64 GB\"");
      return static_cast<std::size_t>(*parsed);
    }
    return static_cast<std::size_t>(integer(*value, key, 0, std::int64_t{1} << 60));
  }

  [[nodiscard]] double rate(const ParsedJson& value, const std::string& key) const {
    if (value.is_string()) {
      const auto parsed = parse_rate(value.get_ref<const std::string&>());
      if (parsed) return *parsed;
    } else if (value.is_number() && std::isfinite(value.get<double>()) &&
               value.get<double>() >= 0) {
      return value.get<double>();
    }
    fail(key, "expected bytes per second, or a rate such as \"25 GB/s\"");
  }

  [[nodiscard]] std::vector<std::uint32_t> cpus(const char* key) const {
    const ParsedJson* value = find(key);
    return value ? cpus(*value, key) : std::vector<std::uint32_t>{};
  }
  [[nodiscard]] std::vector<std::uint32_t> cpus(const ParsedJson& value,
                                                const std::string& key) const {
    if (value.is_string())
      if (auto parsed = parse_cpu_list(value.get_ref<const std::string&>())) return *parsed;
    fail(key, "expected a list such as \"0-15,32-47\"");
  }

  template <class Parse>
  [[nodiscard]] auto word(const char* key, Parse parse, const char* expected) const {
    const std::string value = text(key);
    const auto parsed = parse(value);
    if (!parsed) fail(key, "\"" + value.substr(0, 40) + "\"; expected " + expected);
    return *parsed;
  }

  [[nodiscard]] std::optional<PciAddress> pci(const char* key) const {
    if (!find(key)) return std::nullopt;
    return word(key, parse_pci_address, "a PCI address such as 0000:3b:00.0");
  }

  [[nodiscard]] const ParsedJson& list(const char* key) const {
    static const ParsedJson kEmpty = ParsedJson::array();
    const ParsedJson* value = find(key);
    if (!value) return kEmpty;
    if (!value->is_array()) fail(key, "expected a list, […]");
    return *value;
  }

  template <class SomeId>
  [[nodiscard]] SomeId id(const ParsedJson& value, const std::string& key) const {
    if (value.is_string()) {
      const auto node = parse_node(value.get_ref<const std::string&>());
      if (node && node->kind == Node(SomeId{0}).kind) return SomeId{node->index};
    }
    fail(key, "expected an id such as \"" + to_string(Node(SomeId{0})) + "\"");
  }
  template <class SomeId>
  [[nodiscard]] SomeId id(const char* key) const {
    const ParsedJson* value = find(key);
    return value ? id<SomeId>(*value, key) : SomeId{};
  }
  template <class SomeId>
  [[nodiscard]] std::vector<SomeId> ids(const char* key) const {
    std::vector<SomeId> result;
    for (const ParsedJson& value : list(key)) result.push_back(id<SomeId>(value, key));
    return result;
  }

  /// Items of a list of objects; an `id` must be the item's place in the list.
  template <class Read>
  void each(const char* key, const std::string& prefix,
            std::initializer_list<std::string_view> known, Read read) const {
    std::size_t index = 0;
    for (const ParsedJson& item : list(key)) {
      const Fields fields(item, source_, std::string(key) + "[" + std::to_string(index) + "]",
                          known);
      const std::string id = fields.text("id");
      if (!prefix.empty() && !id.empty() && id != prefix + std::to_string(index))
        fields.fail("id", "\"" + id.substr(0, 40) + "\"; expected \"" + prefix +
                              std::to_string(index) + "\": ids count from 0 in the list's order");
      read(fields);
      ++index;
    }
  }

 private:
  const ParsedJson& json_;
  std::string source_, place_;
};

Socket read_socket(const Fields& fields) {
  Socket socket;
  socket.model = fields.text("model");
  socket.cpus = fields.cpus("cpus");
  socket.memories = fields.ids<MemoryId>("memories");
  const auto count = static_cast<std::size_t>(
      fields.integer("cores", static_cast<std::int64_t>(socket.cpus.size()), 1, kMaxCpu));
  if (fields.find("core_cpus")) {
    for (const ParsedJson& core : fields.list("core_cpus"))
      socket.cores.push_back({fields.cpus(core, "core_cpus"), -1});
    if (fields.find("cores") && socket.cores.size() != count)
      fields.fail("cores", "expected the number of items in core_cpus, " +
                               std::to_string(socket.cores.size()));
  } else {
    // As Linux numbers them: first the first thread of every core, then the second …
    if (socket.cpus.empty() || socket.cpus.size() % count != 0)
      fields.fail("cores", "expected a number that divides the number of cpus, or core_cpus");
    socket.cores.resize(count);
    for (std::size_t i = 0; i < socket.cpus.size(); ++i)
      socket.cores[i % count].pus.push_back(socket.cpus[i]);
  }
  const ParsedJson& efficiencies = fields.list("core_efficiency");
  if (!efficiencies.empty() && efficiencies.size() != socket.cores.size())
    fields.fail("core_efficiency", "expected one number for each core");
  for (std::size_t i = 0; i < efficiencies.size(); ++i)
    socket.cores[i].efficiency =
        static_cast<std::int32_t>(fields.integer(efficiencies[i], "core_efficiency", -1, 1 << 20));
  fields.each("caches", "", {"level", "bytes", "count"}, [&](const Fields& cache) {
    socket.caches.push_back({static_cast<std::uint32_t>(cache.integer("level", 0, 0, 64)),
                             cache.bytes("bytes"),
                             static_cast<std::uint32_t>(cache.integer("count", 1, 0, kMaxCpu))});
  });
  return socket;
}

Link read_link(const Fields& fields) {
  Link link;
  link.kind =
      fields.word("kind", parse_link_kind, "bus, pcie, nvlink, xgmi, c2c, socket, disk or network");
  link.a = fields.word("a", parse_node, "an id such as socket0, mem0, gpu0, hub0, nic0, disk0");
  link.b = fields.word("b", parse_node, "an id such as socket0, mem0, gpu0, hub0, nic0, disk0");
  const ParsedJson* rate = fields.find("bytes_per_second");
  if (!rate) fields.fail("bytes_per_second", "missing; expected one rate or two, [a to b, b to a]");
  if (rate->is_array()) {
    if (rate->size() != 2) fields.fail("bytes_per_second", "expected two rates, [a to b, b to a]");
    for (const std::size_t i : {0u, 1u})
      link.bytes_per_second[i] = fields.rate((*rate)[i], "bytes_per_second");
  } else {
    link.bytes_per_second[0] = link.bytes_per_second[1] = fields.rate(*rate, "bytes_per_second");
  }
  link.latency =
      std::chrono::nanoseconds(fields.integer("latency_ns", 0, 0, std::int64_t{1'000'000'000'000}));
  link.width = static_cast<std::uint32_t>(fields.integer("width", 0, 0, 1 << 20));
  link.generation = static_cast<std::uint32_t>(fields.integer("generation", 0, 0, 100));
  if (fields.find("provenance"))
    link.provenance = fields.word("provenance", parse_provenance, "assumed, reported or measured");
  return link;
}

Machine read_lists(const Fields& file) {
  Machine machine;
  file.each("sockets", "socket",
            {"id", "model", "cpus", "cores", "core_cpus", "core_efficiency", "caches", "memories"},
            [&](const Fields& fields) { machine.sockets.push_back(read_socket(fields)); });
  file.each("memories", "mem", {"id", "kind", "bytes", "near", "cpus", "gpu", "os_index"},
            [&](const Fields& fields) {
              Memory memory;
              memory.kind =
                  fields.word("kind", parse_memory_kind, "dram, hbm, pmem, cxl, gpu or disk");
              memory.bytes = fields.bytes("bytes");
              memory.near = fields.ids<SocketId>("near");
              memory.cpus = fields.cpus("cpus");
              memory.gpu = fields.id<GpuId>("gpu");
              memory.os_index = fields.integer("os_index", -1, -1, 0xffffffffll);
              machine.memories.push_back(std::move(memory));
            });
  file.each(
      "gpus", "gpu",
      {"id", "vendor", "model", "pci", "memory", "near", "shares_with", "uuid", "unused_reason"},
      [&](const Fields& fields) {
        Gpu gpu;
        gpu.vendor = fields.text("vendor");
        gpu.model = fields.text("model");
        gpu.pci = fields.pci("pci");
        gpu.memory = fields.id<MemoryId>("memory");
        gpu.near = fields.ids<MemoryId>("near");
        gpu.shares_with = fields.ids<GpuId>("shares_with");
        gpu.uuid = fields.text("uuid");
        gpu.unused_reason = fields.text("unused_reason");
        machine.gpus.push_back(std::move(gpu));
      });
  file.each("nics", "nic", {"id", "name", "pci", "near"}, [&](const Fields& fields) {
    machine.nics.push_back({fields.text("name"), fields.pci("pci"), fields.ids<MemoryId>("near")});
  });
  file.each("disks", "disk", {"id", "name", "bytes", "pci", "memory"}, [&](const Fields& fields) {
    machine.disks.push_back({fields.text("name"), fields.bytes("bytes"), fields.pci("pci"),
                             fields.id<MemoryId>("memory")});
  });
  file.each("hubs", "hub", {"id", "kind", "name", "near", "host"}, [&](const Fields& fields) {
    Hub hub;
    hub.kind = fields.word("kind", parse_hub_kind,
                           "host_bridge, pcie_switch, nvswitch, package or network");
    hub.name = fields.text("name");
    hub.near = fields.ids<MemoryId>("near");
    hub.host = static_cast<std::uint32_t>(fields.integer("host", 0, 0, 1 << 20));
    machine.hubs.push_back(std::move(hub));
  });
  file.each("links", "link",
            {"id", "kind", "a", "b", "bytes_per_second", "latency_ns", "width", "generation",
             "provenance"},
            [&](const Fields& fields) { machine.links.push_back(read_link(fields)); });
  file.each("warnings", "", {"code", "text"}, [&](const Fields& fields) {
    machine.warnings.push_back({fields.text("code"), fields.text("text")});
  });
  return machine;
}

}  // namespace

Machine read_machine_file(std::string_view text, const std::string& name) {
  if (text.size() > kMostMachineBytes)
    throw TopologyError(name + ": too large for a machine file; at most 16 MiB are read");
  ParsedJson document;
  try {
    document = ParsedJson::parse(text, [&](int depth, ParsedJson::parse_event_t, ParsedJson&) {
      if (depth > kMostDepth) throw TopologyError(name + ": nested too deeply for a machine file");
      return true;
    });
  } catch (const ParsedJson::parse_error& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: …": from the place on.
    const std::string what = error.what();
    const std::size_t place = what.find("line ");
    throw TopologyError(name + ": " + (place == std::string::npos ? what : what.substr(place)) +
                        "; expected JSON");
  } catch (const ParsedJson::exception& error) {
    throw TopologyError(name + ": " + error.what() + "; expected JSON");
  }
  const Fields file(document, name, "",
                    {"kind", "version", "source", "sources", "comment", "sockets", "memories",
                     "gpus", "nics", "disks", "hubs", "links", "warnings"});
  if (file.text("kind") != "weft-machine")
    file.fail("kind", "expected \"weft-machine\", which marks a weft machine file");
  if (const auto version = file.integer("version", 1, 0, 1 << 20); version != 1)
    file.fail("version", std::to_string(version) + " is not known; expected 1");
  Machine machine = read_lists(file);
  machine.source = file.text("source");
  if (!file.find("source")) machine.source = name;
  check_machine(machine);
  return machine;
}

}  // namespace weft
