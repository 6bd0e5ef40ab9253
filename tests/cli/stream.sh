#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A model larger than its limit. bench plan: what fits, what is streamed and how fast, from
# shapes and files that are not run, with the speeds of a made-up machine. Then measured and
# swept with streamed weights: the row says what was read, and that is what the plan said.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache
threads=$(threads_for 2)

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
head -n 1 out | grep -q '^tinyllama-1.1b:Q8_0 fits into 2.00 GiB: about 3[12].[0-9] tok/s (' ||
    fail "fits: $(cat out)"
grep -q '^  KV cache .* 1001 positions, f16$' out || fail "KV cache: $(cat out)"
grep -q '^  limit *2.00 GiB  --mem$' out || fail "limit: $(cat out)"
grep -q '^Largest context without streaming: 2048 tokens, the model' out ||
    fail "context: $(cat out)"
[ ! -e cache ] || fail "a model was made"
# whatever cache is reported here: machine.json is of a machine whose cache it does not have
HWLOC_SYNTHETIC="package:1 L3:1(size=$((1126 << 20))) core:2 pu:1" \
    plan -m tinyllama-1.1b:Q8_0 --mem 2G --ctx 1000 >described
diff out described || fail "another cache than the file's"

# the context that is usual, and no more than the model's
plan -m tinyllama-1.1b:Q8_0 --mem 2G >out
head -n 2 out | tr '\n' ' ' | grep -q ' at context depth 2048 ' || fail "the model's context: $(cat out)"
plan -m yi-1.5-9b:Q4_0 --mem 9G >out
head -n 2 out | tr '\n' ' ' | grep -q ' at context depth 4096 ' || fail "the usual context: $(cat out)"

plan -m tinyllama-1.1b:Q8_0 --mem 700M --ctx 0 --json >streams.json
[ "$(value verdict streams.json)" = streams ] || fail "streams: $(cat streams.json)"
[ "$(value weights streams.json)" = stream ] || fail "weights: $(cat streams.json)"
[ "$(value packed_ctx streams.json)" = 0 ] || fail "context: $(cat streams.json)"
streamed=$(value streamed_bytes streams.json) needed=$(value needed_bytes streams.json)
[ "$streamed" -gt 400000000 ] && [ "$streamed" -lt 900000000 ] || fail "bytes: $streamed"
[ "$needed" -le $((700 << 20)) ] || fail "needed: $needed"
# at 1 GB/s, and the memory is faster: 0.3 of its time is not hidden
awk -v b="$streamed" -v c="$(value compute_s streams.json)" -v s="$(value tok_per_s streams.json)" \
    'BEGIN { t = s * (b / 1e9 + 0.3 * c); exit !(t > 0.99 && t < 1.01) }' || fail "speed: $(cat streams.json)"
plan -m tinyllama-1.1b:Q8_0 --mem 700M --ctx 0 >out
grep -q '^  streamed .* read again for every token' out || fail "table: $(cat out)"

# more memory streams less; a longer context more
[ "$(value streamed_bytes <(plan -m tinyllama-1.1b:Q8_0 --mem 900M --ctx 0 --json))" -lt "$streamed" ] ||
    fail "900M streams no less"
[ "$(value streamed_bytes <(plan -m tinyllama-1.1b:Q8_0 --mem 700M --ctx 4000 --json))" -gt "$streamed" ] ||
    fail "a context of 4000 streams no more"

# ---- what was asked for instead of auto
plan -m tinyllama-1.1b:Q8_0 --mem 700M --weights mmap >out
head -n 1 out | grep -q 'does not fit into 700 MiB as a mapped file' || fail "mmap: $(cat out)"
code=0
plan -m tinyllama-1.1b:Q8_0 --mem 700M --weights packed >out || code=$?
[ $code = 1 ] || fail "packed: exit $code"
head -n 2 out | tr '\n' ' ' | grep -q 'does not fit into 700 MiB: it needs 1.[0-9]* GiB at context depth 2048 $' || fail "packed: $(cat out)"
code=0
plan -m tinyllama-1.1b:Q8_0 --mem 150M --weights stream >out || code=$?
[ $code = 1 ] || fail "stream in 150M: exit $code, $(cat out)"
tr -s '\n ' ' ' <out | grep -q 'with all layers streamed' || fail "least: $(cat out)"

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
rm nano.gguf cut.gguf

# ---- measured: 48 layers of 3.1 MB
cat >deep.yaml <<'EOF'
arch: llama
n_layers: 48
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

code=0
"$BENCH" decode -m deep.gguf -t $threads -n 24 --budget 3 --mem 160M --all >row 2>err || code=$?
if [ "$code" = 3 ]; then
    echo "skipped: $(cat err)"
    exit 77
