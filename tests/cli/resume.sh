#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench sweep --resume in a directory that someone else may have written: settings out
# of their ranges are refused in one sentence, and no file is removed that no sweep made.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache
command -v python3 >/dev/null || { echo "needs python3"; exit 77; }

"$BENCH" sweep -m nano:Q4_0 --threads 1 --ctx 0 --prefill none -n 2 --budget 0.1 --mem none \
    --no-probe --no-charts --launches 1 --max-launches 1 --repeats 0 -o good >out 2>err || fail "exit $?: $(cat err)"
refused 2 "good holds results already; --resume continues them" sweep -m nano:Q4_K_M --no-probe -o good

# with KEY VALUE: the directory bad, whose sweep has another value, a Python expression
with() {
    rm -rf bad
    cp -r good bad
    python3 - "$1" "$2" <<'EOF'
import json, sys
machine = json.load(open("good/machine.json"))
machine["sweep"][sys.argv[1]] = eval(sys.argv[2])
json.dump(machine, open("bad/machine.json", "w"))
EOF
}

# is_refused SAYS KEY VALUE
is_refused() {
    local code=0
    with "$2" "$3"
    timeout 60 "$BENCH" sweep --resume bad --no-charts --no-probe >out 2>err || code=$?
    [ "$code" = 2 ] || fail "$2 = $3: exit code $code: $(head -c 2000 err)"
    [ "$(wc -l <err)" = 1 ] || fail "$2 = $3: not one line: $(cat err)"
    grep -qF "bad/machine.json: sweep: $1" err || fail "$2 = $3 says: $(cat err)"
    grep -q "correct it there, or begin a new sweep" err || fail "no way out: $(cat err)"
}
is_refused 'threads: 5000 threads are outside 1..1024' threads '[5000]'
is_refused 'threads: 1025 threads are outside 1..1024' threads '[1, 1025]'
is_refused 'threads: a list of 0' threads '[]'
is_refused 'threads_prefill: 5000 threads are outside' threads_prefill '[5000]'
is_refused 'ctx: 2147483647 tokens are outside 0..16777216' ctx '[2147483647]'
is_refused 'ctx: 4294967297 tokens are outside' ctx '[2**32 + 1]'
is_refused 'ctx: a list of 100000' ctx '[1] * 100000'
is_refused 'prefill: 0 tokens are outside 1..16777216' prefill '[0]'
is_refused 'batch: 4294967297 tokens are outside 1..65536' batch '2**32 + 1'
is_refused 'budget_s: 1e+308 seconds are outside 0.01..86400' budget_s '1e308'
is_refused 'mem_limit: -1 bytes are outside' mem_limit '-1'
is_refused 'cache_dir: a text of 10000 characters; at most 255 are possible' cache_dir '"x" * 10000'
is_refused 'tuned: this version has no profiles' tuned '"auto"'
is_refused 'models: a name of 10000 characters' models '["x" * 10000]'
is_refused 'weights: ' weights '["x" * 10000]'
is_refused 'keep_models is true or false, not a whole number' keep_models '1'

# Each in range, and more together than any sweep has.
rm -rf bad
cp -r good bad
python3 - <<'EOF'
import json
machine = json.load(open("good/machine.json"))
machine["sweep"].update(threads=list(range(1, 1025)), ctx=list(range(1024)))
json.dump(machine, open("bad/machine.json", "w"))
EOF
code=0
timeout 60 "$BENCH" sweep --resume bad --no-charts --no-probe >out 2>err || code=$?
[ "$code" = 2 ] && grep -q "more than 10000 points" err || fail "exit code $code: $(cat err)"

# The machine's description is read for the advice.
rm -rf bad
cp -r good bad
python3 - <<'EOF'
import json
machine = json.load(open("good/machine.json"))
machine["topology"]["limits"].update(cpus_allowed=2**40, cpu_quota=1e308)
json.dump(machine, open("bad/machine.json", "w"))
EOF
"$BENCH" recommend bad >out 2>err || fail "exit $?: $(cat err)"

# ---- other settings than its own are not dropped without a word
for other in "--prefill-sums int8" "--kv-type q8_0" "--threads 2" "-m nano:Q8_0" "-c quick" "-o else"; do
    option=${other%% *}
    case $option in -m) option=--model ;; -c) option=--config ;; -o) option=--output ;; esac
    # shellcheck disable=SC2086 # words
    refused 2 "$option and --resume exclude each other" sweep --resume good $other --no-charts --no-probe
done

