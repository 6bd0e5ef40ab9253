#!/bin/bash
# SPDX-License-Identifier: MIT
#
# gate_history.sh - `bench gate` and stored results: --record, --history
. "$SRC/tests/cli/lib.sh"
example=$SRC/results/examples/epyc-zen4-2vcpu

# Runs of one point on one machine, with a step after the 20th: tree/NN/{sweep.csv,
# machine.json}
header="utc,point,attempt,kind,model,quant,n_threads,placement,ctx,status,tok_per_s,validity"
for i in $(seq 10 49); do
    mkdir -p "tree/$i"
    sed -e "s/\"utc\": .*/\"utc\": \"2026-03-01T00:$i:00Z\",/" -e "s/\"commit\": .*/\"commit\": \"commit$i\",/" \
        "$example/machine.json" > "tree/$i/machine.json"
    speed=$((1000 + i * 7919 % 17)) # a noise of 0.5 %
    [ "$i" -lt 30 ] || speed=$((speed * 94 / 100))
    { echo "$header"
      echo "2026-03-01T00:$i:00Z,m:Q4_0/decode/t2,1,decode,m,Q4_0,2,spread,0,ok,$speed,valid"
    } > "tree/$i/sweep.csv"
done

# --record: all, nothing new, and what a run has got since.
[ "$("$BENCH" gate --record h.db --rows tree)" = \
    "h.db: 40 rows of 40 runs recorded, 0 were there already" ] || fail "record"
[ "$("$BENCH" gate --record h.db --rows tree/12 --rows tree/13/sweep.csv)" = \
    "h.db: 0 rows of 2 runs recorded, 2 were there already" ] || fail "record again"

# --history: the same from the database, the tree, and the rows in one file.
"$BENCH" gate --history h.db > db.txt
grep -q "^  commit30 *commit29 *-6\.[0-9] % (-6\.[0-9] to -5\.[0-9]) *worse *0\.002 " db.txt ||
    fail "no change at commit30: $(cat db.txt)"
grep -q "^1 series, 1 with a change\.$" db.txt || fail "$(cat db.txt)"
"$BENCH" gate --history tree | cmp - db.txt || fail "the tree tells something else"
{ echo "$header"; tail -q -n 1 tree/*/sweep.csv; } > all.csv
"$BENCH" gate --history all.csv | grep -q "^  ? *? *-6" || fail "one CSV of all runs"

"$BENCH" gate --history h.db --last 10 | grep -q "^1 series, 0 with a change" ||
    fail "the last ten runs have no change"
"$BENCH" gate --history h.db --json h.json --markdown h.md --no-charts > /dev/null
if command -v python3 > /dev/null; then
    python3 - << 'PY' || fail "h.json"
import json
s = json.load(open("h.json"))["series"]
assert len(s) == 1 and len(s[0]["values"]) == 40 and s[0]["unit"] == "tok/s"
c = s[0]["changes"]
assert len(c) == 1 and c[0]["index"] == 20 and c[0]["worse"]
assert c[0]["first"]["commit"] == "commit30" and c[0]["last_before"]["commit"] == "commit29"
assert c[0]["ratio_lo"] < 0.94 < c[0]["ratio_hi"] and c[0]["p"] <= 0.01
PY
fi
grep -q "^| m Q4_0, decode, 2 threads, depth 0 | commit30 | commit29 | -6" h.md || fail "$(cat h.md)"
if command -v gnuplot > /dev/null; then
    # a commit's name cannot break out of the script
    mkdir odd
    cp -r tree odd/tree
    for i in $(seq 10 49); do
        sed -i "s/\"commit\": .*/\"commit\": \"a';system('touch broken');'\`touch broken\`\",/" "odd/tree/$i/machine.json"
    done
    (cd odd && "$BENCH" gate --history tree -o out > /dev/null) || fail "charts"
    for ending in csv gp svg png json md; do
        [ -s "odd/out/history.$ending" ] || fail "no history.$ending"
    done
    [ ! -e odd/broken ] && [ ! -e odd/out/broken ] || fail "a name was executed"
fi

# Another machine is another series.
cp -r tree tree2
sed -i 's/"model": "AMD EPYC"/"model": "Another"/' tree2/4?/machine.json
"$BENCH" gate --history tree2 | grep -q "^2 series, 1 with a change" || fail "two machines"

# A row that names no machine, and one that is said to be from here.
"$BENCH" decode -m nano:Q4_0 --in-memory -n 6 --json > row.json 2> /dev/null || fail "decode"
refused 2 "no machine.json says which machine" gate --record h.db --rows row.json
"$BENCH" gate --record h.db --rows row.json --here --commit mine | grep -q "1 row of 1 run recorded" ||
    fail "a row of this machine"

# Foreign and damaged files.
refused 2 "cannot read nowhere" gate --history nowhere
refused 2 "is no table of results" gate --history "$SRC/LICENSE"
head -c 3000 h.db > cut.db
refused 2 "cut.db is no whole database" gate --history cut.db
mkdir empty
refused 2 "no sweep.csv with rows is in empty" gate --history empty
echo '{"a": 1' > bad.json
refused 2 "bad.json, line" gate --history bad.json
echo '{"a": 1}' > bad.json
refused 2 "is no row of results" gate --history bad.json
refused 2 "file is not a database" gate --record "$SRC/LICENSE" --rows tree
refused 2 "which rows?" gate --record h.db
refused 2 "'speed' is no column" gate --history h.db --metric speed
refused 2 "no series named like 70b" gate --history h.db --only 70b

# Change points beside thresholds, at a small size.
"$BENCH" gate --simulate-history --gates 24 > sim
grep -q "^| change points (ours) | [89][0-9] %\|^| change points (ours) | 100 %" sim || fail "$(cat sim)"
[ "$(grep -c "^| .* from the " sim)" = 8 ] || fail "thresholds: $(cat sim)"
