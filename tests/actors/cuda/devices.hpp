#pragma once

#include <cstddef>

// What the CUDA runtime itself says, to compare with; C++17, no CUDA header.
namespace weft::truth {

struct Device {
  char bus_id[32];
  std::size_t memory_bytes;
  int major, minor;
};

/// Number of devices; 0 where there is none or no driver.
int device_count();
Device device(int ordinal);
bool can_access(int from, int to);
/// True if this process has a context on the device.
bool has_context(int ordinal);

}  // namespace weft::truth
