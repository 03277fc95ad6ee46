#!/usr/bin/env bash
# One CI step around `kgate check`, for GitHub Actions and GitLab. Reads KGATE_IN_*; writes the job summary, the step's outputs and
# an annotation where these systems offer them. Its exit code is kgate's: reporting never changes the verdict.
set -uo pipefail
candidate=${KGATE_IN_CANDIDATE:-} contract=${KGATE_IN_CONTRACT:-} out=${KGATE_IN_OUT:-kgate-out}
if [ -z "$candidate" ] || [ -z "$contract" ]; then
  echo "error: the step needs a candidate and a contract (inputs candidate and contract, or KGATE_IN_CANDIDATE and KGATE_IN_CONTRACT)" >&2
  exit 64
fi
case $out in
  *[$'\r\n']*) echo "error: the name of the output folder has a line end in it" >&2; exit 64 ;;
esac
arguments=(check --device "${KGATE_IN_DEVICE:-auto}" --scope "${KGATE_IN_SCOPE:-full}" --out "$out" --contract "$contract")
[ -n "${KGATE_IN_TIER:-}" ] && arguments+=(--require-tier "$KGATE_IN_TIER")

# What the candidate makes kgate print must not be read as a workflow command.
guard=""
if [ -n "${GITHUB_ACTIONS:-}" ]; then
  guard=kgate-$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
  echo "::stop-commands::$guard"
fi
rm -f "$out/verdict.json" "$out/verdict.md"
"${KGATE_IN_PROGRAM:-kgate}" "${arguments[@]}" -- "$candidate"
code=$?
[ -n "$guard" ] && printf '\n::%s::\n' "$guard"  # obeyed at the start of a line only

verdict="no verdict"
case $code in
  0) verdict=pass ;; 1) verdict=regression ;; 3) verdict=inconclusive ;; 4) verdict="no usable baseline" ;;
  5) verdict="environment unfit" ;; 6) verdict="candidate broken" ;;
esac
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -s "$out/verdict.md" ]; then
  cat "$out/verdict.md" >>"$GITHUB_STEP_SUMMARY" || echo "warning: cannot write the job summary" >&2
fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  { echo "exit-code=$code"; echo "verdict=$verdict"; echo "report=$out/verdict.json"; } >>"$GITHUB_OUTPUT" ||
    echo "warning: cannot write the step's outputs" >&2
fi
if [ -n "${GITHUB_ACTIONS:-}" ] && [ "$code" -ne 0 ]; then
  # Properties and data of an annotation escape % and line ends; properties also : and ,
  file=$(printf %s "$candidate" | sed 's/%/%25/g; s/:/%3A/g; s/,/%2C/g' | tr -d '\r\n')
  echo "::error file=$file,title=kgate::$verdict (exit $code); the job summary has the details"
fi
exit "$code"
