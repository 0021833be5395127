#include "topology/machine_match.hpp"

#include <algorithm>

#include "topology/names.hpp"

namespace weft {
namespace {

constexpr std::string_view kLinks = "link:";
constexpr NodeKind kKinds[] = {NodeKind::Socket, NodeKind::Memory, NodeKind::Gpu,
                               NodeKind::Hub,    NodeKind::Nic,    NodeKind::Disk};

std::size_t count_of(const Machine& machine, NodeKind kind) {
  const std::size_t counts[] = {machine.sockets.size(), machine.memories.size(),
                                machine.gpus.size(),    machine.hubs.size(),
                                machine.nics.size(),    machine.disks.size()};
  return counts[static_cast<std::size_t>(kind)];
}

/// `2 sockets, 4 mems, …` as far as there are any.
std::string inventory(const Machine& machine) {
  std::string text;
  const auto say = [&](std::size_t count, std::string name) {
    if (count == 0) return;
    text += (text.empty() ? "" : ", ") + name + "0" +
            (count > 1 ? " to " + name + std::to_string(count - 1) : "");
  };
  for (const NodeKind kind : kKinds) {
    std::string name = to_string(Node(kind, 0));
    name.pop_back();
    say(count_of(machine, kind), name);
  }
  say(machine.links.size(), "link");
  return text.empty() ? "nothing" : text;
}

std::string kinds_of_links(const Machine& machine) {
  std::vector<std::string> kinds;
  for (const Link& link : machine.links)
    if (std::find(kinds.begin(), kinds.end(), to_string(link.kind)) == kinds.end())
      kinds.emplace_back(to_string(link.kind));
  std::string text;
  for (const std::string& kind : kinds) text += (text.empty() ? "" : ", ") + kind;
  return text.empty() ? "no links" : "links of kind " + text;
}

bool link_fits(const Link& link, std::string_view pattern) {
  const std::string a = to_string(link.a), b = to_string(link.b);
  return fits(pattern, to_string(link.kind)) || fits(pattern, a + "-" + b) ||
         fits(pattern, b + "-" + a);
}

Things by_pattern(const Machine& machine, const std::string& text) {
  Things things;
  for (const NodeKind kind : kKinds)
    for (std::uint32_t i = 0; i < count_of(machine, kind); ++i)
      if (fits(text, to_string(Node(kind, i)))) things.nodes.emplace_back(kind, i);
  for (std::uint32_t i = 0; i < machine.links.size(); ++i)
    if (fits(text, "link" + std::to_string(i))) things.links.push_back(LinkId{i});
  if (things.nodes.empty() && things.links.empty())
    refuse_thing(text, "fits nothing; the machine has " + inventory(machine));
  return things;
}

}  // namespace

void refuse_thing(const std::string& text, const std::string& what) {
  throw TopologyError("\"" + text + "\": " + what);
}

bool fits(std::string_view pattern, std::string_view text) {
  // The last star takes one character more whenever what follows it does not fit.
  std::size_t p = 0, t = 0, star = std::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Things find_things(const Machine& machine, const std::string& text) {
  Things things;
  if (text.starts_with(kLinks)) {
    const std::string_view pattern = std::string_view(text).substr(kLinks.size());
    for (std::uint32_t i = 0; i < machine.links.size(); ++i)
      if (link_fits(machine.links[i], pattern)) things.links.push_back(LinkId{i});
    if (things.links.empty())
      refuse_thing(text, "fits no link; the machine has " + kinds_of_links(machine));
    return things;
  }
  if (text.find('*') != std::string::npos) return by_pattern(machine, text);
  if (const auto node = parse_node(text)) {
    if (const std::size_t count = count_of(machine, node->kind); node->index >= count)
      refuse_thing(text,
                   "is not there; the machine has " + std::to_string(count) + " of that kind");
    things.nodes.push_back(*node);
  } else if (const auto link = parse_link_id(text)) {
    if (link->value >= machine.links.size())
      refuse_thing(
          text, "is not there; the machine has " + std::to_string(machine.links.size()) + " links");
    things.links.push_back(*link);
  } else {
    refuse_thing(text,
                 "is no id such as gpu0, mem1, link3, and no pattern such as gpu*, link:nvlink*");
  }
  return things;
}

}  // namespace weft
