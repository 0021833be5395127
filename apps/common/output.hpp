#pragma once

#include <cstdio>
#include <string>

namespace weft {
class Runtime;
}

namespace weft::apps {

struct CommonOptions;

/// Where a command's output goes: text for a person, `--json` and `--trace` files.
///
/// With `--json -` standard output holds the JSON alone, and text goes to standard error.
class Output {
 public:
  /// Opens the files that `options` name, so that a wrong path shows before the work. Throws
  /// `std::runtime_error` naming the file and the reason.
  explicit Output(const CommonOptions& options);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// The stream for a person.
  [[nodiscard]] std::FILE* text() const { return text_; }
  /// `printf` to it.
  void print(const char* format, ...) const __attribute__((format(printf, 2, 3)));

  /// Writes `json`, one value, and a newline; nothing without `--json`. Throws as the constructor.
  void write_json(const std::string& json);

  /// Writes what `runtime` has recorded so far, and says so; nothing without `--trace`. While
  /// nothing is in flight. Throws as the constructor.
  void write_trace(const Runtime& runtime);

  [[nodiscard]] bool wants_json() const { return !json_path_.empty(); }
  [[nodiscard]] bool wants_trace() const { return !trace_path_.empty(); }

 private:
  std::string json_path_, trace_path_;
  std::FILE* json_ = nullptr;
  std::FILE* text_;
};

}  // namespace weft::apps
