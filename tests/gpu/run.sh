#!/usr/bin/env bash
# The GPU test: needs an NVIDIA GPU and an unpacked dist tree, nothing else. Usage: tests/gpu/run.sh DIST_DIR [OUT_DIR]
# Prints every verdict and a summary; exits 0 when all of them are the expected ones.
set -uo pipefail
dist=$(cd "${1:?usage: run.sh DIST_DIR [OUT_DIR]}" && pwd)
out=${2:-$(mktemp -d)}
mkdir -p "$out"
out=$(cd "$out" && pwd)
kgate=$dist/bin/kgate
cd "$dist" || exit 1
failed=0
note() { printf '%s\n' "$*"; }
expect() {  # name, expected exit, arguments...
  local name=$1 expected=$2
  shift 2
  local start=$EPOCHREALTIME
  timeout "${limit:-300}" "$kgate" "$@" >"$out/$name.txt" 2>&1
  local code=$? end=$EPOCHREALTIME
  cat "$out/$name.txt"
  note "-> $name: exit $code, $(awk "BEGIN {printf \"%.2f\", $end - $start}") s wall"
  [ "$code" -eq "$expected" ] || { note "UNEXPECTED: wanted exit $expected"; failed=1; }
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
uname -r
"$kgate" doctor
corpus=tests/corpus
common=(check --device gpu --require-tier T0)
expect good 0 "${common[@]}" --out "$out/good" -c $corpus/softmax.yaml $corpus/softmax_good.ptx
expect slow 1 "${common[@]}" --out "$out/slow" -c $corpus/softmax.yaml $corpus/softmax_slow.ptx
expect identical 0 check --device gpu --out "$out/identical" -c $corpus/softmax.yaml workloads/kernels/softmax.ptx
expect unassembled 6 check --device gpu --out "$out/unassembled" -c $corpus/softmax.yaml $corpus/softmax_unassembled.ptx
expect tail 6 check --device gpu --out "$out/tail" -c $corpus/softmax.yaml $corpus/softmax_tail.ptx
expect query 0 query --trace "$out/good/trace.db" \
  "SELECT kernel_name, COUNT(*) AS launches, AVG(duration_ns)/1e3 AS avg_us, p99(duration_ns)/1e3 AS p99_us FROM kernel_launches GROUP BY kernel_name"
expect health 0 query --trace "$out/good/trace.db" "SELECT name, value, \"limit\", note FROM health"
expect launches 0 query --trace "$out/good/trace.db" \
  "SELECT (SELECT COUNT(*) FROM kernels) AS kernel_records, (SELECT value FROM health WHERE name = 'unmatched_launches') AS unmatched_launches"
if [ "${KGATE_GPU_CORPUS:-1}" = 1 ]; then
  limit=1200 expect corpus 0 check --manifest $corpus/manifest.yaml --device gpu --out "$out/corpus"
fi
[ $failed -eq 0 ] && note "gpu tests: all as expected" || note "gpu tests: FAILED"
exit $failed
