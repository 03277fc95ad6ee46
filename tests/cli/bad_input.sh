#!/usr/bin/env bash
# What the program says to input, rights and machines that are not fit: an exit code, one error that names the place, a hint.
. "$(dirname "$0")/lib.sh"

# ---- candidates

a_missing_candidate_is_refused() {
  quick_contract
  check -c quick.yaml absent.ptx
  expect_refusal 65 "absent.ptx: cannot open"
}

a_folder_is_not_a_candidate() {
  quick_contract
  check -c quick.yaml .
  expect_refusal 65 "is a directory"
}

an_empty_file_is_refused() {
  quick_contract
  : >empty.ptx
  check -c quick.yaml empty.ptx
  expect_refusal 65 "empty.ptx"
}

an_unreadable_candidate_is_refused() {
  quick_contract
  cp "$good" mine.ptx
  chmod 000 mine.ptx
  chmod 777 .
  run_as_nobody "$kgate" check --device virtual --out out -c quick.yaml mine.ptx
  expect_refusal 65 "Permission denied"
}

truncated_ptx_is_broken_with_its_line() {
  quick_contract
  head -c 2500 "$good" >cut.ptx
  check -c quick.yaml cut.ptx
  expect_exit 6
  expect_stdout "BROKEN  cut.ptx: compile: "
}

random_bytes_are_refused_whatever_the_name() {
  quick_contract
  head -c 4096 /dev/urandom >noise
  local name
  for name in noise.ptx noise.cubin noise.cu noise; do
    [ -e $name ] || cp noise $name
    check -c quick.yaml $name
    expect_refusal 65 "$name"
  done
}

a_truncated_cubin_is_refused() {
  quick_contract
  local bytes
  for bytes in 3 40 64 600 4000; do
    head -c $bytes "$corpus/softmax_good.sm_90.cubin" >cut.cubin
    check -c quick.yaml cut.cubin
    expect_refusal 65 "cut.cubin"
  done
}

a_kernel_for_another_maker_is_an_unsupported_target() {
  quick_contract
  check -c quick.yaml "$corpus/bad/amd.hsaco"
  expect_refusal 65 "unsupported target: AMD GPU code (HSACO)" "kgate judges kernels for NVIDIA GPUs"
}

an_entry_that_does_not_exist_is_refused_with_the_nearest() {
  quick_contract
  check -c quick.yaml --kernel softmax_row "$good"
  expect_refusal 65 "no kernel 'softmax_row'; there is softmax_rows" "did you mean 'softmax_rows'?"
}

another_number_of_parameters_is_refused_before_it_runs() {
  quick_contract
  check -c quick.yaml "$corpus/softmax_params.ptx"
  expect_exit 65
  expect_stdout "REFUSED  softmax_params.ptx: param_mismatch"
  expect_stdout "has 4 parameters"
  expect_text out/verdict.json '"id": "param_mismatch"'
  expect_no_file out/trace.db
}

a_hostile_file_name_is_data() {
  quick_contract
  local name=$'a\e[31m$(touch owned)`touch owned`\n::error::b.ptx'
  cp "$good" "$name"
  check --scope static -c quick.yaml "$name"
  expect_exit 0
  expect_file out/verdict.json
  expect_no_file owned
  ! grep -q $'\e' stdout || fail "no escape sequence out of a file name"
  ! grep -q '^::error::' stdout || fail "no line of its own out of a file name"
}

# ---- contracts

all_problems_of_a_contract_come_at_once_with_their_places() {
  quick_contract 's/role: in}/role: input}/' 's/^kernel:/kernal:/' 's/cols <= 4096/cols <= /' '$a baseline: again.ptx' \
    '$a limits: {spill_bytes: {max: lots}}'
  check -c quick.yaml "$good"
  expect_refusal 65 "quick.yaml:"
  expect_equal "$(grep -c '^\(error: \)\?quick.yaml:[0-9]*:[0-9]*: ' stderr)" "$(grep -vc '^hint' stderr)"
  expect_stderr "kernal: unknown key"
  expect_stderr "did you mean 'kernel'"
  expect_stderr "quick.yaml:6:"
  expect_stderr "input"
  expect_stderr "baseline"
  expect_stderr "lots"
  [ "$(grep -c '^\(error: \)\?quick.yaml:' stderr)" -ge 5 ] || fail "at least five problems"
}

a_contract_that_is_no_yaml_is_refused() {
  local text
  for text in '' '[1, 2' 'kgate: [' $'\xff\xfe' 'kgate: 1' '&a [*a]' $'kgate: 1\n\tkernel: x'; do
    printf %s "$text" >broken.yaml
    check -c broken.yaml "$good"
    expect_refusal 65 "broken.yaml"
  done
}

