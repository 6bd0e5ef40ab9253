#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench load: its directory. None is left behind without a row; --resume goes on with the
# same run and no other; which level is next, and the answer, by rows whose figures are set.
. "$SRC/tests/cli/serve/lib.sh"
# Without gnuplot: charts take longer than these runs.
load() { PATH=/ "$BENCH" load "$url" --no-roof --prompt 40 --max-late 1000 "$@" >out 2>err </dev/null; }

# ---- a run that fails before its first row
refused 2 "no server answers at" load http://127.0.0.1:1 -o gone
[ ! -e gone ] || fail "a directory without a row is left behind"
mkdir -p own/made
refused 2 "no server answers at" load http://127.0.0.1:1 -o own/made
[ -d own/made ] && [ -z "$(ls -A own/made)" ] || fail "own/made: $(ls -A own)"
serve ttft=0.2 gap=0.2
load --users 1 --requests 5 --output 2 -o own/made || fail "the next run: $(cat err)"

# ---- other settings, or another server, under the same name
refused 2 "own/made has rows of other settings, \`bench load $url --users 1 --requests 5 " \
    load "$url" --no-roof --prompt 40 --users 1 --requests 6 --output 2 -o own/made --resume
refused 2 "has rows of other settings" \
    load "http://localhost:${url##*:}" --no-roof --prompt 40 --users 1 --requests 5 --output 2 -o own/made --resume
load --users 1,2 --requests 5 --output 2 -o own/made --resume || fail "one level more: $(cat err)"
[ "$(wc -l <own/made/sweep.csv)" = 3 ] || fail "levels: $(cut -c1-60 own/made/sweep.csv)"
load --users 1 --requests 5 --output 2 --level-time 9 --seed 7 --timeout 3 -o own/all || fail "$(cat err)"
grep -qF "$url --users 1 --requests 5 --slo reading --prompt 40 --output 2 --level-time 9 --timeout 3 --seed 7" \
    own/all/sweep.csv || fail "the command does not measure it again: $(cat own/all/sweep.csv)"

# ---- a level that was to be tried again, and an open loop
load --max-users 1 --requests 5 --output 2 -o again || fail "$(cat err)"
[ "$(wc -l <again/sweep.csv)" = 3 ] || fail "not tried again: $(cut -c1-60 again/sweep.csv)"
sed -i '$d' again/sweep.csv
load --max-users 1 --requests 5 --output 2 -o again --resume || fail "$(cat err)"
[ "$(wc -l <again/sweep.csv)" = 3 ] || fail "the second try is not made up: $(cut -c1-60 again/sweep.csv)"
load --rate 300 --requests 30 --output 2 -o open || fail "$(cat err)"
load --rate 300 --requests 30 --output 2 -o open --resume || fail "$(cat err)"
[ "$(wc -l <open/sweep.csv)" = 2 ] || fail "an open loop is repeated: $(cut -c1-60 open/sweep.csv)"

# Shares of a capacity: a row has its rate in four decimals, of slow servers 1 % or so.
load --max-users 1 --requests 80 --output 2 --slo 10s/1000ms --open-loop -o shares || fail "$(cat err)"
[ "$(grep -c ',open,' shares/sweep.csv)" = 3 ] || fail "shares: $(cut -c1-60 shares/sweep.csv)"
"$python" - shares/sweep.csv <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
rows[0]["req_per_s"] = float(rows[0]["req_per_s"]) * 1.004
with open(sys.argv[1], "w", newline="") as f:
    out = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
END
load --max-users 1 --requests 80 --output 2 --slo 10s/1000ms --open-loop -o shares --resume || fail "$(cat err)"
[ "$(grep -c ',open,' shares/sweep.csv)" = 3 ] || fail "shares are repeated: $(cut -c1-60 shares/sweep.csv)"

