#!/usr/bin/env bash
# The main job, three times: a candidate that passes, one that regresses, one that is broken. Exits 0 when all three verdicts
# are the right ones. Usage: demo.sh [FOLDER with bin/kgate and the corpus]
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
bin=${KGATE_BIN:-$root/build/bin}
[ -x "$root/bin/kgate" ] && bin=$root/bin
device=${KGATE_DEVICE:-auto}
out=${KGATE_OUT:-kgate-out}
failed=0

show() {  # title, expected exit, arguments...
  local title=$1 expected=$2
  shift 2
  printf '\n== %s\n$ kgate %s\n' "$title" "$*"
  "$bin/kgate" "$@"
  local code=$?
  printf -- '-> exit %s\n' "$code"
  [ "$code" -eq "$expected" ] || { printf 'demo: expected exit %s\n' "$expected" >&2; failed=1; }
}

cd "$root" || exit 1
"$bin/kgate" doctor
corpus=tests/corpus
show "a good candidate passes" 0 check --device "$device" --out "$out/good" -c "$corpus/softmax.yaml" "$corpus/softmax_good.ptx"
show "a slower one fails" 1 check --device "$device" --out "$out/slow" -c "$corpus/softmax.yaml" "$corpus/softmax_slow.ptx"
show "a wrong one is broken" 6 check --device "$device" --out "$out/broken" -c "$corpus/softmax.yaml" "$corpus/softmax_tail.ptx"
show "the trace of the first answers questions" 0 query --trace "$out/good/trace.db" \
  "SELECT kernel_name, COUNT(*) AS launches, AVG(duration_ns)/1e3 AS avg_us, p99(duration_ns)/1e3 AS p99_us FROM kernel_launches GROUP BY kernel_name"
show "on what a small server really did, recorded on an H200" 0 check --device "$device" --out "$out/recorded" --workload workloads/decode_app.kgw \
  --kernel softmax_rows "$corpus/softmax_good.ptx"
exit "$failed"
