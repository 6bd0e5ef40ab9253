#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Servers as other programs of a sweep, over HTTP: a stand-in for llama-server, `bench
# serve` by a template, and servers that end, never become ready, fall silent, close the
# connection, refuse, or take too much memory; what they are asked, the recommendation,
# Ctrl-C.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache ASKED=$WORK/asked
command -v python3 >/dev/null || skip "needs python3"
! "$BENCH" load http://127.0.0.1:9 2>&1 | grep -q "without libcurl" || skip "built without libcurl"

mkdir bin
: >asked
for name in llama-server exits late mute cut error blind halves memory; do
    cp "$SRC/tests/cli/decide/llama_server.py" bin/$name
done
ln -s "$(realpath "$BENCH")" bin/slm

# column FILE ENGINE NAME: values of its rows
column() {
    python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1], newline="")):
    if row["engine"] == sys.argv[2]:
        print(row[sys.argv[3]])' "$@"
}

# none_left: no server that was started here still runs
none_left() {
    python3 - <<'EOF' || fail "a server is left behind: $(grep pid asked)"
import json, os, sys
pids = [json.loads(line).get("pid") for line in open("asked")]
sys.exit(any(p and os.path.exists(f"/proc/{p}") for p in pids))
EOF
}

common=(-m nano:Q4_K_M --no-charts --no-probe --repeats 0 --launches 1 --max-launches 1
        --threads 1 -n 8 --passes 3 --budget 10 --seed 3)

# ---- rows beside ours
code=0
"$BENCH" sweep "${common[@]}" --mem none --ctx 0,16 --prefill 24 -o all \
    --engine llama.cpp=bin/llama-server --engine halves=bin/halves --engine blind=bin/blind \
    --engine "slm=bin/slm serve -m {model} -t {threads} --port {port} --ctx {window}" >out 2>err || code=$?
case $code in
0) ;;
4) grep -q "slm: its answer came" err || fail "exit 4: $(cat err)" ;; # see is_fast below
*) fail "exit $code: $(cat err)" ;;
esac
python3 - <<'EOF' || fail "rows: $(cat all/sweep.csv; grep options asked)"
import csv, json
rows = list(csv.DictReader(open("all/sweep.csv", newline="")))
assert len(rows) == 5 * 3, len(rows)
cpus = {r["cpus"] for r in rows}
ms = {}
for s in csv.DictReader(open("all/samples.csv")):
    ms.setdefault((s["point"], s["attempt"]), []).append(float(s["ms"]))
for r in rows:
    # a token of slm takes 50 us: where others keep the CPUs busy, some or all of them are
    # read at one time, and those that come with the first one have no time
    is_fast = r["engine"] == "slm" and r["kind"] == "decode"
    if is_fast and "at one time" in r["detail"]:
        assert r["status"] == "error" and not r["tok_per_s"], r
        continue
    assert r["status"] == "ok" and float(r["tok_per_s"]) > 0, r
    n = int(r["n_samples"])
    if not r["engine"]:
        continue
    assert float(r["load_s"]) > 0 and float(r["roof_gbps"]) > 0 and not r["residency"], r
    assert int(r["mem_peak_bytes"]) > 1 << 20
    own = len(ms[r["point"], r["attempt"]])
    assert own == n, (own, n)
    if r["kind"] == "prefill":
        least = 0 if r["engine"] == "slm" else 0.04  # s: the stand-ins take that for 24 tokens
        assert n == 3 and float(r["ttft_s"]) > float(r["ttft_warm_s"]) >= least, r
    elif r["engine"] == "blind":
        assert n == 1 and "fewer pieces" in r["detail"], r
        assert float(r["tok_per_s"]) < 250
    else:
        assert int(r["n_wanted"]) == 8 and (n == 8 or is_fast and 0 < n < 8), r
    if r["engine"] in ("llama.cpp", "halves") and r["kind"] == "decode":
        assert float(r["lat_p50_ms"]) > 2, r
versions = {r["engine"]: r["engine_version"] for r in rows if r["status"] == "ok"}
assert versions["llama.cpp"] == "b7-abc1234, HTTP", versions
assert versions["halves"] == "abc1234 (build 7), HTTP", versions
assert versions["blind"] == versions["halves"], versions
assert versions["slm"] == "HTTP", versions

