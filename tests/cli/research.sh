#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench-research: counts depend on the seed alone, an interrupted run continues where it
# was, and a recorded machine is one more; change points and thresholds; shares of
# measured sweeps; what kernels by tiles execute, and the script that times them.
. "$SRC/tests/cli/lib.sh"
PROGRAM=$BENCH BENCH=${RESEARCH:?}
export SLMBENCH_CACHE=$WORK/cache

trace=$SRC/research/traces/xeon-building.txt

# ---- counts do not depend on the threads
"$RESEARCH" gates --gates 8 -t 1 --trace "$trace" --no-charts -o one >one.txt
"$RESEARCH" gates --gates 8 -t 3 --trace "$trace" --no-charts -o three >out
cmp one/gate_simulation.csv three/gate_simulation.csv
cmp one.txt out
cmp one.txt one/gate_simulation.md
"$RESEARCH" gates --gates 8 --seed 2 --trace "$trace" --no-charts -o two >out
! cmp -s one/gate_simulation.csv two/gate_simulation.csv || fail "the seed changes nothing"
python3 - one/gate_simulation.csv <<'EOF'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
ours = [r for r in rows if r["rule"] == "bench gate"]
machines = {r["machine"] for r in rows}
assert len(machines) == 8 and "xeon-building" in machines, machines
assert len(rows) == (7 * 4 + 2) * 9 + 8 * 5 * 2, len(rows)
for r in ours:
    invented = r["machine"] != "xeon-building"
    if float(r["slowdown_percent"]) == 0:
        assert r["failed"] == "0", r
        assert not invented or int(r["passed"]) >= 6, r
    if float(r["slowdown_percent"]) == 10 and invented:
        assert r["failed"] == "8", r
    assert 80 <= int(r["launches"]) <= 640, r
EOF

# ---- what is done is not played again, a line cut short is
sed -i '2s/,8,1,\([^,]*\),0,/,8,1,\1,5,/; 2s/,8,[0-9]*,[^,]*,[^,]*$/,3,80,62.5,88.9/' one/gate_simulation.csv
head -c -20 one/gate_simulation.csv >cut && mv cut one/gate_simulation.csv
sed -n 2p one/gate_simulation.csv >kept
grep -q ',5,3,80,' kept || fail "the row is another than this test thinks: $(cat kept)"
code=0
"$RESEARCH" gates --gates 8 --trace "$trace" --no-charts -o one >out 2>err || code=$?
[ $code = 1 ] || fail "five false failures of eight ended with $code: $(cat err)"
grep -qF '62.50 % of the gates of equal builds failed (gaussian, 1 metric' err || fail "odd: $(cat err)"
sed 2d one/gate_simulation.csv >a && sed 2d three/gate_simulation.csv >b && cmp a b
sed -n 2p one/gate_simulation.csv | grep -q ',5,3,80,62.5' || fail "a finished cell was played again"

# ---- stopped while it plays
code=0
"$RESEARCH" gates --trace "$trace" --gates 3000 -o long >out 2>err &
pid=$!
for _ in $(seq 1200); do
    [ ! -s long/gate_simulation.csv ] || [ "$(wc -l <long/gate_simulation.csv)" -lt 2 ] || break
    sleep 0.05
done
kill -TERM $pid
wait $pid || code=$?
[ $code = 130 ] || fail "an interrupted run ended with $code: $(cat err)"
[ "$(wc -l <long/gate_simulation.csv)" -ge 2 ] || fail "an interrupted run kept nothing"

# ---- charts
if command -v gnuplot >/dev/null; then
    "$RESEARCH" gates --gates 4 --trace "$trace" -o drawn >out
    for chart in gate_power gate_rivals; do
        [ -s drawn/$chart.svg ] && [ -s drawn/$chart.png ] || fail "no chart $chart"
    done
    draws_alone drawn "$RESEARCH" gates --gates 4 --trace "$trace" -o drawn
fi

# ---- recording
"$RESEARCH" record-trace t.txt -m nano:Q4_K_M -t 1 --turns 100 --note "being tested"
[ "$(grep -vc '^#' t.txt)" = 100 ] || fail "not 100 turns: $(cat t.txt)"
head -1 t.txt | grep -qE '^# .*; nano:Q4_K_M, 1 thread, [0-9]+ tokens? a turn; being tested$' ||
    fail "odd head: $(head -1 t.txt)"
"$RESEARCH" gates --gates 2 --trace t.txt --no-charts >out
grep -q '^- t: 100 turns; .*being tested' out || fail "the trace is not told: $(cat out)"

