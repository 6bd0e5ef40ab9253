#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench choose: mixes that diverge less than the usual ones of their size, files that are
# what was promised, continuing after kill -9 without repeating a step, and budgets that
# cannot be met.
. "$SRC/tests/cli/lib.sh"
model=$SRC/tests/data/models/shakespeare3M-f16.gguf
export SLMBENCH_CACHE=$WORK/cache
small=(choose -m "$model" --types q6_K,q4_K,q3_K --groups 16 --ctx 64 --chunks 8
    --sense-chunks 4 --max-file 2.2M --mixes 2 -o some)

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

# ---- what it refuses, each in one sentence
refused 1 "the smallest file of shakespeare3M-f16 has 1.4" choose -m "$model" \
    --types q6_K,q4_K,q3_K --groups 16 --ctx 64 --chunks 8 --sense-chunks 4 --max-file 1M -o some
refused 2 "some has the steps of another choice: groups is 16 there, and 9 now" choose -m "$model" \
    --types q6_K,q4_K,q3_K --groups 10 --ctx 64 --chunks 8 --sense-chunks 4 -o some
refused 2 "is Q4_K_M already; choose begins with" choose -m "$SRC/tests/data/models/Q4_K_M.gguf" -o other
refused 2 "is no file; choose begins with" choose -m nano:Q4_K_M -o other
refused 2 "there is no type 'q9'" choose -m "$model" --types q8_0,q9 -o other
refused 2 "name the model: -m FILE" choose
[ ! -e other ] || fail "a directory was made for nothing"
