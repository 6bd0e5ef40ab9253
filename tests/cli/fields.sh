#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench fields: text, JSON, and the tables that results/README.md ends with
. "$SRC/tests/cli/lib.sh"

"$BENCH" fields >text
grep -qE '^  roof_gbps +GB/s +read bandwidth' text || fail "no roof: $(cat text)"
"$BENCH" fields --json >json
[ "$(grep -c '"name"' json)" = "$(grep -c '^  ' text)" ] || fail "JSON and text differ"
grep -q '"values"' json || fail "no values of closed sets: $(cat json)"
for type in text integer number; do
    grep -q "\"type\": \"$type\"" json || fail "no column of type $type: $(cat json)"
done
"$BENCH" fields --markdown >markdown
tail -n "$(wc -l <markdown)" "$SRC/results/README.md" | cmp - markdown ||
    fail "results/README.md is not up to date: append \`bench fields --markdown\`"
! "$BENCH" fields surplus 2>/dev/null || fail "an argument was accepted"
