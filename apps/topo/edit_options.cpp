#include "apps/topo/edit_options.hpp"

#include <CLI/CLI.hpp>

namespace weft {

void add_edit_options(CLI::App& command, MachineEdits& edits) {
  command
      .add_option("--set", edits.set,
                  "Change a figure of the machine: PATH=VALUE, e.g. \"link3.bytes_per_second=12 "
                  "GB/s\", \"link:nvlink*.bytes_per_second=0\", gpu1.memory.bytes=40GB")
      ->allow_extra_args(false);
  command
      .add_option("--remove", edits.remove,
                  "Leave a thing out of the machine: gpu1, link3, gpu0-gpu1, link:nvlink*")
      ->allow_extra_args(false);
  command
      .add_option(
          "--add", edits.add,
          "Add a thing like another: \"gpu like gpu0 [on socket1]\", \"link like link3 from "
          "gpu0 to gpu2\", \"socket like socket0\"; things are removed first, then added, "
          "then figures set")
      ->allow_extra_args(false);
}

}  // namespace weft
