#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench choose: mixes that diverge less than the usual ones of their size, files that are
# what was promised, continuing after kill -9 without repeating a step, and budgets that
# cannot be met.
. "$SRC/tests/cli/lib.sh"
model=$SRC/tests/data/models/shakespeare3M-f16.gguf
export SLMBENCH_CACHE=$WORK/cache
small=(choose -m "$model" --types q6_K,q4_K,q3_K --groups 10 --chunk-tokens 64 --chunks 8
    --sense-chunks 4 --max-file 2.2M --mixes 2 -o some --files-only)

# ---- killed between steps, and continued: no step twice, and the same result
"$BENCH" "${small[@]}" >first 2>err &
pid=$!
until [ "$(grep -c "^[0-9]* of " first)" -ge 6 ]; do
    kill -0 $pid 2>/dev/null || fail "it ended: $(cat first err)"
    sleep 0.01
done
kill -9 $pid
wait $pid 2>/dev/null || true
"$BENCH" "${small[@]}" >second 2>err || fail "exit $?: $(cat err)"
grep "^[0-9]* of " first second | sed 's/.*:\([0-9]* of [0-9]*\).*/\1/' | sort | uniq -d >twice
[ ! -s twice ] || fail "steps that ran twice: $(cat twice)"
n=$(sed -n 's/^[0-9]* of \([0-9]*\) .*/\1/p' second | tail -n 1)
[ "$(cat first second | grep -c "^[0-9]* of $n ")" = "$n" ] || fail "not $n steps: $(cat first second)"
"$BENCH" "${small[@]}" >third
! grep -q "^[0-9]* of " third || fail "a step was repeated: $(cat third)"
diff <(sed -n '/^file/,$p' second) <(sed -n '/^file/,$p' third) >diff || fail "another result: $(cat diff)"

# ---- the mix diverges less than the usual one of its size, and is no larger
awk '/searched/ && $3 > 2306867 { exit 1 }
     /searched/ { kl = $4 } /usual/ { exit !(kl < 0.85 * $3) }' third || fail "$(cat third)"

