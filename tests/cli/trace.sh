#!/usr/bin/env bash
# kgate trace of a small application on the virtual GPU: streams, signals, refusals. Its numbers are tests/trace_app's business.
. "$(dirname "$0")/lib.sh"

sample=$KGATE_BIN/trace_sample
vgpu=$KGATE_BIN/../lib/libkgate_vgpu.so

_trace() {  # ARGUMENTS of the sample
  run "$kgate" trace --out trace.db --cuda-library "$vgpu" -- "$sample" "$@"
}

a_trace_answers_the_statement_of_the_documentation() {
  _trace child
  expect_exit 0
  expect_no_stderr
  run "$kgate" query --trace trace.db "SELECT kernel_name, COUNT(*) AS launches, AVG(duration_ns)/1e3 AS avg_us,
    p99(duration_ns)/1e3 AS p99_us FROM kernel_launches GROUP BY kernel_name;"
  expect_exit 0
  expect_equal "$(sed -n 2p stdout | tr -s ' ' | cut -d' ' -f1,2)" "add_one 5"
  run "$kgate" inspect trace.db
  expect_exit 0
  expect_stdout "trace, tier T"
}

the_application_keeps_its_streams() {
  run bash -c "echo from stdin | '$kgate' trace --out trace.db -- bash -c 'cat; echo to stderr >&2; exit 7'"
  expect_exit 5
  expect_equal "$(cat stdout)" "from stdin"
  expect_equal "$(head -n 1 stderr)" "to stderr"
  expect_stderr "no CUDA call was seen (the application ended with exit 7)"
}

a_shell_around_the_application_is_no_obstacle() {
  run "$kgate" trace --out trace.db --cuda-library "$vgpu" -- bash -c "'$sample' child; '$sample' child; true"
  expect_exit 0
  run "$kgate" query --trace trace.db "SELECT COUNT(*) FROM kernel_launches"
  expect_equal "$(tail -n 1 stdout)" 10
}

a_signal_is_passed_on_and_the_trace_is_written() {
  : >ready
  "$kgate" trace --out trace.db --cuda-library "$vgpu" -- "$sample" wait >ready 2>errors &
  local pid=$! i
  for ((i = 0; i < 300; i++)); do grep -q ready ready && break; sleep 0.1; done
  grep -q ready ready || fail "the application to be ready"
  sleep 0.3
  kill -TERM "$pid"
  ran="kill -TERM kgate trace"
  wait "$pid"
  code=$?
  expect_exit 130
  expect_file trace.db
  run "$kgate" query --trace trace.db "SELECT COUNT(*) FROM kernel_launches"
  expect_equal "$(tail -n 1 stdout)" 5
}

what_cannot_be_run_is_refused() {
  run "$kgate" trace --out trace.db -- ./absent
  expect_refusal 64 "./absent: cannot run it: No such file" "give the program"
  expect_no_file trace.db
  run "$kgate" trace --out trace.db --cuda-library absent.so -- "$sample" child
  expect_refusal 64 "absent.so"
  run "$kgate" trace
  expect_refusal 64 "no program to trace" "give the program"
  run "$kgate" trace --workload x.kgw
  expect_refusal 64 "x.kgw: tracing a workload alone is not part of this version"
  run env CUDA_INJECTION64_PATH=/opt/other.so "$kgate" trace -- "$sample" child
  expect_refusal 64 "CUDA_INJECTION64_PATH: is set already: /opt/other.so"
}

a_place_that_cannot_be_written_is_told() {
  run "$kgate" trace --out absent/folder/trace.db --cuda-library "$vgpu" -- "$sample" child
  expect_refusal 5 "cannot write the trace"
}

a_trace_that_cannot_be_written_is_told_before_the_application_runs() {
  run "$kgate" trace --out nowhere/t.db -- touch ran
  expect_exit 5
  [ ! -e ran ] || fail "the application not to run"
}

without_rights_the_tier_is_lower_and_said() {
  mkdir -m 777 x
  run_as_nobody "$kgate" trace --out "$PWD/x/trace.db" --cuda-library "$vgpu" -- "$sample" child
  expect_exit 0
  expect_stdout "tier T2"
  run_as_nobody "$kgate" trace --require-tier T0 --out "$PWD/x/t0.db" --cuda-library "$vgpu" -- "$sample" child
  expect_refusal 5 "tier T0 is required"
}

run_behaviours "$@"
