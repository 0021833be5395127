#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/overlap/measure.hpp"
#include "framework/cuda.hpp"

namespace weft::apps {

/// One line of the table: a part of an experiment, or its parts at once.
struct Row {
  std::string name;   ///< `two_gpus/both`
  std::string label;  ///< for a person
  Timing timing;
  double sum_seconds = 0;    ///< of the parts; 0 for a part
  double ideal_seconds = 0;  ///< the longest part; for a part its own time
};

struct Experiment {
  std::string name;      ///< for `--only`
  std::string title;     ///< for a person
  std::size_t gpus = 1;  ///< how many it needs
  int measurements = 0;  ///< rows it gives
  /// Runs it and checks its results. Throws `std::runtime_error` for a wrong one.
  std::function<std::vector<Row>()> run;
  bool is_usual = true;  ///< runs unless others are named
};

/// What all of them use.
struct Workload {
  std::int64_t n = 0;                     ///< matrices of n × n
  int ops = 50;                           ///< matmuls per device
  bool is_double = false;                 ///< elements
  std::uint32_t lanes = 2;                ///< of a GPU, for the ideal of the last experiment
  Precision precision = Precision::Fp32;  ///< of fp32 products on GPUs, for the bound of the checks
  bool is_planned = false;                ///< matmuls are recorded once, then replayed
  bool to_program = false;  ///< results come to the program's own memory instead of weft's
};

/// The experiments on `runtime`; both arguments outlive what is returned.
std::vector<Experiment> experiments(const Runtime& runtime, const Measure& measure,
                                    const Workload& workload);

}  // namespace weft::apps
