#include "actors/cuda/kernels/elementwise.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "actors/cuda/kernels/launch.cuh"

namespace weft::cuda {
namespace {

// `body(pack, at)` for whole packs and `body(element, at)` for the elements behind them, where
// `packs` says how many packs there are; 0 where the pointers are not aligned for them.
template <std::size_t kPack, class Body>
__global__ void __launch_bounds__(kBlock) each(std::size_t packs, std::size_t count, Body body) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) body.pack(i);
  for (std::size_t i = packs * kPack + first_item(); i < count; i += item_stride()) body.element(i);
}

template <std::size_t kPack, class Body>
void run(cudaStream_t stream, const char* name, std::size_t count, bool is_aligned, Body body) {
  if (count == 0) return;
  const std::size_t packs = is_aligned ? count / kPack : 0;
  const std::size_t rest = count - packs * kPack;
  each<kPack><<<blocks_for(packs > rest ? packs : rest), kBlock, 0, stream>>>(packs, count, body);
  WEFT_CHECK_LAUNCH(name);
}

struct Fill {
  float* x;
  float value;
  __device__ void pack(std::size_t i) const {
    reinterpret_cast<float4*>(x)[i] = make_float4(value, value, value, value);
  }
  __device__ void element(std::size_t i) const { x[i] = value; }
};

struct Uniform {
  float* x;
  std::uint64_t seed;
  float low, span;
  // No fused multiply-add: the host rounds the product too.
  __device__ float at(std::size_t i) const {
    std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    const float unit = __fmul_rn(static_cast<float>(static_cast<std::uint32_t>(z >> 40)),
                                 5.9604644775390625e-8f);  // 2^-24
    return __fadd_rn(low, __fmul_rn(span, unit));
  }
  __device__ void pack(std::size_t i) const {
    reinterpret_cast<float4*>(x)[i] =
        make_float4(at(4 * i), at(4 * i + 1), at(4 * i + 2), at(4 * i + 3));
  }
  __device__ void element(std::size_t i) const { x[i] = at(i); }
};

template <class T>
struct Add {
  T* into;
  const T* from;
  __device__ void pack(std::size_t i) const {
    Pack<T> sum = reinterpret_cast<Pack<T>*>(into)[i];
    const Pack<T> more = reinterpret_cast<const Pack<T>*>(from)[i];
#pragma unroll
    for (std::size_t j = 0; j < Pack<T>::kSize; ++j)
      sum.items[j] = static_cast<T>(sum.items[j] + more.items[j]);
    reinterpret_cast<Pack<T>*>(into)[i] = sum;
  }
  __device__ void element(std::size_t i) const {
    into[i] = static_cast<T>(into[i] + from[i]);
  }
};

struct Copy {
  char* to;
  const char* from;
  __device__ void pack(std::size_t i) const {
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  }
  __device__ void element(std::size_t i) const { to[i] = from[i]; }
};

struct ToBf16 {
  std::uint16_t* to;
  const float* from;
  __device__ void element(std::size_t i) const {
    to[i] = __bfloat16_as_ushort(__float2bfloat16_rn(from[i]));
  }
  __device__ void pack(std::size_t i) const {
    const float4 x = reinterpret_cast<const float4*>(from)[i];
    reinterpret_cast<ushort4*>(to)[i] =
        make_ushort4(__bfloat16_as_ushort(__float2bfloat16_rn(x.x)),
                     __bfloat16_as_ushort(__float2bfloat16_rn(x.y)),
                     __bfloat16_as_ushort(__float2bfloat16_rn(x.z)),
                     __bfloat16_as_ushort(__float2bfloat16_rn(x.w)));
  }
};

struct FromBf16 {
  float* to;
  const std::uint16_t* from;
  __device__ void element(std::size_t i) const {
    to[i] = __bfloat162float(__ushort_as_bfloat16(from[i]));
  }
  __device__ void pack(std::size_t i) const {
    const ushort4 x = reinterpret_cast<const ushort4*>(from)[i];
    reinterpret_cast<float4*>(to)[i] = make_float4(
        __bfloat162float(__ushort_as_bfloat16(x.x)), __bfloat162float(__ushort_as_bfloat16(x.y)),
        __bfloat162float(__ushort_as_bfloat16(x.z)), __bfloat162float(__ushort_as_bfloat16(x.w)));
  }
};

