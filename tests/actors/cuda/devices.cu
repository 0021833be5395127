#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "actors/cuda/devices.hpp"

namespace weft::truth {

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

Device device(int ordinal) {
  Device device{};
  cudaDeviceGetPCIBusId(device.bus_id, sizeof device.bus_id, ordinal);
  cudaDeviceProp properties{};
  cudaGetDeviceProperties(&properties, ordinal);
  device.memory_bytes = properties.totalGlobalMem;
  device.major = properties.major;
  device.minor = properties.minor;
  return device;
}

bool can_access(int from, int to) {
  int value = 0;
  return cudaDeviceCanAccessPeer(&value, from, to) == cudaSuccess && value != 0;
}

bool has_context(int ordinal) {
  // Looked up at run time, past the runtime, which might make the context that is asked for.
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  void* symbol = driver ? dlsym(driver, "cuDevicePrimaryCtxGetState") : nullptr;
  if (!symbol) return false;
  unsigned flags = 0;
  int active = 0;
  reinterpret_cast<CUresult (*)(CUdevice, unsigned*, int*)>(symbol)(ordinal, &flags, &active);
  return active != 0;
}

}  // namespace weft::truth
