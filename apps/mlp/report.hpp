#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/runtime.hpp"
#include "apps/mlp/trainer.hpp"
#include "framework/trace_summary.hpp"

namespace weft::mlp {

/// What overlapped with what, added up over the recordings of a run's epochs.
class Overlap {
 public:
  struct Actor {
    std::string id;
    TrackKind kind = TrackKind::Socket;
    double busy_seconds = 0;
  };

  void add(const TraceSummary& epoch);

  /// Sockets, GPUs, links, collectives.
  [[nodiscard]] const std::vector<Actor>& actors() const { return actors_; }
  /// Share of the time in which the actor did something, from 0 to 1.
  [[nodiscard]] double busy(const Actor& actor) const;
  /// Share of transfer time hidden; 1 if nothing was transferred.
  [[nodiscard]] double hidden() const;

  double wall_seconds = 0;
  double transfer_seconds = 0;  ///< in which at least one link carried something
  double hidden_seconds = 0;    ///< the part of it in which a device computed
  double exposed_seconds = 0;   ///< the rest
  std::uint64_t transfer_bytes = 0;

 private:
  std::vector<Actor> actors_;
};

/// One row of the table and one element of `epochs` in the JSON.
struct EpochRecord {
  std::uint64_t number = 0;
  Epoch train;
  std::optional<double> test_accuracy;  ///< none where the test set was not looked at
};

/// What is printed; each text ends with a newline.

/// The machine, and who trains how much of each minibatch.
std::string describe_machine(const Runtime& runtime, const Trainer& trainer, std::size_t batch);
/// Heading and rows of the table of epochs.
std::string epoch_heading();
std::string describe(const EpochRecord& epoch, std::uint64_t epochs);
/// Who was busy, and how much of the transfers was hidden.
std::string describe(const Runtime& runtime, const Overlap& overlap);

/// The result for programs:
/// `{"machine","devices":[{"id","engine","share"}],"epochs":[{"epoch","loss","train_accuracy",
/// "test_accuracy","seconds","samples_per_second"}],"actors":[{"id","busy"}],
/// "transfer":{"seconds","hidden","exposed_seconds"}}`.
/// Shares, accuracies, `busy` and `hidden` from 0 to 1; `test_accuracy` is null where the test set
/// was not looked at.
std::string to_json(const Runtime& runtime, const Trainer& trainer,
                    const std::vector<EpochRecord>& epochs, const Overlap& overlap);

/// `60,000`
std::string format_count(double count);

}  // namespace weft::mlp
