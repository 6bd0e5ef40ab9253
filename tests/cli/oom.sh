#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A point that cannot fit its sandbox is a row: planned so (no_fit), or, when
# forced, killed by the kernel for it (oom). Nothing is left behind.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache

code=0
"$BENCH" decode -m nano:Q4_0 -t 1 -n 8 --mem 512M >limited 2>err || code=$?
if [ "$code" = 3 ]; then
    echo "skipped: $(cat err)"
    exit 77
fi
[ "$code" = 0 ] || fail "exit $code: $(cat err limited)"
grep -qE '^status +ok$' limited || fail "not ok: $(cat limited)"
grep -qE '^mem_enforced_bytes +536870912 B$' limited || fail "limit: $(cat limited)"
grep -qE '^mem_peak_bytes +[0-9]+ B$' limited || fail "no peak: $(cat limited)"

code=0
"$BENCH" decode -m nano:F32 --in-memory -t 1 -n 4 --mem 16M >planned || code=$?
[ "$code" = 1 ] || fail "exit $code: $(cat planned)"
grep -qE '^status +no_fit$' planned || fail "not planned: $(cat planned)"
grep -q 'does not fit: needs' planned || fail "no reason: $(cat planned)"

code=0
"$BENCH" decode -m nano:F32 --weights packed -t 1 -n 4 --mem 34M >packed || code=$?
[ "$code" = 1 ] || fail "exit $code: $(cat packed)"
grep -q 'for weights, KV cache' packed || fail "weights can be paged: $(cat packed)"
"$BENCH" decode -m nano:F32 -t 1 -n 4 --mem 34M >mapped ||
    fail "a model that does not fit is mapped: $(cat mapped)"
grep -qE '^residency +mmap$' mapped || fail "not mapped: $(cat mapped)"

code=0
"$BENCH" decode -m nano:F32 --in-memory -t 1 -n 4 --mem 16M --force >killed || code=$?
[ "$code" = 1 ] || fail "exit $code: $(cat killed)"
grep -qE '^status +oom$' killed || fail "not killed: $(cat killed)"
grep -q 'killed for memory' killed || fail "no reason: $(cat killed)"

# The same within a sweep: rows, and the sweep goes on to its end.
"$BENCH" sweep -m nano:Q4_0 --threads 1 --ctx 0,2000000 --prefill none -n 4 --mem 512M \
    --no-charts --no-probe --repeats 0 -o sweep >out 2>err || fail "sweep: $(cat err)"
[ "$(wc -l <sweep/sweep.csv)" = 3 ] || fail "rows: $(cat sweep/sweep.csv)"
grep -q ',no_fit,' sweep/sweep.csv || fail "no no_fit: $(cat sweep/sweep.csv)"
grep -q ',ok,' sweep/sweep.csv || fail "no ok: $(cat sweep/sweep.csv)"

left=$(find /sys/fs/cgroup -type d -name 'slmbench.*' 2>/dev/null | while read -r dir; do
    pid=${dir##*slmbench.}
    [ -d "/proc/${pid%%.*}" ] || echo "$dir"
done)
[ -z "$left" ] || fail "groups left behind: $left"
