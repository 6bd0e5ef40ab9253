#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench sweep: rows, samples and machine.json; kill -9 and Ctrl-C in the middle,
# and going on from there; settings that cannot be.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache

rows() {
    echo $(($(wc -l <"$1/sweep.csv") - 1))
}

# column FILE NAME: values, one per row
column() {
    python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1], newline="")):
    print(row[sys.argv[2]])' "$1" "$2"
}

# whole DIR: every line of the table has as many cells as its header
whole() {
    python3 - "$1" <<'EOF' || fail "rows of $1 are not whole"
import csv, sys
rows = list(csv.reader(open(sys.argv[1] + "/sweep.csv", newline="")))
assert all(len(r) == len(rows[0]) for r in rows), "torn row"
key = [rows[0].index(c) for c in ("point", "attempt", "n_samples")]
count = {}
for s in list(csv.reader(open(sys.argv[1] + "/samples.csv")))[1:]:
    count[(s[0], s[1])] = count.get((s[0], s[1]), 0) + 1
for r in rows[1:]:
    point, attempt, n = (r[k] for k in key)
    assert count.get((point, attempt), 0) == int(n or 0), (point, attempt, n)
assert len({(r[key[0]], r[key[1]]) for r in rows[1:]}) == len(rows) - 1, "a row twice"
EOF
}

# workers: process ids of those that work in this directory
workers() {
    local pid
    for pid in $(pgrep -f '^bench worker$'); do
        [ "$(readlink "/proc/$pid/cwd")" != "$PWD" ] || echo "$pid"
    done
}

# of what is not about launches, one is enough
common=(--mem none --no-charts --no-probe --repeats 0 --launches 1 --max-launches 1)
command -v python3 >/dev/null || { echo "needs python3"; exit 77; }

# ---- two thread counts, from start to end
"$BENCH" sweep -c quick --ctx 0,64 -o one "${common[@]}" -n 8 --add-to stored.db >out 2>err || fail "exit $?: $(cat err)"
[ "$(rows one)" = 6 ] || fail "6 points expected: $(cat one/sweep.csv)"
[ "$(column one/sweep.csv status | sort -u)" = ok ] || fail "not all ok: $(cat one/sweep.csv)"
[ "$(column one/sweep.csv n_threads | sort -u | tr '\n' ' ')" = "1 2 " ] || fail "threads"
[ "$(head -1 one/sweep.csv | tr ',' '\n')" = \
    "$("$BENCH" fields --json | sed -n 's/.*"name": "\(.*\)".*/\1/p')" ] || fail "columns"
whole one
grep -q "stored.db: 6 rows of 1 run added" out || fail "nothing was stored: $(cat out)"
[ "$("$BENCH" rows stored.db --launches --format csv --columns point | sort)" = \
    "$("$BENCH" rows one --launches --format csv --columns point | sort)" ] || fail "other rows were stored"
python3 -m json.tool one/machine.json >/dev/null || fail "machine.json is not JSON"
grep -q '"seed": 1' one/machine.json || fail "no seed in machine.json"
[ ! -e cache/nano-Q4_K_M.gguf ] || fail "the model that was made is still there"
grep -q "^\[6/6\] nano:Q4_K_M/" out || fail "no line per point: $(cat out)"
# Its last words are those of recommend, which reads the rows that it stored.
"$BENCH" recommend one >again 2>&1 || true
diff <(sed -n '/^Recommended: /,/^Measure it again/p' out) \
    <(sed -n '/^Recommended: /,/^Measure it again/p' again) || fail "recommend says something else"
if "$BENCH" sweep -c quick -o one "${common[@]}" 2>err; then fail "written over"; fi
grep -q -- "--resume" err || fail "no hint to resume: $(cat err)"

# ---- launches: every point once in each round, over all models, one row each
"$BENCH" sweep -m nano:Q4_0 -m nano:Q8_0 --threads 1 --ctx 0,8,16,24 --prefill none -n 4 \
    --launches 3 --max-launches 3 --repeats 0 --mem none --no-charts --no-probe --seed 2 \
    -o rounds >out 2>err || fail "exit $?: $(cat err)"
