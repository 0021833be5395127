#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// Memory that several devices read and write while their kernels run. All accesses here are strong
// ones of system scope: they go past the first-level cache, and other devices see them.
namespace weft::cuda {

/// Polls between two looks at the stop word, which is in host memory: some 10 ms.
constexpr unsigned kPatience = 1u << 14;

__device__ inline unsigned load_relaxed(const unsigned* from) {
  unsigned value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline unsigned load_acquire(const unsigned* from) {
  unsigned value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline void store_release(unsigned* to, unsigned value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

__device__ inline uint4 load_peer(const uint4* from) {
  uint4 value;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from)
               : "memory");
  return value;
}

/// Two words of data, each beside the number of the call it belongs to.
struct alignas(16) FlaggedWords {
  std::uint64_t first, second;
};

// A vector access is one access an element, in no order: each 8-byte element is written and read
// as a whole, so that the number in it vouches for the word in it, and for nothing else.
__device__ inline void push_words(FlaggedWords* to, uint2 words, unsigned call) {
  const std::uint64_t flag = static_cast<std::uint64_t>(call) << 32;
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(flag | words.x),
               "l"(flag | words.y)
               : "memory");
}

/// Waits for the words of `call`. False if told to stop.
__device__ inline bool await_words(const FlaggedWords* from, unsigned call, const unsigned* stop,
                                   uint2* words) {
  for (unsigned polls = 1;; ++polls) {
    std::uint64_t first, second;
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(first), "=l"(second)
                 : "l"(from)
                 : "memory");
    if (static_cast<unsigned>(first >> 32) == call && static_cast<unsigned>(second >> 32) == call) {
      *words = make_uint2(static_cast<unsigned>(first), static_cast<unsigned>(second));
      return true;
    }
    if (polls % kPatience == 0 && load_relaxed(stop) != 0) return false;
  }
}

/// Waits until a flag that only grows has reached `value`, which may have wrapped around. False if
/// told to stop.
__device__ inline bool await_flag(const unsigned* flag, unsigned value, const unsigned* stop) {
  for (unsigned polls = 1; static_cast<int>(load_acquire(flag) - value) < 0; ++polls)
    if (polls % kPatience == 0 && load_relaxed(stop) != 0) return false;
  return true;
}

}  // namespace weft::cuda
