#!/usr/bin/env bash
# Queries over the trace that a check left, and inspect of each kind of file.
. "$(dirname "$0")/lib.sh"

# One trace for all: shapes 1x31, 1x64, 3x31, 3x64; two pairs of rounds of 4 requests.
_trace() {
  trace=$work/trace.db
  [ -s "$trace" ] && return
  quick_contract
  check --warmup 1 --requests 4 -c quick.yaml "$good"
  expect_exit 0
  cp out/trace.db "$trace"
}

_value() {  # SQL: the one value
  run "$kgate" query --trace "$trace" "$1"
  expect_exit 0
  expect_no_stderr
  tail -n +2 stdout
}

the_statement_of_the_documentation_runs_as_it_stands() {
  _trace
  mkdir kgate-out
  cp "$trace" kgate-out/
  run "$kgate" query 'SELECT kernel_name, COUNT(*) AS launches, AVG(duration_ns)/1e3 AS avg_us, p99(duration_ns)/1e3 AS p99_us
    FROM kernel_launches GROUP BY kernel_name;'
  expect_exit 0
  expect_no_stderr
  expect_equal "$(head -n 1 stdout | tr -s ' ')" "kernel_name launches avg_us p99_us"
  expect_equal "$(sed -n 2p stdout | tr -s ' ' | cut -d' ' -f1,2)" "softmax_rows 8"
  expect_equal "$(wc -l <stdout)" 2
}

every_measured_launch_of_both_arms_is_there() {
  _trace
  expect_equal "$(_value "SELECT COUNT(*) FROM kernel_launches")" 8
  expect_equal "$(_value "SELECT COUNT(*) FROM baseline_launches")" 8
  expect_equal "$(_value "SELECT COUNT(*) FROM all_launches WHERE phase = 'warmup'")" 4
  expect_equal "$(_value "SELECT COUNT(*) FROM requests WHERE phase = 'measured'")" 16
  expect_equal "$(_value "SELECT COUNT(DISTINCT kernel_id) FROM all_launches WHERE phase = 'measured'")" 2
  expect_equal "$(_value "SELECT COUNT(*) FROM kernel_launches WHERE grid_x NOT IN (1, 3) OR duration_ns <= 0 OR queue_ns < 0")" 0
  expect_equal "$(_value "SELECT value FROM run WHERE key = 'finished'")" 1
  expect_equal "$(_value "SELECT COUNT(*) FROM health WHERE name = 'lost_records' AND value = 0")" 1
}

a_workload_shows_its_other_kernels_too() {
  check --warmup 1 --requests 3 --workload "$KGATE_SOURCE/workloads/demo.yaml" -c "$corpus/softmax.yaml" "$good"
  expect_exit 0
  trace=out/trace.db
  local kernels judged
  kernels=$(_value "SELECT COUNT(DISTINCT kernel_name) FROM kernel_launches")
  expect_equal "$kernels" 3
  judged=$(_value "SELECT COUNT(*) FROM kernel_launches WHERE judged")
  expect_equal "$judged" 6
  expect_equal "$(_value "SELECT COUNT(*) FROM kernel_launches WHERE judged AND kernel_name <> 'softmax_rows'")" 0
  expect_equal "$(_value "SELECT COUNT(*) FROM counters WHERE judged AND warp_instructions <= 0")" 0
}

quantiles_are_sql_functions() {
  _trace
  expect_equal "$(_value "WITH t(x) AS (VALUES (1), (2), (3), (4)) SELECT p50(x) + 10 * p99(x) + 100 * percentile(x, 25) FROM t" |
    sed 's/\.0$//')" 142
}

json_is_an_array_of_objects() {
  _trace
  run "$kgate" query --trace "$trace" --json "SELECT 'a\"b' AS x, NULL AS y"
  expect_exit 0
  expect_stdout '"x": "a\"b"'
  expect_stdout '"y": null'
  run "$kgate" query --trace "$trace" --json "SELECT 1 WHERE 0"
  expect_equal "$(cat stdout)" "[]"
  run "$kgate" query --trace "$trace" "SELECT 1 WHERE 0"
  expect_stdout "no rows"
}

