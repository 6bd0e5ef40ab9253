#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench load: figures against a server whose delays are known (how close they are is
# load_truth.sh's), its answer, rows, what a bad server is told, an interrupt and going on.
. "$SRC/tests/cli/serve/lib.sh"

# ---- one answer at a time: one user is carried within a limit that two are not
serve slots=1 ttft=40 gap=1 cached=3
load --output 10 --slo 0.065s/500ms --requests 34 --level-time 8 --max-users 2 -o dir ||
    fail "$(cat err)"
grep -qE "^Serves 1 user \(p90 TTFT 0.0[0-9] s, [0-9]+ ms a token\); the 2nd waits\." out ||
    grep -qE "undecided|^Serves no user" out || fail "no answer: $(cat out)"
[ "$(wc -L <out)" -le 79 ] || fail "wide lines: $(cat out)"
"$python" - dir/sweep.csv <<'END' || fail "rows: $(cat dir/sweep.csv)"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert {r["n_users"] for r in rows} >= {"1", "2"}, rows
for r in rows:
    n = int(r["n_users"])
    assert r["kind"] == "load" and r["load_mode"] == "closed" and r["model"] == "slow"
    assert r["status"] == "ok" and int(r["n_failed"]) == 0, r
    assert float(r["output_tokens"]) == float(r["output_pieces"]) == 10
    assert abs(float(r["prompt_tokens"]) - 40) < 4, r["prompt_tokens"]
    assert int(r["n_cached_requests"]) == 0 and r["ttft_cached_s"] == "" and r["ttft_uncached_s"]
    # a first token that is noticed late leaves less time for the others: no least TPOT
    assert float(r["ttft_p50_s"]) >= 0.039 and float(r["e2e_p50_s"]) >= 0.048
    assert 0 < float(r["tpot_p50_ms"]) < 1e3 * float(r["e2e_p50_s"])
    assert 0.5 < float(r["in_flight"]) <= n + 0.01 and 0.5 < float(r["little"]) < 2
    assert r["roof_gbps"] == "" and r["cpus"] == "", r
    assert r["ttft_p99_s"] == "" and (r["ttft_p90_s"] or int(r["n_requests"]) < 29)
END
grep -q "^load/slow/" dir/samples.csv || fail "no samples"
"$BENCH" rows dir --launches --format csv --columns point,n_users,ttft_p90_s >out ||
    fail "rows: $(cat err)"
grep -q "^load/slow/.*,2," out || fail "no row: $(cat out)"
"$BENCH" history add here.db dir >out 2>err || fail "history: $(cat err)"

# Which server for so many users: of the limits measured, and of others, by each request.
"$BENCH" recommend dir >out 2>err || fail "recommend: $(cat err)"
grep -qE "^(Serves (1|no) user|It is undecided whether it can serve any user)" out || fail "no users: $(cat out)"
load --output 3 --slo 0.065s/500ms --requests 70 --users 1 -o one || fail "$(cat err)"
"$BENCH" recommend one --users 1 --slo 60s/1000ms >out 2>err || fail "recommend: $(cat err)"
tr '\n' ' ' <out | grep -qE "^1 user: take 127.0.0.1:[0-9]+ \(slow\), p90 TTFT 0.[0-9]+ s and [0-9]+ ms a token" ||
    fail "no choice: $(cat out)"
grep -q "^bench load $url --users 1 --requests 70 --slo 0.065s/500ms --prompt 40 --output 3$" out ||
    fail "no command: $(cat out)"
"$BENCH" recommend one --users 1 --slo 60s/1000ms --json >out 2>err || fail "recommend: $(cat err)"
"$python" -c 'import json; a = json.load(open("out")); assert a["users"] == a["measured_users"] == 1 and a["model"] == "slow", a' ||
    fail "JSON of a choice: $(cat out)"
refused 1 "sure to serve 9 users: 127.0.0.1:${url##*:} serves 1. Undecided" recommend one --users 9 --slo 60s/1000ms
refused 1 "no server was measured with this model" recommend one --users 1 --model other
refused 1 "serves 0; a smaller model" recommend one --users 1 --slo 0.001s/1ms
refused 2 "--for prints the setting for one user" recommend one --users 1 --for docker
refused 2 "--slo" recommend one --users 1 --slo fast

# The levels that are there are not repeated.
n=$(wc -l <dir/sweep.csv)
load --output 10 --slo 0.065s/500ms --requests 34 --level-time 8 --max-users 2 -o dir --resume ||
    fail "$(cat err)"
