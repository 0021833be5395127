#pragma once

namespace weft::test {

/// Whether this is a build with the thread sanitizer.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kUnderTsan = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kUnderTsan = true;
#else
inline constexpr bool kUnderTsan = false;
#endif
#else
inline constexpr bool kUnderTsan = false;
#endif

/// `normally`, but `under_tsan` there. The thread sanitizer looks for races between the threads of
/// a run, and is 20 times as slow: where the other builds go through many inputs, a part of them
/// has it see every kind of message.
template <class T>
constexpr T fewer_under_tsan(T normally, T under_tsan) {
  return kUnderTsan ? under_tsan : normally;
}

}  // namespace weft::test
