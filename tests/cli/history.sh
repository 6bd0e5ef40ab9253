#!/bin/bash
# SPDX-License-Identifier: MIT
#
# history.sh - `bench history`: add, compare, changes
. "$SRC/tests/cli/lib.sh"
example=$SRC/results/examples/granite-rapids-2vcpu

# Runs of one point on one machine, with a step after the 20th: tree/NN/{sweep.csv,
# machine.json}
header="utc,point,attempt,kind,model,quant,n_threads,placement,ctx,status,tok_per_s,validity"
for i in $(seq 10 49); do
    mkdir -p "tree/$i"
    utc=$(date -u -d "2026-03-01 + $i days" +%FT%TZ)
    sed -e "s/\"utc\": .*/\"utc\": \"$utc\",/" -e "s/\"commit\": .*/\"commit\": \"commit$i\",/" \
        "$example/machine.json" > "tree/$i/machine.json"
    speed=$((1000 + i * 7919 % 17)) # a noise of 0.5 %
    [ "$i" -lt 30 ] || speed=$((speed * 94 / 100))
    { echo "$header"
      echo "$utc,m:Q4_0/decode/t2,1,decode,m,Q4_0,2,spread,0,ok,$speed,valid"
    } > "tree/$i/sweep.csv"
done

# add: all, nothing new, and what a run has got since.
[ "$("$BENCH" history add h.db tree)" = \
    "h.db: 40 rows of 40 runs added, 0 were there already" ] || fail "record"
[ "$("$BENCH" history add h.db tree/12 tree/13/sweep.csv)" = \
    "h.db: 0 rows of 2 runs added, 2 were there already" ] || fail "record again"

# A row with a stored row's time and another speed is not left out without a word.
cp -r tree/12 twin
sed -i 's/,ok,[0-9.]*,/,ok,17,/' twin/sweep.csv
"$BENCH" history add h.db twin >out 2>err || fail "another speed: exit $?"
grep -q "1 row is not added: it has the run, point, attempt and time of a stored row, and another speed" err ||
    fail "another speed: $(cat out err)"
"$BENCH" history add h.db tree/12 2>err >out && [ ! -s err ] || fail "the same speed: $(cat err)"

# What cannot be stored leaves no database behind: here a file may have four KiB.
code=0
(
    trap '' XFSZ
    ulimit -f 4
    "$BENCH" history add full.db tree 2> err
) || code=$?
[ "$code" = 2 ] && [ "$(wc -l < err)" = 1 ] || fail "a full disk: exit $code, $(cat err)"
[ ! -e full.db ] || fail "an empty database is left"

# changes: the same from the database, the tree, and the rows in one file.
"$BENCH" history changes h.db > db.txt
grep -q "^  commit30 *commit29 *-6\.[0-9] % (-6\.[0-9] to -5\.[0-9]) *worse *0\.002 " db.txt ||
    fail "no change at commit30: $(cat db.txt)"
