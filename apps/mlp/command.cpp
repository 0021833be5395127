#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "apps/commands.hpp"
#include "apps/mlp/checkpoint.hpp"
#include "apps/mlp/dataset.hpp"
#include "apps/mlp/options.hpp"
#include "apps/mlp/progress.hpp"
#include "apps/mlp/report.hpp"
#include "apps/mlp/trainer.hpp"
#include "framework/trace_chrome.hpp"

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
    for (const Device& known : devices)
      if (known.name() == name)
        throw OptionError("--devices " + names + ": " + name + " is in the list twice");
    devices.push_back(runtime.device(name));
  }
  if (devices.empty()) throw OptionError("--devices " + names + ": names no device");
  return devices;
}

bool are_alike(const Runtime& runtime, const std::vector<Device>& devices) {
  const Machine& machine = runtime.machine();
  for (const Device& device : devices) {
    if (device.kind() != devices[0].kind()) return false;
    const std::uint32_t here = device.place().number, first = devices[0].place().number;
    if (device.kind() == DeviceKind::Gpu
            ? machine.gpus[here].model != machine.gpus[first].model
            : machine.sockets[here].cores.size() != machine.sockets[first].cores.size())
      return false;
  }
  return true;
}

std::vector<std::string> names_of(const std::vector<Device>& devices) {
  std::vector<std::string> names;
  for (const Device& device : devices) names.push_back(device.name());
  return names;
}

/// What was recorded, for the trace file: the first epochs, as many as fit.
class Recording {
 public:
  explicit Recording(bool wanted) : wanted_(wanted) {}

  void add(TraceData data) {
    if (!wanted_) return;
    constexpr std::size_t kMostSpans = 500'000;  // about 150 MB of JSON
    if (data_.spans.size() + data.spans.size() > kMostSpans && !data_.spans.empty()) {
      is_cut_ = true;
      return;
    }
    data_.tracks = std::move(data.tracks);
    append(data_.spans, data.spans);
    append(data_.submissions, data.submissions);
    append(data_.causes, data.causes);
    data_.dropped += data.dropped;
  }
  /// True if the last epochs did not fit.
  [[nodiscard]] bool is_cut() const { return is_cut_; }
  [[nodiscard]] const TraceData& data() const { return data_; }

 private:
  template <class T>
  static void append(std::vector<T>& to, std::vector<T>& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  }
  const bool wanted_;
  bool is_cut_ = false;
  TraceData data_;
};

/// One run of the command.
class Run {
 public:
  explicit Run(const Options& options)
      : options_(options),
        console_(options.common.json == "-" ? stderr : stdout),
        recording_(!options.common.trace.empty()) {}

  void operator()() {
    if (!options_.resume.empty()) checkpoint_ = read_checkpoint(options_.resume);
    const Dataset data = read_dataset(options_.data);
    hyper_ = hyper_of(options_, data, checkpoint_ ? &*checkpoint_ : nullptr);
    runtime_ = std::make_unique<Runtime>(apps::to_runtime_options(options_.common, true));
    make_trainer(data);
    describe(data);
    samples_ = data.train.count;
    fingerprint_ = data.fingerprint;
    train();
    report();
  }

 private:
  void make_trainer(const Dataset& data) {
    std::vector<Device> devices = choose_devices(*runtime_, options_.devices);
    std::optional<Shares> shares = parse_shares(options_.share, devices.size());
    if (!shares && checkpoint_ && checkpoint_->devices == names_of(devices))
      shares = Shares(checkpoint_->shares);
    const bool measure = !shares && devices.size() > 1 && !are_alike(*runtime_, devices);
    trainer_ = std::make_unique<Trainer>(*runtime_, data, hyper_, devices,
                                         shares.value_or(Shares(devices.size())));
    if (measure) {
      console_.bar("measuring how fast each device is ...");
      trainer_->measure_shares();
      is_measured_ = true;
    }
    if (checkpoint_)
      trainer_->set(checkpoint_->parameters);
    else
      trainer_->initialise();
  }