struct ToF16 {
  std::uint16_t* to;
  const float* from;
  __device__ void element(std::size_t i) const {
    to[i] = __half_as_ushort(__float2half_rn(from[i]));
  }
  __device__ void pack(std::size_t i) const {
    const float4 x = reinterpret_cast<const float4*>(from)[i];
    reinterpret_cast<ushort4*>(to)[i] = make_ushort4(
        __half_as_ushort(__float2half_rn(x.x)), __half_as_ushort(__float2half_rn(x.y)),
        __half_as_ushort(__float2half_rn(x.z)), __half_as_ushort(__float2half_rn(x.w)));
  }
};

struct FromF16 {
  float* to;
  const std::uint16_t* from;
  __device__ void element(std::size_t i) const { to[i] = __half2float(__ushort_as_half(from[i])); }
  __device__ void pack(std::size_t i) const {
    const ushort4 x = reinterpret_cast<const ushort4*>(from)[i];
    reinterpret_cast<float4*>(to)[i] =
        make_float4(__half2float(__ushort_as_half(x.x)), __half2float(__ushort_as_half(x.y)),
                    __half2float(__ushort_as_half(x.z)), __half2float(__ushort_as_half(x.w)));
  }
};

struct Relu {
  float* to;
  const float* from;
  __device__ void element(std::size_t i) const { to[i] = fmaxf(from[i], 0.0f); }
  __device__ void pack(std::size_t i) const {
    const float4 x = reinterpret_cast<const float4*>(from)[i];
    reinterpret_cast<float4*>(to)[i] =
        make_float4(fmaxf(x.x, 0.0f), fmaxf(x.y, 0.0f), fmaxf(x.z, 0.0f), fmaxf(x.w, 0.0f));
  }
};

struct Sgd {
  float *w, *v;  // v null: no momentum
  const float* g;
  float rate, momentum;
  __device__ void step(float& weight, float* speed, float gradient) const {
    if (speed) gradient = *speed = fmaf(momentum, *speed, gradient);
    weight = fmaf(-rate, gradient, weight);
  }
  __device__ void element(std::size_t i) const { step(w[i], v ? v + i : nullptr, g[i]); }
  __device__ void pack(std::size_t i) const {
    Pack<float> weights = reinterpret_cast<Pack<float>*>(w)[i], speeds{};
    const Pack<float> gradients = reinterpret_cast<const Pack<float>*>(g)[i];
    if (v) speeds = reinterpret_cast<Pack<float>*>(v)[i];
#pragma unroll
    for (std::size_t j = 0; j < Pack<float>::kSize; ++j)
      step(weights.items[j], v ? &speeds.items[j] : nullptr, gradients.items[j]);
    if (v) reinterpret_cast<Pack<float>*>(v)[i] = speeds;
    reinterpret_cast<Pack<float>*>(w)[i] = weights;
  }
};

// Two tensors whose gradients lie one after the other.
struct SgdOfTwo {
  Sgd first, second;
  std::size_t cut;  // elements of the first; a multiple of a pack's where packs are used
  __device__ void element(std::size_t i) const {
    if (i < cut)
      first.element(i);
    else
      second.element(i - cut);
  }
  __device__ void pack(std::size_t i) const {
    const std::size_t packs = cut / Pack<float>::kSize;
    if (i < packs)
      first.pack(i);
    else
      second.pack(i - packs);
  }
};

}  // namespace

void fill(CUstream_st* stream, float* x, std::size_t count, float value) {
  run<4>(stream, "fill", count, is_pack_aligned(x), Fill{x, value});
}

void uniform(CUstream_st* stream, float* x, std::size_t count, std::uint64_t seed, float low,
             float high) {
  run<4>(stream, "uniform", count, is_pack_aligned(x), Uniform{x, seed, low, high - low});
}

