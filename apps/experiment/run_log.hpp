#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "apps/experiment/run_record.hpp"

namespace weft::experiment {

/// The folder of an experiment: `spec.yaml`, the spec it belongs to, and `runs.jsonl`, a line per
/// finished run. A line is in the file when `add` returns, so what is interrupted loses only what
/// had not finished.
class RunLog {
 public:
  /// Makes the folder, or with `resume` goes on in one that is there. Throws `std::runtime_error`
  /// for a folder with other runs, or of another spec, that cannot be written or whose lines are
  /// damaged; half a line at the end, left by an interruption, is taken away.
  RunLog(std::filesystem::path folder, const std::string& spec_text, bool resume);

  /// Whether this run is there and did not fail.
  [[nodiscard]] bool has(const std::string& key) const;
  void add(RunRecord record);

  /// One of each run, the last that was added, in order of their first.
  [[nodiscard]] const std::vector<RunRecord>& records() const { return records_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  void check_spec(const std::string& text, bool resume) const;
  void read();
  void keep(RunRecord record);

  std::filesystem::path folder_;
  std::map<std::string, std::size_t> places_;  // in records_, by key
  std::vector<RunRecord> records_;
  std::ofstream file_;
};

/// The whole of a file. Throws `std::runtime_error`.
std::string read_text(const std::filesystem::path& file);
/// Writes beside the file first and then puts it in place. Throws `std::runtime_error`.
void write_text(const std::filesystem::path& file, const std::string& text);

}  // namespace weft::experiment
