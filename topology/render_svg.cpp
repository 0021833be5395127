#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "topology/describe.hpp"
#include "topology/names.hpp"
#include "topology/picture.hpp"
#include "topology/quantity.hpp"
#include "topology/render.hpp"
#include "topology/svg_canvas.hpp"

namespace weft {
namespace {

using Box = Picture::Box;

constexpr SvgStyle kSocket{"#e0edff", "#2458a6"}, kMemory{"#ffffff", "#2458a6"},
    kGpu{"#dff5e3", "#1b7a3d"}, kHub{"#eef0f3", "#5b6573"}, kNic{"#ffeeda", "#b65a12"},
    kDisk{"#ececec", "#6a6a6a"}, kFabric{"#c8ecd2", "#1b7a3d"}, kXgmiFabric{"#f8d9dd", "#c8283c"},
    kNetwork{"#ffe3c2", "#b65a12"}, kFrame{"#fafbfc", "#c4cad3"};

class SvgWriter {
 public:
  explicit SvgWriter(const Machine& machine)
      : m_(machine), picture_(lay_out(machine)), canvas_(picture_.width, picture_.height) {}

  std::string write() {
    begin();
    for (const Picture::Host& host : picture_.hosts) {
      if (picture_.hosts.size() + picture_.hidden_hosts > 1) rect(host.frame, kFrame, 10);
      for (const auto& [node, link] : host.uplink) uplink(host, node, *link);
      socket_links(host);
      arcs(host);
      bars(host);
      for (const Picture::Place& p : host.places) place(p);
      shared_memories(host);
      for (const Picture::Hub& hub : host.hubs) pill(hub);
      for (const auto& [index, box] : host.gpus) gpu(index, box);
      for (const Picture::Column& column : host.columns) chips(column);
      labels_of_uplinks(host);
    }
    network();
    legend();
    return canvas_.finish();
  }

 private:
  void begin() {
    text(24, 40, fitted(m_.source, picture_.width - 48, 20), 20, "start", "#111827", true);
    text(24, 62, fitted(summary(m_), picture_.width - 48, 13), 13, "start", "#4b5563");
  }

  static std::string fitted(std::string text, double width, double size) {
    return fitted_text(std::move(text), width, size);
  }
  void rect(const Box& box, SvgStyle style, double radius) { canvas_.rect(box, style, radius); }
  void text(double x, double y, const std::string& content, double size, const char* anchor,
            const char* colour, bool bold = false) {
    canvas_.text(x, y, content, size, anchor, colour, bold);
  }

  static const Box* box_of(const Picture::Host& host, Node n) {
    if (n.kind == NodeKind::Gpu) {
      const auto found = host.gpus.find(n.index);
      return found == host.gpus.end() ? nullptr : &found->second;
    }
    for (const Picture::Place& place : host.places)
      if (place.node == n) return &place.box;
    if (n.kind == NodeKind::Hub)
      for (const Picture::Hub& hub : host.hubs)
        if (hub.hub.value == n.index) return &hub.box;
    return nullptr;
  }

  /// Where the line up from a box of a place's width begins: straight above, if that is in reach.
  static double above(const Box& parent, double x, bool is_place) {
    return is_place ? std::clamp(x, parent.x + 8, parent.right() - 8) : parent.middle();
  }

  void uplink(const Picture::Host& host, Node node, const Link& link) {
    const Node parent = host.parent.at(node);
    const Box* from = box_of(host, parent);
    const Box* to = box_of(host, node);
    if (!from || !to) return;
    const bool is_place = parent.kind == NodeKind::Socket || from->height > 40;
    const double x = above(*from, to->middle(), is_place);
    canvas_.line(x, from->bottom(), to->middle(), to->y, link);
  }

  void labels_of_uplinks(const Picture::Host& host) {
    for (const auto& [node, link] : host.uplink) {
      const Box* to = box_of(host, node);
      if (!to || link->kind == LinkKind::Bus) continue;
      canvas_.label(to->middle(), to->y - 10, rate_label(*link), colour_of(link->kind));
    }
    for (const Picture::Column& column : host.columns) {
      const Box* from = box_of(host, column.parent);
      if (!from) continue;
      const Link* fastest = nullptr;
      for (const Node n : column.shown) {
        const Link* link = host.uplink.at(n);
        if (!fastest || link->bytes_per_second[0] > fastest->bytes_per_second[0]) fastest = link;
      }
      canvas_.label(column.box.middle(), column.box.y - 10, rate_label(*fastest),
                    colour_of(fastest->kind));
    }
  }

