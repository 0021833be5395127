#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "apps/common/output.hpp"
#include "apps/mlp/options.hpp"
#include "apps/mlp/report.hpp"
#include "apps/mlp/trainer.hpp"

namespace weft::mlp {

/// What was recorded, for the trace file: the first epochs, as many as fit.
class Recording {
 public:
  void add(TraceData data);
  /// True if the last epochs did not fit.
  [[nodiscard]] bool is_cut() const { return is_cut_; }
  [[nodiscard]] const TraceData& data() const { return data_; }

 private:
  bool is_cut_ = false;
  TraceData data_;
};

/// One run of the command, from the options to the report. Throws what is wrong as an exception
/// with one line for a person.
class Run {
 public:
  explicit Run(const Options& options) : options_(options), output_(options.common) {}
  void operator()();

 private:
  void make_trainer(const Dataset& data);
  void describe_start(const Dataset& data) const;
  void train(const Dataset& data);
  bool tune_shares();
  void record(bool is_training);
  void report();

  const Options& options_;
  apps::Output output_;
  std::optional<Checkpoint> checkpoint_;
  Hyper hyper_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Trainer> trainer_;
  bool is_measured_ = false, is_remembered_ = false;
  bool is_tuned_ = false;  // shares follow the devices' speeds from epoch to epoch
  std::string shares_file_;
  std::vector<EpochRecord> records_;
  Overlap overlap_;
  Recording recording_;
};

}  // namespace weft::mlp
