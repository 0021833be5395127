#include "apps/common/output.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "apps/common/options.hpp"
#include "framework/trace.hpp"
#include "framework/trace_chrome.hpp"

namespace weft::apps {
namespace {

[[noreturn]] void cannot_write(const std::string& option, const std::string& path) {
  throw std::runtime_error(option + " " + path +
                           ": cannot write this file: " + std::strerror(errno ? errno : EIO));
}

}  // namespace

Output::Output(const CommonOptions& options)
    : json_path_(options.json),
      trace_path_(options.trace),
      text_(options.json == "-" ? stderr : stdout) {
  if (!trace_path_.empty() && !std::ofstream(trace_path_)) cannot_write("--trace", trace_path_);
  if (json_path_ == "-") {
    json_ = stdout;
  } else if (!json_path_.empty()) {
    json_ = std::fopen(json_path_.c_str(), "w");
    if (!json_) cannot_write("--json", json_path_);
  }
}

Output::~Output() {
  if (json_ && json_ != stdout) std::fclose(json_);
}

void Output::print(const char* format, ...) const {
  std::va_list arguments;
  va_start(arguments, format);
  std::vfprintf(text_, format, arguments);
  va_end(arguments);
  std::fflush(text_);  // lines of long work are read as they come, through a pipe too
}

void Output::write_json(const std::string& json) {
  if (!json_) return;
  errno = 0;
  if (std::fprintf(json_, "%s\n", json.c_str()) < 0 || std::fflush(json_) != 0)
    cannot_write("--json", json_path_);
}

void Output::write_trace(const Runtime& runtime) {
  if (trace_path_.empty()) return;
  const TraceData data = runtime.tracer()->collect();
  std::ofstream file(trace_path_, std::ios::binary);
  errno = 0;
  write_chrome_trace(data, file);
  file.close();
  if (!file) cannot_write("--trace", trace_path_);
  print("trace: %zu spans in %s, to be opened at https://ui.perfetto.dev or chrome://tracing\n",
        data.spans.size(), trace_path_.c_str());
  if (data.dropped)
    print("trace: %llu records beyond the limit are missing\n",
          static_cast<unsigned long long>(data.dropped));
}

}  // namespace weft::apps
