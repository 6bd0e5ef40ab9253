#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench tune: a profile of a tiny model, as file, table and JSON; a limit; Ctrl-C; wrong
# input. What is faster is this machine's affair, and no test's.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache

# ---- a profile in the cache directory, with every key and every choice
SLMBENCH_PROGRESS=1000 "$BENCH" tune -m nano:Q4_K_M --budget 2 --explain >out 2>err || fail "exit $?: $(cat err)"
# A line per step where stderr is no terminal.
for step in loading weights threads prefetch batch "confirming all settings"; do
    grep -Eq "^bench: tune: [0-9]+ % done.*; $step$" err || fail "no step $step: $(cat err)"
done
[ "$(uniq -d err)" = "" ] || fail "a line twice: $(cat err)"
profile=$(sed -n 's/^profile: //p' out)
[ "$profile" = "$(ls cache/tuned/nano-Q4_K_M-*.yaml | sed "s|^|$WORK/|")" ] ||
    fail "not in the cache directory: $profile"
[ "$(tail -n 1 out)" = "use it: bench decode -m nano:Q4_K_M --tuned auto" ] ||
    fail "how to use it: $(cat out)"
[ "$(ls cache/tuned | wc -l)" = 1 ] || fail "more than a profile: $(ls cache/tuned)"
for key in cpu isa topology cpu_quota memory_limit kernel build model quant file_bytes \
    tables_hash weights pages threads placement chunks threads_prefill chunks_prefill batch; do
    grep -q "^  $key: ." "$profile" || fail "no $key: $(cat "$profile")"
done
[ "$(grep -c "^  - name: q[46]_K" "$profile")" = 2 ] || fail "formats: $(cat "$profile")"
grep -q "^ *threads: [0-9]* *# " "$profile" || fail "no comment: $(cat "$profile")"
for knob in weights threads level prefetch panels chunks batch; do
    grep -q "^$knob " out || fail "the table has no $knob: $(cat out)"
done

# ---- kernels, without a model; a model starts from them
if "$BENCH" kernels --list --formats q4_0 --ops gemv_x16 >/dev/null 2>&1; then
    "$BENCH" tune --kernels --formats q4_0 --budget 1 >out 2>err || fail "kernels: $(cat err)"
    kernels=$(sed -n 's/^profile: //p' out)
    [ "$kernels" = "$(ls cache/tuned/kernels-*.yaml | sed "s|^|$WORK/|")" ] || fail "no file: $kernels"
    grep -qE "^  q4_0 +[a-z0-9_]+ +(off|(T0|T1|NTA) [0-9]+) +[124] +[0-9.]+ " out || fail "$(cat out)"
    grep -qE "^    panels: [124]$" "$kernels" || fail "$(cat "$kernels")"
    sed -i 's/^    prefetch: .*/    prefetch: T9 1/' "$kernels"
    ! "$BENCH" tune -m nano:Q4_0 --budget 1 -o started.yaml >out 2>err || fail "starts from what is wrong"
    grep -q "kernels-.*T9 1" err || fail "$(cat err)"
    rm "$kernels"
    "$BENCH" tune --kernels --formats q4_0 --budget 1 --json -o k.yaml >json || fail "as JSON: exit $?"
    grep -q '"panels": ' json && [ -s k.yaml ] || fail "$(cat json)"
fi
for wrong in "--kernels -m nano:Q4_0" "--kernels --explain" "-m nano:Q4_0 --formats q4_0" \
    "--kernels --formats q4_9"; do
    ! "$BENCH" tune $wrong >out 2>err || fail "takes $wrong"
    [ "$(wc -l <err)" = 1 ] || fail "$wrong: $(cat err)"
done

# ---- where stderr is no terminal, lines say what is going on
SLMBENCH_PROGRESS=0.01 "$BENCH" tune -m nano:Q4_K_M --budget 1 -o lines.yaml >out 2>err || fail "exit $?: $(cat err)"
grep -q "^bench: tune: [0-9]* % done.*; " err || fail "no progress: $(cat err)"

# ---- elsewhere, as JSON, under a limit, and all combinations
"$BENCH" tune -m nano:Q8_0 --weights memory --budget 1 --ctx 8 --json -o here/p.yaml >json ||
    fail "exit $?"