[ "$(wc -l <dir/sweep.csv)" -le $((n + 2)) ] || fail "levels were repeated"

# ---- open loop, other lengths, prompts of a file
printf '%s\n' '{"prompt":"one two","max_tokens":3}' \
    '{"conversations":[{"from":"system","value":"s"},{"from":"human","value":"h"}]}' >p.jsonl
serve ttft=5 gap=1
load --rate 40 --requests 30 --prompts p.jsonl --output 5-6 --completions --json ||
    fail "$(cat err)"
"$python" - out <<'END' || fail "JSON: $(cat out)"
import json, sys
r, = json.load(open(sys.argv[1]))["rows"]
assert r["load_mode"] == "open" and r["rate_asked"] == 40 and r["prompt_lengths"] == "p.jsonl"
assert 3 < r["output_tokens"] < 6, r["output_tokens"]
assert r["output_lengths"] == "5-6 or p.jsonl", r["output_lengths"]
END
# An answer in the file says how long ours is to be: 40 bytes are ten words, and here a
# word is a token.
echo '{"conversations":[{"from":"human","value":"h"},{"from":"gpt","value":"'"$(printf '%.0s1234567 ' 1 2 3 4 5)"'"}]}' >a.jsonl
load --users 1 --requests 5 --prompts a.jsonl --json || fail "$(cat err)"
grep -q '"output_tokens": 10' out && grep -q '"output_lengths": "a.jsonl"' out || fail "the file's answers: $(cat out)"

# ---- servers that are wrong: counted, said, and no reason to hang
for fault in stop:"the connection ended after 3 pieces" short:"before the answer did" \
    json:"an event is no JSON object" long:"an event is longer than 256 KiB" \
    error:"HTTP 500: out of memory" redirect:"which is not followed" \
    busy:"HTTP 429, retry after 1 s: the queue is full" html:"no stream of events" \
    silence:"silent for 0.3 s after 3 pieces" hang:"silent for 0.3 s after 0 pieces" \
    endless:"pieces of text for 4 requested tokens" empty:"the answer is empty"; do
    serve ttft=1 gap=1 fault="${fault%%:*}" every=4
    load --users 2 --requests 10 --output 4 --level-time 2 --timeout 0.3 || fail "$fault: $(cat err)"
    tr '\n' ' ' <out | tr -s ' ' | grep -qF -- "${fault#*:}" || fail "$fault: $(cat out)"
    grep -qE " [1-9][0-9]* of [0-9]+ requests failed" out || fail "$fault is not counted: $(cat out)"
done
serve ttft=1 gap=1 extra=5
load --users 1 --requests 10 --output 4 --json || fail "$(cat err)"
grep -q '"output_tokens": 4' out && grep -q '"output_pieces": 4' out || fail "usage is believed: $(cat out)"
grep -q "[0-9]* of [0-9]* answers had more tokens by the server's usage than were requested" out || fail "$(cat out)"

# A request that is read and dropped has failed; connections that were closed before are
# opened again, however often that is.
serve ttft=1 gap=1 fault=drop
load --users 2 --requests 10 --output 4 --json || fail "$(cat err)"
grep -q "requests failed: the server closed the connection without an answer" out || fail "dropped: $(cat out)"
serve ttft=1 gap=1 fault=forget
load --users 2 --requests 40 --output 4 --json || fail "$(cat err)"
grep -q '"n_failed": 0' out || fail "closed connections are failures: $(cat out)"

# One that never answers, or is not there, is an error.
serve fault=error
refused 2 "does not answer a request: HTTP 500: out of memory" load "$url" --users 1
serve fault=close
refused 2 "Empty reply from server" load "$url" --users 1
refused 2 "no server answers at" load http://127.0.0.1:1
refused 2 "is no address of a server" load ftp://x
refused 2 "load takes the address of a server" load
printf '#!/bin/sh\nexec "%s" port.$1 log.$1 port=$1 gap=$2 ttft=1\n' "$SLOW_SERVER" >wrap
chmod +x wrap
refused 2 "--slo" load "$url" --slo fast
refused 2 "--prompt" load "$url" --prompt many
refused 2 "which directory" load "$url" --resume
echo '{"a":1}' >bad.jsonl
refused 2 "bad.jsonl, line 1: no JSON object" load "$url" --prompts bad.jsonl

