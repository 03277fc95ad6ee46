# What the tests of the built program share. A test file defines one function a behaviour, named after it, and ends with
# `run_behaviours "$@"`: each runs in a subshell and a folder of its own, and all of them run even if one fails. Functions whose
# names open with an underscore are helpers. `FILE.sh NAME...` runs only those behaviours.
#
# KGATE_BIN: folder of the programs. KGATE_SOURCE: the source tree.
set -u
: "${KGATE_BIN:?the folder of the built programs}" "${KGATE_SOURCE:?the source tree}"
export LC_ALL=C
unset NO_COLOR GITHUB_ACTIONS GITHUB_STEP_SUMMARY GITHUB_OUTPUT GITLAB_CI CI_PROJECT_DIR
kgate=$KGATE_BIN/kgate
corpus=$KGATE_SOURCE/tests/corpus
good=$corpus/softmax_good.ptx

# run COMMAND...: leaves $code, ./stdout and ./stderr.
run() {
  ran=$*
  "$@" >stdout 2>stderr </dev/null
  code=$?
}

# check ARGUMENTS...: one check on the virtual GPU into ./out.
check() { run "$kgate" check --device virtual --out out "$@"; }

# A contract of few small shapes and no workload: seconds become tenths. Arguments are sed expressions that change it.
quick_contract() {
  sed -e '/^workload:/d' -e "s|: \.\./\.\./|: $KGATE_SOURCE/|g" -e 's|rows: \[1, 7, 64\], cols: .*}|rows: [1, 3], cols: [31, 64]}|' \
    "$corpus/softmax.yaml" >quick.yaml
  local expression
  for expression in "$@"; do sed -i -e "$expression" quick.yaml; done
}

fail() {
  printf '    expected %s\n    command: %s\n    exit: %s\n' "$1" "${ran:-}" "${code:-}"
  for stream in stdout stderr; do
    [ -s $stream ] && { echo "    $stream:"; head -c 4000 $stream | sed 's/^/      /'; }
  done
  exit 1
}

expect_exit() { [ "$code" -eq "$1" ] || fail "exit $1"; }
expect_stdout() { grep -qF -- "$1" stdout || fail "on stdout: $1"; }
expect_stderr() { grep -qF -- "$1" stderr || fail "on stderr: $1"; }
expect_no_stdout() { [ ! -s stdout ] || fail "nothing on stdout"; }
expect_no_stderr() { [ ! -s stderr ] || fail "nothing on stderr"; }
expect_text() { grep -qF -- "$2" "$1" || fail "in $1: $2; it holds: $(head -c 2000 "$1")"; }
expect_no_text() { ! grep -qF -- "$2" "$1" || fail "not in $1: $2"; }
expect_file() { [ -s "$1" ] || fail "a file $1"; }
expect_no_file() { [ ! -e "$1" ] || fail "no file $1"; }
expect_equal() { [ "$1" = "$2" ] || fail "'$2', got '$1'"; }

# A refusal: its code, nothing on stdout, one error and a hint if one is given.
expect_refusal() {
  expect_exit "$1"
  expect_no_stdout
  expect_stderr "error: "
  expect_stderr "$2"
  [ $# -lt 3 ] || expect_stderr "hint: $3"
}

# run_as_nobody COMMAND...: without any right, in a folder that everyone may enter. Skips where this user cannot do so.
run_as_nobody() {
  _can_be_nobody || { echo "    skipped: needs root and setpriv"; exit 77; }
  chmod a+rx "$work" .
  run setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all "$@"
}
_can_be_nobody() {
  [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null &&
    setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all test -x "$kgate" -a -r "$good"
}

# 0: all hold, 1: one does not, 77: none failed and none could be tried.
run_behaviours() {
  local name failed=0 passed=0 skipped=0 names begin
  work=$(mktemp -d "${TMPDIR:-/tmp}/kgate-cli.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  chmod 755 "$work"
  names=${*:-$(sed -n 's/^\([a-z][a-z0-9_]*\)() {.*/\1/p' "$0")}
  [ -n "$names" ] || { echo "no behaviours in $0"; exit 1; }
  for name in $names; do
    mkdir -p "$work/$name"
    begin=$SECONDS
    (cd "$work/$name" && "$name")
    case $? in
      0) echo "ok      $name ($((SECONDS - begin)) s)"; passed=$((passed + 1)) ;;
      77) echo "skipped $name"; skipped=$((skipped + 1)) ;;
      *) echo "FAILED  $name"; failed=$((failed + 1)) ;;
    esac
  done
  echo "$passed hold, $failed do not, $skipped skipped"
  [ "$failed" -eq 0 ] || exit 1
  [ "$passed" -gt 0 ] || exit 77
}
