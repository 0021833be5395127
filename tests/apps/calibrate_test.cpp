// `weft calibrate` as a user runs it. What it measures here is not looked at: only that it can be
// used.
#include <filesystem>

#include "actors/simulated/calibration.hpp"
#include "apps/weft_command.hpp"

using namespace weft;
using namespace weft::test;

namespace {

Answer weft_command(const std::string& arguments) {
  return run_weft(WEFT_COMMAND, arguments);
}

const std::string kFolder = WEFT_TEST_FOLDER;

}  // namespace

TEST_CASE("this machine is calibrated, and its simulation uses it", "[apps][calibrate]") {
  const std::string file = kFolder + "/calibrated.json";
  std::filesystem::remove(file);
  const Answer made = weft_command("calibrate --quick --gpus none --out " + file);
  INFO(made.text);
  REQUIRE(made.exit_code == 0);
  const Calibration calibration = read_calibration_file(file);
  REQUIRE_FALSE(calibration.devices.empty());
  const auto& kernels = calibration.devices.front().kernels;
  for (const char* name : {"matmul", "matmul_f64", "fill", "mlp_update", "mlp_forward"})
    CHECK(kernels.count(name) == 1);
  CHECK(calibration.submission_ns.median > 0);

  const Answer checked = weft_command("calibrate --quick --gpus none --check " + file);
  INFO(checked.text);
  CHECK(checked.exit_code == 0);
  CHECK_THAT(checked.text, contains_text("predicted"));
  CHECK_THAT(checked.text, contains_text("perceptron"));
}

TEST_CASE("wrong files of calibrate are named in one line", "[apps][calibrate]") {
  const Answer nowhere = weft_command("calibrate --quick --gpus none --out /not/there/file.json");
  CHECK(nowhere.exit_code != 0);
  CHECK_THAT(nowhere.text, contains_text("weft: --out /not/there/file.json: cannot be written"));
  const Answer missing = weft_command("calibrate --check /not/there.json");
  CHECK(missing.exit_code != 0);
  CHECK_THAT(missing.text, contains_text("weft: /not/there.json: cannot be read"));
  const Answer gpus = weft_command("calibrate --gpus many --out " + kFolder + "/none.json");
  CHECK(gpus.exit_code != 0);
  CHECK_THAT(gpus.text, contains_text("emulated:N"));
  CHECK_FALSE(std::filesystem::exists(kFolder + "/none.json"));
}
