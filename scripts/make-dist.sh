#!/usr/bin/env bash
# dist/kgate: a relocatable tree that needs only glibc at run time. Usage: make-dist.sh BUILD_DIR [DESTINATION]
set -euo pipefail
build=$1
root=$(cd "$(dirname "$0")/.." && pwd)
dist=${2:-$root/dist/kgate}
rm -rf "$dist"
mkdir -p "$dist"/{bin,lib,probes,scripts,tests}
install -m 755 "$build"/bin/{kgate,kgate-worker,kgate-compile,kgate-probe} "$dist/bin/"
install -m 644 "$build"/lib/libkgate_vgpu.so "$build"/lib/libkgate_inject.so "$dist/lib/"
strip --strip-debug "$dist"/bin/* "$dist"/lib/*.so   # symbols stay: uprobes attach to them
find "$build" -name '*.bpf.o' -exec install -m 644 {} "$dist/probes/" \;
cp -r "$root/workloads" "$root/configs" "$dist/"
cp -r "$root/tests/corpus" "$root/tests/gpu" "$dist/tests/"
install -m 755 "$root/scripts/demo.sh" "$root/scripts/ci-step.sh" "$dist/scripts/"
cp -r "$root/docs" "$root/LICENSE" "$root/README.md" "$dist/"
allowed='linux-vdso|libc\.so|libm\.so|libdl\.so|libpthread\.so|librt\.so|ld-linux'
for file in "$dist"/bin/* "$dist"/lib/*; do
  if ldd "$file" 2>/dev/null | grep -vE "$allowed" | grep -q '=>'; then
    echo "error: $file needs more than glibc:" >&2
    ldd "$file" | grep -vE "$allowed" >&2
    exit 1
  fi
done
du -sh "$dist" >&2