# ---- servers that --launch starts: none for levels that are there
cat >wrap <<END
#!/bin/sh
echo x >>starts
read -r name <name
exec "$SLOW_SERVER" port.\$1 log.\$1 port=\$1 ttft=0.2 gap=0.2 name=\$name
END
chmod +x wrap
echo one >name
launched() {
    : >starts
    PATH=/ "$BENCH" load --launch "a=$PWD/wrap {port}" --launch "b=$PWD/wrap {port}" \
        --no-roof --prompt 40 --max-late 1000 --requests 60 --output 2 --slo 10s/1000ms "$@" >out 2>err </dev/null
}
# starts N ROWS WHAT
starts() {
    [ "$(wc -l <starts)" = "$1" ] || fail "$3: $(wc -l <starts) starts and not $1"
    [ "$(wc -l <ab/sweep.csv)" = $(($2 + 1)) ] || fail "$3: $(cut -c1-60 ab/sweep.csv)"
}
launched --users 1,2 -o ab || fail "$(cat err)"
starts 4 4 "two levels"
said=$(head -n 1 out)
launched --users 1,2 -o ab --resume || fail "$(cat err)"
starts 0 4 "levels that are there"
[ "$said" = "$(head -n 1 out)" ] || fail "the answer is another one: $said $(cat out)"
sed -i '$d' ab/sweep.csv
launched --users 1,2 -o ab --resume || fail "$(cat err)"
starts 1 4 "the last one"
# Open loops come once a round, behind all levels.
launched --users 1,2 --open-loop -o ab --resume || fail "$(cat err)"
starts 2 10 "open loops"
[ "$(grep -c ',open,' ab/sweep.csv)" = 6 ] || fail "open loops: $(cut -c1-60 ab/sweep.csv)"
launched --users 1,2 --open-loop -o ab --resume || fail "$(cat err)"
starts 0 10 "open loops that are there"
echo another >name
! launched --users 1,2,3 -o ab --resume || fail "a server with another model goes on"
grep -q "has the model another now, and rows of one" err || fail "another model: $(cat err)"
starts 1 10 "another model"
launched --max-users 1 -o ladder || fail "$(cat err)"
[ "$(wc -l <starts)" = 2 ] || fail "a ladder: $(wc -l <starts) starts"
launched --max-users 1 -o ladder --resume || fail "$(cat err)"
[ "$(wc -l <starts)" = 0 ] || fail "a ladder that is there: $(wc -l <starts) starts"

# What is said of several rounds is the median of them.
launched --max-users 1 --rounds 3 -o rounds || fail "$(cat err)"
"$python" - rounds/sweep.csv <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
for r in rows:
    r["ttft_visible_p90_s"] = {"1": 1, "3": 2.5, "5": 3}[r["attempt"]]
with open(sys.argv[1], "w", newline="") as f:
    out = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
END
launched --max-users 1 --rounds 3 -o rounds --resume || fail "$(cat err)"
[ "$(grep -c '^Serves 1 user (p90 TTFT 2.5 s, ' out)" = 2 ] || fail "of three rounds: $(cat out)"

# ---- however many levels are asked for
ones=$(printf '1,%.0s' $(seq 69))
load --users "${ones}1" --requests 5 --output 2 || fail "$(cat err)"
[ "$(grep -cE '^ +1 +6 ' out)" = 70 ] || fail "levels: $(grep -c . out) lines"

# Two tries of which neither has a 90th percentile have one together.
load --max-users 1 --requests 8 --output 3 --slo 10s/1000ms || fail "$(cat err)"
grep -qE "^Serves 1 user \(p90 TTFT 0\.[0-9]+ s, [0-9]+ ms a token\), the largest number tried\." out ||
    fail "the answer of two tries: $(cat out)"

# ---- ladder and bisection. levels "USERS VERDICT"...: the answer by rows like that
load --users 1,2,3,4,8 --requests 5 --output 2 -o all || fail "$(cat err)"
levels() {
    rm -rf known
    cp -r all known
    "$python" - known/sweep.csv "$@" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
verdicts = dict(v.split() for v in sys.argv[2:])
with open(sys.argv[1], "w", newline="") as f:
    out = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
    out.writeheader()
    for r in rows:
        verdict = verdicts.get(r["n_users"])
        if not verdict:
            continue
        met = {"meets": 60, "misses": 20, "undecided": 54}[verdict]
        r.update(attempt=2, tok_per_s=1234.5, slo_verdict=verdict, n_requests=60, n_failed=0,
                 n_ttft_met=met, n_tpot_met=60, ttft_visible_p90_s=4.1, tpot_p90_ms=210)
        out.writerow(r)
END
    load --max-users 8 --requests 5 --output 2 -o known --resume || fail "$*: $(cat err)"
    tr '\n' ' ' <out | sed 's/ *users *n .*//'
}
said=$(levels "1 meets" "2 meets" "3 meets" "4 misses" "8 misses")
[ "$said" = "Serves 3 users who read the stream (p90 TTFT 4.1 s, 210 ms a token); the 4th waits. The maximum is 1234 tok/s, with 1 user." ] || fail "$said"
# Where throughput grows no more, but it is not decided whether the limits are met, the
# ladder goes on to where they are missed.
said=$(levels "1 meets" "2 undecided" "3 undecided" "4 misses")
[[ $said = "Serves 1 user who reads the stream (p90 TTFT 4.1 s, 210 ms a token); whether it serves more than that, up to 3, is undecided: "*"; 4 are too many."* ]] || fail "$said"
rm -rf "$WORK"
