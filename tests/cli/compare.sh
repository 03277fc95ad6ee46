#!/usr/bin/env bash
# kgate compare: traces of checks against each other. On the virtual GPU counts are judged, times never.
. "$(dirname "$0")/lib.sh"

# Traces of the good kernel (twice), and of one that reads memory badly.
_traces() {
  a=$work/a.db b=$work/b.db slow=$work/slow.db
  [ -s "$slow" ] && return
  quick_contract
  check --warmup 1 --requests 4 --seed 1 -c quick.yaml "$good"
  expect_exit 0
  cp out/trace.db "$a"
  check --warmup 1 --requests 4 --seed 1 -c quick.yaml "$good"
  expect_exit 0
  cp out/trace.db "$b"
  check --warmup 1 --requests 4 --seed 1 -c quick.yaml "$corpus/softmax_uncoalesced.ptx"
  expect_exit 1
  cp out/trace.db "$slow"
}

equal_counts_pass() {
  _traces
  run "$kgate" compare "$a" "$b"
  expect_exit 0
  expect_stdout "PASS"
  expect_stdout "virtual.instructions"
  ! grep -q kernel_time stdout || fail "no time of the virtual GPU"
}

more_work_is_a_regression_with_its_kernel_and_class() {
  _traces
  run "$kgate" compare "$a" "$slow" --markdown report.md
  expect_exit 1
  expect_stdout "FAIL"
  expect_stdout "softmax_rows grid"
  expect_text report.md "### ❌ kgate: FAIL"
  run "$kgate" compare "$a" "$slow" --json
  expect_exit 1
  expect_stdout '"subject": "softmax_rows grid'
  run "$kgate" compare "$a" "$slow" --limit virtual.instructions=none --limit virtual.sectors=none --limit virtual.bank_conflicts=none
  expect_exit 3
  expect_stdout "nothing_compared"
}

the_baseline_arm_of_both_is_the_same_kernel() {
  _traces
  run "$kgate" compare "$a" "$slow" --arm baseline
  expect_exit 0
}

sets_of_traces_pair_by_position() {
  _traces
  run "$kgate" compare --baseline "$a" --candidate "$slow"
  expect_exit 1
  run "$kgate" compare --baseline "$a" "$b" --candidate "$slow"
  expect_refusal 64 "2 traces of the baseline and 1 of the candidate" "give as many of each"
  run "$kgate" compare "$a" "$b" --baseline "$a"
  expect_refusal 64 "given twice"
}

a_trace_against_itself_is_no_comparison() {
  _traces
  run "$kgate" compare "$a" "$a"
  expect_refusal 64 "identical traces"
  cp "$a" copy.db
  run "$kgate" compare "$a" copy.db
  expect_refusal 64 "identical traces"
}

times_of_the_virtual_gpu_cannot_be_limited() {
  _traces
  run "$kgate" compare "$a" "$b" --limit service.p99=5%
  expect_exit 5
  expect_stdout "the virtual GPU gives no times"
}

limits_are_read_strictly() {
  _traces
  run "$kgate" compare "$a" "$b" --limit kernel_time.p5=5%
  expect_refusal 64 "no metric 'kernel_time.p5'" "did you mean kernel_time.p50?"
  run "$kgate" compare "$a" "$b" --limit kernel_time.p50=5
  expect_refusal 64 "kernel_time.p50"
  run "$kgate" compare "$a" "$b" --limit kernel_time.p50
  expect_refusal 64 "no value"
  run "$kgate" compare "$a" "$b" --limit spill_bytes=5%
  expect_refusal 64 "no metric 'spill_bytes'"
}

what_is_no_trace_is_refused() {
  _traces
  run "$kgate" compare "$a"
  expect_refusal 64 "error: "
  run "$kgate" compare
  expect_refusal 64 "needs a trace of the baseline"
  run "$kgate" compare "$a" absent.db
  expect_refusal 65 "absent.db"
  run "$kgate" compare "$a" "$good"
  expect_refusal 65 "not a kgate trace"
}

another_workload_is_another_run() {
  _traces
  quick_contract 's|rows: \[1, 3\]|rows: [1, 5]|'
  check --warmup 1 --requests 4 -c quick.yaml "$good"
  expect_exit 0
  run "$kgate" compare "$a" out/trace.db
  expect_exit 5
  expect_stdout "different_run"
  expect_stdout "makes its inputs from --seed"
  run "$kgate" compare "$a" out/trace.db --across workload_sha256
  expect_exit 3
  expect_stdout "launch classes in the"
}

run_behaviours "$@"
