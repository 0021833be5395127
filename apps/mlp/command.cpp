#include <CLI/CLI.hpp>
#include <memory>

#include "apps/commands.hpp"
#include "apps/mlp/run.hpp"

namespace weft::apps {

void add_mlp_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "mlp", "train a two-layer perceptron on Fashion-MNIST, on sockets, GPUs and links at once");
  auto options = std::make_shared<mlp::Options>();
  mlp::add_options(*command, *options);
  command->callback([options] {
    mlp::check(*options);
    mlp::Run run(*options);
    run();
  });
}

}  // namespace weft::apps
