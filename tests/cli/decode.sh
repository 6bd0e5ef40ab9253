#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench decode: one point of a tiny model, as text and JSON; the command in the
# row repeats it; wrong input is one sentence.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache
threads=$(threads_for 2)

# value FILE COLUMN: of a row printed as text
value() {
    awk -v name="$2" '$1 == name { print $2 }' "$1"
}

# ---- for people: one sentence first, then groups of lines, 79 columns
"$BENCH" decode -m nano:Q4_K_M -t $threads --ctx 16 -n 12 --budget 20 >shown || fail "exit $?"
head -n 1 shown | grep -qE '^[0-9.]+ tok/s \([0-9.]+ to [0-9.]+\), [0-9]+ % of the roof, [0-9.]+ MiB resident, ?' ||
    fail "headline: $(cat shown)"
for group in Setting Speed "The roof" Memory Disturbances Repeat; do
    grep -qx "$group" shown || fail "no group $group: $(cat shown)"
done
grep -q "^Every column: --all or --json.$" shown || fail "no way to the rest: $(cat shown)"
[ "$(sed '/^  bench decode /d' shown | wc -L)" -le 79 ] || fail "too wide: $(cat shown)"

# ---- a row as text: every column is one that `bench fields` lists
"$BENCH" decode -m nano:Q4_K_M -t $threads --ctx 16 -n 12 --budget 20 --all >row || fail "exit $?"
[ "$(value row status)" = ok ] || fail "status: $(cat row)"
[ "$(value row n_samples)" = 12 ] || fail "samples: $(cat row)"
[ "$(value row ctx)" = 16 ] || fail "depth: $(cat row)"
[ "$(value row quant)" = Q4_K_M ] || fail "quant: $(cat row)"
for column in tok_per_s bytes_per_token roof_gbps mbu lat_p50_ms mem_peak_bytes; do
    awk -v name=$column '$1 == name && $2 > 0 { ok = 1 } END { exit !ok }' row ||
        fail "no $column: $(cat row)"
done
[ -z "$(value row lat_p95_ms)" ] || fail "a percentile of twelve samples: $(cat row)"
"$BENCH" fields --json >fields.json
while read -r name _; do
    grep -q "\"$name\"" fields.json || fail "an unknown column: $name"
done <row

# Where the cache gives more than memory's ceiling and nothing else is near, the limiter is
# left open, and the row says that it is above the ceiling, unless the intervals of a busy
# machine leave that open.
grep -qE "^limiter_why +(.*% of (the|memory's) bandwidth ceiling.*, )?[0-9]+ % of the arithmetic peak, [0-9]+ % waiting|^limiter_why +[a-z]+" row ||
    { [ -z "$(value row limiter)$(value row limiter_why)" ] && { grep -q "^detail .*above the memory roof" row ||
        awk '$1 == "mbu" { high = $2 > 1 } $1 == "mbu_lo" { low = $2 <= 1 } END { exit !(high && low) }' row; }; } ||
    fail "no evidence for the limiter: $(cat row)"

# ---- roof and share agree: mbu = tok_per_s * bytes_per_token / roof; all have intervals
"$BENCH" decode -m nano:Q4_K_M -t $threads --ctx 16 -n 12 --budget 20 --json >row.json
python3 - <<'EOF' || fail "mbu does not follow from the other columns: $(cat row.json)"
import json
r = json.load(open("row.json"))
mbu = r["tok_per_s"] * r["bytes_per_token"] / (r["roof_gbps"] * 1e9)
assert abs(mbu / r["mbu"] - 1) < 1e-6, mbu
for name in "roof_gbps", "mbu":
    assert 0 < r[name + "_lo"] <= r[name] <= r[name + "_hi"], name
EOF

# ---- a depth that the model was not made for is said
"$BENCH" decode -m "$SRC/tests/data/models/stories260K-f32.gguf" -t 1 --ctx 600 -n 6 --json >deep.json
grep -q '"detail": "a depth of 600 is beyond the 512 tokens of context' deep.json ||
    fail "no word of the depth: $(cat deep.json)"

# ---- a closed standard output is an error, and no file takes its place
code=0
"$BENCH" decode -m nano:Q4_K_M -t 1 --ctx 0 -n 6 >&- 2>err || code=$?
[ "$code" = 2 ] && grep -q "standard output" err || fail "closed output: $code $(cat err)"

