#!/usr/bin/env bash
# Records applications on the GPU of this machine, replays them, and judges candidates on them. Prints what each step gave.
# Usage: record.sh FOLDER [OUT]   FOLDER holds bin/kgate (make dist) and bin/decode_app; needs PyTorch and Triton for the
# last three.
set -uo pipefail
root=$(cd "${1:-.}" && pwd)
out=${2:-kgate-record}
mkdir -p "$out" && out=$(cd "$out" && pwd)
kgate=$root/bin/kgate
app="$root/bin/decode_app $root/workloads/kernels"
cd "$root" || exit 1

step() { printf '\n== %s\n' "$1"; }
judge() {  # name, expected exit, arguments...
  local name=$1 expected=$2
  shift 2
  timeout 120 "$kgate" check --out "$out/$name" "$@" > "$out/$name.txt" 2> "$out/$name.err"
  local code=$?
  printf '%-24s exit %s (expected %s): %s\n' "$name" "$code" "$expected" "$(head -1 "$out/$name.txt")"
  [ "$code" -eq "$expected" ] || { tail -3 "$out/$name.err"; sed -n 2,12p "$out/$name.txt"; }
}
record() {  # name, command...
  local name=$1
  shift
  timeout 150 "$kgate" record -o "$out/$name.kgw" "${options[@]}" -- "$@" > "$out/$name.record" 2>&1 || { echo "record $name: exit $?"; tail -5 "$out/$name.record"; }
  grep -E "^(first replay|recorded|calls|memory|note|warning)" "$out/$name.record" | head -12
}
options=()

step "what recording costs (p50 and p99 of a step, bare and recorded in turn)"
for turn in 1 2 3; do
  $app --steps 1500 --scale 8
  "$kgate" record --no-replay -o "$out/cost.kgw" -- $app --steps 1500 --scale 8 2>&1 | grep -E "steps|recorded"
done

step "a small one, for machines without a GPU"
record small $app --steps 12
step "decode: plain launches, two threads, in place"
record decode $app --steps 100 --scale 8
judge decode-same 0 --workload "$out/decode.kgw" --kernel softmax_rows workloads/kernels/softmax.ptx
judge decode-good 0 --workload "$out/decode.kgw" -c tests/corpus/softmax.yaml tests/corpus/softmax_good.ptx
judge decode-slow 1 --workload "$out/decode.kgw" -c tests/corpus/softmax.yaml tests/corpus/softmax_slow.ptx
judge decode-wrong 6 --workload "$out/decode.kgw" -c tests/corpus/softmax.yaml tests/corpus/softmax_tail.ptx
judge decode-sync 1 --workload "$out/decode.kgw" -c tests/gpu/extra_sync.yaml workloads/kernels/softmax.ptx
"$kgate" query --trace "$out/decode-slow/trace.db" "SELECT COUNT(*) AS requests, p50(lag_ns)/1e3 AS lag_p50_us, p99(lag_ns)/1e3 AS lag_p99_us FROM requests"
"$kgate" query --trace "$out/decode-slow/trace.db" "SELECT kernel_name, COUNT(*) AS launches, p50(duration_ns)/1e3 AS p50_us, p99(duration_ns)/1e3 AS p99_us FROM baseline_launches GROUP BY kernel_name"
"$kgate" trace --out "$out/app.db" -- $app --steps 1500 --scale 8
"$kgate" query --trace "$out/app.db" "SELECT kernel_name, COUNT(*) AS launches, p50(duration_ns)/1e3 AS p50_us, p99(duration_ns)/1e3 AS p99_us FROM kernel_launches GROUP BY kernel_name"
time "$kgate" inspect "$out/cost.kgw" > "$out/cost.inspect"

step "decode as a graph"
record graph $app --steps 100 --scale 8 --graph
judge graph-slow 1 --workload "$out/graph.kgw" -c tests/corpus/softmax.yaml tests/corpus/softmax_slow.ptx

if python3 -c 'import torch, triton' 2> /dev/null; then
  step "Triton: add, softmax, matmul; the softmax replaced by one with another grid"
  python3 tests/gpu/apps/triton_softmax.py "$out/four.cubin"
  record triton python3 tests/gpu/apps/triton_softmax.py
  judge triton-four 0 --workload "$out/triton.kgw" -c tests/gpu/softmax_four.yaml "$out/four.cubin" --scope numeric
  step "PyTorch encoder layer, eager"
  record torch python3 tests/gpu/apps/torch_encoder.py
  step "PyTorch encoder layer, CUDA graph"
  record torch-graph python3 tests/gpu/apps/torch_encoder.py graph
fi
ls -la "$out"/*.kgw