  void place(const Picture::Place& p) {
    rect(p.box, kSocket, 8);
    std::string title = to_string(p.node), detail;
    if (p.node.kind == NodeKind::Socket) {
      const Socket& socket = m_.sockets[p.node.index];
      if (!socket.model.empty()) title += "  " + short_model(socket.model);
      detail =
          std::to_string(socket.cores.size()) + (socket.cores.size() == 1 ? " core" : " cores");
      if (socket.cpus.size() != socket.cores.size())
        detail += ", " + std::to_string(socket.cpus.size()) + " threads";
      for (const Cache& cache : socket.caches)
        if (cache.level == 3)
          detail += ", L3 " + (cache.count > 1 ? std::to_string(cache.count) + " x " : "") +
                    format_bytes(cache.bytes);
    } else {
      title += "  package";
      detail = "no core that may be used";
    }
    text(p.box.middle(), p.box.y + 20, fitted(title, p.box.width - 16, 14), 14, "middle",
         kSocket.line, true);
    text(p.box.middle(), p.box.y + 37, fitted(detail, p.box.width - 16, 11.5), 11.5, "middle",
         "#374151");
    const std::size_t rows = p.memories.size() > 1 ? 2 : 1;
    const std::size_t per_row = (p.memories.size() + rows - 1) / rows;
    for (std::size_t i = 0; i < p.memories.size(); ++i) {
      const std::size_t row = i / per_row, column = i % per_row;
      const std::size_t in_row = std::min(per_row, p.memories.size() - row * per_row);
      const double width = std::min(150.0, (p.box.width - 16) / static_cast<double>(in_row) - 6);
      const double left = p.box.middle() - (width + 6) * static_cast<double>(in_row) / 2 + 3;
      memory(p.memories[i], {left + static_cast<double>(column) * (width + 6),
                             p.box.y + 48 + static_cast<double>(row) * 26, width, 22});
    }
  }

  void memory(MemoryId id, const Box& box) {
    const Memory& memory = m_.memories[id.value];
    rect(box, kMemory, 4);
    std::string content =
        to_string(Node(id)) + " " + (memory.kind == MemoryKind::Dram ? "" : to_string(memory.kind));
    if (memory.bytes) content += (content.back() == ' ' ? "" : " ") + format_bytes(memory.bytes);
    text(box.middle(), box.y + 15, fitted(content, box.width - 6, 11), 11, "middle", "#1f2937");
  }

  void shared_memories(const Picture::Host& host) {
    double x = host.shared_band.x;
    for (const MemoryId id : host.shared_memories) {
      const Box box{x, host.shared_band.y, 150, 22};
      for (const Link& link : m_.links)
        if (link.a == Node(id) || link.b == Node(id))
          if (const Box* place = box_of(host, link.a == Node(id) ? link.b : link.a))
            canvas_.line(box.middle(), box.bottom(),
                         std::clamp(box.middle(), place->x + 10, place->right() - 10), place->y,
                         link);
      memory(id, box);
      x += 160;
    }
  }

  void pill(const Picture::Hub& hub) {
    rect(hub.box, kHub, 11);
    const std::string kind =
        m_.hubs[hub.hub.value].kind == HubKind::PcieSwitch ? " switch" : " bridge";
    text(hub.box.middle(), hub.box.y + 15, to_string(Node(hub.hub)) + kind, 11, "middle",
         "#374151");
  }

  void gpu(std::uint32_t index, const Box& box) {
    const Gpu& gpu = m_.gpus[index];
    rect(box, kGpu, 6);
    text(box.middle(), box.y + 18, to_string(Node(GpuId{index})), 14, "middle", kGpu.line, true);
    std::string model = short_model(gpu.model);
    text(box.middle(), box.y + 35, fitted(model.empty() ? gpu.vendor : model, box.width - 8, 11),
         11, "middle", "#1f2937");
    if (!gpu.memory.is_valid()) return;
    const Memory& memory = m_.memories[gpu.memory.value];
    std::string size = memory.kind == MemoryKind::Gpu ? "" : "uses " + to_string(Node(gpu.memory));
    if (size.empty() && memory.bytes) size = format_bytes(memory.bytes);
    text(box.middle(), box.y + 52, size, 11, "middle", "#4b5563");
  }

