#include "topology/fuzz/fuzz_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weft::fuzz::run(data, size, [](std::string_view text) {
    using namespace weft;
    return build_machine(read_nccl_xml(text, "fuzz"), "fuzz");
  });
}