[ "$(rows rounds)" = 24 ] || fail "8 points, 3 launches: $(cat rounds/sweep.csv)"
[ "$(column rounds/sweep.csv attempt | tr -d '\n')" = 111111112222222233333333 ] ||
    fail "rounds: $(column rounds/sweep.csv attempt | tr '\n' ' ')"
whole rounds
python3 - <<'EOF' || fail "orders of rounds: $(cat rounds/sweep.csv)"
import csv
rows = list(csv.DictReader(open("rounds/sweep.csv", newline="")))
rounds = [[r["point"] for r in rows if r["attempt"] == k] for k in "123"]
assert sorted(rounds[0]) == sorted(rounds[1]) == sorted(rounds[2])
assert len({tuple(r) for r in rounds}) == 3, "the same order twice"
EOF
grep -q '"models": "interleaved"' rounds/machine.json || fail "machine.json: how models are ordered"
[ "$(grep -c "^\[8/8\] " out)" = 3 ] || fail "progress does not count launches: $(cat out)"
[ "$(grep -c "decode at 8 " out)" = 2 ] || fail "not one line per point in the table: $(cat out)"
[ ! -e cache/nano-Q4_0.gguf ] && [ ! -e cache/nano-Q8_0.gguf ] || fail "models are still there"
head -n 14 rounds/sweep.csv >cut.csv
mv cut.csv rounds/sweep.csv
"$BENCH" sweep --resume rounds --no-charts >out 2>err || fail "resume: $(cat err)"
[ "$(column rounds/sweep.csv attempt | tr -d '\n')" = 111111112222222233333333 ] ||
    fail "rounds: $(column rounds/sweep.csv attempt | tr '\n' ' ')"
whole rounds

# ---- a disk that does not hold all models: one after the other, each in rounds
sed -i 's/"models": "interleaved"/"models": "one after the other"/' rounds/machine.json
head -n 1 rounds/sweep.csv >cut.csv
mv cut.csv rounds/sweep.csv
"$BENCH" sweep --resume rounds --no-charts >out 2>err || fail "resume: $(cat err)"
[ "$(column rounds/sweep.csv attempt | tr -d '\n')" = 111122223333111122223333 ] ||
    fail "rounds: $(column rounds/sweep.csv attempt | tr '\n' ' ')"
[ "$(column rounds/sweep.csv quant | uniq -c | tr -s ' \n' ' ')" = " 12 Q4_0 12 Q8_0 " ] ||
    fail "not one after the other: $(column rounds/sweep.csv quant)"
whole rounds

# ---- more launches while the interval is wider than wanted
"$BENCH" sweep -m nano:Q4_0 --threads 1 --ctx 0,8 --prefill none -n 4 --launches 2 \
    --max-launches 4 --ci 0.01% --repeats 2 --mem none --no-charts --no-probe -o wide \
    >out 2>err || fail "exit $?: $(cat err)"
[ "$(rows wide)" -gt 4 ] && [ "$(rows wide)" -le 12 ] || fail "launches: $(cat wide/sweep.csv)"
# Counters of a round do not grow; what it takes is printed before.
tr '\n' ' ' <out | grep -qE "2 points, 2 to 4 launches each: at most [0-9:.]+ (s|min) of measuring; model files of [0-9.]+ MiB are made, and removed at the end " ||
    fail "no effort: $(cat out)"
# How long the rest takes is known from the first launch, and not before.
[ "$(grep -m 1 -A 1 '^\[1/2\] ' out | tail -n 1 | grep -cE '^about [0-9:.]+ (s|min) to [0-9:.]+ (s|min) left, if ')" = 1 ] &&
    [ "$(grep -c '^about ' out)" = 1 ] || fail "time left: $(cat out)"
[ "$(grep -cE '^\[[12]/2\] ' out)" -ge 4 ] && grep -qx "round 2: 2 launches" out || fail "counters: $(cat out)"
grep -qE "^\[[0-9]+/([3-9]|1[0-9])\] " out && fail "a counter that grows: $(cat out)"
grep -qx "    bench recommend wide --for slmbench" out || fail "what is next: $(cat out)"

