#!/usr/bin/env bash
# gpu_session_test.sh SCRIPT: scripts/gpu_session.sh goes on after a part that fails or takes too
# long, and says so. Its parts that need weft or a GPU are not run here.
set -uo pipefail
script=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OUT=$folder/out WORK=$folder/work FLOOR_DIR=$folder/floor
mkdir "$FLOOR_DIR"
failures=0

session() { output=$(bash "$script" "$@" 2>&1); status=$?; }
expect() {  # expect STATUS TEXT…: the last session's exit status and what it said
  local wanted=$1 text
  shift
  if ((status != wanted)); then
    echo "exit status $status, wanted $wanted: $output"
    failures=$((failures + 1))
  fi
  for text in "$@"; do
    grep -qF -- "$text" <<<"$output" || {
      echo "wanted \"$text\" in: $output"
      failures=$((failures + 1))
    }
  done
}

session polish
expect 2 "no part 'polish'" "build test sanitize floor bench figures"

FLOOR_DIR='' session floor
expect 0 "left out: FLOOR_DIR"

# What a floor program measured before it failed is kept and shown.
cat >"$FLOOR_DIR/run.sh" <<'RUN'
echo '{ "fp32 50 gemm both GPUs, 2 stream(s) each s": 0.125 }' >"$OUT/exp12.json"
: >"$OUT/smallops.json"
echo "the second program broke"
exit 3
RUN
session floor figures
expect 1 "the second program broke" "floor" "failed, exit status 3, see floor.log" \
  "| fp32, both GPUs | - | 125 ms |" "figures  " " s  ok"
grep -q '"exp12"' "$OUT/floor.json" || { echo "no exp12 in floor.json"; failures=$((failures + 1)); }
grep -q '125 ms' "$OUT/figures.md" || { echo "no 125 ms in figures.md"; failures=$((failures + 1)); }

# A part that hangs is stopped with all that it started, and the next one runs.
cat >"$FLOOR_DIR/run.sh" <<'RUN'
sleep 300 & echo $! >"$OUT/pid"
wait
RUN
LIMIT_FLOOR=1 session floor figures
expect 1 "stopped at its limit" "summary"
runs() {  # a zombie does not
  kill -0 "$1" 2>/dev/null && ! grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null
}
started=$(cat "$WORK/floor/pid")
for ((i = 0; i < 50; ++i)); do runs "$started" && sleep 0.1 || break; done
if runs "$started"; then
  echo "what the floor started still runs"
  failures=$((failures + 1))
fi

TOTAL=1 session floor figures
expect 1 "left out: no time was left"

(($(find "$OUT" -type f | wc -l) <= 8)) || { echo "more than 8 files: $(ls "$OUT")"; failures=1; }
exit $((failures > 0))