# ---- the command in the row measures the same point
command=$(sed -n 's/^command *bench //p' row)
# shellcheck disable=SC2086
"$BENCH" $command --all >again
[ "$(value again point)" = "$(value row point)" ] || fail "another point: $command"

# ---- JSON, prefill, in memory, real prefill of the context
"$BENCH" decode -m nano:Q8_0 --prefill 24 -n 3 --batch 16 --json >prefill.json
grep -q '"kind": "prefill"' prefill.json || fail "no prefill"
"$BENCH" decode -m nano:Q8_0 --prefill 24 -n 3 --batch 16 >shown
head -n 1 shown | grep -qE '^[0-9.]+ tok/s, [0-9.]+ s to the first token \([0-9.]+ s with loading' ||
    fail "headline of prefill: $(cat shown)"
grep -q '"roof_gops": [1-9]' prefill.json || fail "no int8 peak"
grep -q '"mbu": null' prefill.json || fail "mbu of a prefill"
grep -q '"ttft_warm_s": [0-9]' prefill.json || fail "no time to first token"
grep -q '"kv_bytes_per_token": [1-9]' prefill.json || fail "no bytes of a position"
grep -q '"model_ctx": [1-9]' prefill.json || fail "no largest context"
"$BENCH" decode -m nano:Q4_0 --weights memory -t 1 --ctx 8 --ctx-prefill -n 8 --all >memory
[ "$(value memory residency)" = memory ] || fail "not in memory"
[ "$(value memory ctx_fill)" = prefill ] || fail "not prefilled"
[ ! -e "$SLMBENCH_CACHE/nano-Q4_0.gguf" ] || fail "a file was made for a model in memory"

# ---- several sequences at once: a token of each is a sample
"$BENCH" decode -m nano:Q4_0 --weights memory -t $threads --ctx 600 --sequences 4 --shared 512 -n 12 --all >several ||
    fail "exit $?"
awk '$1 == "n_sequences" && $2 == 4 || $1 == "n_shared" && $2 == 512 || $1 == "status" && $2 == "ok" { n++ }
     $1 == "tok_per_s" { rate = $2 }
     $1 == "lat_p50_ms" { ms = $2 }
     $1 == "roof_gops" { gops = $2 }
     END { exit !(n == 3 && rate * ms > 3700 && rate * ms < 4300 && gops > 0) }' several || fail "four sequences: $(cat several)"
"$BENCH" decode -m nano:Q4_0 --weights memory -t $threads --ctx 600 --sequences 4 --shared 512 -n 12 | tr -s ' \n' ' ' | grep -q 'depth 600.*4 sequences, the first 512 positions in common.* for each sequence' ||
    fail "four sequences are not said"
# a window's ring goes on in pages that were shared
"$BENCH" decode -m nano:Q4_0 --weights memory -t 1 --ctx 1100 --sequences 2 --shared 768 --kv-window 16 -n 2 --all >ring ||
    fail "what sequences share in a ring: $(cat ring)"
[ "$(value ring status)" = ok ] || fail "what sequences share in a ring: $(cat ring)"
refused 2 "leave out --prefill" decode -m nano:Q4_0 --weights memory --prefill 8 --sequences 2
refused 2 "at most the tokens of --ctx (16)" decode -m nano:Q4_0 --weights memory --ctx 16 --sequences 2 --shared 17
refused 2 "several --sequences (1)" decode -m nano:Q4_0 --weights memory --ctx 16 --shared 16
refused 2 "outside 1..1024" decode -m nano:Q4_0 --weights memory --sequences 1025

# ---- a prompt in chunks beside them
"$BENCH" decode -m nano:Q4_0 --weights memory -t $threads --ctx 16 --sequences 3 --chunk 200 -n 8 --all >chunks || fail "exit $?"
awk '$1 == "n_sequences" && $2 == 3 || $1 == "n_chunk" && $2 == 200 || $1 == "status" && $2 == "ok" { n++ }
     $1 == "tok_per_s" { rate = $2 }
     $1 == "chunk_tok_per_s" { prompt = $2 }
     $1 == "lat_p50_ms" { ms = $2 }
     $1 == "step_plain_ms" { plain = $2 }
     END { exit !(n == 3 && prompt * 3 > rate * 180 && prompt * 3 < rate * 220 && plain > 0 && plain < ms) }' chunks ||
    fail "chunks: $(cat chunks)"
