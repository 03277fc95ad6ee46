#!/usr/bin/env bash
# What the documents say is what the program does: commands run, examples are accepted, tables list what the sources define.
. "$(dirname "$0")/lib.sh"

docs=$KGATE_SOURCE/docs
formats=$docs/formats.md

_block() {  # N LANGUAGE FILE: the N-th fenced block of that language
  awk -v n="$1" -v open="\`\`\`$2" '$0 == open {inside = ++seen == n; next} /^```/ {inside = 0} inside' "$3"
}
_section() { awk -v title="$1" '/^## / {inside = $0 == "## " title} inside' "$formats"; }
_expect_same() {  # FILE FILE what
  [ -s "$1" ] && [ -s "$2" ] || fail "$3: neither list to be empty"
  cmp -s "$1" "$2" || fail "$3: $(diff "$1" "$2")"
}
_first_cells() { sed -n 's/^| \(`[^|]*\) |.*/\1/p' | grep -o '`[^`]*`' | tr -d '`'; }

every_command_of_the_documents_runs() {
  local file line commands=0
  for entry in tests workloads configs; do ln -s "$KGATE_SOURCE/$entry" $entry; done
  for file in "$KGATE_SOURCE/README.md" "$docs"/*.md; do
    while read -r line; do
      commands=$((commands + 1))
      case $line in
        *--manifest*) line="$line --only *-identical" ;;  # the whole corpus is cli.corpus
        *"kgate record -- "* | *"kgate record --out"*) line=${line/record/record --cuda-library $KGATE_BIN/../lib/libkgate_vgpu.so} ;;
      *"check "*"--device"*|*query*|*inspect*|*doctor*|*--help*) ;;
        *"check "*) line="$line --device virtual" ;;      # the same answer with a GPU and without
      esac
      PATH="$KGATE_BIN:$PATH" run bash -fc "$line"
      expect_exit 0
      [ -s stdout ] || fail "a result on stdout"
    done < <(sed -n 's/^    \(kgate .*\)/\1/p' "$file")
  done
  [ "$commands" -ge 6 ] || fail "at least six commands, got $commands"
}

exit_codes_are_the_same_in_all_documents_and_in_the_source() {
  sed -n '/^enum class Exit/,/};/p' "$KGATE_SOURCE/gate/support/error.h" | sed -n 's/.* = \([0-9]*\),/\1/p' | sort -n >source
  sed -n 's/^| \([0-9]*\) | [^|]* | | \([0-9]*\) |.*/\1 \2/p' "$KGATE_SOURCE/README.md" | tr ' ' '\n' | sort -n >readme
  _expect_same source readme "exit codes of README.md"
  "$kgate" --help | sed -n '/^Exit codes/,$p' | grep -o '[0-9]\+' | sort -n >help
  _expect_same source help "exit codes of --help"
  sed -n '/exit code\./,/Nothing passes/p' "$docs/ci.md" | sed 's/Nothing passes.*//' | grep -o '[0-9]\+ [a-z]' | cut -d' ' -f1 | sort -n >ci
  _expect_same source ci "exit codes of docs/ci.md"
}

metrics_are_those_of_the_source() {
  sed -n '/kMetrics{{/,/}};/p' "$KGATE_SOURCE/gate/judge/metrics.h" | sed -n 's/^ *{"\([a-z0-9_.]*\)",.*/\1/p' >source
  sed -n '/^| id /,/^$/p' "$docs/metrics.md" | _first_cells >documented
  _expect_same source documented "ids of docs/metrics.md"
  sed -n '/kMetrics{{/,/}};/p' "$KGATE_SOURCE/gate/judge/metrics.h" | tr -s '\n ' ' ' | grep -oE '"[^"]*"\},' | sed 's/^"\(.*\)"},$/\1/' >source
  sed -n '/^| id /,/^$/p' "$docs/metrics.md" | sed -n 's/^| `.*| \(.*\) |$/\1/p' >documented
  _expect_same source documented "descriptions of docs/metrics.md"
}

