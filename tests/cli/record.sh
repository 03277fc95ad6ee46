#!/usr/bin/env bash
# kgate record and kgate init, on the virtual GPU: from an application to a workload to a contract. What is recorded of which call is the
# business of tests/record and tests/workload.
. "$(dirname "$0")/lib.sh"

sample=$KGATE_BIN/trace_sample
vgpu=$KGATE_BIN/../lib/libkgate_vgpu.so

_record() {  # OPTIONS... -- ARGUMENTS of the sample
  local options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  run "$kgate" record --cuda-library "$vgpu" "${options[@]}" -- "$sample" "$@"
}

an_application_becomes_a_workload() {
  _record --no-replay --out app.kgw -- child
  expect_exit 0
  expect_no_stderr
  expect_stdout "recorded app.kgw"
  expect_stdout "add_one"
  expect_stdout "next     kgate check --workload app.kgw --kernel add_one CANDIDATE"
  run "$kgate" inspect app.kgw
  expect_exit 0
  expect_stdout "add_one"
  expect_stdout "recorded  on kgate virtual GPU"
}

two_recordings_of_one_run_hold_the_same_launches() {
  _record --out a.kgw -- launches 7
  expect_exit 0
  expect_equal "$(grep add_one stdout | head -n 1 | tr -s ' ' | cut -d' ' -f3)" 7
}

the_name_of_the_program_is_the_default() {
  _record -- child
  expect_exit 0
  expect_file trace_sample.kgw
}

requests_end_the_slice() {
  _record --requests 1 --out app.kgw -- plain
  expect_exit 5  # two processes: the application starts another one
  expect_stderr "2 processes launched kernels"
  expect_stderr "--process N"
  _record --requests 1 --process 1 --out app.kgw -- plain
  expect_exit 0
  expect_stdout " requests on "  # more than one: what other threads did meanwhile belongs to requests of their own
}

a_kernel_that_is_not_launched_is_refused_with_the_nearest_name() {
  _record --kernel add_onne --out app.kgw -- child
  expect_refusal 5 "the slice launches no kernel 'add_onne'" "did you mean 'add_one'?"
  expect_no_file app.kgw
}

the_exit_of_the_application_is_said_and_its_recording_stays() {
  _record --out app.kgw -- status 3
  expect_exit 5
  expect_stderr "the application ended with exit 3"
  expect_stderr "its recording is whole: app.kgw"
  run "$kgate" inspect app.kgw
  expect_exit 0
}

an_application_that_leaves_early_is_recorded_up_to_there() {
  _record --out app.kgw -- _exit  # at once: how much is written by then is a matter of luck
  expect_exit 5
  _record --out crash.kgw -- crash
  expect_exit 5
  expect_stderr "SIGABRT"
}

an_application_without_cuda_or_without_a_launch_is_refused() {
  _record --out app.kgw -- none
  expect_refusal 5 "no CUDA call was seen" "does it use an NVIDIA GPU"
  run "$kgate" record --out app.kgw -- false
  expect_refusal 5 "no CUDA call was seen (the application ended with exit 1)"
  run "$kgate" record --out app.kgw --cuda-library "$vgpu" --from 3600s -- "$sample" child
  expect_refusal 5 "the slice to record never began"
  expect_no_file app.kgw
}

the_application_keeps_its_streams() {
  run bash -c "echo from stdin | '$kgate' record --out app.kgw -- bash -c 'cat; echo to stderr >&2; exit 7'"
  expect_exit 5
  expect_equal "$(cat stdout)" "from stdin"
  expect_equal "$(head -n 1 stderr)" "to stderr"
}

a_signal_is_passed_on_and_the_recording_is_written() {
  : >ready
  "$kgate" record --out app.kgw --cuda-library "$vgpu" -- "$sample" wait >ready 2>errors &
  local pid=$! i
  for ((i = 0; i < 300; i++)); do grep -q ready ready && break; sleep 0.1; done
  grep -q ready ready || fail "the application to be ready"
  kill -TERM "$pid"
  ran="kill -TERM kgate record"
  wait "$pid"
  code=$?
  expect_exit 130
  expect_file app.kgw
}

