#!/usr/bin/env bash
# Compiles sources/ anew: `build.sh FOLDER` writes kernels.ptx, `build.sh FOLDER host` libkernels.so for
# the emulators. CLANG names the compiler; what is committed is what clang 19 gives.
set -euo pipefail
out=$(realpath -m "$1")
mkdir -p "$out"
cd "$(dirname "$0")/sources"
clang=${CLANG:-clang-19}
flags=(-std=c++17 -O2 -ffp-contract=off -Wall -Wextra -Werror)
if [[ ${2:-} == host ]]; then
    "$clang" -x c++ "${flags[@]}" -fPIC -shared kernels.cpp -o "$out/libkernels.so"
else
    "$clang" -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_70 \
        --cuda-feature=+ptx63 "${flags[@]}" -S kernels.cpp -o "$out/kernels.ptx"
fi
