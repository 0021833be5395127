#!/usr/bin/env bash
# offline_build.sh DIR [PRESET [ctest args]]: builds and tests on a machine without network, with
# the packages that offline_pack.sh gathered in DIR, unpacked below build/. PRESET: gpu where nvcc
# is, else release. The machine itself gives compiler, CMake, ninja, hwloc, OpenBLAS, CUDA, NCCL.
set -euo pipefail
die() { printf 'offline-build: %s\n' "$*" >&2; exit 1; }
(($# >= 1)) || die "wants the folder of packages: ./dev offline-build DIR [preset [ctest args]]"
packages=$(realpath "$1") || exit 1
compgen -G "$packages/*.deb" >/dev/null || die "no .deb in $packages; fill it with ./dev offline-pack"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

prefix=$PWD/build/offline
if [[ ! $prefix/complete -nt $packages ]]; then
  rm -rf "$prefix"
  mkdir -p "$prefix"
  for deb in "$packages"/*.deb; do dpkg -x "$deb" "$prefix"; done
  touch "$prefix/complete"
fi

preset=release
[[ -x /usr/local/cuda/bin/nvcc ]] || command -v nvcc >/dev/null && preset=gpu
preset=${2:-$preset}
libraries=$prefix/usr/lib/$(gcc -print-multiarch)
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export WEFT_DATA_DIR=$prefix/usr/share/datasets/fashion-mnist
export WEFT_SKIP_DEPS=1

export LDFLAGS=-Wl,-rpath-link,$libraries  # for libraries of libraries

cmake --preset "$preset" -DCMAKE_PREFIX_PATH="$prefix/usr"
./dev build "$preset"
ctest --preset "$preset" "${@:3}" </dev/null
