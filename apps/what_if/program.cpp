#include "apps/what_if/program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

extern char** environ;

namespace weft::apps {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_with(const std::vector<std::string>& settings) {
  std::vector<std::string> all = settings;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const bool is_replaced =
        std::any_of(settings.begin(), settings.end(), [&](const std::string& setting) {
          return text.starts_with(setting.substr(0, setting.find('=') + 1));
        });
    if (!is_replaced) all.push_back(text);
  }
  return all;
}

/// An empty file that goes with it.
class TemporaryFile {
 public:
  TemporaryFile() {
    const int file = mkstemp(name_.data());
    if (file < 0)
      throw std::runtime_error(name_ +
                               ": cannot make a file for the report: " + std::strerror(errno));
    close(file);
  }
  ~TemporaryFile() { unlink(name_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string text() const {
    std::ifstream stream(name_, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }

 private:
  std::string name_ = (std::filesystem::temp_directory_path() / "weft_report_XXXXXX").string();
};

// The exit code, or 128 and the signal that ended it.
int run(std::vector<std::string> command, std::vector<std::string> environment, bool is_quiet) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (is_quiet)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  else
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, command[0].c_str(), &actions, nullptr,
                                 pointers(command).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error) throw std::runtime_error(command[0] + ": cannot be started: " + std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      throw std::runtime_error(command[0] + ": cannot be waited for: " + std::strerror(errno));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

SimulatedRun parse_report(const std::string& text) {
  SimulatedRun run;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string field;
    std::getline(fields, field, '\t');
    double seconds = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), seconds);
    if (error != std::errc() || end != field.data() + field.size())
      throw std::runtime_error("the report of a simulated runtime begins with \"" + field +
                               "\"; wanted seconds");
    run.seconds += seconds;
    while (std::getline(fields, field, '\t'))
      if (std::find(run.targets.begin(), run.targets.end(), field) == run.targets.end())
        run.targets.push_back(field);
  }
  return run;
}

SimulatedRun run_simulated(const std::vector<std::string>& command, const std::string& scale,
                           bool is_quiet) {
  const TemporaryFile report;
  const int code = run(command,
                       environment_with({"WEFT_SIMULATE=1", "WEFT_SIMULATED_SCALE=" + scale,
                                         "WEFT_SIMULATED_REPORT=" + report.name()}),
                       is_quiet);
  const std::string with = scale.empty() ? "" : " with " + scale;
  const std::string name =
      command[0] == kThisProgram && command.size() > 1 ? "weft " + command[1] : command[0];
  if (code != 0)
    throw std::runtime_error(name + ": ended with exit code " + std::to_string(code) + with);
  const std::string text = report.text();
  if (text.empty())
    throw std::runtime_error(name + ": had no simulated weft::Runtime that came to its end" + with);
  return parse_report(text);
}

}  // namespace weft::apps