  [[nodiscard]] std::string nic_name(Node n) const {
    const std::string& name = m_.nics[n.index].name;
    return name == to_string(n) ? name : to_string(n) + " " + name;
  }

  void chips(const Picture::Column& column) {
    double y = column.box.y;
    const auto chip = [&](const std::string& content, SvgStyle style) {
      const Box box{column.box.x, y, column.box.width, 22};
      rect(box, style, 4);
      text(box.middle(), y + 15, fitted(content, box.width - 6, 11), 11, "middle", "#374151");
      y += 26;
    };
    for (const Node n : column.shown)
      chip(n.kind == NodeKind::Nic ? nic_name(n) : m_.disks[n.index].name,
           n.kind == NodeKind::Nic ? kNic : kDisk);
    if (column.hidden > 0) chip(std::to_string(column.hidden) + " more", kDisk);
  }

  void socket_links(const Picture::Host& host) {
    for (const Picture::Column& column : host.columns)
      if (const Box* from = box_of(host, column.parent)) {
        const Link& link = *host.uplink.at(column.shown.front());
        const bool is_place = from->height > 40;
        canvas_.line(above(*from, column.box.middle(), is_place), from->bottom(),
                     column.box.middle(), column.box.y, link);
      }
    if (host.places.size() == 2) {
      for (const Link& link : m_.links) {
        const Box* a = box_of(host, link.a);
        const Box* b = box_of(host, link.b);
        if (link.kind != LinkKind::Socket || !a || !b) continue;
        const double y = a->y + a->height / 2;
        canvas_.line(a->right(), y, b->x, y, link);
        canvas_.label((a->right() + b->x) / 2, y - 12, rate_label(link) + " GB/s",
                      colour_of(link.kind));
      }
    }
    for (const Picture::Bar& bar : host.socket_bars) {
      for (const Node end : bar.ends)
        if (const Box* box = box_of(host, end)) {
          // In a grid only the first row touches the bar.
          if (box->y < bar.box.bottom() + 60)
            canvas_.line(box->middle(), bar.box.bottom(), box->middle(), box->y, *bar.link);
        }
      rect(bar.box, kSocket, 5);
      text(bar.box.middle(), bar.box.y + 15, fitted(bar.label, bar.box.width - 10, 11.5), 11.5,
           "middle", "#1f2937");
    }
  }

  void bars(const Picture::Host& host) {
    for (const Picture::Bar& bar : host.bars)
      for (const Node end : bar.ends)
        if (const Box* box = box_of(host, end))
          canvas_.line(box->middle(), box->bottom(), box->middle(), bar.box.y + 4, *bar.link);
    for (const Picture::Bar& bar : host.bars) {
      const SvgStyle style = bar.link->kind == LinkKind::Xgmi ? kXgmiFabric : kFabric;
      rect(bar.box, style, 5);
      text(bar.box.middle(), bar.box.y + 15, fitted(bar.label, bar.box.width - 8, 11.5), 11.5,
           "middle", "#1f2937");
    }
  }

  /// Places on a GPU's lower edge for the arcs that end there, in the order of their other ends.
  double port(const Picture::Host& host, const Link& link, Node end) const {
    const Box& box = *box_of(host, end);
    std::vector<std::pair<double, const Link*>> ports;
    for (const Link* other : host.arcs) {
      if (other->a != end && other->b != end) continue;
      const Box* far = box_of(host, other->a == end ? other->b : other->a);
      if (far) ports.emplace_back(far->middle(), other);
    }
    std::sort(ports.begin(), ports.end());
    for (std::size_t i = 0; i < ports.size(); ++i)
      if (ports[i].second == &link)
        return box.x +
               box.width * (static_cast<double>(i) + 1) / (static_cast<double>(ports.size()) + 1);
    return box.middle();
  }

