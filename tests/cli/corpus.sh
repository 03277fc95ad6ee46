#!/usr/bin/env bash
# Every candidate of the corpus gets the verdict that the manifest expects, on the virtual GPU.
. "$(dirname "$0")/lib.sh"

every_candidate_gets_its_verdict() {
  run "$kgate" check --manifest "$corpus/manifest.yaml" --device virtual --out out
  expect_exit 0
  local entries
  entries=$(grep -c '^  - name:' "$corpus/manifest.yaml")
  expect_stdout "score: $entries of $entries on kgate virtual GPU (0 skipped)"
}

run_behaviours "$@"
