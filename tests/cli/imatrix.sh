#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench imatrix: chunks add up, a run that is stopped can be continued, and bench
# quantize takes what it writes.
. "$SRC/tests/cli/lib.sh"
model=$SRC/tests/data/models/stories260K-f32.gguf

for i in 1 2 3 4 5 6 7 8; do
    echo "Once upon a time, there was a little girl named Lily. She loved to play outside"
    echo "in the park. One day, she saw a big, red ball number $i. It was very happy."
done >text.txt

# ---- parts add up to the whole
"$BENCH" imatrix -m "$model" --text text.txt -o all.gguf --ctx 64 --chunks 5 >out
[ "$(tail -n 1 out)" = "use it: bench quantize --imatrix all.gguf $model OUT.gguf Q4_K_M" ] ||
    fail "no next step: $(cat out)"
grep -q '^all.gguf: 35 matrices, 5 chunks of 64 tokens in ' out || fail "odd: $(cat out)"
"$BENCH" imatrix -m "$model" --text text.txt -o a.gguf --ctx 64 --chunks 2 -t 1 >out
"$BENCH" imatrix -m "$model" --text text.txt -o b.gguf --ctx 64 --chunks 3 \
    --from-chunk 2 --in a.gguf >out
grep -q ', 5 with those of --in' out || fail "odd: $(cat out)"
"$BENCH" gguf all.gguf --json >all.json
python3 - <<'PY'
import json
m = json.load(open("all.json"))["metadata"]
assert m["general.type"] == "imatrix", m
assert m["imatrix.chunk_count"] == 5 and m["imatrix.chunk_size"] == 64
assert m["imatrix.datasets"]["first"] == ["text.txt"], m
PY
for t in blk.0.attn_q.weight.in_sum2 blk.4.ffn_down.weight.in_sum2 blk.2.ffn_up.weight.counts; do
    "$BENCH" gguf all.gguf --tensor $t -o all.f32
    "$BENCH" gguf b.gguf --tensor $t -o b.f32
    python3 - <<'PY'
import array
a, b = (array.array("f", open(p, "rb").read()) for p in ("all.f32", "b.f32"))
assert len(a) == len(b) > 0 and sum(a) > 0
assert all(abs(x - y) <= 2e-3 * abs(y) + 1e-6 for x, y in zip(a, b)), (a, b)
assert len(a) > 1 or a[0] == 5 * 64
PY
done

# ---- experts
"$BENCH" imatrix -m "$SRC/tests/data/models/llama-moe.gguf" --text text.txt -o moe.gguf \
    --ctx 16 --chunks 2 >out 2>err || {
    # that model's vocabulary may have no tokenizer
    grep -q 'token' err || fail "experts: $(cat err)"
}

# ---- quantize takes it, and only for the same model
"$BENCH" quantize "$model" q.gguf Q4_0 --imatrix all.gguf --rmse >out
grep -q '% weighed' out || fail "no weighted error: $(cat out)"
"$BENCH" gguf q.gguf | grep -q 'quantize.imatrix.file *"all.gguf"' || fail "no trace of the imatrix"
"$BENCH" quantize "$model" p.gguf Q4_0 >out
! cmp -s p.gguf q.gguf || fail "the importance matrix changes nothing"
"$BENCH" synth nano F16 -o nano.gguf >out
refused 2 "it is of another model" quantize nano.gguf x.gguf Q4_0 --imatrix all.gguf
refused 2 "no importance matrix" quantize nano.gguf x.gguf Q4_0 --imatrix nano.gguf
head -c 2000 all.gguf >cut.gguf
refused 2 "cut.gguf" quantize "$model" x.gguf Q4_0 --imatrix cut.gguf
[ ! -e x.gguf ] || fail "a refused command wrote a file"

# ---- stopped: what there is is written, and the way to go on said
for i in $(seq 400); do cat text.txt; done >long.txt
code=0
"$BENCH" imatrix -m "$model" --text long.txt -o part.gguf --ctx 64 >out 2>err &
pid=$!
sleep 2
kill -INT $pid
wait $pid || code=$?
if [ $code = 130 ] && [ -e part.gguf ]; then
    grep -q -- '--in part.gguf --from-chunk [0-9]' err || fail "no way to go on: $(cat err)"
    next=$(sed -n 's/.*--from-chunk \([0-9]*\).*/\1/p' err)
    "$BENCH" imatrix -m "$model" --text long.txt -o more.gguf --ctx 64 --in part.gguf \
        --from-chunk "$next" --chunks 1 >out
    grep -q ", $((next + 1)) with those of --in" out || fail "odd: $(cat out)"
else
    [ $code = 0 ] || [ $code = 130 ] || fail "exit code $code: $(cat err)"
fi

# ---- refusals
refused 2 "name the text" imatrix -m "$model" -o x.gguf
refused 2 "name the output file" imatrix -m "$model" --text text.txt
refused 2 "missing.txt" imatrix -m "$model" --text missing.txt -o x.gguf
refused 2 "take a longer text" imatrix -m "$model" --text text.txt -o x.gguf --from-chunk 99 --ctx 64
refused 2 "no importance matrix" imatrix -m "$model" --text text.txt -o x.gguf --ctx 64 --in nano.gguf
