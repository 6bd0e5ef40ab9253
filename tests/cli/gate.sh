#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench gate --a --b: a slowdown that is put in is seen, equal builds do not fail; what is
# written, and read back; programs that cannot be measured or die; Ctrl-C and kill -9.
# Margins are wide, since nothing here may depend on how quiet the machine is.
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || { echo "needs python3"; exit 77; }
export SLMBENCH_CACHE=$WORK/cache
model=$SRC/tests/data/models/stories260K-f32.gguf

cat >wide.yaml <<END
model: $model
threads: [1]
prefill: [none]
ctx: [8]
kernels: [q4_K]
budget: 25s
margin: 40%
margin_memory: 50%
load: false
END
gate=(gate --a "$BENCH" --b "$BENCH" -c ./wide.yaml --no-charts)

# ---- equal builds: pass, or undecided on a machine that is never quiet; never a failure
code=0
SLMBENCH_PROGRESS=0.01 with_budget 4 "$BENCH" "${gate[@]}" -o same --seed 7 || code=$?
grep -q "^bench: gate: [0-9]* % done.*; " err || fail "no progress: $(cat err)"
[ "$code" = 0 ] || [ "$code" = 4 ] || fail "equal builds: exit $code: $(cat out err)"
grep -q "^decode, depth 8, 1 thread  *[0-9.]* tok/s" out || fail "no metric: $(cat out)"
grep -q "^gemv of q4_K in the cache, 1 thread  *[0-9.]* GB/s" out || fail "no kernel: $(cat out)"
grep -q "^peak memory  *[0-9.]* MiB" out || fail "no memory: $(cat out)"
grep -q "^results: same$" out || fail "no place: $(cat out)"

# ---- what is written: every round in order, the whole result as JSON
python3 - same <<'END' || fail "rounds.csv or gate.json is wrong"
import csv, json, math, sys
d = sys.argv[1]
rows = list(csv.DictReader(open(d + "/rounds.csv")))
r = json.load(open(d + "/gate.json"))
steps = [x for x in rows if x["metric"].startswith("decode")]
assert {x["order"] for x in steps} <= {"ABBA", "BAAB"}
for x in steps:
    t = [float(x["t%d" % i]) for i in (1, 2, 3, 4)]
    assert min(t) > 0
    a = math.log(t[0]) + math.log(t[3]) - math.log(t[1]) - math.log(t[2])
    if x["order"] == "BAAB":
        a = -a
    assert abs(float(x["log_ratio"]) - a / 2) < 1e-6, x
    assert x["counted"] == "1" or x["note"], x
assert len([x for x in rows if x["metric"] == "peak memory"]) == r["n_launches"]
assert sum(x["counted"] == "1" for x in steps) == r["n_rounds"]
assert sum(x["counted"] == "0" for x in steps) == r["n_disturbed"]
assert r["a"]["commit"] == r["b"]["commit"] != ""
assert "they are the same program, to the byte" in r["notes"], r["notes"]
assert [m["margin"] for m in r["metrics"]] == [0.4, 0.4, 0.5], r["metrics"]
END
cp out before
"$BENCH" gate --report same --no-charts >again || [ $? = $code ] || fail "read back: $(cat again)"
cmp before again || fail "read back, it says something else"
refused 2 "holds a gate already" "${gate[@]}" -o same

# into a database: its measures once, listed with their machine, beside no row of a sweep
for added in "3 of 3" "0 of 3"; do
    "$BENCH" gate --report same --no-charts --add-to gates.db >out || [ $? = $code ] || fail "add: $(cat out)"
    grep -q "^gates.db: $added measures added$" out || fail "add: $(cat out)"
done
"$BENCH" history gates gates.db --json gates.json >out || fail "gates: $(cat out)"
[ "$(grep -c "^  [^A]" out)" = 3 ] || fail "gates: $(cat out)"
python3 - same <<'END' || fail "gates.json is not as gate.json"
import json, sys
rows, r = json.load(open("gates.json")), json.load(open(sys.argv[1] + "/gate.json"))
assert r["machine"]["CPU"] in rows[0]["machine_name"] or r["machine"]["CPU"] == "unknown"
by_name = {m["name"]: m for m in r["metrics"]}
assert len(rows) == len(by_name) == 3
for row in rows:
    m = by_name[row["measure"]]
    assert row["measure_verdict"] == m["verdict"] and row["verdict"] == r["verdict"]
    for ours, theirs in (("ratio", "ratio"), ("ratio_lo", "lo"), ("ratio_hi", "hi")):
        want = m["effect"][theirs] # none of a bound where there were few rounds
        assert row[ours] == want or abs(row[ours] / want - 1) < 1e-8, row
    assert row["utc"] == r["when"] and row["host"] == r["host"] and row["a_name"] == r["a"]["name"]