grep -q '"profile": "here/p.yaml"' json || fail "no profile: $(cat json)"
grep -q -- '"use": "bench decode -m nano:Q8_0 --weights memory --tuned here/p.yaml"' json ||
    fail "how to use it: $(cat json)"
grep -q '"knob": "threads"' json || fail "no knobs: $(cat json)"
grep -q "^  weights: memory" here/p.yaml || fail "not in memory: $(cat here/p.yaml)"
if "$BENCH" decode -m nano:Q8_0 --mem 256M -n 2 >/dev/null 2>&1; then
    "$BENCH" tune -m nano:Q8_0 --mem 256M --budget 1 -o limited.yaml >out ||
        fail "under a limit: exit $?"
    grep -q "^use it: bench decode -m nano:Q8_0 --mem 256M --tuned limited.yaml$" out ||
        fail "how to use it: $(cat out)"
    grep -q 'memory_limit: "256M"' limited.yaml || fail "limit: $(cat limited.yaml)"
    code=0
    "$BENCH" tune -m nano:Q8_0 --mem 17M --budget 1 -o small.yaml >out 2>err || code=$?
    [ "$code" = 3 ] || fail "a limit too small: exit $code: $(cat out err)"
    [ "$(wc -l <err)" = 1 ] || fail "not one sentence: $(cat err)"
    [ ! -e small.yaml ] || fail "a profile without a model"
fi
code=0
"$BENCH" tune -m nano:Q4_0 --weights packed --budget 1 --exhaustive -o all.yaml >out || code=$?
[ "$code" -le 1 ] || fail "exhaustive: exit $code"
grep -q "^Of [0-9]* combinations the best" out || fail "exhaustive: $(cat out)"

# ---- used: the row says so, and what is asked for wins
value() {
    awk -v name="$2" '$1 == name { print $2 }' "$1"
}
"$BENCH" decode -m nano:Q4_K_M -n 4 --tuned auto --all >row || fail "exit $?"
state=$(value row tuning)
[ "$state" = tuned ] || [ "$state" = slower ] || fail "not used: $(cat row)"
grep -q "^command .* --tuned auto" row || fail "command: $(cat row)"
grep -q "^point .*/tuned" row || fail "identity: $(cat row)"
"$BENCH" decode -m nano:Q4_K_M -n 4 -t 3 --batch 5 --tuned "$profile" --all >row
[ "$(value row n_threads)" = 3 ] || fail "threads: $(cat row)"
grep -q "^command .* --batch 5 " row || fail "batch: $(cat row)"
"$BENCH" decode -m nano:Q4_K_M --prefill 20 -n 3 --weights memory --tuned auto --all >row
[ "$(value row status)" = ok ] || fail "prefill: $(cat row)"
[ "$(value row tuning)" != stale ] || fail "in memory it is another model: $(cat row)"
"$BENCH" decode -m nano:Q4_K_M -n 4 --all >row
[ "$(value row tuning)" = default ] || fail "nobody asked: $(cat row)"
# a step of more tokens than a pass of the profile has
"$BENCH" decode -m nano:Q4_K_M -n 2 --sequences 2 --chunk 700 --tuned "$profile" --all >row ||
    fail "steps of 702 tokens: $(cat row)"
[ "$(value row status)" = ok ] || fail "steps of 702 tokens: $(cat row)"
"$BENCH" decode -m nano:Q4_K_M -n 4 --tuned none --all >row
[ "$(value row tuning)" = default ] || fail "none was asked for: $(cat row)"

