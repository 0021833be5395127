#pragma once

#include <algorithm>
#include <cstddef>

namespace weft {

/// What the host gives a kernel variant: the core it runs on and the socket's team.
class Cpu {
 public:
  /// A range of indices and the work on it, without its type.
  struct Range {
    void (*run)(const void* body, std::size_t begin, std::size_t end);
    const void* body;
  };

  /// Calls `body(i)` for each i < n. Large ranges are shared with the socket's idle cores, so
  /// `body` is called from several threads at once. Returns when all is done; rethrows the first
  /// exception.
  template <class Body>
  void parallel_for(std::size_t n, const Body& body) {
    parallel_ranges(n, kGrain, [&body](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) body(i);
    });
  }

  /// Calls `body(begin, end)` for parts of [0, n) of at least `grain` indices, all together once
  /// each.
  template <class Body>
  void parallel_ranges(std::size_t n, std::size_t grain, const Body& body) {
    if (n == 0) return;
    if (n <= grain || team_size() < 2) {
      body(std::size_t{0}, n);
      return;
    }
    share(n, std::max<std::size_t>(grain, 1),
          {[](const void* b, std::size_t begin, std::size_t end) {
             (*static_cast<const Body*>(b))(begin, end);
           },
           &body});
  }

  /// How many cores may work on one op.
  [[nodiscard]] virtual std::size_t team_size() const = 0;

 protected:
  static constexpr std::size_t kGrain = 4096;
  ~Cpu() = default;
  virtual void share(std::size_t n, std::size_t grain, Range range) = 0;
};

}  // namespace weft