lines = [json.loads(line) for line in open("asked")]
begun = set()
for l in lines:
    if "options" in l:
        o = l["options"]
        assert o["--host"] == "127.0.0.1" and o["-np"] == "1" and o["--cache-ram"] == "0"
        assert o["-t"] == "1" and ",".join(map(str, l["cpus"])) in cpus, (l, cpus)
        begun = set()  # another launch
        continue
    a = l["asked"]
    assert l["path"] == "/v1/completions" and a["cache_prompt"] is False and a["stream"]
    n = len(a["prompt"])
    assert (n, a["max_tokens"]) in {(1, 2), (16, 2), (1, 9), (16, 9), (24, 1)}, (n, a["max_tokens"])
    if n > 1:
        assert tuple(a["prompt"][0:4]) not in begun, "a cache could have it"
        begun |= {tuple(a["prompt"][0:4])}
EOF
none_left

# ---- the recommendation, the summary, the command of a row
"$BENCH" recommend all --ctx 0 --for llama.cpp >out || fail "no recommendation: $?"
grep -q "b7-abc1234, HTTP" out || fail "not from its own rows: $(cat out)"
! grep -q "carried over" out || fail "carried over: $(cat out)"
"$BENCH" report all -o page.html >out 2>err || fail "no page: $(cat err)"
grep -q "b7-abc1234, HTTP" page.html || fail "the page does not say how it was asked"
command=$(column all/sweep.csv slm command | grep -- '--prefill 24' | head -1)
eval "\"\$BENCH\" ${command#bench } --json" >again 2>err || fail "$command: $(cat err)"
[ "$(python3 -c 'import json; r = json.load(open("again")); print(r["engine"], r["status"])')" = "slm ok" ] ||
    fail "$command: $(cat again)"

# ---- what goes wrong is a row, and the exit code says that it did
code=0
"$BENCH" sweep "${common[@]}" --mem none --ctx 0 --prefill none -o wrong \
    --engine exits=bin/exits --engine cut=bin/cut --engine error=bin/error >out 2>err || code=$?
[ "$code" = 4 ] || fail "some points failed, exit $code: $(cat err)"
"$BENCH" sweep "${common[@]}" --mem none --ctx 0 --prefill none -o slow --timeout 8 --budget 0.2 \
    --engine late=bin/late --engine mute=bin/mute >out 2>err || fail "exit $?: $(cat err)"
says() { # DIR ENGINE STATUS TEXT
    [ "$(column $1/sweep.csv "$2" status)" = "$3" ] || fail "$2: $(column $1/sweep.csv "$2" status)"
    column $1/sweep.csv "$2" detail | grep -qF -- "$4" || fail "$2: $(column $1/sweep.csv "$2" detail)"
}
says wrong exits error "ended with exit code 1: error: no such tensor"
says slow late partial "not ready after 8 s; --timeout gives it more"
says slow mute partial "after 3 pieces; --timeout gives it more"
says wrong cut error "the connection ended after 3 pieces"
says wrong error error "HTTP 500: no slot is free"
[ "$(column wrong/sweep.csv "" status)" = ok ] || fail "ours: $(cat wrong/sweep.csv)"
none_left
refused 2 "measured over HTTP" sweep -m nano:Q4_K_M --engine "x=a {model} {port} =~ ([0-9]+)"

# ---- Ctrl-C while a server answers: an interrupted row, and nobody left
: >asked
"$BENCH" sweep "${common[@]}" --mem none --ctx 0 --prefill none --engine mute=bin/mute \
    --timeout 60 -o stopped >out 2>err &
for ((i = 0; i < 600; i++)); do
    ! grep -q '"max_tokens": 9' asked || break
    sleep 0.1
done
kill -INT $!
! wait $! || fail "it was not interrupted"
[ "$(column stopped/sweep.csv mute status)" = interrupted ] || [ -z "$(column stopped/sweep.csv mute status)" ] ||
    fail "no interrupted row: $(cat stopped/sweep.csv)"
none_left

# ---- inside a memory limit
if "$BENCH" decode -m nano:Q4_K_M --mem 256M -n 1 >/dev/null 2>&1; then
    "$BENCH" sweep "${common[@]}" --mem 256M --ctx 0 --prefill none -o limit \
        --engine llama.cpp=bin/llama-server --engine memory=bin/memory >out 2>err || fail "limit: $(cat err)"
    [ "$(column limit/sweep.csv memory status)" = oom ] || fail "memory: $(cat limit/sweep.csv)"
    [ "$(column limit/sweep.csv llama.cpp status)" = ok ] || fail "beside it: $(cat limit/sweep.csv)"
    [ "$(column limit/sweep.csv llama.cpp mem_enforced_bytes)" = $((256 << 20)) ] || fail "no limit in force"
    none_left
fi
rm -rf "$WORK"
