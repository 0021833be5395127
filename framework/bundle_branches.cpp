#include "framework/bundle_branches.hpp"

#include <algorithm>
#include <limits>

#include "framework/op_cost.hpp"

namespace weft {
namespace {

// Measured on an H200: an edge of a CUDA graph that leads to another branch.
constexpr double kAcrossNs = 1000;
constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

class Branches {
 public:
  Branches(std::size_t members, std::uint32_t most)
      : most_(most), turns_(members), ends_(members), tails_(most), seen_(members * most) {}

  void add(std::uint32_t n, const std::vector<std::uint32_t>& behind, double ns) {
    const std::uint32_t branch = choose(behind);
    Tail& tail = tails_[branch];
    // A branch is in order: of what is needed there, the last will do.
    std::vector<std::uint32_t> last(most_, kNobody);
    const auto need = [&](std::uint32_t member) {
      std::uint32_t& known = last[turns_[member].branch];
      if (known == kNobody || known < member) known = member;
    };
    if (tail.member != kNobody) need(tail.member);
    for (const std::uint32_t member : behind) need(member);
    ends_[n] = begin_on(branch, behind) + ns;
    std::uint32_t* const seen = seen_.data() + std::size_t{n} * most_;
    for (const std::uint32_t member : last) {
      if (member == kNobody) continue;
      if (!is_implied(member, last)) turns_[n].behind.push_back(member);
      const std::uint32_t* const its = seen_.data() + std::size_t{member} * most_;
      for (std::uint32_t b = 0; b < most_; ++b) seen[b] = std::max(seen[b], its[b]);
    }
    seen[branch] = n + 1;
    turns_[n].branch = branch;
    tail = {n, ends_[n]};
  }

  std::vector<BranchTurn> take() { return std::move(turns_); }

 private:
  struct Tail {
    std::uint32_t member = kNobody;
    double end = 0;
  };

  [[nodiscard]] double begin_on(std::uint32_t branch,
                                const std::vector<std::uint32_t>& behind) const {
    double begin = tails_[branch].end;
    for (const std::uint32_t member : behind)
      begin = std::max(begin, ends_[member] + (turns_[member].branch == branch ? 0 : kAcrossNs));
    return begin;
  }

  [[nodiscard]] std::uint32_t choose(const std::vector<std::uint32_t>& behind) const {
    std::uint32_t best = 0;
    double earliest = std::numeric_limits<double>::infinity();
    for (std::uint32_t b = 0; b < most_; ++b) {
      const bool is_home = std::any_of(behind.begin(), behind.end(), [&](std::uint32_t member) {
        return turns_[member].branch == b;
      });
      const double begin = begin_on(b, behind) + (is_home || behind.empty() ? 0 : kAcrossNs);
      if (begin >= earliest) continue;
      earliest = begin;
      best = b;
    }
    return best;
  }

  // Whether another of those that are waited for comes behind `member` itself.
  [[nodiscard]] bool is_implied(std::uint32_t member,
                                const std::vector<std::uint32_t>& waited) const {
    const std::uint32_t branch = turns_[member].branch;
    return std::any_of(waited.begin(), waited.end(), [&](std::uint32_t other) {
      return other != kNobody && other != member &&
             seen_[std::size_t{other} * most_ + branch] > member;
    });
  }

  std::uint32_t most_;
  std::vector<BranchTurn> turns_;
  std::vector<double> ends_;
  std::vector<Tail> tails_;
  // By member and branch: the last member there that it comes behind or is, and one more; 0: none.
  std::vector<std::uint32_t> seen_;
};

}  // namespace

double rough_ns(Op& op) {
  constexpr double kLeastNs = 2000, kFlopsPerNs = 50e3, kBytesPerNs = 3e3;
  try {
    const Cost cost = cost_of(op);
    return std::max({kLeastNs, cost.flops / kFlopsPerNs, cost.bytes / kBytesPerNs});
  } catch (...) {  // what a kernel says it costs may throw
    return kLeastNs;
  }
}

std::vector<BranchTurn> branch_out(const Bundle::Order& order, const std::vector<double>& ns,
                                   std::uint32_t most) {
  Branches branches(order.size(), most);
  for (std::uint32_t n = 0; n < order.size(); ++n) branches.add(n, order[n], ns[n]);
  return branches.take();
}

}  // namespace weft