"$BENCH" decode -m nano:Q4_0 --weights memory -t $threads --chunk 700 -n 2 | tr -s ' \n' ' ' | grep -q 'at the same time a prompt in chunks of 700 tokens.* per step .* without it .* of the prompt at the same time' ||
    fail "chunks are not said"
"$BENCH" decode -m nano:Q4_0 --weights memory -t 1 --sequences 4 -n 2 --all | grep -q '^status  *ok' ||
    fail "four sequences that begin at depth 0"
refused 2 "leave out --prefill" decode -m nano:Q4_0 --weights memory --prefill 8 --chunk 2
refused 2 "at most 1023" decode -m nano:Q4_0 --weights memory --sequences 1024 --chunk 2
"$BENCH" decode -m nano:Q4_0 --weights memory -t 1 -n 2 --all >named
[ "$(value named residency)" = memory ] || fail "not in memory: $(cat named)"
built_by=$("$BENCH" --version | sed 's/.*), //')
grep -qE '^(GNU|Clang) [0-9.]+ [A-Z]' <<<"$built_by" || fail "--version names no compiler: $built_by"
grep -q "^built_by  *$built_by\$" named || fail "the row does not name the compiler: $(cat named)"

# ---- packed weights: the row says so, and its command repeats it
"$BENCH" decode -m nano:Q4_K_M --weights packed -t $threads -n 8 --all >packed
[ "$(value packed status)" = ok ] || fail "packed: $(cat packed)"
[ "$(value packed residency)" = packed ] || fail "not packed: $(cat packed)"
grep -q "^command .* --weights packed" packed || fail "command: $(cat packed)"
[ "$(value row residency)" = packed ] || fail "it fits, and is not packed: $(cat row)"

# ---- quantised keys and values: less to read, and the command repeats it
"$BENCH" decode -m nano:Q4_K_M --kv-type q8_0 -t $threads --ctx 64 -n 8 --all >q8
"$BENCH" decode -m nano:Q4_K_M -t $threads --ctx 64 -n 8 --all >f16
[ "$(value q8 kv_type)" = q8_0 ] || fail "KV type: $(cat q8)"
[ "$(value f16 kv_type)" = f16 ] || fail "KV type: $(cat f16)"
grep -q "^command .* --kv-type q8_0" q8 || fail "command: $(cat q8)"
[ "$(value q8 bytes_per_token)" -lt "$(value f16 bytes_per_token)" ] ||
    fail "as many bytes as F16: $(cat q8)"

# ---- a window of the cache: at a depth beyond it as many bytes as at the window's
"$BENCH" decode -m nano:Q4_K_M -t $threads --ctx 2000 --kv-window 100 -n 8 --all >window
"$BENCH" decode -m nano:Q4_K_M -t $threads --ctx 104 -n 8 --all >full
[ "$(value window status)" = ok ] || fail "window: $(cat window)"
[ "$(value window kv_window)" = 100 ] || fail "window: $(cat window)"
grep -q "^command .* --kv-window 100" window || fail "command: $(cat window)"
[[ $(value window point) = */w100 ]] || fail "identity: $(cat window)"
[ "$(value window bytes_per_token)" = "$(value full bytes_per_token)" ] ||
    fail "bytes: $(value window bytes_per_token) and $(value full bytes_per_token)"
[ "$(value window kv_bytes_per_token)" = 0 ] || fail "it grows: $(cat window)"
! grep -q "^kv_window" full || fail "said without a window: $(cat full)"
"$BENCH" decode -m nano:Q4_K_M -t $threads --ctx 300 --ctx-prefill --kv-window 64 -n 4 --all >window
[ "$(value window status)" = ok ] || fail "window, prefill: $(cat window)"

# ---- int8 sums, where the CPU has them
code=0
"$BENCH" decode -m nano:Q4_K_M -t $threads --prefill 64 -n 3 --prefill-sums int8 --all >sums 2>err || code=$?
if [ "$code" = 0 ]; then
    [ "$(value sums prefill_sums)" = int8 ] || fail "sums: $(cat sums)"
    [[ $(value sums point) = */sums-int8 ]] || fail "identity: $(cat sums)"
    grep -q "^command .* --prefill-sums int8" sums || fail "command: $(cat sums)"
