#include <algorithm>
#include <cmath>
#include <cstdio>

#include "topology/describe.hpp"
#include "topology/names.hpp"
#include "topology/render.hpp"

namespace weft {
namespace {

std::string dot_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + '"';
}

void add_nodes(const Machine& machine, NodeKind kind, std::size_t count, const char* shape,
               const char* fill, std::string& text) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const Node node(kind, i);
    text += "  " + to_string(node) + " [shape=" + shape + ", fillcolor=" + dot_text(fill) +
            ", label=" + dot_text(describe(machine, node)) + "];\n";
  }
}

}  // namespace

std::string render_dot(const Machine& machine) {
  std::string text =
      "graph machine {\n  label=" + dot_text(machine.source + ": " + summary(machine)) +
      ";\n  node [style=filled, fontname=Helvetica];\n  edge [fontname=Helvetica];\n";
  add_nodes(machine, NodeKind::Socket, machine.sockets.size(), "box", "#e0edff", text);
  add_nodes(machine, NodeKind::Memory, machine.memories.size(), "note", "#ffffff", text);
  add_nodes(machine, NodeKind::Gpu, machine.gpus.size(), "box3d", "#dff5e3", text);
  add_nodes(machine, NodeKind::Hub, machine.hubs.size(), "ellipse", "#eef0f3", text);
  add_nodes(machine, NodeKind::Nic, machine.nics.size(), "cds", "#ffeeda", text);
  add_nodes(machine, NodeKind::Disk, machine.disks.size(), "cylinder", "#ececec", text);
  // A GPU's memory has no link: it is where the GPU is.
  for (std::uint32_t i = 0; i < machine.gpus.size(); ++i)
    if (machine.gpus[i].memory.is_valid())
      text += "  " + to_string(Node(GpuId{i})) + " -- " + to_string(Node(machine.gpus[i].memory)) +
              " [style=dotted];\n";
  for (const Link& link : machine.links) {
    const double rate = std::max(link.bytes_per_second[0], link.bytes_per_second[1]) / 2e9;
    char width[32];
    std::snprintf(width, sizeof width, "%.1f", rate <= 1 ? 1.0 : 1 + std::log2(rate));
    text += "  " + to_string(link.a) + " -- " + to_string(link.b) + " [penwidth=" + width +
            ", label=" + dot_text(describe(link)) + "];\n";
  }
  return text + "}\n";
}

}  // namespace weft
