#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench quality: the perplexity that llama.cpp finds, KV types in their order, going on
# after kill -9 and Ctrl-C, and what it refuses. No figure here depends on speed.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache
models=$SRC/tests/data/models
model=$models/shakespeare3M-f16.gguf

# column FILE NAME: values, one per row (no cell of these columns is quoted)
column() {
    awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i }
                          NR > 1 { print $c }' "$1"
}

holds() { # holds 'EXPRESSION': arithmetic of awk
    awk "BEGIN { exit !($1) }" || fail "not so: $1"
}

# ---- all of the text: llama.cpp (build 4748) gives 11.920294 +- 0.184
"$BENCH" quality -m "$model" -o whole >out 2>err || fail "exit $?: $(cat err)"
[ ! -s err ] || fail "no terminal, and yet: $(cat err)"
ppl=$(column whole/quality.csv perplexity)
holds "$ppl > 11.920294 * 0.999 && $ppl < 11.920294 * 1.001"
se=$(column whole/quality.csv perplexity_se)
holds "$se > 0.1835 && $se < 0.1845"
[ "$(column whole/quality.csv n_scored)" = 17399 ] || fail "$(cat whole/quality.csv)"
[ -z "$(column whole/quality.csv kl_mean)" ] || fail "a divergence without reference"
grep -q "137 chunks of 256 tokens, 17399 positions" out || fail "$(cat out)"
[ ! -e cache ] || fail "predictions were kept that nobody needs"
[ "$(tail -n 1 out)" = "speed against quality: bench sweep -m $model --quality whole" ] ||
    fail "no next step: $(cat out)"
SLMBENCH_PROGRESS=0.001 "$BENCH" quality -m "$model" --chunks 4 -o lines >out 2>err || fail "exit $?: $(cat err)"
grep -q "^bench: quality: [0-9]* % done.*; .*, chunk [0-9]* of 4" err || fail "no progress: $(cat err)"
# what is scored is not scored again: fewer chunks are the beginning of it
touch whole/sweep.csv # beside a sweep its charts show it
"$BENCH" quality -m "$model" -o whole --chunks 20 >out
[ "$(tail -n 1 out)" = "speed against quality: bench plot whole" ] || fail "no next step: $(cat out)"
rm whole/sweep.csv
[ "$(column whole/quality.csv perplexity | wc -l)" = 2 ] || fail "$(cat whole/quality.csv)"

# ---- other weights are another model, also where the time of the file was kept
cp -p "$model" kept.gguf
touch -d @1000000000 kept.gguf
"$BENCH" quality -m kept.gguf -o kept --chunks 1 >out || fail "$(cat out)"
head -c 2000 /dev/zero | dd of=kept.gguf bs=1 seek=$(($(wc -c <kept.gguf) - 40000)) conv=notrunc 2>err
touch -d @1000000000 kept.gguf
"$BENCH" quality -m kept.gguf -o kept --chunks 1 >out || fail "$(cat out)"
"$BENCH" quality -m kept.gguf -o other --chunks 1 >out || fail "$(cat out)"
[ "$(column kept/quality.csv perplexity | tail -n 1)" = "$(column other/quality.csv perplexity)" ] ||
    fail "figures of other weights: $(cat kept/quality.csv other/quality.csv)"

# ---- a window diverges by less the longer it is, and goes on where no context reaches
"$BENCH" quality -m "$model" --ctx 128 --chunks 12 --kv-window 16,64,0,124 \
    --cache-dir other-cache -o windows >out
paste -d' ' <(column windows/quality.csv kv_window) <(column windows/quality.csv kl_mean) >rows
[ "$(cut -d' ' -f1 rows | tr '\n' ' ')" = " 16 64 124 " ] || fail "windows: $(cat rows)"
read -r none w16 w64 w124 <<<"$(cut -d' ' -f2 rows | tr '\n' ' ')"
holds "$none == 0 && $w16 > $w64 && $w64 > 1e-4 && $w64 < 0.1 && $w124 < 1e-8"
grep -q -- "--kv-window 64" windows/quality.csv || fail "command: $(cat windows/quality.csv)"
"$BENCH" quality -m "$model" --ctx 1024 --chunks 2 --kv-window 100,252 -o long >out ||
    fail "beyond the context: $(cat out)"
paste -d' ' <(column long/quality.csv kv_window) <(column long/quality.csv perplexity) \
    <(column long/quality.csv reference) >rows
while read -r window perplexity reference; do
    holds "$perplexity < 20" && [ -z "$reference" ] || fail "$window: $(cat rows)"
done <rows

# ---- int8 sums diverge a little, and are named
if "$BENCH" quality -m "$model:Q4_K_M" --ctx 128 --chunks 4 --prefill-sums exact,int8 \
    --cache-dir other-cache -o sums >out 2>err; then
    [ "$(column sums/quality.csv prefill_sums | tr '\n' ' ')" = " int8 " ] || fail "sums: $(cat sums/quality.csv)"
    read -r none kl <<<"$(column sums/quality.csv kl_mean | tr '\n' ' ')"
    holds "$none == 0 && $kl > 1e-6 && $kl < 0.01"
    grep -q -- "--prefill-sums int8" sums/quality.csv || fail "command: $(cat sums/quality.csv)"
else
    grep -q "int8 sums in prefill need AVX-VNNI or AVX512-VNNI" err || fail "exit $?: $(cat err)"
fi

