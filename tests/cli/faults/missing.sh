#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A fence that lacks a part: every command that reads a model behind one prints
# once what this kernel lacks, and works; where the kernel has it and it cannot be put
# up, the command ends with a sentence and reads nothing.
. "$SRC/tests/cli/lib.sh"
model=$SRC/tests/data/models/stories260K-f32.gguf
"$WITHOUT" landlock true || skip "no filters of system calls here"
yes 'Once upon a time there was a model.' | head -n 200 >text.txt
cp "$model" m.gguf
point="-m m.gguf -t 1 -n 2 --budget 0.05"

# without PART COMMAND...: one note, which names it, and the usual end
without() {
    local part=$1 named=seccomp code=0
    shift
    [ "$part" = seccomp ] || named=Landlock
    rm -rf written*
    timeout 100 "$WITHOUT" "$part" "$BENCH" "$@" >out 2>err </dev/null || code=$?
    [ $code = 0 ] || fail "'$*' without $part ended with $code: $(cat err)"
    [ "$(grep -c "^bench: note: this kernel has no $named.* fenced in only in part" err)" = 1 ] ||
        fail "'$*' without $part: not one note: $(cat err)"
}

# refuses COMMAND...: it may not restrict itself, so it reads nothing
refuses() {
    local code=0
    rm -rf written*
    timeout 100 "$WITHOUT" privilege "$BENCH" "$@" >out 2>err </dev/null || code=$?
    [ $code = 2 ] || [ $code = 4 ] || fail "'$*' without filters ended with $code: $(cat err)"
    grep -q "cannot give up the system calls" err out || fail "'$*' without filters: $(cat err)"
    [ "$1" = quality ] || [ -z "$(find . -path "./written*" -type f)" ] || fail "'$*' without filters wrote $(find . -path "./written*")"
}

for do in without refuses; do
    for part in seccomp landlock; do
        [ $do = without ] || { [ $part = seccomp ] || break; part=""; }
        $do $part generate -m m.gguf -t 1 -n 2 -p Once
        $do $part tokenize -m m.gguf text
        $do $part gguf m.gguf
        $do $part logits -m m.gguf --tokens 1 -o written
        $do $part quantize m.gguf written.gguf Q8_0
        $do $part pack m.gguf -o written.gguf
        $do $part imatrix -m m.gguf --text text.txt --ctx 32 --chunks 1 -o written.gguf
        $do $part quality -m m.gguf:Q8_0 --reference m.gguf --text text.txt --ctx 32 --chunks 1 -t 1 -o written
        $do $part decode $point
    done
done

# Points and processes of several kinds, one after the other: once all the same.
without seccomp sweep $point --no-charts --no-probe --launches 2 --max-launches 2 --repeats 0 --threads 1 --ctx 0,8 \
    --prefill none -o written
without landlock plan -m m.gguf
printf 'Once\n' | timeout 100 "$WITHOUT" seccomp "$BENCH" chat -m m.gguf -t 1 -n 2 >out 2>err || true
[ "$(grep -c "this kernel has no seccomp" err)" = 1 ] || fail "chat without seccomp: $(cat err)"

# A server prints it to its log, before it listens.
served() { # PART
    "$WITHOUT" "$1" "$BENCH" serve -m m.gguf -t 1 --ctx 64 --port 0 >out 2>err </dev/null &
    local pid=$! i
    for ((i = 0; i < 600; i++)); do
        grep -q http://127.0.0.1 out err && break
        kill -0 $pid 2>/dev/null || break
        sleep 0.05
    done
    kill -TERM $pid 2>/dev/null || true
    wait $pid
}
served seccomp || fail "serve without seccomp ended with $?: $(cat err)"
[ "$(grep -c "this kernel has no seccomp" err)" = 1 ] || fail "serve without seccomp: $(cat err)"
code=0
served privilege || code=$?
[ $code = 2 ] && grep -q "cannot give up the system calls" err || fail "serve without filters ended with $code: $(cat err)"

if is_full; then
    without landlock choose -m m.gguf --calibration text.txt --types q8_0,q4_0 --groups 8 --chunk-tokens 64 \
        --chunks 4 --sense-chunks 1 --max-file 400K --mixes 2 --budget 0.05 --launches 1 --no-probe --ctx 60 -o written -t 1
    without seccomp gate -m m.gguf --b "$BENCH" --threads 1 --prefill none --ctx 0 --budget 20s --no-charts -o written
fi
