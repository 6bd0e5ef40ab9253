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
    head -n 1 out | grep -q '^{"turn":1,"opens":\["kv_window","prefill_sums"\],"worker":1,"version":"[^"]*","commit":' ||
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

# ---- a long pass over a prompt has a profile, although more of them would take too long
point='{"point": {"room": 4000000000, "point": {"model": "nano.gguf", "path": "nano.gguf", "cpus": [],
    "n_threads": 1, "n_threads_prefill": 0, "placement": 0, "n_batch": 512, "mem_limit": 0, "quota_hundredths": 0,
    "seed": 1, "residency": 2, "kv_type": 0, "kv_window": 0, "prefill_sums": 0, "isa_disabled": 0, "kind": 1,
    "explicit_cpus": false, "synthetic": false, "n_prompt": 8192, "ctx": 0, "ctx_prefill": false, "n_sequences": 1,
    "n_shared": 0, "n_chunk": 0, "text": "", "mtp": false, "accept_hundredths": 0, "n_answer": 0, "n_tokens": 1,
    "budget_s": 0.5, "load_budget_s": 120, "force": false, "profile": false, "engine": ""}}}'
echo "${point//$'\n'/}" | SLMBENCH_PROBE=rough "$BENCH" worker >out || fail "exit $?: $(cat out)"
if command -v python3 >/dev/null; then
    python3 - <<'END' || fail "no profile: $(cat out)"
import json
lines = [json.loads(line) for line in open("out")]
peak = next(line["row"]["roof_gops"] for line in lines if "row" in line)
facts = [line["facts"] for line in lines if "facts" in line]
if facts[0]["ops_per_sample"] >= 25e6 * peak: # else the peak is that of tiles
    assert facts[0]["profile_ms"] == 0
    assert 0 < facts[-1]["product_ms"] < facts[-1]["profile_ms"], facts
END
fi

# ---- one that hangs is found: stopped while it measures, and while another program runs.
# Its bound is its own: a --timeout that nothing could meet does not end it.
export SLMBENCH_SILENCE=6
# child_of PID: its process that measures
child_of() {
    local i child
    for ((i = 0; i < 600; i++)); do
        child=$(worker_of "$1")
        [ -z "$child" ] || break
        sleep 0.05
    done
    echo "$child"
}
if command -v pgrep >/dev/null; then
    cat >slow.sh <<'END'
#!/bin/sh
touch "$(dirname "$0")/runs"
while [ ! -e "$(dirname "$0")/stopped_worker" ]; do sleep 0.05; done
echo "speed: 250.5 tok/s"
END
    chmod +x slow.sh
    "$BENCH" decode -m nano.gguf -t 1 -n 20 --budget 1 --engine "x=$PWD/slow.sh {model} =~ speed: ([0-9.]+)" \
        --json >row 2>err &
    job=$!
    for ((i = 0; i < 1200; i++)); do [ ! -e runs ] || break; sleep 0.05; done
    worker=$(child_of $job)
    kill -STOP "$worker"
    touch stopped_worker
    wait $job || fail "beside another program, exit $?: $(cat err)"
    grep -q '"status": "ok"' row || fail "what was measured before is lost: $(cat row)"
    [ ! -e "/proc/$worker" ] || fail "the stopped worker is still there"

    "$BENCH" sweep -m nano.gguf --mem none --threads 1 --ctx 0 --prefill none --weights packed --no-charts \
        --no-probe --repeats 0 --launches 1 --max-launches 1 -n 1000000 --budget 600 --timeout 0.05 -o stopped \
        >out 2>err &
    job=$!
    # A sweep starts short workers before the one that measures.
    for ((i = 0; i < 60; i++)); do
        worker=$(child_of $job)
        [ -n "$worker" ] || fail "--timeout ended a worker: $(cat stopped/sweep.csv err)"
        sleep 1
        [ ! -e "/proc/$worker" ] || break
    done
    [ -e "/proc/$worker" ] || fail "no worker stays: $(cat stopped/sweep.csv err)"
    kill -STOP "$worker"
    wait $job || true
    grep -q "no progress for 6 s in phase" stopped/sweep.csv || fail "not found: $(cat stopped/sweep.csv err)"
    [ ! -e "/proc/$worker" ] || fail "the stopped worker is still there"
fi