findings_are_those_of_the_source() {
  cd "$KGATE_SOURCE/gate" || exit 1
  {
    # A statement may be broken over lines anywhere.
    cat precheck/*.cpp judge/*.cpp replay/*.cpp cli/gate_run.cpp cli/replay_run.cpp cli/side_passes.cpp | tr -s '\n ' ' ' |
      grep -oE '(push_back\( ?\{ ?|Finding\{ ?|finding = \{ ?|finding\.id = )"[a-z_]+"' | grep -oE '"[a-z_]+"'
    tr -s '\n ' ' ' <precheck/equivalence.cpp | grep -oE 'const char\* id = [^;]*;' | grep -oE '"[a-z_]+"'
    sed -n '/compile_finding(/,/^}/p' precheck/prepare.cpp | grep -oE 'return "[a-z_]+"' | grep -oE '"[a-z_]+"'
    grep -hoE '"[a-z_]+", Exit::' precheck/faults.cpp | grep -oE '"[a-z_]+"'
  } | tr -d '"' | grep -vx completed | sort -u >"$OLDPWD/source"
  cd "$OLDPWD" || exit 1
  _section Findings | _first_cells | sort >documented
  _expect_same source documented "finding ids of docs/formats.md"
}

environment_variables_are_those_of_the_source() {
  grep -rhoE '(getenv|from_environment|read_quantity|Library::load)\([^;]*"KGATE_[A-Z_]+"' "$KGATE_SOURCE/gate" "$KGATE_SOURCE/probes" |
    grep -oE 'KGATE_[A-Z_]+' | sort -u >source
  _section Environment | _first_cells | grep '^KGATE_' | sort >documented
  _expect_same source documented "variables of docs/formats.md"
}

keys_of_the_contract_and_the_manifest_are_documented() {
  local file key
  for file in contract_table.cpp manifest.cpp; do
    for key in $(sed -n 's/^    {"\([a-z_]*\)",.*/\1/p' "$KGATE_SOURCE/gate/contract/$file" | sort -u | grep -vx limit); do
      { _section Contract; _section Manifest; } | grep -qE "(^|[^a-z_])$key([^a-z_]|\$)" || fail "docs/formats.md to name the key $key"
    done
  done
  _section Contract | sed -n '/^| key/,/^$/p' | _first_cells >documented
  sed -n '/kContractFields\[\]/,/^};/p' "$KGATE_SOURCE/gate/contract/contract_table.cpp" | sed -n 's/^    {"\([a-z_]*\)",.*/\1/p' >source
  _expect_same source documented "keys of the contract"
}

keys_of_the_verdict_are_documented() {
  local key
  for key in $(grep -oE '(json|limit)\["[a-z_0-9]+"\]|\{"[a-z_0-9]+",' "$KGATE_SOURCE/gate/report/json.cpp" | grep -oE '[a-z_0-9]{2,}' |
    grep -vxE 'json|limit_json' | sort -u); do
    _section verdict.json | grep -qF "\`$key\`" || fail "docs/formats.md to name the key $key of verdict.json"
  done
}

the_example_contract_is_accepted() {
  _block 1 yaml "$formats" | sed "s|: \.\./|: $KGATE_SOURCE/|g" >contract.yaml
  check --scope numeric -c contract.yaml "$corpus/softmax_warp4.ptx"
  expect_exit 0
  check -c contract.yaml "$corpus/softmax_warp4.ptx"  # its limits on time need a GPU
  expect_exit 5
  expect_stdout "unmeasurable"
}

the_example_manifest_gets_its_score() {
  _block 2 yaml "$formats" | sed "s|: \.\./|: $KGATE_SOURCE/|g" >manifest.yaml
  run "$kgate" check --manifest manifest.yaml --device virtual --out out
  expect_exit 0
  expect_stdout "score: 1 of 1"
}

the_example_workload_is_accepted() {
  _block 3 yaml "$formats" >decode.yaml
  ln -s "$KGATE_SOURCE/workloads/kernels" kernels
  run "$kgate" inspect decode.yaml
  expect_exit 0
  expect_stdout "requests  1200 of "
}

tables_and_columns_of_a_trace_are_documented() {
  quick_contract
  check --requests 2 -c quick.yaml "$good"
  expect_exit 0
  run "$kgate" query --trace out/trace.db "SELECT name FROM sqlite_master WHERE type = 'table'"
  tail -n +2 stdout | sort >real
  _section Trace | sed -n '/^### Tables/,/^### /p' | sed -n 's/^| \([a-z_]*\) | .*/\1/p' | grep -vx table | sort >documented
  _expect_same real documented "tables of the trace"
  local table column row
  while read -r table; do
    row=$(_section Trace | grep "^| $table | ")
    run "$kgate" query --json --trace out/trace.db "SELECT * FROM (SELECT 1) LEFT JOIN $table ON 1 LIMIT 1"
    expect_exit 0
    [ "$table" = kernels ] && row="$row $(_section Trace | sed -n '/^### Views/,/^### /p')"
    for column in $(sed -n 's/^    "\([a-z_]*\)":.*/\1/p' stdout); do
      case $column in grid_y|block_y) continue ;; esac  # "grid_x … grid_z"
      grep -qE "(^|[^a-z_])$column([^a-z_]|\$)" <<<"$row" || fail "docs/formats.md to name $table.$column"
    done
  done <real
}

links_of_the_documents_lead_somewhere() {
  local file link
  for file in "$KGATE_SOURCE"/*.md "$docs"/*.md; do
    for link in $(grep -oE '\]\([^)#]+' "$file" | sed 's/](//' | grep -v '^http'); do
      [ -e "$(dirname "$file")/$link" ] || fail "$file: $link to exist"
    done
  done
  ! ls "$docs"/formats-*.md >/dev/null 2>&1 || fail "one page about formats"
}

includes_keep_their_order() {
  run bash "$KGATE_SOURCE/scripts/check-includes.sh"
  expect_exit 0
  expect_no_stdout
}

a_wrong_include_is_found() {
  mkdir -p tree/gate
  cp -r "$KGATE_SOURCE/gate/support" "$KGATE_SOURCE/gate/gpu" tree/gate/
  run bash "$KGATE_SOURCE/scripts/check-includes.sh" tree
  expect_exit 0
  echo '#include "judge/verdict.h"' >tree/gate/support/planted.h
  run bash "$KGATE_SOURCE/scripts/check-includes.sh" tree
  expect_exit 1
  expect_stdout "gate/support/planted.h:1: support may not include judge/verdict.h"
}

kernels_name_todays_sources() {
  run bash "$KGATE_SOURCE/scripts/regenerate-kernels.sh" --check
  expect_exit 0
}

nothing_unfinished_is_in_the_tree() {
  local files
  files=$(cd "$KGATE_SOURCE" && { git ls-files 2>/dev/null || find gate probes scripts docs tests workloads configs -type f; } | grep -v '\.cubin$')
  [ -n "$files" ] || fail "files"
  run grep -nIE '(^|[^A-Za-z_])(TOD[O]|FIXM[E]|XX[X]|HAC[K])([^A-Za-z_]|$)|/wor[k]/|/hom[e]/[a-z]' $(sed "s|^|$KGATE_SOURCE/|" <<<"$files")
  expect_exit 1
}

run_behaviours "$@"
