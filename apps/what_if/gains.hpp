#pragma once

#include <functional>
#include <string>
#include <vector>

namespace weft::apps {

/// How long a run takes where one thing is faster; `target` as `SimulatedScale` has it.
struct Gain {
  std::string target;
  double seconds = 0;
};

/// What bounds a run: each thing that it used made `factor` times as fast, one at a time.
struct WhatIf {
  double factor = 2;
  double seconds = 0;       ///< as it is
  std::vector<Gain> gains;  ///< the one that helps most first

  /// The share of the time that a change saves; negative if it costs time.
  [[nodiscard]] double saved(const Gain& gain) const {
    return seconds > 0 ? 1 - gain.seconds / seconds : 0;
  }
  /// The first `top` of those that save at least a thousandth.
  [[nodiscard]] std::vector<Gain> best(std::size_t top) const;
};

/// Asks `time_of` once for each target, with a text such as `link:pcie=2`.
WhatIf try_each(double seconds, const std::vector<std::string>& targets, double factor,
                const std::function<double(const std::string& scale)>& time_of);

/// `link:pcie × 2`, and for what is a time `gpu.launch / 2`.
std::string change_text(const std::string& target, double factor);
/// `−20.1 %`, `+0.3 %`: what becomes of the time where so much of it is saved.
std::string saved_text(double saved);

/// A line for each of the best and one for the rest, for a person.
std::string table_of(const WhatIf& what_if, std::size_t top);

}  // namespace weft::apps
