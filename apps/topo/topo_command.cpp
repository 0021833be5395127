#include "apps/topo/topo_command.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "apps/topo/edit_options.hpp"
#include "apps/topo/measure_host.hpp"
#include "topology/discover.hpp"
#include "topology/machine_diff.hpp"
#include "topology/machine_edit.hpp"
#include "topology/machine_file.hpp"
#include "topology/names.hpp"
#include "topology/overlay.hpp"
#include "topology/quantity.hpp"
#include "topology/reach.hpp"
#include "topology/render.hpp"
#include "topology/route.hpp"
#include "topology/shipped.hpp"

namespace weft {
namespace {

/// Where a command takes its machine from, as options.
struct Sources {
  std::vector<std::string> from;
  MachineEdits edits;
  bool live = false;

  void add_to(CLI::App& command) {
    command
        .add_option(
            "--from,--machine", from,
            "A file (hwloc XML, NCCL XML, nvidia-smi topo -m, weft machine file), the name of a "
            "shipped machine, or a description such as \"2 sockets x 8 cores, 2 gpus\"; given "
            "again, each is laid over those before")
        ->allow_extra_args(false);
    command.add_flag("--live", live, "The machine this runs on (the default without --from)");
    add_edit_options(command, edits);
  }

  [[nodiscard]] bool is_live() const { return live || from.empty(); }

  [[nodiscard]] Machine load(const TopoHooks& hooks) const {
    std::optional<Machine> machine;
    if (is_live()) machine = hooks.discover_live ? hooks.discover_live() : discover();
    for (const std::string& source : from) {
      Machine next = machine_from(source);
      machine = machine ? overlay(*machine, next) : std::move(next);
    }
    return edited(std::move(*machine), edits);
  }
};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::cout << text;
    return;
  }
  std::ofstream file(path, std::ios::binary);
  if (!(file << text) || !file.flush())
    throw TopologyError(path + ": cannot be written; expected a path in a folder that is there");
}

/// Stored figures of this machine, if there are any.
Machine with_stored(Machine machine) {
  const std::string path = measurements_path(fingerprint(machine));
  if (path.empty() || !std::filesystem::exists(path)) return machine;
  return with_measurements(std::move(machine), read_measurements(read_file(path), path));
}

Machine measured(const Machine& machine, const TopoHooks& hooks) {
  const Measurements measurements =
      measure_links(machine, hooks, [](const std::string& line) { std::cerr << line << '\n'; });
  const std::string path = measurements_path(measurements.fingerprint);
  if (!path.empty()) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    write_file(path, write_measurements(measurements));
    std::cerr << "stored in " << path << '\n';
  }
  return with_measurements(machine, measurements);
}

std::string rendered(const Machine& machine, const std::string& format) {
  if (format == "json") return write_machine_file(machine);
  if (format == "dot") return render_dot(machine);
  if (format == "svg") return render_svg(machine);
  return print_tree(machine);
}

struct TopoOptions {
  Sources sources;
  std::string format = "tree", save;
  bool measure = false;
  std::vector<std::string> diff;
};

void add_topo(CLI::App& app, const std::shared_ptr<TopoHooks>& hooks) {
  const auto options = std::make_shared<TopoOptions>();
  CLI::App* topo =
      app.add_subcommand("topo", "Show this or another machine as a tree, JSON or picture");
  options->sources.add_to(*topo);
  topo->add_option("--format", options->format, "tree, json, dot or svg")
      ->check(CLI::IsMember({"tree", "json", "dot", "svg"}));
  topo->add_option("--save", options->save,
                   "Write the machine to a file in weft's own format (- for standard output)");
  topo->add_flag("--measure", options->measure,
                 "Measure each link of this machine first and keep the figures");
  topo->footer("Shipped machines: " + [] {
    std::string names;
    for (const std::string& name : shipped_machines()) names += (names.empty() ? "" : ", ") + name;
    return names;
  }());
  topo->require_subcommand(0, 1);

  CLI::App* diff = topo->add_subcommand(
      "diff", "What differs from machine A to machine B; exit code 1 if anything does");
  diff->add_option("machines", options->diff, "A and B, as for --from")->expected(2)->required();
  diff->callback([options] {
    const auto lines = differences(machine_from(options->diff[0]), machine_from(options->diff[1]));
    for (const std::string& line : lines) std::cout << line << '\n';
    if (!lines.empty()) throw CLI::RuntimeError(1);
  });

  topo->callback([options, hooks, topo] {
    if (!topo->get_subcommands().empty()) return;
    if (options->measure && !(options->sources.is_live() && options->sources.from.empty()))
      throw TopologyError(
          "--measure: only the machine this runs on can be measured; leave --from out");
    if (options->measure && !options->sources.edits.add.empty())
      throw TopologyError("--measure: what --add adds is not there to be measured; leave it out");
    Machine machine = options->sources.load(*hooks);
    if (options->measure)
      machine = measured(machine, *hooks);
    else if (options->sources.is_live() && options->sources.edits.empty() &&
             options->sources.from.empty())
      machine = with_stored(std::move(machine));
    if (!options->save.empty()) write_file(options->save, write_machine_file(machine));
    if (options->save != "-") std::cout << rendered(machine, options->format);
  });
}

