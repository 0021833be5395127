#include "topology/names.hpp"

#include <charconv>
#include <cstdio>

namespace weft {
namespace {

constexpr const char* kMemoryKinds[] = {"dram", "hbm", "pmem", "cxl", "gpu", "disk"};
constexpr const char* kLinkKinds[] = {"bus", "pcie",   "nvlink", "xgmi",
                                      "c2c", "socket", "disk",   "network"};
constexpr const char* kHubKinds[] = {"host_bridge", "pcie_switch", "nvswitch", "package",
                                     "network"};
constexpr const char* kProvenances[] = {"assumed", "reported", "measured"};

template <class Kind, std::size_t N>
std::optional<Kind> find_kind(const char* const (&names)[N], std::string_view text) {
  for (std::size_t i = 0; i < N; ++i)
    if (text == names[i]) return static_cast<Kind>(i);
  return std::nullopt;
}

bool take_number(std::string_view& text, std::uint32_t& value, int base, std::uint32_t most) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (result.ec != std::errc() || value > most) return false;
  text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  return true;
}

std::optional<std::uint32_t> index_after(std::string_view text, std::string_view prefix) {
  std::uint32_t index = 0;
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  if (!take_number(text, index, 10, Id<void>::kNone - 1) || !text.empty()) return std::nullopt;
  return index;
}

}  // namespace

const char* to_string(MemoryKind kind) {
  return kMemoryKinds[static_cast<std::size_t>(kind)];
}
const char* to_string(LinkKind kind) {
  return kLinkKinds[static_cast<std::size_t>(kind)];
}
const char* to_string(HubKind kind) {
  return kHubKinds[static_cast<std::size_t>(kind)];
}
const char* to_string(Provenance p) {
  return kProvenances[static_cast<std::size_t>(p)];
}

std::string to_string(const PciAddress& a) {
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", a.domain, a.bus, a.device, a.function);
  return text;
}

std::optional<MemoryKind> parse_memory_kind(std::string_view text) {
  return find_kind<MemoryKind>(kMemoryKinds, text);
}
std::optional<LinkKind> parse_link_kind(std::string_view text) {
  return find_kind<LinkKind>(kLinkKinds, text);
}
std::optional<HubKind> parse_hub_kind(std::string_view text) {
  return find_kind<HubKind>(kHubKinds, text);
}
std::optional<Provenance> parse_provenance(std::string_view text) {
  return find_kind<Provenance>(kProvenances, text);
}

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  std::uint32_t parts[3] = {0, 0, 0};
  int count = 0;
  while (true) {
    if (count == 3 || !take_number(text, parts[count], 16, 0xffffffffu)) return std::nullopt;
    ++count;
    if (text.empty() || text[0] != ':') break;
    text.remove_prefix(1);
  }
  std::uint32_t function = 0;
  if (!text.empty()) {
    if (text[0] != '.') return std::nullopt;
    text.remove_prefix(1);
    if (!take_number(text, function, 16, 0xff) || !text.empty()) return std::nullopt;
  }
  if (count < 2) return std::nullopt;
  const int first = 3 - count;  // without a domain the parts move up
  PciAddress address;
  address.domain = first == 0 ? parts[0] : 0;
  const std::uint32_t bus = parts[count - 2], device = parts[count - 1];
  if (bus > 0xff || device > 0xff) return std::nullopt;
  address.bus = static_cast<std::uint8_t>(bus);
  address.device = static_cast<std::uint8_t>(device);
  address.function = static_cast<std::uint8_t>(function);
  return address;
}

std::optional<Node> parse_node(std::string_view text) {
  static constexpr std::pair<std::string_view, NodeKind> kPrefixes[] = {
      {"socket", NodeKind::Socket}, {"mem", NodeKind::Memory}, {"gpu", NodeKind::Gpu},
      {"hub", NodeKind::Hub},       {"nic", NodeKind::Nic},    {"disk", NodeKind::Disk}};
  for (const auto& [prefix, kind] : kPrefixes)
    if (const auto index = index_after(text, prefix)) return Node(kind, *index);
  return std::nullopt;
}

std::optional<LinkId> parse_link_id(std::string_view text) {
  if (const auto index = index_after(text, "link")) return LinkId{*index};
  return std::nullopt;
}

std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto at = [&](std::size_t k) {
      return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u;
    };
    const unsigned first = at(i);
    std::size_t length = 0;
    if (first >= 0x20 && first < 0x7f) length = 1;
    if (first >= 0xc2 && first < 0xe0) length = 2;
    if (first >= 0xe0 && first < 0xf0) length = 3;
    if (first >= 0xf0 && first < 0xf5) length = 4;
    for (std::size_t k = 1; k < length; ++k)
      if ((at(i + k) & 0xc0) != 0x80) length = 0;
    // Overlong forms, surrogates, and what lies beyond the last code point.
    const unsigned second = at(i + 1);
    if (length > 1 && ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                       (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)))
      length = 0;
    if (length == 0) {
      text[i] = '?';
      length = 1;
    }
    i += length;
  }
  return text;
}

}  // namespace weft
