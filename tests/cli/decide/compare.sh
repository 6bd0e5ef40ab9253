#!/bin/bash
# SPDX-License-Identifier: MIT
#
# compare.sh - `bench compare` on the stored sweeps, with prices of one's own
. "$SRC/tests/cli/lib.sh"
machines=("$SRC/results/examples/granite-rapids-2vcpu" "$SRC/results/examples/zen5-2vcpu")

# No price is made up: without any, speed ranks.
"$BENCH" compare "${machines[@]}" > free
grep -q "USD" free && fail "an invented price: $(cat free)"
tr -s ' \n' ' ' < free | grep -q "ranked by decode speed. No prices were given (--price NAME=0.06)." ||
    fail "why by speed: $(cat free)"

# Prices by name; a pattern of results/* also names what is no sweep.
mkdir -p results/none
ln -s "${machines[@]}" results
echo text > results/README.md
"$BENCH" compare results/* --price 'zen5*=0.1159' --price granite-rapids-2vcpu=0.1008 > usual 2> err
grep -q "^bench: skipped without rows of results: results/README.md results/none$" err || fail "what is skipped: $(cat err)"
grep -q "^ 1 zen5-2vcpu " usual || fail "the first: $(cat usual)"
grep -q "^ 2 granite-rapids-2vcpu " usual || fail "the second: $(cat usual)"
tr -s ' \n' ' ' < usual | grep -q "Prices are from --price" || fail "whose prices: $(cat usual)"
"$BENCH" compare "${machines[@]}" --price 'zen5*=0.1159EUR' --price '*=0.1008EUR' --json |
    grep -q '"currency": "EUR"' || fail "a currency"
refused 2 "'zen5' is no NAME=PRICE" compare "${machines[@]}" --price zen5
refused 2 "no machine here is named 'zen'; there are: zen5" compare "${machines[@]}" --price zen=0.1
refused 2 "cannot read results/absent" compare results/zen5-2vcpu results/absent
"$BENCH" report results/* -o page.html > out 2> err && grep -q ", 2 machines$" out || fail "a page: $(cat out err)"
"$BENCH" rows results/* > out 2> err && grep -q skipped err || fail "rows: $(cat err)"

# A model is its content: one under two names is compared, two under one name are two.
# identified FROM TO ID NAME
identified() {
    mkdir -p "$2"
    cp "$1/machine.json" "$2"
    python3 - "$@" << 'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1] + "/sweep.csv")))
out = csv.DictWriter(open(sys.argv[2] + "/sweep.csv", "w"), list(dict.fromkeys([*rows[0], "model_label", "model_id"])))
out.writeheader()
for r in rows:
    r["point"] = r["point"].replace(r["model"], sys.argv[4], 1)
    out.writerow({**r, "model": sys.argv[4], "model_label": "", "model_id": sys.argv[3]})
END
}
one=0123456789abcdef another=1123456789abcdef
identified "${machines[0]}" ids/here $one mine-here
identified "${machines[1]}" ids/there $one downloaded
"$BENCH" compare ids/here ids/there > joined 2> err || fail "one model of two names: $(cat err)"
grep -q "^ 1 there " joined || fail "one model of two names: $(cat joined)"
"$BENCH" report ids/here ids/there -o page.html > /dev/null
[ "$(grep -o "<tr><td class=\"name\">mine-here [^<]*" page.html | wc -l)" -gt 0 ] && ! grep -q "class=\"name\">downloaded" page.html ||
    fail "one model under two names on the page"
identified "${machines[1]}" ids/there $another mine-here
refused 2 "mine-here~01234567 and mine-here~11234567 were measured; choose one with --model" compare ids/here ids/there
# Later sweeps of one machine stand in for earlier ones by content, too; a history continues.
identified "${machines[1]}" ids/here $one mine-here
identified "${machines[1]}" ids/there $one downloaded
sed -i 's/2026-/2027-/' ids/there/sweep.csv ids/there/machine.json
"$BENCH" recommend ids > joined 2> err || fail "two sweeps of one machine: $(cat err)"
[ "$(grep -c "^Recommended: downloaded " joined)" = 1 ] && ! grep -q "Recommended: mine" joined || fail "the later sweep: $(cat joined)"
"$BENCH" history add ids.db ids > /dev/null
"$BENCH" history changes ids.db --json changes.json > /dev/null
! grep -q '"model": "mine-here"' changes.json || fail "two series of one model: $(head -c 1500 changes.json)"

# Without a path, the sweep that was written last.
rm -r results
mkdir -p results
cp -r "${machines[@]}" results
touch -d yesterday results/zen5-2vcpu/sweep.csv
"$BENCH" recommend > newest 2> err || fail "$(cat err)"
grep -q "^the newest sweep: results/granite-rapids-2vcpu$" err || fail "the newest: $(cat err)"
rm -r results
refused 2 "no sweep is in results" recommend
grep -q "^builds: " usual || fail "builds differ: $(cat usual)"
awk 'length > 79 { print; bad = 1 } END { exit bad }' usual || fail "wider than 79 columns"

# By hand: price of the hour over the tokens of the hour; a price of one's own wins.
cat > prices.yaml << 'END'
prices:
- {machine: "zen5*", per_hour: 1.8, currency: EUR}
- {machine: "*", per_hour: 0.36, currency: EUR, what: mine, date: today}
END
"$BENCH" compare "${machines[@]}" --prices prices.yaml --utilisation 50% --json > own.json
python3 - own.json << 'END' || fail "the figures: $(head -c 2000 own.json)"
import json, sys
c = json.load(open(sys.argv[1]))
assert c["by"] == "cost" and c["utilisation"] == 0.5 and c["ctx"] == 4096
granite, zen5 = c["machines"]
assert granite["machine"] == "granite-rapids-2vcpu" and granite["place"] == 1
for m, price in (granite, 0.36), (zen5, 1.8):
    assert m["price_per_hour"] == price
    for of, speed in (("out", m["tok_per_s"]["mid"]),
                      ("in", m["recommendation"]["prefill"]["tok_per_s"])):
        hand = price / (speed * 3600 * 0.5) * 1e6
        assert abs(m[f"cost_{of}_per_million"]["mid"] / hand - 1) < 1e-4, (of, hand)
    assert m["tok_per_s"]["lo"] < m["tok_per_s"]["mid"] < m["tok_per_s"]["hi"]
assert granite["p_first"] > 0.99
assert any("zen5-2vcpu is first at a price below" in t for t in c["changes"]), c["changes"]
END

# The same wishes as `bench recommend`, and its setting.
"$BENCH" compare "${machines[@]}" --min-tps 6 --ctx 0 --by speed > floor
grep -q "^ 1 zen5-2vcpu " floor || fail "by speed: $(cat floor)"
"$BENCH" recommend "${machines[1]}" --json > rec.json
"$BENCH" compare "${machines[1]}" --json > alone.json
python3 - rec.json alone.json << 'END' || fail "another setting than recommend's"
import json, sys
rec, c = (json.load(open(f)) for f in sys.argv[1:])
for key in "quant", "n_threads", "ctx", "tok_per_s":
    assert rec["best"][key] == c["machines"][0]["recommendation"]["best"][key], key
END
"$BENCH" compare "${machines[@]}" --min-tps 6 --by speed > floor
grep -q "^   granite-rapids-2vcpu  *-$" floor || fail "who misses the floor: $(cat floor)"
tr -s ' \n' ' ' < floor | grep -q "granite-rapids-2vcpu: .*no measured setting qualifies" ||
    fail "why: $(cat floor)"

# A database: its machines by their names, of each point the latest run, beside a directory.
for machine in "${machines[@]}"; do
    mkdir -p later "hosts/${machine##*/}"
    sed "s/\"host\": .*/\"host\": \"${machine##*/}\",/" "$machine/machine.json" > "hosts/${machine##*/}/machine.json"
    cp "$machine/sweep.csv" "hosts/${machine##*/}"
