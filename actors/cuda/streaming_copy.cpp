#include "actors/cuda/streaming_copy.hpp"

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace weft::cuda {

void copy_streaming(void* to, const void* from, std::size_t bytes) {
#if defined(__SSE2__)
#if defined(__AVX512F__)
  using Word = __m512i;
  auto load = [](const void* p) { return _mm512_loadu_si512(p); };
  auto store = [](void* p, Word w) { _mm512_stream_si512(static_cast<Word*>(p), w); };
#elif defined(__AVX__)
  using Word = __m256i;
  auto load = [](const void* p) { return _mm256_loadu_si256(static_cast<const Word*>(p)); };
  auto store = [](void* p, Word w) { _mm256_stream_si256(static_cast<Word*>(p), w); };
#else
  using Word = __m128i;
  auto load = [](const void* p) { return _mm_loadu_si128(static_cast<const Word*>(p)); };
  auto store = [](void* p, Word w) { _mm_stream_si128(static_cast<Word*>(p), w); };
#endif
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  // A whole cache line at a time, from the first that begins in the target.
  constexpr std::size_t kLine = 64, kWords = kLine / sizeof(Word);
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(target) % kLine) % kLine;
  if (bytes < head + kLine) {
    std::memcpy(target, source, bytes);
    return;
  }
  std::memcpy(target, source, head);
  std::size_t at = head;
  for (; at + kLine <= bytes; at += kLine) {
    Word words[kWords];
    for (std::size_t w = 0; w < kWords; ++w) words[w] = load(source + at + w * sizeof(Word));
    for (std::size_t w = 0; w < kWords; ++w) store(target + at + w * sizeof(Word), words[w]);
  }
  _mm_sfence();
  std::memcpy(target + at, source + at, bytes - at);
#else
  std::memcpy(to, from, bytes);
#endif
}

}  // namespace weft::cuda
