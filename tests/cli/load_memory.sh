#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A folder and a GGUF file quantised at load: the most their group is charged, page cache
# included, is little more than the weights they end with. The limit leaves room for
# three times as much, so nothing is small because the kernel took it away.
#
# What a file of the same weights needs is no matter of the limit, unlike what it is
# charged, and a recommendation for less memory goes by that.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache
threads=$(threads_for 2)
if grep -qa __asan_init "$BENCH"; then
    echo "skipped: a sanitizer's memory would be counted"
    exit 77
fi

# Pages of the program are charged to the group that reads them first. Tests that run at
# the same time share its file and drop its pages, so this test has a copy of its own,
# whose pages are charged to the shell's group.
cp "$BENCH" bench
BENCH=$WORK/bench

# 220 MB of F16, 71 MB of Q4_0; the embedding alone 65 MB
python3 "$SRC/tests/support/models/make_shape_folder.py" folder --layers 4 --embd 1024 --ff 2816 \
    --heads 16 --kv-heads 4 --shards 2
"$BENCH" quantize folder file.gguf F16 >out
sync folder/* file.gguf
field() { awk -v name="$1" '$1 == name { print $2 }' out; }
for model in folder file.gguf; do
    code=0
    "$BENCH" decode -m $model:Q4_0 -t $threads --ctx 64 -n 2 --mem 192M --all >out 2>err || code=$?
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

"$BENCH" quantize folder q4.gguf Q4_0 >out
sync q4.gguf
rm -r folder file.gguf
# needs WEIGHTS LIMIT: columns of a point, into $peak, $resident, $planned
needs() {
    "$BENCH" decode -m q4.gguf --weights "$1" -t $threads --ctx 64 -n 2 --budget 2 --mem "$2" --all >out 2>err ||
        fail "$1 under $2: $(cat err out)"
    peak=$(field mem_peak_bytes) resident=$(field mem_resident_bytes) planned=$(field mem_planned_bytes)
    echo "$1 under $2: charged $peak, resident $resident, planned $planned"
    [ "${resident:-0}" -gt 0 ] || fail "nothing is resident: $(cat out)"
    [ "$resident" -le $((planned + (24 << 20))) ] || fail "more than was planned with its process"
    [ "$resident" -ge $((planned * 97 / 100)) ] || fail "less than was planned"
}
# is_near A B: within 6 %, since what is sampled of a short run varies
is_near() {
    [ $(($1 * 100)) -ge $(($2 * 94)) ] && [ $(($1 * 94)) -le $(($2 * 100)) ] ||
        fail "resident memory goes by the limit: $1 and $2"
}
needs packed 110M
small=$resident
needs packed 1G
is_near "$resident" "$small"
[ "$peak" -ge $((resident * 3 / 2)) ] || fail "no page cache was charged under 1G: peak $peak"
needs mmap 48M # pages from disk
grep -q "^detail  *does not fit" out || fail "48 MiB are enough: $(cat out)"
grep -q "^roof_gbps" out && grep -q "^mbu" out || fail "no roof within 48 MiB: $(cat out)"
small=$resident
needs mmap 1G
is_near "$resident" "$small"
needs packed none
is_near "$resident" "$small"

# A packed file is read past the page cache where two copies would not fit.
code=0
"$BENCH" pack q4.gguf -o packed.gguf >out 2>err || code=$?
if [ $code != 3 ]; then
    [ $code = 0 ] || fail "pack: $(cat err)"
    for limit in 130M 110M; do
        "$BENCH" decode -m packed.gguf --weights packed -t $threads --ctx 64 -n 2 --budget 2 --mem $limit --all \
            >out 2>err || fail "packed file under $limit: $(cat err out)"
        bytes=$(field file_bytes) peak=$(field mem_peak_bytes)
        echo "packed file under $limit: $bytes bytes of weights, peak $peak"
        [ "$peak" -le $((bytes + (35 << 20))) ] || fail "peak $peak for $bytes bytes of weights"
    done
fi
rm -f packed.gguf

# A sweep with much memory says what runs with little.
"$BENCH" sweep -m q4.gguf --threads $threads --ctx 64 --prefill none -n 4 --budget 2 --mem 1G --weights packed \
    --no-charts --no-probe --launches 1 --max-launches 1 --repeats 0 -o sweep >out 2>err || fail "sweep: $(cat err)"
"$BENCH" recommend sweep --mem 110M >out 2>err || fail "it fits, as shown above: $(cat err)"
tr -s ' \n' ' ' <out | grep -q "within the limit of 110 MiB" || fail "recommended: $(cat out)"
refused 1 " MiB of 64.0 MiB" recommend sweep --mem 64M
rm -r sweep q4.gguf
