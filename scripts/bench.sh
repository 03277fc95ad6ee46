#!/usr/bin/env bash
# Prints the speed figures of this machine. Usage: bench.sh BUILD_DIR
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
cmake -S . -B "$build" -G Ninja -DKGATE_BENCH=ON >/dev/null
cmake --build "$build" --target vgpu_bench trace_bench kgate kgate-worker kgate_vgpu kgate-compile >/dev/null
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

seconds() {  # label, expected exit, command...: minimum, median and maximum of five runs
  local label=$1 expected=$2 times=() start code
  shift 2
  for _ in 1 2 3 4 5; do
    start=$EPOCHREALTIME
    code=0
    "$@" >"$out/log" 2>&1 || code=$?
    times+=("$(awk "BEGIN {printf \"%.3f\", $EPOCHREALTIME - $start}")")
    [ "$code" -eq "$expected" ] || { echo "$label: exit $code, expected $expected" >&2; cat "$out/log" >&2; return 1; }
  done
  printf '%s\n' "${times[@]}" | sort -n | awk -v label="$label" '{v[NR]=$1} END {printf "%-44s min %.3f  median %.3f  max %.3f s\n", label, v[1], v[3], v[5]}'
}

kgate=$build/bin/kgate
check=("$kgate" check --device "${KGATE_DEVICE:-auto}" --out "$out/check" -c tests/corpus/softmax.yaml)
seconds "check, identical code" 0 "${check[@]}" workloads/kernels/softmax.ptx
seconds "check, does not assemble" 6 "${check[@]}" tests/corpus/softmax_unassembled.ptx
seconds "check, good candidate (the demo's)" 0 "${check[@]}" tests/corpus/softmax_good.ptx
"$build/bin/vgpu_bench" --benchmark_min_time=1 2>/dev/null
"$build/bin/trace_bench" --benchmark_min_time=1 2>/dev/null
