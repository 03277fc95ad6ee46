#!/usr/bin/env bash
# scripts/ci-step.sh and action.yml as GitHub and GitLab run them: kgate's exit code passes through, reports land where these systems
# look, and no input can become a command.
. "$(dirname "$0")/lib.sh"

step=$KGATE_SOURCE/scripts/ci-step.sh
action=$KGATE_SOURCE/action.yml

# _step VARIABLE=VALUE...: the step with a clean environment but for these.
_step() { run env -i PATH="$PATH" HOME="$PWD" TMPDIR="${TMPDIR:-/tmp}" KGATE_IN_PROGRAM="$kgate" KGATE_IN_DEVICE=virtual "$@" bash "$step"; }
_github() { _step GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY="$PWD/summary" GITHUB_OUTPUT="$PWD/outputs" "$@"; }

# Lines that GitHub would obey: those outside stop-commands. The guard is random.
_obeyed() {
  awk '/^::stop-commands::/ {stop = substr($0, 18); next} stop != "" {if ($0 == "::" stop "::") stop = ""; next} /^::/' stdout
}

# A stand-in for kgate that writes what a candidate might make it say, leaves a report and exits with $FAKE_EXIT.
_fake_kgate() {
  cat >fake <<'END'
#!/usr/bin/env bash
printf '%s\n' "$@" >arguments
echo "::error::from the candidate"
echo "::set-output name=verdict::pass"
out=kgate-out
while [ $# -gt 0 ]; do [ "$1" = --out ] && out=$2; shift; done
mkdir -p "$out"
[ -n "${FAKE_SILENT:-}" ] || echo "### report" >"$out/verdict.md"
printf 'no line end'
exit "${FAKE_EXIT:-0}"
END
  chmod +x fake
}

a_pass_on_github_writes_summary_and_outputs() {
  quick_contract
  _github KGATE_IN_CANDIDATE="$good" KGATE_IN_CONTRACT=quick.yaml KGATE_IN_SCOPE=static
  expect_exit 0
  cmp -s summary kgate-out/verdict.md || fail "the job summary to be verdict.md"
  expect_equal "$(cat outputs)" $'exit-code=0\nverdict=pass\nreport=kgate-out/verdict.json'
  expect_equal "$(_obeyed)" ""
}

a_broken_candidate_fails_the_step_with_an_annotation() {
  quick_contract
  _github KGATE_IN_CANDIDATE="$corpus/softmax_tail.ptx" KGATE_IN_CONTRACT=quick.yaml KGATE_IN_SCOPE=numeric
  expect_exit 6
  expect_text summary "BROKEN"
  expect_text outputs "exit-code=6"
  expect_text outputs "verdict=candidate broken"
  expect_equal "$(_obeyed)" "::error file=$corpus/softmax_tail.ptx,title=kgate::candidate broken (exit 6); the job summary has the details"
}

every_exit_code_passes_through() {
  _fake_kgate
  local code_and_word
  for code_and_word in "0 pass" "1 regression" "3 inconclusive" "4 no usable baseline" "5 environment unfit" "6 candidate broken" \
    "64 no verdict" "65 no verdict" "70 no verdict" "130 no verdict"; do
    : >outputs
    FAKE_EXIT=${code_and_word%% *}
    _github KGATE_IN_PROGRAM=./fake FAKE_EXIT="$FAKE_EXIT" KGATE_IN_CANDIDATE=a.ptx KGATE_IN_CONTRACT=c.yaml
    expect_exit "$FAKE_EXIT"
    expect_text outputs "exit-code=$FAKE_EXIT"
    expect_text outputs "verdict=${code_and_word#* }"
  done
}

reporting_never_changes_the_verdict() {
  _fake_kgate
  _step KGATE_IN_PROGRAM=./fake GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=/absent/summary GITHUB_OUTPUT=/absent/outputs \
    KGATE_IN_CANDIDATE=a.ptx KGATE_IN_CONTRACT=c.yaml
  expect_exit 0
  expect_stderr "warning: cannot write the job summary"
  expect_stderr "warning: cannot write the step's outputs"
  _step KGATE_IN_PROGRAM=./absent KGATE_IN_CANDIDATE=a.ptx KGATE_IN_CONTRACT=c.yaml
  expect_exit 127
}

a_stale_report_is_not_published() {
  _fake_kgate
  mkdir kgate-out
  echo old >kgate-out/verdict.md
  echo old >kgate-out/verdict.json
  _github KGATE_IN_PROGRAM=./fake FAKE_SILENT=1 FAKE_EXIT=65 KGATE_IN_CANDIDATE=a.ptx KGATE_IN_CONTRACT=c.yaml
  expect_exit 65
  expect_no_file summary
  expect_no_file kgate-out/verdict.json
}

what_the_program_prints_is_not_obeyed() {
  _fake_kgate
  _github KGATE_IN_PROGRAM=./fake KGATE_IN_CANDIDATE=a.ptx KGATE_IN_CONTRACT=c.yaml
  expect_exit 0
  expect_stdout "::error::from the candidate"
  expect_equal "$(_obeyed)" ""
  local first
  first=$(sed -n 's/^::stop-commands:://p' stdout)
  _github KGATE_IN_PROGRAM=./fake KGATE_IN_CANDIDATE=a.ptx KGATE_IN_CONTRACT=c.yaml
  [ "$first" != "$(sed -n 's/^::stop-commands:://p' stdout)" ] || fail "a new guard each time"
}

inputs_are_data() {
  _fake_kgate
  local name='a b"c'\''$(touch owned)`touch owned`;touch owned;&|::set-output name=x::y%0A.ptx'
  _github KGATE_IN_PROGRAM=./fake FAKE_EXIT=6 KGATE_IN_CANDIDATE="$name" KGATE_IN_CONTRACT='c $(touch owned).yaml' KGATE_IN_OUT='out $(touch owned)'
  expect_exit 6
  expect_no_file owned
  expect_equal "$(tail -n 1 arguments)" "$name"
  expect_equal "$(tail -n 3 arguments | head -n 1)" 'c $(touch owned).yaml'
  expect_file 'out $(touch owned)/verdict.md'
  expect_equal "$(_obeyed | wc -l)" 1
  expect_equal "$(_obeyed | cut -d' ' -f1)" "::error"
  ! _obeyed | sed 's/,title=kgate::.*//; s/^::error file=//' | grep -q '[:,]' || fail "no raw : or , in the property"
  _obeyed | grep -qF '%250A.ptx' || fail "a literal percent to be escaped"
}

a_candidate_that_looks_like_an_option_is_a_file() {
  quick_contract
  _step KGATE_IN_CANDIDATE=--help KGATE_IN_CONTRACT=quick.yaml
  expect_refusal 65 "--help"
}

line_ends_in_inputs_make_no_output_of_their_own() {
  _fake_kgate
  _github KGATE_IN_PROGRAM=./fake FAKE_EXIT=6 KGATE_IN_CANDIDATE=$'a.ptx\n::error::owned' KGATE_IN_CONTRACT=c.yaml \
    KGATE_IN_OUT=out
  expect_exit 6
  expect_equal "$(_obeyed | wc -l)" 1
  expect_equal "$(grep -c '^verdict=' outputs)" 1
  _github KGATE_IN_PROGRAM=./fake KGATE_IN_CANDIDATE=a.ptx KGATE_IN_CONTRACT=c.yaml KGATE_IN_OUT=$'out\nverdict=pass'
  expect_refusal 64 "has a line end in it"
}

missing_inputs_are_a_usage_error() {
  _step KGATE_IN_CANDIDATE= KGATE_IN_CONTRACT=c.yaml
  expect_refusal 64 "needs a candidate and a contract"
  _step KGATE_IN_CANDIDATE=a.ptx
  expect_refusal 64 "needs a candidate and a contract"
}

gitlab_gets_the_exit_code_and_no_workflow_commands() {
  quick_contract
  _step GITLAB_CI=true CI_PROJECT_DIR="$PWD" KGATE_IN_CANDIDATE="$good" KGATE_IN_CONTRACT=quick.yaml KGATE_IN_SCOPE=static
  expect_exit 0
  ! grep -q '^::' stdout || fail "no GitHub commands on GitLab"
  expect_file kgate-out/verdict.json
  expect_file kgate-out/verdict.md
  _step GITLAB_CI=true CI_PROJECT_DIR="$PWD" KGATE_IN_CANDIDATE="$corpus/softmax_tail.ptx" KGATE_IN_CONTRACT=quick.yaml KGATE_IN_SCOPE=numeric
  expect_exit 6
}

# ---- action.yml: its env block and its run line, as the runner would execute them

# Prints NAME=VALUE of the env block, with each input at its default unless "input=value" is given.
_action_environment() {
  local line name expression input value given
  sed -n '/^      env:/,/^      run:/p' "$action" | sed -n 's/^        \([A-Z_]*\): \${{ \(.*\) }}$/\1 \2/p' |
    while read -r name expression; do
      case $expression in
        github.action_path) value=$KGATE_SOURCE ;;
        inputs.*)
          input=${expression#inputs.}
          value=$(sed -n "/^  $input:/,/^  [a-z]/p" "$action" | sed -n 's/^    default: //p' | tr -d '"')
          for given in "$@"; do [ "${given%%=*}" = "$input" ] && value=${given#*=}; done ;;
        *) echo "unknown expression $expression" >&2; exit 1 ;;
      esac
      printf '%s=%s\0' "$name" "$value"
    done
}

