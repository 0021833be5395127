#include "apps/bench/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

extern char** environ;

namespace weft::bench {
namespace {

std::size_t status_bytes(const char* key) {
  std::size_t kib = 0;
  if (FILE* file = std::fopen("/proc/self/status", "r")) {
    char line[256];
    const std::size_t length = std::strlen(key);
    while (std::fgets(line, sizeof line, file))
      if (std::strncmp(line, key, length) == 0) std::sscanf(line + length, "%zu", &kib);
    std::fclose(file);
  }
  return kib * 1024;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& settings) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : settings) replaced |= text.rfind(name + "=", 0) == 0;
    if (!replaced) all.push_back(text);
  }
  for (const auto& [name, value] : settings) all.push_back(name + "=" + value);
  return all;
}

// Reads until the other side closes; false if that takes longer than `limit`.
bool read_all(int from, std::chrono::seconds limit, std::string& output) {
  const auto end = std::chrono::steady_clock::now() + limit;
  char buffer[4096];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd wanted{from, POLLIN, 0};
    if (poll(&wanted, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t got = read(from, buffer, sizeof buffer);
    if (got <= 0) return true;
    output.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace

std::size_t resident_bytes() {
  return status_bytes("VmRSS:");
}
std::size_t peak_resident_bytes() {
  return status_bytes("VmHWM:");
}

double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

ChildResult run_self(const std::vector<std::string>& arguments,
                     const std::vector<std::pair<std::string, std::string>>& settings,
                     std::chrono::seconds limit) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) throw std::runtime_error("no pipe for a measurement's output");
  std::vector<std::string> all{"/proc/self/exe"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = environment_with(settings);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, pointers(all).data(),
                                pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error) {
    close(ends[0]);
    throw std::runtime_error(std::string("a measurement's process did not start: ") +
                             std::strerror(error));
  }
  ChildResult result;
  if (!read_all(ends[0], limit, result.output)) {
    result.timed_out = true;
    kill(child, SIGKILL);
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace weft::bench
