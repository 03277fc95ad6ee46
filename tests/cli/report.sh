#!/usr/bin/env bash
# kgate report: what is in a trace, the verdict that check stored in it, a timeline.
. "$(dirname "$0")/lib.sh"

# One trace for all: the softmax contract in small, two pairs of rounds.
_trace() {
  trace=$work/trace.db
  [ -s "$trace" ] && return
  quick_contract
  check --warmup 1 --requests 4 -c quick.yaml "$good"
  expect_exit 0
  cp out/trace.db "$trace"
  cp out/verdict.json "$work/"
}

a_check_stores_its_verdict_in_its_trace() {
  _trace
  run "$kgate" report "$trace"
  expect_exit 0
  expect_no_stderr
  expect_equal "$(head -n 1 stdout)" "$(sed -n 's/^  "headline": "\(.*\)",$/\1/p' "$work/verdict.json")"
  expect_stdout "none past its limit"
  expect_stdout "softmax_rows"
  run "$kgate" report "$trace" --json
  expect_exit 0
  expect_stdout '"verdict": "pass"'
  expect_stdout '"verdicts": ['
}

a_regression_is_reported_without_judging_again() {
  quick_contract
  check --warmup 1 --requests 4 -c quick.yaml "$corpus/softmax_uncoalesced.ptx"
  expect_exit 1
  run "$kgate" report out/trace.db --markdown report.md
  expect_exit 0
  expect_stdout "FAIL"
  expect_text report.md "### ❌ kgate: FAIL"
  expect_text report.md "| kernel | arm |"
}

the_default_trace_is_the_one_that_check_writes() {
  _trace
  run "$kgate" report
  expect_refusal 65 "kgate-out/trace.db"
  mkdir kgate-out
  cp "$trace" kgate-out/
  run "$kgate" report
  expect_exit 0
}

a_timeline_is_json_with_an_arrow_for_each_launch() {
  _trace
  run "$kgate" report "$trace" --perfetto t.json
  expect_exit 0
  expect_no_stderr
  expect_stdout "arrows from launch to kernel"
  command -v python3 >/dev/null || return 0
  python3 - <<'PY' || fail "a timeline that holds together"
import json
events = json.load(open("t.json"))["traceEvents"]
slices = [e for e in events if e["ph"] == "X"]
kernels = {(e["pid"], e["tid"], e["ts"]) for e in slices if e["cat"] == "kernel"}
launches = {(e["pid"], e["tid"], e["ts"]) for e in slices if e["cat"] == "launch"}
starts = {e["id"]: (e["pid"], e["tid"], e["ts"]) for e in events if e["ph"] == "s"}
ends = {e["id"]: (e["pid"], e["tid"], e["ts"]) for e in events if e["ph"] == "f"}
assert kernels and starts and starts.keys() == ends.keys()
assert set(starts.values()) <= launches and set(ends.values()) <= kernels
names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
assert {"baseline (arm 0)", "candidate (arm 1)"} <= set(names.values()), names
assert len(ends) == sum(e["cat"] == "kernel" and names[e["pid"]] != "outside rounds" for e in slices)  # its canary
assert sum(e["cat"] == "round" for e in slices) == 4
PY
}

a_timeline_may_be_cut() {
  _trace
  run "$kgate" report "$trace" --perfetto all.json
  run "$kgate" report "$trace" --perfetto one.json --round 1
  expect_exit 0
  [ "$(wc -c <one.json)" -lt "$(wc -c <all.json)" ] || fail "a smaller file"
  run "$kgate" report "$trace" --perfetto none.json --round 99
  expect_exit 0
  expect_stderr "the timeline is empty"
  run "$kgate" report "$trace" --perfetto some.json --from 0ns --for 1us
  expect_exit 0
}

what_makes_no_sense_is_a_usage_error() {
  _trace
  run "$kgate" report "$trace" --round 1
  expect_refusal 64 "cut a timeline" "say --perfetto"
  run "$kgate" report "$trace" --perfetto t.json --from 5
  expect_refusal 64 "--from"
  run "$kgate" report "$trace" --perfetto absent/t.json
  expect_refusal 5 "cannot write the timeline"
  run "$kgate" report "$good"
  expect_refusal 65 "not a kgate trace"
}

run_behaviours "$@"