# ---- another machine, limit or build: rows of two are not one sweep
# differs SAYS PYTHON: good's machine.json with another value is not resumed
differs() {
    rm -rf bad
    cp -r good bad
    python3 - "$2" <<'EOF'
import json, sys
machine = json.load(open("good/machine.json"))
topology, versions = machine["topology"], machine["versions"]
exec(sys.argv[1])
json.dump(machine, open("bad/machine.json", "w"))
EOF
    refused 2 "$1" sweep --resume bad --no-charts --no-probe
    grep -q "sweep in bad .*begin a new one with -o" err || fail "no way out: $(cat err)"
    cmp good/sweep.csv bad/sweep.csv || fail "rows were added"
}
differs "its CPU is 'Other CPU', here '" 'topology["cpu"]["model"] = "Other CPU"'
differs "its CPU quota is '0.25 CPUs', here '" 'topology["limits"]["cpu_quota"] = 0.25'
differs "its memory is '1.00 GiB', here '" 'topology["limits"]["memory_bytes"] = 2**30'
differs "its CPU layout is '" 'topology["limits"]["cpus_allowed"] = 2**40'
differs "was measured by bench 9.9.9 (abc), this is $("$BENCH" --version | sed 's/^[a-z]* *//; s/, .*//'):" \
    'versions["bench"] = "9.9.9 (abc)"'
differs "was measured by bench built by cc 1.2, this is built by " 'versions["compiler"] = "cc 1.2"'
differs "was measured by bench unknown, this is" 'del machine["versions"]'
differs "does not say what machine" 'del machine["topology"]'
differs "was measured by bench a" 'versions["bench"] = "a" * 10000'
rm -rf bad
cp -r good bad
"$BENCH" sweep --resume bad --no-charts --no-probe >out 2>err || fail "the same machine: $(cat err)"

# ---- a sweep that was interrupted before a disturbed launch was replaced
# Two points, one of them disturbed in its only launch: --resume launches it again, and it
# alone, once for each repeat, and the recommendation goes by the new launch.
"$BENCH" sweep -m nano:Q4_0 --threads 1 --ctx 0,8 --prefill none -n 2 --budget 0.1 --mem none \
    --no-probe --no-charts --launches 1 --max-launches 1 --repeats 0 -o cut >out 2>err || fail "exit $?: $(cat err)"
sed -i 's/"repeats": 0/"repeats": 1/' cut/machine.json
grep -q '"repeats": 1' cut/machine.json || fail "no repeats: $(cat cut/machine.json)"
# disturb ROW...: these rows of the table, from 0, were disturbed, and the others not; no
# roof disturbs any by comparison
disturb() {
    python3 - "$@" <<'EOF'
import csv, sys
rows = list(csv.DictReader(open("cut/sweep.csv", newline="")))
for i, r in enumerate(rows):
    r["validity"] = "disturbed: others 50 %" if str(i) in sys.argv[1:] else "valid"
    r["roof_gbps"] = r["mbu"] = ""
with open("cut/sweep.csv", "w", newline="") as f:
    out = csv.DictWriter(f, rows[0], lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
EOF
}
# depth:launch of all rows, in one line
launched() {
    python3 -c 'import csv
print(*[r["ctx"] + ":" + r["attempt"] for r in csv.DictReader(open("cut/sweep.csv", newline=""))])'
}
resume_cut() {
    "$BENCH" sweep --resume cut --no-charts --no-probe >out 2>err || fail "resume: $(cat err)"
    launched
}
disturb 0
before=$(launched) depth=$(launched | cut -d: -f1)
[ "$(resume_cut)" = "$before $depth:2" ] || fail "not launched again: $(launched), and before $before"
disturb 0
[ "$(resume_cut)" = "$before $depth:2" ] || fail "launched although it is known: $(launched)"
"$BENCH" recommend cut --ctx "$depth" --json >answer.json 2>err || fail "recommend: $(cat err)"
python3 - "$depth" <<'EOF' || fail "the disturbed launch was recommended: $(cat answer.json)"
import json, sys
best = json.load(open("answer.json"))["best"]
assert best["ctx"] == int(sys.argv[1]) and best["attempt"] == 2 and best["validity"] == "valid"
EOF
disturb 0 2
[ "$(resume_cut)" = "$before $depth:2" ] || fail "more than one repeat: $(launched)"

# ---- rows say what build they are of
python3 - "$("$BENCH" --version | sed 's/^[a-z]* *//; s/, .*//')" <<'EOF' || fail "no build: $(cat good/sweep.csv)"
import csv, sys
rows = list(csv.DictReader(open("good/sweep.csv", newline="")))
assert rows and all(r["build"] == sys.argv[1] for r in rows), rows
EOF

# ---- a file of the user's that has a model's name, in a directory that .made names
mkdir theirs
head -c 3000 /dev/zero >theirs/nano-Q4_0.gguf
with cache_dir '"'"$WORK"'/theirs"'
echo "$WORK/theirs/nano-Q4_0.gguf" >bad/.made
refused 2 "add --cache-dir $WORK/theirs if it should be" sweep --resume bad --no-charts --no-probe
"$BENCH" sweep --resume bad --cache-dir theirs --no-charts --no-probe >out 2>err || fail "exit $?: $(cat err)"
[ -e theirs/nano-Q4_0.gguf ] || fail "the user's file was removed"

# ---- nothing is made where only the directory says so
rm -rf bad
with cache_dir '"'"$WORK"'/elsewhere"'
head -n 1 good/sweep.csv >bad/sweep.csv
refused 2 "which is not where models are made here" sweep --resume bad --no-charts --no-probe
[ ! -e elsewhere ] || fail "a directory was made where a foreign file says"
