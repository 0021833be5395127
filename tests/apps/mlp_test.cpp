// Runs `weft mlp` as a user does.
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/mlp/dataset.hpp"
#include "apps/mlp_tiny_data.hpp"
#include "support/catch.hpp"
#include "tests/actors/cuda/host_stream.hpp"

namespace weft::mlp {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

struct Outcome {
  int exit_code = 0;
  std::string out, err;
};

/// A folder with the tiny data set, and the command run in it.
class Session {
 public:
  Session() { write_tiny_data(folder_.path()); }

  Outcome run(const std::string& arguments) {
    const std::string out = file("stdout"), err = file("stderr");
    const bool says_data = arguments.find("--dataset") != std::string::npos;
    // Not what the machine happens to have, unless the arguments say so.
    const std::string command =
        "WEFT_GPUS=emulated:2 " + std::string(WEFT_COMMAND) + " mlp " + arguments +
        (says_data ? "" : " --dataset " + folder_.path().string()) + " >" + out + " 2>" + err;
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), read_file(err)};
  }
  /// A short training run that must succeed; its JSON.
  json train(const std::string& arguments) {
    const Outcome outcome = run("--batch 64 --hidden 32 --json - " + arguments);
    INFO(arguments + "\n" + outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  TemporaryFolder folder_{"mlp"};
};

std::vector<double> losses(const json& result) {
  std::vector<double> list;
  for (const json& epoch : result["epochs"]) list.push_back(epoch["loss"]);
  return list;
}

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& [key, value] : object.items()) names.insert(key);
  return names;
}

TEST_CASE("training learns, and its JSON has the promised shape", "[apps]") {
  Session session;
  const json result = session.train("--epochs 6 --eval-every 4 --lr 0.05");
  CHECK(keys(result) ==
        std::set<std::string>{"machine", "devices", "epochs", "actors", "transfer"});
  REQUIRE(result["devices"].size() == 2);
  CHECK(keys(result["devices"][0]) == std::set<std::string>{"id", "engine", "share"});
  CHECK(result["devices"][1]["id"] == "gpu1");
  CHECK(result["devices"][1]["share"] == 0.5);
  REQUIRE(result["epochs"].size() == 6);
  CHECK(keys(result["epochs"][0]) == std::set<std::string>{"epoch", "loss", "train_accuracy",
                                                           "test_accuracy", "seconds",
                                                           "samples_per_second"});
  CHECK(result["epochs"][0]["test_accuracy"].is_null());
  CHECK(result["epochs"][3]["test_accuracy"].is_number());
  CHECK(result["epochs"][5]["epoch"] == 6);
  CHECK(result["epochs"][5]["test_accuracy"] > 0.8);
  CHECK(losses(result).back() < losses(result).front());
  for (const json& actor : result["actors"]) {
    CHECK(keys(actor) == std::set<std::string>{"id", "busy"});
    CHECK(actor["busy"] >= 0);
    CHECK(actor["busy"] <= 1);
  }
  CHECK(keys(result["transfer"]) == std::set<std::string>{"seconds", "hidden", "exposed_seconds"});
  CHECK(result["transfer"]["seconds"] > 0);
}

TEST_CASE("a second run with the same seed gives the same losses to the bit", "[apps]") {
  Session session;
  for (const char* devices : {"gpu0,gpu1", "socket0", "gpu0,gpu1,socket0 --share 1,0.7,0.5"}) {
    const std::string arguments = std::string("--epochs 3 --devices ") + devices;
    const auto first = losses(session.train(arguments));
    CHECK(first == losses(session.train(arguments)));
    CHECK(first != losses(session.train(arguments + " --seed 2")));
  }
}

TEST_CASE("replayed steps are the submitted ones to the bit", "[apps]") {
  Session session;
  for (const std::string devices :
       {"--devices gpu0,gpu1", "--devices socket0", "--devices gpu0 --input resident",
        "--devices gpu0", "--devices gpu0,gpu1,socket0 --share 1,0.7,0.5",
        "--devices gpu0,gpu1 --simulate"}) {
    INFO(devices);
    const std::string rest = " --epochs 3 " + devices + " --save ";
    const std::string planned = session.file("planned"), plain = session.file("plain");
    const auto first = losses(session.train("--plan" + rest + planned));
    CHECK(first == losses(session.train("--no-plan" + rest + plain)));
    CHECK(read_file(planned) == read_file(plain));
  }
}

