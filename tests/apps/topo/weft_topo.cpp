// The topology commands alone, as the `weft` command has them.
#include <CLI/CLI.hpp>
#include <iostream>

#include "apps/topo/topo_command.hpp"
#include "apps/topo_hooks.hpp"

int main(int argc, char** argv) {
  CLI::App app("weft");
  app.require_subcommand(1);
  weft::add_topo_command(app, weft::apps::live_topo_hooks());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::cerr << "weft: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
