#!/bin/bash
# SPDX-License-Identifier: MIT
#
# speculate points: a text with its answer and one without, alone and in a sweep; what
# cannot be is refused.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache
model=$SRC/tests/data/models/shakespeare3M-f16.gguf
command -v python3 >/dev/null || { echo "needs python3"; exit 77; }

# check FILE TEXT: a row whose columns belong together
check() {
    python3 - "$@" <<'EOF' || fail "$1 is not as expected: $(cat "$1")"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["kind"] == "speculate" and r["status"] == "ok", r["status"]
assert r["spec_mode"] == "lookup" and r["spec_text"] == sys.argv[2]
assert r["n_samples"] == 2 and r["ctx"] > 3
assert 1 <= r["spec_tokens_per_pass"] <= 8
assert r["spec_accept"] is None or 0 <= r["spec_accept"] <= 1
speeds = r["tok_per_s"] / r["spec_plain_tok_per_s"]
assert r["spec_speedup_lo"] <= r["spec_speedup"] <= r["spec_speedup_hi"]
assert 0.2 < r["spec_speedup"] / speeds < 5, "median run and mean of both runs"
assert r["mbu"] is None and r["roof_gbps"] > 0
EOF
}

# ---- an answer that is given, its length by the rule
"$BENCH" decode -m nano:Q4_K_M --weights memory -t 1 --speculate copy -n 2 --budget 60 \
    --json >copy.json 2>err || fail "$(cat err)"
check copy.json copy
grep -q '"spec_tokens": 214,' copy.json || fail "not all of the answer: $(cat copy.json)"
grep -q '"spec_answer": "given"' copy.json || fail "$(cat copy.json)"
grep -q -- '--speculate copy ' copy.json || fail "the command does not say it"

# ---- the model's own answer, and a depth that is reached by prefill
printf 'What is the matter?\nWhat is the matter?\nWhat is' >own.txt
"$BENCH" decode -m "$model" -t 1 --speculate ./own.txt -n 2 --budget 60 --json >own.json \
    2>err || fail "$(cat err)"
check own.json own
grep -q '"spec_answer": "own"' own.json || fail "$(cat own.json)"
"$BENCH" decode -m "$model" -t 1 --speculate free --ctx 200 --ctx-prefill -n 2 \
    --budget 60 --json >free.json 2>err || fail "$(cat err)"
check free.json free
grep -q '"ctx": 200,' free.json || fail "another depth: $(cat free.json)"

# ---- cut short by its budget it says so
"$BENCH" decode -m "$model" -t 1 --speculate free --budget 0.01 --all >short.txt 2>err ||
    fail "$(cat err)"
grep -q "^status  *partial" short.txt || fail "$(cat short.txt)"
grep -q "ended it after .* of .* tokens of the text" short.txt || fail "$(cat short.txt)"

# ---- in a sweep, with a file that is named from elsewhere when going on
printf 'one two three four\n<answer>\none two three four one two three four' >list.txt
"$BENCH" sweep -c quick -t 1 --ctx none --prefill none --speculate list.txt,copy -o one \
    --mem none --no-probe --launches 1 --max-launches 1 --repeats 0 >out 2>err || fail "$(cat err)"
[ "$(grep -c ",speculate," one/sweep.csv)" = 2 ] || fail "2 rows: $(cat one/sweep.csv)"
grep -q "text copy .* x [0-9.]* (" out || fail "no factor in the table: $(cat out)"
grep -q "text list" out || fail "no row in the table: $(cat out)"
if command -v gnuplot >/dev/null; then
    [ -s one/speculation.svg ] || fail "no chart: $(ls one)"
fi
sed -i '$d' one/sweep.csv
(mkdir -p elsewhere && cd elsewhere && "$BENCH" sweep --resume ../one --no-charts >out 2>err) ||
    fail "$(cat elsewhere/err)"
[ "$(grep -c ",speculate," one/sweep.csv)" = 2 ] || fail "2 rows: $(cat one/sweep.csv)"

# ---- drafts of a model's own layer, accepted at a rate that is set
mtp=$SRC/tests/data/models/zoo/qwen35-mtp.gguf
"$BENCH" decode -m "$mtp" --weights packed -t 1 --speculate copy --mtp --accept 0.9 -n 1 --budget 60 \
    --json >mtp.json 2>err || fail "$(cat err)"
python3 - mtp.json <<'EOF' || fail "$(cat mtp.json)"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["spec_mode"] == "mtp" and r["spec_accept_set"] == 0.9, r["spec_mode"]
rates = [float(x) for x in (r["spec_accept_at"] or "1").split()]  # none: nothing drafted
assert 1 <= len(rates) <= 7 and all(0 <= x <= 1 for x in rates)
assert r["point"].endswith("/mtp/accept0.9") and " --mtp --accept 0.9 " in r["command"]
EOF
# A model with states decodes a text in one piece, and the budget ends it all the same.
"$BENCH" decode -m "$mtp" --weights packed -t 1 --speculate copy --mtp -n 1 --budget 0.01 \
    --json >short.json 2>err || fail "$(cat err)"
python3 - short.json mtp.json <<'EOF' || fail "$(cat short.json)"
import json, sys
short, whole = (json.load(open(f)) for f in sys.argv[1:])
assert 0 < short["spec_tokens"] < whole["spec_tokens"], whole["spec_tokens"]
assert short["status"] == "partial" and "tokens of the text" in short["detail"]
EOF

# ---- what drafts would gain, before there is a model or a draft model
machine=$SRC/results/examples/zen5-2vcpu/machine.json
plan="plan -m tinyllama-1.1b:Q4_K_M --draft nano:Q4_K_M -t 1 --json"
for from in "--machine $machine" ""; do # stored, or measured: no speed from a cache
    "$BENCH" $plan $from >plan.json 2>err || fail "$(cat err)"
    python3 - "$from" <<'EOF' || fail "$(cat plan.json)"
import json, sys
plan = json.load(open("plan.json"))
d = plan["drafts"]
if d is None:
    assert not sys.argv[1] and plan["prediction"]["tok_per_s"] is None, plan
    sys.exit(0)
p = d["passes"]
assert d["measured"] == (not sys.argv[1]) and p == sorted(p) and len(p) == 8, d
assert p[0] == 1 and 0 < d["draft_guess"] < 0.5 and d["mtp"] is None, d
assert all(1 <= a <= b for a, b in zip(d["draft"], d["lookup"])), d
EOF
done
"$BENCH" plan -m "$model" --json | grep -q '"drafts": null' || fail "drafts of nothing"

# ---- what cannot be
refused 3 "no layer that predicts further tokens" decode -m "$model" --speculate copy --mtp
refused 2 "come with the program: " decode -m "$model" --speculate poem
refused 2 "exclude each other" decode -m "$model" --speculate copy --prefill 8
refused 2 "random weights" decode -m nano:Q4_K_M --weights memory --speculate ./own.txt
refused 2 "right behind the prompt" decode -m "$model" --speculate ./own.txt --ctx 100
refused 2 "--speculate: there is no text 'x'" sweep -c quick --speculate x
printf 'prompt\n<answer>\n' >bad.txt
refused 2 "nothing follows" decode -m "$model" --speculate ./bad.txt
