#include "apps/workloads/fill_tiles.hpp"

#include <cuda_runtime.h>

#include "actors/cuda/check.hpp"

namespace weft::workloads::device {
namespace {

constexpr unsigned kThreads = 256;

// `random_element`: every step is exact, so it is the same to the bit however it is compiled.
__device__ float random_at(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  const float unit = static_cast<float>(static_cast<std::uint32_t>(z >> 40)) * 0x1p-24f;
  return 2 * unit - 1;
}

template <class T>
struct Random {
  std::uint64_t seed;
  __device__ T at(std::int64_t n, std::int64_t i, std::int64_t j) const {
    return static_cast<T>(random_at(seed, static_cast<std::uint64_t>(i * n + j)));
  }
};

template <class T>
struct Definite {
  std::uint64_t seed;
  __device__ T at(std::int64_t n, std::int64_t i, std::int64_t j) const {
    const std::int64_t low = i < j ? i : j, high = i < j ? j : i;
    const T random = static_cast<T>(random_at(seed, static_cast<std::uint64_t>(high * n + low)));
    return i == j ? random + static_cast<T>(n) : random;
  }
};

// A row a block, and as many further ones as there are no blocks for.
template <class T, class Element>
__global__ void __launch_bounds__(kThreads) fill_kernel(T* tile, TilePlace place, Element element) {
  for (std::int64_t i = blockIdx.x; i < place.rows; i += gridDim.x)
    for (std::int64_t j = threadIdx.x; j < place.columns; j += kThreads)
      tile[i * place.columns + j] =
          element.at(place.n, place.first_row + i, place.first_column + j);
}

template <class T, class Element>
void run(const char* name, CUstream_st* stream, T* tile, const TilePlace& place, Element element) {
  constexpr std::int64_t kMostBlocks = 2048;
  if (place.rows == 0 || place.columns == 0) return;
  const auto blocks = static_cast<unsigned>(place.rows < kMostBlocks ? place.rows : kMostBlocks);
  fill_kernel<<<blocks, kThreads, 0, stream>>>(tile, place, element);
  WEFT_CHECK_LAUNCH(name);
}

}  // namespace

void random_tile(CUstream_st* stream, float* tile, const TilePlace& place, std::uint64_t seed) {
  run("random_tile", stream, tile, place, Random<float>{seed});
}
void random_tile(CUstream_st* stream, double* tile, const TilePlace& place, std::uint64_t seed) {
  run("random_tile", stream, tile, place, Random<double>{seed});
}
void definite_tile(CUstream_st* stream, float* tile, const TilePlace& place, std::uint64_t seed) {
  run("definite_tile", stream, tile, place, Definite<float>{seed});
}
void definite_tile(CUstream_st* stream, double* tile, const TilePlace& place, std::uint64_t seed) {
  run("definite_tile", stream, tile, place, Definite<double>{seed});
}

}  // namespace weft::workloads::device
