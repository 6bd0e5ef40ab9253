#!/bin/bash
# SPDX-License-Identifier: MIT
#
# probe.sh - `bench probe` on a tiny buffer: the table, the JSON, wrong input
. "$SRC/tests/cli/lib.sh"
unset SLMBENCH_LLC SLMBENCH_PROBE

"$BENCH" probe --threads 1 --bytes 1M --passes 2 --disk none > table
grep -q "Read bandwidth, GB/s, buffer 1.0*0 MiB" table || fail "no heading: $(cat table)"
[ "$(grep -cE '^ +1  [42] [KM]iB ' table)" = 2 ] || fail "not one row per page size"
grep -qE '^  int8 +[a-z0-9]+ +[0-9.]+$' table || fail "no int8 peak"
grep -q "not measured: not requested" table || fail "disk not left out"

# What follows rests on what was measured, from memory whatever the buffer's size.
sed -n '/^What follows/,$p' table >follows
grep -q "^  - Prefill: a prompt of 512 tokens" follows || fail "no prefill: $(cat table)"
grep -q "^  - Decode: a model of 5.3 GB .* GB/s from memory" <(tr -s '\n ' ' ' <follows | sed 's/ - /\n  - /g') ||
    fail "no decode: $(cat follows)"
! grep -q "Disk" follows || fail "no disk was measured: $(cat follows)"
[ "$(wc -L <table)" -le 79 ] || fail "too wide: $(cat table)"

"$BENCH" probe --threads 2 --bytes 1M --passes 2 --disk none --placement none \
    --isa-disable avx2 --json > probe.json
for key in read pages gbps median huge_bytes int8 f32 all_threads_gops disk; do
    grep -q "\"$key\":" probe.json || fail "no \"$key\" in the JSON"
done
grep -q '"isa": "scalar"' probe.json || fail "--isa-disable was not obeyed"
if command -v python3 > /dev/null; then
    python3 -m json.tool probe.json > /dev/null || fail "the JSON is not valid"
fi

# Where stderr is no terminal, lines say what is going on.
SLMBENCH_PROGRESS=0.0001 "$BENCH" probe --threads 1 --bytes 4M --passes 5 --disk none >table 2>err
grep -q "^bench: probe: [0-9]* % done.*; read, 1 thread$" err || fail "no progress: $(cat err)"

# A directory without O_DIRECT, or any other reason, is a sentence and no failure.
"$BENCH" probe --threads 1 --bytes 1M --passes 1 --disk /proc > table
grep -q "not measured: .*/proc" table || fail "no reason given for /proc"

for wrong in "--threads 0" "--placement moon" "--passes -1" "--bytes lots" "surplus"; do
    # shellcheck disable=SC2086
    refused 2 "" probe $wrong --disk none
done
refused 2 "a buffer of 1 B is read faster than can be timed" probe --bytes 1B --disk none
refused 3 "two buffers of 900 TiB do not fit" probe --bytes 900T --disk none
[ -z "$(find . -name '.slmbench*')" ] || fail "scratch files were left"
