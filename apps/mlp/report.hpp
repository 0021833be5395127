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
  void add(const TraceSummary& epoch);

  struct Actor {
    std::string id;
    TrackKind kind = TrackKind::Socket;
    double busy_seconds = 0;
  };
  [[nodiscard]] const std::vector<Actor>& actors() const { return actors_; }
  /// Share of the time in which the actor did something, from 0 to 1.
  [[nodiscard]] double busy(const Actor& actor) const;

  double wall_seconds = 0;
  double transfer_seconds = 0;  ///< in which at least one link carried something
  double hidden_seconds = 0;    ///< the part of it in which a device computed
  double exposed_seconds = 0;   ///< the rest
  std::uint64_t transfer_bytes = 0;
  /// Share of transfer time hidden; 1 if nothing was transferred.
  [[nodiscard]] double hidden() const {
    return transfer_seconds > 0 ? hidden_seconds / transfer_seconds : 1;
  }

 private:
  std::vector<Actor> actors_;
};

/// One line of the table and one element of `epochs` in the JSON.
struct EpochRecord {
  std::uint64_t number = 0;
  Epoch train;
  std::optional<double> test_accuracy;  ///< none where the test set was not looked at
};

/// The machine and who trains, a few lines.
std::vector<std::string> describe_machine(const Runtime& runtime, const Trainer& trainer,
                                          std::size_t batch);
/// Heading and rows of the table of epochs.
std::string table_head(std::uint64_t epochs);
std::string table_row(const EpochRecord& epoch, std::uint64_t epochs);
/// What overlapped, a few lines.
std::vector<std::string> describe_overlap(const Overlap& overlap);

/// The result for programs:
/// `{"machine","devices":[{"id","engine","share"}],"epochs":[{"epoch","loss","train_accuracy",
/// "test_accuracy","seconds","samples_per_second"}],"actors":[{"id","busy"}],
/// "transfer":{"seconds","hidden","exposed_seconds"}}`.
/// Shares, accuracies, `busy` and `hidden` from 0 to 1; `test_accuracy` is null where the test set
/// was not looked at.
std::string to_json(const Runtime& runtime, const Trainer& trainer,
                    const std::vector<EpochRecord>& epochs, const Overlap& overlap);

}  // namespace weft::mlp
