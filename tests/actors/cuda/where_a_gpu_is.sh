#!/usr/bin/env bash
# where_a_gpu_is.sh PROGRAM [ARGS]: runs it where there is an NVIDIA GPU; else ends with 77, which
# ctest shows as skipped.
set -euo pipefail
shopt -s nullglob
gpus=(/dev/nvidia[0-9]* /dev/dxg)
if [[ ! -e ${gpus[0]} ]]; then
  echo "skipped: no NVIDIA GPU here; the suite without _one_gpu runs the other engines"
  exit 77
fi
exec "$@"
