#include "apps/mlp/options.hpp"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace weft::mlp {
namespace {

namespace fs = std::filesystem;

template <class T>
std::string text_of(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

template <class T>
[[noreturn]] void refuse(const char* option, const T& value, const char* wanted) {
  throw OptionError(std::string(option) + " " + text_of(value) + ": " + wanted);
}

// Opens it as it will be opened at the end, beside what may be there already.
void check_writable(const char* option, const std::string& file) {
  if (file.empty()) return;
  std::error_code ignored;
  if (fs::is_directory(file, ignored))
    refuse(option, file, "is a folder; give the name of a file in it");
  const bool was_there = fs::exists(file, ignored);
  const std::string trial = was_there ? file : file + ".part";
  errno = 0;
  const bool is_open = std::ofstream(trial, std::ios::binary | std::ios::app).is_open();
  const std::string why = errno ? std::strerror(errno) : "unknown error";
  if (!was_there) fs::remove(trial, ignored);
  if (!is_open)
    refuse(
        option, file,
        ("cannot be written (" + why + "); give a file in a folder that you may write to").c_str());
}

/// The value of the command line, which a checkpoint must not contradict.
template <class Given, class Value>
Value settle(const char* option, const std::optional<Given>& given, Value otherwise,
             const Checkpoint* checkpoint, const std::string& file) {
  if (!given) return otherwise;
  const auto value = static_cast<Value>(*given);
  if (checkpoint && value != otherwise)
    throw OptionError("--resume " + file + ": was trained with " + option + " " +
                      text_of(otherwise) + ", not " + text_of(value) + "; leave " + option +
                      " out, or train anew without --resume");
  return value;
}

}  // namespace

void add_options(CLI::App& command, Options& options) {
  command.add_option("--devices", options.devices,
                     "who trains: gpu0,gpu1,socket0 … (default: all GPUs)");
  command
      .add_option("--share", options.share,
                  "parts of each minibatch, one number a device such as 1,1,0.5, or auto: equal "
                  "for equal devices, else measured in the first steps")
      ->capture_default_str();
  command.add_option("--hidden", options.hidden, "hidden units (default: 256)");
  command.add_option("--batch", options.batch,
                     "samples a minibatch, of all devices (default: 256)");
  command
      .add_option("--epochs", options.epochs,
                  "passes over the training set, those of the resumed "
                  "checkpoint included")
      ->capture_default_str();
  command.add_option("--lr", options.rate, "learning rate (default: 0.008)");
  command.add_option("--momentum", options.momentum, "momentum of SGD, 0 for none (default: 0.9)");
  command.add_option("--seed", options.seed, "of first weights and order of samples (default: 1)");
  command
      .add_option("--eval-every", options.eval_every,
                  "epochs between two looks at the test set; the last epoch is always looked at")
      ->capture_default_str();
  command.add_option("--save", options.save, "write a checkpoint to this file after every epoch");
  command.add_option("--resume", options.resume, "go on from this checkpoint");
  command
      .add_option("--dataset", options.data, "folder with the data set in IDX form, plain or .gz")
      ->capture_default_str();
  command
      .add_option("--input", options.input,
                  "where a GPU's minibatches come from: streamed, each from host memory, or "
                  "resident, from a copy of the training set on the GPU")
      ->capture_default_str();
  command.add_flag("--plan,!--no-plan", options.plan,
                   "record some training steps once and replay them, with the same results to the "
                   "bit (default); --no-plan submits every op of every step");
  apps::add_common_options(command, options.common);
}

void check(const Options& options) {
  constexpr std::int64_t kMostHidden = 1 << 20;
  if (options.hidden && (*options.hidden < 1 || *options.hidden > kMostHidden))
    refuse("--hidden", *options.hidden, "wanted a number of units from 1 to 1048576");
  if (options.batch && *options.batch < 1)
    refuse("--batch", *options.batch, "wanted a number of samples of 1 or more");
  if (options.epochs < 1) refuse("--epochs", options.epochs, "wanted a number of 1 or more");
  if (options.eval_every < 1)
    refuse("--eval-every", options.eval_every, "wanted a number of epochs of 1 or more");
  if (options.rate && !(*options.rate > 0 && std::isfinite(*options.rate)))
    refuse("--lr", *options.rate, "wanted a learning rate above 0");
  if (options.momentum && !(*options.momentum >= 0 && *options.momentum < 1))
    refuse("--momentum", *options.momentum, "wanted a number from 0 to below 1");
  if (options.seed && *options.seed < 0)
    refuse("--seed", *options.seed, "wanted a number of 0 or more");
  if (options.input != "streamed" && options.input != "resident")
    refuse("--input", options.input, "wanted streamed or resident");
  check_writable("--save", options.save);
}

Hyper hyper_of(const Options& options, const Dataset& data, const Checkpoint* checkpoint) {
  Hyper hyper = checkpoint ? checkpoint->hyper : Hyper{};
  const std::string& file = options.resume;
  if (checkpoint) {
    if (hyper.inputs != data.inputs || hyper.classes != data.classes ||
        checkpoint->samples != data.train.count || checkpoint->fingerprint != data.fingerprint)
      throw OptionError("--resume " + file + ": was trained on other data (" +
                        std::to_string(checkpoint->samples) + " samples of " +
                        std::to_string(hyper.inputs) + " inputs, " + std::to_string(hyper.classes) +
                        " classes) than that in " + options.data +
                        "; give its folder with --dataset DIR");
    if (checkpoint->epoch >= static_cast<std::uint64_t>(options.epochs))
      throw OptionError("--resume " + file + ": has " + std::to_string(checkpoint->epoch) +
                        " epochs behind it already, and --epochs " +
                        std::to_string(options.epochs) +
                        " counts them too; ask for more epochs than that");
  }
  hyper.inputs = data.inputs;
  hyper.classes = data.classes;
  hyper.hidden = settle("--hidden", options.hidden, hyper.hidden, checkpoint, file);
  hyper.batch = settle("--batch", options.batch, hyper.batch, checkpoint, file);
  hyper.rate = settle("--lr", options.rate, hyper.rate, checkpoint, file);
  hyper.momentum = settle("--momentum", options.momentum, hyper.momentum, checkpoint, file);
  hyper.seed = settle("--seed", options.seed, hyper.seed, checkpoint, file);
  if (hyper.batch > data.train.count)
    throw OptionError("--batch " + std::to_string(hyper.batch) + ": the training set in " +
                      options.data + " has only " + std::to_string(data.train.count) + " samples");
  return hyper;
}

}  // namespace weft::mlp