# ---- the file is what was promised: its divergence, and types that others read
file=$(ls some/*bpw.gguf | tail -n 1)
promised=$(awk '/searched/ { kl = $4 } END { print kl }' third)
"$BENCH" quality -m "$(ls some/*bpw.gguf | head -n 1)" --reference "$model" --ctx 64 --chunks 8 \
    -o check --json >check.json
python3 - "$promised" <<'PY'
import json, sys
kl = json.load(open("check.json"))[1]["kl_mean"]
assert abs(kl - float(sys.argv[1])) < 1e-6, (kl, sys.argv[1])
PY
"$BENCH" gguf "$file" | grep -q "q6_K .*" || fail "no mix of types: $("$BENCH" gguf "$file")"
"$BENCH" gguf "$file" >types
[ "$(grep -cE "^  q[0-9]_K " types)" -ge 2 ] || fail "one type alone: $(cat types)"
"$BENCH" generate -m "$file" -p "To be" -n 3 >out 2>err || fail "it does not run: $(cat err)"

# ---- the decision: one file, its figures and the command; none that is fast enough
stories=$SRC/tests/data/models/stories260K-f32.gguf
cat >tasks.jsonl <<'JSON'
{"prompt": "Lily shouted,", "schema": {"type": "string"}, "max_tokens": 80}

{"prompt": "Once upon a time, there was a little girl named", "answers": ["Tom", "lily"], "max_tokens": 3}
{"prompt": "Lily shouted,", "schema": {"type": "integer"}}
JSON
head -c 9000 "$SRC/configs/texts/shakespeare-heldout.txt" >calibration.txt
decide=(choose -m "$stories" --calibration calibration.txt --types q8_0,q4_0 --groups 8 --chunk-tokens 64 --chunks 4 --sense-chunks 1
    --max-file 400K --mixes 2 --budget 0.05 --launches 1 --no-probe --ctx 60 -o decided -t 1)
"$BENCH" "${decide[@]}" --min-tps 0.1 --max-ttft 1000s@50 --price 0.08 --for llama.cpp \
    --tasks tasks.jsonl >out 2>err || fail "exit $?: $(cat out err)"
best=$(sed -n 's/^Decision: \([^, ]*\)[, ].*/\1/p' out)
[ -f "decided/$best.gguf" ] || fail "no file of the decision '$best': $(cat out)"
for line in 'sure that it reaches the limits, with the least divergence' '  speed  .* tok/s at depth 60 (minimum: 0.1)' \
    '  first token  .* s for 50 tokens.*(maximum: 1000 s)' '  memory  .* MiB' \
    '  tasks        2 of 3 right, 67 % (90 % interval: 14 to 98 %); [fF]32: 2' \
    '  divergence   KL 0\.[0-9]* +- .* from [fF]32' '  price  .* per million tokens, at 0.08 an hour' \
    "  file  .*decided/$best.gguf" 'llama-server'; do
    grep -q -- "$line" out || fail "no '$line': $(cat out)"
done
rows=$(cat decided/speed-*/sweep.csv | wc -l)
"$BENCH" "${decide[@]}" --min-tps 1e8 --max-ttft 1000s@50 >out 2>err && fail "1e8 tok/s were reached"
grep -q "^bench: .*tok/s" err || fail "nothing came closest: $(cat err)"
[ "$(cat decided/speed-*/sweep.csv | wc -l)" = "$rows" ] || fail "speeds were measured again"
"$BENCH" gguf "decided/$best.gguf" | grep -q 'quantize.imatrix.file *"imatrix.gguf"' || fail "no importances"
[ ! -e decided/imatrix-part.gguf ] || fail "a part of an importance matrix was left"
# tasks that are answered are not answered again: a changed answer stays
sed -i 's/: true/: false/' decided/tasks-*/choose.json
"$BENCH" "${decide[@]}" --min-tps 0.1 --max-ttft 1000s@50 --tasks tasks.jsonl >out
grep -q "  tasks        0 of 3 right" out || fail "tasks were answered again: $(cat out)"

# ---- what it refuses, each in one sentence
refused 1 "the smallest file of shakespeare3M-f16 has 1.4" choose -m "$model" \
    --types q6_K,q4_K,q3_K --groups 10 --chunk-tokens 64 --chunks 8 --sense-chunks 4 --max-file 1M -o some --files-only
refused 2 "some has the steps of another choice: groups is 9 there, and 30 now" choose -m "$model" \
    --types q6_K,q4_K,q3_K --chunk-tokens 64 --chunks 8 --sense-chunks 4 -o some --files-only
refused 2 "is Q4_K_M already; choose begins with" choose -m "$SRC/tests/data/models/Q4_K_M.gguf" -o other
refused 2 "is no file; choose begins with" choose -m nano:Q4_K_M -o other
refused 2 "there is no type 'q9'" choose -m "$model" --types q8_0,q9 -o other
refused 2 "name the model: -m FILE" choose
echo '{"prompt": "x"}' >bad.jsonl
refused 2 "bad.jsonl, line 1: a task has a list 'answers' or a 'schema'" choose -m "$model" --tasks bad.jsonl -o other
refused 2 "--max-ttft: 0 tokens" choose -m "$model" --max-ttft 3s@0
refused 2 "--groups 3: shakespeare3M-f16 has more kinds of matrices" choose -m "$model" --groups 3 -o other --files-only
refused 2 "exclude each other" choose -m "$model" --imatrix a --calibration b
refused 2 "--max-ttft" choose -m "$model" --max-ttft soon
[ "$(id -u)" != 0 ] || "$BENCH" choose -m "$model" --mem 26M -o other --types q6_K,q3_K 2>err >out ||
    grep -Eq "does not fit 26.0 MiB of memory: its smallest mix of these types needs [0-9.]* MiB|cgroup|sandbox|memory" err ||
    fail "too little memory: $(cat err)"
rm -rf other
[ ! -e other ] || fail "a directory was made for nothing"

# ---- all of the text and each matrix by itself; a sweep that Ctrl-C stops
is_full || exit 0
all=(choose -m "$model" -o all --mixes 9 --budget 0.2 --launches 1 --no-probe --ctx 200)
"$BENCH" "${all[@]}" --files-only >out
awk '/[0-9]+ % below/ { n += $8 >= 15 } END { exit n < 6 }' out ||
    fail "not 15 % less at six sizes: $(cat out)"
"$BENCH" "${all[@]}" >first 2>err &
pid=$!
until grep -q "^\[2/" first; do
    kill -0 $pid 2>/dev/null || fail "it ended: $(cat first err)"
    sleep 0.05
done
kill -TERM $pid
code=0
wait $pid || code=$?
[ $code = 130 ] || fail "a stopped sweep ended with $code: $(cat err)"
grep -q "finished steps are kept in all" err || fail "no way to continue: $(cat err)"
rows=$(cat all/speed-*/sweep.csv | wc -l)
"$BENCH" "${all[@]}" >second || fail "exit $?"
[ "$(grep -c "^\[" second)" -le $(($(cat all/speed-*/sweep.csv | wc -l) - rows)) ] ||
    fail "rows were measured again: $(cat second)"
grep -q "^Decision: shakespeare3M" second || fail "no decision: $(cat second)"