addresses_are_not_randomised() {
  run "$kgate" record --out app.kgw -- bash -c 'cat /proc/self/personality'
  expect_exit 5
  expect_stdout 00040000
}

what_cannot_be_run_is_refused() {
  run "$kgate" record --out app.kgw -- ./absent
  expect_refusal 64 "./absent: cannot run it: No such file" "give the program"
  run "$kgate" record
  expect_refusal 64 "no program to record" "give the program"
  run "$kgate" record --for 5 -- "$sample" child
  expect_refusal 64 "--for: "
  run "$kgate" record --max-size 1x -- "$sample" child
  expect_refusal 64 "--max-size: "
  run env CUDA_INJECTION64_PATH=/opt/other.so "$kgate" record -- "$sample" child
  expect_refusal 64 "CUDA_INJECTION64_PATH: is set already: /opt/other.so"
  run env NVTX_INJECTION64_PATH=/opt/other.so "$kgate" record -- "$sample" child
  expect_refusal 64 "NVTX_INJECTION64_PATH: is set already: /opt/other.so"
}

a_place_that_cannot_be_written_is_told_before_the_application_runs() {
  run "$kgate" record --out nowhere/app.kgw -- touch ran
  expect_refusal 5 "cannot write the recording"
  expect_no_file ran
}

more_memory_than_allowed_is_refused() {
  _record --max-size 16B --out app.kgw -- child
  expect_refusal 5 "--max-size"
  expect_no_file app.kgw
}

a_contract_is_made_from_a_recording() {
  _record --out app.kgw -- child
  expect_exit 0
  run "$kgate" init app.kgw --kernel add_one --out contract.yaml
  expect_exit 0
  expect_no_stdout
  expect_text contract.yaml "role: inout"
  expect_text contract.yaml "# confirm"
  expect_text contract.yaml "workload: app.kgw"
}

a_contract_is_made_from_any_workload() {
  mkdir sub
  ln -s "$KGATE_SOURCE/workloads" workloads
  run "$kgate" init workloads/decode.yaml --kernel "softmax*" --out sub/contract.yaml
  expect_exit 0
  expect_text sub/contract.yaml "{name: p0, tensor: f32, role: out}"
  expect_text sub/contract.yaml "{name: p1, tensor: f32, role: in}"
  expect_text sub/contract.yaml "{name: p2, scalar: i32}"
  run "$kgate" check --scope static --device virtual --out out -c sub/contract.yaml "$good"
  expect_exit 0
  # What it proposes as comments is a contract as well.
  sed -e '/^# replace:/,$s/^# \{0,1\}//' -e '/^# limits:/,/^#   alloc_count/s/^# //' sub/contract.yaml >sub/whole.yaml
  expect_text sub/whole.yaml "    let: {p0: ptr@0, p1: ptr@8, p2: i32@16, grid_x: grid.x"
  run "$kgate" check --scope static --device virtual --out out -c sub/whole.yaml "$good"
  expect_stdout "unmeasurable"  # its limits on time need a GPU
}

an_existing_contract_is_kept_and_a_wrong_kernel_is_refused() {
  echo mine >contract.yaml
  run "$kgate" init "$KGATE_SOURCE/workloads/decode.yaml" --kernel softmax_rows --out contract.yaml
  expect_refusal 64 "contract.yaml: is there already"
  expect_equal "$(cat contract.yaml)" mine
  run "$kgate" init "$KGATE_SOURCE/workloads/decode.yaml" --kernel softmax_row
  expect_refusal 64 "launches no kernel 'softmax_row'" "did you mean 'softmax_rows'?"
  run "$kgate" init "$KGATE_SOURCE/workloads/decode.yaml" --kernel "*"
  expect_refusal 64 "'*' means 9 kernels"
}

run_behaviours "$@"
