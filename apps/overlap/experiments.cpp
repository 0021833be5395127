#include "apps/overlap/experiments.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <weft/weft.hpp>

namespace weft::apps {
namespace {

// ---- the application: what a user would write

template <class T>
std::vector<Tensor<T>> run(const Device& device, const Tensor<T>& x, int ops) {
  std::vector<Tensor<T>> results;
  for (int i = 0; i < ops; ++i) results.push_back(device.matmul(x, x));
  return results;
}

template <class T>
std::vector<HostArray<T>> copy_to_cpu(const std::vector<Tensor<T>>& results) {
  std::vector<HostArray<T>> copies;
  for (const auto& result : results) copies.push_back(result.to_host());
  return copies;
}

template <class T>
std::vector<HostArray<T>> run_and_copy(const Device& device, const Tensor<T>& x, int ops) {
  std::vector<HostArray<T>> copies;
  for (int i = 0; i < ops; ++i) copies.push_back(device.matmul(x, x).to_host());
  return copies;
}

template <class T>
std::vector<Tensor<T>> run_in_order(const Device& device, const Tensor<T>& x, int ops) {
  const auto matmul = [] {
    if constexpr (std::is_same_v<T, double>)
      return kernels::matmul_f64();
    else
      return kernels::matmul();
  }();
  std::vector<Tensor<T>> results;
  Future before;
  for (int i = 0; i < ops; ++i) {
    results.push_back(device.tensor<T>(x.shape()));
    before = device.submit(matmul, in(x), in(x), out(results.back()), after(before));
  }
  return results;
}

// ---- its results are checked

template <class T>
struct Input {
  std::vector<T> values;
  Tensor<T> tensor;
  std::int64_t n;
};

template <class T>
Input<T> make_input(const Runtime& rt, std::int64_t n) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> values(static_cast<std::size_t>(n * n));
  for (T& value : values) value = uniform(random);
  auto tensor = rt.from_host(values, {n, n});
  return {std::move(values), std::move(tensor), n};
}

// Some elements against dot products in double precision, within the bound that holds for every
// order of summation (Higham, Accuracy and Stability, 3.1).
template <class T>
void check(const Input<T>& x, const HostArray<T>& result) {
  std::mt19937_64 random(2);
  const auto n = static_cast<std::size_t>(x.n);
  for (int sample = 0; sample < 16; ++sample) {
    const std::size_t i = random() % n, j = random() % n;
    double expected = 0, size = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const double product =
          static_cast<double>(x.values[i * n + k]) * static_cast<double>(x.values[k * n + j]);
      expected += product;
      size += std::abs(product);
    }
    const double got = static_cast<double>(result[i * n + j]);
    const double bound = static_cast<double>(n + 2) * std::numeric_limits<T>::epsilon() * size;
    if (!(std::abs(got - expected) <= bound))
      throw std::runtime_error("wrong result: element [" + std::to_string(i) + ", " +
                               std::to_string(j) + "] is " + std::to_string(got) +
                               ", but the dot product is " + std::to_string(expected));
  }
}

template <class T>
void check(const Input<T>& x, const std::vector<Tensor<T>>& results) {
  check(x, results.front().to_host());
  check(x, results.back().to_host());
}
template <class T>
void check(const Input<T>& x, const std::vector<HostArray<T>>& results) {
  check(x, results.front());
  check(x, results.back());
}

// ---- the experiments

Row part(std::string name, std::string label, const Timing& timing) {
  return {std::move(name), std::move(label), timing, 0, timing.seconds};
}

Row at_once(std::string name, std::string label, const Timing& timing,
            const std::vector<Row>& parts) {
  Row row{std::move(name), std::move(label), timing, 0, 0};
  for (const Row& p : parts) {
    row.sum_seconds += p.timing.seconds;
    row.ideal_seconds = std::max(row.ideal_seconds, p.timing.seconds);
  }
  return row;
}

template <class T>
std::vector<Row> two_gpus(const Runtime& rt, const Measure& measure, const Workload& work) {
  const auto input = make_input<T>(rt, work.n);
  const auto& x = input.tensor;
  std::vector<Tensor<T>> y0, y1;
  std::vector<Row> rows;
  rows.push_back(part("two_gpus/gpu0", "gpu0 runs", measure([&] {
                        y0 = run(rt.gpu(0), x, work.ops);
                        when_all(y0).wait();
                      })));
  rows.push_back(part("two_gpus/gpu1", "gpu1 runs", measure([&] {
                        y1 = run(rt.gpu(1), x, work.ops);
                        when_all(y1).wait();
                      })));
  rows.push_back(at_once("two_gpus/both", "both at once", measure([&] {
                           y0 = run(rt.gpu(0), x, work.ops);
                           y1 = run(rt.gpu(1), x, work.ops);
                           when_all(y0).wait();
                           when_all(y1).wait();
                         }),
                         rows));
  check(input, y0);
  check(input, y1);
  return rows;
}

