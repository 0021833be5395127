#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

/// Element by element over arrays in one device's memory. Each enqueues on `stream` and returns;
/// nothing is done for 0 elements. Any alignment that suits the element; 16 bytes are faster.
/// Throws `DeviceError` if the launch is refused. Any thread whose current device the stream is of.
namespace weft::cuda {

/// Every element becomes `value`.
void fill(CUstream_st* stream, float* x, std::size_t count, float value);

/// The numbers of `kernels::uniform`, to the bit.
void uniform(CUstream_st* stream, float* x, std::size_t count, std::uint64_t seed, float low,
             float high);

/// `into += from`; integers wrap around. Defined for float, double and (u)int8, 16, 32, 64.
template <class T>
void add(CUstream_st* stream, T* into, const T* from, std::size_t count);

/// `to = from`; the two do not overlap.
void copy(CUstream_st* stream, void* to, const void* from, std::size_t bytes);

/// Rounds to nearest even. Numbers of 16 bits are handed over as their bits.
void float_to_bf16(CUstream_st* stream, std::uint16_t* to, const float* from, std::size_t count);
void bf16_to_float(CUstream_st* stream, float* to, const std::uint16_t* from, std::size_t count);
void float_to_f16(CUstream_st* stream, std::uint16_t* to, const float* from, std::size_t count);
void f16_to_float(CUstream_st* stream, float* to, const std::uint16_t* from, std::size_t count);

/// `to = max(from, 0)`; may be in place.
void relu(CUstream_st* stream, float* to, const float* from, std::size_t count);

/// One step of gradient descent: `w -= rate · g`.
void sgd(CUstream_st* stream, float* w, const float* g, std::size_t count, float rate);
/// The same with momentum: `v = momentum · v + g`, `w -= rate · v`.
void sgd(CUstream_st* stream, float* w, float* v, const float* g, std::size_t count, float rate,
         float momentum);

/// Weights and their velocity; `v` null: without momentum.
struct SgdTensor {
  float *w, *v;
  std::size_t count;
};
/// A step of two tensors at once, whose gradients lie one after the other in `g`.
void sgd_of_two(CUstream_st* stream, const SgdTensor& first, const SgdTensor& second,
                const float* g, float rate, float momentum);

}  // namespace weft::cuda
