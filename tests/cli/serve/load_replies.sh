#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench load: servers that hang while their connections live, do not end a body, want a
# key or a long name; what a server may know of the prompts; the end of an open loop.
. "$SRC/tests/cli/serve/lib.sh"

# What keeps a connection alive is no text: it is silence, and no reason to wait for ever.
serve ttft=1 gap=1 fault=ping every=4
load --users 2 --requests 5 --output 4 --timeout 0.1 || fail "ping: $(cat err)"
tr '\n' ' ' <out | tr -s ' ' | grep -qF "silent for 0.1 s after 3 pieces" || fail "ping: $(cat out)"

# An answer is whole at [DONE], whether or not the server ends the body.
serve ttft=1 gap=1 fault=linger every=4
load --users 2 --requests 5 --output 4 --timeout 0.4 --json || fail "linger: $(cat err)"
grep -q '"n_failed": 0' out || fail "whole answers are failures: $(cat out)"

# The first tokens of a model that thinks may have no text: the two of the requests
# beforehand, too, which nevertheless say how long prompts are.
serve ttft=1 gap=1 quiet=2
load --users 1 --requests 5 --output 10 --json || fail "a model that thinks: $(cat err)"
grep -q '"output_tokens": 10' out && grep -q '"output_pieces": 8' out && grep -q '"n_failed": 0' out &&
    grep -qE '"prompt_tokens": 4[0-9]' out || fail "a model that thinks: $(cat out)"

# The model's name is sent as the server gave it, however long: paths are names, too.
long=/$(printf 'folder-%.0s' $(seq 20))/model.gguf
serve ttft=1 gap=1 name="$long" key=abc-123
refused 2 "requires an API key (HTTP 401)" load "$url" --users 1
SERVER_KEY=abc-123 load --users 1 --requests 5 --output 2 --api-key-env SERVER_KEY --json ||
    fail "a long name: $(cat err)"
grep -q '"n_failed": 0' out || fail "a long name: $(cat out)"

# No request has a prompt that the server could know: not of an earlier level, however
# many requests that sent beyond those that count, and not of an earlier run.
serve ttft=1 gap=1 remember=1 cached=12
for run in 1 2; do
    load --users 4,3 --requests 10 --output 1-40 --json || fail "run $run: $(cat err)"
    [ "$(grep -c '"n_cached_requests": 0,' out)$(grep -c '"ttft_cached_s": null,' out)" = 22 ] ||
        fail "run $run asks for what was there: $(cat out)"
done
load --users 1 --requests 10 --output 2 --prompt 80 --prefix 50 --json || fail "$(cat err)"
grep -q '"n_requests": 11,' out && grep -q '"n_cached_requests": 11,' out ||
    fail "a prefix is not cached: $(cat out)"
refused 2 "leave no room in a --prompt of 40" load "$url" --users 1 --prompt 40 --prefix 40

# An open loop goes on until the last request that counts has ended: requests behind it
# keep the server as busy as it was. This seed's 30th answer is a long one.
serve ttft=1 gap=2
load --rate 150 --requests 30 --output 1-200 --seed 1 || fail "$(cat err)"
grep -qE "^slmbench-(3[0-9]|[4-9][0-9]) " log || fail "nothing is sent after the 30th: $(cut -c1-60 log)"
# Where more requests are due than may run at once, the client is late: the row says so.
serve ttft=500 gap=1
load --rate 2000 --requests 600 --output 2 --max-late 50 || fail "many at once: $(cat err)"
tr '\n' ' ' <out | tr -s ' ' | grep -qE "disturbed: .*requests sent late by [0-9]{3,} ms" ||
    fail "many at once: $(cat out)"
refused 2 "--rate is an open loop alone" load "$url" --rate 5 --users 1
serve ttft=0.2 gap=0.2
load --users 1 --requests 80 --output 2 --open-loop --slo 10s/1000ms --json || fail "$(cat err)"
[ "$(grep -c '"capacity_pct": [579]0.0' out)" = 3 ] || fail "no open loop after --users: $(cat out)"
load --users 1 --requests 5 --output 2 --open-loop || fail "$(cat err)"
tr '\n' ' ' <out | tr -s ' ' | grep -q "there is no open loop" || fail "an open loop is left out without a word: $(cat out)"
rm -rf "$WORK"