  void arcs(const Picture::Host& host) {
    std::set<double> seen;
    const bool is_crowded = host.arcs.size() > 20;
    for (const Link* link : host.arcs) {
      const Box* a = box_of(host, link->a);
      const Box* b = box_of(host, link->b);
      if (!a || !b) continue;
      if (link->a.kind != NodeKind::Gpu && link->b.kind != NodeKind::Gpu) {
        const double y = a->y, top = y - 18 - 0.06 * std::abs(a->middle() - b->middle());
        canvas_.curve(a->middle() + 14, y, top, b->middle() - 14, b->y, *link);
        canvas_.label((a->middle() + b->middle()) / 2, 0.25 * y + 0.75 * top, rate_label(*link),
                      colour_of(link->kind));
      } else if (link->a.kind == NodeKind::Gpu && link->b.kind == NodeKind::Gpu) {
        const double y = a->bottom(), low = y + 30 + 0.16 * std::abs(a->middle() - b->middle());
        const double xa = port(host, *link, link->a), xb = port(host, *link, link->b);
        canvas_.curve(xa, y, low, xb, b->bottom(), *link);
        if (!is_crowded)
          canvas_.label((xa + xb) / 2, 0.25 * y + 0.75 * low, rate_label(*link),
                        colour_of(link->kind));
      } else {
        // A GPU's own link to its socket, beside the PCIe one.
        const Box& gpu = link->a.kind == NodeKind::Gpu ? *a : *b;
        const Box& socket = link->a.kind == NodeKind::Gpu ? *b : *a;
        const double x = gpu.right() - 16;
        canvas_.line(std::clamp(x, socket.x + 8, socket.right() - 8), socket.bottom(), x, gpu.y,
                     *link);
        canvas_.label(x, gpu.y - 24, rate_label(*link), colour_of(link->kind));
      }
    }
    if (!is_crowded) return;
    for (const Link* link : host.arcs)
      if (seen.insert(link->bytes_per_second[0]).second &&
          crowded_note_.find(rate_label(*link)) == std::string::npos)
        crowded_note_ += (crowded_note_.empty() ? "" : ", ") + std::string(to_string(link->kind)) +
                         " " + rate_label(*link);
  }

  void network() {
    if (picture_.network_y <= 0) return;
    const Box bar{24, picture_.network_y, picture_.width - 48, 22};
    for (const Picture::Host& host : picture_.hosts) {
      std::size_t ports = 0;
      const Link* one = nullptr;
      for (const Link& link : m_.links) {
        if (link.kind != LinkKind::Network) continue;
        for (const Node end : {link.a, link.b})
          if (end.kind == NodeKind::Nic && host.parent.count(end)) ++ports, one = &link;
      }
      if (!one) continue;
      const bool is_left = host.frame.x < 40;
      const double x = is_left ? host.frame.x - 12 : host.frame.right() + 12;
      const double y = host.frame.bottom() - 24;
      const double edge = is_left ? host.frame.x : host.frame.right();
      canvas_.path("M" + SvgCanvas::number(edge) + " " + SvgCanvas::number(y) + " L" +
                       SvgCanvas::number(x) + " " + SvgCanvas::number(y) + " L" +
                       SvgCanvas::number(x) + " " + SvgCanvas::number(bar.y + 4),
                   *one);
      canvas_.label(host.frame.middle(), host.frame.bottom() - 1,
                    std::to_string(ports) + " x " + rate_label(*one) + " GB/s to the network",
                    colour_of(one->kind));
    }
    rect(bar, kNetwork, 5);
    std::string content = "network";
    if (picture_.hidden_hosts > 0)
      content += ", to " + std::to_string(picture_.hidden_hosts) + " more hosts";
    text(bar.middle(), bar.y + 15, content, 12, "middle", "#1f2937");
  }

  void legend() {
    const double y = picture_.height - 20;
    double x = 24;
    std::set<LinkKind> kinds;
    for (const Link& link : m_.links) kinds.insert(link.kind);
    for (const LinkKind kind : kinds) {
      if (kind == LinkKind::Bus || kind == LinkKind::Disk) continue;
      canvas_.sample(x, y - 4, kind);
      text(x + 28, y, to_string(kind), 11.5, "start", "#374151");
      x += 40 + 7.0 * static_cast<double>(std::string(to_string(kind)).size());
    }
    std::string note = "figures in GB/s per direction, ~ assumed; thicker is faster";
    if (!crowded_note_.empty()) note += "; arcs: " + crowded_note_;
    text(x + 6, y, fitted(note, picture_.width - x - 20, 11.5), 11.5, "start", "#6b7280");
  }

  const Machine& m_;
  const Picture picture_;
  SvgCanvas canvas_;
  std::string crowded_note_;
};

}  // namespace

std::string render_svg(const Machine& machine) {
  return SvgWriter(machine).write();
}

}  // namespace weft
