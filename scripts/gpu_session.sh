#!/usr/bin/env bash
# gpu_session.sh [build] [test] [sanitize] [floor] [bench] [figures]
#
# Everything that is done on a machine with GPUs and perhaps without network, part by part; without
# names: build test floor bench figures. A part that fails or takes too long does not stop the next.
# Logs, floor.json, weft.json and figures.md go to $OUT (at most 8 files), a summary to standard
# output; exit status 1 if a part failed. What parts make is kept in build/session, so that a later
# call can do the rest.
#
#   build     configure and build, preset gpu; with PACKAGES=DIR the packages of ./dev offline-pack
#   test      ctest: those whose names match TESTS
#   sanitize  compute-sanitizer (SANITIZERS) over the test programs SANITIZED, those of their
#             cases that SANITIZED_CASES names
#   floor     builds and runs the hand-written programs in FLOOR_DIR, by its run.sh
#   bench     all of weft's figures that stand beside them
#   figures   the table of both
#
#   OUT=DIR         where results go (default: out/gpu); WORK=DIR what is kept (build/session)
#   TOTAL=SECONDS   for all parts together (default: 570); LIMIT_BUILD=SECONDS … for one
#   GPUS=…          as weft's --gpus (default: cuda)
#   QUICK=1         small sizes, to try this script where there is no GPU: GPUS=emulated:2 QUICK=1
set -uo pipefail
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
self=$root/scripts/gpu_session.sh
OUT=$(realpath -m "${OUT:-$root/out/gpu}")
export OUT
cd "$root" || exit 1
. scripts/offline_env.sh

preset=${PRESET:-gpu}
gpus=${GPUS:-cuda}
binaries=build/$preset/bin
work=$(realpath -m "${WORK:-build/session}")
mkdir -p "$OUT" "$work/floor" "$work/weft"

say() { printf '\n== %s\n' "$*"; }

# limited SECONDS COMMAND…: stops it after so long; says how it went and how long it took.
limited() {
  local seconds=$1 started=$SECONDS status
  shift
  timeout --foreground -k 5 "$seconds" "$@"
  status=$?
  ((status != 124 && status != 137)) || echo "stopped after its $seconds s: $*"
  ((status == 0)) || echo "exit status $status: $*"
  echo "-- took $((SECONDS - started)) s"
  return "$status"
}

# ---- the parts, each in a process of its own

part_build() {
  local arguments=()
  if [[ -n ${PACKAGES:-} ]]; then
    offline_env "$PACKAGES" || return
    arguments=(-DCMAKE_PREFIX_PATH="$offline_prefix/usr")
  fi
  export WEFT_SKIP_DEPS=1
  cmake --preset "$preset" "${arguments[@]}" && ./dev build "$preset" --target ${TARGETS:-all}
}

part_test() {
  ctest --preset "$preset" --timeout 120 -R "${TESTS:-cuda|gpu|conformance|collective|graph|plan|mlp|pressure|anywhere|bench|overlap}" </dev/null
}

