#!/usr/bin/env bash
# offline_build.sh DIR [PRESET [ctest args]]: builds and tests on a machine without network, with
# the packages that offline_pack.sh gathered in DIR, unpacked below build/. PRESET: gpu where nvcc
# is, else release. The machine itself gives compiler, CMake, ninja, hwloc, OpenBLAS, CUDA, NCCL.
set -euo pipefail
die() { printf 'offline-build: %s\n' "$*" >&2; exit 1; }
(($# >= 1)) || die "wants the folder of packages: ./dev offline-build DIR [preset [ctest args]]"
packages=$(realpath "$1") || exit 1
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/offline_env.sh
offline_env "$packages" || exit 1

preset=release
[[ -x /usr/local/cuda/bin/nvcc ]] || command -v nvcc >/dev/null && preset=gpu
preset=${2:-$preset}

cmake --preset "$preset" -DCMAKE_PREFIX_PATH="$offline_prefix/usr"
./dev build "$preset"
ctest --preset "$preset" "${@:3}" </dev/null
