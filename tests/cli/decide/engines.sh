#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Other programs in the sandbox of a sweep: stand-ins that print what llama-bench prints,
# one that only has mean and deviation, templates with a regular expression and JSON, and
# programs that are missing, fail, hang, print too much or something else; --dry-run,
# --resume, the command that repeats a row, the recommendation.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache
command -v python3 >/dev/null || { echo "needs python3"; exit 77; }

# A stand-in for llama-bench: FAST samples a token in so many microseconds. It says what
# it was asked for, and where it may run.
mkdir bin
cat >bin/llama-bench <<'END'
#!/bin/bash
if [ "$1" = --help ]; then
    printf '  -n, --n-gen <n>\n  -o, --output <csv|json>\n  -d, --n-depth <n>\n'
    exit
fi
echo "$0 $* $(grep Cpus_allowed_list /proc/self/status | cut -f 2)" >>"$ASKED"
while [ $# -gt 0 ]; do
    case $1 in
    -m) model=$2; shift ;; -p) p=$2; shift ;; -n) n=$2; shift ;; -r) r=$2; shift ;;
    -t) t=$2; shift ;; -d) d=$2; shift ;;
    esac
    shift
done
[ -r "$model" ] || { echo "error: failed to load model '$model'" >&2; exit 1; }
[ "$(head -c 4 "$model")" = GGUF ] || exit 1
python3 - "$p" "$n" "$r" "$t" <<'EOF'
import json, sys
p, n, r, t = map(int, sys.argv[1:])
ns = [(n or p) * (1000000 + 10000 * i) for i in range(r)]
print(json.dumps([{"build_commit": "abc1234", "build_number": 7, "n_threads": t,
                   "n_prompt": p, "n_gen": n, "avg_ns": 1, "avg_ts": 990.0,
                   "stddev_ts": 5.0, "samples_ns": ns}], indent=1))