done
"$BENCH" history add all.db hosts > /dev/null
"$BENCH" compare all.db --price 'zen5*=0.1159' --price granite-rapids-2vcpu=0.1008 > stored
sed -n '/^  *machine/,/^What would/p' usual > wanted
sed -n '/^  *machine/,/^What would/p' stored | diff wanted - || fail "from a database: $(cat stored)"
sed -e 's/"utc": .*/"utc": "2027-01-01T00:00:00Z",/' hosts/zen5-2vcpu/machine.json > later/machine.json
python3 - hosts/zen5-2vcpu/sweep.csv later/sweep.csv << 'END' || fail "a later sweep"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
out = csv.DictWriter(open(sys.argv[2], "w"), rows[0].keys())
out.writeheader()
for r in rows:
    if r["quant"] == "Q4_0" and r["tok_per_s"]:
        r["utc"] = "2027" + r["utc"][4:]
        for key in "tok_per_s", "tok_per_s_lo", "tok_per_s_hi":
            r[key] = str(float(r[key] or "nan") / 2) if r[key] else ""
        out.writerow(r)
END
"$BENCH" history add all.db later > /dev/null
"$BENCH" compare all.db --by speed > stored
grep -q "^zen5-2vcpu: AMD EPYC, 2 CPUs; Q4_K_M" stored || fail "not the latest rows: $(cat stored)"
"$BENCH" history add twins.db "${machines[@]}" > /dev/null # both call themselves the same
"$BENCH" compare twins.db --json | grep -q '"machine": "[^"]* (AMD EPYC)"' || fail "names of twins"
mkdir gate
cp "$SRC/tests/fuzz/seeds/gate_json/gate.json" gate
"$BENCH" gate --report gate --no-charts --add-to empty.db > out || [ -s empty.db ] || fail "$(cat out)"
refused 2 "holds no rows of sweeps" compare empty.db

