#!/usr/bin/env bash
# Installs what building needs and is missing, with apt (Debian 12, Ubuntu 24.04). A CUDA toolkit is optional and not installed.
set -euo pipefail
packages=(
  build-essential cmake ninja-build ccache pkg-config git clang llvm
  libbpf-dev libelf-dev zlib1g-dev libzstd-dev libsqlite3-dev libssl-dev
  libfmt-dev libyaml-cpp-dev libcli11-dev nlohmann-json3-dev libboost-dev
  libgtest-dev libbenchmark-dev
)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
command -v apt-get >/dev/null || { echo "error: apt-get not found; install: ${missing[*]}" >&2; exit 1; }
sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo)
echo "installing: ${missing[*]}" >&2
"${sudo[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