a_missing_contract_is_refused() {
  check -c absent.yaml "$good"
  expect_refusal 65 "absent.yaml: cannot open"
}

a_missing_baseline_reference_or_workload_is_refused() {
  local key
  for key in baseline workload; do
    quick_contract "/^$key:/d" "\$a $key: absent.ptx"
    check -c quick.yaml "$good"
    expect_refusal 65 "absent.ptx"
  done
  quick_contract 's|^reference:.*|reference: {cuda: absent.ptx, entry: softmax_ref}|'
  check -c quick.yaml "$good"
  expect_refusal 65 "absent.ptx"
  quick_contract 's|entry: softmax_ref|entry: softmax_reff|'
  check -c quick.yaml "$good"
  expect_refusal 65 "softmax_reff" "did you mean 'softmax_ref'?"
}

a_shape_larger_than_the_memory_is_the_environments_fault() {
  quick_contract 's|rows: \[1, 3\], cols: .*}|rows: 4000000, cols: 4096}|'
  check -c quick.yaml "$good"
  expect_exit 5
}

a_baseline_or_reference_that_fails_is_not_the_candidates_fault() {
  quick_contract
  check -c quick.yaml --baseline "$corpus/softmax_hang.ptx" "$good"
  expect_refusal 65 "softmax_hang.ptx: the baseline itself fails" "mend it first"
  check -c quick.yaml --baseline "$corpus/softmax_unassembled.ptx" "$good"
  expect_refusal 65 "softmax_unassembled.ptx"
  quick_contract "s|^reference:.*|reference: {cuda: $corpus/softmax_hang.ptx, entry: softmax_rows}|"
  check -c quick.yaml "$good"
  expect_refusal 65 "softmax_hang.ptx: the reference itself fails"
}

# ---- workloads

a_broken_workload_is_refused() {
  quick_contract
  head -c 4096 /dev/urandom >noise.kgw
  check -c quick.yaml --workload noise.kgw "$good"
  expect_refusal 65 "noise.kgw"
  printf 'SQLite format 3\0' >head.kgw
  check -c quick.yaml --workload head.kgw "$good"
  expect_refusal 65 "head.kgw"
  : >empty.kgw
  check -c quick.yaml --workload empty.kgw "$good"
  expect_refusal 65 "empty.kgw"
  run "$kgate" inspect noise.kgw
  expect_refusal 65 "noise.kgw"
}

a_workload_without_the_kernel_is_refused() {
  quick_contract 's/^kernel: softmax_rows/kernel: softmax_rowz/'
  check -c quick.yaml --kernel softmax_rows --workload "$KGATE_SOURCE/workloads/tiny.yaml" "$good"
  expect_exit 65
}

# ---- limits

a_limit_on_time_is_unmeasurable_on_the_virtual_gpu() {
  quick_contract '$a limits: {kernel_time.p99: {max_regression: 5%}}'
  check -c quick.yaml "$good"
  expect_exit 5
  expect_stdout "unmeasurable: the virtual GPU cannot measure kernel_time.p99"
  expect_no_file out/trace.db
  check --scope numeric -c quick.yaml "$good"
  expect_exit 0
}

a_relative_limit_needs_a_baseline() {
  quick_contract '/^baseline:/d' '$a limits: {spill_bytes: {max_regression: 5%}}'
  check -c quick.yaml "$good"
  expect_exit 4
  expect_stdout "relative to a baseline, and there is none"
  quick_contract '/^baseline:/d' '$a limits: {spill_bytes: {max: 0}}'
  check -c quick.yaml "$good"
  expect_exit 0
}

# ---- machine and rights

a_gpu_that_is_not_there_is_named_with_a_way_out() {
  "$kgate" check --device gpu --scope static -c "$corpus/softmax.yaml" "$good" >/dev/null 2>&1
  [ $? -eq 5 ] || exit 77  # there is a GPU
  quick_contract
  run "$kgate" check --device gpu --out out -c quick.yaml "$good"
  expect_refusal 5 "--device gpu: " "install or repair the NVIDIA driver"
  expect_no_file out/verdict.json
}

an_unknown_device_is_refused_with_the_choice() {
  quick_contract
  run "$kgate" check --device tpu --out out -c quick.yaml "$good"
  expect_no_stdout
  expect_stderr "'tpu' is not auto, gpu, gpu:N or virtual"
  expect_exit 64
}

a_required_tier_that_is_not_reached_is_exit_5() {
  quick_contract
  chmod 777 .
  run_as_nobody "$kgate" check --device virtual --require-tier T0 --out out -c quick.yaml "$good"
  expect_exit 5
  expect_stdout "tier T0 was required, and T2 was reached"
  expect_no_file out/trace.db
  run_as_nobody "$kgate" check --device virtual --out out -c quick.yaml "$good"
  expect_exit 0
  expect_stdout "tier T2"
}