# ---- servers that it starts: two, interleaved; one that ends, one that is never ready. One
# is ten times as slow, which no other program hides.
"$BENCH" load --launch "a=$PWD/wrap {port} 20" --launch "b=$PWD/wrap {port} 2" --prompt 40 \
    --users 1 --rounds 2 --requests 10 --output 10 -o ab >out 2>err || fail "$(cat err)"
[ "$(grep -c "^load/a/" ab/samples.csv)" -ge 18 ] || fail "a: $(cat ab/samples.csv)"
"$python" - ab/sweep.csv <<'END' || fail "rows: $(cat ab/sweep.csv)"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert sorted((r["engine"], r["attempt"]) for r in rows) == [(e, a) for e in "ab" for a in "12"]
a, b = (sum(float(r["tpot_p50_ms"]) for r in rows if r["engine"] == e) for e in "ab")
assert a > 1.3 * b, (a, b)
for r in rows:  # what memory gave around it, on the server's CPUs
    lo, v, hi = (float(r["roof_gbps" + end]) for end in ("_lo", "", "_hi"))
    assert 0 < lo <= v <= hi, r
    assert r["n_threads"] == "" and r["cpus"], r
END
grep -qE "^Memory gave [0-9.]+ to [0-9.]+ GB/s before and after the load levels\.$" out || fail "no roof: $(cat out)"
tr '\n' ' ' <out | tr -s ' ' | grep -qE \
    "at 1 user b has [1-9]+\.[0-9]+ x the tok/s of a \[[0-9.]+, [0-9.]+\], 2 rounds" ||
    fail "no comparison: $(cat out)"

"$BENCH" load --launch "a=$PWD/wrap {port} 1" --launch "b=$PWD/wrap {port} 1" --prompt 40 --no-roof \
    --users 1,2 --requests 5 --output 4 --json >out 2>err || fail "$(cat err)"
"$python" - out <<'END' || fail "JSON of two servers: $(cat out)"
import json, sys
all = json.load(open(sys.argv[1]))
assert all["answer"] and [s["name"] for s in all["servers"]] == ["a", "b"], all
for s in all["servers"]:
    assert [r["n_users"] for r in s["rows"]] == [1, 2] and s["answer"], s
    assert all["answer"] != s["answer"] and s["rows"][0]["roof_gbps"] is None, s
END

# A ladder that is undecided tries again: rounds share no attempt, as pairs are of one.
SLMBENCH_PROGRESS=0.001 "$BENCH" load --launch "a=$PWD/wrap {port} 1 -t 1" --prompt 40 --rounds 2 \
    --max-users 1 --requests 5 --output 4 -o rounds >out 2>err || fail "$(cat err)"
cut -d, -f2,3 rounds/sweep.csv | sort -u | wc -l | grep -qx 5 || fail "attempts: $(cat rounds/sweep.csv)"
"$python" - rounds/sweep.csv <<'END' || fail "roof of one thread: $(cat rounds/sweep.csv)"
import csv, sys
for r in csv.DictReader(open(sys.argv[1])):
    assert r["n_threads"] == "1" and r["cpus"].isdigit() and float(r["roof_gbps"]) > 0, r
    assert r["client_cpus"] != r["cpus"], r
    assert int(r["round"]) == (int(r["attempt"]) + 1) // 2, r
END
grep -q "a: 1 user, again" err || fail "progress does not name the server: $(cat err)"

# A server that was there, on this machine: all CPUs, or why not.
serve ttft=1 gap=1
"$BENCH" load "$url" --users 1 --requests 5 --output 4 --prompt 40 --json >out 2>err || fail "$(cat err)"
"$python" - out <<'END' || fail "roof of a server that was there: $(cat out)"
import json, sys
r, = json.load(open(sys.argv[1]))["rows"]
assert (r["roof_gbps"] or 0) > 0 or "the CPUs were not idle" in r["detail"], r
assert r["detail"].endswith("without the lock: SLMBENCH_LOCK=none"), r
END

# ---- times of each request, failed ones too; charts, also drawn again
"$python" - ab <<'END' || fail "requests: $(head ab/requests.csv)"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1] + "/sweep.csv")))
times = list(csv.DictReader(open(sys.argv[1] + "/requests.csv")))
for r in rows:
    own = [t for t in times if (t["point"], t["attempt"]) == (r["point"], r["attempt"])]
    assert len(own) == int(r["n_requests"]) == int(r["n_ttft_met"]), r
    ttft = sorted(float(t["ttft_s"]) for t in own)
    assert ttft[0] - 1e-4 <= float(r["ttft_p50_s"]) <= ttft[-1] + 1e-4
    assert all(float(t["tpot_ms"]) > 0 and float(t["e2e_s"]) > float(t["ttft_s"]) for t in own)
