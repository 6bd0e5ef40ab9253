#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A model larger than its limit: planned, measured and swept with streamed weights. The
# row says what was read, and that is what the plan said.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache

# 24 layers of 3.4 MB
cat >deep.yaml <<'EOF'
arch: llama
n_layers: 24
n_embd: 512
n_ff: 1408
n_heads: 8
n_kv_heads: 4
head_dim: 64
n_vocab: 1024
n_ctx_train: 2048
rope_base: 10000
norm_eps: 1e-5
EOF
"$BENCH" synth ./deep.yaml Q8_0 -o deep.gguf >/dev/null
sync deep.gguf
field() { awk -v name="$1" '$1 == name { print $2 }' "$2"; }
value() {
    sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$2" | head -n 1
}

code=0
"$BENCH" decode -m deep.gguf -t 2 -n 24 --budget 3 --mem 140M --all >row 2>err || code=$?
if [ "$code" = 3 ]; then
    echo "skipped: $(cat err)"
    exit 77
fi
[ "$code" = 0 ] || fail "exit $code: $(cat err row)"

# ---- auto streams, and reads what was planned
[ "$(field residency row)" = stream ] || fail "not streamed: $(cat row)"
[ "$(field weights_asked row)" = auto ] || fail "not asked for auto: $(cat row)"
n=$(field n_streamed row) planned=$(field streamed_bytes row) read=$(field disk_bytes_per_token row)
[ "$n" -ge 2 ] && [ "$n" -le 24 ] || fail "$n layers are streamed"
[ "$planned" -ge $((n * 3000000)) ] || fail "$planned bytes of $n layers"
[ $((read * 100)) -ge $((planned * 98)) ] && [ $((read * 100)) -le $((planned * 102)) ] ||
    fail "$read bytes were read for a token, planned were $planned"
grep -qE '^disk_way +(pread|io_uring), (direct|page cache), [1-9][0-9]* of ' row || fail "way: $(cat row)"
[ "$(field cached_bytes row)" = 0 ] || fail "the cache was warm: $(cat row)"
peak=$(field mem_peak_bytes row)
[ "$peak" -le $((140 << 20)) ] || fail "peak: $peak"
resident=$(field mem_resident_bytes row) memory=$(field mem_planned_bytes row)
[ "$resident" -le $((memory + (24 << 20))) ] || fail "resident $resident, planned $memory"

# ---- bench plan says the same
"$BENCH" plan -m deep.gguf -t 2 --mem 140M --json >plan.json
[ "$(value n_streamed plan.json)" = "$n" ] || fail "plan: $(cat plan.json)"
[ "$(value streamed_bytes plan.json)" = "$planned" ] || fail "plan: $(cat plan.json)"

# ---- without a limit nothing is streamed, whatever was asked for
"$BENCH" decode -m deep.gguf -t 2 -n 8 --budget 1 --weights stream --all >row 2>err || fail "no limit: $(cat err row)"
[ "$(field residency row)" = stream ] || fail "not as asked: $(cat row)"
[ "$(field n_streamed row)" = 0 ] || fail "streamed without need: $(cat row)"
! grep -q '^disk_bytes_per_token' row || fail "read without need: $(cat row)"

# ---- prefill and a text
"$BENCH" decode -m deep.gguf -t 2 --prefill 64 -n 3 --budget 3 --mem 140M --all >row 2>err || fail "prefill: $(cat err row)"
read=$(field disk_bytes_per_token row)
[ $((read * 64)) -ge $((planned * 95 / 100)) ] && [ $((read * 64)) -le $((planned * 115 / 100)) ] ||
    fail "a prompt of 64 tokens is one pass: $read bytes per token, planned $planned"

# ---- less than the least
code=0
"$BENCH" decode -m deep.gguf -t 2 -n 8 --weights stream --mem 90M --all >row 2>err || code=$?
[ "$code" = 1 ] || fail "90M: exit $code, $(cat row err)"
[ "$(field status row)" = no_fit ] || fail "90M: $(cat row)"
grep -q 'with all layers streamed' row || fail "90M: $(cat row)"

# ---- limits and ways to hold weights, swept
"$BENCH" sweep -m deep.gguf --threads 2 --ctx 0 --prefill none -n 6 --budget 1 --mem 130M,150M,none \
    --weights mmap,auto --no-probe --launches 1 --max-launches 1 --repeats 0 -o sweep >out 2>err ||
    fail "sweep: $(cat err)"
[ "$(wc -l <sweep/sweep.csv)" = 7 ] || fail "rows: $(cat sweep/sweep.csv)"
grep -q '/auto\|deep/decode/t2/spread/ctx0/130M' sweep/sweep.csv || fail "points: $(cut -d, -f2 sweep/sweep.csv)"
if command -v gnuplot >/dev/null; then
    grep -q "^title_text = 'Decode speed by memory limit, 2 threads, context depth 0'$" sweep/decode_limit.gp ||
        fail "chart: $(ls sweep)"
    draws_again sweep decode_limit
fi
rm deep.gguf
