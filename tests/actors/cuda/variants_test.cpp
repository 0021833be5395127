// The cuda variants of weft's own kernels against their host variants, without a runtime.
#include <cmath>
#include <cstring>

#include "actors/collective_step.hpp"
#include "actors/cuda/builtin_variants.hpp"
#include "actors/cuda/variant_calls.hpp"
#include "framework/builtin.hpp"
#include "framework/device.hpp"
#include "framework/failure.hpp"
#include "framework/own_kernels.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

namespace weft::cuda {
namespace {

using test::call_both;
using test::LooseOp;
using test::PlainCuda;
using test::SerialCpu;
using test::TwinTensor;

template <class T>
std::vector<T> counted(std::size_t count, int modulus) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(static_cast<int>(i * 7 % static_cast<std::size_t>(modulus)) - 5);
  return values;
}

TEST_CASE("own kernels have a cuda variant as soon as they are given one", "[cuda]") {
  add_cuda_variants();
  add_cuda_variants();
  CHECK(kernels::matmul().code()->cuda);
  CHECK(kernels::matmul_f64().code()->cuda);
  CHECK(kernels::fill().code()->cuda);
  CHECK(kernels::uniform().code()->cuda);
  CHECK(local_copy_kernel().cuda);
  CHECK(sum_partials_kernel().cuda);
  CHECK(collective_step_kernel().cuda);
}

TEST_CASE("products, fills and random numbers equal the host's", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  add_cuda_variants();
  PlainCuda cuda;
  for (const auto& [m, k, n] :
       {std::tuple{1, 1, 1}, {5, 7, 3}, {64, 32, 48}, {0, 3, 2}, {2, 0, 3}}) {
    // Small whole numbers: exact in any order.
    TwinTensor<float> a({m, k}, counted<float>(std::size_t(m * k), 11)),
        b({k, n}, counted<float>(std::size_t(k * n), 13)), c({m, n});
    call_both(cuda, kernels::matmul(), a, b, c);
    CHECK(c.device() == c.host());
    TwinTensor<double> d({m, k}, counted<double>(std::size_t(m * k), 11)),
        e({k, n}, counted<double>(std::size_t(k * n), 13)), f({m, n});
    call_both(cuda, kernels::matmul_f64(), d, e, f);
    CHECK(f.device() == f.host());
  }
  for (const std::int64_t count : {0, 1, 1000, 100'003}) {
    TwinTensor<float> x({count});
    call_both(cuda, kernels::fill(), -1.5f, x);
    CHECK(x.device() == x.host());
    call_both(cuda, kernels::uniform(), std::uint64_t{9}, -0.3f, 0.9f, x);
    const auto device = x.device();
    CHECK(std::memcmp(device.data(), x.host().data(), device.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("a copy within the device and a sum of contributions equal the host's", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  add_cuda_variants();
  PlainCuda cuda;
  for (const std::int64_t count : {0, 1, 1001}) {
    const auto size = static_cast<std::size_t>(count);
    for (const Access access : {Access::Out, Access::InOut}) {
      TwinTensor<int> into({count}, counted<int>(size, 5)), a({count}, counted<int>(size, 7)),
          b({count}, counted<int>(size, 9)), copied({count});
      into.state().sum_partial = weft::detail::add_elements<int>;
      for (const bool on_device : {false, true}) {
        const LooseOp sum(sum_partials_kernel(),
                          {{into.replica(on_device), access},
                           {a.replica(on_device), Access::In},
                           {b.replica(on_device), Access::In}},
                          0);
        const LooseOp copy(
            local_copy_kernel(),
            {{into.replica(on_device), Access::In}, {copied.replica(on_device), Access::Out}}, 0);
        SerialCpu cpu;
        if (on_device) {
          sum_partials_kernel().cuda(cuda, *sum);
          local_copy_kernel().cuda(cuda, *copy);
        } else {
          sum_partials_kernel().cpu(cpu, *sum);
          local_copy_kernel().cpu(cpu, *copy);
        }
      }
      cuda.synchronise();
      CHECK(into.device() == into.host());
      CHECK(copied.device() == into.host());
    }
  }
}

TEST_CASE("a step of a collective adds or copies the part it is for", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  add_cuda_variants();
  PlainCuda cuda;
  for (const SumFunction sum : {SumFunction{weft::detail::add_elements<float>}, SumFunction{}}) {
    TwinTensor<float> into({100}, counted<float>(100, 7)), from({100}, counted<float>(100, 9));
    for (const bool on_device : {false, true}) {
      const LooseOp op(
          collective_step_kernel(),
          {{into.replica(on_device), Access::InOut}, {from.replica(on_device), Access::In}},
          sizeof(CollectiveLocalStep));
      new ((*op).scalars()) CollectiveLocalStep{12 * 4, 33 * 4, 41 * 4, 4, sum};
      SerialCpu cpu;
      if (on_device)
        collective_step_kernel().cuda(cuda, *op);
      else
        collective_step_kernel().cpu(cpu, *op);
    }
    cuda.synchronise();
    CHECK(into.device() == into.host());
  }
}

TEST_CASE("contributions of a type no device adds up fail with its size", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  add_cuda_variants();
  struct Triple {
    float a, b, c;
    Triple& operator+=(const Triple&) { return *this; }
  };
  PlainCuda cuda;
  TwinTensor<Triple> into({4}), from({4});
  into.state().sum_partial = weft::detail::add_elements<Triple>;
  const LooseOp op(sum_partials_kernel(),
                   {{into.replica(true), Access::InOut}, {from.replica(true), Access::In}}, 0);
  CHECK_THROWS_WITH(sum_partials_kernel().cuda(cuda, *op), contains_text("12 bytes each"));
}

}  // namespace
}  // namespace weft::cuda