template <class T>
void add(CUstream_st* stream, T* into, const T* from, std::size_t count) {
  run<Pack<T>::kSize>(stream, "add", count, is_pack_aligned(into, from), Add<T>{into, from});
}
template void add(CUstream_st*, float*, const float*, std::size_t);
template void add(CUstream_st*, double*, const double*, std::size_t);
template void add(CUstream_st*, std::int8_t*, const std::int8_t*, std::size_t);
template void add(CUstream_st*, std::uint8_t*, const std::uint8_t*, std::size_t);
template void add(CUstream_st*, std::int16_t*, const std::int16_t*, std::size_t);
template void add(CUstream_st*, std::uint16_t*, const std::uint16_t*, std::size_t);
template void add(CUstream_st*, std::int32_t*, const std::int32_t*, std::size_t);
template void add(CUstream_st*, std::uint32_t*, const std::uint32_t*, std::size_t);
template void add(CUstream_st*, std::int64_t*, const std::int64_t*, std::size_t);
template void add(CUstream_st*, std::uint64_t*, const std::uint64_t*, std::size_t);

void copy(CUstream_st* stream, void* to, const void* from, std::size_t bytes) {
  // Issuing a copy costs the host 1 to 2 us more than a launch; behind that it is as fast or
  // faster.
  constexpr std::size_t kKernelBytes = std::size_t{4} << 20;
  if (bytes == 0) return;
  if (bytes > kKernelBytes || (bytes > 65'536 && !is_pack_aligned(to, from))) {
    WEFT_CHECK_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
    return;
  }
  run<16>(stream, "copy", bytes, is_pack_aligned(to, from),
          Copy{static_cast<char*>(to), static_cast<const char*>(from)});
}

void float_to_bf16(CUstream_st* stream, std::uint16_t* to, const float* from, std::size_t count) {
  run<4>(stream, "float_to_bf16", count, is_pack_aligned(to, from), ToBf16{to, from});
}
void bf16_to_float(CUstream_st* stream, float* to, const std::uint16_t* from, std::size_t count) {
  run<4>(stream, "bf16_to_float", count, is_pack_aligned(to, from), FromBf16{to, from});
}
void float_to_f16(CUstream_st* stream, std::uint16_t* to, const float* from, std::size_t count) {
  run<4>(stream, "float_to_f16", count, is_pack_aligned(to, from), ToF16{to, from});
}
void f16_to_float(CUstream_st* stream, float* to, const std::uint16_t* from, std::size_t count) {
  run<4>(stream, "f16_to_float", count, is_pack_aligned(to, from), FromF16{to, from});
}

void relu(CUstream_st* stream, float* to, const float* from, std::size_t count) {
  run<4>(stream, "relu", count, is_pack_aligned(to, from), Relu{to, from});
}

void sgd(CUstream_st* stream, float* w, const float* g, std::size_t count, float rate) {
  run<4>(stream, "sgd", count, is_pack_aligned(w, g), Sgd{w, nullptr, g, rate, 0});
}
void sgd(CUstream_st* stream, float* w, float* v, const float* g, std::size_t count, float rate,
         float momentum) {
  run<4>(stream, "sgd", count, is_pack_aligned(w, g, v), Sgd{w, v, g, rate, momentum});
}

void sgd_of_two(CUstream_st* stream, const SgdTensor& first, const SgdTensor& second,
                const float* g, float rate, float momentum) {
  const float* rest = g + first.count;
  const bool is_aligned = first.count % Pack<float>::kSize == 0 &&
                          is_pack_aligned(first.w, first.v, g) &&
                          is_pack_aligned(second.w, second.v, rest);
  run<4>(stream, "sgd_of_two", first.count + second.count, is_aligned,
         SgdOfTwo{Sgd{first.w, first.v, g, rate, momentum},
                  Sgd{second.w, second.v, rest, rate, momentum}, first.count});
}

}  // namespace weft::cuda
