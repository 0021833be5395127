#include "actors/cuda/kernels/peer_reduce.hpp"

#include <cstring>

#include "actors/cuda/kernels/launch.cuh"
#include "actors/cuda/kernels/peer_memory.cuh"

// Neither kernel needs all its blocks on the device at once: block b waits for blocks b of the
// other members only, after it has done what those wait for, and blocks start in order.
namespace weft::cuda {
namespace {

constexpr unsigned kThreads = kPeerUnits / 2 / kPeerBlocks;
constexpr unsigned kUnitsPerThread = 2;
// Calls after which every place of an inbox has been written again, so that no number in it is old
// enough to be mistaken for that of a call after the count has wrapped around.
constexpr unsigned kRefresh = 4096;

// As many elements as a unit of 8 bytes holds.
template <class T>
struct Unit {
  static constexpr unsigned kSize = 8 / sizeof(T);
  T items[kSize];
};

template <class To, class From>
__device__ To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

template <class T>
__device__ void add_to(Unit<T>& sum, const Unit<T>& more) {
#pragma unroll
  for (unsigned i = 0; i < Unit<T>::kSize; ++i) sum.items[i] += more.items[i];
}

// Every member pushes its data, each word with the number of the call, into all others' inboxes and
// adds up what arrives in its own, in the order of the members. No barrier is needed:
//  - a word is read only once it carries this call's number (peer_memory.cuh);
//  - inboxes have two sides, used by turns. A member writes a side again in call c + 2, when its
//    call c + 1 has ended and so has received a word that the other member sent in its own call
//    c + 1; that began when the other's call c had ended, which had read the side. Kernels of one
//    stream follow each other with the effect of a fence, which makes this an order of the
//    accesses.
template <class T>
__global__ void __launch_bounds__(kThreads)
    push(const __grid_constant__ PeerPush p, unsigned count) {
  constexpr unsigned kSize = Unit<T>::kSize;
  const PeerGroup& group = p.group;
  const unsigned call = group.pushes[blockIdx.x] + 1;
  const unsigned units = (count + kSize - 1) / kSize;
  const unsigned first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
  const T* from = static_cast<const T*>(p.from);
  T* to = static_cast<T*>(p.to);
  const auto side = [&](unsigned member, unsigned sender) {
    return static_cast<FlaggedWords*>(p.inboxes[member]) +
           (std::size_t{call & 1} * group.members + sender) * kPeerUnits;
  };

  Unit<T> own[kUnitsPerThread];
#pragma unroll
  for (unsigned k = 0; k < kUnitsPerThread; ++k)
#pragma unroll
    for (unsigned i = 0; i < kSize; ++i) {
      const unsigned at = (first + k * stride) * kSize + i;
      own[k].items[i] = at < count ? from[at] : T(0);
    }
#pragma unroll
  for (unsigned k = 0; k < kUnitsPerThread; ++k) {
    const unsigned unit = first + k * stride;
    if (unit >= units) continue;
    for (unsigned member = 0; member < group.members; ++member)
      if (member != group.me)
        push_words(side(member, group.me) + unit, bits_as<uint2>(own[k]), call);
  }
  if (call % kRefresh < 2)
    for (unsigned unit = units + first; unit < kPeerUnits; unit += stride)
      for (unsigned member = 0; member < group.members; ++member)
        if (member != group.me) push_words(side(member, group.me) + unit, make_uint2(0, 0), call);

#pragma unroll
  for (unsigned k = 0; k < kUnitsPerThread; ++k) {
    const unsigned unit = first + k * stride;
    if (unit >= units) continue;
    Unit<T> sum = own[k];
    bool has_all = true;
    for (unsigned member = 0; member < group.members && has_all; ++member) {
      Unit<T> part = own[k];
      if (member != group.me) {
        uint2 words;
        has_all = await_words(side(group.me, member) + unit, call, group.stop, &words);
        if (has_all) part = bits_as<Unit<T>>(words);
      }
      if (member == 0)
        sum = part;
      else
        add_to(sum, part);
    }
    if (!has_all) continue;
#pragma unroll
    for (unsigned i = 0; i < kSize; ++i)
      if (unit * kSize + i < count) to[unit * kSize + i] = sum.items[i];
  }

  // All counts stay equal whatever the grid: block 0 counts for the blocks that are not there.
  __syncthreads();
  if (threadIdx.x == 0) group.pushes[blockIdx.x] = call;
  if (blockIdx.x == 0)
    for (unsigned other = gridDim.x + threadIdx.x; other < kPeerBlocks; other += blockDim.x)
      group.pushes[other] = call;
}

// Blocks of the same number on all members meet. What any thread of them did before is seen by
// their threads after it: the barrier of the block hands it on to the thread that releases the
// flag, the acquiring thread to the barrier behind it. False, for all threads, if told to stop.
__device__ bool meet(const PeerPull& p, unsigned value) {
  const PeerGroup& group = p.group;
  bool is_stopped = false;
  __syncthreads();
  if (threadIdx.x < group.members && threadIdx.x != group.me) {
    const unsigned other = threadIdx.x;
    store_release(p.flags[other] + (group.me * kPeerBlocks + blockIdx.x) * kPeerFlagStride, value);
    is_stopped =
        !await_flag(p.flags[group.me] + (other * kPeerBlocks + blockIdx.x) * kPeerFlagStride, value,
                    group.stop);
  }
  return __syncthreads_or(is_stopped) == 0;
}

template <class T>
__device__ uint4 sum_of(uint4 a, uint4 b) {
  auto sum = bits_as<Pack<T>>(a);
  const auto more = bits_as<Pack<T>>(b);
#pragma unroll
  for (unsigned i = 0; i < Pack<T>::kSize; ++i) sum.items[i] += more.items[i];
  return bits_as<uint4>(sum);
}

// kBatch packs of all members, `stride` apart, summed and handed out; whatever is at `end` or
// behind it is left out, where kWhole does not promise that there is nothing.
template <class T, unsigned kBatch, bool kWhole>
__device__ void sum_batch(const PeerPull& p, unsigned members, std::size_t at, std::size_t stride,
                          std::size_t end) {
  uint4 sum[kBatch], more[kBatch];
  const auto load = [&](unsigned member, uint4* values) {
    const uint4* from = static_cast<const uint4*>(p.from[member]);
#pragma unroll
    for (unsigned k = 0; k < kBatch; ++k)
      if (kWhole || at + k * stride < end) values[k] = load_peer(from + at + k * stride);
  };
  load(0, sum);
#pragma unroll
  for (unsigned member = 1; member < members; ++member) {
    load(member, more);
#pragma unroll
    for (unsigned k = 0; k < kBatch; ++k) sum[k] = sum_of<T>(sum[k], more[k]);
  }
#pragma unroll
  for (unsigned member = 0; member < members; ++member) {
    uint4* to = static_cast<uint4*>(p.to[member]);
#pragma unroll
    for (unsigned k = 0; k < kBatch; ++k)
      if (kWhole || at + k * stride < end) to[at + k * stride] = sum[k];
  }
}

// Each element is summed by one member, in the order of the members, and written to all: the sums
// are equal to the bit, and may be in place, since nobody else reads or writes there. The barrier
// before lets no member touch another's memory before that one's stream is here; the one behind
// ends no member's kernel before all results are in its memory and its data have been read.
// kMembers 0: as many as there are.
template <class T, unsigned kMembers>
__global__ void __launch_bounds__(kThreads)
    pull(const __grid_constant__ PeerPull p, std::size_t packs, std::size_t count) {
  constexpr unsigned kBatch = kMembers == 2 ? 8 : 4;
  const unsigned members = kMembers == 0 ? p.group.members : kMembers, me = p.group.me;
  const unsigned call = p.group.pulls[blockIdx.x] + 1;
  if (!meet(p, 2 * call - 1)) return;

  const std::size_t stride = item_stride(), end = packs * (me + 1) / members;
  for (std::size_t at = packs * me / members + first_item(); at < end; at += kBatch * stride)
    if (at + (kBatch - 1) * stride < end)
      sum_batch<T, kBatch, true>(p, members, at, stride, end);
    else
      sum_batch<T, kBatch, false>(p, members, at, stride, end);

  // Elements that are in no pack: the last few, or all where an address is not a multiple of 16.
  const std::size_t packed = packs * Pack<T>::kSize, rest = count - packed;
  const std::size_t rest_end = packed + rest * (me + 1) / members;
  for (std::size_t at = packed + rest * me / members + first_item(); at < rest_end; at += stride) {
    T sum = static_cast<const volatile T*>(p.from[0])[at];
    for (unsigned member = 1; member < members; ++member)
      sum += static_cast<const volatile T*>(p.from[member])[at];
    for (unsigned member = 0; member < members; ++member) static_cast<T*>(p.to[member])[at] = sum;
  }

  if (!meet(p, 2 * call)) return;
  if (threadIdx.x == 0) p.group.pulls[blockIdx.x] = call;
}

// Calls `body` with a zero of the type that stands for the kind: a sum of signed integers has the
// bits of that of unsigned ones. False for other kinds.
template <class Body>
bool with_type(ElementKind kind, const Body& body) {
  switch (kind) {
    case ElementKind::F32:
      body(float{});
      return true;
    case ElementKind::F64:
      body(double{});
      return true;
    case ElementKind::I32:
    case ElementKind::U32:
      body(std::uint32_t{});
      return true;
    case ElementKind::I64:
    case ElementKind::U64:
      body(std::uint64_t{});
      return true;
    default:
      return false;
  }
}

}  // namespace

bool is_summed_by_peers(ElementKind kind) {
  return with_type(kind, [](auto) {});
}

void load_peer_reduce() {
  for (const ElementKind kind :
       {ElementKind::F32, ElementKind::F64, ElementKind::U32, ElementKind::U64})
    with_type(kind, [](auto zero) {
      using T = decltype(zero);
      cudaFuncAttributes attributes;
      WEFT_CHECK_CUDA(cudaFuncGetAttributes(&attributes, push<T>));
      WEFT_CHECK_CUDA((cudaFuncGetAttributes(&attributes, pull<T, 2>)));
      WEFT_CHECK_CUDA((cudaFuncGetAttributes(&attributes, pull<T, 0>)));
    });
}

void peer_reduce(cudaStream_t stream, const PeerPush& p, std::size_t count, ElementKind kind) {
  with_type(kind, [&](auto zero) {
    using T = decltype(zero);
    const auto units = static_cast<unsigned>((count * sizeof(T) + 7) / 8);
    const unsigned threads = units < kThreads ? (units + 31) / 32 * 32 : kThreads;
    const unsigned blocks = (units + threads - 1) / threads;
    const unsigned grid = blocks < kPeerBlocks ? blocks : kPeerBlocks;
    push<T><<<grid, threads, 0, stream>>>(p, static_cast<unsigned>(count));
    WEFT_CHECK_LAUNCH("peer push");
  });
}

void peer_reduce(cudaStream_t stream, const PeerPull& p, std::size_t count, ElementKind kind) {
  bool is_aligned = true;
  for (unsigned member = 0; member < p.group.members; ++member)
    is_aligned = is_aligned && is_pack_aligned(p.from[member], p.to[member]);
  with_type(kind, [&](auto zero) {
    using T = decltype(zero);
    const std::size_t packs = is_aligned ? count / Pack<T>::kSize : 0;
    if (p.group.members == 2)
      pull<T, 2><<<kPeerBlocks, kThreads, 0, stream>>>(p, packs, count);
    else
      pull<T, 0><<<kPeerBlocks, kThreads, 0, stream>>>(p, packs, count);
    WEFT_CHECK_LAUNCH("peer pull");
  });
}

}  // namespace weft::cuda
