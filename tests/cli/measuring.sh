#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Who measures on a machine waits for who does already, and says for whom; a model that
# one sweep has made stays while another one uses it.
. "$SRC/tests/cli/lib.sh"
export SLMBENCH_CACHE=$WORK/cache
model=$SRC/tests/data/models/stories260K-f32.gguf
command -v flock >/dev/null || skip "needs flock"
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

# until_true SECONDS TEXT COMMAND...: waits for the command to succeed
until_true() {
    local left=$((10 * $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $((left--)) -gt 0 ] || fail "$what"
        sleep 0.1
    done
}

# ---- the lock
exec 9>lock
flock 9

# waits PROGRAM ARGUMENTS...: it waits for us, and an interrupt ends the waiting
waits() {
    local code=0 pid
    : >err # the program's own comes later: that of the last one must not be read for it
    SLMBENCH_LOCK=$WORK/lock "$@" >out 2>err 9>&- &
    pid=$!
    until_true 60 "'$*' does not wait" grep -q "waiting for .* measures on this machine.*SLMBENCH_LOCK=none" err
    kill -TERM $pid
    wait $pid || code=$?
    [ $code = 130 ] || fail "'$*' ended with $code: $(cat err)"
}
waits "$BENCH" decode -m "$model" -t 1 -n 2
waits "$BENCH" topo --measure
waits "$BENCH" probe --passes 1 --bytes 1M --disk none -t 1
waits "$BENCH" sweep -m "$model" --threads 1 --ctx 0 --prefill none --mem none --no-probe --no-charts -o waiting
waits "$BENCH" gate --b "$BENCH" -m "$model" --budget 10s -o gate
waits "$BENCH" gate -m "$model" --calibrate --budget 60s -o calibrated
waits "$RESEARCH" record-trace trace.txt -m "$model" -t 1
[ ! -e "$(dirname "$BENCH")/bench_kernels" ] || waits "$BENCH" kernels --formats q8_0 --ops gemv --weights hot -o k
waits "$BENCH" quick
"$BENCH" load http://127.0.0.1:1 >out 2>err || true
grep -q "built without libcurl" err || waits "$BENCH" load http://127.0.0.1:1 --users 1 -o users
SLMBENCH_LOCK=none "$BENCH" decode -m "$model" -t 1 -n 2 --budget 0.05 >out 2>err || fail "none: $(cat err)"

# What measures nothing does not wait.
SLMBENCH_LOCK=none "$BENCH" sweep -m "$model" --threads 1 --ctx 0 --prefill none -n 2 --launches 1 --mem none \
    --no-probe --no-charts -o begun >out 2>err || fail "a sweep: $(cat err)"
for command in "topo" "gguf $model" "sweep -m $model --dry-run --mem none" "sweep --resume begun --dry-run" \
    "kernels --list"; do
    SLMBENCH_LOCK=$WORK/lock timeout 60 "$BENCH" $command >out 2>err || fail "$command: $? $(cat err)"
done

# A program that the holder itself starts does not wait for it; rows without the lock report
# that.
own=("$BENCH" decode -m "$model" -t 1 -n 2 --budget 0.05 --mem none --json)
again="again=$BENCH decode -m {model} -t {threads} -n {n} --budget 0.05 --mem none --json => tok_per_s"
SLMBENCH_LOCK=$WORK/own timeout 60 "${own[@]}" --engine "$again" >out 2>err ||
    fail "a bench that bench measures: $? $(cat out err)"
SLMBENCH_LOCK=$WORK/own "${own[@]}" >out 2>err || fail "$? $(cat err)"
! grep -q "without the lock" out || fail "it had the lock: $(cat out)"
SLMBENCH_LOCK=none "${own[@]}" >out 2>err || fail "$? $(cat err)"
grep -q '"detail": ".*without the lock: SLMBENCH_LOCK=none"' out || fail "not reported: $(cat out)"

# The next one goes on when the one before has ended, however that was.
: >err
SLMBENCH_LOCK=$WORK/lock "$BENCH" decode -m "$model" -t 1 -n 2 --budget 0.05 >out 2>err 9>&- &
pid=$!
until_true 60 "decode does not wait" grep -q "waiting for" err
exec 9>&-
wait $pid || fail "decode, after it has waited: $(cat err)"

# ---- a model that two sweeps use
export SLMBENCH_LOCK=none
made=$SLMBENCH_CACHE/nano-Q4_0.gguf
sweep=("$BENCH" sweep -m nano:Q4_0 --threads 1 --prefill none --mem none --no-probe --no-charts --repeats 0
    --launches 1 --max-launches 1)
"${sweep[@]}" --ctx 0-39 -n 2 --budget 0.05 -o first >first.out 2>first.err &
first=$!
until_true 60 "the first sweep has no row" grep -q '^nano\|,nano' first/sweep.csv
kill -TERM $first
wait $first && fail "the first sweep had ended already" || true
[ -s "$made" ] || fail "an interrupted sweep has removed its model"
"${sweep[@]}" --ctx 0 -n 1000000 --budget 600 -o second >second.out 2>second.err &
second=$!
until_true 60 "the second sweep does not begin" grep -q point second/sweep.csv
sleep 1
"$BENCH" sweep --resume first --no-charts >first.out 2>first.err || fail "resume: $(cat first.err)"
kill -0 $second || fail "the second sweep has ended: $(cat second.err)"
[ -s "$made" ] || fail "the first sweep has removed the model that the second uses"
grep -q "nano-Q4_0.gguf stays: another bench uses it" first.out || fail "not said: $(cat first.out)"
kill -TERM $second
wait $second || true
"$BENCH" sweep --resume first --no-charts >first.out 2>first.err || fail "resume: $(cat first.err)"

# Its last user removes what it has made.
rm -f "$made"
"${sweep[@]}" --ctx 0 -n 2 --budget 0.05 -o third >out 2>err || fail "third: $(cat err)"
[ ! -e "$made" ] || fail "the model of a finished sweep is still there"

# What another process makes at the moment is waited for.
mkdir -p "$SLMBENCH_CACHE"
: >"$made.part"
exec 8<"$made.part"
flock 8
: >err
"${sweep[@]}" --ctx 0 -n 2 --budget 0.05 -o later >out 2>err 8<&- &
waiting=$!
until_true 60 "a model in the making is not waited for" grep -q "waiting for another process, which makes .*nano-Q4_0.gguf" err
exec 8<&-
wait $waiting || fail "the sweep that waited for a model: $(cat out err)"

# ---- what a killed run has left
"$BENCH" synth nano Q4_0 -o keep.gguf >out
mkdir -p "$SLMBENCH_CACHE"
echo left >"$SLMBENCH_CACHE/nano-Q4_0.gguf.part"
ln -s "$WORK/keep.gguf" "$SLMBENCH_CACHE/nano-Q8_0.gguf.part"
exec 8<"$SLMBENCH_CACHE/nano-Q4_0.gguf.part"
flock 8
touch -d '1 hour ago' "$SLMBENCH_CACHE/nano-Q4_0.gguf.part"
"${sweep[@]}" --ctx 0 -n 2 --budget 0.05 -o fourth >out 2>err || true
[ -e "$SLMBENCH_CACHE/nano-Q4_0.gguf.part" ] || fail "a model that somebody is making was removed"
exec 8<&-
"${sweep[@]}" --ctx 0 -n 2 --budget 0.05 -o fifth >out 2>err || fail "fifth: $(cat err)"
[ ! -e "$SLMBENCH_CACHE/nano-Q4_0.gguf.part" ] || fail "what a killed run has left is still there"
[ -s keep.gguf ] || fail "a link was followed"