# ---- refusals
refused 2 "name the model" record-trace t2.txt
refused 2 "--turns 10 is outside 100..1000000" record-trace t2.txt -m nano:Q4_K_M --turns 10
refused 2 "no-such-dir/t.txt" record-trace no-such-dir/t.txt -m nano:Q4_K_M
refused 2 "two traces are called t" gates --trace t.txt --trace ./t.txt
refused 2 "is more than ten million" gates --gates 100000000
refused 2 "--margin: 60 is outside" gates --margin 60
head -50 t.txt >short.txt
refused 2 "short.txt has 48 turns, and a trace is at least 100" gates --trace short.txt
sed '7s/.*/-3/' t.txt >odd.txt
refused 2 "odd.txt, line 7: -3 is outside" gates --trace odd.txt
refused 2 "gone.txt" gates --trace gone.txt
refused 2 "record-trace needs the file to write" record-trace -m nano:Q4_K_M
refused 2 "unexpected argument 'surplus'" gates surplus
refused 2 "there is no command 'gate'" gate
refused 2 "gates has no option --budget; \`bench-research gates --help\` lists them" gates --budget 3

# ---- change points beside thresholds, at a small size
"$RESEARCH" histories --histories 24 >sim
grep -q "^| change points (ours) | [89][0-9] %\|^| change points (ours) | 100 %" sim || fail "$(cat sim)"
[ "$(grep -c "^| .* from the " sim)" = 8 ] || fail "thresholds: $(cat sim)"