END
[ -z "$("$BENCH" rows gates.db --format csv | tail -n +2)" ] || fail "a gate is a row"
refused 2 "is not a complete database" gate --report same --add-to "$SRC/LICENSE"
refused 2 "--calibrate gives none" gate --calibrate --add-to gates.db
refused 2 "which is read" gate --report same --add-to gates.db --json gates.db

# ---- a slowdown is seen, and every output says that it was put in
for budget in 5 15 50 100; do # the longer ones are for a machine that is very busy
    code=0
    rm -rf slow
    with_budget $budget "$BENCH" "${gate[@]}" -o slow --inject-slowdown 70 --exit-codes 0,7,4 \
        --junit own.xml --markdown own.md --annotations || code=$?
    [ "$code" = 4 ] || break
done
[ "$code" = 7 ] || fail "a slowdown of 70 %: exit $code: $(cat out err)"
grep -q "on purpose" own.md && grep -q "on purpose" own.xml && grep -q '"injected": 0.[67]' slow/gate.json ||
    fail "not everywhere said that it was slowed down"
grep -q "IS SLOWED DOWN by 70 %" out && grep -q "^::error" out || fail "output: $(cat out)"
grep -q "^fail: B is worse in [dg]" out || fail "sentence: $(cat out)"

# ---- what it can do here: a table, and the same as JSON
code=0
"$BENCH" gate --calibrate -c ./wide.yaml --budget 8s --detect 89% -o can --seed 3 >out 2>err || code=$?
[ "$code" = 0 ] || grep -qE "^bench: (--budget 8.0 s is too short to calibrate with|a budget of 8.0 s holds|--detect)" err ||
    fail "calibrate: exit $code: $(cat out err)"
if [ "$code" = 0 ] || grep -q -- "--detect" err; then
    grep -q "^  decode, depth 8, 1 thread (margin 40 %)" out || fail "table: $(cat out)"
    grep -q "^In 8.0 s this machine detects" out || fail "no sentence: $(cat out)"
    python3 - <<'END' || fail "calibration.json is wrong"
import json
r = json.load(open("can/calibration.json"))
assert [b["budget_s"] for b in r["budgets"]] == [2, 4, 8]
assert r["seconds"] < 5 and r["wanted"] == .89 and r["sentence"].startswith("In 8.0 s this")
assert [b["n_launches"] for b in r["budgets"]] == sorted(b["n_launches"] for b in r["budgets"])
for b in r["budgets"]:
    if b["n_launches"]:
        assert b["n_false_failures"] <= 0.01 * b["n_gates"], b
        assert b["n_false_failures"] / b["n_gates"] < b["false_failures_at_most"] < 0.02
        assert all(m["smallest_loss_seen"] is None or
                   m["smallest_loss_seen"] > m["margin"] for m in b["metrics"])
END
fi
refused 2 "--detect belongs to --calibrate" gate --a "$BENCH" --detect 5
refused 2 "compares a program with itself" gate --calibrate --b "$BENCH"

# ---- programs that are none, that have no worker, or one of another protocol, that die
refused 2 "A: cannot find the program nowhere/bench" gate --a nowhere/bench -c ./wide.yaml
refused 2 "is not a program" gate --a "$WORK" -c ./wide.yaml
refused 2 "holds a gate already" gate --calibrate --a nowhere/bench -c ./wide.yaml -o same
refused 2 "wide.yaml cannot be written into" gate --a nowhere/bench -c ./wide.yaml -o wide.yaml/x
refused 2 "cannot be the name of a directory" gate --a nowhere/bench -c ./wide.yaml -o ''
refused 2 "does not start as a worker" gate --a /bin/true -c ./wide.yaml
refused 2 "Another program is given with what it prints" gate --a /bin/true -c ./wide.yaml
cat >other <<'END'
#!/bin/sh
[ "$1" = --version ] && echo "bench 9.9.9" && exit
echo '{"turn": 99, "version": "9.9.9", "commit": "x", "compiler": "y"}'
read line
END
cat >dies <<END
#!/bin/sh
"$BENCH" turn | (read hello; echo "\$hello"; echo "out of luck" >&2; kill -SEGV \$\$)
END
cat >babbles <<END
#!/bin/sh
"$BENCH" turn | (read hello; echo "\$hello"; echo "what a nice day"; sleep 2)
END
chmod +x other dies babbles
refused 2 "other (bench 9.9.9), cannot take part in a gate: it speaks another protocol (99" \
    gate --a other -c ./wide.yaml
