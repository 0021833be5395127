#!/usr/bin/env bash
# offline_pack.sh DIR: gathers into DIR the packages that a machine with CUDA, a compiler, CMake,
# ninja, hwloc, OpenBLAS and no network lacks. Runs on Debian 12+ or Ubuntu 24.04+, needs no root.
# Take DIR there together with the project and run `./dev offline-build DIR`.
set -euo pipefail
die() { printf 'offline-pack: %s\n' "$*" >&2; exit 1; }
(($# == 1)) || die "wants one folder: ./dev offline-pack DIR"
command -v apt-get >/dev/null || die "this system has no apt-get; pack on Debian or Ubuntu"

packages=(libcaf-dev catch2 libcli11-dev nlohmann-json3-dev libspdlog-dev libfmt-dev libtbb-dev
  libpugixml-dev zlib1g-dev libyaml-cpp-dev dataset-fashion-mnist)
# The libraries behind those: dependencies that belong to one of these families.
families='lib(caf|spdlog|fmt|tbb|pugixml|yaml-cpp|boost)[a-z0-9.-]*'

known() { [[ -n $(apt-cache show --no-all-versions "$1" 2>/dev/null) ]]; }
if known libboost1.81-dev; then packages+=(libboost1.81-dev); else packages+=(libboost-dev); fi
for package in "${packages[@]}"; do
  known "$package" || die "apt does not know $package; run 'apt-get update' (as root) first"
done

mapfile -t all < <({
  printf '%s\n' "${packages[@]}"
  apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
    --no-replaces --no-enhances "${packages[@]}" | grep -oE "Depends: $families\$" | cut -d' ' -f2
} | sort -u)

mkdir -p "$1"
cd "$1"
sandbox=()
((EUID == 0)) && sandbox=(-o APT::Sandbox::User=root)  # its own user may not write here
apt-get "${sandbox[@]}" download -q "${all[@]}"
echo "$(ls ./*.deb | wc -l) packages, $(du -ch ./*.deb | tail -1 | cut -f1) in $PWD"
