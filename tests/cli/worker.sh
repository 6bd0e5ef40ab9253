#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench worker: it greets, answers requests one after another, also as `bench turn`, by
# which gates of all versions know it, and says what it cannot answer.
. "$SRC/tests/cli/lib.sh"

"$BENCH" synth nano Q4_0 -o nano.gguf >/dev/null
open='{"open": {"model": "nano.gguf", "path": "nano.gguf", "residency": 1, "kv_type": 0,
    "n_batch": 16, "cpus": [], "memory_bytes": 0, "isa_disabled": 0, "seed": 3, "slower": 0,
    "n_loads": 1, "steps": [[0, 1, 4, ""], [1, 1, 8, ""], [2, 1, 0, "q4_0"]]}}'
open=${open//$'\n'/}

for command in worker turn; do
    printf '%s\n{"take": [3, 2, 1]}\n{"take": [1, 0, 0]}\n' "$open" | "$BENCH" $command >out ||
        fail "exit $?: $(cat out)"
    head -n 1 out | grep -q '^{"turn":1,"opens":\["kv_window"\],"worker":1,"version":"[^"]*","commit":' ||
        fail "greeting of $command: $(head -n 1 out)"
    grep -q '^{"ready":{"load_s":\[[0-9.e-]*\],"quant":"Q4_0",' out || fail "not ready: $(cat out)"
    t='[0-9][0-9.e-]*'
    grep -q "^{\"s\":\[\[$t,$t,$t\],\[$t,$t\],\[$t\]\],\"noise\":{" out || fail "samples: $(cat out)"
    grep -q "^{\"s\":\[\[$t\],\[\],\[\]\],\"noise\":{" out || fail "one sample: $(cat out)"
done

# ---- what it cannot answer is one sentence, and its end
code=0
printf '{"sing": 1}\n%s\n' "$open" | "$BENCH" worker >out || code=$?
[ "$code" = 2 ] || fail "exit $code: $(cat out)"
grep -q '^{"error":".* knows no such request: {.*sing' out || fail "no error: $(cat out)"
! grep -q ready out || fail "it went on: $(cat out)"
echo '{"take": [1]}' | "$BENCH" worker >out && fail "samples of nothing"
grep -q '"error":"samples of other steps than those that were opened"' out || fail "no error: $(cat out)"
printf 'hello\n' | "$BENCH" worker >out && fail "a request that is no JSON"
"$BENCH" worker </dev/null | grep -q '"worker":1' || fail "no greeting"
