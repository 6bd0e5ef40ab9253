#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench load: servers that end while they are asked, and what --launch takes.
. "$SRC/tests/cli/serve/lib.sh"

# ---- a server that is there no more: what was measured until then is said. Four requests
# are sent beforehand, and fourteen at the first level.
serve ttft=1 gap=1 fault=exit every=19
code=0
load --users 1,20 --requests 12 --output 2 -o rows || code=$?
[ $code = 2 ] || fail "a server that has ended is no error: $code, $(cat err)"
grep -q "requests failed: " err || fail "no reason: $(cat err)"
tr '\n' ' ' <out | grep -qE "The maximum is [0-9.]+ tok/s, with 1 user\." || fail "no answer: $(cat out)"
grep -qE "^ +1 +13 .* undecided$" out || fail "no level: $(cat out)"
[ "$(wc -l <rows/sweep.csv)" = 3 ] || fail "rows: $(cut -c1-80 rows/sweep.csv)"
# Numbers of users at which all requests failed are missed, for the report as well.
"$BENCH" report rows -o rows.html >report 2>err || fail "report: $(cat err)"
grep -q "20 are too many" rows.html && grep -q "all requests failed" rows.html ||
    fail "the report does not know that 20 users were too many"

# ---- one that was started here: that it ended is in its row, with its last words
cat >ends <<END
#!/bin/sh
"$SLOW_SERVER" port.e log.e port=\$1 ttft=1 gap=1 fault=exit every=8
echo "no memory is left" >&2
END
chmod +x ends
"$BENCH" load --launch "e=$PWD/ends {port}" --no-roof --prompt 40 --rate 50 --requests 30 \
    --output 2 --json >out 2>err || fail "$(cat err)"
grep -q '"detail": "e ended under load: no memory is left; without the lock: SLMBENCH_LOCK=none"' out || fail "not said: $(cat out)"

# ---- variables before the program, as Ollama's address is one
"$BENCH" load --launch "v=AT={port} sh -c 'exec \"$SLOW_SERVER\" port.v log.v port=\$AT'" --no-roof \
    --prompt 40 --users 1 --requests 5 --output 2 >out 2>err || fail "variables: $(cat err)"

# ---- one that wants a key for everything is there when it says so
SERVER_KEY=abc-123 "$BENCH" load --launch "k=$SLOW_SERVER port.k log.k port={port} key=abc-123" \
    --no-roof --prompt 40 --users 1 --requests 5 --output 2 --api-key-env SERVER_KEY \
    --start-timeout 3 >out 2>err || fail "a key: $(cat err)"

# ---- its CPUs, and its CPU quota, which needs permission
cpu=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
cat >placed <<END
#!/bin/sh
sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status >cpus.p
exec "$SLOW_SERVER" port.p log.p port=\$1 ttft=1 gap=1
END
chmod +x placed
"$BENCH" load --launch "p=$PWD/placed {port}" --cpus "$cpu" --no-roof --prompt 40 --users 1 \
    --requests 5 --output 2 --json >out 2>err || fail "its CPUs: $(cat err)"
[ "$(cat cpus.p)" = "$cpu" ] || fail "the server runs on $(cat cpus.p), not on $cpu"
grep -q "\"command\": \".* --cpus $cpu --users 1 " out || fail "not repeated: $(cat out)"
code=0
"$BENCH" load --launch "p=$PWD/placed {port}" --cpus-quota 0.5 --no-roof --prompt 40 --users 1 \
    --requests 5 --output 2 --json >out 2>err || code=$?
[ $code = 3 ] || grep -q '"cpus_quota": 0.5' out || fail "a quota: $code, $(cat err out)"

# ---- memory that does not hold what it reads is why it is slow, and its row says so
head -c 96M /dev/zero >weights
sync weights && dd if=weights iflag=nocache count=0 status=none # or its pages are ours
cat >pages <<END
#!/bin/sh
while cat weights >/dev/null; do :; done &
exec "$SLOW_SERVER" port.m log.m port=\$1 ttft=50 gap=1
END
chmod +x pages
code=0
"$BENCH" load --launch "m=$PWD/pages {port}" --mem 32M --no-roof --prompt 40 --users 1 \
    --requests 5 --output 2 --json >out 2>err || code=$?
[ $code = 3 ] || grep -q '"detail": "the server read .* MB again for each token' out ||
    fail "what was read again: $code, $(cat err out)"
rm weights

refused 2 "bench: q ended before it was ready, and printed nothing on standard error" \
    load --launch "q=true {port}"
refused 2 "CPU 100000" load --launch "p=$PWD/placed {port}" --cpus 100000
refused 2 "--cpus is for servers that --launch starts" load http://127.0.0.1:1 --cpus 0

refused 2 "--rounds repeats servers that --launch starts" load http://127.0.0.1:1 --rounds 2
refused 2 "two servers have the name a" load --launch "a=x {port}" --launch "a=y {port}"
rm -rf "$WORK"
