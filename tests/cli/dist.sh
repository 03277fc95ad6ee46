#!/usr/bin/env bash
# The relocatable tree: copied elsewhere it works with nothing but glibc, no CUDA toolkit, and no trace of where it was built.
. "$(dirname "$0")/lib.sh"

_tree() {  # leaves the tree, moved away from where it was made, in $moved
  moved=$work/moved/kgate
  [ -d "$moved" ] && return
  run bash "$KGATE_SOURCE/scripts/make-dist.sh" "$KGATE_BIN/.." "$work/made/kgate"
  expect_exit 0
  mv "$work/made" "$work/moved"
}

# COMMAND in an environment without CUDA on PATH or anything of the build.
_bare() { run env -i PATH=/usr/bin:/bin HOME="$PWD" TMPDIR="${TMPDIR:-/tmp}" "$@"; }

a_moved_tree_judges_candidates() {
  _tree
  cd "$moved" || exit 1
  _bare bin/kgate check --device virtual --scope numeric --out "$work/out" -c tests/corpus/softmax_triton.yaml tests/corpus/triton/softmax_triton.ptx
  expect_exit 0
  _bare bin/kgate check --device virtual --out "$work/out" -c tests/corpus/softmax_triton.yaml tests/corpus/triton/softmax_triton.ptx
  expect_exit 0
  expect_stdout "tier T"
  _bare bin/kgate query --trace "$work/out/trace.db" "SELECT COUNT(*) > 0 FROM kernel_launches"
  expect_stdout 1
  _bare bin/kgate check --device virtual --scope numeric --out "$work/out" -c tests/corpus/softmax_triton.yaml \
    tests/corpus/triton/softmax_unmasked_triton.ptx
  expect_exit 6
}

without_a_compiler_the_verdict_says_so() {
  _tree
  cd "$moved" || exit 1
  _bare KGATE_PTXAS=/absent KGATE_NVJITLINK=/absent bin/kgate check --device virtual --scope numeric --out "$work/out" \
    -c tests/corpus/softmax_triton.yaml tests/corpus/triton/softmax_triton.ptx
  expect_exit 0
  grep -q 'spill_bytes  *-  *-  .*shown (not measured)' stdout || fail "unmeasured spills to be shown as such"
}

the_tree_needs_only_glibc() {
  _tree
  local file
  for file in "$moved"/bin/* "$moved"/lib/*; do
    ldd "$file" >needs 2>/dev/null || continue
    ! grep '=>' needs | grep -vE 'lib(c|m|dl|pthread|rt)\.so' | grep -q . || fail "glibc alone under $file: $(cat needs)"
    ! readelf -d "$file" 2>/dev/null | grep -qE 'R(UN)?PATH' || fail "no search path in $file"
  done
}

the_ci_step_is_part_of_the_tree() {
  _tree
  _bare PATH="$moved/bin:/usr/bin:/bin" KGATE_IN_CANDIDATE="$moved/tests/corpus/softmax_good.ptx" KGATE_IN_DEVICE=virtual KGATE_IN_SCOPE=static \
    KGATE_IN_CONTRACT="$moved/tests/corpus/softmax.yaml" bash "$moved/scripts/ci-step.sh"
  expect_exit 0
  expect_file kgate-out/verdict.json
}

the_tree_works_from_another_folder_and_through_a_link() {
  _tree
  ln -s "$moved/bin/kgate" kgate
  _bare ./kgate doctor
  expect_exit 0
  expect_stdout "$moved/bin/kgate-worker"
}

run_behaviours "$@"
