#!/usr/bin/env bash
# Compiles sources/ anew: `build.sh FOLDER` writes kernels.ptx and a code object ARCHITECTURE.hsaco for
# each of AMD's architectures, `build.sh FOLDER host` libkernels.so for the emulators. CLANG names the
# compiler; what is committed is what clang 19 and lld 19 give.
set -euo pipefail
out=$(realpath -m "$1")
mkdir -p "$out"
cd "$(dirname "$0")/sources"
clang=${CLANG:-clang-19}
flags=(-std=c++17 -O2 -ffp-contract=off -Wall -Wextra -Werror)
if [[ ${2:-} == host ]]; then
    "$clang" -x c++ "${flags[@]}" -fPIC -shared kernels.cpp -o "$out/libkernels.so"
    exit
fi
# Code objects of version 4 load in every runtime that knows these architectures. The compiler and the
# linker write who packaged them and from what folder into the file: not here, so that a rebuild elsewhere
# gives the same bytes.
export LLD_VERSION="lld 19"
code_object() {
    "$clang" -x hip --cuda-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -fuse-cuid=none \
        --offload-arch="$1" -mcode-object-version=4 -fno-ident "${flags[@]}" kernels.cpp \
        -o "$out/$1.hsaco"
    chmod 644 "$out/$1.hsaco"
}
ptx() {
    "$clang" -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_70 \
        --cuda-feature=+ptx63 "${flags[@]}" -S kernels.cpp -o "$out/kernels.ptx"
}
jobs=()
ptx & jobs+=($!)
for architecture in gfx90a gfx942 gfx1100; do
    code_object "$architecture" & jobs+=($!)
done
for job in "${jobs[@]}"; do
    wait "$job"
done