else
    grep -q "int8 sums in prefill need AVX-VNNI" sums err || fail "exit $code: $(cat sums err)"
fi

# ---- the profile adds up to the mean token, and names every operation
"$BENCH" decode -m nano:Q4_K_M -t $threads -n 12 --profile >profile
sed -n '/^Where the time/,$p' profile | grep -q "gate, up" || fail "no profile: $(cat profile)"
"$BENCH" decode -m nano:Q4_K_M -t $threads -n 12 --profile --json >profile.json
if command -v python3 >/dev/null; then
    python3 - <<'EOF' || fail "the profile does not add up: $(cat profile.json)"
import json
row = json.load(open("profile.json"))
p = row["profile"]
ops = {r["op"] for r in p["rows"]}
assert {"embed", "q, k, v", "attention", "attn out", "gate, up", "down", "output"} <= ops, ops
total = sum(r["work_ms"] + r["wait_ms"] for r in p["rows"])
assert 0 < total <= p["sample_ms"] * 1.0001, (total, p["sample_ms"])
assert total > 0.5 * p["sample_ms"], (total, p["sample_ms"])
weights = sum(r["bytes"] for r in p["rows"] if r["weights"])
assert 0.9 * row["bytes_per_token"] < weights <= row["bytes_per_token"], weights
EOF
fi
# after a pass of the roof between samples one token is decoded that is no sample
"$BENCH" decode -m nano:Q4_K_M -t 1 -n 1000000 --budget 2 --profile --json >passes.json
python3 - <<'EOF' || fail "no token after a pass of the roof"
import json
row = json.load(open("passes.json"))
n_more = row["profile"]["n_samples"] - row["n_samples"]
assert 1 <= n_more <= 4, n_more
EOF

# ---- of four experts a token takes two, and only they are multiplied with
moe=$SRC/tests/data/models/llama-moe.gguf
"$BENCH" decode -m "$moe" -t 1 -n 4 --json >moe_decode.json
"$BENCH" decode -m "$moe" -t 1 -n 4 --prefill 24 --batch 16 --json >moe_prefill.json
if command -v python3 >/dev/null; then
    python3 - <<'EOF' || fail "arithmetic of experts: $(cat moe_decode.json moe_prefill.json)"
import json
attention, expert, router, head = 128 * (2 * 128 + 2 * 64), 3 * 128 * 256, 4 * 128, 320 * 128
body = 2 * (attention + 2 * expert + router)
for name, n in ("decode", 1), ("prefill", 24):
    row = json.load(open(f"moe_{name}.json"))
    ops, wanted = row["gops"] * row["lat_p50_ms"] * 1e6, 2 * (n * body + head)
    assert abs(ops / wanted - 1) < 1e-3, (name, ops, wanted)
EOF
fi

# ---- a file of one's own; a budget of almost nothing gives what there is
"$BENCH" synth nano Q6_K -o own.gguf >/dev/null
"$BENCH" decode -m own.gguf -n 1000000 --budget 0.01 --placement none --all >own
[ "$(value own model)" = own ] || fail "model name: $(cat own)"
[ "$(value own quant)" = Q6_K ] || fail "quant: $(cat own)"
[ "$(value own n_samples)" -ge 1 ] || fail "no samples: $(cat own)"

# ---- threads: another count for prefill, and too many of them
"$BENCH" decode -m nano:Q4_K_M -t 1 --threads-prefill 3 --placement none --ctx 20 \
    --ctx-prefill -n 4 --all >counts
[ "$(value counts n_threads)" = 1 ] || fail "threads of decode: $(cat counts)"
[ "$(value counts n_threads_prefill)" = 3 ] || fail "of prefill: $(cat counts)"
grep -q "^command .* -t 1 --threads-prefill 3 " counts || fail "command: $(cat counts)"
"$BENCH" decode -m nano:Q4_K_M -t 1 --threads-prefill 3 --placement none --prefill 8 \
    -n 2 --all >counts
