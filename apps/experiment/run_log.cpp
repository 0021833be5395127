#include "apps/experiment/run_log.hpp"

#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace weft::experiment {
namespace {

namespace fs = std::filesystem;

fs::path runs_file(const fs::path& folder) {
  return folder / "runs.jsonl";
}

RunRecord parse_line(const std::string& line, const std::string& where) {
  try {
    return record_from(nlohmann::ordered_json::parse(line));
  } catch (const std::exception& error) {
    throw std::runtime_error(where + ": this is no run of weft experiment (" + error.what() +
                             "); take the line away and go on with --resume");
  }
}

}  // namespace

std::string read_text(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) throw std::runtime_error(file.string() + ": cannot be read");
  return text.str();
}

void write_text(const fs::path& file, const std::string& text) {
  const fs::path beside = file.string() + ".new";
  std::ofstream stream(beside, std::ios::binary);
  stream << text;
  stream.close();
  std::error_code error;
  if (stream) fs::rename(beside, file, error);
  if (!stream || error) throw std::runtime_error(file.string() + ": cannot be written");
}

RunLog::RunLog(fs::path folder, const std::string& spec_text, bool resume)
    : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!fs::is_directory(folder_))
    throw std::runtime_error("--out " + folder_.string() + ": cannot make this folder");
  check_spec(spec_text, resume);
  read();
  file_.open(runs_file(folder_), std::ios::binary | std::ios::app);
  if (!file_) throw std::runtime_error(runs_file(folder_).string() + ": cannot be written");
}

void RunLog::check_spec(const std::string& text, bool resume) const {
  const fs::path spec = folder_ / "spec.yaml";
  if (!fs::exists(spec)) {
    if (fs::exists(runs_file(folder_)))
      throw std::runtime_error("--out " + folder_.string() +
                               ": has runs but not the spec they belong to; give another folder");
    write_text(spec, text);
    return;
  }
  if (read_text(spec) != text)
    throw std::runtime_error("--out " + folder_.string() +
                             ": belongs to another spec, which is in its spec.yaml; give another "
                             "folder with --out");
  if (!resume && fs::exists(runs_file(folder_)) && fs::file_size(runs_file(folder_)) > 0)
    throw std::runtime_error("--out " + folder_.string() +
                             ": has runs of this experiment; --resume goes on with them, or give "
                             "another folder with --out");
}

void RunLog::read() {
  const fs::path file = runs_file(folder_);
  if (!fs::exists(file)) return;
  const std::string text = read_text(file);
  const std::size_t whole = text.rfind('\n') + 1;  // 0 if there is no line at all
  std::istringstream lines(text.substr(0, whole));
  int number = 0;
  for (std::string line; std::getline(lines, line);)
    keep(parse_line(line, file.string() + ":" + std::to_string(++number)));
  if (whole < text.size()) fs::resize_file(file, whole);
}

void RunLog::keep(RunRecord record) {
  const auto [place, is_new] = places_.try_emplace(record.key(), records_.size());
  if (is_new)
    records_.push_back(std::move(record));
  else
    records_[place->second] = std::move(record);
}

bool RunLog::has(const std::string& key) const {
  const auto place = places_.find(key);
  return place != places_.end() && records_[place->second].error.empty();
}

void RunLog::add(RunRecord record) {
  file_ << to_json(record, true).dump() << '\n' << std::flush;
  if (!file_) throw std::runtime_error(runs_file(folder_).string() + ": cannot be written");
  keep(std::move(record));
}

}  // namespace weft::experiment
