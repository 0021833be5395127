#include "topology/machine_diff.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "topology/describe.hpp"
#include "topology/machine_file.hpp"
#include "topology/names.hpp"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

void compare_fields(const std::string& id, const Json& before, const Json& after,
                    std::vector<std::string>& lines) {
  const auto value = [](const Json& json, const std::string& key) {
    const auto found = json.find(key);
    return found == json.end() ? std::string("nothing") : found->dump();
  };
  Json keys = before;
  keys.update(after);
  for (const auto& [key, unused] : keys.items()) {
    static_cast<void>(unused);
    if (key == "id") continue;
    const std::string a = value(before, key), b = value(after, key);
    if (a != b) lines.push_back(id + "." + key + ": " + a + " -> " + b);
  }
}

void compare_lists(const Machine& before, const Machine& after, const Json& a, const Json& b,
                   const char* list, std::vector<std::string>& lines) {
  const Json& left = a[list];
  const Json& right = b[list];
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const std::string id = (i < left.size() ? left : right)[i]["id"];
    const Node node = *parse_node(id);
    if (i >= right.size())
      lines.push_back("- " + describe(before, node));
    else if (i >= left.size())
      lines.push_back("+ " + describe(after, node));
    else
      compare_fields(id, left[i], right[i], lines);
  }
}

void compare_links(const Machine& before, const Machine& after, std::vector<std::string>& lines) {
  using Key = std::tuple<LinkKind, Node, Node>;
  std::map<Key, std::pair<std::vector<const Link*>, std::vector<const Link*>>> links;
  const auto key = [](const Link& link) {
    return Key(link.kind, std::min(link.a, link.b), std::max(link.a, link.b));
  };
  for (const Link& link : before.links) links[key(link)].first.push_back(&link);
  for (const Link& link : after.links) links[key(link)].second.push_back(&link);
  for (const auto& [unused, pair] : links) {
    static_cast<void>(unused);
    const auto& [left, right] = pair;
    for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
      const Link& one = i < left.size() ? *left[i] : *right[i];
      const std::string ends = to_string(one.a) + "-" + to_string(one.b) + " ";
      if (i >= right.size())
        lines.push_back("- " + ends + describe(one));
      else if (i >= left.size())
        lines.push_back("+ " + ends + describe(one));
      else if (!(*left[i] == *right[i]))
        lines.push_back(ends + describe(*left[i]) + " -> " + describe(*right[i]));
    }
  }
}

}  // namespace

std::vector<std::string> differences(const Machine& before, const Machine& after) {
  const Json a = Json::parse(write_machine_file(before)),
             b = Json::parse(write_machine_file(after));
  std::vector<std::string> lines;
  for (const char* list : {"sockets", "memories", "gpus", "nics", "disks", "hubs"})
    compare_lists(before, after, a, b, list, lines);
  compare_links(before, after, lines);
  return lines;
}

}  // namespace weft