# ---- shares
examples=("$SRC"/results/examples/*2vcpu*)

"$RESEARCH" shares "${examples[@]}" "$SRC"/results/examples/emerald-rapids-kernels > shares.yaml
cmp shares.yaml "$SRC/configs/shares.yaml" || fail "configs/shares.yaml is not that of the examples"
refused 2 "shares needs directories" shares
refused 2 "cannot read nowhere" shares nowhere

# ---- help fits a terminal
for command in "" gates histories coverage shares record-trace; do
    "$RESEARCH" $command --help >help || fail "$command --help"
    grep -q "^usage: bench-research " help || fail "$command --help: $(cat help)"
    [ "$(wc -l <help)" -le 45 ] && ! grep -q '.\{81\}' help || fail "$command --help is too large"
done

# ---- research/mutate: which mutants a text has, scores of stored rows, what is refused
python3 -B - "$SRC/research" <<'END' || fail "mutants of a text"
import sys
sys.path.insert(0, sys.argv[1])
from mutants import mutants_of
text = """#define LIMIT 7
struct pair { int v[3]; };
static int f(const int *a, int n)
{
    int sum = 0;

    assert(n < 3); /* n < 4 */
    if (n > 1 && a[0] != '+')
        sum -= 2;
    puts("a < b");
    return sum;
}
"""
got = [(m.kind, m.before, m.after) for m in mutants_of(text)]
assert got == [
    ("constant", "0", "1"), ("condition", "if (n > 1 && a[0] != '+')", "if (!(n > 1 && a[0] != '+'))"),
    ("relation", ">", ">="), ("relation", ">", "<="), ("constant", "1", "2"), ("constant", "1", "0"),
    ("logic", "&&", "||"), ("constant", "0", "1"), ("relation", "!=", "=="),
    ("statement", "sum -= 2;", ";"), ("sign", "-=", "+="), ("constant", "2", "3"), ("constant", "2", "1"),
    ("statement", 'puts("a < b");', ";")], got
for m in mutants_of(text):
    assert text[m.at:m.at + len(m.before)] == m.before, m
END
cat >mutants.csv <<'END'
file,source,line,column,kind,before,after,result,test,seconds
a.c,1,1,1,word,true,false,killed,test_a,1.0
a.c,1,2,1,word,true,false,survived,,1.0
a.c,1,3,1,word,true,false,timeout,test_a,9.0
a.c,1,2,1,word,true,false,killed,test_a,1.0
a.c,1,4,1,word,true,false,same code,,1.0
a.c,1,5,1,word,true,false,survived,,1.0
END
python3 -B "$SRC/research/mutate" mutants.csv --table >table
grep -qx "| a.c | 5 | 3 | 1 | 1 | 1 | 0 | 75 % |" table || fail "scores: $(cat table)"
not_mutated() { # TEXT OPTIONS...
    local text=$1
    shift
    ! python3 -B "$SRC/research/mutate" "$@" >table 2>err || fail "mutate $* ran"
    grep -qF -- "$text" err || fail "mutate $* does not print '$text': $(cat err)"
    ! grep -q Traceback err || fail "mutate $*: $(cat err)"
}
not_mutated "nothing.c is not a C file of" new.csv nothing.c
not_mutated "name its tests with --tests" new.csv "$SRC/engine/base/status.c"
not_mutated "tests/ has no test that is called test_nothing" new.csv "$SRC/engine/base/status.c" --tests test_nothing
not_mutated "--sample 0 is not a number from 1 on" new.csv --sample 0
not_mutated "nowhere.a is not a file" new.csv --kernels nowhere.a
not_mutated "new.csv has no rows of mutants" new.csv --table
printf 'a.c,1,7' >>mutants.csv
not_mutated "line 8 is not a whole row" mutants.csv --table

# ---- what a step of tiles executes, in a made-up listing
python3 -B - "$SRC/research/tile-counts" <<'END'
import runpy, sys
tool = runpy.run_path(sys.argv[1], run_name="tile_counts")
def listing(body):
    lines = ["vmovups (%rax),%zmm0"] + body + ["prefetcht0 (%rax)", "lea 0x8(%rax),%rax", "jne    7"]
    return "0000000000000000 <kern_x>:\n" + "".join(f" {7 * i:x}:\t{l}\n" for i, l in enumerate(lines)) + "\n"
def step(body):
    return tool["find_step"](tool["read_function"](listing(body), "kern_x"))
a, b = "tileloadd (%rax,%rbx,1),%tmm4", "tileloadd (%rax,%rbx,1),%tmm6"
store, add = "tilestored %tmm0,(%rax,%rbx,1)", "vcvtdq2ps (%rsp),%zmm1"
two = [a] * 4 + [b] * 16 + ["tdpbsud %tmm6,%tmm4,%tmm0"] * 16 + [store] * 4
n = step(two + [add] * 200 + ["vmovaps %zmm0,(%rsp)"] * 9)
assert (n["products"], n["tiles of A"], n["tiles of B"], n["loads"], n["vectors"], n["stores"]) == \
    (16, 4, 16, 200, 200, 9), n
assert tool["bound"](n) == (260, 128 / 260), tool["bound"](n)      # loads: (20 * 16 + 200) / 2
assert tool["bound"](step(two)) == (256, 128 / 256)                # products
one = [a] * 8 + [b] * 8 + ["tdpbssd %tmm6,%tmm4,%tmm0"] * 16 + [store] * 4
assert tool["bound"](step(one + ["vpaddd %zmm0,%zmm1,%zmm2"] * 600)) == (300, 256 / 300) # vectors
blocks = [a, b, "tdpbssd %tmm6,%tmm4,%tmm0", store] * 8
assert step(blocks + [add] * 64) is None                           # of 8 columns
assert tool["bound"](step(blocks + [add] * 128)) == (160, 64 / 160) # (8 * 16 + 8 * 8 + 128) / 2
assert step([add]) is None and tool["read_function"]("", "kern_x") == []
END
! python3 -B "$SRC/research/tile-counts" nowhere 2>err || fail "a build that is not there is counted"
grep -qF "nowhere has no kernels of amx_int8" err || fail "odd: $(cat err)"

# ---- research/tiles: ends in time, and prints what it left out
! "$SRC/research/tiles" >out 2>&1 || fail "no arguments are enough"
# tiles MINUTES [--engine NAME=COMMAND]: the list into left
tiles() {
    python3 -B "$SRC/research/tiles" "$PROGRAM" tiles "$@" >out 2>err || fail "research/tiles: $(cat out err)"
    sed -n '/^Left out:$/,$p' out >left
}
minutes=0
! is_full || minutes=short
tiles "$minutes"
grep -q '"usable": true' <("$PROGRAM" topo --json | grep -A1 '"amx_int8"') ||
    grep -q "^  everything by tiles: this CPU " left || fail "no word of tiles: $(cat out)"
grep -qx "  other programs: no --engine names one" left || fail "no word of other programs: $(cat out)"
for name in products products-2048 prompts vectors gate large first first-vectors \
    large-sequences users sequences; do
    if is_full; then
        ! grep "^  $name:" left || fail "failed: $(cat out)"
    else
        grep -qx "  $name: no time for all of it" left || fail "$name in no time: $(cat out)"
    fi
done
for server in tiles vectors; do
    ! is_full || grep -q "^$server  *8: [0-9]" out || fail "no users of $server: $(cat out)"
done
tiles 0 --engine 'ik=ik/llama-bench -rtr 1'
! grep "other programs" left || fail "left out, but named"
sed -n 's/^--- \([a-z-]*\),.* --engine ik=ik\/llama-bench -rtr 1 .*/\1/p' out >named
[ "$(tr '\n' ' ' <named)" = "prompts large first " ] || fail "not the prompts: $(cat named out)"
rm -rf "$WORK"