Node end_of(const std::string& text) {
  const auto node = parse_node(text);
  if (!node)
    throw TopologyError(text + ": expected an id such as mem0, gpu1, socket0, nic0; see weft topo");
  return *node;
}

void print_route(const Machine& machine, Node from, Node to) {
  Route route;
  try {
    route = find_route(machine, from, to);
  } catch (const std::out_of_range& error) {
    throw TopologyError(error.what());
  }
  std::cout << to_string(from) << " to " << to_string(to) << ": " << to_string(route.route_class);
  if (route.route_class == RouteClass::None) {
    std::cout << '\n';
    return;
  }
  if (!route.hops.empty())
    std::cout << ", " << format_rate(route.bytes_per_second) << ", " << route.latency.count()
              << " ns, " << route.hops.size() << (route.hops.size() == 1 ? " hop" : " hops");
  std::cout << '\n';
  for (const Hop& hop : route.hops) {
    const Link& link = machine.links[hop.link.value];
    const Node a = hop.forward ? link.a : link.b, b = hop.forward ? link.b : link.a;
    std::cout << "  link" << hop.link.value << "  " << to_string(a) << " -> " << to_string(b)
              << "  " << to_string(link.kind) << ' '
              << format_rate(link.bytes_per_second[hop.forward ? 0 : 1]) << ", "
              << link.latency.count() << " ns (" << to_string(link.provenance) << ")\n";
  }
}

void add_route(CLI::App& app, const std::shared_ptr<TopoHooks>& hooks) {
  struct Options {
    Sources sources;
    std::string from, to;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* route = app.add_subcommand("route", "The best route between two memories or devices");
  route->add_option("a", options->from, "Where it starts: gpu0, mem1 …")->required();
  route->add_option("b", options->to, "Where it ends")->required();
  options->sources.add_to(*route);
  route->callback([options, hooks] {
    const Node from = end_of(options->from), to = end_of(options->to);
    print_route(options->sources.load(*hooks), from, to);
  });
}

void add_doctor(CLI::App& app, const std::shared_ptr<TopoHooks>& hooks) {
  struct Options {
    Sources sources;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* doctor = app.add_subcommand("doctor",
                                        "What this machine would surprise you with, and what to "
                                        "do; exit code 1 if something is broken");
  options->sources.add_to(*doctor);
  doctor->add_flag("--json", options->json, "As JSON");
  doctor->callback([options, hooks] {
    const Sources& sources = options->sources;
    const Machine machine = sources.load(*hooks);
    std::vector<Finding> findings = diagnose_machine(machine);
    if (sources.is_live() && sources.edits.empty()) {
      SystemFacts facts = read_system_facts();
      if (hooks->add_gpu_facts) hooks->add_gpu_facts(facts);
      const std::vector<Finding> more = diagnose_system(machine, facts);
      findings.insert(findings.end(), more.begin(), more.end());
    }
    std::cout << (options->json ? findings_as_json(machine, findings) : print_findings(findings));
    if (is_broken(findings)) throw CLI::RuntimeError(1);
  });
}

}  // namespace

void add_topo_command(CLI::App& app, TopoHooks hooks) {
  const auto shared =
      std::make_shared<TopoHooks>(std::move(hooks));  // outlives this call in callbacks
  add_topo(app, shared);
  add_route(app, shared);
  add_doctor(app, shared);
}

}  // namespace weft
