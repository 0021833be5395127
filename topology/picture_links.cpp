#include "topology/picture_links.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "topology/names.hpp"
#include "topology/quantity.hpp"

namespace weft {
namespace {

using LinkKey = std::tuple<LinkKind, double, double, std::uint32_t>;
LinkKey key_of(const Link& link) {
  return {link.kind, link.bytes_per_second[0], link.bytes_per_second[1], link.width};
}

double arc_height(const Picture::Box& a, const Picture::Box& b) {
  return 30 + 0.16 * std::abs(a.middle() - b.middle());
}

}  // namespace

std::string rate_text(const Link& link) {
  return std::string(link.provenance == Provenance::Assumed ? "~" : "") +
         format_rate(link.bytes_per_second[0]);
}

std::vector<std::vector<const Link*>> take_cliques(std::vector<const Link*>& links, NodeKind kind,
                                                   std::size_t least) {
  std::map<LinkKey, std::vector<const Link*>> equal;
  for (const Link* link : links)
    if (link->a.kind == kind && link->b.kind == kind) equal[key_of(*link)].push_back(link);
  std::vector<std::vector<const Link*>> found;
  for (auto& [key, group] : equal) {
    std::map<Node, std::set<Node>> next;
    for (const Link* link : group) next[link->a].insert(link->b), next[link->b].insert(link->a);
    std::set<Node> done;
    for (const auto& [start, others] : next) {
      if (done.count(start)) continue;
      std::set<Node> part = others;
      part.insert(start);
      const bool is_complete =
          part.size() >= least && std::all_of(part.begin(), part.end(), [&](Node n) {
            std::set<Node> reach = next[n];
            reach.insert(n);
            return reach == part;
          });
      done.insert(start);
      if (!is_complete) continue;
      done.insert(part.begin(), part.end());
      std::vector<const Link*> clique;
      for (const Link* link : group)
        if (part.count(link->a) && part.count(link->b)) clique.push_back(link);
      found.push_back(std::move(clique));
    }
  }
  for (const auto& clique : found)
    for (const Link* link : clique) std::erase(links, link);
  return found;
}

double lay_out_fabric(const Machine& machine, const std::set<Node>& nodes, Picture::Host& host,
                      double bottom) {
  std::vector<double> bar_right;
  double gpu_bottom = bottom;
  for (const auto& [index, box] : host.gpus) gpu_bottom = box.bottom();
  std::vector<const Link*> links;
  std::map<std::uint32_t, std::vector<const Link*>> switches;
  for (const Link& link : machine.links) {
    if (!is_fabric(link.kind) || !nodes.count(link.a)) continue;
    const auto is_uplink = [&](Node n) {
      const auto found = host.uplink.find(n);
      return found != host.uplink.end() && found->second == &link;
    };
    if (is_uplink(link.a) || is_uplink(link.b)) continue;
    const Node* hub = link.a.kind == NodeKind::Hub   ? &link.a
                      : link.b.kind == NodeKind::Hub ? &link.b
                                                     : nullptr;
    if (hub)
      switches[hub->index].push_back(&link);
    else
      links.push_back(&link);
  }
  double y = bottom + 30;
  const auto add_bar = [&](Picture::Bar bar) {
    double left = 1e9, right = 0;
    for (const Node end : bar.ends) {
      const auto box = host.gpus.find(end.index);
      if (end.kind != NodeKind::Gpu || box == host.gpus.end()) continue;
      left = std::min(left, box->second.x);
      right = std::max(right, box->second.right());
    }
    if (right == 0) return;
    const double least = 7.0 * static_cast<double>(bar.label.size()) + 20;
    if (right - left < least)
      left = std::max(0.0, (left + right - least) / 2), right = left + least;
    bar.box = {left, y, right - left, Picture::kBarHeight};
    // Bars side by side share a line.
    for (double& taken : bar_right) {
      const double line =
          bottom + 30 + Picture::kBarStep * static_cast<double>(&taken - bar_right.data());
      if (left <= taken) continue;
      bar.box.y = line;
      taken = right;
      host.bars.push_back(std::move(bar));
      return;
    }
    bar.box.y = bottom + 30 + Picture::kBarStep * static_cast<double>(bar_right.size());
    bar_right.push_back(right);
    host.bars.push_back(std::move(bar));
    y = bar.box.y;
  };
  for (const auto& [index, group] : switches) {
    Picture::Bar bar;
    bar.link = group.front();
    bool is_even = true;
    for (const Link* link : group) {
      is_even &= key_of(*link) == key_of(*bar.link);
      bar.ends.push_back(link->a.kind == NodeKind::Hub ? link->b : link->a);
    }
    const std::string& name = machine.hubs[index].name;
    const std::size_t several = name.find(" NVSwitches");
    bar.label = to_string(Node(HubId{index})) + "  " +
                (several == std::string::npos ? "NVSwitch" : name.substr(0, several + 11));
    if (is_even) bar.label += ", " + rate_text(*bar.link) + " for each GPU";
    add_bar(std::move(bar));
  }
  for (const auto& clique : take_cliques(links, NodeKind::Gpu, 3)) {
    Picture::Bar bar;
    bar.link = clique.front();
    std::set<Node> ends;
    for (const Link* link : clique) ends.insert(link->a), ends.insert(link->b);
    bar.ends.assign(ends.begin(), ends.end());
    bar.label =
        std::string(to_string(bar.link->kind)) + " between every two: " + rate_text(*bar.link);
    if (bar.link->width)
      bar.label +=
          ", " + std::to_string(bar.link->width) + (bar.link->width == 1 ? " link" : " links");
    add_bar(std::move(bar));
  }
  if (!bar_right.empty()) bottom += 30 + Picture::kBarStep * static_cast<double>(bar_right.size());
  host.arcs_top = host.bars.empty() ? bottom : gpu_bottom;
  double height = 0;
  for (const Link* link : links) {
    host.arcs.push_back(link);
    const auto a = host.gpus.find(link->a.index), b = host.gpus.find(link->b.index);
    if (link->a.kind != NodeKind::Gpu || link->b.kind != NodeKind::Gpu) continue;
    if (a == host.gpus.end() || b == host.gpus.end()) continue;
    height = std::max(height, arc_height(a->second, b->second));
  }
  host.arcs_height = height;
  bottom = std::max(bottom, gpu_bottom + 0.75 * height + (height > 0 ? 10 : 0));
  return bottom;
}

}  // namespace weft
