#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# topo, plan, quick and a sweep with another program on machines that are described, not
# there: caches from none to 1.1 GiB, hyperthreads, one CPU, a virtual machine that hides
# its hyperthreads, 8 GiB of memory. Figures are this machine's; what must hold is that
# every step ends, that rows have a bandwidth ceiling, and that no process takes more
# memory for it because a cache is said to be large.
#
# ci/test takes two of the machines, ci/full all.
#
# hwloc takes caches and cores from HWLOC_SYNTHETIC; /proc/meminfo and /proc/cpuinfo are
# described in a mount namespace, where one can be had.
. "$SRC/tests/cli/lib.sh"
unset SLMBENCH_LLC SLMBENCH_PROBE
export SLMBENCH_CACHE=$WORK/cache
command -v python3 >/dev/null || skip "no python3"

MIB=$((1 << 20))
n_cpus=$(getconf _NPROCESSORS_CONF)
"$BENCH" synth nano Q4_0 -o nano.gguf >/dev/null
printf '#!/bin/sh\necho "model $2 speed: 250.5 tok/s"\n' >other
chmod +x other

# Runs a command; at most SECONDS, at most MIB in any of its processes. What it takes at
# most is far above what it needs on the slowest machine, and far below what a buffer of
# four caches would take.
cat >bounded.py <<'END'
import resource, subprocess, sys
seconds, mib, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
try:
    code = subprocess.run(command, timeout=seconds).returncode
except subprocess.TimeoutExpired:
    sys.exit(f"{' '.join(command)}: not at its end after {seconds} s")
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
if peak > mib:
    sys.exit(f"{' '.join(command)}: {peak} MiB in one process; at most {mib} are expected")
sys.exit(code)
END
bounded() {
    python3 bounded.py 120 900 "$BENCH" "$@"
}

# cpus CORES PUS [L3 bytes]: hwloc's description of a socket
cpus() {
    local l3=""
    [ -z "${3:-}" ] || l3="L3:1(size=$3) "
    echo "[NUMANode(memory=$((8 << 30)))] package:1 ${l3}core:$1 L2:1(size=$((2 * MIB))) L1d:1(size=49152) pu:$2"
}

# described NAME SMT L3_BYTES: the whole chain on the machine that the environment
# describes; SMT as topo's JSON has it, L3 0: none
described() {
    local name=$1
    bounded topo --json >$name.topo 2>err || fail "$name: topo: $(cat err)"
    bounded topo >out 2>err || fail "$name: topo: $(cat err)"
    ! grep -qiE "(^|[^a-z])(nan|inf)([^a-z]|$)" out || fail "$name: topo: $(cat out)"
    bounded plan -m nano.gguf --json >$name.plan 2>err || fail "$name: plan: $(cat err)"
    bounded quick -m nano.gguf --seconds 1 --prompt 16 --json >$name.quick 2>err ||
        fail "$name: quick: $(cat err)"
    bounded sweep -m nano.gguf --threads 1 --ctx 0 --prefill none -n 8 --budget 1 --mem none --no-charts --no-probe \
        --repeats 0 --launches 1 --max-launches 1 --engine "other=$WORK/other -m {model} -t {threads} =~ speed: ([0-9.]+)" \
        -o sweep-$name >out 2>err || fail "$name: sweep: $(cat out err)"
    grep -q "^Recommended: " out || fail "$name: no recommendation: $(cat out)"
    python3 - "$@" <<'END' || fail "$name: rows or JSON are wrong"
import csv, json, sys
name, smt, l3 = sys.argv[1], sys.argv[2], int(sys.argv[3])
topo, plan, quick = (json.load(open(f"{name}.{what}")) for what in ("topo", "plan", "quick"))
cpu = topo["cpu"]
assert cpu["smt"] == smt or smt == "any", cpu["smt"]
assert sum(c["bytes"] for c in cpu["caches"] if c["level"] == 3) == l3, cpu["caches"]
assert 1 <= topo["threads_default"] <= topo["limits"]["cores_allowed"], topo["limits"]
assert plan["verdict"] == "fits", plan["verdict"]
assert any(m["figures"] == "measured" and m["tok_per_s"] > 0 for m in quick["models"]), quick
rows = list(csv.DictReader(open(f"sweep-{name}/sweep.csv")))
assert sorted(r["engine"] for r in rows) == ["", "other"], rows
for r in rows:
    assert r["status"] == "ok" and float(r["roof_gbps"]) > 0 and float(r["mbu"]) > 0, r
    assert r["limiter"] or not r["limiter_why"], ("a limiter without a name", r["limiter_why"])
END
    rm -r sweep-$name
}