# ---- at a terminal every line fits it, and the star is explained
for columns in 80 132; do
    has_terminals || break
    WIDE_COMMANDS=1 python3 "$SRC/tests/cli/at_terminal.py" $columns "$BENCH" sweep -c quick --ctx 0,64 -o terminal$columns \
        "${common[@]}" -n 8 >out 2>err || fail "$columns columns: $(cat out err)"
    grep -q "^\[6/6\] nano:Q4_K_M/" out || fail "no line per point: $(cat out)"
    [ $columns -gt 80 ] || grep -q "^    ok [0-9.]* tok/s" out || fail "no second line: $(cat out)"
    grep -q "^\* recommended" out || fail "a star without words: $(cat out)"
done

# ---- order: random, the same for the same seed, printed without measuring
"$BENCH" sweep -c quick --dry-run --seed 3 >a
"$BENCH" sweep -c quick --dry-run --seed 3 >b
"$BENCH" sweep -c quick --dry-run --seed 4 >c
cmp a b || fail "the order is not repeatable"
! cmp -s a c || fail "the order does not depend on the seed"
"$BENCH" sweep -m nano:Q4_0 --threads 1 --ctx 0 --prefill none --mem none --no-probe --dry-run >d
seed=$(sed -n 's/.*, seed \([0-9]*\).*/\1/p' d)
since=$(($(date +%s) - seed))
[ $since -lt -1 ] || [ $since -gt 60 ] || fail "the seed is the time, which others have, too: $(cat d)"

# ---- a list of quantisations is a model for each, on the command line and in a configuration
echo 'models: ["nano:Q4_K_M,Q8_0", nano:F16]' >list.yaml
for from in "-m nano:Q4_K_M,Q8_0 -m nano:F16" "-c ./list.yaml"; do
    "$BENCH" sweep $from --threads 1 --ctx 0 --prefill none --dry-run >out 2>err ||
        fail "$from: $(cat err)"
    [ "$(grep -o 'nano:[A-Z0-9_]*' out | sort -u | tr '\n' ' ')" = "nano:F16 nano:Q4_K_M nano:Q8_0 " ] ||
        fail "$from: $(cat out)"
done
refused 2 "there is no quantisation 'Q9'" sweep -m nano:Q4_K_M,Q9 --dry-run
refused 2 "--mem: '1G,,2G' has an empty item" sweep -m nano:Q4_0 --mem 1G,,2G --dry-run
refused 2 "--kv-type: 'f16,,q8_0' has an empty item" sweep -m nano:Q4_0 --kv-type f16,,q8_0 --dry-run
refused 2 "--speculate: 'copy,' has an empty item" sweep -m nano:Q4_0 --speculate copy, --dry-run
refused 2 "'Q4_0,,Q8_0' has an empty item" sweep -m nano:Q4_0,,Q8_0 --dry-run
refused 2 "'nano:Q4_0,Q8_0' is several models, and one is taken here" decode -m nano:Q4_0,Q8_0
refused 2 "as in nano:Q4_0" plan -m nano:Q4_0,Q8_0
"$BENCH" synth nano Q4_0 -o "own,twin:Q4_0,Q8_0" >/dev/null
"$BENCH" sweep -m "own,twin:Q4_0,Q8_0" --threads 1 --ctx 0 --prefill none --dry-run >out 2>err ||
    fail "a name with commas: $(cat err)"
rm "own,twin:Q4_0,Q8_0"

# ---- mapped and packed weights side by side
"$BENCH" sweep -m nano:Q4_K_M --threads 1 --ctx 8 --prefill 8 --weights mmap,packed -n 8 \
    -o both "${common[@]}" >out 2>err || fail "exit $?: $(cat err)"
[ "$(column both/sweep.csv residency | sort | tr '\n' ' ')" = "mmap mmap packed packed " ] ||
    fail "residency: $(cat both/sweep.csv)"
[ "$(column both/sweep.csv status | sort -u)" = ok ] || fail "not ok: $(cat both/sweep.csv)"

# ---- where stderr is no terminal, lines say what goes on before the first point and after
SLMBENCH_PROGRESS=0.0001 "$BENCH" sweep -m nano:Q8_0 --threads 1 --ctx 0 --prefill none -n 4 \
    -o lines "${common[@]}" >out 2>err || fail "exit $?: $(cat err)"