fi
[ "$code" = 0 ] || fail "exit $code: $(cat err row)"

# ---- auto streams, and reads what was planned
[ "$(field residency row)" = stream ] || fail "not streamed: $(cat row)"
[ "$(field weights_asked row)" = auto ] || fail "not asked for auto: $(cat row)"
n=$(field n_streamed row) planned=$(field streamed_bytes row) read=$(field disk_bytes_per_token row)
[ "$n" -ge 2 ] && [ "$n" -le 48 ] || fail "$n layers are streamed"
[ "$planned" -ge $((n * 3000000)) ] || fail "$planned bytes of $n layers"
[ $((read * 100)) -ge $((planned * 98)) ] && [ $((read * 100)) -le $((planned * 102)) ] ||
    fail "$read bytes were read for a token, planned were $planned"
grep -qE '^disk_way +(pread|io_uring), (direct|page cache), [1-9][0-9]* of ' row || fail "way: $(cat row)"
# behind the fence, too, where a program may use io_uring at all
if awk '$1 == "Seccomp:" { exit $2 }' /proc/self/status && [ "$(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null || echo 0)" = 0 ] &&
    printf '5.10\n%s\n' "$(uname -r)" | sort -C -V; then
    grep -q '^disk_way *io_uring, ' row || fail "not by io_uring: $(cat row)"
fi
[ "$(field cached_bytes row)" = 0 ] || fail "the cache was warm: $(cat row)"
peak=$(field mem_peak_bytes row)
[ "$peak" -le $((160 << 20)) ] || fail "peak: $peak"
resident=$(field mem_resident_bytes row) memory=$(field mem_planned_bytes row)
[ "$resident" -le $((memory + (24 << 20))) ] || fail "resident $resident, planned $memory"

# ---- bench plan says the same
"$BENCH" plan -m deep.gguf -t $threads --mem 160M --ctx 0 --json >plan.json
[ "$(value n_streamed plan.json)" = "$n" ] || fail "plan: $(cat plan.json)"
[ "$(value streamed_bytes plan.json)" = "$planned" ] || fail "plan: $(cat plan.json)"

# ---- where the file fits, but not beside all of the reserve, it is mapped
"$BENCH" plan -m deep.gguf -t $threads --mem 180M --ctx 0 --json >plan.json
[ "$(value weights plan.json)" = mmap ] && [ "$(value verdict plan.json)" = fits ] || fail "180M: $(cat plan.json)"
[ "$(value packed_ctx plan.json)" -gt 0 ] || fail "180M: $(cat plan.json)"
"$BENCH" decode -m deep.gguf -t $threads -n 24 --budget 3 --mem 180M --all >row 2>err || fail "180M: $(cat err row)"
[ "$(field residency row)" = mmap ] || fail "180M: $(cat row)"
awk -v n="$(field refaults_per_token row)" 'BEGIN { exit !(n < 100) }' || fail "180M pages: $(cat row)"

# ---- without a limit nothing is streamed, whatever was asked for
"$BENCH" decode -m deep.gguf -t $threads -n 8 --budget 1 --weights stream --all >row 2>err || fail "no limit: $(cat err row)"
[ "$(field residency row)" = stream ] || fail "not as asked: $(cat row)"
[ "$(field n_streamed row)" = 0 ] || fail "streamed without need: $(cat row)"
! grep -q '^disk_bytes_per_token' row || fail "read without need: $(cat row)"

# ---- prefill and a text
"$BENCH" decode -m deep.gguf -t $threads --prefill 64 -n 3 --budget 3 --mem 160M --all >row 2>err || fail "prefill: $(cat err row)"
read=$(field disk_bytes_per_token row)
[ $((read * 64)) -ge $((planned * 95 / 100)) ] && [ $((read * 64)) -le $((planned * 115 / 100)) ] ||
    fail "a prompt of 64 tokens is one pass: $read bytes per token, planned $planned"

# ---- less than the least
code=0
"$BENCH" decode -m deep.gguf -t $threads -n 8 --weights stream --mem 90M --all >row 2>err || code=$?
[ "$code" = 1 ] || fail "90M: exit $code, $(cat row err)"
[ "$(field status row)" = no_fit ] || fail "90M: $(cat row)"
grep -q 'with all layers streamed' row || fail "90M: $(cat row)"

# ---- limits and ways to hold weights, swept
"$BENCH" sweep -m deep.gguf --threads $threads --ctx 0 --prefill none -n 6 --budget 1 --mem 130M,160M,none \
    --weights mmap,auto --no-probe --launches 1 --max-launches 1 --repeats 0 -o sweep >out 2>err ||
    fail "sweep: $(cat err)"
