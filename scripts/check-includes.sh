#!/usr/bin/env bash
# Who may include whom. Exits 1 and names each line that breaks the order. Usage: check-includes.sh [SOURCE_ROOT]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}/gate"
declare -A allowed=(
  [support]="support"
  [gpu]="gpu support"
  [candidate]="candidate gpu support"
  [contract]="contract candidate gpu support"
  [workload]="workload contract candidate gpu support"
  [trace]="trace probes/host_event.h probes/kgate_probe_wire.h gpu support"
  [worker]="worker replay/live_samples.h replay/plan.h replay/sizing.h gpu workload trace support"
  [replay]="replay worker/protocol.h worker/json_fields.h trace workload contract candidate gpu support"
  [judge]="judge trace contract candidate gpu support"
  [precheck]="precheck judge/verdict.h replay worker/protocol.h workload contract candidate gpu support"
  [report]="report judge trace support"
  [cli]="cli report judge replay precheck trace workload contract candidate gpu support"
  [vgpu]="vgpu candidate gpu/cuda_abi.h gpu/cupti_abi.h gpu/cupti_callback_abi.h gpu/graph_abi.h gpu/vgpu_abi.h support"
)
bad=0
for folder in "${!allowed[@]}"; do
  [ -d "$folder" ] || continue
  while IFS=: read -r file line text; do
    [[ $text =~ ^#include\ \"([^\"]*)\" ]] || continue
    included=${BASH_REMATCH[1]}
    [[ $included == */* ]] || continue
    ok=0
    for permitted in ${allowed[$folder]}; do
      if [[ $included == "$permitted" || $included == "$permitted"/* ]]; then ok=1; break; fi
    done
    if [ $ok -eq 0 ]; then
      echo "gate/$file:$line: $folder may not include $included"
      bad=1
    fi
  done < <(grep -rn '^#include "' "$folder" --include='*.h' --include='*.cpp' || true)
done
exit $bad