# Another program: the setting and the notes name it.
mkdir peers
python3 - "${machines[1]}/sweep.csv" peers/sweep.csv << 'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
other = {"engine": "llama.cpp", "engine_version": "b7", "cpus_quota": "1.5"}
out = csv.DictWriter(open(sys.argv[2], "w"), rows[0] | other)
out.writeheader()
for r in rows:
    out.writerow(r | other)
END
"$BENCH" compare "${machines[0]}" peers --by speed -o charts > other 2> /dev/null
tr -s ' \n' ' ' < other > line
grep -q "^peers: .*; Q4_0, 2 threads of llama.cpp, CPU quota 1.5;" other || fail "which program: $(cat other)"
grep -q "programs: llama.cpp b7 (peers), slmbench (granite-rapids-2vcpu)" line || fail "programs differ: $(cat other)"
grep -q "CPU quotas: 1.50 (peers), none (granite-rapids-2vcpu)" line || fail "quotas differ: $(cat other)"

# Rows of one program, and of one quota, as --engine and --cpus-quota of `bench recommend`.
mkdir both
python3 - "${machines[1]}/sweep.csv" both/sweep.csv << 'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
out = csv.DictWriter(open(sys.argv[2], "w"), rows[0] | {"engine": "", "cpus_quota": ""})
out.writeheader()
def faster(r, by):
    return {k: str(float(r[k]) * by) for k in ("tok_per_s", "tok_per_s_lo", "tok_per_s_hi", "roof_tok_per_s") if r[k]}
for r in rows:
    out.writerow(r | {"engine": "", "cpus_quota": ""})
    out.writerow(r | faster(r, 2) | {"engine": "llama.cpp", "cpus_quota": "", "point": r["point"] + "/llama"})
    out.writerow(r | faster(r, 4) | {"engine": "", "cpus_quota": "1.5", "point": r["point"] + "/q1.5"})
END
chosen() {
    "$BENCH" compare both --by speed "$@" > chosen || fail "compare $*: $(cat chosen)"
    sed -n 's/^both: [^;]*; \([^;.]*[^;]*\);.*/\1/p' chosen
}
[ "$(chosen)" = "Q4_0, 2 threads of llama.cpp" ] || fail "the faster program: $(cat chosen)"
[ "$(chosen --engine slmbench)" = "Q4_0, 2 threads" ] || fail "--engine slmbench: $(cat chosen)"
[ "$(chosen --cpus-quota 1.5)" = "Q4_0, 2 threads, CPU quota 1.5" ] || fail "--cpus-quota: $(cat chosen)"
refused 1 "none has a setting" compare both --engine ollama

# Markdown with nothing of others' as markup.
"$BENCH" compare "${machines[@]}" --markdown > table.md
grep -q '^| 1 | zen5-2vcpu | AMD EPYC, 2 CPUs | Q4\\_0, 2 threads | ' table.md ||
    fail "Markdown: $(cat table.md)"