grep -q "^bench: making the model: [0-9]* % done.*; .* GB$" err || fail "no model: $(cat err)"
grep -q "^bench: sweep: [0-9]* % done.*; round 1, 1 of 1, " err || fail "no point: $(cat err)"
SLMBENCH_PROGRESS=0.0001 "$BENCH" sweep -m nano:Q8_0 --threads 1 --ctx 0 --prefill none -n 4 \
    -o probing --mem none >out 2>err &
pid=$!
for _ in $(seq 600); do
    ! grep -q "^bench: probe: [0-9]* % done.*; read, 1 thread" err || break
    sleep 0.1
done
grep -q "^bench: probe: " err || fail "no probe: $(cat err)"
kill -INT $pid
wait $pid || true

# ---- kill -9 half-way: rows are whole, no child is left, the rest can be had
start() { # DIR: a sweep in the background, until it has two rows
    "$BENCH" sweep -m nano:Q4_0 --threads 1,2 --ctx 0,8,16,24 --prefill none \
        -n 4 --budget 0.3 --seed 5 -o "$1" "${common[@]}" >"$1.out" 2>"$1.err" &
    pid=$!
    for _ in $(seq 600); do
        [ -e "$1/sweep.csv" ] && [ "$(wc -l <"$1/sweep.csv")" -gt 2 ] && return
        sleep 0.05
    done
    fail "no rows within 30 s: $(cat "$1.err")"
}
start two
kill -9 $pid
wait $pid 2>/dev/null || true
whole_before=$(rows two)
for _ in $(seq 100); do
    [ -n "$(workers)" ] || break
    sleep 0.05
done
[ -z "$(workers)" ] || fail "a worker outlived its sweep: $(workers)"
printf '2025-01-01T00:00:00Z,torn' >>two/sweep.csv
[ -e cache/nano-Q4_0.gguf ] || [ "$whole_before" = 8 ] || fail "the model is gone"
"$BENCH" sweep --resume two --no-charts >out 2>err || fail "resume: $(cat err)"
[ "$(rows two)" = 8 ] || fail "8 points expected: $(cat two/sweep.csv)"
whole two
[ ! -e cache/nano-Q4_0.gguf ] || fail "the killed sweep's model is still there"
"$BENCH" sweep --resume two --no-charts >out 2>err || fail "a finished one: $(cat err)"
[ "$(rows two)" = 8 ] || fail "measured again: $(cat two/sweep.csv)"

# ---- Ctrl-C: exit code 130, the way to go on, and it goes on
start three
code=0
"$BENCH" sweep --resume three 2>err || code=$?
[ "$code" = 2 ] && grep -q "another sweep" err || fail "two sweeps at once: $(cat err)"
kill -INT $pid
code=0
wait $pid || code=$?
[ "$code" = 130 ] || [ "$(rows three)" = 8 ] || fail "interrupted: exit $code"
[ "$(rows three)" = 8 ] || grep -q -- "--resume three" three.err || fail "$(cat three.err)"
[ -z "$(column three/sweep.csv status | grep -v ok)" ] || fail "an unfinished row"
"$BENCH" sweep --resume three --no-charts >out 2>err || fail "resume: $(cat err)"
[ "$(rows three)" = 8 ] || fail "8 points expected"
whole three

# ---- what is no model is refused before anything is measured, and no directory is made
head -c 2000 /dev/zero >broken.gguf
mkdir folder && echo '{"model_type": "no-such-model"}' >folder/config.json
"$BENCH" synth nano F16 -o cut.gguf >/dev/null && truncate -s 20000 cut.gguf
while read -r m text; do
    refused 2 "$text" sweep -m nano:Q8_0 -m "$m" --threads 1 --ctx 0 --prefill none -n 4 -o never "${common[@]}"
    [ ! -e never ] || fail "$m: a sweep began"
done <<END
broken.gguf not a GGUF file
cut.gguf cut.gguf
nowhere.gguf cannot open nowhere.gguf
no-such-shape:Q4_0 no-such-shape
nano:Q9 there is no quantisation
END
refused 3 "bench: $PWD/folder/config.json: model_type 'no-such-model' is not supported" \
    sweep -m nano:Q8_0 -m folder -o never "${common[@]}"