EOF
END
sed 's/"samples_ns": ns/"x": 1/' bin/llama-bench >bin/mean-only
printf '#!/bin/sh\n[ "$1" != --help ] || exec "%s" --help\n' "$PWD/bin/llama-bench" >bin/head
(cat bin/head; echo 'echo "error: no such tensor" >&2; exit 3') >bin/failing
(cat bin/head; echo 'setsid sleep 600 & sleep 600 & wait') >bin/hanging
(cat bin/head; echo 'yes | head -c 3000000') >bin/talking
(cat bin/head; echo 'echo nothing of that kind') >bin/other
(cat bin/head; echo 'kill -SEGV $$') >bin/dying
printf '#!/bin/sh\necho "model $2 speed: 250.5 tok/s"\n' >bin/template
printf '#!/bin/sh\necho "{\\"runs\\": [{\\"tps\\": [200, 210, 220, 230, 240, 250]}]}"\n' >bin/json
chmod +x bin/*
export ASKED=$WORK/asked
: >asked

# column FILE ENGINE NAME: values of its rows
column() {
    python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1], newline="")):
    if row["engine"] == sys.argv[2]:
        print(row[sys.argv[3]])' "$@"
}

common=(-m nano:Q4_K_M --mem none --no-charts --no-probe --repeats 0 --launches 2 --max-launches 2
        --threads 1 --weights auto,mmap -n 8 --budget 1 --seed 3)
rivals=(--engine llama.cpp=bin/llama-bench --engine mean=bin/mean-only
        --engine "mine=bin/template -m {model} -t {threads} -n {n} -c {ctx} =~ speed: ([0-9.]+)"
        --engine "json=bin/json {model} {ctx} => runs.0.tps")

# ---- the plan: other programs once, whatever the weights of this one are
"$BENCH" sweep "${common[@]}" "${rivals[@]}" --ctx 0,16 --prefill 8 --dry-run >out
[ "$(grep -c /llama.cpp out)" = 6 ] || fail "3 points twice of llama.cpp: $(cat out)"
[ "$(grep -c /mine out)" = 4 ] || fail "a template has no prefill points: $(cat out)"
[ "$(grep -vc '/[a-z.]*$' out)" -gt 0 ] || fail "no points of ours: $(cat out)"
[ ! -s asked ] || fail "--dry-run has started a program"

# ---- rows beside ours
"$BENCH" sweep "${common[@]}" "${rivals[@]}" --ctx 0,16 --prefill 8 -o all >out 2>err ||
    fail "exit $?: $(cat err)"
for e in llama.cpp mean mine json; do
    [ "$(column all/sweep.csv $e status | sort -u)" = ok ] || fail "$e: $(cat out)"
    [ "$(column all/sweep.csv $e attempt | sort -u | tr '\n' ' ')" = "1 2 " ] || fail "$e: rounds"
done
python3 - <<'EOF' || fail "rows: $(cat all/sweep.csv)"
import csv
rows = list(csv.DictReader(open("all/sweep.csv", newline="")))
ours = [r for r in rows if not r["engine"]]
assert ours and len(rows) == len(ours) + 2 * (3 + 3 + 2 + 2)
order = [r["engine"] for r in rows if r["attempt"] == "2"]
assert order != sorted(order) and order != sorted(order, reverse=True), order
same = {(r["kind"], r["ctx"]): r["bytes_per_token"] for r in ours}
for r in rows:
    if not r["engine"]:
        continue
    assert r["bytes_per_token"] == same[r["kind"], r["ctx"]]
    assert float(r["roof_gbps"]) > 0 and r["cpus"] != "" and not r["residency"]
    if r["engine"] == "llama.cpp":
        assert r["engine_version"] == "abc1234 (build 7)"
        tps = float(r["tok_per_s"])
        assert 960 < tps < 1000, tps   # 1.00 to 1.07 ms
        if r["kind"] == "decode":
            assert int(r["n_samples"]) == int(r["n_wanted"]) > 1
            assert abs(float(r["lat_p50_ms"]) * tps / 1000 - 1) < 0.01
            share = tps * float(r["bytes_per_token"]) / float(r["roof_gbps"]) / 1e9
            assert abs(float(r["mbu"]) / share - 1) < 0.01
    if r["engine"] == "mean":
        assert r["n_samples"] == "1" and "mean and deviation" in r["detail"]
        if int(r["n_wanted"]) > 1:
            assert float(r["tok_per_s_lo"]) < 990 < float(r["tok_per_s_hi"])
    if r["engine"] == "mine":
        assert abs(float(r["tok_per_s"]) - 250.5) < 1e-6 and "several launches" in r["detail"]
    if r["engine"] == "json":
        assert abs(float(r["tok_per_s"]) - 225) < 1 and r["n_samples"] == "6"
n = {}
for s in list(csv.reader(open("all/samples.csv")))[1:]:
    n[s[0], s[1]] = n.get((s[0], s[1]), 0) + 1
assert all(n.get((r["point"], r["attempt"]), 0) == int(r["n_samples"]) for r in rows)
EOF
cpu=$(column all/sweep.csv llama.cpp cpus | sort -u)
[ "$(awk '{ print $NF }' asked | sort -u)" = "$cpu" ] || fail "not on CPU $cpu: $(cat asked)"
grep -q -- '-d 16' asked || fail "no depth: $(cat asked)"
[ ! -e cache/nano-Q4_K_M.gguf ] || fail "the model that was made is still there"

# ---- tables and the recommendation name the program
"$BENCH" plot all >out 2>&1 || fail "plot: $(cat out)"
grep -q "Q4_K_M.*llama.cpp" all/decode_context.csv || fail "no chart has llama.cpp: $(ls all)"
if command -v gnuplot >/dev/null; then
    # one number of threads: engines side by side
    grep -q "^title_text = 'Decode speed with 1 thread, at" all/decode_speed.gp || fail "no bars: $(ls all)"
    [ ! -e all/decode_threads.svg ] || fail "threads are an axis of one number"
    draws_again all decode_speed
fi
"$BENCH" recommend all --ctx 0 >out || fail "no recommendation"
grep -q "^Recommended: " out || fail "nothing recommended: $(cat out)"

# ---- the command of a row repeats it, without and with a shell's quotes
for e in llama.cpp mine; do
    command=$(column all/sweep.csv $e command | grep -- '--ctx 0' | head -1)
    eval "\"\$BENCH\" ${command#bench } --json" >again 2>err || fail "$command: $(cat err)"
    [ "$(python3 -c 'import json; r = json.load(open("again")); print(r["engine"], r["status"])')" = \
        "$e ok" ] || fail "$command: $(cat again)"
done
"$BENCH" decode -m nano:Q4_K_M -t 1 --engine x=bin/llama-bench >out || fail "decode"
grep -q "engine *x, abc1234" out || fail "no engine in the summary: $(cat out)"

# ---- a program that cannot be measured is refused before anything is, and no directory is made
for e in missing=/no/such/llama-bench "gone=no-such-server {model} --port {port}" \
    "away=./away {model} =~ ([0-9]+)" nobench=/bin/true; do
    case $e in nobench*) text="no help of a llama-bench" ;; gone*) text="no program no-such-server in PATH" ;;
    *) text="cannot run" ;; esac
    refused 2 "$text" sweep "${common[@]}" --engine ok=bin/llama-bench --engine "$e" -o never
    [ ! -e never ] || fail "$e: a sweep began"
done

# ---- what goes wrong is a row, and the exit code says that it did
code=0
"$BENCH" sweep "${common[@]}" --ctx 0 --prefill none --launches 1 --max-launches 1 \
    --engine failing=bin/failing --engine hanging=bin/hanging --engine talking=bin/talking --engine other=bin/other \
    --engine dying=bin/dying --engine "no=bin/template {model} =~ nothing ([0-9]+)" \
    --timeout 5 --budget 0.2 -o wrong >out 2>err || code=$?
[ "$code" = 4 ] || fail "some points failed, exit $code: $(cat err)"
grep -q "^bench: [0-9] of [0-9]* points failed, .*: " err || fail "no sentence: $(cat err)"
says() {
    [ "$(column wrong/sweep.csv "$1" status)" = "$2" ] || fail "$1: $(column wrong/sweep.csv "$1" status)"
    column wrong/sweep.csv "$1" detail | grep -qF -- "$3" || fail "$1: $(column wrong/sweep.csv "$1" detail)"
}
says failing error "ended with exit code 3: error: no such tensor"
says hanging partial "no result within"
says talking error "printed more than 256 KiB"
says other error "no test as"
says dying error "died of signal 11"
says no error "finds nothing"
[ "$(column wrong/sweep.csv "" status | sort -u)" = ok ] || fail "ours: $(cat wrong/sweep.csv)"
! pgrep -f 'sleep 600' | while read -r pid; do readlink "/proc/$pid/cwd"; done | grep -qx "$PWD" ||
    fail "a process is left behind"

# ---- --resume starts a stored program only where the command names it, too
"$BENCH" sweep "${common[@]}" --engine llama.cpp=bin/llama-bench --ctx 0 --prefill none -o half >out
head -3 half/sweep.csv >cut && mv cut half/sweep.csv
: >asked
refused 2 "add --engine llama.cpp=$PWD/bin/llama-bench" sweep --resume half
[ ! -s asked ] || fail "--resume has started a program of the directory"
refused 2 "add --engine" sweep --resume half --engine llama.cpp=bin/other
"$BENCH" sweep --resume half --engine llama.cpp=bin/llama-bench >out 2>err || fail "resume: $(cat err)"
[ "$(($(wc -l <half/sweep.csv) - 1))" = 6 ] || fail "not whole: $(cat half/sweep.csv)"

# ---- a configuration names programs, too
cat >rivals.yaml <<END
models: [nano:Q4_K_M]
threads: [1]
ctx: [0]
prefill: [none]
mem: [none]
launches: 1
max_launches: 1
repeats: 0
engines: ["one=bin/llama-bench", "two=bin/template {model} =~ speed: ([0-9.]+)"]
END
"$BENCH" sweep -c rivals.yaml --no-probe --no-charts -o yaml >out 2>err || fail "yaml: $(cat err)"
[ "$(column yaml/sweep.csv two status | sort -u)" = ok ] || fail "yaml: $(cat yaml/sweep.csv)"

# ---- what cannot be
refused 2 "does not begin with a name" sweep -m nano:Q4_K_M --engine bin/llama-bench
refused 2 "two programs are called x" sweep -m nano:Q4_K_M --engine x=a --engine x=b
refused 2 "exclude each other" decode -m nano:Q4_K_M --engine x=a --kv-window 64
"$BENCH" synth nano F16 -o nano.gguf >/dev/null
refused 2 "bench quantize" sweep -m nano.gguf:Q4_0 --engine x=a --mem none

# ---- inside a memory limit: what is killed for memory, and a neighbour that is not
if "$BENCH" sweep -m nano:Q4_K_M --mem 256M --dry-run >/dev/null &&
    "$BENCH" decode -m nano:Q4_K_M --mem 256M -n 1 >/dev/null 2>&1; then
    (cat bin/head; echo 'exec python3 -c "x = bytearray(1 << 30)"') >bin/large
    chmod +x bin/large
    "$BENCH" sweep -m nano:Q4_K_M --mem 256M --no-charts --no-probe --threads 1 --ctx 0 \
        --prefill none --launches 1 --max-launches 1 --repeats 0 --engine llama.cpp=bin/llama-bench \
        --engine large=bin/large -o limit >out 2>err || fail "exit $?: $(cat err)"
    [ "$(column limit/sweep.csv large status)" = oom ] || fail "large: $(cat limit/sweep.csv)"
    [ "$(column limit/sweep.csv llama.cpp status)" = ok ] || fail "beside it: $(cat limit/sweep.csv)"
    [ "$(column limit/sweep.csv llama.cpp mem_enforced_bytes)" = 268435456 ] || fail "limit"
    [ "$(column limit/sweep.csv llama.cpp mem_resident_bytes)" -lt 100000000 ] ||
        fail "a buffer of the probe counts as its memory: $(cat limit/sweep.csv)"
fi
rm -rf "$WORK"
