#!/usr/bin/env bash
# Makes the committed PTX and cubins from the CUDA C++ beside them, so that nothing that uses them needs a CUDA toolkit.
#
#   scripts/regenerate-kernels.sh            make them all (needs nvcc 13.0: $NVCC, PATH or /usr/local/cuda/bin)
#   scripts/regenerate-kernels.sh --triton   also those that Triton makes ($PYTHON with triton 3.6.0, default python3)
#   scripts/regenerate-kernels.sh --check    needs neither: does every file still name the source it was made from?
#
# A PTX file opens with a comment that gives the command and the SHA-256 of its source; a cubin has no room for one, so
# the source's and its own stand in cubins.sha256 beside it.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

sums=tests/corpus/cubins.sha256
triton_sums=tests/corpus/triton/cubins.sha256
# Cubins of the corpus: name, architecture. The source is NAME.cu.
cubins=("softmax_good sm_90" "rmsnorm_good sm_90" "softmax_good sm_75")

hash_of() { sha256sum "$1" | cut -d' ' -f1; }
sources() { printf '%s\n' workloads/kernels/*.cu workloads/references/*.cu tests/corpus/*.cu tests/gpu/kernels/*.cu; }

make_ptx() {  # source
  local source=$1 ptx=${1%.cu}.ptx made
  made=$(mktemp)
  "$nvcc" -ptx -arch=sm_75 -O3 -o "$made" "$source"
  { echo "// nvcc 13.0 -ptx -arch=sm_75 -O3 ${source##*/}; SHA-256 of the source: $(hash_of "$source")"; cat "$made"; } > "$ptx"
  rm -f "$made"
}

make_cubin() {  # name arch
  local source=tests/corpus/$1.cu cubin=tests/corpus/$1.$2.cubin
  "$nvcc" -cubin "-arch=$2" -O3 -o "$cubin" "$source"
  echo "$(hash_of "$source") $(hash_of "$cubin") nvcc 13.0 -cubin -arch=$2 -O3 -o $1.$2.cubin $1.cu" >> "$sums"
}

# A generator's slip, made from a candidate that assembles: an instruction that does not exist and a register that nobody declared.
make_unassembled() {
  { echo "// softmax_good.ptx with two faults put in by scripts/regenerate-kernels.sh: 'shflbfly' is no instruction, %f9999 no register."
    sed -e '1d' -e '0,/shfl\.sync\.bfly\.b32/s//shflbfly.sync.b32/' -e '0,/\(max\.f32[ \t]*\)%[a-z]*[0-9]*/s//\1%f9999/' \
      tests/corpus/softmax_good.ptx
  } > tests/corpus/softmax_unassembled.ptx
}

check() {
  local failed=0 source ptx line named
  complain() { echo "$1" >&2; failed=1; }
  while read -r source; do
    ptx=${source%.cu}.ptx
    [[ -f $ptx ]] || { complain "$ptx: missing; run scripts/regenerate-kernels.sh"; continue; }
    line=$(head -n 1 "$ptx")
    named=${line##*SHA-256 of the source: }
    [[ $named == "$(hash_of "$source")" ]] || complain "$ptx: not made from today's $source; run scripts/regenerate-kernels.sh"
  done < <(sources)
  for ptx in tests/corpus/triton/*.ptx; do
    line=$(head -n 1 "$ptx")
    source=tests/corpus/triton/$(sed -n 's/.*make\.py \([^ ;]*\).*/\1/p' <<< "$line")
    named=${line##*SHA-256 of the source: }
    [[ -f $source && $named == "$(hash_of "$source")" ]] || complain "$ptx: not made from today's $source; run it with --triton"
  done
  local of_source of_cubin command cubin
  while read -r of_source of_cubin command; do
    source=tests/corpus/${command##* }
    cubin=tests/corpus/$(sed -n 's/.* -o \([^ ]*\).*/\1/p' <<< "$command")
    [[ -f $source && $of_source == "$(hash_of "$source")" ]] || complain "$cubin: not made from today's $source"
    [[ -f $cubin && $of_cubin == "$(hash_of "$cubin")" ]] || complain "$cubin: not the file that the list of cubins names"
  done < <(cat "$sums" "$triton_sums")
  (( failed == 0 )) && echo "kernels: every PTX and cubin names today's source"
  return $failed
}

case ${1-} in
  --check) check; exit ;;
  ''|--triton) ;;
  *) echo "usage: $0 [--check|--triton]" >&2; exit 64 ;;
esac

nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
"$nvcc" --version | grep -q 'release 13\.0' || { echo "$nvcc is not nvcc 13.0; set NVCC" >&2; exit 5; }
sources | while read -r source; do make_ptx "$source"; done

: > "$sums"
for cubin in "${cubins[@]}"; do
  read -r name arch <<< "$cubin"
  make_cubin "$name" "$arch"
done
make_unassembled
python3 tests/corpus/bad/make.py
if [[ ${1-} == --triton ]]; then
  "${PYTHON:-python3}" tests/corpus/triton/make.py | tee "$triton_sums"
fi
check
