#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// Where everything of a machine's picture goes, in pixels. Worked out by `lay_out`, drawn by
/// `render_svg`.
struct Picture {
  struct Box {
    double x = 0, y = 0, width = 0, height = 0;
    [[nodiscard]] double middle() const { return x + width / 2; }
    [[nodiscard]] double bottom() const { return y + height; }
    [[nodiscard]] double right() const { return x + width; }
  };

  /// A socket or package with what hangs below it.
  struct Place {
    Node node;
    Box box;
    std::vector<MemoryId> memories;  ///< drawn as chips inside
  };
  struct Hub {
    HubId hub;
    Box box;
  };
  /// A column of small things (adapters, disks) that share a parent; only so many are shown.
  struct Column {
    Node parent;
    Box box;
    std::vector<Node> shown;
    std::size_t hidden = 0;
  };
  static constexpr double kBarHeight = 22, kBarStep = 34;
  /// A bar that stands for a switch, or for links between every two of some nodes.
  struct Bar {
    Box box;
    std::string label;
    std::vector<Node> ends;
    const Link* link = nullptr;  ///< one of those it stands for
  };
  struct Host {
    Box frame;
    std::vector<Place> places;
    std::vector<MemoryId> shared_memories;  ///< near several places: above them
    Box shared_band;
    std::vector<Hub> hubs;
    std::map<std::uint32_t, Box> gpus;  ///< by index
    std::vector<Column> columns;
    std::vector<Bar> bars;          ///< fabric below the GPUs
    std::vector<Bar> socket_bars;   ///< above the places
    std::vector<const Link*> arcs;  ///< fabric links drawn one by one
    double arcs_top = 0, arcs_height = 0;
    std::map<Node, const Link*> uplink;  ///< the link each hub, GPU and column thing hangs on
    std::map<Node, Node> parent;
  };

  std::vector<Host> hosts;
  std::size_t hidden_hosts = 0;
  double width = 0, height = 0;
  double network_y = 0;  ///< of the network's bar; 0 where hosts are not joined by one
};

/// Keeps pointers into the machine, which must outlive the picture.
Picture lay_out(const Machine& machine);

}  // namespace weft
