#!/usr/bin/env bash
# confinement.sh ROOT: third-party headers stay in the files that own them, and the layers topology,
# framework, actors, apps include downwards only. Prints each stray with its rule; fails on any.
set -uo pipefail
cd "$1" || exit 2
strays=0

# includes HEADER: `path:line:text` of every #include of a header whose path begins to match HEADER.
includes() {
  local folders=()
  for folder in topology framework actors apps tests; do
    [[ -d $folder ]] && folders+=("$folder")
  done
  grep -rnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($1)" "${folders[@]}" \
    --include='*.hpp' --include='*.h' --include='*.cpp' --include='*.cu' --include='*.cuh' \
    --include='*.ipp' --include='*.inl' --include='*.cc'
}

report() {
  echo "$1"
  echo "    rule: $2"
  strays=$((strays + 1))
}

# only_in HEADER PATH RULE: headers that match HEADER are included in files that match PATH only.
only_in() {
  local hit
  while IFS= read -r hit; do
    [[ ${hit%%:*} =~ $2 ]] || report "$hit" "$3"
  done < <(includes "$1")
}

# never HEADER FOLDER RULE: no file under FOLDER (a regular expression) includes HEADER.
never() {
  local hit
  while IFS= read -r hit; do
    [[ ${hit%%:*} =~ $2 ]] && report "$hit" "$3"
  done < <(includes "$1")
}

# one_file HEADER PATH RULE: as only_in, and in no more than one file.
one_file() {
  only_in "$@"
  local files
  mapfile -t files < <(includes "$1" | cut -d: -f1 | sort -u)
  ((${#files[@]} <= 1)) || report "${files[*]}" "$3"
}

only_in 'hwloc(\.h|/)' '^topology/[^/]*(hwloc|hw_)[^/]*$' \
  "hwloc.h only in topology's hwloc files (topology/hw_*)"
only_in '(cuda|cublas|cusolver|cusparse|nvml|nvrtc|nvToolsExt|nvtx3|cooperative_groups|curand|driver_types|vector_types)[A-Za-z0-9_]*(\.h|/)' \
  '^actors/cuda/|^tests/actors/cuda/fake_(cuda|graphs|clock)\.[ch]pp$|^topology/[^/]*gpu[^/]*$|^(tests/actors/cuda|apps/mlp|apps/workloads|apps/examples/[^/]+)/.*\.cuh?$' \
  "CUDA runtime, driver and NVML only in actors/cuda/ and topology's GPU discovery (topology/*gpu*); .cu files of tests, examples, workloads and the demo may, and the tests' fake runtime"
one_file 'nccl\.h' '^actors/cuda/' "nccl.h only in one file, in actors/cuda/"
only_in 'caf/' '^(actors|apps/examples|tests)/' \
  "CAF only in actors/; examples and tests that write actors may include it"
never 'caf/all\.hpp' '.' "never caf/all.hpp: include the few headers that are needed"
only_in 'boost/asio' '(^|[/_])(io|asio|disk|file|http|net|server|socket_io|storage)[^/]*$' \
  "Asio only in files that do I/O (io, disk, file, http, net, server, storage in their name or folder)"
one_file '(openblas/)?(cblas|openblas_config|f77blas|lapacke)\.h' '^(framework|actors)/.*blas[^/]*\.cpp$' \
  "OpenBLAS only in the one .cpp file that wraps it (*blas*.cpp)"
only_in 'pugixml\.hpp' '^topology/(.*\.cpp|[^/]*xml[^/]*)$' \
  "pugixml only in topology's importers (.cpp, *xml*)"
only_in 'yaml-cpp/' '^apps/experiment/[^/]*yaml[^/]*$' \
  "yaml-cpp only in the files that read specs (apps/experiment/*yaml*)"
never '(nlohmann/json\.hpp|CLI/|spdlog/)' '^(topology|framework|actors|apps/common)/.*\.hpp$' \
  "JSON, CLI11 and spdlog only in .cpp files of what others include: they are heavy (json_fwd.hpp)"

never '(framework|actors|apps|tests|weft)/' '^topology/' "topology includes no layer above it"
never '(actors|apps|tests|weft)/' '^framework/' "framework includes topology only"
never '(apps|tests)/' '^actors/' "actors includes framework and topology only"
never 'tests/' '^apps/' "apps include no tests"

if ((strays)); then
  echo "$strays stray include(s)"
  exit 1
fi
echo "every include is where it belongs"
