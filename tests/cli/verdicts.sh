#!/usr/bin/env bash
# Every verdict that a candidate can get here, and what each leaves behind.
. "$(dirname "$0")/lib.sh"

_expect_files() {  # NAME... that exist; the other outputs do not
  local file
  for file in verdict.json verdict.md compile.log trace.db; do
    case " $* " in *" $file "*) expect_file out/$file ;; *) expect_no_file out/$file ;; esac
  done
  expect_no_file out/trace.db.partial
}

_expect_verdict() {  # exit code, word of the headline, deciding id
  expect_exit "$1"
  expect_no_stderr
  expect_stdout "$2  "
  expect_text out/verdict.json "\"exit_code\": $1,"
  expect_text out/verdict.json "\"headline\": \"$2  "
  expect_text out/verdict.json "\"deciding\": \"$3"
}

a_good_candidate_passes_and_leaves_all_files() {
  check -c "$corpus/softmax.yaml" "$good"
  _expect_verdict 0 PASS ""
  _expect_files verdict.json verdict.md compile.log trace.db
  expect_stdout "limits hold"
  expect_stdout "virtual.instructions"
  expect_stdout "repeat: kgate check --device virtual --out out"
  expect_text out/verdict.md "### ✅ kgate: PASS"
  expect_text out/verdict.json "$(sha256sum "$good" | cut -d' ' -f1)"
}

a_slower_candidate_fails_by_its_counts() {
  quick_contract
  check -c quick.yaml "$corpus/softmax_slow.ptx"
  _expect_verdict 1 FAIL virtual.
  _expect_files verdict.json verdict.md compile.log trace.db
  expect_text out/verdict.md "### ❌ kgate: FAIL"
}

wrong_numbers_are_broken_and_never_timed() {
  quick_contract
  check -c quick.yaml "$corpus/softmax_tail.ptx"
  _expect_verdict 6 BROKEN wrong_numbers
  _expect_files verdict.json verdict.md compile.log
}

the_same_code_passes_without_a_replay() {
  quick_contract
  check -c quick.yaml "$KGATE_SOURCE/workloads/kernels/softmax.ptx"
  _expect_verdict 0 PASS ""
  expect_text out/verdict.json '"id": "identical_code"'
  _expect_files verdict.json verdict.md compile.log
}

what_does_not_assemble_is_broken_before_anything_runs() {
  quick_contract
  check -c quick.yaml "$corpus/softmax_unassembled.ptx"
  _expect_verdict 6 BROKEN compile
  _expect_files verdict.json verdict.md compile.log
  expect_stdout "line 79"
}

scope_numeric_compares_and_does_not_replay() {
  quick_contract
  check --scope numeric -c quick.yaml "$corpus/softmax_slow.ptx"
  _expect_verdict 0 PASS ""
  expect_stdout "numbers agree in "
  _expect_files verdict.json verdict.md compile.log
  check --scope numeric -c quick.yaml "$corpus/softmax_tail.ptx"
  _expect_verdict 6 BROKEN wrong_numbers
}

scope_static_executes_nothing() {
  quick_contract
  check --scope static -c quick.yaml "$corpus/softmax_tail.ptx"
  _expect_verdict 0 PASS ""
  expect_stdout "limits hold"
  expect_no_text stdout "numbers agree"
  check --scope static -c quick.yaml "$corpus/softmax_spill.ptx"
  _expect_verdict 1 FAIL spill_bytes
}

a_cubin_is_not_executed_by_the_virtual_gpu_and_never_passes() {
  quick_contract
  check -c quick.yaml "$corpus/softmax_good.sm_90.cubin"
  _expect_verdict 5 INCONCLUSIVE not_executed
}

an_earlier_verdict_does_not_survive_a_refused_candidate() {
  quick_contract
  check --scope static -c quick.yaml "$good"
  expect_exit 0
  expect_file out/verdict.json
  check --scope static -c quick.yaml absent.ptx
  expect_refusal 65 "absent.ptx"
  _expect_files
}

