#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench load: servers that hang while their connections live, or do not end a body.
. "$SRC/tests/cli/serve/lib.sh"

# What keeps a connection alive is no text: it is silence, and no reason to wait for ever.
serve ttft=1 gap=1 fault=ping every=4
load --users 2 --requests 5 --output 4 --timeout 0.2 || fail "ping: $(cat err)"
tr '\n' ' ' <out | tr -s ' ' | grep -qF "silent for 0.2 s after 3 pieces" || fail "ping: $(cat out)"

# An answer is whole at [DONE], whether or not the server ends the body.
serve ttft=1 gap=1 fault=linger every=4
load --users 2 --requests 5 --output 4 --timeout 0.4 --json || fail "linger: $(cat err)"
grep -q '"n_failed": 0' out || fail "whole answers are failures: $(cat out)"
rm -rf "$WORK"
