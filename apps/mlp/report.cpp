#include "apps/mlp/report.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/mlp/progress.hpp"
#include "topology/describe.hpp"

namespace weft::mlp {
namespace {

[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...) {
  std::array<char, 512> text{};
  va_list values;
  va_start(values, format);
  std::vsnprintf(text.data(), text.size(), format, values);
  va_end(values);
  return text.data();
}

std::string percent(double part) {
  return formatted("%.1f %%", 100 * part);
}

std::string counted(std::size_t count, const char* thing) {
  return formatted("%zu %s%s", count, thing, count == 1 ? "" : "s");
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
}

double Overlap::busy(const Actor& actor) const {
  return wall_seconds > 0 ? std::min(actor.busy_seconds / wall_seconds, 1.0) : 0;
}

std::vector<std::string> describe_machine(const Runtime& runtime, const Trainer& trainer,
                                          std::size_t batch) {
  const Machine& machine = runtime.machine();
  std::vector<std::string> lines;
  std::string sockets;
  for (const Socket& socket : machine.sockets) {
    sockets += (sockets.empty() ? "" : " + ") + counted(socket.cores.size(), "core");
    if (!socket.model.empty()) sockets += " of " + socket.model;
  }
  lines.push_back("machine   " + summary(machine));
  (void)sockets;
  const bool emulated =
      std::any_of(trainer.devices().begin(), trainer.devices().end(),
                  [&](const Device& device) { return runtime.engine_of(device) == "emulated"; });
  if (emulated)
    lines.push_back(
        "          the GPUs are emulated: host threads with memory of their own, real numbers, no "
        "GPU speed");
  const auto cuts = trainer.shares().cuts(batch);
  std::string who;
  for (std::size_t d = 0; d < trainer.devices().size(); ++d)
    who += (d ? " + " : "") + trainer.devices()[d].name() + " (" +
           runtime.engine_of(trainer.devices()[d]) + ") " + std::to_string(cuts[d + 1] - cuts[d]);
  lines.push_back("devices   " + who + " of every " + std::to_string(batch) + " samples");
  return lines;
}

std::string table_head(std::uint64_t) {
  return "   epoch     loss    train     test      time   samples/s";
}

std::string table_row(const EpochRecord& epoch, std::uint64_t epochs) {
  const std::string test = epoch.test_accuracy ? percent(*epoch.test_accuracy) : "-";
  return formatted("%4llu/%-4llu %7.4f %8s %8s %9s %11s",
                   static_cast<unsigned long long>(epoch.number),
                   static_cast<unsigned long long>(epochs), epoch.train.loss,
                   percent(epoch.train.accuracy).c_str(), test.c_str(),
                   format_duration(epoch.train.seconds).c_str(),
                   format_count(epoch.train.samples_per_second).c_str());
}

std::vector<std::string> describe_overlap(const Overlap& overlap) {
  std::vector<std::string> lines;
  lines.push_back("what overlapped in " + format_duration(overlap.wall_seconds) + " of training");
  std::string busy;
  for (const auto& actor : overlap.actors())
    busy += formatted("%s%s %.0f %%", busy.empty() ? "" : "   ", actor.id.c_str(),
                      100 * overlap.busy(actor));
  lines.push_back("  busy        " + busy);
  if (overlap.transfer_bytes == 0) {
    lines.push_back("  transfers   none: one memory holds everything");
    return lines;
  }
  lines.push_back(formatted("  transfers   %.2f GB in %s, %s of that time hidden under compute",
                            1e-9 * static_cast<double>(overlap.transfer_bytes),
                            format_duration(overlap.transfer_seconds).c_str(),
                            percent(overlap.hidden()).c_str()));
  lines.push_back("  exposed     " + formatted("%.3f s", overlap.exposed_seconds));
  return lines;
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

}  // namespace weft::mlp
