#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench gate --report: every output written again from gate.json, whatever the names in it
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || { echo "needs python3"; exit 77; }
export SLMBENCH_CACHE=$WORK/cache

cat >gate.yaml <<END
model: $SRC/tests/data/models/stories260K-f32.gguf
threads: [1]
prefill: [none]
ctx: [8]
margin: 40%
memory: false
load: false
END

# gate PROGRAM-A DIR OPTIONS...: a short gate, whose verdict does not matter
gate() {
    local a=$1 dir=$2 code=0
    shift 2
    with_budget 2 "$BENCH" gate --b "$BENCH" --a "$a" -c ./gate.yaml --no-charts -o "$dir" "$@" ||
        code=$?
    case $code in
    0 | 1 | 4) ;;
    *) fail "gate $*: exit $code: $(cat err)" ;;
    esac
}

gate "$BENCH" same

# ---- all outputs again, with names that nobody would give
python3 - same <<'END'
import json, sys
p = sys.argv[1] + "/gate.json"
r = json.load(open(p))
h = "a]]>b::%0A\"<&|`'\n::error::x\x01\x1b[31m"
r["verdict"], r["end"], r["model"] = "fail", "clear", h
r["a"]["name"] = r["settings"] = r["disturbed"] = h
r["notes"] = "\n ::add-mask::x"
m = r["metrics"][0]
m.update(name=h, verdict="fail", effect=dict(ratio=.9, lo=.88, hi=.91, p_fail=.0001, p_pass=1))
r["metrics"].append(dict(m, name="another", verdict="pass", effect=dict(m["effect"], lo=None, hi=None)))
json.dump(r, open(p, "w"))
END
cp same/gate.json kept.json
if has_terminals; then
    code=0
    python3 "$SRC/tests/cli/at_terminal.py" 80 "$BENCH" gate --report same --no-charts >shown || code=$?
    [ $code = 1 ] && grep -q "^  *A  *B  *better by  *95 % interval  *margin  *verdict" shown ||
        fail "at a terminal of 80 columns: $code, $(cat shown)"
fi
rm same/gate.md same/junit.xml same/annotations.txt same/gate.prom
code=0
GITHUB_STEP_SUMMARY=$WORK/summary.md
export GITHUB_STEP_SUMMARY
echo "from another step" >summary.md
"$BENCH" gate --report same --annotations --junit own.xml --markdown "$GITHUB_STEP_SUMMARY" >out 2>err || code=$?
[ "$code" = 1 ] || fail "a failed gate, read back, ended with $code: $(cat err)"
cmp own.xml same/junit.xml || fail "two JUnit files"
head -n 1 summary.md | grep -q "from another step" || fail "the summary of another step is gone"
tail -n +2 summary.md | cmp - same/gate.md || fail "two summaries"
[ "$(grep -c '^::error title=' same/annotations.txt)" = 2 ] || fail "annotations: $(cat same/annotations.txt)"
! grep -v '^::\(error\|notice\|warning\) title=[^:,]*::' same/annotations.txt || fail "an annotation of several lines"

# ---- metrics, whatever the names; and the board of Grafana has no others
"$BENCH" rows "$SRC/results/examples/zen5-2vcpu" --format openmetrics >rows.prom
"$BENCH" rows "$SRC/results/examples/zen5-users-9b" --format openmetrics >load.prom
python3 "$SRC/tests/cli/decide/openmetrics.py" --board "$SRC/configs/grafana/slmbench.json" \
    rows.prom load.prom same/gate.prom >checked 2>&1 || fail "$(cat checked)"
grep -q '^slmbench_gate_change_ratio{.*metric="another"} -0\.1$' same/gate.prom || fail "$(cat same/gate.prom)"
grep -q '^::error title=a\]\]>b%3A%3A%250A' out || fail "not printed: $(cat out)"
! grep -q "$(printf '[\001\033]')" out || fail "the terminal is controlled: $(cat out)"
! grep -v '^::\(error\|notice\|warning\) title=' out | grep -qE '^[[:space:]]*::|##\[' ||
    fail "a name is a workflow command: $(cat out)"
python3 - <<'END' || fail "what was written again is not what was read"
import json, xml.etree.ElementTree as e
s = e.parse("same/junit.xml").getroot().find("testsuite")
assert [s.get(k) for k in ("tests", "failures", "skipped")] == ["2", "1", "0"]
assert s.find("testcase").get("name") == "a]]>b::%0A\"<&|`'\\x0a::error::x\\x01\\x1b[31m"
before, after = json.load(open("kept.json")), json.load(open("same/gate.json"))
before.pop("sentence"), after.pop("sentence")
assert before == after
END
if command -v gnuplot >/dev/null; then
    head -c 4 same/gate_forest.png | grep -q PNG && grep -q "</svg>" same/gate_forest.svg || fail "no chart"
    draws_again same gate_forest
fi
rm -f same/gate_forest.*
PATH=/nowhere "$BENCH" gate --report same >out 2>err || [ $? = 1 ] || fail "without gnuplot: $(cat err)"
grep -q "gnuplot is not installed, so charts are SVG only" err || fail "without gnuplot: $(cat err)"
grep -q "</svg>" same/gate_forest.svg && [ ! -e same/gate_forest.png ] || fail "no SVG: $(ls same)"
same_as_gnuplot same gate_forest

# ---- what is no result
refused 2 "cannot open nowhere/such/gate.json" gate --report nowhere/such
mkdir broken
head -c 700 kept.json >broken/gate.json
refused 2 "broken/gate.json is no JSON this program can read: line" gate --report broken
python3 -c 'print("[" + "0," * 3000000 + "0]")' >broken/gate.json
refused 2 "broken/gate.json has 3000002 values in 6000004 bytes; at most" gate --report broken
echo '{"format": "slmbench gate", "version": 2}' >broken/gate.json
refused 2 "is of version 2, and this program reads version 1" gate --report broken
echo '{}' >broken/gate.json
refused 2 "is not the result of a gate" gate --report broken
sed 's/"n_looks"/"n_books"/' kept.json >broken/gate.json
refused 2 'lacks "n_looks"' gate --report broken
