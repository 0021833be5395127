#include "apps/overlap/experiments.hpp"

#include <algorithm>
#include <utility>
#include <weft/weft.hpp>

#include "apps/overlap/landing.hpp"
#include "apps/overlap/products.hpp"
#include "apps/overlap/reference.hpp"

namespace weft::apps {
namespace {

// ---- the application: what a user would write

template <class T>
void copy_to_cpu(const std::vector<Tensor<T>>& results, Landing<T>& landing) {
  for (const auto& result : results) landing.take(result);
}

// ---- the experiments

template <class T>
void check(const Reference<T>& reference, const std::vector<Tensor<T>>& results) {
  reference.check(results.front().to_host().span());
  reference.check(results.back().to_host().span());
}

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

// Results of the run before are dropped first, in no one's time.

template <class T>
std::vector<Row> two_gpus(const Runtime& rt, const Measure& measure, const Workload& work) {
  const Reference<T> reference(rt, work.n, work.precision);
  const auto& x = reference.tensor();
  Products<T> y0(rt, rt.gpu(0), x, work.ops, work.is_planned);
  Products<T> y1(rt, rt.gpu(1), x, work.ops, work.is_planned);
  const auto clear = [&] {
    y0.clear();
    y1.clear();
  };
  std::vector<Row> rows;
  rows.push_back(part("two_gpus/gpu0", "gpu0 runs",
                      measure(
                          [&] {
                            y0.start();
                            y0.wait();
                          },
                          clear)));
  rows.push_back(part("two_gpus/gpu1", "gpu1 runs",
                      measure(
                          [&] {
                            y1.start();
                            y1.wait();
                          },
                          clear)));
  rows.push_back(at_once("two_gpus/both", "both at once",
                         measure(
                             [&] {
                               y0.start();
                               y1.start();
                               y0.wait();
                               y1.wait();
                             },
                             clear),
                         rows));
  check(reference, y0.results());
  check(reference, y1.results());
  return rows;
}

template <class T>
std::vector<Row> run_then_copy(const Runtime& rt, const Measure& measure, const Workload& work) {
  const Reference<T> reference(rt, work.n, work.precision);
  const auto& x = reference.tensor();
  Products<T> y(rt, rt.gpu(0), x, work.ops, work.is_planned);
  Landing<T> landing(reference, work.ops, work.to_program);
  const auto clear = [&] { landing.clear(); };
  std::vector<Row> rows;
  rows.push_back(part("copy/run", "run on gpu0",
                      measure(
                          [&] {
                            y.start();
                            y.wait();
                          },
                          [&] { y.clear(); })));
  rows.push_back(part("copy/copy", "copy to the CPU",
                      measure(
                          [&] {
                            copy_to_cpu(y.results(), landing);
                            landing.wait();
                          },
                          clear)));
  landing.check();
  y.clear();
  rows.push_back(at_once("copy/run_and_copy", "run and copy",
                         measure(
                             [&] {
                               y.start(landing);
                               landing.wait();
                             },
                             clear),
                         rows));
  landing.check();
  return rows;
}

template <class T>
std::vector<Row> copy_from_both(const Runtime& rt, const Measure& measure, const Workload& work) {
  const Reference<T> reference(rt, work.n, work.precision);
  const auto& x = reference.tensor();
  Products<T> y0(rt, rt.gpu(0), x, work.ops, work.is_planned);
  Products<T> y1(rt, rt.gpu(1), x, work.ops, work.is_planned);
  Landing<T> landing0(reference, work.ops, work.to_program);
  Landing<T> landing1(reference, work.ops, work.to_program);
  const auto clear = [&] {
    landing0.clear();
    landing1.clear();
  };
  const auto alone = [&](const Device& device, Products<T>& products, Landing<T>& landing) {
    return part("copy_both/" + device.name(), device.name() + " runs and copies",
                measure(
                    [&] {
                      products.start(landing);
                      landing.wait();
                    },
                    clear));
  };
  std::vector<Row> rows{alone(rt.gpu(0), y0, landing0), alone(rt.gpu(1), y1, landing1)};
  rows.push_back(at_once("copy_both/both", "both at once",
                         measure(
                             [&] {
                               Products<T>::start(y0, landing0, y1, landing1);
                               landing0.wait();
                               landing1.wait();
                             },
                             clear),
                         rows));
  landing0.check();
  landing1.check();
  return rows;
}

template <class T>
std::vector<Row> everything(const Runtime& rt, const Measure& measure, const Workload& work) {
  const Reference<T> reference(rt, work.n, work.precision);
  const auto& x = reference.tensor();
  Products<T> before(rt, rt.gpu(0), x, work.ops, false);
  before.start();
  const auto& earlier = before.results();
  Products<T> y0(rt, rt.gpu(0), x, work.ops, work.is_planned);
  Products<T> y1(rt, rt.gpu(1), x, work.ops, work.is_planned);
  Products<T> c(rt, rt.socket(0), x, work.ops, work.is_planned);
  Landing<T> landing(reference, work.ops, work.to_program);
  const auto clear = [&] {
    for (auto* products : {&y0, &y1, &c}) products->clear();
    landing.clear();
  };
  std::vector<Row> rows;
  const auto run_on = [&](const Device& device, Products<T>& products) {
    return part("all/" + device.name(), device.name() + " runs",
                measure(
                    [&] {
                      products.start();
                      products.wait();
                    },
                    clear));
  };
  rows.push_back(run_on(rt.socket(0), c));
  rows.push_back(run_on(rt.gpu(0), y0));
  rows.push_back(run_on(rt.gpu(1), y1));
  rows.push_back(part("all/links", "earlier results come to the CPU",
                      measure(
                          [&] {
                            copy_to_cpu(earlier, landing);
                            landing.wait();
                          },
                          clear)));
  rows.push_back(at_once("all/at_once", "all at once",
                         measure(
                             [&] {
                               copy_to_cpu(earlier, landing);
                               y0.start();
                               y1.start();
                               c.start();
                               landing.wait();
                               for (const auto* products : {&y0, &y1, &c}) products->wait();
                             },
                             clear),
                         rows));
  for (const auto* products : {&y0, &y1, &c}) check(reference, products->results());
  landing.check();
  return rows;
}

template <class T>
std::vector<Row> small_ops(const Runtime& rt, const Measure& measure, const Workload& work) {
  const Reference<T> reference(rt, std::min<std::int64_t>(work.n, 64), work.precision);
  const auto& x = reference.tensor();
  Products<T> in_order(rt, rt.gpu(0), x, work.ops, work.is_planned, true);
  Products<T> y(rt, rt.gpu(0), x, work.ops, work.is_planned);
  const auto clear = [&] {
    in_order.clear();
    y.clear();
  };
  std::vector<Row> rows;
  rows.push_back(part("small/in_order", "one after the other",
                      measure(
                          [&] {
                            in_order.start();
                            in_order.wait();
                          },
                          clear)));
  check(reference, in_order.results());
  Row row = at_once("small/side_by_side", "side by side",
                    measure(
                        [&] {
                          y.start();
                          y.wait();
                        },
                        clear),
                    rows);
  row.ideal_seconds = row.sum_seconds / work.lanes;
  rows.push_back(row);
  check(reference, y.results());
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
      {"copy_both", "2. on both GPUs at once, " + ops + " on each, results to the CPU", 2, 3,
       with(copy_from_both<float>, copy_from_both<double>), false},
      {"all", "3. CPU, GPUs and a link", 2, 5, with(everything<float>, everything<double>)},
      {"small", "4. " + std::to_string(work.ops) + " small ops on gpu0", 1, 2,
       with(small_ops<float>, small_ops<double>)},
  };
}

}  // namespace weft::apps