# ---- a copy diverges by nothing, keys and values of fewer bits by more
cp "$model" copy-f16.gguf
common=(--reference "$model" --chunks 12 --kv-type f16,bf16,q8_0,q4_0)
"$BENCH" quality -m copy-f16.gguf "${common[@]}" -o kv --json >out.json
paste -d' ' <(column kv/quality.csv model) <(column kv/quality.csv kv_type) \
    <(column kv/quality.csv kl_mean) <(column kv/quality.csv top1_pct) >rows
cat >expected <<'END'
shakespeare3M-f16 f16
copy-f16 f16
copy-f16 bf16
copy-f16 q8_0
copy-f16 q4_0
END
cut -d' ' -f1,2 rows | cmp - expected || fail "rows: $(cat rows)"
read -r own copy bf16 q8 q4 <<<"$(cut -d' ' -f3 rows | tr '\n' ' ')"
holds "$own == 0 && $copy < 1e-8 && $bf16 > 1e-7 && $bf16 < $q8 && $q8 > 1e-6 && $q8 < 1e-4 && $q4 > 10 * $q8 && $q4 < 1e-2"
read -r own copy bf16 q8 q4 <<<"$(cut -d' ' -f4 rows | tr '\n' ' ')"
holds "$own == 100 && $copy == 100 && $bf16 > 99 && $q8 > 99 && $q4 > 94 && $q4 < $q8"
grep -c '"kind": "quality"' out.json | grep -qx 5 || fail "json: $(cat out.json)"
[ "$(find cache/quality -name '*.ref' | wc -l)" = 1 ] || fail "no predictions kept"

# ---- quantised while loading: on these chunks the types lose in the order of their bits
"$BENCH" quality -m "$model:Q2_K,Q4_0" -m "$model:Q8_0" --reference "$model" \
    --chunks 12 -o types >out
paste -d' ' <(column types/quality.csv model) <(column types/quality.csv quant) \
    <(column types/quality.csv file_bytes) | cut -d' ' -f1-3 >rows
cat >expected <<'END'
shakespeare3M-f16 F16 6838784
shakespeare3M-f16 Q2_K 1325600
shakespeare3M-f16 Q4_0 1973792
shakespeare3M-f16 Q8_0 3643936
END
cmp rows expected || fail "rows: $(cat rows)"
read -r own q2 q4 q8 <<<"$(column types/quality.csv kl_mean | tr '\n' ' ')"
holds "$own == 0 && $q8 > 2e-5 && $q8 < 2e-4 && $q4 > 0.003 && $q4 < 0.009"
holds "$q2 > 0.04 && $q2 < 0.1"

# ---- kill -9 and Ctrl-C in the middle: the same figures in the end
figures() {
    column "$1" perplexity
    column "$1" kl_mean
    column "$1" kl_p99
}
start() { # start CACHE: in the background, until something has been predicted
    rm -rf "$1"
    SLMBENCH_CACHE=$PWD/$1 "$BENCH" quality -m copy-f16.gguf "${common[@]}" -o again \
        -t 1 >killed.out 2>killed.err &
    pid=$!
    for _ in $(seq 600); do
        [ -n "$(find "$1" again -size +20k 2>/dev/null)" ] && return
        sleep 0.02
    done
    fail "nothing within 12 s: $(cat killed.err)"
}
start killed
kill -9 $pid
wait $pid 2>/dev/null || true
start killed
kill -INT $pid
code=0
wait $pid || code=$?
[ "$code" = 130 ] || [ "$code" = 0 ] || fail "exit $code: $(cat killed.err)"
[ "$code" = 0 ] || grep -q "same command" killed.err || fail "$(cat killed.err)"
SLMBENCH_CACHE=$PWD/killed "$BENCH" quality -m copy-f16.gguf "${common[@]}" -o again \
    >out || fail "cannot go on"
[ "$(figures again/quality.csv)" = "$(figures kv/quality.csv)" ] ||
    fail "other figures: $(cat again/quality.csv kv/quality.csv)"
before=$(cat again/quality/*.scores | cksum)
"$BENCH" quality -m copy-f16.gguf "${common[@]}" -o again >out
[ "$before" = "$(cat again/quality/*.scores | cksum)" ] || fail "scored again"

# ---- what cannot be
refuse() { # refuse TEXT ARGUMENTS...
    refused 2 "$1" quality "${@:2}" -o refused
}
echo "Too short a text." >short.txt
printf 'bro\377ken' >broken.txt
refuse "name the models"
refuse "one chunk needs 256" -m "$model" --text short.txt
refuse "no UTF-8" -m "$model" --text broken.txt
refuse "no-such.txt" -m "$model" --text no-such.txt
refuse "must be a file" -m "$model" --text -
refuse "8 to 256 tokens" -m "$model" --ctx 512
refuse "synthetic" -m nano:Q4_0
refuse "has an empty item" -m "$model:Q4_0,"
refuse "several models, and one is taken here" -m "$model" --reference "$model:Q4_0,Q8_0"
refuse "no-such.gguf" -m no-such.gguf
refuse "vocabulary" -m "$model" -m "$models/llama.gguf"
refuse "kv-type" -m "$model" --kv-type q9
refuse "kv-window" -m "$model" --kv-window none
refuse "sums are exact or int8" -m "$model" --prefill-sums fast
refuse "8 to 256 tokens" -m "$model" --ctx 1024 --kv-window 0,100
refuse "at most 252" -m "$model" --kv-window 253
refuse "unexpected argument 'surplus'" -m "$model" surplus
[ ! -e refused ] || fail "something was written"
ref=$(find cache/quality -name '*.ref')
printf '!' | dd of="$ref" bs=1 seek=5000 conv=notrunc 2>/dev/null
refuse "damaged" -m copy-f16.gguf --reference "$model" --chunks 12
"$BENCH" quality --help | grep -q -- --reference
