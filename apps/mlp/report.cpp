#include "apps/mlp/report.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/common/progress.hpp"
#include "topology/describe.hpp"

namespace weft::mlp {
namespace {

__attribute__((format(printf, 1, 2))) std::string formatted(const char* format, ...) {
  std::array<char, 512> text{};
  std::va_list values;
  va_start(values, format);
  std::vsnprintf(text.data(), text.size(), format, values);
  va_end(values);
  return text.data();
}

std::string percent(double part) {
  return formatted("%.1f %%", 100 * part);
}

std::string bar(double part) {
  constexpr double kWidth = 28;
  const auto full = static_cast<std::size_t>(part * kWidth + 0.5);
  return std::string(full, '#') + std::string(static_cast<std::size_t>(kWidth) - full, '.');
}

// `mem0 to gpu0` for a link, nothing for others.
std::string ends_of(const Machine& machine, const Overlap::Actor& actor) {
  const std::string prefix = "link";
  if (actor.kind != TrackKind::Link || actor.id.rfind(prefix, 0) != 0) return "";
  const auto number = static_cast<std::size_t>(std::atoi(actor.id.c_str() + prefix.size()));
  if (number >= machine.links.size()) return "";
  const Link& link = machine.links[number];
  return "  " + to_string(link.a) + " - " + to_string(link.b);
}

}  // namespace

void Overlap::add(const TraceSummary& epoch) {
  wall_seconds += epoch.wall_seconds;
  transfer_seconds += epoch.transfer_seconds;
  hidden_seconds += epoch.hidden_seconds;
  exposed_seconds += epoch.exposed_seconds;
  transfer_bytes += epoch.transfer_bytes;
  for (const auto& actor : epoch.actors) {
    auto known = std::find_if(actors_.begin(), actors_.end(),
                              [&](const Actor& a) { return a.id == actor.actor; });
    if (known == actors_.end()) {
      actors_.push_back({actor.actor, actor.kind, 0});
      known = actors_.end() - 1;
    }
    known->busy_seconds += actor.busy_seconds;
  }
  std::stable_sort(actors_.begin(), actors_.end(),
                   [](const Actor& a, const Actor& b) { return a.kind < b.kind; });
}

double Overlap::busy(const Actor& actor) const {
  return wall_seconds > 0 ? std::min(actor.busy_seconds / wall_seconds, 1.0) : 0;
}

double Overlap::hidden() const {
  return transfer_seconds > 0 ? hidden_seconds / transfer_seconds : 1;
}

std::string describe_machine(const Runtime& runtime, const Trainer& trainer, std::size_t batch) {
  const auto& devices = trainer.devices();
  std::string text = "machine   " + summary(runtime.machine()) + "\n";
  if (std::any_of(devices.begin(), devices.end(),
                  [&](const Device& device) { return runtime.engine_of(device) == "emulated"; }))
    text +=
        "          the GPUs are emulated: host threads with memories of their own; real numbers, "
        "not a GPU's speed\n";
  if (runtime.is_simulated())
    text += "          simulated: times are virtual, by a model of the machine" +
            std::string(runtime.has_data() ? "\n" : "; nothing is computed\n");
  if (runtime.tunes_products() &&
      std::any_of(devices.begin(), devices.end(),
                  [&](const Device& device) { return runtime.engine_of(device) == "cuda"; }))
    text +=
        "          the fastest products are looked for on the way (WEFT_TUNE): another run differs "
        "in "
        "the last bits\n";
  constexpr std::size_t kMany = 16;
  const auto cuts = trainer.shares().cuts(batch);
  text += "devices   ";
  if (devices.size() > kMany) {
    std::size_t least = batch, most = 0;
    for (std::size_t d = 0; d < devices.size(); ++d) {
      least = std::min(least, cuts[d + 1] - cuts[d]);
      most = std::max(most, cuts[d + 1] - cuts[d]);
    }
    text += std::to_string(devices.size()) + " from " + devices.front().name() + " to " +
            devices.back().name() + ", each " + std::to_string(least) +
            (most > least ? " to " + std::to_string(most) : "");
  } else {
    for (std::size_t d = 0; d < devices.size(); ++d)
      text += (d ? " + " : "") + devices[d].name() + " " + std::to_string(cuts[d + 1] - cuts[d]);
  }
  return text + " of every " + std::to_string(batch) + " samples\n";
}

std::string epoch_heading() {
  return "   epoch     loss    train     test       time   samples/s\n";
}

std::string describe(const EpochRecord& epoch, std::uint64_t epochs) {
  const std::string test = epoch.test_accuracy ? percent(*epoch.test_accuracy) : "-";
  return formatted("%4llu/%-4llu %7.4f %8s %8s %10s %11s\n",
                   static_cast<unsigned long long>(epoch.number),
                   static_cast<unsigned long long>(epochs), epoch.train.loss,
                   percent(epoch.train.accuracy).c_str(), test.c_str(),
                   apps::format_seconds(epoch.train.seconds).c_str(),
                   format_count(epoch.train.samples_per_second).c_str());
}

std::string describe(const Runtime& runtime, const Overlap& overlap) {
  std::string text =
      "what overlapped in " + apps::format_seconds(overlap.wall_seconds) + " of training\n";
  for (const auto& actor : overlap.actors()) {
    if (actor.busy_seconds == 0) continue;
    const double busy = overlap.busy(actor);
    text += formatted("  %-10s busy %5.1f %%  %s%s\n", actor.id.c_str(), 100 * busy,
                      bar(busy).c_str(), ends_of(runtime.machine(), actor).c_str());
  }
  if (overlap.transfer_bytes == 0) return text + "  transfers  none, everything is in one memory\n";
  return text + formatted(
                    "  transfers  %.2f GB in %s: %s of the time hidden under compute, %s "
                    "exposed\n",
                    1e-9 * static_cast<double>(overlap.transfer_bytes),
                    apps::format_seconds(overlap.transfer_seconds).c_str(),
                    percent(overlap.hidden()).c_str(),
                    apps::format_seconds(overlap.exposed_seconds).c_str());
}

std::string to_json(const Runtime& runtime, const Trainer& trainer,
                    const std::vector<EpochRecord>& epochs, const Overlap& overlap) {
  using json = nlohmann::ordered_json;
  json result;
  result["machine"] = summary(runtime.machine());
  result["devices"] = json::array();
  for (std::size_t d = 0; d < trainer.devices().size(); ++d)
    result["devices"].push_back({{"id", trainer.devices()[d].name()},
                                 {"engine", runtime.engine_of(trainer.devices()[d])},
                                 {"share", trainer.shares().fraction(d)}});
  result["epochs"] = json::array();
  for (const EpochRecord& epoch : epochs)
    result["epochs"].push_back(
        {{"epoch", epoch.number},
         {"loss", epoch.train.loss},
         {"train_accuracy", epoch.train.accuracy},
         {"test_accuracy", epoch.test_accuracy ? json(*epoch.test_accuracy) : json()},
         {"seconds", epoch.train.seconds},
         {"samples_per_second", epoch.train.samples_per_second}});
  result["actors"] = json::array();
  for (const auto& actor : overlap.actors())
    result["actors"].push_back({{"id", actor.id}, {"busy", overlap.busy(actor)}});
  result["transfer"] = {{"seconds", overlap.transfer_seconds},
                        {"hidden", overlap.hidden()},
                        {"exposed_seconds", overlap.exposed_seconds}};
  return result.dump(2);
}

std::string format_count(double count) {
  std::string digits = formatted("%.0f", count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

}  // namespace weft::mlp