grep -q "^1 series, 1 with a change\.$" db.txt || fail "$(cat db.txt)"
"$BENCH" history changes tree | cmp - db.txt || fail "the tree gives something else"
{ echo "$header"; tail -q -n 1 tree/*/sweep.csv; } > all.csv
"$BENCH" history changes all.csv | grep -q "^  ? *? *-6" || fail "one CSV of all runs"

if command -v python3 > /dev/null; then
    python3 - << 'PY' || fail "results.csv"
import csv, sqlite3
c = sqlite3.connect("h.db").execute("SELECT * FROM rows JOIN machines USING (machine)")
w = csv.writer(open("results.csv", "w"))
w.writerow([d[0] for d in c.description])
w.writerows(c)
PY
    "$BENCH" history changes results.csv | cmp - db.txt || fail "the CSV gives something else"
fi
"$BENCH" history changes h.db --last 10 | grep -q "^1 series, 0 with a change" ||
    fail "the last ten runs have no change"
"$BENCH" history changes h.db --json h.json --markdown h.md --no-charts > /dev/null
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
grep -q "^| m Q4\\\\_0, decode, 2 threads, depth 0 | commit30 | commit29 | -6" h.md || fail "$(cat h.md)"
draws_alone alone "$BENCH" history changes h.db -o alone
if command -v gnuplot > /dev/null; then
    # a commit's name cannot break out of the script
    mkdir odd
    cp -r tree odd/tree
    for i in $(seq 10 49); do
        sed -i "s/\"commit\": .*/\"commit\": \"a';system('touch broken');'\`touch broken\`\",/" "odd/tree/$i/machine.json"
    done
    (cd odd && "$BENCH" history changes tree -o out > /dev/null) || fail "charts"
    for ending in csv gp svg png json md; do
        [ -s "odd/out/history.$ending" ] || fail "no history.$ending"
    done
    draws_again odd/out history
    [ ! -e odd/broken ] && [ ! -e odd/out/broken ] || fail "a name was executed"
    grep -q "(the axis begins at 9" odd/out/history.gp || fail "not an axis that begins above 0"
fi

# Latencies of rows of bench load, which no answer of decode has.
for i in $(seq 10 49); do
    mkdir -p "served/$i"
    cp "tree/$i/machine.json" "served/$i"
    awk -F, -v OFS=, 'NR == 1 { print $0, "load_mode", "n_users", "ttft_visible_p90_s" }
        NR > 1 { $4 = "load"; $9 = ""; print $0, "closed", 2, 1000 / $11 }' \
        "tree/$i/sweep.csv" > "served/$i/sweep.csv"
done
"$BENCH" history changes served --metric ttft_visible_p90_s > out || fail "times of a load: exit $?"
grep -q "^m Q4_0, ttft_visible_p90_s, load, " out &&
    grep -q "^  commit30 *commit29 *+6\.[0-9] % .* worse " out || fail "times of a load: $(cat out)"

# compare: a run of the tree against those before it.
run() { # run CODE ARGUMENTS...: into out
    local code=$1 got=0
    shift
    "$BENCH" history compare "$@" > out 2> err || got=$?
    [ "$got" = "$code" ] || fail "'compare $*' ended with $got, not $code: $(cat out err)"
}
new() { # new NAME SPEED...: a sweep of a later day
    local i=0 speed
    mkdir -p "$1"
    cp "$example/machine.json" "$1"
    { echo "$header"
      for speed in "${@:2}"; do
          i=$((i + 1))
          echo "2026-11-01T00:0$i:00Z,m:Q4_0/decode/t2,$i,decode,m,Q4_0,2,spread,0,ok,$speed,valid"
      done
    } > "$1/sweep.csv"
}
new same 947 945 949
new slow 880 884 879
new once 880
run 0 h.db --rows same
grep -q "^m Q4_0, 20 stored runs since commit30, 2026-03-31; Intel(R) Xeon(R) Processor, 2 CPUs" out || fail "$(cat out)"
grep -q "^decode, 2 threads, depth 0 .* pass$" out || fail "$(cat out)"
run 1 h.db --rows slow --json b.json --junit b.xml --markdown b.md
grep -q "^fail: B is worse in decode, 2 threads, depth 0: -[67]\..* Look at the changes from commit49 to " out ||
    fail "$(cat out)"
grep -q '"mode": "baseline"' b.json && grep -q "<failure" b.xml && grep -q "3 new runs" b.md || fail "outputs"
run 0 h.db --rows slow --margin 12%
run 4 h.db --rows once
grep -q "measure 3 times or more" out || fail "$(cat out)"
run 1 tree --rows slow -o b --no-charts
[ -s b/gate.json ] || fail "no gate.json"
run 1 tree --rows tree/30 --rows tree/31 --rows tree/32 # the step itself
grep -q "20 stored runs since commit10" out || fail "$(cat out)"
run 0 h.db --rows same --add-to h2.db --commit today
"$BENCH" history add h2.db same | grep -q "0 rows of 1 run added" || fail "recorded"
"$BENCH" history gates h2.db > out || fail "the verdict is not stored"
grep -q "  pass: .* on Intel(R) Xeon(R) Processor, 2 CPUs" out && grep -q "A h.db (commit49), B same (" out || fail "$(cat out)"
for command in gates changes; do
    refused 2 "cannot read none.db: No such file" history $command none.db
done
refused 2 "h.db has no gate; " history gates h.db
run 7 h.db --rows same --exit-codes 7,8,9

# What differs is named, and how much is missing.
sed 's/spread/compact/' slow/sweep.csv > changed.csv
cp slow/machine.json .
refused 3 "its placement is 'spread', here 'compact'" history compare h.db --rows changed.csv
sed 's/,Q4_0,/,Q8_0,/' slow/sweep.csv > changed.csv
refused 3 "its quant is 'Q4_0', here 'Q8_0'" history compare h.db --rows changed.csv
sed -i 's/"model": "Intel.*"/"model": "Another"/' machine.json
refused 3 "its CPU is 'Intel(R) Xeon(R) Processor', here 'Another'" history compare h.db --rows changed.csv
rm machine.json
refused 3 "the machine of the new rows is not known" history compare h.db --rows changed.csv
refused 3 "2 stored runs do not say how far runs scatter; add 3 more" \
    history compare h.db --rows tree/12
refused 2 "no new rows to compare with h.db" history compare h.db

# The first days: the database begins with the first rows, and grows though nothing can
# be judged yet; each message has from when it can.
refused 3 "no run is stored yet, so nothing can fail; with 5 stored runs, each of another commit or three hours apart, the next one is judged; the new rows are added to days.db" \
    history compare days.db --rows tree/10 --add-to days.db
for day in 11 12 13 14; do
    refused 3 "add $((15 - day)) more; nothing can fail before there are 5; the new rows are added" \
        history compare days.db --rows tree/$day --add-to days.db
done
run 0 days.db --rows tree/15 --add-to days.db --margin 5%
"$BENCH" history add days.db tree/1[0-5] | grep -q "0 rows of 6 runs added" || fail "days are not stored"

# One run is one run, however many copies of it are named, and no history of its own.
cp -r once once2
cp -r once once3
run 4 h.db --rows once --rows once2 --rows once3 --markdown copies.md
grep -q "^1 new run" out && grep -q "2 new rows repeat another row and do not count" copies.md || fail "copies: $(cat out copies.md)"
run 4 tree --rows tree/49 --markdown own.md --margin 0.1%
grep -q "The new rows are among the stored ones" own.md || fail "its own history: $(cat own.md)"
refused 3 "(the new rows are stored already, and are no history of their own)" history compare once --rows once

# A thousandfold speed-up is a wrong figure.
new fast 945000 946000 947000
refused 2 "which no change of a program does: check units" history compare h.db --rows fast

refused 2 "history needs a command, add, compare, changes or gates;" history
refused 2 "there is no \`bench history comapre\`; did you mean \`bench history compare\`?" history comapre h.db
refused 2 "history needs a command, add, compare, changes or gates, not 'h.db'" history h.db
refused 2 "no history is named; usage: bench history changes RESULTS" history changes
refused 2 "unexpected argument 'slow'" history compare h.db slow
refused 2 "history add has no option --rows; \`bench history add --help\` lists them" history add h.db --rows slow

# Another machine is another series.
cp -r tree tree2
sed -i 's/"model": "Intel.*"/"model": "Another"/' tree2/4?/machine.json
"$BENCH" history changes tree2 | grep -q "^2 series, 1 with a change" || fail "two machines"

# A row that names no machine, and one that is said to be from here.
"$BENCH" decode -m nano:Q4_0 --weights memory -n 6 --json > row.json 2> /dev/null || fail "decode"
refused 2 "is not known: no machine.json" history add h.db row.json
"$BENCH" history add h.db row.json --here --commit mine | grep -q "1 row of 1 run added" ||
    fail "a row of this machine"

# Foreign and damaged files.
refused 2 "cannot read nowhere" history changes nowhere
refused 2 "is no table of results" history changes "$SRC/LICENSE"
head -c 3000 h.db > cut.db
refused 2 "cut.db is not a complete database" history changes cut.db
mkdir empty
refused 2 "no sweep.csv with rows is in empty" history changes empty
echo '{"a": 1' > bad.json
refused 2 "bad.json is no JSON this program can read: line" history changes bad.json
echo '{"a": 1}' > bad.json
refused 2 "is no row of results" history changes bad.json
refused 2 "file is not a database" history add "$SRC/LICENSE" tree
refused 2 "no rows are named" history add h.db
refused 2 "name it new.db" history add new.csv tree
refused 2 "'speed' is no column" history changes h.db --metric speed
refused 2 "no series named like 70b" history changes h.db --only 70b
