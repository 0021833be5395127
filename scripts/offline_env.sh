# shellcheck shell=bash
# To be sourced by bash in the root of the tree.
#
# offline_env DIR: unpacks the packages that offline_pack.sh gathered in DIR below build/, and sets
# the environment so that weft builds and runs with them. $offline_prefix is where they lie.
offline_env() {
  local packages deb libraries
  packages=$(realpath "$1") || return
  if ! compgen -G "$packages/*.deb" >/dev/null; then
    echo "no .deb in $packages; fill it with ./dev offline-pack" >&2
    return 1
  fi
  offline_prefix=$PWD/build/offline
  if [[ ! $offline_prefix/complete -nt $packages ]]; then
    rm -rf "$offline_prefix"
    mkdir -p "$offline_prefix"
    for deb in "$packages"/*.deb; do dpkg -x "$deb" "$offline_prefix" || return; done
    touch "$offline_prefix/complete"
  fi
  libraries=$offline_prefix/usr/lib/$(gcc -print-multiarch)
  export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LDFLAGS=-Wl,-rpath-link,$libraries  # for libraries of libraries
  export WEFT_DATA_DIR=$offline_prefix/usr/share/datasets/fashion-mnist
  export WEFT_SKIP_DEPS=1
}
