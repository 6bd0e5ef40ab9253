#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# CPU quotas: a worker is in a group that has one and is throttled; rows, identities and
# commands name it; the group is gone afterwards. Refusals, YAML, and the plan of a sweep.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache
python=$(command -v python3) || skip "needs python3"

refused 2 "--cpus-quota: 'much' is not a number" decode -m nano:Q4_0 --cpus-quota much
refused 2 "--cpus-quota: 0.123 has more than two decimals" decode -m nano:Q4_0 --cpus-quota 0.123
refused 2 "--cpus-quota: -1 CPUs are outside 0..1024" decode -m nano:Q4_0 --cpus-quota -1

# ---- a sweep has each of them
"$BENCH" sweep -m nano:Q4_0 -t 1,2 --ctx 0 --prefill none --mem none --launches 1 \
    --cpus-quota 0.5,1,none,0.50 --dry-run >out 2>err || fail "$(cat err)"
[ "$(grep -c '^nano' out)" = 6 ] || fail "not six points: $(cat out)"
for id in t1/spread/ctx0/q0.5 t2/spread/ctx0/q1 t2/spread/ctx0; do
    grep -qx "nano:Q4_0/decode/$id" out || fail "no $id: $(cat out)"
done
cat >quotas.yaml <<'END'
models: [nano:Q4_0]
threads: [1]
ctx: [0]
prefill: [none]
mem: [none]
cpus_quota: [0.25, none]
END
"$BENCH" sweep -c quotas.yaml --dry-run >out 2>err || fail "$(cat err)"
grep -qx "nano:Q4_0/decode/t1/spread/ctx0/q0.25" out || fail "$(cat out)"
echo 'cpus_quota: [x]' >bad.yaml
refused 2 "cpus_quota: 'x' is not a number" sweep -c bad.yaml

# ---- a quota in force. 5 ms in 100 ms: no machine is so busy that a thread gets less.
"$BENCH" decode -m nano:Q4_K_M --weights memory -t 1 --cpus-quota 0.05 --mem none \
    -n 4000 --budget 3 --json >row 2>err || {
    grep -q "may not make a cgroup with a CPU quota\|no CPU controller" err && skip "$(cat err)"
    fail "$(cat err)"
}
"$python" - row <<'END' || fail "row: $(cat row)"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["cpus_quota"] == 0.05 and r["point"].endswith("/q0.05"), r["point"]
assert r["throttled_ms"] > 500 and 20 < r["throttled_pct"] <= 100, r["throttled_pct"]
assert r["limiter"] == "quota" and "stopped by the CPU quota" in r["limiter_why"], r
assert " --cpus-quota 0.05 " in r["command"], r["command"]
assert "throttled" not in r["validity"], r["validity"]
assert "1 thread under a quota of 0.05 CPUs is stopped for 95 %" in r["detail"], r["detail"]
# stops are in few samples, and in the speed all the same
assert r["tok_per_s"] < 0.5 * 1000 / r["lat_p50_ms"], (r["tok_per_s"], r["lat_p50_ms"])
END
left=$(find /sys/fs/cgroup -maxdepth 6 -type d -name "slmbench.*" 2>/dev/null | while read -r d; do
    pid=${d##*/slmbench.} && kill -0 "${pid%%.*}" 2>/dev/null || echo "$d"
done)
[ -z "$left" ] || fail "groups were left behind: $left"

# Both limits at once, and threads as many as the quota lets run.
"$BENCH" decode -m nano:Q4_0 --cpus-quota 1 --mem 256M -n 20 --budget 2 --json >row 2>err ||
    fail "$(cat err)"
"$python" - row <<'END' || fail "row: $(cat row)"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["n_threads"] == 1 and r["cpus_quota"] == 1 and r["mem_limit_bytes"] == 256 << 20, r
assert r["mem_enforced_bytes"] == 256 << 20, r
END