# ---- not used, with the reason
"$BENCH" decode -m nano:Q6_K -n 4 --tuned auto --all >row
[ "$(value row tuning)" = missing ] || fail "there is none: $(cat row)"
grep -q "^detail .*bench tune" row || fail "no way out: $(cat row)"
"$BENCH" decode -m nano:Q6_K -n 4 --tuned "$profile" --all >row
[ "$(value row tuning)" = stale ] || fail "of another model: $(cat row)"
grep -q "^detail .*Q4_K_M.*Q6_K" row || fail "no reason: $(cat row)"
sed 's/^  build: .*/  build: "other"/' "$profile" >other.yaml
"$BENCH" decode -m nano:Q4_K_M -n 4 --tuned other.yaml --all >row
grep -q "^detail .*build.*other" row || fail "of another build: $(cat row)"
sed 's/^  weights: packed.*/  weights: mmap/' "$profile" >mapped.yaml
"$BENCH" decode -m nano:Q4_K_M -n 4 --weights packed --tuned mapped.yaml --all >row
[ "$(value row tuning)" = stale ] || fail "for mapped weights: $(cat row)"
"$BENCH" decode -m nano:Q4_K_M -n 4 --tuned mapped.yaml --all >row
[ "$(value row residency)" = mmap ] || fail "not mapped: $(cat row)"

# ---- generate, and a sweep
cp "$SRC/tests/data/models/stories260K-f32.gguf" tiny.gguf
"$BENCH" generate -m tiny.gguf -p a -n 3 >plain 2>/dev/null || fail "generate"
"$BENCH" generate -m tiny.gguf -p a -n 3 --tuned auto >made 2>err || fail "generate: $(cat err)"
grep -q "there is no profile" err || fail "generate says nothing: $(cat err)"
cmp plain made || fail "another text"
"$BENCH" tune -m tiny.gguf --budget 1 -o tiny.yaml >/dev/null
"$BENCH" generate -m tiny.gguf -p a -n 3 --tuned tiny.yaml >made 2>err || fail "$(cat err)"
cmp plain made || fail "a profile makes another text"
"$BENCH" sweep -m nano:Q4_K_M --threads 1 --ctx 0 --prefill none --tokens 4 --mem none \
    --launches 1 --max-launches 1 --repeats 0 --no-probe --no-charts --tuned auto -o swept >/dev/null || fail "sweep: exit $?"
grep -q "/tuned," swept/sweep.csv || fail "sweep: $(cat swept/sweep.csv)"
"$BENCH" sweep --resume swept >out || fail "resume: exit $?"
[ "$(wc -l <swept/sweep.csv)" = 2 ] || fail "measured again: $(cat swept/sweep.csv)"

# ---- Ctrl-C: no profile
for signal in INT TERM; do
    "$BENCH" tune -m nano:Q4_0 --budget 120 -o cut.yaml >out 2>err &
    pid=$!
    sleep 0.7
    kill -$signal $pid
    code=0
    wait $pid || code=$?
    [ "$code" = 130 ] || fail "$signal: exit $code: $(cat err)"
    grep -q "no profile was written" err || fail "$signal: $(cat err)"
    [ ! -e cut.yaml ] || fail "$signal: a profile"
done

# ---- wrong input
refused 2 "name the model" tune
refused 2 "nowhere.gguf" tune -m nowhere.gguf
refused 2 "--budget" tune -m nano:Q4_0 --budget 0
refused 2 "auto, mmap, packed, stream or memory" tune -m nano:Q4_0 --weights elsewhere
refused 2 "disk's speed" tune -m nano:Q4_0 --weights stream
refused 2 "a file" tune -m cache/nano-Q4_0.gguf --weights memory
head -c 1000 cache/nano-Q4_0.gguf >cut.gguf
refused 2 "cut.gguf" tune -m cut.gguf
refused 2 "cache/nano-Q4_0.gguf" tune -m nano:Q4_0 --budget 120 -o cache/nano-Q4_0.gguf/p.yaml
sed 's/^  threads: .*/  threads: 0/' "$profile" >bad.yaml
for command in "decode -m nano:Q4_K_M" "generate -m tiny.gguf" "sweep -m nano:Q4_K_M -o never"; do
    for file in bad.yaml nowhere.yaml; do
        code=0
        # shellcheck disable=SC2086
        "$BENCH" $command --tuned $file >out 2>err || code=$?
        [ "$code" = 2 ] || fail "$command --tuned $file: exit $code: $(cat out err)"
        grep -q "$file" err || fail "$command --tuned $file: $(cat err)"
        [ "$(wc -l <err)" = 1 ] || fail "more than one line: $(cat err)"
    done
done
"$BENCH" tune --help | grep -q -- --exhaustive || fail "no help"