[ "$(wc -l <sweep/sweep.csv)" = 7 ] || fail "rows: $(cat sweep/sweep.csv)"
grep -q "/auto\|deep/decode/t$threads/spread/ctx0/130M" sweep/sweep.csv || fail "points: $(cut -d, -f2 sweep/sweep.csv)"
if command -v gnuplot >/dev/null; then
    grep -q "^title_text = 'Decode speed by memory limit, $threads threads\{0,1\}, context depth 0'$" sweep/decode_limit.gp ||
        fail "chart: $(ls sweep)"
    draws_again sweep decode_limit
fi

# ---- in a container: generate streams, too, says so, and says the same
if memory_group stream; then
    trap 'rmdir "$box"' EXIT
    "$BENCH" generate -m deep.gguf -t $threads -p "1 2 3" -n 12 --weights mmap >mapped 2>err || fail "mmap: $(cat err)"
    # 88 MiB are kept for the process
    echo $((160 << 20)) >"$limit"
    (
        echo "$BASHPID" >"$box/cgroup.procs"
        exec "$BENCH" generate -m deep.gguf -t $threads -p "1 2 3" -n 12
    ) >streamed 2>err || fail "generate: $(cat err)"
    grep -q 'of 48 layers (.*) are read from disk for every token' err ||
        fail "not streamed within 160 MiB: $(cat err)"
    cmp mapped streamed || fail "streamed weights say something else"

    # ---- the limit is lowered while a point is measured: its roof is not read from what
    # was given back, nor from the little that is left
    echo $((560 << 20)) >"$limit"
    (
        echo "$BASHPID" >"$box/cgroup.procs"
        exec "$BENCH" decode -m deep.gguf -t $threads -n 100000 --budget 4 --all
    ) >row 2>err &
    decoder=$!
    held=0
    for _ in $(seq 600); do # until the weights are there
        used=$(cat "$box"/memory.current "$box"/memory.usage_in_bytes 2>/dev/null | head -n 1)
        cached=$(awk '/^(in)?active_file / { n += $2 } END { print n + 0 }' "$box/memory.stat")
        held=$((used - cached))
        [ $held -le $((145 << 20)) ] && kill -0 $decoder 2>/dev/null || break
        sleep 0.1
    done
    sleep 1
    echo $((held + (12 << 20))) >"$limit" || fail "the limit cannot be lowered to $held"
    code=0
    wait $decoder || code=$?
    [ $code = 0 ] || fail "less memory: exit $code: $(cat row err)"
    [ "$(field reclaimed_bytes row)" -gt 0 ] || fail "nothing was given back: $(cat row err)"

    # ---- another program takes the memory: weights are given back, and it goes on
    echo $((560 << 20)) >"$limit"
    (
        echo "$BASHPID" >"$box/cgroup.procs"
        exec "$BENCH" generate -m deep.gguf -t $threads -p "1 2 3" --ctx 2000 -n 1900
    ) >out 2>err &
    talker=$!
    for _ in $(seq 100); do
        [ "$(wc -c <out)" -gt 100 ] && break
        sleep 0.1
    done
    # all but 10 MiB: tail keeps a line without an end in memory. Where the kernel ends it
    # before anything was given back, it takes the memory again.
    for _ in 1 2 3; do
        used=$(cat "$box"/memory.current "$box"/memory.usage_in_bytes 2>/dev/null | head -n 1)
        cached=$(awk '/^(in)?active_file / { n += $2 } END { print n + 0 }' "$box/memory.stat")
        (
            echo "$BASHPID" >"$box/cgroup.procs"
            { head -c $(((560 << 20) - used + cached - (10 << 20))) /dev/zero; sleep 5; } | tail -n 1 >/dev/null
        ) 2>/dev/null &
        taker=$!
        while kill -0 $taker 2>/dev/null && kill -0 $talker 2>/dev/null; do
            grep -q 'memory is lacking, so .* of weights were given back' err && break 2
            sleep 0.1
        done
    done
    grep -q 'memory is lacking, so .* of weights were given back' err || fail "nothing was given back: $(cat err)"
    said=$(wc -c <out)
    sleep 1
    [ "$(wc -c <out)" -gt "$said" ] || fail "it does not go on: $(cat err)"
    kill -INT $talker 2>/dev/null || true
    code=0
    wait $talker || code=$?
    [ $code = 130 ] || [ $code = 0 ] || fail "exit $code: $(cat err)"
    wait
fi
rm deep.gguf