  void describe(const Dataset& data) {
    for (const std::string& line : describe_machine(*runtime_, *trainer_, hyper_.batch))
      console_.line(line);
    if (is_measured_)
      console_.line("          measured just now; --share " + trainer_->shares().to_string() +
                    " repeats this run to the bit");
    std::ostringstream text;
    text << "model     " << hyper_.inputs << "-" << hyper_.hidden << "-" << hyper_.classes
         << " perceptron, batch " << hyper_.batch << ", lr " << hyper_.rate << ", momentum "
         << hyper_.momentum << ", seed " << hyper_.seed;
    console_.line(text.str());
    console_.line("data      " + format_count(static_cast<double>(data.train.count)) +
                  " to train, " + format_count(static_cast<double>(data.test.count)) +
                  " to test, from " + options_.data);
    if (checkpoint_)
      console_.line("resumed   after epoch " + std::to_string(checkpoint_->epoch) + ", from " +
                    options_.resume);
    console_.line("");
  }

  void train() {
    const auto epochs = static_cast<std::uint64_t>(options_.epochs);
    const std::uint64_t first = checkpoint_ ? checkpoint_->epoch + 1 : 1;
    console_.line(table_head(epochs));
    ProgressBar bar(console_, epochs, first, samples_);
    runtime_->wait_idle();
    runtime_->tracer()->clear();
    for (std::uint64_t number = first; number <= epochs; ++number) {
      EpochRecord record;
      record.number = number;
      record.train = trainer_->train(number, [&](const Progress& progress) {
        bar.show(number, progress.samples, progress.loss);
      });
      note_training();
      if (number == epochs || number % static_cast<std::uint64_t>(options_.eval_every) == 0)
        record.test_accuracy = trainer_->evaluate().accuracy;
      console_.line(table_row(record, epochs));
      records_.push_back(record);
      if (!options_.save.empty()) save(number);
      recording_.add(runtime_->tracer()->collect());
      runtime_->tracer()->clear();
    }
  }

  void note_training() {
    TraceData data = runtime_->tracer()->collect();
    overlap_.add(summarise(data));
    recording_.add(std::move(data));
    runtime_->tracer()->clear();
  }

  void save(std::uint64_t epoch) {
    write_checkpoint(options_.save,
                     {hyper_, epoch, samples_, fingerprint_, names_of(trainer_->devices()),
                      trainer_->shares().weights(), trainer_->parameters()});
  }

  void report() {
    console_.line("");
    for (const std::string& line : describe_overlap(overlap_)) console_.line(line);
    if (!options_.save.empty()) console_.line("checkpoint  " + options_.save);
    if (!options_.common.trace.empty()) {
      std::ofstream to(options_.common.trace, std::ios::trunc);
      write_chrome_trace(recording_.data(), to);
      to.close();
      if (!to) throw OptionError("--trace " + options_.common.trace + ": could not be written");
      console_.line("trace       " + options_.common.trace + ", for ui.perfetto.dev" +
                    (recording_.is_cut() ? "; holds the first epochs only" : ""));
    }
    if (options_.common.json.empty()) return;
    const std::string json = to_json(*runtime_, *trainer_, records_, overlap_);
    if (options_.common.json == "-") {
      std::puts(json.c_str());
      return;
    }
    std::ofstream to(options_.common.json, std::ios::trunc);
    to << json << "\n";
    to.close();
    if (!to) throw OptionError("--json " + options_.common.json + ": could not be written");
  }

  const Options& options_;
  Console console_;
  Recording recording_;
  std::optional<Checkpoint> checkpoint_;
  Hyper hyper_;
  std::size_t samples_ = 0;
  std::uint32_t fingerprint_ = 0;
  bool is_measured_ = false;
  std::vector<EpochRecord> records_;
  Overlap overlap_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Trainer> trainer_;  // before the runtime
};

}  // namespace
}  // namespace weft::mlp

namespace weft::apps {

void add_mlp_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "mlp", "train a two-layer perceptron on Fashion-MNIST with sockets, GPUs and links at once");
  auto options = std::make_shared<mlp::Options>();
  mlp::add_options(*command, *options);
  command->callback([options] {
    mlp::check(*options);
    mlp::Run run(*options);
    run();
  });
}

}  // namespace weft::apps
