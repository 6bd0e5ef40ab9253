#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A point that cannot fit its sandbox is a row: planned so (no_fit), or, when
# forced, killed by the kernel for it (oom). Nothing is left behind.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache

code=0
"$BENCH" decode -m nano:Q4_0 -t 1 -n 8 --mem 512M --all >limited 2>err || code=$?
if [ "$code" = 3 ]; then
    echo "skipped: $(cat err)"
    exit 77
fi
[ "$code" = 0 ] || fail "exit $code: $(cat err limited)"
grep -qE '^status +ok$' limited || fail "not ok: $(cat limited)"
grep -qE '^mem_enforced_bytes +536870912 B$' limited || fail "limit: $(cat limited)"
for column in mem_peak_bytes mem_resident_bytes; do
    grep -qE "^$column +[1-9][0-9]+ B$" limited || fail "no $column: $(cat limited)"
done

code=0
"$BENCH" decode -m nano:F32 --weights memory -t 1 -n 4 --mem 16M --all >planned || code=$?
[ "$code" = 1 ] || fail "exit $code: $(cat planned)"
grep -qE '^status +no_fit$' planned || fail "not planned: $(cat planned)"
grep -q 'does not fit: needs' planned || fail "no reason: $(cat planned)"

code=0
"$BENCH" decode -m nano:F32 --weights packed -t 1 -n 4 --mem 34M --all >packed || code=$?
[ "$code" = 1 ] || fail "exit $code: $(cat packed)"
grep -q 'for weights, KV cache' packed || fail "weights can be paged: $(cat packed)"
"$BENCH" decode -m nano:F32 -t 1 -n 4 --mem 34M --all >mapped ||
    fail "a model that does not fit is mapped: $(cat mapped)"
grep -qE '^residency +mmap$' mapped || fail "not mapped: $(cat mapped)"

code=0
"$BENCH" decode -m nano:F32 --weights memory -t 1 -n 4 --mem 16M --force --all >killed || code=$?
[ "$code" = 1 ] || fail "exit $code: $(cat killed)"
grep -qE '^status +oom$' killed || fail "not killed: $(cat killed)"
grep -q 'killed for memory' killed || fail "no reason: $(cat killed)"

# The same within a sweep: rows, and the sweep goes on to its end.
"$BENCH" sweep -m nano:Q4_0 --threads 1 --ctx 0,2000000 --prefill none -n 4 --mem 512M \
    --no-charts --no-probe --launches 1 --max-launches 1 --repeats 0 -o sweep >out 2>err || fail "sweep: $(cat err)"
[ "$(wc -l <sweep/sweep.csv)" = 3 ] || fail "rows: $(cat sweep/sweep.csv)"
grep -q ',no_fit,' sweep/sweep.csv || fail "no no_fit: $(cat sweep/sweep.csv)"
grep -q ',ok,' sweep/sweep.csv || fail "no ok: $(cat sweep/sweep.csv)"

# Inside a container, whose limit counts without --mem: planned with, reported where it
# kills, and taken as the sandbox.
for top in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    box=$top/slm-test-$$
    [ -e "$top/memory.limit_in_bytes" ] || [ -e "$top/cgroup.subtree_control" ] || continue
    mkdir "$box" 2>/dev/null && break
    box=
done
[ -z "$box" ] || trap 'rmdir "$box"' EXIT
limit_file=
for file in memory.limit_in_bytes memory.max; do
    [ -n "$box" ] && [ -e "$box/$file" ] && limit_file=$file
done
if [ -n "$limit_file" ]; then
    echo $((96 << 20)) >"$box/$limit_file"
    inside() { (
        echo "$BASHPID" >"$box/cgroup.procs"
        exec "$BENCH" "$@"
    ); }
    long="-m nano:Q4_0 -t 1 -n 4 --ctx 1000000"

    inside topo | tr -s "\n " " " | grep -qF "memory limit 96.0 MiB ($box/$limit_file)" || fail "topo"
    inside topo | grep -qE "^  left of it +[0-9.]+ MiB" || fail "topo shows nothing left"
    code=0
    inside decode $long --all >planned 2>err || code=$?
    [ "$code" = 1 ] || fail "exit $code: $(cat planned err)"
    grep -qE '^status +no_fit$' planned || fail "not planned with: $(cat planned)"
    grep -q 'the memory limit in force leaves' planned || fail "no limit: $(cat planned)"
    code=0
    inside decode $long --force --all >killed 2>err || code=$?
    [ "$code" = 1 ] || fail "exit $code: $(cat killed err)"
    grep -qE '^status +oom$' killed || fail "not said to be killed: $(cat killed)"
    grep -qE '^detail +killed for memory .* limit of 96.0 MiB.*raise that limit' killed ||
        fail "no limit, no way out: $(cat killed)"
    inside decode -m nano:Q4_0 -t 1 -n 8 --mem container --all >limited 2>err ||
        fail "--mem container: $(cat limited err)"
    for column in mem_limit_bytes mem_enforced_bytes; do
        grep -qE "^$column +100663296 B$" limited || fail "no $column: $(cat limited)"
    done
    for column in mem_peak_bytes mem_resident_bytes; do
        grep -qE "^$column +[1-9][0-9]+ B$" limited || fail "no $column: $(cat limited)"
    done
fi

left=$(find /sys/fs/cgroup -type d -name 'slmbench.*' 2>/dev/null | while read -r dir; do
    pid=${dir##*slmbench.}
    [ -d "/proc/${pid%%.*}" ] || echo "$dir"
done)
[ -z "$left" ] || fail "groups left behind: $left"
