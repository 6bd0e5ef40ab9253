#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench topo on recorded machines: golden output. After a wanted change:
#     UPDATE=1 BENCH=... SRC=... WORK=... tests/cli/topo.sh
. "$SRC/tests/cli/lib.sh"
unset SLMBENCH_LLC SLMBENCH_PROBE
data=$SRC/tests/data/topo

# Containers may number the CPUs that are online anew: the mask is what the kernel enforces.
# masked ONLINE ALLOWED COUNT
masked() {
    rm -rf masked
    bash "$SRC/tests/data/topo/make.sh" smt-laptop masked
    echo "$1" >masked/sys/devices/system/cpu/online
    sed -i "s/^Cpus_allowed_list:.*/Cpus_allowed_list:\t$2/" masked/proc/self/status
    "$BENCH" topo --root masked >out 2>err || fail "online $1, mask $2: $(cat err)"
    grep -qE "CPUs allowed +$3( |\$)" out || fail "online $1, mask $2: $(grep allowed out)"
}
masked 0-7 5 1
masked 0 5 1
masked 0-1 4-5 2
masked 2,5 0-1 2

for name in smt-laptop two-socket vm-hidden vm-v1-limits container-1.5cpu offline-holes \
    arm-guest vm-smt; do
    bash "$data/make.sh" $name "$WORK/$name"
    "$BENCH" topo --root "$WORK/$name" >"$WORK/$name.txt" 2>"$WORK/$name.err"
    test ! -s "$WORK/$name.err"
    if [[ ${UPDATE:-} ]]; then cp "$WORK/$name.txt" "$data/$name.txt"; fi
    diff -u "$data/$name.txt" "$WORK/$name.txt"
    # JSON says the same
    threads=$("$BENCH" topo --json --root "$WORK/$name" |
        sed -n 's/^  "threads_default": \([0-9]*\),$/\1/p')
    grep -q "^  - Threads: use $threads: " "$WORK/$name.txt"
done

# a root given with a slash at its end is the same tree
"$BENCH" topo --root "$WORK/vm-hidden/" | diff "$data/vm-hidden.txt" -

# this machine, whatever it is
"$BENCH" topo | grep -q '^  - Threads: use [1-9]'
"$BENCH" topo --json >/dev/null

refused 2 "proc/cpuinfo" topo --root "$WORK/nowhere"
refused 2 "did you mean" topo --rooot
refused 2 "unexpected argument 'extra'" topo extra
refused 2 "leave one out" topo --measure --root "$WORK/vm-hidden"
refused 2 "is for what --measure reads" topo -o "$WORK/caches"

# which CPUs share a core: measured here, whatever comes out
if [ "$("$BENCH" topo --json | sed -n 's/.*"cpus_allowed": \([0-9]*\).*/\1/p')" -ge 2 ]; then
    "$BENCH" topo --measure | grep -q '^  - Hyperthreads, measured: ..*'
    "$BENCH" topo --measure --json | grep -q '"verdict": "\(one core\|two cores\|undecided\)"' ||
        "$BENCH" topo --measure --json | grep -q '"least_share_of_all": [0-9]'
fi

# on one CPU the cache is measured all the same
one=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
taskset -c "$one" "$BENCH" topo --measure >one
grep -q "there are no two to compare" one || fail "one CPU: $(cat one)"
taskset -c "$one" "$BENCH" topo --measure --json | grep -q '"cores_measured": null'

# the curve of the caches: a line for one thread and one for all, the same chart with
# gnuplot and without
"$BENCH" topo --measure -o caches >out
grep -q "is in caches: cache.csv and its chart" out || fail "$(cat out)"
[ "$(head -n 1 caches/cache.csv)" = line,threads,bytes,mib,again_gbps,evicted_gbps ] || fail "$(cat caches/cache.csv)"
awk -F, 'NR > 1 && !($2 >= 1 && $3 > 0 && $5 > 0 && $6 > 0) { exit 1 }' caches/cache.csv || fail "$(cat caches/cache.csv)"
if command -v gnuplot >/dev/null; then
    [ -s caches/cache.png ] || fail "$(ls caches)"
    draws_again caches cache
fi
draws_alone caches "$BENCH" topo --measure -o caches
"$BENCH" topo --help | grep -q -- "--root DIR"
