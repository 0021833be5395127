#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <weft/weft.hpp>

#include "apps/workloads/workload.hpp"

namespace weft::workloads {

/// Seconds that `work` takes by the clock of the devices. `work` returns when all it submitted is
/// done. Begins when all that was submitted before has settled; a runtime that records keeps this
/// part alone.
double timed(const Runtime& runtime, const std::function<void()>& work);

/// Submits and counts what it submits.
class Counted {
 public:
  template <class Kernel, class... Arguments>
  Future submit(const Device& device, const Kernel& kernel, Arguments&&... arguments) {
    ++ops_;
    return device.submit(kernel, std::forward<Arguments>(arguments)...);
  }
  void add(std::uint64_t ops) { ops_ += ops; }
  [[nodiscard]] std::uint64_t ops() const { return ops_; }

 private:
  std::uint64_t ops_ = 0;
};

/// The parameter `plan` of a workload that can record its ops once and measure a replay of them.
Parameter plan_parameter();
/// Whether the run is to do so.
bool planned(const Context& context);

/// Throws `WrongResult` unless |got - expected| <= bound: `what[at] is …`.
void expect_near(const char* what, std::size_t at, double got, double expected, double bound);
/// Throws `WrongResult` unless the two are the same: `what[at] is …`.
void expect_same(const char* what, std::span<const float> got, std::span<const float> expected);

/// A number that differs where any bit of `values` does, all but surely (FNV-1a; never 0).
std::uint64_t digest_of(std::span<const float> values, std::uint64_t of_what_came_before = 0);

/// What a result says where nothing was computed.
inline constexpr const char* kNotChecked = "not checked: no data";
/// `checked: …` behind a check; without data the result says that there was none, and `check` is
/// not called.
std::string checked(const Runtime& runtime, const std::string& against,
                    const std::function<void()>& check);

/// A number in [-1, 1) that depends on (seed, i) alone.
float random_element(std::uint64_t seed, std::uint64_t i);

/// Which of `count` positions to look at, at most `most`: all, or evenly spread ones that fall on
/// different places of a row.
std::vector<std::size_t> positions(std::size_t count, std::size_t most);

}  // namespace weft::workloads
