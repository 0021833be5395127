#include "framework/failure.hpp"

#include "support/catch.hpp"

using namespace weft;

TEST_CASE("a failure names its kind, op, device and message", "[framework][failure]") {
  const FailureRef failure(
      Failure::make(FailureKind::OutOfMemory, "matmul", "gpu1", "wanted 64 bytes"));
  CHECK(failure->describe() == "matmul on gpu1: out of memory: wanted 64 bytes");
  CHECK(failure->kind() == FailureKind::OutOfMemory);
  CHECK(failure->root_op() == "matmul");
  CHECK(failure->op() == "matmul");
  CHECK(failure->chain() == std::vector<std::string>{"matmul"});
}

TEST_CASE("a dependent failure keeps the root and the way from it", "[framework][failure]") {
  FailureRef failure(Failure::make(FailureKind::KernelThrew, "decode", "socket0", "bad file"));
  for (const char* op : {"copy", "forward", "loss"})
    failure = FailureRef(Failure::dependent(failure.get(), op));
  CHECK(failure->kind() == FailureKind::KernelThrew);
  CHECK(failure->op() == "loss");
  CHECK(failure->root_op() == "decode");
  CHECK(failure->root_message() == "bad file");
  CHECK(failure->chain() == std::vector<std::string>{"decode", "copy", "forward", "loss"});
  CHECK(failure->describe() ==
        "decode on socket0: kernel threw: bad file (reached decode → copy → forward → loss)");
  CHECK(std::string(OpError(failure).what()) == failure->describe());
}

TEST_CASE("the middle of a long chain is left out, and a very long one is freed without recursion",
          "[framework][failure]") {
  FailureRef failure(Failure::make(FailureKind::Injected, "root", "gpu0", ""));
  constexpr int kLength = 500'000;
  for (int i = 1; i < kLength; ++i)
    failure = FailureRef(Failure::dependent(failure.get(), "op" + std::to_string(i)));
  const auto chain = failure->chain();
  REQUIRE(chain.size() == 10);
  CHECK(chain[0] == "root");
  CHECK(chain[1] == "… 499991 more");
  CHECK(chain[9] == "op499999");
}

TEST_CASE("every kind of failure has a name", "[framework][failure]") {
  for (FailureKind kind : {FailureKind::KernelThrew, FailureKind::OutOfMemory,
                           FailureKind::DeviceLost, FailureKind::DeviceError, FailureKind::NoRoute,
                           FailureKind::Injected, FailureKind::Cancelled})
    CHECK(std::string(to_string(kind)) != "failure");
}
