#include "actors/published_figures.hpp"

#include <set>
#include <string>

#include "support/catch.hpp"
#include "topology/route.hpp"
#include "topology/shipped.hpp"

using namespace weft;

TEST_CASE("published results are of shipped machines and name their source", "[topology]") {
  std::set<std::string> machines;
  for (const PublishedFigure& figure : kPublishedFigures) {
    INFO(figure.machine << " " << to_string(figure.from) << " " << to_string(figure.to));
    const Machine machine = machine_from(figure.machine);
    machines.insert(figure.machine);
    CHECK(std::string(figure.source).find("https://") != std::string::npos);
    CHECK(figure.gpus <= machine.gpus.size());
    CHECK(figure.gpus >= 1);
  }
  CHECK(machines.size() >= 4);
}

TEST_CASE("no published copy is faster than the machine's route, nor far slower", "[topology]") {
  for (const PublishedFigure& figure : kPublishedFigures) {
    if (figure.what == Measured::AllReduce || figure.what == Measured::AllReduceSwitch) continue;
    INFO(figure.machine << " " << to_string(figure.from) << " " << to_string(figure.to));
    const Route route = find_route(machine_from(figure.machine), figure.from, figure.to);
    const double ways = figure.what == Measured::PeerCopyBothWays ? 2 : 1;
    CHECK(figure.bytes_per_second / ways < 1.05 * route.bytes_per_second);
    CHECK(figure.bytes_per_second / ways > 0.75 * route.bytes_per_second);
  }
}
