#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench quick: sentences and JSON of small models, files and shapes; what is refused; an
# interrupt.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache
python=$(command -v python3) || skip "needs python3"

"$BENCH" quick -m nano:Q4_0 --seconds 1 --prompt 64 -t 1 >out 2>err || fail "$(cat err)"
tr '\n' ' ' <out | grep -qE "A [0-9.]+M model in Q4_0 fits with 2048 tokens of context and decodes (about|at least) [0-9.]+ tok/s with 1 thread; a 64-token prompt takes (at most )?[0-9.]+ (m?s|min)\." ||
    fail "no sentence: $(cat out)"
grep -qE "^nano .* (measured|at least that fast)$" out || fail "no table: $(cat out)"
[ "$(grep -n "fits with 2048 tokens" out | cut -d: -f1)" -gt "$(grep -n "^nano " out | cut -d: -f1)" ] ||
    fail "the answer is not last: $(cat out)"
[ "$(wc -L <out)" -le 80 ] || fail "wide lines: $(cat out)"
[ ! -d cache ] || [ -z "$(ls cache)" ] || fail "a model was written: $(ls cache)"

# Two models and JSON; a file has its name.
file=$SRC/tests/data/models/stories260K-f32.gguf
"$BENCH" quick -m nano:Q4_K_M -m "$file" --seconds 2 --prompt 32 --ctx 64 --json >out 2>err ||
    fail "$(cat err)"
"$python" - out <<'END' || fail "JSON: $(cat out)"
import json, sys
o = json.load(open(sys.argv[1]))
measured = {m["name"]: m for m in o["models"] if m["figures"] == "measured"}
assert set(measured) == {"nano", "stories260K-f32"}, measured.keys()
assert 1 <= o["n_rounds"] <= 5
for m in measured.values():
    assert m["tok_per_s"] > 0 and m["prompt_s"] > 0 and m["fits"] and m["ctx"] == 64, m
    assert len(m["decode"]) == len(m["prefill"]) == o["n_rounds"], m
others = [m for m in o["models"] if m["figures"] == "predicted"]
assert len(others) >= 10 and all(m["n_params"] > 0 for m in others)
assert not any("embed" in m["model"] or "bge" in m["model"] for m in others) # these decode nothing
assert "yi-1.5-9b:Q4_K_M" in [m["model"] for m in others]
assert any(s.startswith("stories260K-f32 fits with 64 tokens") for s in o["sentences"])
assert o["machine"]["cpu"]["model"] is not None
END

# ---- beside programs that keep every CPU busy, in ci/full: other tests would suffer, too
hogs=()
trap 'kill "${hogs[@]}" 2>/dev/null || true' EXIT
if is_full; then
    for _ in $(seq $(nproc)); do
        while :; do :; done &
        hogs+=($!)
    done
    "$BENCH" quick -m nano:Q4_K_M --seconds 2 --prompt 64 >out 2>err || fail "$(cat err)"
    kill "${hogs[@]}"
    wait "${hogs[@]}" 2>/dev/null || true
    tr '\n' ' ' <out | grep -qE "(Somebody else|The hypervisor) took [0-9]+ % of the CPU" ||
        fail "who disturbed it: $(cat out)"
    grep -q "decodes at least" out || fail "a busy machine's figures as facts: $(cat out)"
fi

# ---- refusals
refused 2 "there is no shape" quick -m no-such-shape:Q4_0 --seconds 1
refused 2 "names Q4_0 twice" quick -m nano:Q4_0,Q4_0 --seconds 1
refused 2 "unexpected argument 'surplus'" quick surplus
refused 2 "--seconds" quick --seconds 0
limit=$("$BENCH" topo --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)["memory"]["total_bytes"])')
[ "$limit" -gt $((40 << 30)) ] ||
    refused 3 "mixtral-8x7b:F16 does not fit into" quick -m mixtral-8x7b:F16 --seconds 1

# ---- an interrupt
"$BENCH" quick -m nano:Q8_0 --seconds 60 >out 2>err &
sleep 1
kill -INT $! 2>/dev/null || true
code=0
wait $! || code=$?
[ $code = 130 ] || fail "an interrupt ended with $code: $(cat err)"
[ "$(cat err)" = "bench: interrupted" ] || fail "$(cat err)"
[ ! -s out ] || fail "half an answer: $(cat out)"
