// The `weft` command.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "apps/commands.hpp"
#include "apps/topo/topo_command.hpp"
#include "apps/topo_hooks.hpp"

int main(int argc, char** argv) {
  CLI::App app("weft: every socket, GPU and link of a machine as an actor", "weft");
  app.require_subcommand(1);
  app.set_version_flag("--version", WEFT_VERSION);
#ifdef WEFT_APP_MLP
  weft::apps::add_mlp_command(app);
#endif
#ifdef WEFT_APP_OVERLAP
  weft::apps::add_overlap_command(app);
#endif
#ifdef WEFT_APP_BENCH
  weft::apps::add_bench_command(app);
#endif
#ifdef WEFT_APP_EXPERIMENT
  weft::apps::add_experiment_command(app);
#endif
#ifdef WEFT_APP_WHAT_IF
  weft::apps::add_what_if_command(app);
#endif
#ifdef WEFT_APP_CALIBRATE
  weft::apps::add_calibrate_command(app, weft::apps::live_topo_hooks());
#endif
#ifdef WEFT_APP_TOPO
  weft::add_topo_command(app, weft::apps::live_topo_hooks());
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weft: %s\n", error.what());
    return 1;
  }
  return 0;
}
