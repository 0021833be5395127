#pragma once

#include "framework/op_pool.hpp"
#include "framework/tensor_state.hpp"
#include "tests/actors/conformance.hpp"
#include "tests/actors/graph_runs.hpp"

namespace weft::test {

/// Runs `body(runtime, device, other)` for each engine and checks that nothing is left behind.
template <class Body>
void for_each_engine(Body body) {
  for (const EngineCase& engine : engines()) {
    INFO(engine.name);
    const std::int64_t ops = op_pool::live(), tensors = live_tensors();
    {
      Runtime runtime(engine.options());
      const Footprint before = Footprint::of(runtime.fabric());
      body(runtime, engine.device(runtime), engine.other(runtime));
      const Footprint after = settled_footprint(runtime, before);
      INFO(before.to_string() << " before, " << after.to_string() << " after");
      CHECK((after == before));
    }
    CHECK(op_pool::live() == ops);
    CHECK(live_tensors() == tensors);
  }
}

}  // namespace weft::test
