#!/usr/bin/env bash
# Tracing on an NVIDIA GPU: applications that kgate did not write, hardware counters, a fast kernel that is a bad neighbour.
# Needs a GPU, an unpacked dist tree and nvcc (or the programs of tests/gpu/apps built beside their sources); PyTorch and
# Triton where they are installed. Usage: tests/gpu/tracing.sh DIST_DIR [OUT_DIR]. Exits 0 when all is as expected.
set -uo pipefail
dist=$(cd "${1:?usage: tracing.sh DIST_DIR [OUT_DIR]}" && pwd)
out=${2:-$(mktemp -d)}
mkdir -p "$out"
out=$(cd "$out" && pwd)
kgate=$dist/bin/kgate
cd "$dist" || exit 1
failed=0
note() { printf '%s\n' "$*"; }
wrong() { note "UNEXPECTED: $*"; failed=1; }
expect() {  # name, expected exit, arguments...
  local name=$1 expected=$2 code
  shift 2
  timeout "${limit:-300}" "$kgate" "$@" >"$out/$name.txt" 2>&1
  code=$?
  cat "$out/$name.txt"
  note "-> $name: exit $code"
  [ "$code" -eq "$expected" ] || wrong "$name wanted exit $expected"
}
value() {  # trace, SQL with one result
  "$kgate" query --trace "$1" "$2" | tail -n 1 | tr -d ' '
}
same() {  # what, trace, SQL, expected
  local got
  got=$(value "$2" "$3")
  note "$1: $got"
  [ "$got" = "$4" ] || wrong "$1 is $got, wanted $4"
}
unfit="SELECT COUNT(*) FROM health WHERE value > \"limit\""

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
uname -r
"$kgate" doctor

note "## a fast kernel, a bad neighbour"
expect neighbours 1 check --device gpu --require-tier T0 --counters --out "$out/neighbours" -c tests/gpu/neighbours.yaml tests/gpu/kernels/poly_greedy.ptx
grep -q "FAIL.*others.delay" "$out/neighbours.txt" || wrong "others.delay did not decide"
grep -q "kernel_time.p50.* ok" "$out/neighbours.txt" || wrong "kernel_time does not pass"

note "## hardware counters"
expect counters 1 check --device gpu --counters --max-pairs 6 --out "$out/counters" -c tests/corpus/softmax.yaml tests/corpus/softmax_slow.ptx
"$kgate" query --trace "$out/counters/trace.db" "SELECT arm, metric, value, valid, note FROM hardware_counters"

apps=tests/gpu/apps
for app in graphs launch_loop; do
  if [ ! -x "$out/$app" ]; then
    if [ -x "$apps/$app" ]; then cp "$apps/$app" "$out/$app"; else nvcc -arch=native -o "$out/$app" "$apps/$app.cu" || wrong "no $app: nvcc failed"; fi
  fi
done

note "## a runtime program with graphs, cudart linked statically"
expect graphs 0 trace --require-tier T0 --out "$out/graphs.db" -- "$out/graphs" 100
same kernels "$out/graphs.db" "SELECT COUNT(*) FROM kernel_launches" 400
same "kernels of graphs" "$out/graphs.db" "SELECT COUNT(*) FROM kernel_launches WHERE graph_id IS NOT NULL" 300
same "nodes" "$out/graphs.db" "SELECT COUNT(DISTINCT graph_node) FROM kernel_launches WHERE graph_id IS NOT NULL" 3
same "health rows past their limit" "$out/graphs.db" "$unfit" 0
"$kgate" query --trace "$out/graphs.db" "SELECT name, value, \"limit\", note FROM health WHERE value > 0"
expect perfetto 0 report "$out/graphs.db" --perfetto "$out/graphs.json"

note "## as many launches as one thread makes in 10 s"
expect launch_loop 0 trace --require-tier T0 --out "$out/loop.db" -- "$out/launch_loop" 10
same "kernels are the launches" "$out/loop.db" "SELECT COUNT(*) FROM kernel_launches" "$(sed -n 's/^launches \([0-9]*\) .*/\1/p' "$out/launch_loop.txt")"
same "health rows past their limit" "$out/loop.db" "$unfit" 0
time "$kgate" query --trace "$out/loop.db" "SELECT kernel_name, COUNT(*) AS launches, AVG(duration_ns) AS avg_ns, p99(duration_ns) AS p99_ns FROM kernel_launches GROUP BY kernel_name"

note "## two sets of six traces of one program"
before=() after=()
for i in 1 2 3 4 5 6; do
  "$kgate" trace --out "$out/a$i.db" -- "$out/graphs" 300 >/dev/null 2>&1 && before+=("$out/a$i.db")
  "$kgate" trace --out "$out/b$i.db" -- "$out/graphs" 300 >/dev/null 2>&1 && after+=("$out/b$i.db")
done
expect compare 0 compare --baseline "${before[@]}" --candidate "${after[@]}"

if python3 -c 'import torch, triton' 2>/dev/null; then
  note "## PyTorch and Triton, eager and as a graph"
  expect torch 0 trace --require-tier T0 --out "$out/torch.db" -- python3 $apps/torch_triton.py 100
  same "softmax launches" "$out/torch.db" "SELECT COUNT(*) FROM kernel_launches WHERE kernel_name = 'softmax_kernel'" 200
  same "health rows past their limit" "$out/torch.db" "$unfit" 0
  "$kgate" query --trace "$out/torch.db" "SELECT name, value, \"limit\", note FROM health WHERE value > 0"
else
  note "PyTorch and Triton are not installed: not run"
fi
[ $failed -eq 0 ] && note "tracing tests: all as expected" || note "tracing tests: FAILED"
exit $failed
