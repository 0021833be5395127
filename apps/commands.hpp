#pragma once

namespace CLI {
class App;
}

namespace weft {
struct TopoHooks;
}

namespace weft::apps {

// Each adds one subcommand with its options and what it does. The callback throws for input that is
// wrong; `main` turns that into one line and an exit code.
void add_mlp_command(CLI::App& app);
void add_overlap_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_experiment_command(CLI::App& app);
void add_what_if_command(CLI::App& app);
/// `hooks` as `weft topo` takes them.
void add_calibrate_command(CLI::App& app, const TopoHooks& hooks);

}  // namespace weft::apps
