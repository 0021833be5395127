#pragma once

namespace CLI {
class App;
}

namespace weft::bench {

/// Adds `links`, `collectives` and `gpu-ops` to `weft bench`.
void add_device_commands(CLI::App& bench);

}  // namespace weft::bench
