#!/bin/bash -eu
# ci/oss-fuzz/build.sh - every fuzz target, its seeds and its libraries, as OSS-Fuzz wants them
#
# In the environment: CC, CFLAGS (with -O and the sanitizer), LIB_FUZZING_ENGINE, SRC, OUT, WORK.
# TARGETS names some of tests/fuzz/fuzz_<target>.c; by default all.
cd "${SRC:?}/slmbench"
targets=${TARGETS:-$(cd tests/fuzz && for f in fuzz_*.c; do f=${f#fuzz_} && echo "${f%.c}"; done)}
work=${WORK:?}/build

# Kernels for the lowest level alone: a reader uses no others. No C++, no flags but theirs.
# Programs find the libraries that they need, and those that these need, in lib/ next to them.
# shellcheck disable=SC2016 # the loader expands it
cmake -B "$work" -G Ninja -DSLM_FUZZ=ON "-DSLM_FUZZ_ENGINE=${LIB_FUZZING_ENGINE:?}" -DBUILD_TESTING=ON \
    "-DSLM_LEVELS_OFF=avx2;avxvnni;avx512;avx512_floats;avx512vnni;avx512vbmi;amx_int8" \
    -DCMAKE_BUILD_TYPE=None -DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON \
    "-DCMAKE_EXE_LINKER_FLAGS=${LDFLAGS:-} -Wl,--disable-new-dtags" \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON '-DCMAKE_INSTALL_RPATH=$ORIGIN/lib' >/dev/null
for target in $targets; do echo "fuzz_$target"; done | xargs cmake --build "$work" -j "$(nproc)" --target

mkdir -p "$OUT/lib"
for target in $targets; do
    cp "$work/tests/fuzz/fuzz_$target" "$OUT/"
    # All but glibc's, which each system has.
    ldd "$work/tests/fuzz/fuzz_$target" | awk '$3 ~ "^/" && $1 !~ /^lib(c|m|pthread|dl|rt|resolv)\.so/ { print $3 }' |
        xargs -r cp -Lt "$OUT/lib"
    (cd "tests/fuzz/seeds/$target" && zip -qr "$OUT/fuzz_${target}_seed_corpus.zip" .)
done
