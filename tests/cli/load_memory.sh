#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A folder and a GGUF file quantised at load: the most their group is charged, page cache
# included, is little more than the weights they end with. The limit leaves room for
# three times as much, so nothing is small because the kernel took it away.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache
if grep -qa __asan_init "$BENCH"; then
    echo "skipped: a sanitizer's memory would be counted"
    exit 77
fi

# 220 MB of F16, 71 MB of Q4_0; the embedding alone 65 MB
python3 "$SRC/tests/support/make_shape_folder.py" folder --layers 4 --embd 1024 --ff 2816 \
    --heads 16 --kv-heads 4 --shards 2
"$BENCH" quantize folder file.gguf F16 >out
sync folder/* file.gguf
field() { awk -v name="$1" '$1 == name { print $2 }' out; }
for model in folder file.gguf; do
    code=0
    "$BENCH" decode -m $model:Q4_0 -t 2 --ctx 64 -n 2 --mem 192M >out 2>err || code=$?
    if [ "$code" = 3 ]; then
        echo "skipped: $(cat err)"
        rm -r folder file.gguf
        exit 77
    fi
    [ "$code" = 0 ] || fail "exit $code: $(cat err out)"
    bytes=$(field file_bytes) peak=$(field mem_peak_bytes)
    echo "$model: $bytes bytes of weights, peak $peak"
    [ "$bytes" -gt 50000000 ] || fail "not the weights expected: $(cat out)"
    [ "$peak" -le $((bytes + (45 << 20))) ] || fail "peak $peak for $bytes bytes of weights"
done
rm -r folder file.gguf
