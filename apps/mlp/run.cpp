#include "apps/mlp/run.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "apps/common/progress.hpp"
#include "apps/mlp/cuda_variants.hpp"
#include "apps/mlp/remembered_shares.hpp"
#include "apps/mlp/speed.hpp"
#include "framework/trace_chrome.hpp"
#include "topology/measurements.hpp"

namespace weft::mlp {
namespace {

std::vector<Device> choose_devices(const Runtime& runtime, const std::string& names) {
  std::vector<Device> devices;
  if (names.empty()) {
    for (std::size_t g = 0; g < runtime.gpu_count(); ++g) devices.push_back(runtime.gpu(g));
    if (devices.empty()) devices.push_back(runtime.socket(0));
    return devices;
  }
  std::istringstream parts(names);
  for (std::string name; std::getline(parts, name, ',');) {
    if (name.empty())
      throw OptionError("--devices " + names + ": has an empty name; give names such as gpu0,gpu1");
    for (const Device& known : devices)
      if (known.name() == name)
        throw OptionError("--devices " + names + ": " + name + " is in the list twice");
    devices.push_back(runtime.device(name));
  }
  return devices;
}

std::vector<std::string> names_of(const std::vector<Device>& devices) {
  std::vector<std::string> names;
  for (const Device& device : devices) names.push_back(device.name());
  return names;
}

// What measured shares depend on.
std::string work_of(const Runtime& runtime, const std::vector<Device>& devices,
                    const Hyper& hyper) {
  std::string work = fingerprint(runtime.machine());
  for (const Device& device : devices)
    work += " " + device.name() + ":" + runtime.engine_of(device);
  return work + " " + std::to_string(hyper.inputs) + "-" + std::to_string(hyper.hidden) + "-" +
         std::to_string(hyper.classes) + " batch " + std::to_string(hyper.batch);
}

template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void Recording::add(TraceData data) {
  constexpr std::size_t kMostSpans = 300'000;  // about 150 MB as JSON
  if (is_cut_ || data_.spans.size() + data.spans.size() > kMostSpans) {
    is_cut_ = true;
    if (!data_.spans.empty()) return;
    data.spans.resize(std::min(data.spans.size(), kMostSpans));
  }
  data_.tracks = std::move(data.tracks);
  append(data_.spans, data.spans);
  append(data_.submissions, data.submissions);
  append(data_.causes, data.causes);
  data_.dropped += data.dropped;
}

void Run::operator()() {
  if (!options_.resume.empty()) checkpoint_ = read_checkpoint(options_.resume);
  const Dataset data = read_dataset(options_.data);
  hyper_ = hyper_of(options_, data, checkpoint_ ? &*checkpoint_ : nullptr);
  add_cuda_variants();
  runtime_ = std::make_unique<Runtime>(apps::to_runtime_options(options_.common, true));
  make_trainer(data);
  describe_start(data);
  train(data);
  report();
}

void Run::make_trainer(const Dataset& data) {
  std::vector<Device> devices = choose_devices(*runtime_, options_.devices);
  std::optional<Shares> shares = parse_shares(options_.share, devices.size());
  if (!shares && checkpoint_ && checkpoint_->devices == names_of(devices))
    shares = Shares(checkpoint_->shares);
  // Devices that differ in nothing that speed depends on share equally, without measuring.
  const bool is_mixed =
      !shares && !std::all_of(devices.begin(), devices.end(), [&](const Device& d) {
        return are_alike(runtime_->machine(), d, devices[0]);
      });
  const RememberedShares remembered(work_of(*runtime_, devices, hyper_));
  if (is_mixed) shares = remembered.recall(devices.size());
  is_measured_ = is_mixed && !shares;
  is_remembered_ = is_mixed && shares;
  is_tuned_ = is_mixed;
  trainer_ = std::make_unique<Trainer>(
      *runtime_, data, hyper_, devices, shares.value_or(Shares(devices.size())),
      options_.input == "resident" ? Input::Resident : Input::Streamed, options_.plan);
  if (is_measured_) {
    trainer_->measure_shares();
    remembered.remember(trainer_->shares());
  }
  shares_file_ = remembered.path();
  if (checkpoint_)
    trainer_->set(checkpoint_->parameters);
  else
    trainer_->initialise();
}

void Run::describe_start(const Dataset& data) const {
  std::ostringstream text;
  text << describe_machine(*runtime_, *trainer_, hyper_.batch);
  if (is_measured_)
    text << "          as measured just now; --share " << trainer_->shares().to_string()
         << " repeats this run to the bit\n";
  if (is_remembered_)
    text << "          as measured at an earlier run; remove " << shares_file_
         << " to measure again\n";
  text << "model     " << hyper_.inputs << "-" << hyper_.hidden << "-" << hyper_.classes
       << " perceptron, batch " << hyper_.batch << ", lr " << hyper_.rate << ", momentum "
       << hyper_.momentum << ", seed " << hyper_.seed << "\n"
       << "data      " << format_count(static_cast<double>(data.train.count))
       << " samples to train, " << format_count(static_cast<double>(data.test.count))
       << " to test, from " << options_.data << "\n";
  if (checkpoint_)
    text << "resumed   after epoch " << checkpoint_->epoch << " from " << options_.resume << "\n";
  text << "\n" << epoch_heading();
  output_.print("%s", text.str().c_str());
}

void Run::train(const Dataset& data) {
  const auto epochs = static_cast<std::uint64_t>(options_.epochs);
  const auto eval_every = static_cast<std::uint64_t>(options_.eval_every);
  runtime_->wait_idle();
  runtime_->tracer()->clear();
  for (std::uint64_t number = checkpoint_ ? checkpoint_->epoch + 1 : 1; number <= epochs;
       ++number) {
    // One epoch tells what overlaps; recording all of them would slow GPUs down. Where shares
    // follow the devices' speeds, each is looked at.
    const std::uint64_t first = checkpoint_ ? checkpoint_->epoch + 1 : 1;
    const bool is_recorded = output_.wants_trace() || number == std::min(first + 1, epochs);
    runtime_->tracer()->set_recording(is_recorded || is_tuned_);
    EpochRecord epoch;
    epoch.number = number;
    {
      apps::Progress bar(output_.text(),
                         "epoch " + std::to_string(number) + "/" + std::to_string(epochs),
                         data.train.count, "samples");
      epoch.train = trainer_->train(number, [&](const mlp::Progress& progress) {
        bar.update(progress.samples,
                   progress.loss ? "loss " + std::to_string(*progress.loss).substr(0, 6) : "");
      });
    }
    const bool has_new_shares = is_tuned_ && number < epochs && tune_shares();
    if (is_recorded) record(true);
    if (!is_recorded) {
      runtime_->tracer()->set_recording(false);
      runtime_->tracer()->clear();
    }
    if (number == epochs || number % eval_every == 0)
      epoch.test_accuracy = trainer_->evaluate().accuracy;
    if (is_recorded) record(false);
    records_.push_back(epoch);
    output_.print("%s", describe(epoch, epochs).c_str());
    if (has_new_shares)
      output_.print("      devices' speeds have changed: shares are %s from now on\n",
                    trainer_->shares().to_string().c_str());
    std::fflush(output_.text());
    if (!options_.save.empty())
      write_checkpoint(options_.save, {hyper_, number, data.train.count, data.fingerprint,
                                       names_of(trainer_->devices()), trainer_->shares().weights(),
                                       trainer_->parameters()});
  }
}

// Later runs begin with what this one has found.
bool Run::tune_shares() {
  if (!trainer_->tune_shares(runtime_->tracer()->collect())) return false;
  RememberedShares(work_of(*runtime_, trainer_->devices(), hyper_)).remember(trainer_->shares());
  return true;
}

// Takes over what was recorded, so that a long run does not grow; only training is summed up.
void Run::record(bool is_training) {
  if (is_training || output_.wants_trace()) {
    TraceData data = runtime_->tracer()->collect();
    if (is_training) overlap_.add(summarise(data));
    if (output_.wants_trace()) recording_.add(std::move(data));
  }
  runtime_->tracer()->clear();
}

void Run::report() {
  output_.print("\n%s", describe(*runtime_, overlap_).c_str());
  if (!options_.save.empty())
    output_.print("\ncheckpoint in %s; go on with --resume\n", options_.save.c_str());
  if (output_.wants_trace()) {
    std::ofstream to(options_.common.trace, std::ios::binary);
    write_chrome_trace(recording_.data(), to);
    to.close();
    if (!to) throw OptionError("--trace " + options_.common.trace + ": could not be written");
    output_.print("trace: %zu spans%s in %s, to be opened at https://ui.perfetto.dev\n",
                  recording_.data().spans.size(), recording_.is_cut() ? " of the first epochs" : "",
                  options_.common.trace.c_str());
  }
  output_.write_json(to_json(*runtime_, *trainer_, records_, overlap_));
}

}  // namespace weft::mlp
