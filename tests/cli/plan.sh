#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench plan: what fits, what is streamed and how fast, from shapes and files that are
# not run. Speeds are those of a made-up machine.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache

cat >machine.json <<'EOF'
{"probe": {"read": [
  {"n_threads": 1, "pages": "4k", "gbps": {"median": 18}},
  {"n_threads": 1, "pages": "2m", "gbps": {"median": 20}},
  {"n_threads": 2, "pages": "4k", "gbps": {"median": 38}},
  {"n_threads": 2, "pages": "2m", "gbps": {"median": 40}}],
 "disk": {"path": ".", "gbps": {"median": 1}}}}
EOF
plan() {
    "$BENCH" plan --machine machine.json -t 2 "$@"
}

# value KEY FILE
value() {
    sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$2" | head -n 1
}

# ---- a shape that was never made
plan -m tinyllama-1.1b:Q8_0 --mem 2G --ctx 1000 >out
head -n 1 out | grep -q '^tinyllama-1.1b:Q8_0 fits into 2.00 GiB: about 30.[0-9] tok/s (' ||
    fail "fits: $(cat out)"
grep -q '^  KV cache .* 1001 positions, f16$' out || fail "KV cache: $(cat out)"
grep -q '^  limit *2.00 GiB  --mem$' out || fail "limit: $(cat out)"
grep -q '^Largest context without streaming: 2048 tokens, the model' out ||
    fail "context: $(cat out)"
[ ! -e cache ] || fail "a model was made"

plan -m tinyllama-1.1b:Q8_0 --mem 700M --json >streams.json
[ "$(value verdict streams.json)" = streams ] || fail "streams: $(cat streams.json)"
[ "$(value weights streams.json)" = stream ] || fail "weights: $(cat streams.json)"
[ "$(value packed_ctx streams.json)" = 0 ] || fail "context: $(cat streams.json)"
streamed=$(value streamed_bytes streams.json) needed=$(value needed_bytes streams.json)
[ "$streamed" -gt 400000000 ] && [ "$streamed" -lt 900000000 ] || fail "bytes: $streamed"
[ "$needed" -le $((700 << 20)) ] || fail "needed: $needed"
# at 1 GB/s, and the memory is faster
awk -v b="$streamed" -v s="$(value tok_per_s streams.json)" \
    'BEGIN { exit !(s * b / 1e9 > 0.99 && s * b / 1e9 < 1.01) }' || fail "speed: $(cat streams.json)"
plan -m tinyllama-1.1b:Q8_0 --mem 700M >out
grep -q '^  streamed .* read again for every token' out || fail "table: $(cat out)"

# more memory streams less; a longer context more
[ "$(value streamed_bytes <(plan -m tinyllama-1.1b:Q8_0 --mem 900M --json))" -lt "$streamed" ] ||
    fail "900M streams no less"
[ "$(value streamed_bytes <(plan -m tinyllama-1.1b:Q8_0 --mem 700M --ctx 4000 --json))" -gt "$streamed" ] ||
    fail "a context of 4000 streams no more"

# ---- what was asked for instead of auto
plan -m tinyllama-1.1b:Q8_0 --mem 700M --weights mmap >out
head -n 1 out | grep -q 'does not fit into 700 MiB as a mapped file' || fail "mmap: $(cat out)"
code=0
plan -m tinyllama-1.1b:Q8_0 --mem 700M --weights packed >out || code=$?
[ $code = 1 ] || fail "packed: exit $code"
head -n 1 out | grep -q 'does not fit into 700 MiB: it needs 1.[0-9]* GiB$' || fail "packed: $(cat out)"
code=0
plan -m tinyllama-1.1b:Q8_0 --mem 150M --weights stream >out || code=$?
[ $code = 1 ] || fail "stream in 150M: exit $code, $(cat out)"
grep -q 'with all layers *$\|with all layers streamed' out || fail "least: $(cat out)"

# ---- sliding windows keep less
[ "$(value kv_bytes <(plan -m gemma-2-9b:Q4_0 --ctx 8000 --mem 100G --weights mmap --json))" -lt \
    $((2 * 2 * 42 * 8 * 256 * 8000)) ] || fail "windows are not counted"

# ---- a file, and roofs measured here
"$BENCH" synth nano Q4_0 -o nano.gguf >/dev/null
"$BENCH" plan -m nano.gguf -t 1 >out
head -n 1 out | grep -q '^nano.gguf fits into ' || fail "a file: $(cat out)"
grep -q '^  roofs *measured now$' out || fail "roofs: $(cat out)"
"$BENCH" plan -m nano.gguf -t 1 --json | grep -q '"verdict": "fits"' || fail "JSON"

# ---- wrong input
refused 2 "name the model" plan
refused 2 "nowhere.gguf" plan -m nowhere.gguf
refused 2 "--mem: '6X' is not a size" plan -m nano:Q4_0 --mem 6X
refused 2 "--ctx" plan -m nano:Q4_0 --ctx -1
refused 2 "a file" plan -m nano.gguf --weights memory
refused 2 "absent.json" plan -m nano:Q4_0 --machine absent.json
echo '{}' >empty.json
refused 2 "empty.json holds no measured read bandwidth" plan -m nano:Q4_0 --machine empty.json
head -c 300 nano.gguf >cut.gguf
refused 2 "cut.gguf" plan -m cut.gguf
