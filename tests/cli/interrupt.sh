#!/usr/bin/env bash
# Ctrl-C in the middle of a check: exit 130, no process left, nothing that looks like a result.
. "$(dirname "$0")/lib.sh"

# Processes whose environment holds this run's mark: kgate, its workers, its compilers.
_marked() { grep -lsz "^KGATE_TEST_MARK=$mark\$" /proc/[0-9]*/environ 2>/dev/null | sed 's|/proc/\([0-9]*\)/.*|\1|'; }
_marked_workers() {
  local pid
  for pid in $(_marked); do [ "$(cat /proc/"$pid"/comm 2>/dev/null)" = kgate-worker ] && echo "$pid"; done
}

_start() {  # ARGUMENTS of check
  mark=$$-$RANDOM$RANDOM
  ran="kgate check $*"
  # A background job of a script ignores SIGINT unless job control is on; so would the program that it starts.
  set -m
  KGATE_TEST_MARK=$mark "$kgate" check --device virtual --out out "$@" >stdout 2>stderr </dev/null &
  pid=$!
  set +m
}

_wait_until() {  # COMMAND: at most 60 s
  local i
  for i in $(seq 600); do
    [ -n "$("$@")" ] && return
    kill -0 "$pid" 2>/dev/null || { wait "$pid"; code=$?; fail "the check to be still running"; }
    sleep 0.1
  done
  fail "$* within a minute"
}

_expect_no_process_left() {
  local i left
  for i in $(seq 50); do
    left=$(_marked)
    [ -z "$left" ] && break
    sleep 0.1
  done
  expect_equal "$left" ""
}

_expect_nothing_left() {
  wait "$pid"
  code=$?
  expect_exit 130
  expect_no_stdout
  _expect_no_process_left
  expect_no_file out/trace.db
  expect_no_file out/verdict.json
  expect_no_file out/verdict.md
  expect_equal "$(find out -name '*partial*' -o -name '*journal*' -o -name '*tmp*')" ""
}

_partial() { [ -e out/trace.db.partial ] && _marked_workers; }

interrupt_ends_a_replay_with_130_and_leaves_nothing() {
  quick_contract
  _start --requests 20000 -c quick.yaml "$good"
  _wait_until _partial
  kill -INT "$pid"
  _expect_nothing_left
}

interrupt_ends_a_numeric_comparison() {
  quick_contract 's|rows: \[1, 3\], cols: .*}|rows: [2000], cols: [4000, 4096]}|'
  _start --scope numeric -c quick.yaml "$good"
  _wait_until _marked_workers
  kill -INT "$pid"
  _expect_nothing_left
}

termination_is_an_interruption_too() {
  quick_contract
  _start --requests 20000 -c quick.yaml "$good"
  _wait_until _marked_workers
  kill -TERM "$pid"
  _expect_nothing_left
}

an_interrupt_of_the_whole_process_group_is_the_same() {
  quick_contract
  _start --requests 20000 -c quick.yaml "$good"
  _wait_until _partial
  kill -INT -- "-$pid"
  _expect_nothing_left
}

interrupt_of_a_corpus_stops_it() {
  mark=$$-$RANDOM
  ran="kgate check --manifest"
  set -m
  KGATE_TEST_MARK=$mark "$kgate" check --manifest "$corpus/manifest.yaml" --device virtual --out out >stdout 2>stderr </dev/null &
  pid=$!
  set +m
  _wait_until _marked_workers
  kill -INT "$pid"
  wait "$pid"
  code=$?
  expect_exit 130
  expect_no_text stdout "score:"
  _expect_no_process_left
}

run_behaviours "$@"
