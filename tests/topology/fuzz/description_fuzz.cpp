#include "topology/discover.hpp"
#include "topology/fuzz/fuzz_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weft::fuzz::run(data, size, [](std::string_view text) {
    const weft::Machine machine = weft::parse_machine(std::string(text));
    // Large machines are right and slow to check.
    return machine.links.size() < 1000 && machine.sockets.size() < 1000 ? machine : weft::Machine{};
  });
}
