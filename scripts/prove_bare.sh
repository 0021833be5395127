#!/usr/bin/env bash
# prove_bare.sh [--offline] [--suite NAME] TREE [dev command …]
#
# Proves that a bare machine is enough: makes a minimal Debian in the new folder TREE with
# debootstrap, clones what is committed here into it, and runs `./dev demo` and `./dev test` in it,
# or the dev commands named. --suite: bookworm (default), trixie, noble … Packages come from where
# this machine has its own, or from WEFT_MIRROR=URL.
#
# --offline proves the way without network instead: the tree gets only what a CUDA machine has
# anyway (compiler, CMake, ninja, hwloc, OpenBLAS), the packages come from `./dev offline-pack`
# here, and `./dev offline-build` runs in a network namespace without any interface.
#
# Needs root and debootstrap. Mounts live in a mount namespace of their own and vanish with it.
# The tree is kept, so that a failure can be looked at; a later run continues in it.
set -euo pipefail
die() { printf 'prove_bare: %s\n' "$*" >&2; exit 1; }
say() { printf '\n==== [%s] %s\n' "$(date +%T)" "$*"; }

offline=0 suite=bookworm
while [[ ${1:-} == --* ]]; do
  case $1 in
    --offline) offline=1 ;;
    --suite) suite=$2; shift ;;
    *) die "unknown option $1" ;;
  esac
  shift
done
(($# >= 1)) || die "wants a folder for the tree: scripts/prove_bare.sh [--offline] TREE"
((EUID == 0)) || die "needs root: sudo $0 $*"
command -v debootstrap >/dev/null || die "needs debootstrap: apt-get install debootstrap"
mkdir -p "$1"
tree=$(realpath "$1")
shift
project=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")

configured=$(grep -rhoE 'https?://[^ ]*/debian/?( |$)' /etc/apt/sources.list* 2>/dev/null | head -1 || true)
mirror=${WEFT_MIRROR:-$configured}
components=(--components=main)
[[ $mirror == */ubuntu* ]] && components=(--components=main,universe)

if [[ ! -f $tree/etc/os-release ]]; then
  say "bare $suite"
  debootstrap --variant=minbase "${components[@]}" "$suite" "$tree" ${mirror:+"$mirror"} |
    grep -E '^(W|E|I: Base)' || true
  [[ -f $tree/etc/os-release ]] || die "debootstrap failed, see $tree/debootstrap/debootstrap.log"
  grep -lE '^ *Acquire' /etc/apt/apt.conf.d/* 2>/dev/null | xargs -r cp -t "$tree/etc/apt/apt.conf.d" || true
fi
cp /etc/resolv.conf /etc/hosts "$tree/etc/"

# inside COMMAND: runs it in the tree as on a machine of its own; ISOLATE=--net takes the network away.
inside() {
  TREE=$tree COMMAND=$1 unshare --mount ${ISOLATE:-} bash -c '
    mount --make-rprivate /
    mount -t proc proc "$TREE/proc"
    mount --rbind /sys "$TREE/sys"
    mount --rbind /dev "$TREE/dev"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 CI=true \
      chroot "$TREE" bash -c "$COMMAND"' </dev/null
}

say "clone of $(git -C "$project" log -1 --format='%h %s')"
rm -rf "$tree/weft"
git clone -q --no-hardlinks "file://$project" "$tree/weft"

started=$SECONDS
if ((offline)); then
  say "the machine's own: compiler, CMake, ninja, hwloc, OpenBLAS"
  inside "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
    g++ cmake ninja-build libhwloc-dev libopenblas-dev >/dev/null"
  "$project/dev" offline-pack "$tree/packages"
  say "./dev offline-build /packages, without network"
  ISOLATE=--net inside "cd /weft && ./dev offline-build /packages"
else
  (($#)) || set -- demo test
  for command in "$@"; do
    say "./dev $command"
    began=$SECONDS
    inside "cd /weft && ./dev $command"
    say "./dev $command took $((SECONDS - began)) s"
  done
fi
say "proved in $((SECONDS - started)) s: $(. "$tree/etc/os-release" && echo "$PRETTY_NAME"), $(nproc) processors"