TEST_CASE("any set of devices and shares gives the loss curve of one device", "[apps]") {
  Session session;
  const auto alone = losses(session.train("--epochs 5 --devices gpu0"));
  for (const char* devices :
       {"socket0", "gpu0,gpu1", "gpu1,gpu0 --share 3,1", "gpu0,socket0", "gpu0,gpu1 --share 0,1",
        "gpu0,gpu1,socket0 --share 1,1,0.01", "gpu0,gpu1,gpu2,gpu3,gpu4 --gpus emulated:5"}) {
    INFO(devices);
    const auto together = losses(session.train(std::string("--epochs 5 --devices ") + devices));
    for (std::size_t i = 0; i < alone.size(); ++i)
      CHECK(std::abs(together[i] - alone[i]) <= 1e-3 * alone[i]);
  }
}

TEST_CASE("it does not matter where the minibatches come from", "[apps]") {
  Session session;
  const auto streamed = losses(session.train("--epochs 3"));
  CHECK(losses(session.train("--epochs 3 --input resident")) == streamed);
}

TEST_CASE("a resumed run goes on to the numbers of an uninterrupted one", "[apps]") {
  Session session;
  const std::string file = session.file("checkpoint");
  for (const char* options : {"", " --momentum 0", " --devices socket0 --lr 0.03",
                              " --devices gpu0,socket0 --share 1,0.3"}) {
    INFO(options);
    const json whole = session.train("--epochs 5 --seed 4" + std::string(options));
    session.train("--epochs 2 --seed 4 --save " + file + options);
    // What the checkpoint knows need not be said again.
    const std::string devices = std::string(options).find("socket0") == std::string::npos ? ""
                                : std::string(options).find("gpu0") == std::string::npos
                                    ? " --devices socket0"
                                    : " --devices gpu0,socket0";
    const json rest = session.train("--epochs 5 --resume " + file + devices);
    REQUIRE(rest["epochs"].size() == 3);
    CHECK(rest["epochs"][0]["epoch"] == 3);
    for (std::size_t i = 0; i < 3; ++i)
      for (const char* key : {"loss", "train_accuracy", "test_accuracy"})
        CHECK(rest["epochs"][i][key] == whole["epochs"][i + 2][key]);
  }
}

TEST_CASE("a checkpoint that does not fit is refused in one line", "[apps]") {
  Session session;
  const std::string file = session.file("checkpoint");
  session.train("--epochs 2 --save " + file);
  for (const auto& [arguments, what] :
       std::map<std::string, std::string>{{"--epochs 4 --lr 0.2", "--lr"},
                                          {"--epochs 4 --batch 32", "--batch"},
                                          {"--epochs 4 --hidden 16", "--hidden"},
                                          {"--epochs 4 --momentum 0", "--momentum"},
                                          {"--epochs 4 --seed 9", "--seed"},
                                          {"--epochs 2", "--epochs"}}) {
    const Outcome outcome = session.run("--resume " + file + " " + arguments);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.err.find(what) != std::string::npos);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
  write_tiny_data(fs::path(file).parent_path(), 700, 200);
  CHECK(session.run("--epochs 4 --resume " + file).err.find("other data") != std::string::npos);
}