[ "$(value counts n_threads)" = 3 ] || fail "threads of prefill: $(cat counts)"
! grep -q "^n_threads_prefill" counts || fail "said twice: $(cat counts)"
"$BENCH" decode -m nano:Q4_K_M -t 999 -n 2 --all >many
grep -q "^detail *999 threads share [0-9]* CPU" many || fail "no word: $(cat many)"

# ---- wrong input
refused 2 "name the model" decode
refused 2 "nowhere.gguf" decode -m nowhere.gguf
refused 2 "--ctx" decode -m nano:Q4_0 --ctx -1
refused 2 "names 1 CPU for 2 threads" decode -m nano:Q4_0 --cpus 0 --threads-prefill 2
refused 2 "names 2 CPUs for 1 thread;" decode -m nano:Q4_0 --cpus 0,1 -t 1
refused 2 "a file" decode -m own.gguf --weights memory
refused 2 "auto, mmap, packed, stream or memory" decode -m own.gguf --weights elsewhere
refused 2 "this machine has" decode -m nano:Q4_0 --mem 900T
head -c 1000 own.gguf >cut.gguf
refused 2 "cut.gguf" decode -m cut.gguf
echo '{"point": {}}' | "$BENCH" worker >out && fail "a point without settings"
grep -q "settings are not as expected" out || fail "no error: $(cat out)"

# ---- who opens the model is inside the limit, has nothing to abuse, and may write nowhere
mkdir mine theirs
chmod 755 . mine theirs
cp "$SRC/tests/data/models/stories260K-f32.gguf" mine/model.gguf
cp "$SRC/tests/data/models/stories260K-f32.gguf" theirs/model.gguf
chmod 600 mine/model.gguf
fenced() { # MODEL: what /proc says of the process that measures it, as KEY=VALUE lines
    SLMBENCH_LOCK=none "$BENCH" decode -m "$1" -n 1000000 --budget 30 >out 2>err &
    local bench=$! worker="" state=""
    for _ in $(seq 600); do
        worker=$(worker_of $bench)
        [ -z "$worker" ] || state=$(cat /proc/$worker/status 2>/dev/null || true)
        ! grep -q "^Seccomp:.*2" <<<"$state" || break
        kill -0 $bench 2>/dev/null || break
        sleep 0.05
    done
    kill -INT $bench
    wait $bench || true
    sed -n 's/^\(Uid\|CapPrm\|CapEff\|NoNewPrivs\|Seccomp\):[[:space:]]*\([^[:space:]]*\).*/\1=\2/p' <<<"$state"
}
fenced theirs/model.gguf >state
for want in CapPrm=0000000000000000 CapEff=0000000000000000 NoNewPrivs=1 Seccomp=2; do
    grep -qx "$want" state || fail "the measuring process: no $want: $(cat state out err)"
done
if [ "$(id -u)" = 0 ] && su -s /bin/sh nobody -c "test -r '$PWD/theirs/model.gguf'" 2>/dev/null; then
    grep -qx Uid=65534 state || fail "root measures as root: $(cat state)"
    SUDO_UID=1234 SUDO_GID=1234 fenced theirs/model.gguf >state
    grep -qx Uid=1234 state || fail "not who called sudo: $(cat state)"
    fenced mine/model.gguf >state # nobody else may read it
    grep -qx Uid=0 state && grep -qx CapEff=0000000000000000 state ||
        fail "a model of root's own: $(cat state)"
fi

# A head that claims much is parsed where memory has its limit.
if "$BENCH" decode -m theirs/model.gguf --mem 64M --budget 1 >out 2>err; then
    mkdir huge
    python3 - <<'END'
import json
cfg = dict(model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=64,
           num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
           vocab_size=32, max_position_embeddings=64, rms_norm_eps=1e-5)
json.dump(cfg, open("huge/config.json", "w"))
head = ('{"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":[' + "0," * 9000000 + '0]}}').encode()
open("huge/model.safetensors", "wb").write(len(head).to_bytes(8, "little") + head + bytes(8))
END
    code=0
    "$BENCH" decode -m huge --mem 64M --budget 1 >out 2>err || code=$?
    [ $code = 2 ] && grep -q "values in .* bytes; at most" err ||
        fail "a large head: exit $code: $(cat out err)"
fi
