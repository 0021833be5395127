#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "apps/common/options.hpp"
#include "apps/mlp/checkpoint.hpp"
#include "apps/mlp/dataset.hpp"
#include "apps/mlp/network.hpp"

namespace weft::mlp {

/// A value on the command line that cannot be used. `what()` names option, value and what may be
/// given.
class OptionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The command line of `weft mlp`. What is optional comes from the checkpoint with `--resume`, else
/// from `Hyper`.
struct Options {
  apps::CommonOptions common;
  std::string devices;  ///< `gpu0,gpu1`; empty: all GPUs, or socket0 where there is none
  std::string share = "auto";
  std::optional<std::int64_t> hidden, batch, seed;
  std::optional<double> rate, momentum;
  std::int64_t epochs = 10;
  std::int64_t eval_every = 1;
  std::string save, resume;  ///< files; empty: none
  std::string data = default_folder();
  std::string input = "streamed";  ///< or `resident`
  bool plan = true;                ///< record some steps and replay them
};

/// Adds them to the subcommand; `options` outlives it.
void add_options(CLI::App& command, Options& options);

/// Everything that can be said without data and devices, a `--save` file that could not be written
/// later included. Throws `OptionError`.
void check(const Options& options);

/// The options with what the data set and the checkpoint (null: none) say. Throws `OptionError`
/// where they contradict each other.
Hyper hyper_of(const Options& options, const Dataset& data, const Checkpoint* checkpoint);

}  // namespace weft::mlp
