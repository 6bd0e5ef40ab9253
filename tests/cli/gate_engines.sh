#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench gate of other programs and of two models: a slower one fails, the same one does
# not; which kind a side is; what cannot take turns, prints nothing, or is not there.
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || { echo "needs python3"; exit 77; }
export SLMBENCH_CACHE=$WORK/cache

# Prints the speed that it is given.
mkdir old new
printf '#!/bin/sh\necho "speed: $1 tok/s"\n' >old/run
cp old/run new/run
printf '#!/bin/sh\necho no figure\n' >old/silent
chmod +x */*
gate=(gate -m nano:Q4_K_M -t 1 --no-charts --budget 5m --seed 3)
figure='{model} =~ speed: ([0-9.]+)'

code=0
"$BENCH" "${gate[@]}" --a "old/run 100 $figure" --b "new/run 60 $figure" -o slow >out 2>err || code=$?
[ "$code" = 1 ] || fail "a slower program: exit $code: $(cat out err)"
grep -q "^decode, depth 0, 1 thread  *100.0 tok/s  *60.00 tok/s  *-40.0 %.* fail$" out || fail "no metric: $(cat out)"
grep -q "^peak memory .* pass$" out || fail "no memory: $(cat out)"
grep -q "^A  old/run 100 {model}" out && grep -q "there is no prefill" out || fail "sides: $(cat out)"
python3 - slow <<'END' || fail "rounds.csv is wrong"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1] + "/rounds.csv")))
steps = [x for x in rows if x["metric"].startswith("decode")]
assert len({x["launch"] for x in steps}) >= 10 and {x["order"] for x in steps} <= {"ABBA", "BAAB"}
for x in steps:
    t = [float(x["t%d" % i]) for i in (1, 2, 3, 4)]
    for side, v in zip(x["order"], t):
        assert abs(v * (100 if side == "A" else 60) - 1) < 1e-6, x
END
"$BENCH" gate --report slow --no-charts >again || [ $? = 1 ] || fail "read back: $(cat again)"
cmp out again || fail "read back, it prints something else"

if is_full; then
    code=0
    "$BENCH" "${gate[@]}" --a "old/run 100 $figure" --b "new/run 100 $figure" -o same >out || code=$?
    [ "$code" = 0 ] || fail "the same speed: exit $code: $(cat out)"
    code=0
    "$BENCH" "${gate[@]}" --b-model nano:Q8_0 --margin 45 --budget 1m -o models >out || code=$?
    [ "$code" = 1 ] || [ "$code" = 4 ] || fail "a larger model: exit $code: $(cat out)"
    grep -q "^nano:Q4_K_M, B with nano:Q8_0" out && grep -q "bench quality" out || fail "models: $(cat out)"
    grep -q "^peak memory .* -[0-9.]* %" out || fail "memory of a larger model: $(cat out)"
fi

refused 2 "A is a build of bench and B another program" "${gate[@]}" --a "$BENCH" --b "new/run 60 $figure"
refused 2 "B: cannot find the program nothere" "${gate[@]}" --a "old/run 100 $figure" --b nothere
refused 2 "nowhere/run: No such file" "${gate[@]}" --a "nowhere/run 1 $figure" --b "new/run 60 $figure"
refused 2 "A: the regular expression finds nothing" "${gate[@]}" --a "old/silent $figure" --b "new/run 60 $figure" -o none
refused 2 "is a setting of slmbench alone" "${gate[@]}" --a "old/run 1 $figure" --b "new/run 60 $figure" --weights packed
refused 2 "nothere.gguf" "${gate[@]}" --b-model nothere.gguf
refused 2 "exclude each other" gate --calibrate --b-model nano:Q8_0
