#include "apps/workloads/measured.hpp"

#include <chrono>
#include <cmath>
#include <sstream>

#include "apps/mlp/random.hpp"
#include "framework/trace.hpp"

namespace weft::workloads {

double timed(const Runtime& runtime, const std::function<void()>& work) {
  Tracer* tracer = runtime.tracer();
  runtime.wait_idle();
  if (tracer) {
    tracer->clear();
    tracer->set_recording(true);
  }
  const auto start = runtime.now();
  try {
    work();
  } catch (...) {
    runtime.wait_idle();  // what is in flight may use what goes with the caller
    throw;
  }
  const auto end = runtime.now();
  runtime.wait_idle();
  if (tracer) tracer->set_recording(false);
  return std::chrono::duration<double>(end - start).count();
}

Parameter plan_parameter() {
  return number("plan", 0, 0, 1, "1: the ops are recorded before, a replay of them is measured");
}

bool planned(const Context& context) {
  return context.values.number("plan") == 1;
}

void expect_near(const char* what, std::size_t at, double got, double expected, double bound) {
  if (std::abs(got - expected) <= bound) return;
  std::ostringstream text;
  text.precision(9);
  text << "wrong result: " << what << "[" << at << "] is " << got << ", but the reference is "
       << expected << " within " << bound;
  throw WrongResult(text.str());
}

void expect_same(const char* what, std::span<const float> got, std::span<const float> expected) {
  if (got.size() != expected.size())
    throw WrongResult("wrong result: " + std::string(what) + " has " + std::to_string(got.size()) +
                      " elements, but the reference has " + std::to_string(expected.size()));
  for (std::size_t i = 0; i < got.size(); ++i)
    expect_near(what, i, static_cast<double>(got[i]), static_cast<double>(expected[i]), 0);
}

std::uint64_t digest_of(std::span<const float> values, std::uint64_t of_what_came_before) {
  std::uint64_t hash = of_what_came_before ? of_what_came_before : 0xcbf29ce484222325ull;
  for (const std::byte byte : std::as_bytes(values))
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ull;
  return hash ? hash : 1;
}

std::string checked(const Runtime& runtime, const std::string& against,
                    const std::function<void()>& check) {
  if (!runtime.has_data()) return kNotChecked;
  check();
  return "checked: " + against;
}

float random_element(std::uint64_t seed, std::uint64_t i) {
  return mlp::random_symmetric(seed, i, 1.0f);
}

std::vector<std::size_t> positions(std::size_t count, std::size_t most) {
  std::vector<std::size_t> chosen;
  const std::size_t step = count > most ? count / most | 1 : 1;  // odd: no power of two's column
  for (std::size_t i = 0; i < count; i += step) chosen.push_back(i);
  return chosen;
}

}  // namespace weft::workloads