mkdir in_path && cp other in_path/elsewhere
PATH=$PWD/in_path:$PATH refused 2 "in_path/elsewhere (bench 9.9.9), cannot take part" \
    gate --a elsewhere -c ./wide.yaml
refused 2 "out of luck" gate --a "$BENCH" --b dies -c ./wide.yaml
grep -q "^bench: B, dies .*died of signal 11" err || fail "no signal: $(cat err)"
version=$("$BENCH" --version | cut -d " " -f 2)
refused 2 "B, babbles ($version" gate --a "$BENCH" --b babbles -c ./wide.yaml
grep -q "has sent something else than an answer" err || fail "babbles: $(cat err)"

# ---- how the model is held, from a configuration
printf 'model: nano:Q4_K_M\nctx: [90]\nprefill: [none]\nthreads: [1]\nweights: stream\nkv_window: 64\n' >held.yaml
printf 'memory: false\nload: false\nrounds: 1\n' >>held.yaml
code=0
with_budget 2 "$BENCH" gate --a "$BENCH" --b "$BENCH" -c ./held.yaml --no-charts -o held || code=$?
case $code in 0 | 1 | 4) ;; *) fail "held: $code, $(cat err)" ;; esac
grep -q "weights stream, KV cache f16 of the last 64 positions" out || fail "held: $(cat out)"

# ---- what cannot be
head -c 2000 /dev/zero >broken.gguf
refused 2 "broken.gguf" gate --a "$BENCH" -c ./wide.yaml -m broken.gguf
refused 2 "nofile.gguf" gate --a "$BENCH" -c ./wide.yaml -m nofile.gguf
refused 2 "more than the 16 that a gate can judge" gate --a "$BENCH" -c ./wide.yaml --ctx 0-20
grep -v kernels wide.yaml >bare.yaml
refused 2 "nothing to measure" gate --a "$BENCH" -c ./bare.yaml --ctx none
refused 2 "--margin: '2x' is not a percentage" gate --a "$BENCH" -c ./wide.yaml --margin 2x
refused 2 "--budget: '5y' is not a time" gate --a "$BENCH" -c ./wide.yaml --budget 5y
refused 2 "--exit-codes: '0,1' is not three numbers" gate --a "$BENCH" --exit-codes 0,1
refused 2 "--weights: a gate's weights are mmap, packed or stream" gate --a "$BENCH" --weights memory
refused 2 "a budget of 1.0 s holds" gate --a "$BENCH" -m nano:Q4_0 --budget 1s --ctx 0-9
refused 2 "name two programs" gate
refused 2 "--report and --a and --b exclude each other" gate --a "$BENCH" --report x
refused 2 "unexpected argument 'surplus'" gate surplus

printf 'modell: nano:Q4_0\n' >bad.yaml
refused 2 "modell" gate --a "$BENCH" -c ./bad.yaml

