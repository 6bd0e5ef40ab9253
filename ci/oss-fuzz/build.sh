#!/bin/bash -eu
# ci/oss-fuzz/build.sh - every fuzz target, its seeds and its libraries, as OSS-Fuzz wants them
#
# In the environment: CC, CXX, CFLAGS, SRC, OUT, and SANITIZER. TARGETS names some of
# tests/fuzz/fuzz_<target>.c; by default all.
cd "${SRC:?}/slmbench"
targets=${TARGETS:-$(cd tests/fuzz && for f in fuzz_*.c; do f=${f#fuzz_} && echo "${f%.c}"; done)}
work=${WORK:-/tmp}/build

# Kernels for the lowest level alone: a reader uses no others. Programs find the
# libraries that they need next to them.
# shellcheck disable=SC2016 # the loader expands it
cmake -B "$work" -G Ninja -DSLM_FUZZ=ON -DBUILD_TESTING=ON \
    "-DSLM_LEVELS_OFF=avx2;avxvnni;avx512;avx512_floats;avx512vnni;avx512vbmi;amx_int8" \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON '-DCMAKE_INSTALL_RPATH=$ORIGIN/lib' >/dev/null
for target in $targets; do echo "fuzz_$target"; done | xargs cmake --build "$work" -j "$(nproc)" --target

mkdir -p "$OUT/lib"
for target in $targets; do
    cp "$work/tests/fuzz/fuzz_$target" "$OUT/"
    ldd "$work/tests/fuzz/fuzz_$target" | awk '$3 ~ "^/" && $1 !~ /^(libc|libm|libpthread|libdl|librt|libgcc_s|ld-linux.*)\.so/ { print $3 }' |
        xargs -r cp -Lt "$OUT/lib"
    seeds=tests/fuzz/seeds/$target
    [ ! -d "$seeds" ] || (cd "$seeds" && zip -qr "$OUT/fuzz_${target}_seed_corpus.zip" .)
done