json_on_stdout_is_the_verdict_and_nothing_else() {
  quick_contract
  check --json -c quick.yaml "$good"
  expect_exit 0
  expect_no_stderr
  cmp -s stdout out/verdict.json || fail "stdout to be verdict.json"
  expect_equal "$(head -c 1 stdout)" "{"
  expect_equal "$(tail -n 1 stdout)" "}"
  ! command -v python3 >/dev/null || python3 -m json.tool stdout >/dev/null || fail "valid JSON"
  expect_stdout '"schema_version": 1'
  check --json -c quick.yaml "$corpus/softmax_tail.ptx"
  expect_exit 6
  cmp -s stdout out/verdict.json || fail "stdout to be verdict.json"
}

a_refusal_prints_no_json() {
  quick_contract
  check --json -c quick.yaml absent.ptx
  expect_refusal 65 "absent.ptx"
}

markdown_goes_to_a_second_file_on_request() {
  quick_contract
  check --scope static --markdown summary.md -c quick.yaml "$good"
  expect_exit 0
  cmp -s summary.md out/verdict.md || fail "both Markdown files to be equal"
}

colour_is_asked_for_or_absent() {
  quick_contract
  run "$kgate" --color always check --device virtual --scope static --out out -c quick.yaml "$good"
  expect_exit 0
  grep -q $'\033\[' stdout || fail "colour with --color always"
  run "$kgate" --color never check --device virtual --scope static --out out -c quick.yaml "$good"
  ! grep -q $'\033' stdout || fail "no colour with --color never"
  NO_COLOR=1 run "$kgate" check --device virtual --scope static --out out -c quick.yaml "$good"
  ! grep -q $'\033' stdout || fail "no colour with NO_COLOR"
  if command -v script >/dev/null; then
    NO_COLOR=1 run script -qec "'$kgate' check --device virtual --scope static --out out -c quick.yaml '$good'" /dev/null
    ! grep -q $'\033\[3[0-9]m' stdout || fail "no colour with NO_COLOR on a terminal"
  fi
}

quiet_keeps_results_and_errors() {
  quick_contract
  run "$kgate" --quiet check --device virtual --scope static --out out -c quick.yaml "$good"
  expect_exit 0
  expect_no_stderr
  expect_stdout "PASS"
  run "$kgate" --quiet check --device virtual --out out -c quick.yaml absent.ptx
  expect_refusal 65 "absent.ptx"
}

the_same_seed_repeats_the_verdict() {
  quick_contract
  check --json --seed 7 -c quick.yaml "$corpus/softmax_slow.ptx"
  expect_exit 1
  sed -e '/"seconds"/d' -e '/clock\|perturb\|"value"\|"note"/d' stdout >first
  check --json --seed 7 -c quick.yaml "$corpus/softmax_slow.ptx"
  expect_exit 1
  sed -e '/"seconds"/d' -e '/clock\|perturb\|"value"\|"note"/d' stdout >second
  cmp -s first second || fail "the same verdict: $(diff first second | head -20)"
  expect_text out/verdict.json '"seed": "7"'
}

another_binding_reaches_a_kernel_with_other_parameters() {
  sed -e "s|: \.\./\.\./|: $KGATE_SOURCE/|g" -e '/^workload:/d' -e 's|rows: \[1, 7, 64\], cols: .*}|rows: [5], cols: [31]}|' \
    "$corpus/softmax_warp4.yaml" >bound.yaml
  check -c bound.yaml "$corpus/softmax_warp4.ptx"
  _expect_verdict 0 PASS ""
}

a_manifest_scores_the_gate() {
  run "$kgate" check --manifest "$corpus/manifest.yaml" --device virtual --only 'bad-*' --out out
  expect_exit 0
  expect_stdout "score: 7 of 7 on kgate virtual GPU"
  quick_contract
  cat >wrong.yaml <<END
kgate_manifest: 1
entries:
  - {name: tail, candidate: $corpus/softmax_tail.ptx, contract: quick.yaml, expect: {virtual: {exit: 0}}}
  - {name: other, candidate: $corpus/softmax_tail.ptx, contract: quick.yaml, expect: {virtual: {skip: "not today"}}}
END
  run "$kgate" check --manifest wrong.yaml --device virtual --out out
  expect_exit 1
  expect_stdout "WRONG"
  expect_stdout "score: 0 of 1 on kgate virtual GPU (1 skipped)"
  run "$kgate" check --manifest wrong.yaml --device virtual --out out --json
  expect_exit 1
  expect_stdout '"state": "WRONG"'
  run "$kgate" check --manifest wrong.yaml --device virtual --out out --only 'nothing*'
  expect_exit 64
}

run_behaviours "$@"
