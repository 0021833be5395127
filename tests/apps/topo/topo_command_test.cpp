// Runs the commands as a user does.
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"

namespace {

struct Output {
  int code = 0;
  std::string text;  ///< both streams
};

Output run(const std::string& arguments, const std::string& environment = "") {
  const std::string command = environment + " " + WEFT_TOPO_PROGRAM + " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  Output output;
  std::array<char, 4096> buffer;
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
    output.text.append(buffer.data(), count);
  const int status = pclose(pipe);
  output.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

/// A folder that goes away with the test.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weft-topo-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()));
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("weft topo shows this machine", "[apps]") {
  const Output output = run("topo");
  CHECK(output.code == 0);
  CHECK_THAT(output.text,
             contains_text("machine: live") && contains_text("socket0") && contains_text("mem0"));
}

TEST_CASE("weft topo and weft doctor say why no GPU is driven", "[apps]") {
  // With all GPUs hidden a machine with a driver is as one without.
  const std::string hidden = "CUDA_VISIBLE_DEVICES=";
  for (const char* command : {"topo", "doctor"}) {
    const std::string text = run(command, hidden).text;
    INFO(text);
#ifdef WEFT_HAVE_CUDA
    CHECK_THAT(text, contains_text("no GPU is driven through CUDA: "));
#else
    CHECK_THAT(text, !contains_text("CUDA: "));
#endif
  }
}

TEST_CASE("weft topo writes every format", "[apps]") {
  const auto json = nlohmann::json::parse(run("topo --from dgx-a100 --format json").text);
  CHECK(json["gpus"].size() == 8);
  CHECK_THAT(run("topo --from dgx-a100 --format dot").text,
             Catch::Matchers::StartsWith("graph machine {"));
  const Output svg = run("topo --from dgx-a100 --format svg");
  CHECK_THAT(svg.text,
             Catch::Matchers::StartsWith("<svg ") && Catch::Matchers::EndsWith("</svg>\n"));
  CHECK(run("topo --from dgx-a100 --format pdf").code != 0);
}

TEST_CASE("weft topo takes descriptions, edits and saves", "[apps]") {
  const Folder folder;
  const std::string file = (folder.path / "machine.json").string();
  const Output saved =
      run("topo --from '2 sockets x 4 cores, 2 gpus, nvlink' --remove gpu0-gpu1 "
          "--set 'mem0.bytes=1 TB' --save " +
          file);
  CHECK(saved.code == 0);
  CHECK_THAT(saved.text, contains_text("dram 1 TiB") && !contains_text("nvlink 300"));
  CHECK(run("topo diff '2 sockets x 4 cores, 2 gpus, nvlink' " + file).code == 1);
  CHECK_THAT(run("topo diff '2 sockets x 4 cores, 2 gpus, nvlink' " + file).text,
             contains_text("mem0.bytes") && contains_text("- gpu0-gpu1 nvlink"));
  const Output same = run("topo diff " + file + " " + file);
  CHECK(same.code == 0);
  CHECK(same.text.empty());
}

TEST_CASE("every command about a machine takes edits", "[apps]") {
  const std::string machine = "--from '2 sockets x 2 cores, 2 gpus, nvlink' ";
  const Output topo = run("topo " + machine +
                          "--add 'gpu like gpu0 on socket1' --set gpu2.memory.bytes=40GB "
                          "--set 'link:nvlink*.bytes_per_second=50 GB/s'");
  CHECK(topo.code == 0);
  CHECK_THAT(topo.text, contains_text("gpu2") && contains_text("40 GiB") &&
                            contains_text("nvlink 50 GB/s") && !contains_text("300 GB/s"));
  CHECK_THAT(run("route gpu0 gpu2 " + machine + "--add 'gpu like gpu0'").text,
             contains_text("gpu0 to gpu2: nvlink"));
  CHECK_THAT(run("doctor " + machine + "--set 'link*.bytes_per_second=0'").text,
             contains_text("no working link"));
  CHECK(run("topo --add 'socket like socket0'").code == 0);
  CHECK(run("topo --measure --add 'socket like socket0'").code == 1);
}

TEST_CASE("weft route prints class, rate and hops", "[apps]") {
  const Output output = run("route mem0 gpu7 --from dgx-a100");
  CHECK(output.code == 0);
  CHECK_THAT(output.text, contains_text("mem0 to gpu7: across sockets, 25.2 GB/s"));
  CHECK_THAT(run("route --from dgx-a100 gpu0 gpu7").text, contains_text("nvlink, 300 GB/s"));
  CHECK_THAT(run("route gpu0 gpu31 --from h100-cluster-4").text, contains_text("network, 50 GB/s"));
  const Output missing = run("route gpu0 gpu99 --from dgx-a100");
  CHECK(missing.code == 1);
  CHECK_THAT(missing.text, Catch::Matchers::StartsWith("weft: gpu99") && contains_text("8"));
  CHECK(run("route cat gpu0").code == 1);
}

TEST_CASE("weft doctor says what surprises, and by its exit code whether it is broken", "[apps]") {
  const auto json = nlohmann::json::parse(run("doctor --from laptop --json").text);
  CHECK(json["broken"] == false);
  CHECK(json["findings"][0]["code"] == "hybrid_cores");
  CHECK(run("doctor --from laptop").code == 0);
  const Folder folder;
  const std::string file = (folder.path / "broken.json").string();
  run("topo --from '2 sockets x 2 cores, 2 gpus' --remove hub1 --save " + file);
  const Output broken = run("doctor --from " + file);
  CHECK(broken.code == 1);
  CHECK_THAT(broken.text, Catch::Matchers::StartsWith("broken: ") && contains_text("gpu1"));
  const Output live = run("doctor");
  CHECK((live.code == 0 || live.code == 1));
}

TEST_CASE("measured figures are kept for this machine and refused on another", "[apps]") {
  const Folder folder;
  const std::string environment = "XDG_CACHE_HOME=" + folder.path.string();
  const Output first = run("topo --measure", environment);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.text, contains_text("bus mem0-socket0: ") && contains_text("stored in "));
  CHECK_THAT(run("topo --format json", environment).text, contains_text("\"measured\""));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path / "weft")) {
    std::ifstream in(entry.path());
    std::string text((std::istreambuf_iterator<char>(in)), {});
    in.close();
    const std::size_t at = text.find("\"fingerprint\": \"") + 16;
    text.replace(at, 16, "0123456789abcdef");
    std::ofstream(entry.path()) << text;
  }
  const Output other = run("topo", environment);
  CHECK(other.code == 1);
  CHECK_THAT(other.text, contains_text("0123456789abcdef") && contains_text("--measure"));
  CHECK(run("topo --measure --from laptop").code == 1);
}

TEST_CASE("mistakes on the command line get one line and an exit code", "[apps]") {
  for (const char* arguments :
       {"topo --from /nonexistent", "topo --from nothing-like-that",
        "topo --from '2 sockets, three gpus'", "topo --set gpu0=1", "topo --remove gpu77",
        "topo --from laptop --add 'gpu like gpu9'", "topo --from laptop --set 'nic9*.name=x'",
        "topo --from laptop --save /nonexistent/x.json",
        "topo --from laptop --from '1 socket, 7 gpus'"}) {
    INFO(arguments);
    const Output output = run(arguments);
    INFO(output.text);
    CHECK(output.code == 1);
    CHECK_THAT(output.text, Catch::Matchers::StartsWith("weft: "));
    CHECK(std::count(output.text.begin(), output.text.end(), '\n') == 1);
  }
}