# described_as CPUS NAME SMT L3_BYTES
described_as() {
    HWLOC_SYNTHETIC=$1 described "${@:2}"
}

hidden=$("$BENCH" topo --json | python3 -c 'import json, sys
print("hidden" if json.load(sys.stdin)["cpu"]["hypervisor"] else "none")')
one() {
    cpus "$n_cpus" 1 "$@"
}

# ---- caches
if is_full; then
    described_as "$(one)" no-l3 $hidden 0
    for mib in 4 32 480; do
        described_as "$(one $((mib * MIB)))" l3-${mib}m $hidden $((mib * MIB))
    done
fi

# ---- hyperthreads, and one CPU of several
! is_full || [ "$n_cpus" -lt 2 ] ||
    described_as "$(cpus $((n_cpus / 2)) 2 $((32 * MIB)))" smt shown $((32 * MIB))
(
    taskset -pc "$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)" $BASHPID >/dev/null
    described_as "$(one $((32 * MIB)))" one-cpu $hidden $((32 * MIB))
    [ "$(sed -n 's/^ *"cpus_allowed": \([0-9]*\).*/\1/p' one-cpu.topo)" = 1 ] || fail "not one CPU: $(cat one-cpu.topo)"
)

# ---- two NUMA nodes described where there is one: the row has where the weights lie, and a
# remark where threads of both read them; ci/machines has two nodes
if [ "$(echo /sys/devices/system/node/node[0-9]*)" = /sys/devices/system/node/node0 ] && [ "$(threads_for 2)" = 2 ]; then
    nodes="package:2 [NUMANode(memory=$((4 << 30)))] core:$((n_cpus / 2)) pu:1"
    for cpus in "spread 2" "spread 1"; do
        HWLOC_SYNTHETIC=$nodes bounded decode -m nano.gguf -t ${cpus#* } --placement ${cpus% *} -n 8 --budget 2 --all \
            >out 2>err || fail "two nodes: $(cat err)"
        grep -qE '^mem_nodes +0:100$' out || fail "two nodes: $(cat out)"
        [ "$(grep -cE '^detail.* 100 % of the weights lie on NUMA node 0, and the threads run on 2 nodes' out)" = \
            $((${cpus#* } - 1)) ] || fail "two nodes, $cpus: $(cat out)"
    done
fi

# ---- a virtual machine that says nothing of hyperthreads; four caches are more than half
# of its memory
export -f fail bounded described described_as cpus one
export MIB n_cpus
cat >small.sh <<'END'
set -eu
sed -E 's/^(MemTotal: *)[0-9]+/\18388608/; s/^(MemFree|MemAvailable)(: *)[0-9]+/\1\27340032/' /proc/meminfo >meminfo
sed -E '/^flags/ { / hypervisor( |$)/! s/$/ hypervisor/ }' /proc/cpuinfo >cpuinfo
mount --bind meminfo /proc/meminfo
mount --bind cpuinfo /proc/cpuinfo
[ "$("$BENCH" topo --json | sed -n 's/^ *"total_bytes": \([0-9]*\).*/\1/p')" = $((8 << 30)) ] || fail "not 8 GiB"
described_as "$(one $((1126 * MIB)))" l3-1.1g $hidden $((1126 * MIB))
END
if unshare -m true 2>/dev/null; then
    hidden=hidden unshare -m bash small.sh
else
    described_as "$(one $((1126 * MIB)))" l3-1.1g $hidden $((1126 * MIB))
    echo "8 GiB of memory and a hidden hypervisor were not described: no mount namespace can be had"
fi
rm -rf "$WORK"