_action() {  # input=value...
  local variables=()
  mapfile -d '' variables < <(_action_environment "$@")
  [ ${#variables[@]} -ge 8 ] || fail "eight variables in action.yml, got ${#variables[@]}"
  local command
  command=$(sed -n 's/^      run: //p' "$action")
  [ -n "$command" ] || fail "a run line in action.yml"
  run env -i PATH="$KGATE_BIN:$PATH" HOME="$PWD" TMPDIR="${TMPDIR:-/tmp}" GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY="$PWD/summary" \
    GITHUB_OUTPUT="$PWD/outputs" "${variables[@]}" bash --noprofile --norc -eo pipefail -c "$command"
}

the_action_runs_a_check() {
  quick_contract
  _action candidate="$good" contract=quick.yaml device=virtual scope=static out="my out"
  expect_exit 0
  expect_equal "$(cat outputs)" $'exit-code=0\nverdict=pass\nreport=my out/verdict.json'
  expect_file "my out/verdict.json"
  _action candidate="$corpus/softmax_tail.ptx" contract=quick.yaml device=virtual
  expect_exit 6
  expect_file kgate-out/verdict.json
}

the_action_passes_the_required_tier_on() {
  _fake_kgate
  _action candidate=a.ptx contract=c.yaml require-tier=T0 kgate=./fake
  expect_exit 0
  expect_equal "$(grep -A1 -x -e --require-tier arguments | tail -n 1)" T0
  _action candidate=a.ptx contract=c.yaml kgate=./fake
  expect_no_text arguments --require-tier
}

every_variable_of_the_action_is_read_by_the_step_and_the_other_way_round() {
  sed -n 's/^        \(KGATE_IN_[A-Z]*\):.*/\1/p' "$action" | sort -u >offered
  grep -o 'KGATE_IN_[A-Z]\+' "$step" | sort -u >read
  cmp -s offered read || fail "the same variables: $(diff offered read)"
  sed -n '/^inputs:/,/^outputs:/p' "$action" | sed -n 's/^  \([a-z-]*\):$/\1/p' | sort >inputs
  grep -o 'inputs\.[a-z-]*' "$action" | sed 's/inputs\.//' | sort -u >used
  cmp -s inputs used || fail "every input to be used: $(diff inputs used)"
}

the_action_never_interpolates_into_its_script() {
  ! sed -n '/^      run:/,$p' "$action" | grep -q '\${{' || fail "no expression in the run line"
}

run_behaviours "$@"