part_sanitize() {
  local tool program status=0
  command -v compute-sanitizer >/dev/null || PATH=$PATH:/usr/local/cuda/bin
  for program in ${SANITIZED:-$(cd "$binaries/tests" && ls conformance_test ./*cuda*_test 2>/dev/null)}; do
    for tool in ${SANITIZERS:-memcheck racecheck initcheck}; do
      say "$tool $program"
      WEFT_GPUS=$gpus limited "${LIMIT_SANITIZER:-60}" compute-sanitizer --tool "$tool" \
        --error-exitcode 9 --print-limit 20 "$binaries/tests/$program" ${SANITIZED_CASES:-} || status=1
    done
  done
  return $status
}

part_floor() {
  if [[ ! -r ${FLOOR_DIR:-}/run.sh ]]; then
    echo "left out: FLOOR_DIR names no folder with a run.sh"
    return 0
  fi
  command -v nvcc >/dev/null || PATH=$PATH:/usr/local/cuda/bin
  rm -f "$work"/floor/*.json  # figures of one run only
  OUT=$work/floor BUILD=$work/floor/bin LIMIT=${LIMIT_PROGRAM:-70} \
    EXP12=${EXP12-"ms links pageable"} MLP=${MLP-quick} \
    bash "$FLOOR_DIR/run.sh" ${FLOOR_PROGRAMS:-exp12 smallops allreduce mlp}
}

# figure NAME SECONDS ARGUMENTS…: runs weft, which writes its result to NAME.json.
figure() {
  local name=$1 seconds=$2
  shift 2
  say "$name: weft $*"
  limited "$seconds" "$binaries/weft" "$@" --gpus "$gpus" --json "$work/weft/$name.json" || failed+=("$name")
}

part_bench() {
  failed=()
  local n=4000 ops=50 small=4000 most=1GB epochs=5 configs="256:256 256:2048 4096:4096"
  if [[ -n ${QUICK:-} ]]; then n=100 ops=5 small=200 most=256KB epochs=2 configs=256:2048; fi
  local overlap=(overlap --n "$n" --ops "$ops" --repeat 5) precision precisions="fp32 tf32"
  rm -f "$work"/weft/*.json  # figures of one run only
  [[ $gpus == cuda ]] || precisions=fp32
  figure gpu_ops 40 bench gpu-ops --ops $small
  for precision in $precisions; do
    local own_link=()
    [[ $precision == fp32 ]] || own_link=(--no-relay)  # with relays: below
    figure "overlap_${precision}_pinned" 40 "${overlap[@]}" --precision "$precision" "${own_link[@]}" \
      --only two_gpus,copy,copy_both
    figure "overlap_${precision}_pageable" 40 "${overlap[@]}" --precision "$precision" --only copy,copy_both \
      --to pageable
  done
  [[ $gpus != cuda ]] ||
    figure overlap_tf32_pinned_relay 30 "${overlap[@]}" --precision tf32 --only copy
  figure collectives 60 bench collectives --max $most --repeats 3 --algorithm auto
  local config hidden batch devices count
  for config in $configs; do
    hidden=${config%:*} batch=${config#*:}
    for devices in gpu0 gpu0,gpu1; do
      count=$(tr -cd , <<<"$devices" | wc -c)
      local mlp=(mlp --hidden "$hidden" --batch "$batch" --epochs "$epochs" --eval-every "$epochs"
        --momentum 0 --devices "$devices")
      figure "mlp_h${hidden}_b${batch}_$((count + 1))gpu" 30 "${mlp[@]}" --input resident
      figure "mlp_h${hidden}_b${batch}_$((count + 1))gpu_fed" 30 "${mlp[@]}" --input streamed
    done
  done
  figure links 60 bench links --max $most
  ((${#failed[@]} == 0)) || { echo "failed: ${failed[*]}"; return 1; }
}

part_figures() {
  local status
  python3 scripts/gpu_figures.py --floor "$OUT/floor.json" --weft "$OUT/weft.json" --markdown "$OUT/figures.md"
  status=$?
  return $((status == 1 ? 0 : status))  # 1: goals are missed, as the table says
}

# ---- all of them

# merge FOLDER: its JSON files as one object, by their names.
merge() {
  local file separator=
  echo '{'
  for file in "$1"/*.json; do
    [[ -s $file ]] || continue
    printf '%s"%s":\n' "$separator" "$(basename "$file" .json)"
    cat "$file"
    separator=,
  done
  echo '}'
}

shorten() {  # a log that is too long keeps its ends
  local bytes
  bytes=$(stat -c %s "$1")
  ((bytes > 8 << 20)) || return 0
  { head -c $((1 << 20)) "$1"; printf '\n… %s bytes are left out …\n' "$bytes"; tail -c $((6 << 20)) "$1"; } >"$1.short"
  mv "$1.short" "$1"
}

limit_of() {
  local variable=LIMIT_${1^^} seconds
  case $1 in
    build) seconds=300 ;;
    test) seconds=120 ;;
    figures) seconds=20 ;;
    *) seconds=220 ;;
  esac
  echo "${!variable:-$seconds}"
}

run_parts() {
  local part limit left started status outcome log lines summary=() worst=0
  for part in "$@"; do
    merge "$work/floor" >"$OUT/floor.json"
    merge "$work/weft" >"$OUT/weft.json"
    left=$((${TOTAL:-570} - SECONDS)) limit=$(limit_of "$part")
    if ((left < 5)); then
      summary+=("$(printf '%-9s left out: no time was left' "$part")") worst=1
      continue
    fi
    ((limit < left)) || limit=$left
    say "$part (at most $limit s)"
    started=$SECONDS
    log=$OUT/$part.log lines=${LINES_SHOWN:-12}
    [[ $part != figures ]] || log=$work/figures.log lines=1000  # all of it is shown
    timeout -k 10 "$limit" bash "$self" --part "$part" >"$log" 2>&1
    status=$?
    shorten "$log"
    tail -n "$lines" "$log"
    case $status in
      0) outcome=ok ;;
      124 | 137) outcome="stopped at its limit" worst=1 ;;
      *) outcome="failed, exit status $status, see $part.log" worst=1 ;;
    esac
    summary+=("$(printf '%-9s %4d s  %s' "$part" $((SECONDS - started)) "$outcome")")
  done
  merge "$work/floor" >"$OUT/floor.json"
  merge "$work/weft" >"$OUT/weft.json"
  say "summary, $SECONDS s in all"
  printf '%s\n' "${summary[@]}"
  return $worst
}

if [[ ${1:-} == --part ]]; then
  if [[ $2 != build && -n ${PACKAGES:-} ]]; then offline_env "$PACKAGES" || exit 1; fi
  [[ $2 != build ]] || nvidia-smi -L 2>/dev/null
  "part_$2"
  exit
fi
(($#)) || set -- build test floor bench figures
for part in "$@"; do
  declare -F "part_$part" >/dev/null || {
    echo "gpu_session: there is no part '$part'; wanted some of build test sanitize floor bench figures" >&2
    exit 2
  }
done
run_parts "$@"