# ---- Ctrl-C: no child is left, the result says that it was interrupted
start() { # DIR: a gate that takes long, in the background, until it has some rounds
    "$BENCH" "${gate[@]}" --margin 0.1% --budget 5m -o "$1" >"$1.out" 2>"$1.err" &
    pid=$!
    for _ in $(seq 600); do
        [ -e "$1/rounds.csv" ] && [ "$(wc -l <"$1/rounds.csv")" -gt 3 ] && break
        sleep 0.05
    done
    [ "$(wc -l <"$1/rounds.csv")" -gt 3 ] || fail "no rounds within 30 s: $(cat "$1.err")"
    children=$(pgrep -P $pid || true)
    for child in $children; do children+=" $(pgrep -P $child || true)"; done
}
gone() { # the children that were seen are not there any more
    for _ in $(seq 100); do
        alive=
        for child in $children; do # one that nobody has reaped yet is gone, too
            ! grep -qs '^State:[[:space:]]*[^Z[:space:]]' "/proc/$child/status" || alive=$child
        done
        [ -n "$alive" ] || return 0
        sleep 0.05
    done
    fail "a measured program outlived its gate"
}
trap '' HUP # as nohup does: the end of a session is not its end
start stopped
trap - HUP
kill -HUP $pid
sleep 0.2
kill -0 $pid || fail "nohup did not help: $(cat stopped.err)"
kill -INT $pid
code=0
wait $pid || code=$?
[ "$code" = 130 ] || fail "interrupted: exit $code: $(cat stopped.out stopped.err)"
gone
grep -q "^inconclusive: Interrupted after" stopped.out || fail "$(cat stopped.out)"
tr '\n' ' ' <stopped.out | tr -s ' ' | grep -q "at the same time (without the lock: SLMBENCH_LOCK=none)" ||
    fail "the lock that it did not take is not reported: $(cat stopped.out)"
python3 - <<'END' || fail "gate.json of an interrupted gate"
import json
r = json.load(open("stopped/gate.json"))
assert r["verdict"] == "inconclusive" and r["end"] == "interrupted", (r["verdict"], r["end"])
END

# ---- a copy of the program takes the same memory, however the page cache holds its file
cp "$BENCH" copy
with_budget 4 "$BENCH" gate --a "$BENCH" --b ./copy -m "$model" --no-charts -o copied || code=$?
python3 - <<'END' || fail "peak memory of a copy"
import csv, statistics
ratios = [float(r["log_ratio"]) for r in csv.DictReader(open("copied/rounds.csv")) if r["metric"] == "peak memory"]
assert ratios and abs(statistics.median(ratios)) < 0.01, ratios
END

# ---- kill -9: no child is left, rounds are whole lines
start killed
kill -9 $pid
wait $pid 2>/dev/null || true
gone
python3 - <<'END' || fail "a torn line in rounds.csv"
import csv
text = open("killed/rounds.csv").read()
rows = list(csv.reader(text.splitlines()))
assert text.endswith("\n") and len({len(r) for r in rows}) == 1
END

# ---- research/gate-trials: gates of every kind as rows, and no gate twice
trials() { # OUT.csv OPTIONS...
    with_budget 2 python3 "$SRC/research/gate-trials" "$@" -m "$model" || fail "gate-trials $*: $(cat err)"
    mv out table
}
trials trials.csv --bench "$BENCH" --kinds same:1,hog:1,10:1
[ "$(cut -d, -f1 trials.csv | sort | tr '\n' ' ')" = "10 hog kind same " ] || fail "$(cat trials.csv)"
grep -q "^| B slowed down by 10 % | 1 | " table || fail "table: $(cat table)"
cp trials.csv before
trials trials.csv --bench "$BENCH" --kinds same:1,hog:1,10:1
cmp before trials.csv || fail "a gate was run again"
# a machine on which every launch is slow: 2 s hold too few of them, which is no failure
printf '#!/bin/sh\n[ "$1" != turn ] || sleep 0.4\nexec "%s" "$@"\n' "$BENCH" >slow-machine
chmod +x slow-machine
trials slow.csv --bench ./slow-machine --kinds same:1
grep -q "^same,1," slow.csv || fail "a slow machine: $(cat slow.csv)"
not_run() { # TEXT OPTIONS...
    local text=$1
    shift
    ! python3 "$SRC/research/gate-trials" "$@" >table 2>err || fail "gate-trials $* ran"
    grep -qF -- "$text" err || fail "gate-trials $* does not say '$text': $(cat err)"
    ! grep -q Traceback err || fail "gate-trials $*: $(cat err)"
}
not_run "'fast:3' is not same:N" trials.csv --kinds fast:3
not_run "--server needs --program" trials.csv --server="-m x"
not_run "no/bench is not a program" trials.csv --bench no/bench
not_run "no/where.csv" no/where.csv --bench "$BENCH" --kinds same:1
printf 'same,2,pa' >>trials.csv
not_run "line 5 is not a whole row" trials.csv --bench "$BENCH"