END
"$BENCH" report ab -o ab.html >out 2>err || fail "report: $(cat err)"
grep -q "at 1 user b has" ab.html || fail "the page has no answer of two servers"
if command -v gnuplot >/dev/null; then
    for chart in dir/users_latency ab/users_ladder ab/users_ttft; do
        [ -s $chart.svg ] && [ -s $chart.png ] || fail "no $chart: $(cat err)"
    done
    [ ! -e ab/users_latency.svg ] || fail "latencies of ten requests are drawn"
    rm ab/users_*
    "$BENCH" plot ab >out 2>err || fail "plot: $(cat err)"
    [ -s ab/users_ttft.svg ] && [ -s ab/users_ladder.svg ] || fail "not drawn again: $(ls ab)"
    draws_alone dir "$BENCH" plot dir
    draws_alone ab "$BENCH" plot ab
    # A distribution is as high as the share of requests that came by then: between four
    # of one second and one of nine it is 80 %.
    mkdir steps && cp ab/sweep.csv ab/machine.json steps
    "$python" - steps <<'END'
import csv, sys
row = next(csv.DictReader(open(sys.argv[1] + "/sweep.csv")))
with open(sys.argv[1] + "/sweep.csv", "w", newline="") as f:  # it alone, whatever disturbed it
    out = csv.DictWriter(f, row.keys(), lineterminator="\n")
    out.writeheader()
    out.writerow(row)
with open(sys.argv[1] + "/requests.csv", "w") as f:
    print("point,attempt,index,ttft_s,tpot_ms,e2e_s,cached_tokens", file=f)
    for i, t in enumerate((1, 1, 1, 1, 9)):
        print(f"{row['point']},{row['attempt']},{i},{t},5,10,", file=f)
END
    "$BENCH" plot steps >out 2>err || fail "plot of steps: $(cat err)"
    "$python" - steps/users_ttft.svg <<'END' || fail "steps: $(cat steps/users_ttft.gp)"
import re, sys
lines = [[tuple(map(float, p)) for p in re.findall(r"([-\d.]+),([-\d.]+)", part)]
         for d in re.findall(r"<path [^>]*\bd='([^']*)'", open(sys.argv[1]).read()) for part in d.split("M")]
line = max(lines, key=len)  # the curve
y0, y100 = line[0][1], line[-1][1]
_, y = max((abs(a[0] - b[0]), a[1]) for a, b in zip(line, line[1:]) if a[1] == b[1])
assert abs((y0 - y) / (y0 - y100) - 0.8) < 0.01, line
END
    # One model, though the servers call it by two names; a level with too few requests.
    mkdir example && cp "$SRC"/results/examples/zen5-users-9b/*s*.csv example
    "$BENCH" plot example >out 2>err || fail "plot of the example: $(cat err)"
    for text in ">yi-1.5-9b-Q4_K_M  " "p90 not known: slmbench with 2 users<"; do
        grep -q "$text" example/users_latency.svg || fail "no '$text' below the title"
    done
fi
refused 2 "c ended before it was ready: no such model" load --launch "c=sh -c 'echo no such model >&2; exit {port}'"
refused 2 "d is not ready after 1 s" load --launch "d=sleep {port}" --start-timeout 1
refused 2 "is not NAME=COMMAND" load --launch "llama-server --port 1"
refused 2 "as http://127.0.0.1:8080, or --launch" load "$url" --launch "a=x {port}"

# ---- an interrupt: what was measured stays
serve ttft=5 gap=1
"$BENCH" load "$url" --users 1,2 --requests 20 --output 100 --prompt 40 --level-time 60 -o cut >out 2>err &
pid=$!
for _ in $(seq 300); do
    [ "$(cat cut/sweep.csv 2>/dev/null | wc -l)" -lt 2 ] || break
    sleep 0.1
done
kill -INT $pid
code=0
wait $pid || code=$?
[ $code = 130 ] || fail "an interrupt ends with $code: $(cat err)"
grep -q ",ok," cut/sweep.csv || fail "no row is left"
rm -rf "$WORK"