TEST_CASE("wrong input is refused in one line before any training", "[apps]") {
  Session session;
  for (const auto& [arguments, what] : std::map<std::string, std::string>{
           {"--devices gpu7", "gpu7"},
           {"--devices gpu0,gpu0", "twice"},
           {"--devices ,", "--devices"},
           {"--batch 0", "--batch 0"},
           {"--batch -3", "--batch -3"},
           {"--batch 641", "only 640 samples"},
           {"--hidden 0", "--hidden 0"},
           {"--lr -0.1", "--lr -0.1"},
           {"--lr nan", "--lr nan"},
           {"--momentum 1", "--momentum 1"},
           {"--epochs 0", "--epochs 0"},
           {"--seed -1", "--seed -1"},
           {"--input disk", "streamed or resident"},
           {"--eval-every 0", "--eval-every 0"},
           {"--share 1,2,3", "3 numbers for 2 devices"},
           {"--share 1,x", "\"x\""},
           {"--share 0,0", "above 0"},
           {"--save /no/such/folder/file", "--save /no/such/folder/file"},
           {"--save /", "--save /"},
           {"--trace /no/such/folder/file", "--trace /no/such/folder/file"},
           {"--json /no/such/folder/file", "--json /no/such/folder/file"},
           {"--resume /no/such/file", "/no/such/file"},
           {"--dataset /no/such/folder", "/no/such/folder"},
           {"--gpus none --devices gpu0", "gpu0"}}) {
    const Outcome outcome = session.run(arguments);
    INFO(arguments + ": " + outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.err.find(what) != std::string::npos);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    CHECK(outcome.out.empty());
  }
}

TEST_CASE("CUDA devices train to what the host trains to", "[apps][gpu]") {
#if WEFT_HAVE_CUDA
  const int devices = test::cuda_device_count();
#else
  const int devices = 0;
#endif
  if (devices == 0) {
    WARN("skipped: there is no CUDA device");
    return;
  }
  Session session;
  const double wanted = session.train("--epochs 3 --devices socket0")["epochs"][2]["loss"];
  for (const std::string given : {"gpu0", "gpu0,gpu1", "socket0,gpu0,gpu1"}) {
    if (devices < 2 && given != "gpu0") continue;
    for (const char* input : {"streamed", "resident"}) {
      const json result = session.train("--epochs 3 --gpus cuda --devices " + given + " --share " +
                                        (given == "gpu0"        ? "1"
                                         : given == "gpu0,gpu1" ? "1,1"
                                                                : "1,1,1") +
                                        " --input " + input);
      INFO(given << " " << input);
      CHECK(result["epochs"][2]["loss"].get<double>() == Approx(wanted).epsilon(1e-3));
    }
  }
}

TEST_CASE("without a terminal the text is plain lines, an epoch each", "[apps]") {
  Session session;
  const Outcome outcome = session.run("--batch 64 --epochs 3");
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  for (const char* part : {"machine", "emulated", "gpu0 32 + gpu1 32 of every 64 samples", "1/3",
                           "3/3", "what overlapped", "gpu1", "transfers", "hidden"}) {
    INFO(outcome.out);
    CHECK(outcome.out.find(part) != std::string::npos);
  }
  CHECK(outcome.out.find('\r') == std::string::npos);
  CHECK(outcome.out.find('\x1b') == std::string::npos);
}

TEST_CASE("the trace is well-formed, and spans of a lane do not overlap", "[apps]") {
  Session session;
  const std::string file = session.file("trace.json");
  session.train("--epochs 2 --trace " + file);
  const json trace = json::parse(read_file(file));
  const json& events = trace.is_array() ? trace : trace["traceEvents"];
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> lanes;
  std::set<std::string> names;
  for (const json& event : events) {
    if (event["ph"] != "X" || event["cat"] == "submit") continue;
    names.insert(event["name"]);
    const double start = event["ts"], length = event["dur"];
    lanes[{event["pid"], event["tid"]}].push_back({start, start + length});
  }
  for (const char* name :
       {"mlp_gather", "mlp_normalise", "mlp_forward", "mlp_gradient", "mlp_update", "mlp_evaluate"})
    CHECK(names.count(name) == 1);
  for (auto& [lane, spans] : lanes) {
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i)
      REQUIRE(spans[i].first >= spans[i - 1].second - 0.002);
  }
}

TEST_CASE("one epoch on the real data learns what clothes look like", "[apps]") {
  if (!fs::exists(fs::path(kDefaultFolder) / "train-images-idx3-ubyte.gz")) {
    WARN("skipped: the package dataset-fashion-mnist is not installed");
    return;
  }
  Session session;
  const Outcome outcome =
      session.run("--epochs 1 --hidden 64 --json - --dataset " + std::string(kDefaultFolder));
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(json::parse(outcome.out)["epochs"][0]["test_accuracy"] > 0.75);
}

}  // namespace
}  // namespace weft::mlp
