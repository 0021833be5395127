#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/cuda/branched.hpp"
#include "actors/cuda/lane.hpp"
#include "actors/cuda/solver.hpp"
#include "framework/cuda.hpp"
#include "framework/engine.hpp"
#include "framework/run_sampler.hpp"

namespace weft::cuda {

/// What kernels see of a compute lane, or of a branch on it: its stream, its cuBLAS handle, its
/// scratch memory.
class LaneContext final : public BranchedCuda {
 public:
  /// How products are to be computed.
  struct Products {
    Precision precision = Precision::Fp32;
    bool are_tuned = false;
  };
  LaneContext(Lane& lane, cudaMemPool_t pool, cublasLtContext* blas_lt, Products products);
  ~LaneContext();
  LaneContext(const LaneContext&) = delete;
  LaneContext& operator=(const LaneContext&) = delete;

  [[nodiscard]] CUstream_st* stream() const override { return lane_.stream(); }
  /// Made at the first call, which blocks for some milliseconds.
  [[nodiscard]] cublasContext* blas() override;
  [[nodiscard]] cublasLtContext* blas_lt() override { return blas_lt_; }
  [[nodiscard]] cusolverDnContext* solver() override;
  [[nodiscard]] int device() const override { return lane_.device().ordinal(); }
  [[nodiscard]] Precision precision() const override { return products_.precision; }
  [[nodiscard]] bool tunes_products() const override { return products_.are_tuned; }
  [[nodiscard]] void* scratch(std::size_t bytes) override;
  void clear(void* data, std::size_t bytes) override;
  [[nodiscard]] Cuda& branch(std::uint32_t number) override;

 private:
  Lane& lane_;
  cudaMemPool_t pool_;
  cublasContext* blas_ = nullptr;
  cublasLtContext* blas_lt_;
  std::unique_ptr<SolverHandle> solver_;
  Products products_;
  void* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  std::vector<std::unique_ptr<LaneContext>> branches_;  // from 1 on
};

/// One GPU: in-order compute lanes, each a stream. Ops that would fill the device by themselves use
/// two of them, so that the last blocks of one leave no part of the device idle; small ones use
/// all, and on the others the device takes them first.
class GpuEngine final : public Engine {
 public:
  struct Setup {
    DeviceState* device = nullptr;
    LaneTable* table = nullptr;
    cudaMemPool_t pool = nullptr;
    Tracer* tracer = nullptr;
    std::uint32_t lanes = 4;
    LaneContext::Products products;
  };
  /// Makes streams and handles; blocks for some 100 ms. Throws `DeviceError`.
  explicit GpuEngine(const Setup& setup);
  ~GpuEngine() override;

  [[nodiscard]] Domain domain() const override { return Domain::Cuda; }
  [[nodiscard]] std::uint32_t lanes() const override {
    return static_cast<std::uint32_t>(lanes_.size());
  }
  [[nodiscard]] std::uint32_t lanes_for(const Op& op) const override;
  [[nodiscard]] std::uint32_t first_small_lane() const override;
  [[nodiscard]] bool is_short(const Op& op) const override;
  [[nodiscard]] bool takes_by_submission() const override { return true; }
  [[nodiscard]] bool is_tail(const Op& op) const override;
  [[nodiscard]] std::uint32_t first_lane() const override { return lanes_.front()->number(); }
  void issue(Op& op, std::uint32_t lane) override;
  [[nodiscard]] std::size_t queued(std::uint32_t lane) const override {
    return lanes_[lane]->queued();
  }
  [[nodiscard]] bool has_room() const override;
  [[nodiscard]] Failure* loss(const Op& op) const override;
  bool progress(ReadySink& sink, bool quiet) override;
  [[nodiscard]] bool needs_progress() const override;

 private:
  [[nodiscard]] double expected_ns(const Op& op) const;
  [[nodiscard]] bool is_sampled(Op& op);
  Failure* run(Op& op, std::uint32_t lane);

  DeviceState& device_;
  double flops_per_ns_, bytes_per_ns_;
  mutable const Op* costed_ = nullptr;  // the op whose cost was asked last
  mutable double costed_ns_ = 0;
  RunSampler sampler_;
  cublasLtContext* blas_lt_ = nullptr;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::unique_ptr<LaneContext>> contexts_;
};

}  // namespace weft::cuda