template <class T>
std::vector<Row> run_then_copy(const Runtime& rt, const Measure& measure, const Workload& work) {
  const auto input = make_input<T>(rt, work.n);
  const auto& x = input.tensor;
  std::vector<Tensor<T>> y;
  std::vector<HostArray<T>> copies;
  std::vector<Row> rows;
  rows.push_back(part("copy/run", "run on gpu0", measure([&] {
                        y = run(rt.gpu(0), x, work.ops);
                        when_all(y).wait();
                      })));
  rows.push_back(part("copy/copy", "copy to the CPU", measure([&] {
                        copies = copy_to_cpu(y);
                        when_all(copies).wait();
                      })));
  check(input, copies);
  rows.push_back(at_once("copy/run_and_copy", "run and copy", measure([&] {
                           copies = run_and_copy(rt.gpu(0), x, work.ops);
                           when_all(copies).wait();
                         }),
                         rows));
  check(input, copies);
  return rows;
}

template <class T>
std::vector<Row> everything(const Runtime& rt, const Measure& measure, const Workload& work) {
  const auto input = make_input<T>(rt, work.n);
  const auto& x = input.tensor;
  const auto earlier = run(rt.gpu(0), x, work.ops);
  std::vector<Tensor<T>> c, y0, y1;
  std::vector<HostArray<T>> copies;
  std::vector<Row> rows;
  const auto run_on = [&](const Device& device, std::vector<Tensor<T>>& results) {
    return part("all/" + device.name(), device.name() + " runs", measure([&] {
                  results = run(device, x, work.ops);
                  when_all(results).wait();
                }));
  };
  rows.push_back(run_on(rt.socket(0), c));
  rows.push_back(run_on(rt.gpu(0), y0));
  rows.push_back(run_on(rt.gpu(1), y1));
  rows.push_back(part("all/links", "earlier results come to the CPU", measure([&] {
                        copies = copy_to_cpu(earlier);
                        when_all(copies).wait();
                      })));
  rows.push_back(at_once("all/at_once", "all at once", measure([&] {
                           copies = copy_to_cpu(earlier);
                           y0 = run(rt.gpu(0), x, work.ops);
                           y1 = run(rt.gpu(1), x, work.ops);
                           c = run(rt.socket(0), x, work.ops);
                           when_all(copies).wait();
                           for (const auto* results : {&y0, &y1, &c}) when_all(*results).wait();
                         }),
                         rows));
  for (const auto* results : {&y0, &y1, &c}) check(input, *results);
  check(input, copies);
  return rows;
}

template <class T>
std::vector<Row> small_ops(const Runtime& rt, const Measure& measure, const Workload& work) {
  const auto input = make_input<T>(rt, std::min<std::int64_t>(work.n, 64));
  const auto& x = input.tensor;
  std::vector<Tensor<T>> y;
  std::vector<Row> rows;
  rows.push_back(part("small/in_order", "one after the other", measure([&] {
                        y = run_in_order(rt.gpu(0), x, work.ops);
                        when_all(y).wait();
                      })));
  check(input, y);
  Row row = at_once("small/side_by_side", "side by side", measure([&] {
                      y = run(rt.gpu(0), x, work.ops);
                      when_all(y).wait();
                    }),
                    rows);
  row.ideal_seconds = row.sum_seconds / work.lanes;
  rows.push_back(row);
  check(input, y);
  return rows;
}

}  // namespace

std::vector<Experiment> experiments(const Runtime& rt, const Measure& measure,
                                    const Workload& work) {
  const auto with = [&](auto of_float, auto of_double) {
    return [&rt, &measure, &work, of_float, of_double] {
      return work.is_double ? of_double(rt, measure, work) : of_float(rt, measure, work);
    };
  };
  const std::string ops = std::to_string(work.ops) + " matmuls";
  return {
      {"two_gpus", "1. " + ops + " on each GPU", 2, 3, with(two_gpus<float>, two_gpus<double>)},
      {"copy", "2. " + ops + ", results to the CPU", 1, 3,
       with(run_then_copy<float>, run_then_copy<double>)},
      {"all", "3. CPU, GPUs and a link", 2, 5, with(everything<float>, everything<double>)},
      {"small", "4. " + std::to_string(work.ops) + " small ops on gpu0", 1, 2,
       with(small_ops<float>, small_ops<double>)},
  };
}

}  // namespace weft::apps