a_statement_may_come_from_a_file() {
  _trace
  echo "SELECT 40 + 2 AS answer" >question.sql
  run "$kgate" query --trace "$trace" --file question.sql
  expect_exit 0
  expect_equal "$(tail -n 1 stdout)" 42
  run "$kgate" query --trace "$trace" --file absent.sql
  expect_refusal 65 "absent.sql"
}

bad_sql_is_bad_input_with_its_place() {
  _trace
  run "$kgate" query --trace "$trace" "SELEC 1"
  expect_refusal 65 'SQL:1:1: near "SELEC": syntax error'
  run "$kgate" query --trace "$trace" "SELECT absent_column FROM kernel_launches"
  expect_refusal 65 "no such column"
  run "$kgate" query --trace "$trace" "SELECT 1; SELECT 2"
  expect_refusal 65 "more than one statement"
}

a_trace_is_never_written() {
  _trace
  local before sql
  before=$(sha256sum <"$trace")
  for sql in "DELETE FROM kernels" "UPDATE run SET value = 1" "DROP TABLE health" "CREATE TABLE x(y)" "PRAGMA user_version = 9" \
    "ATTACH 'other.db' AS other" "VACUUM INTO 'copy.db'"; do
    run "$kgate" query --trace "$trace" "$sql"
    expect_refusal 65 "SQL"
  done
  expect_equal "$(sha256sum <"$trace")" "$before"
  expect_no_file other.db
  expect_no_file copy.db
}

what_is_no_trace_is_refused() {
  run "$kgate" query "SELECT 1"
  expect_refusal 65 "kgate-out/trace.db"
  run "$kgate" query --trace "$good" "SELECT 1"
  expect_refusal 65 "not a kgate trace"
  _trace
  head -c 5000 "$trace" >cut.db
  run "$kgate" query --trace cut.db "SELECT COUNT(*) FROM kernels"
  expect_refusal 65 "cut.db"
}

inspect_tells_each_kind_by_its_content() {
  _trace
  run "$kgate" inspect "$good"
  expect_exit 0
  expect_stdout "ptx for sm_75"
  expect_stdout "softmax_rows  3 (20 B)"
  run "$kgate" inspect "$corpus/softmax_good.sm_90.cubin"
  expect_exit 0
  expect_stdout "cubin for sm_90"
  run "$kgate" inspect "$KGATE_SOURCE/workloads/demo.yaml"
  expect_exit 0
  expect_stdout "workload  demo"
  run "$kgate" inspect "$trace"
  expect_exit 0
  expect_stdout "trace, tier T"
  expect_stdout "lost_records"
  cp "$corpus/softmax_good.sm_90.cubin" misnamed.ptx
  run "$kgate" inspect misnamed.ptx
  expect_exit 0
  expect_stdout "cubin for sm_90"
}

inspect_prints_json() {
  local file
  for file in "$good" "$corpus/softmax_good.sm_90.cubin" "$KGATE_SOURCE/workloads/demo.yaml"; do
    run "$kgate" inspect --json "$file"
    expect_exit 0
    expect_no_stderr
    expect_equal "$(head -c 1 stdout)" "{"
    ! command -v python3 >/dev/null || python3 -m json.tool stdout >/dev/null || fail "valid JSON"
  done
}

inspect_refuses_what_it_does_not_know() {
  run "$kgate" inspect absent
  expect_refusal 65 "absent: cannot open"
  run "$kgate" inspect "$corpus/bad/amd.hsaco"
  expect_refusal 65 "unsupported target"
  head -c 512 /dev/urandom >noise
  run "$kgate" inspect noise
  expect_refusal 65 "noise"
}

run_behaviours "$@"
