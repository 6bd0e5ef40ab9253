#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench load: thinking, conversations, tools, traces, a server that cannot keep up, and
# what it counts itself. Counts are exact, times have lower ends only: how close they are is
# load_truth.sh's.
. "$SRC/tests/cli/serve/lib.sh"
row() { "$python" -c "
import json
rows = json.load(open('out'))['rows']
r = rows[-1]
$1" || fail "$1: $(cat out)"; }

# ---- thoughts are no answer: the SLO is judged by the first visible token
serve ttft=5 gap=5 think=6 metrics=1
load --users 2 --requests 70 --output 10 --slo 0.03s/500ms --json -o dir || fail "$(cat err)"
row "
assert r['reasoning_tokens'] == 6 and r['output_tokens'] == 10 and r['n_invisible'] == 0
assert r['ttft_visible_p50_s'] - r['ttft_p50_s'] > 0.025 and r['n_ttft_met'] == 0
assert r['ttft_visible_p90_s_lo'] <= r['ttft_visible_p90_s'] and r['slo_verdict'] == 'misses'
assert r['server_output_tokens'] >= 10 * r['n_requests'] and r['server_cached_tokens'] == 0
assert r['server_prompt_tokens'] / r['server_output_tokens'] > 3 and r['server_ttft_s'] >= 0.005
assert r['goodput_per_s'] == 0 < r['goodput_per_s_hi'] < r['req_per_s'] / 5"
head -1 dir/requests.csv | grep -qx "point,attempt,index,ttft_s,tpot_ms,e2e_s,cached_tokens,visible_s,turn" || fail "$(head -1 dir/requests.csv)"
"$BENCH" recommend dir --users 2 --slo 0.03s/500ms >out 2>err && fail "other limits count thoughts: $(cat out)"
load --users 1 --requests 30 --output 10 --slo 60s/1000ms || fail "$(cat err)"
tr '\n' ' ' <out | tr -s ' ' | grep -q "1 user: 6 of 10 tokens of an answer are thoughts, the first token comes after 0.0" ||
    fail "no word of thoughts: $(cat out)"
load --users 1 --requests 30 --output 5 --slo 60s/1000ms --json || fail "$(cat err)"
row "
assert r['n_invisible'] == r['n_requests'] and r['n_failed'] == r['n_ttft_met'] == 0
assert r['slo_verdict'] == 'misses' and 'no visible token' in r['detail']
assert r['ttft_visible_p50_s'] is None and r['ttft_p50_s'] > 0"

# Thoughts in the content of a server that does not separate them.
serve ttft=5 gap=5 think=6 inline=1
load --users 2 --requests 70 --output 10 --slo 0.03s/500ms --json || fail "$(cat err)"
row "
assert r['reasoning_tokens'] == 6 and r['n_invisible'] == 0 and r['n_ttft_met'] == 0
assert r['ttft_visible_p50_s'] - r['ttft_p50_s'] > 0.025"

# ---- conversations: histories grow by the server's answers, users think
serve ttft=2 gap=0.3 remember=1
load --users 4 --requests 80 --prompt 60 --output 8 --sessions turns=4,think=0.01-0.03,next=12 --json -o talk ||
    fail "$(cat err)"
row "
assert r['sessions'] == 'turns=4,think=0.01-0.03,next=12' and r['n_failed'] == 0 and r['prompt_tokens'] > 80
assert r['ttft_turn1_p50_s'] >= 0.002 and r['ttft_later_p90_s'] >= 0.002
assert r['ttft_later_p90_s_lo'] <= r['ttft_later_p90_s']
assert 20 < r['prefix_hit_pct'] < r['prefix_known_pct'] < 90
assert r['in_flight'] < 2.5 and 0.8 < r['little'] < 1.2, (r['in_flight'], r['little'])"
"$python" - <<'END' || fail "conversations: $(head -5 log)"
import csv
requests = list(csv.DictReader(open("talk/requests.csv")))
turns = [int(t["turn"]) for t in requests]
assert set(turns) == {1, 2, 3, 4} and all(turns.count(t) >= len(turns) / 8 for t in range(1, 5)), turns
sent = [line.split()[0].split("/")[1:] for line in open("log") if "/" in line]
of = {t: {int(p) for turn, p, _ in sent if int(turn) == t} for t in range(1, 5)}
for t in 2, 3, 4:  # each turn has 8 words of an answer and 12 of its own more
    assert {p - q for p in of[t] for q in of[t - 1]} & {19, 20}, of
assert all(abs(int(p) - int(c) - 20) <= 25 for turn, p, c in sent[20:] if turn != "1"), sent
END
grep -q "/p60/o8/[0-9a-f]\{8\}/u4," talk/sweep.csv || fail "the point does not differ from that of single requests"
"$BENCH" report talk -o talk.html >out 2>err || fail "report: $(cat err)"
grep -q '<p class="label">Conversations</p>' talk.html && ! grep -q '<p class="label">Open loops</p>' talk.html &&
    grep -q "Time to the first token of first turns" talk.html || fail "the page has no card of conversations"
[ -s talk/users_turns.svg ] && [ ! -e talk/users_open.svg ] || fail "charts: $(ls talk)"
load --users 4 --requests 80 --prompt 60 --output 8 --sessions turns=4,think=0.01-0.03,next=12 -o talk --resume || fail "$(cat err)"
tr '\n' ' ' <out | tr -s ' ' | grep -qE "TTFT of first turns [0-9.]+ s, of later ones [0-9.]+ s \(p50\); [0-9]+ % of the prompts' tokens were cached, and [0-9]+ %" ||
    fail "no word of conversations: $(cat out)"
load --users 2 --requests 5 --prompt 60 --output 8 --sessions turns=4,think=0.01-0.03,next=12 -o few || fail "$(cat err)"
tr '\n' ' ' <out | tr -s ' ' | grep -qF "TTFT of first turns unknown (too few)" && ! grep -qw nan out || fail "few: $(cat out)"
refused 2 "rows of other settings" load "$url" --no-roof --prompt 40 --max-late 1000 --users 4 --requests 80 --output 8 -o talk --resume
refused 2 "turns=N is needed" load "$url" --sessions think=5
refused 2 "--sessions are chats" load "$url" --sessions turns=3 --open-loop
refused 2 "send no second request in a load level of 300 s" load "$url" --sessions turns=3,think=86400
SLMBENCH_PROGRESS=0.001 "$BENCH" load "$url" --no-roof --users 1 --sessions turns=2,think=290 >out 2>err &
waits=$!
for _ in $(seq 300); do
    ! grep -q "1 user" err || break
    sleep 0.1
done
kill -TERM $waits
wait $waits && fail "290 s are over"
grep -qE "1 user, the first request after [0-9]+ s" err || fail "no word of when a user comes: $(cat err)"
refused 2 "--sessions are chats" load "$url" --sessions turns=3 --rate x1

# ---- sessions that come at a rate: those before them are there, and all leave
load --rate 20 --requests 120 --prompt 60 --output 8 --sessions turns=4,think=0.2,next=12 --json -o come || fail "$(cat err)"
row "
assert r['load_mode'] == 'open' and r['arrivals'] == 'sessions'
assert r['n_failed'] == 0 and r['n_requests'] == 120 and '--rate 20 ' in r['command'] and '--sessions ' in r['command']
assert r['window_s'] > 0.75, r['window_s']"
"$python" - <<'END' || fail "sessions of an open loop: $(head -9 come/requests.csv)"
import csv
turns = [int(t["turn"]) for t in csv.DictReader(open("come/requests.csv"))]
for part in turns[:60], turns[60:]:
    assert all(part.count(t) >= 6 for t in range(1, 5)), turns
END
"$BENCH" report come -o come.html >out 2>err || fail "report: $(cat err)"
for label in Conversations "Open loops"; do
    grep -q "<p class=\"label\">$label</p>" come.html || fail "the page has no card of $label"
done
[ -s come/users_open.svg ] && [ ! -e come/users_turns.svg ] || fail "charts: $(ls come)"
load --rate 20 --requests 60 --prompt 60 --output 8 --sessions turns=4,think=0.2,next=12 || fail "$(cat err)"
grep -q "^20 sessions a second: " out || fail "no word of sessions a second: $(cat out)"

# ---- tools: required calls, and their results at once
serve ttft=1 gap=0.2 think=2 remember=1
load --users 2 --requests 40 --output 6 --sessions turns=3,think=0.02,tools=100 --body '{"reasoning_effort":"low"}' --json ||
    fail "$(cat err)"
row "
assert r['n_failed'] == 0 and r['reasoning_tokens'] == 2 and r['n_invisible'] == 0
assert abs(r['n_tool_calls'] / r['n_requests'] - 2 / 3) < 0.2, r['n_tool_calls']
assert '--sessions turns=3,think=0.02,tools=100' in r['command'] and 'reasoning_effort' in r['command']"
refused 2 "--body: [7] is no JSON object" load "$url" --body "[7]"

# ---- traces: lengths, times and shared blocks of the public forms
"$python" - <<'END'
import datetime, json
with open("mooncake.jsonl", "w") as f:
    for i in range(60):  # every second request continues what the one before began
        json.dump({"timestamp": 20 * i, "input_length": 700 + 100 * (i % 2), "output_length": 2 + i % 3,
                   "hash_ids": [7 * (i // 2), 7 * (i // 2) + 1 + i % 2]}, f)
        f.write("\n")
with open("azure.csv", "w") as f:
    f.write("TIMESTAMP,ContextTokens,GeneratedTokens\n")
    for i in range(40):
        t = datetime.datetime(2023, 11, 16, 23, 59, 59) + datetime.timedelta(milliseconds=40 * i)
        f.write(f"{t.isoformat(' ')}0,{100 + i},3\r\n" if i % 2 else f"{t.isoformat(' ')}+00:00,{100 + i},3\n")
END
serve ttft=1 gap=0.2 remember=1
load --prompts mooncake.jsonl --rate x1 --requests 60 --json || fail "$(cat err)"
row "
assert r['arrivals'] == 'trace' and '--rate 50 ' in r['command'] and r['n_requests'] == 60
assert r['output_tokens'] == 3 and abs(r['prompt_tokens'] / 750 - 1) < 0.03, r['prompt_tokens']
assert abs(r['prefix_known_pct'] - 100 * 512 / 1500) < 0.5 and abs(r['prefix_hit_pct'] / r['prefix_known_pct'] - 1) < 0.05"
load --prompts azure.csv --rate x2 --requests 40 --json || fail "$(cat err)"
row "
assert r['arrivals'] == 'trace' and '--rate 50 ' in r['command']
assert abs(r['prompt_tokens'] - 119.5) < 3 and r['output_tokens'] == 3 and r['prefix_known_pct'] is None"
"$python" - <<'END' || fail "the times of a trace: $(tail -3 log)"
lines = [line.split() for line in open("log") if "/" in line][-400:]
lines = [(int(l[0].split("/")[0].split("-")[1]), int(l[1])) for l in lines if int(l[0].split("/")[2]) < 300]
at = {i: t for i, t in lines[-40:]}  # the last run's
for i in range(40):
    assert (at[i] - at[0]) * 1e-9 > 0.02 * i - 0.1, (i, at[i] - at[0])
END
load --prompts azure.csv --rate x2 --requests 40 || fail "$(cat err)"
tr '\n' ' ' <out | tr -s ' ' | grep -qE "50 requests a second: goodput [0-9.]+ requests a second \[[0-9.]+, [0-9.]+\], of [0-9.]+ that came" ||
    fail "no goodput: $(cat out)"
# More than twice as many requests as the server answers: the backlog is a trend, which as
# many as these show.
serve ttft=5 gap=1 slots=1
load --rate 300 --requests 200 --output 4 --json || fail "$(cat err)"
row "
assert 'saturated, the backlog grows by' in r['validity'] and r['backlog_pct'] > 20, r['validity']
assert r['e2e_p90_s'] > 0.3 and r['n_failed'] == 0"
load --rate 10 --requests 30 --output 4 --json || fail "$(cat err)"
row "assert 'saturated' not in r['validity'], r['validity']"
serve ttft=1 gap=0.2 remember=1
load --prompts azure.csv --users 1 --requests 5 --json || fail "$(cat err)"
row "assert r['load_mode'] == 'closed' and not r['arrivals']"
echo '{"prompt":"a"}' >p
refused 2 "has no times" load "$url" --prompts p --rate x1 --prompt 40

# ---- embeddings: a vector is a token that comes at once, and tokens are those of prompts
kill "$server" && wait "$server" 2>/dev/null || true
rm -f port
"$python" "$SRC/tests/cli/serve/vectors.py" port log 10 10 2>vectors.err &
server=$!
while [ ! -s port ]; do sleep 0.05; done
url=http://127.0.0.1:$(cat port)
load --embeddings --users 2 --requests 60 --json || fail "$(cat err) $(cat vectors.err)"
row "
assert r['api'] == 'embeddings' and abs(r['output_tokens'] - 40) < 2 and r['output_tokens'] == r['prompt_tokens']
assert r['ttft_p50_s'] == r['e2e_p50_s'] == r['ttft_visible_p50_s'] >= 0.01 and r['tpot_p50_ms'] is None
assert 4 <= r['n_failed'] <= 8 and 'has no embedding' in r['detail']
assert '--embeddings' in r['command'] and r['tok_per_s'] > 20 * r['req_per_s']"
refused 2 "--embeddings are requests of their own" load "$url" --embeddings --completions
rm -rf "$WORK"