refused 2 "broken.gguf" sweep -m nano:Q8_0 -m broken.gguf --dry-run

# ---- the first line says whose memory the points have
"$BENCH" sweep -m nano:Q8_0 --threads 1 --ctx 0 --prefill none -n 4 -o four --launches 1 --max-launches 1 \
    --no-charts --no-probe >out 2>err || fail "exit $?: $(cat err)"
head -1 out | grep -Eq "^memory: (all of this machine|the limit that is in force here), [0-9.]+ [GMT]iB" ||
    fail "whose memory? $(head -1 out)"
[ "$(column four/sweep.csv mem_limit_bytes)" = "" ] || fail "a limit: $(cat four/sweep.csv)"
if "$BENCH" decode -m nano:Q4_0 --mem 256M -n 1 >/dev/null 2>&1; then
    "$BENCH" sweep -m nano:Q8_0 --threads 1 --ctx 0 --prefill none -n 4 -o limited "${common[@]}" \
        --mem 256M,none >out 2>err || fail "exit $?: $(cat err)"
    [ "$(head -1 out)" = "memory limit of each point: 256 MiB and without a limit" ] || fail "$(head -1 out)"
fi

# ---- no default depth is beyond what the model was made for; one that is asked for may be
own=$SRC/tests/data/models/stories260K-f32.gguf
most=$("$BENCH" gguf "$own" --json | python3 -c 'import json, sys
print(json.load(sys.stdin)["metadata"]["llama.context_length"])' 2>/dev/null || echo 512)
"$BENCH" sweep -m "$own" --threads 1 --prefill none --dry-run >out
grep -q "/ctx$most/\|/ctx$most$" out && ! grep -q "/ctx4096" out || fail "depths: $(cat out)"
"$BENCH" sweep -m "$own" --threads 1 --prefill none --ctx 4096 --dry-run >out
grep -q "/ctx4096" out || fail "the depth that was asked for: $(cat out)"

# ---- files of one name are models of their own, and those of one content one model
mkdir m1 m2
cp "$own" m1/model.gguf
"$BENCH" quantize "$own" m2/model.gguf Q8_0 >/dev/null
long=$(printf 'M%094d' 2)
cp m1/model.gguf "${long}A.gguf" && cp m2/model.gguf "${long}B.gguf"
"$BENCH" sweep -m m1/model.gguf -m m2/model.gguf -m m1/model.gguf:Q4_0 -m ./m1/../m1/model.gguf -m "${long}A.gguf" \
    -m "${long}B.gguf" --threads 1 --ctx 0 --prefill none -n 4 -o same "${common[@]}" >out 2>err ||
    fail "exit $?: $(cat err)"
[ "$(column same/sweep.csv model | sort | tr '\n' ' ')" = \
    "${long}A ${long}B m1/model m1/model m2/model " ] || fail "names: $(column same/sweep.csv model)"
[ "$(column same/sweep.csv model_label | sort -u)" = model ] || fail "labels: $(column same/sweep.csv model_label)"
[ "$(column same/sweep.csv point | sort -u | wc -l)" = 5 ] || fail "points: $(column same/sweep.csv point)"
"$BENCH" recommend same >advice || fail "no advice: $?"
[ "$(grep -c "^Recommended: " advice)" = 1 ] || fail "one model, several answers: $(cat advice)"
"$BENCH" recommend same --for llama.cpp >advice || fail "no command: $?"
# another content with the same name is another model
cp "$SRC/tests/data/models/qwen3.gguf" m2/model.gguf
"$BENCH" sweep -m m1/model.gguf -m m2/model.gguf --threads 1 --ctx 0 --prefill none -n 4 -o other "${common[@]}" \
    >out 2>err || fail "exit $?: $(cat err)"
[ "$(column other/sweep.csv model_label | sort | tr '\n' ' ')" = "m1/model m2/model " ] ||
    fail "labels: $(column other/sweep.csv model_label)"

# ---- Ctrl-C while charts are drawn: gnuplot gets the signal, too
mkdir tools
printf '#!/bin/sh\nkill -INT $PPID\nkill -INT $$\n' >tools/gnuplot
chmod +x tools/gnuplot
code=0
PATH=$WORK/tools:$PATH "$BENCH" sweep -m nano:Q4_0 --threads 1 --ctx 0 --prefill none -n 4 \
    --mem none --no-probe --repeats 0 --launches 1 --max-launches 1 -o "draw it" \
    >out 2>err || code=$?
[ "$code" = 130 ] || fail "interrupted while drawing: exit $code: $(cat out err)"
grep -q "^bench: all points are measured; to draw the charts: bench plot '.*draw it'$" err ||
    fail "no word of bench plot: $(cat err)"
[ "$(ls -A "draw it" | grep -c '^\.[0-9a-f]*$')" = 0 ] || fail "left behind: $(ls -A "draw it")"

# ---- the user's own file is never removed
"$BENCH" synth nano Q4_0 -o own.gguf >/dev/null
"$BENCH" sweep -m own.gguf --threads 1 --ctx 0 --prefill none -n 4 -o five \
    "${common[@]}" >out 2>err || fail "exit $?: $(cat err)"
[ -e own.gguf ] || fail "own.gguf was removed"

# ---- what bench quality knows goes into the results: table and advice name it
model=$SRC/tests/data/models/shakespeare3M-f16.gguf
"$BENCH" quality -m "$model" --kv-type f16,q4_0 --chunks 2 -o known >/dev/null
cat >known.yaml <<END
models: [$model]
kv_type: [f16, q4_0]
threads: [1]
ctx: [8]
prefill: [none]
quality: known
END
"$BENCH" sweep -c ./known.yaml -n 4 -o six "${common[@]}" >out 2>err || fail "$(cat err)"
cmp known/quality.csv six/quality.csv || fail "quality.csv was not brought along"
# where nothing limits, as where a cache gives more than the ceiling, there is no such column
grep -qE " KL( +limited by)?$" out || fail "no divergence in the table: $(cat out)"
tr -s ' \n' ' ' <out | grep -q "Quality: KL .* from shakespeare3M-f16, the same top token" ||
    fail "no divergence in the advice: $(cat out)"
sed -i 's/^quality: .*/quality: nowhere/' known.yaml

# ---- what cannot be
printf 'models: [nano:Q4_0]\ntokenz: 3\n' >bad.yaml
refused 2 "bad.yaml:" sweep -c bad.yaml
refused 2 "tokenz" sweep -c bad.yaml
refused 2 "nowhere" sweep -c nowhere
printf 'models: [nano:Q4_0]\nthreads: [1, 2\n' >bad.yaml
refused 2 "a bracket or a quotation mark is not closed" sweep -c bad.yaml
! grep -qi "libyaml\|flow sequence" err || fail "words of a library: $(cat err)"
touch file
refused 2 "file is not a directory" sweep -c quick -o file
refused 2 "one/sweep.csv" sweep -c quick -o never --add-to one/sweep.csv
[ ! -e never ] || fail "a sweep began whose rows cannot be stored"
refused 2 "file is not a directory" sweep -c quick -o file/below
refused 2 "the file system of /proc has no new ones" sweep -c quick -o /proc/results
"$BENCH" sweep -m nano:Q4_0 --threads 1,64 --ctx 0 --prefill none --dry-run >out
grep -q "^note: 64 threads share" out || fail "no doubt of 64 threads: $(cat out)"
refused 2 "known.yaml: quality: cannot open nowhere" sweep -c ./known.yaml
refused 2 "--quality: six/sweep.csv holds no perplexity" sweep -c quick --quality six/sweep.csv
refused 2 "nothing to measure" sweep -c quick --ctx none --prefill none
refused 2 "no sweep to resume" sweep --resume nowhere
refused 2 "--launches: 0 launches are outside 1..100" sweep -c quick --launches 0
refused 2 "--ci: 200 % are outside 0.01..100" sweep -c quick --ci 200%
refused 2 "--threads" sweep -c quick --threads 0
refused 2 "-m" sweep surplus
refused 3 "try" sweep -c quick --mem 900T
