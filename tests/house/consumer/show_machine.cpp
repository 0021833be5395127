#include <iostream>

#include "topology/machine.hpp"

int main() {
  const weft::Machine machine;
  std::cout << weft::to_string(weft::Node(weft::GpuId{1})) << " of " << machine.gpus.size()
            << " GPUs\n";
}