mkdir 'a|b'
cp "${machines[0]}"/sweep.csv 'a|b'
"$BENCH" compare 'a|b' --markdown > odd.md
grep -qF '| a\|b | unknown CPU |' odd.md || fail "a name is markup: $(cat odd.md)"

# The chart.
prices=(--price 'zen5*=0.1159' --price 'granite*=0.1008')
draws_alone alone "$BENCH" compare "${machines[@]}" "${prices[@]}" -o alone
grep -q ">What an answer costs, and how fast it comes<" alone/cost_speed.svg || fail "no title"
if command -v gnuplot > /dev/null; then
    "$BENCH" compare "${machines[@]}" "${prices[@]}" -o charts > /dev/null 2> said || fail "$(cat said)"
    for ending in csv gp svg png; do
        [ -s "charts/cost_speed.$ending" ] || fail "no cost_speed.$ending"
    done
    draws_again charts cost_speed
    grep -q "^1,.*,zen5-2vcpu,Q4_0,0$" charts/cost_speed.csv || fail "$(cat charts/cost_speed.csv)"
    "$BENCH" compare 'a|b' -o charts > /dev/null 2> said
    grep -q "no machine has a price" said || fail "$(cat said)"
    [ ! -e charts/cost_speed.svg ] || fail "an old chart stays"
fi

refused 2 "name the directories" compare
refused 2 "cannot read nowhere" compare nowhere
refused 1 "none has a setting" compare "${machines[@]}" --min-tps 100
refused 2 "prices.none" compare "${machines[@]}" --prices prices.none
refused 2 "--utilisation" compare "${machines[@]}" --utilisation 0
refused 2 "--by" compare "${machines[@]}" --by taste
refused 2 "no machine has a price" compare 'a|b' --by cost

# Servers of two machines: what each carries, and its figures where all were measured.
users=$SRC/results/examples/zen5-users-1.1b
mkdir -p served/fast served/slow
cp "$users"/{sweep.csv,machine.json} served/fast
cp "$users/machine.json" served/slow
python3 - "$users" << 'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1] + "/sweep.csv")))
out = csv.DictWriter(open("served/slow/sweep.csv", "w"), rows[0].keys())
out.writeheader()
for r in rows:
    if r["engine"] == "slmbench" and r["n_users"] != "8":  # half as fast
        for key in "tok_per_s", "tok_per_s_lo", "tok_per_s_hi":
            r[key] = str(float(r[key]) / 2)
        out.writerow(r)
END
sed -i '/llama.cpp/d' served/fast/sweep.csv
"$BENCH" compare served/* > served.txt 2> err || fail "servers of two machines: $(cat err)"
tr -s ' \n' ' ' < served.txt > line
grep -q "^slmbench on fast serves 8 users who read the stream (the largest number tried), slmbench on slow 4 " line &&
    grep -q "; at 4 users slmbench on fast has 2.00 x the tok/s of slmbench on slow " line &&
    grep -q "slmbench on fast, 4 users: 112 tok/s \[99.8, 124\] (p90 TTFT 0.57 s, 32 ms a token), disturbed\." line &&
    grep -q "slmbench on slow, 4 users: 55.8 tok/s \[49.9, 61.8\]" line || fail "servers of two machines: $(cat served.txt)"
grep -q "ranked by" line && fail "servers alone are ranked: $(cat served.txt)"
refused 2 "prices are for machines with a sweep" compare served/* --price fast=1
# Next to a sweep, the machines are ranked as ever; the servers' machine has no setting.
"$BENCH" compare "${machines[@]}" served/fast > next 2> err || fail "servers and sweeps: $(cat err)"
grep -q "^Servers, by rows of bench load:" next && grep -q "^ 1 " next || fail "servers and sweeps: $(cat next)"
"$BENCH" compare served/* --json | python3 -c 'import json, sys
c = json.load(sys.stdin)
assert not c["machines"] and len(c["serves"]) == 2 and "on fast" in c["users"], c' || fail "servers as JSON"
"$BENCH" compare served/* --markdown | grep -q "^- slmbench on fast, 4 users" || fail "servers as Markdown"
