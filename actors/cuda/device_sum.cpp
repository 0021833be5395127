#include "actors/cuda/device_sum.hpp"

#include <cstdint>
#include <string>
#include <type_traits>

#include "actors/cuda/kernels/elementwise.hpp"
#include "framework/device.hpp"
#include "framework/failure.hpp"

namespace weft::cuda {
namespace {

struct Entry {
  SumFunction host;
  DeviceSum device;
};

// `Stored` is what the device's kernel is made for: the integer of that size stands for all others
// of it, such as long long.
template <class T, class Stored = T>
constexpr Entry entry() {
  static_assert(sizeof(T) == sizeof(Stored) && std::is_signed_v<T> == std::is_signed_v<Stored>);
  return {detail::add_elements<T>,
          [](CUstream_st* stream, void* into, const void* from, std::size_t count) {
            add(stream, static_cast<Stored*>(into), static_cast<const Stored*>(from), count);
          }};
}

constexpr Entry kSums[] = {
    entry<float>(),
    entry<double>(),
    entry<std::int8_t>(),
    entry<std::uint8_t>(),
    entry<std::int16_t>(),
    entry<std::uint16_t>(),
    entry<std::int32_t>(),
    entry<std::uint32_t>(),
    entry<std::int64_t>(),
    entry<std::uint64_t>(),
    entry<long long, std::int64_t>(),
    entry<unsigned long long, std::uint64_t>(),
};

}  // namespace

DeviceSum device_sum_of(SumFunction sum, std::size_t element_bytes, const char* where) {
  for (const Entry& entry : kSums)
    if (entry.host == sum) return entry.device;
  throw UsageError(std::string(where) + ": no CUDA device adds up elements of this type (" +
                   std::to_string(element_bytes) +
                   " bytes each); float, double and integers of 8 to 64 bits can be added there, "
                   "others on a socket");
}

}  // namespace weft::cuda
