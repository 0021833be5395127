#!/usr/bin/env bash
# The test of confinement.sh: a clean tree passes, and each kind of stray alone is found.
set -uo pipefail
check="$(cd "$(dirname "$0")" && pwd)/confinement.sh"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

put() {
  mkdir -p "$tree/$(dirname "$1")"
  printf '#pragma once\n%s\n' "$2" >"$tree/$1"
}

put topology/machine.hpp '#include <vector>'
put topology/hw_live.cpp '#include <hwloc.h>'
put topology/gpu_discovery.cpp '#include <nvml.h>'
put topology/import_nccl_xml.cpp '#include <pugixml.hpp>'
put framework/op.hpp '#include "topology/machine.hpp"'
put actors/gpu_actor.hpp '#include <caf/actor.hpp>'
put actors/cuda/lane.hpp '#include <cuda_runtime.h>'
put actors/cuda/nccl.cpp '#include <nccl.h>'
put actors/disk_engine.cpp '#include <boost/asio/post.hpp>'
put framework/blas.cpp '#include <cblas.h>'
put actors/include/weft/weft.hpp '#include "actors/runtime.hpp"'
put apps/examples/05_actor/main.cpp '#include <caf/event_based_actor.hpp>'
put apps/mlp.cpp '#include <weft/weft.hpp>'
if ! "$check" "$tree"; then
  echo "FAILED: a clean tree is refused"
  failures=$((failures + 1))
fi

# stray PATH INCLUDE: the tree with this one file more is refused, and the file is named.
stray() {
  put "$1" "$2"
  local said
  if said=$("$check" "$tree") || [[ $said != *"$1:2:"* && $said != *"only in one file"* && $said != *"in the one .cpp file"* ]]; then
    echo "FAILED: '$2' in $1 is not found; it said: $said"
    failures=$((failures + 1))
  fi
  rm "$tree/$1"
}

stray topology/route.cpp '#include <hwloc.h>'
stray actors/socket.cpp '#  include "hwloc/cpuset.h"'
stray framework/tensor.hpp '#include <cuda_runtime.h>'
stray actors/gpu.cpp '#include <cublasLt.h>'
stray apps/topo.cpp '#include <nvml.h>'
stray framework/collective.cpp '#include <nccl.h>'
stray actors/cuda/second.cpp '#include <nccl.h>'
stray framework/future.hpp '#include <caf/actor.hpp>'
stray apps/bench.cpp '#include <caf/actor_system.hpp>'
stray actors/all.cpp '#include <caf/all.hpp>'
stray tests/actors/x_test.cpp '#include "caf/all.hpp"'
stray actors/runtime.cpp '#include <boost/asio.hpp>'
stray apps/matmul.cpp '#include <cblas.h>'
stray actors/second_blas.cpp '#include <cblas.h>'
stray apps/read_xml.cpp '#include <pugixml.hpp>'
stray apps/experiment/report.cpp '#include <yaml-cpp/yaml.h>'
stray framework/json.hpp '#include <nlohmann/json.hpp>'
stray topology/up.hpp '#include "framework/op.hpp"'
stray framework/up.hpp '#include "actors/runtime.hpp"'
stray actors/up.hpp '#include "apps/mlp.hpp"'
stray apps/up.hpp '#include "tests/support/catch.hpp"'

((failures == 0)) && echo "every stray was found"
exit $((failures > 0))
