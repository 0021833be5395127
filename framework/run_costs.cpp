#include "framework/run_costs.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "framework/kernel_code.hpp"

namespace weft {
namespace {

// A run counts an eighth, or more as long as there are fewer.
constexpr double kLeastShare = 1.0 / 8;

std::string key_of(const std::string& name, std::uint32_t version) {
  return name + "#" + std::to_string(version);
}

}  // namespace

std::size_t KernelCosts::index_of(double amount) {
  if (!(amount >= 1)) return 0;
  return std::min<std::size_t>(kPoints - 1, static_cast<std::size_t>(std::ilogb(amount)));
}

void KernelCosts::note(double amount, double seconds) {
  if (!(seconds >= 0) || !std::isfinite(seconds)) return;
  const std::size_t i = index_of(amount);
  std::lock_guard lock(lock_);
  Point& point = points_[i];
  ++point.runs;
  const double share = std::max(kLeastShare, 1.0 / static_cast<double>(point.runs));
  const double off = seconds - point.seconds;
  point.amount += share * (std::max(1.0, amount) - point.amount);
  point.seconds += share * off;
  if (point.runs > 1) point.spread += share * (std::abs(off) - point.spread);
  filled_ |= std::uint64_t{1} << i;
}

std::optional<double> KernelCosts::seconds(double amount) const {
  amount = std::max(1.0, amount);
  const std::size_t i = index_of(amount);
  std::lock_guard lock(lock_);
  if (filled_ == 0) return std::nullopt;
  if (points_[i].runs > 0) return points_[i].seconds * amount / points_[i].amount;
  const std::uint64_t lower = filled_ & ((std::uint64_t{1} << i) - 1);
  const std::uint64_t upper = filled_ & ~((std::uint64_t{2} << i) - 1);
  const Point* below =
      lower ? &points_[static_cast<std::size_t>(63 - std::countl_zero(lower))] : nullptr;
  const Point* above = upper && i + 1 < kPoints
                           ? &points_[static_cast<std::size_t>(std::countr_zero(upper))]
                           : nullptr;
  if (!below) return above->seconds * amount / above->amount;
  if (!above) return below->seconds * amount / below->amount;
  constexpr double kTiny = 1e-12;
  const double part = std::log(amount / below->amount) / std::log(above->amount / below->amount);
  const double from = std::log(std::max(kTiny, below->seconds));
  const double to = std::log(std::max(kTiny, above->seconds));
  return std::exp(from + part * (to - from));
}

std::vector<KernelCosts::Point> KernelCosts::points() const {
  std::vector<Point> made;
  std::lock_guard lock(lock_);
  for (const Point& point : points_)
    if (point.runs > 0) made.push_back(point);
  return made;
}

void KernelCosts::take(const std::vector<Point>& points) {
  std::lock_guard lock(lock_);
  for (const Point& point : points) {
    const std::size_t i = index_of(point.amount);
    if (points_[i].runs > 0 || point.runs == 0) continue;
    points_[i] = point;
    filled_ |= std::uint64_t{1} << i;
  }
}

RunCosts::RunCosts(std::vector<std::string> models)
    : models_(std::move(models)), number_([] {
        static std::atomic<std::uint64_t> next{1};
        return next.fetch_add(1);
      }()) {}

const RunCosts::Row& RunCosts::row(const KernelCode& code) {
  // The few kernels that a thread asks for again and again.
  struct Recent {
    std::uint64_t number = 0;
    const KernelCode* code = nullptr;
    const Row* row = nullptr;
  };
  thread_local std::array<Recent, 8> recent{};
  Recent& here = recent[reinterpret_cast<std::uintptr_t>(&code) / 64 % recent.size()];
  if (here.number == number_ && here.code == &code) return *here.row;
  std::lock_guard lock(mutex_);
  Row& row = rows_[&code];
  if (row.empty()) {
    for (std::size_t m = 0; m < models_.size(); ++m) row.push_back(std::make_unique<KernelCosts>());
    if (const auto found = known_.find(key_of(code.name, code.version)); found != known_.end())
      for (const Known& known : found->second) row[known.model]->take(known.points);
  }
  here = {number_, &code, &row};
  return row;
}

std::string RunCosts::to_json() const {
  using nlohmann::json;
  json kernels = json::array();
  auto add = [&](const std::string& key, std::size_t model,
                 const std::vector<KernelCosts::Point>& points) {
    if (points.empty()) return;
    json list = json::array();
    for (const KernelCosts::Point& point : points)
      list.push_back({{"amount", point.amount},
                      {"runs", point.runs},
                      {"seconds", point.seconds},
                      {"spread", point.spread}});
    kernels.push_back({{"kernel", key}, {"model", models_[model]}, {"points", std::move(list)}});
  };
  std::lock_guard lock(mutex_);
  std::vector<std::string> seen;
  for (const auto& [code, row] : rows_) {
    seen.push_back(key_of(code->name, code->version));
    for (std::size_t m = 0; m < row.size(); ++m) add(seen.back(), m, row[m]->points());
  }
  for (const auto& [key, list] : known_)
    if (std::find(seen.begin(), seen.end(), key) == seen.end())
      for (const Known& known : list) add(key, known.model, known.points);
  std::sort(kernels.begin(), kernels.end());
  return json({{"weft_run_costs", 1}, {"kernels", std::move(kernels)}}).dump(2) + "\n";
}

std::size_t RunCosts::take_json(const std::string& text) {
  using nlohmann::json;
  std::size_t foreign = 0;
  try {
    const json file = json::parse(text);
    if (file.at("weft_run_costs") != 1)
      throw std::runtime_error("written by another version of weft");
    std::lock_guard lock(mutex_);
    for (const json& entry : file.at("kernels")) {
      std::vector<KernelCosts::Point> points;
      for (const json& each : entry.at("points")) {
        KernelCosts::Point point;
        point.runs = each.at("runs").get<std::uint64_t>();
        point.amount = each.at("amount").get<double>();
        point.seconds = each.at("seconds").get<double>();
        point.spread = each.at("spread").get<double>();
        if (!(point.amount >= 1) || !(point.seconds >= 0) || !(point.spread >= 0))
          throw std::runtime_error("a point below zero");
        points.push_back(point);
      }
      const auto model =
          std::find(models_.begin(), models_.end(), entry.at("model").get<std::string>());
      if (model == models_.end())
        foreign += points.size();
      else
        known_[entry.at("kernel").get<std::string>()].push_back(
            {static_cast<std::size_t>(model - models_.begin()), std::move(points)});
    }
  } catch (const json::exception& error) {
    throw std::runtime_error(error.what());
  }
  return foreign;
}

}  // namespace weft