an_output_folder_that_cannot_be_written_is_exit_5() {
  quick_contract
  : >file
  run "$kgate" check --device virtual --out file -c quick.yaml "$good"
  expect_refusal 5 "cannot write into the output folder" "name another folder with --out"
  run "$kgate" check --device virtual --out file/below -c quick.yaml "$good"
  expect_refusal 5 "cannot write into the output folder"
  run "$kgate" check --device virtual --scope static --markdown absent/x.md --out out -c quick.yaml "$good"
  expect_refusal 5 "absent/x.md"
}

a_read_only_output_folder_is_exit_5() {
  quick_contract
  mkdir out
  run_as_nobody "$kgate" check --device virtual --out out -c quick.yaml "$good"
  expect_refusal 5 "cannot write into the output folder" "name another folder with --out"
}

# ---- usage

what_would_be_ignored_is_refused() {
  run "$kgate" check --manifest "$corpus/manifest.yaml" --scope static --out out
  expect_exit 64
  run "$kgate" check --only 'x*' --out out -c quick.yaml "$good"
  expect_exit 64
  run "$kgate" check --seed -1 --out out -c quick.yaml "$good"
  expect_exit 64
  run "$kgate" check --requests 0 --out out -c quick.yaml "$good"
  expect_exit 64
}

results_that_cannot_be_written_are_no_pass() {
  quick_contract
  code=0
  "$kgate" check --device virtual --scope static --json --out out -c quick.yaml "$good" >/dev/full 2>err || code=$?
  [ "$code" -eq 5 ] || fail "expected exit 5, got $code"
}

a_fifo_is_refused_at_once() {
  quick_contract
  mkfifo pipe
  run timeout 10 "$kgate" inspect pipe
  expect_exit 65
}

an_earlier_verdict_does_not_outlive_a_refusal() {
  quick_contract
  run "$kgate" check --device virtual --scope static --out out -c quick.yaml "$good"
  expect_exit 0
  run "$kgate" check --device virtual --scope static --out out -c absent.yaml "$good"
  expect_exit 65
  expect_no_file out/verdict.json
}

usage_errors_are_exit_64() {
  local arguments
  for arguments in "" "check" "check $good" "check -c x.yaml" "check --nope" "check --scope all a.ptx" "check --seed minus a.ptx" \
    "check --max-pairs 5 a.ptx" "check --require-tier T1 a.ptx" "inspect" "query" "doctor extra" "--color red doctor" "check a b"; do
    run "$kgate" $arguments
    expect_refusal 64 "error: " "kgate"
  done
}

planned_verbs_say_that_they_are_not_there() {
  local verb
  for verb in baseline; do
    run "$kgate" $verb
    expect_refusal 64 "'$verb' is not part of this version" "kgate --help lists what is"
  done
}

an_unknown_verb_is_a_usage_error_with_a_hint() {
  run "$kgate" frobnicate
  expect_refusal 64 "error: " "kgate --help"
}

help_and_version_are_results() {
  run "$kgate" --help
  expect_exit 0
  expect_no_stderr
  local word
  for word in check inspect query doctor "130 interrupted"; do expect_stdout "$word"; done
  run "$kgate" --version
  expect_exit 0
  expect_stdout "kgate "
  for word in check inspect query doctor; do
    run "$kgate" $word --help
    expect_exit 0
    expect_no_stderr
  done
}

a_bad_setting_of_the_virtual_gpu_is_named() {
  quick_contract
  run env KGATE_VGPU_MEMORY=junk "$kgate" check --device virtual --out out -c quick.yaml "$good"
  expect_refusal 5 "KGATE_VGPU_MEMORY: 'junk'"
  run env KGATE_VGPU_MEMORY=4K "$kgate" check --device virtual --out out -c quick.yaml "$good"
  expect_refusal 5 "and kgate virtual GPU has 4.00 KiB free" "use a smaller shape"
}

a_temporary_folder_that_is_not_there_is_exit_5() {
  quick_contract
  run env TMPDIR=/absent "$kgate" check --device virtual --out out -c quick.yaml "$good"
  expect_refusal 5 "/absent" "set TMPDIR to a folder that you can write"
}

doctor_says_what_works_here() {
  run "$kgate" doctor
  expect_exit 0
  expect_stdout "virtual gpu"
  expect_stdout "tracing tier T"
  run "$kgate" doctor --json
  expect_exit 0
  expect_stdout '"usable": true'
  run env KGATE_VGPU_LIB=/absent.so KGATE_CUDA_LIB=/absent.so "$kgate" doctor
  expect_exit 5
  expect_stdout "hint: "
}

run_behaviours "$@"
