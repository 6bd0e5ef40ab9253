#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Damaged GGUF files end in one sentence and exit code 2, in every command that
# opens one.
. "$SRC/tests/cli/lib.sh"
model=$SRC/tests/data/models/stories260K-f32.gguf
size=$(stat -c %s "$model")

# is_damaged WHAT COMMAND...: refused in time, and the file is named
is_damaged() {
    local what=$1 rc=0
    shift
    timeout 20 "$BENCH" "$@" >out 2>err || rc=$?
    [ "$rc" = 2 ] || fail "$what: exit code $rc: $(cat err)"
    [ "$(wc -l <err)" = 1 ] || fail "$what: not one line: $(cat err)"
    grep -q '^bench: .*damaged\.gguf' err || fail "$what: the file is not named: $(cat err)"
}

# cut N: the first N bytes
cut_at() { head -c "$1" "$model" >damaged.gguf; }

# set_bytes OFFSET BYTES (as for printf)
set_bytes() {
    cp "$model" damaged.gguf
    printf "$2" | dd of=damaged.gguf bs=1 seek="$1" conv=notrunc status=none
}

for n in 1 3 4 7 8 15 23 24 31 60 100 1000 5000 9000 13000 14000 \
    $((size / 4)) $((size / 2)) $((size - 4096)) $((size - 256)); do
    cut_at "$n"
    is_damaged "cut at $n" gguf damaged.gguf
done
cut_at 1000
is_damaged 'tokenize' tokenize -m damaged.gguf text
is_damaged '--tensor' gguf damaged.gguf --tensor output_norm.weight -o x
[ ! -e x ] || fail "a damaged file left an output"

set_bytes 0 'X'
is_damaged 'magic' gguf damaged.gguf
set_bytes 4 '\001'
is_damaged 'version 1' gguf damaged.gguf
set_bytes 4 '\000\000\000\003'
is_damaged 'big-endian' gguf damaged.gguf
set_bytes 8 '\377\377\377\377\377\377\377\377'
is_damaged 'number of tensors' gguf damaged.gguf
set_bytes 16 '\377\377\377\377\377\377\377\177'
is_damaged 'number of keys' gguf damaged.gguf
set_bytes 24 '\377\377\377\377\377\377\377\377'
is_damaged 'length of the first key' gguf damaged.gguf
set_bytes 52 '\143'
is_damaged 'type of the first value' gguf damaged.gguf

# Any single flipped bit: no crash, no hang; either a good description or one
# sentence. The first tensor's description lies near byte 12000.
for ((at = 0; at < 14000; at += 211)); do
    byte=$(od -An -tu1 -j "$at" -N1 "$model")
    set_bytes "$at" "\\$(printf %03o $((byte ^ (1 << (at % 8)))))"
    rc=0
    timeout 20 "$BENCH" gguf damaged.gguf >out 2>err || rc=$?
    case $rc in
    0) [ ! -s err ] || fail "bit at $at: a complaint, but exit code 0" ;;
    2) [ "$(wc -l <err)" = 1 ] || fail "bit at $at: not one line: $(cat err)" ;;
    *) fail "bit at $at: exit code $rc: $(cat err)" ;;
    esac
done

# ---- files that may be pipes that nobody writes to, or links to devices without an end:
# refused in one sentence, at once
model=$SRC/tests/data/models/stories260K-f32.gguf
example=$SRC/results/examples/epyc-zen4-2vcpu
mkfifo pipe.yaml pipe.csv pipe.json pipe.txt
ln -s /dev/zero zero.yaml
ln -s /dev/zero zero.csv
ln -s /dev/zero zero.json
ln -s /dev/zero zero.txt

# is_no_file COMMAND...: refused within a time that is far above any machine's, without
# the memory that reading would take
is_no_file() {
    local code=0
    (
        ulimit -v 4000000
        timeout 30 "$@" >out 2>err </dev/null
    ) || code=$?
    [ $code = 2 ] || fail "'$*' ended with $code: $(head -c 500 err)"
    [ "$(wc -l <err)" = 1 ] || fail "'$*': not one line: $(head -c 500 err)"
    grep -q "is a pipe or a device; copy it to a regular file" err || fail "'$*' says: $(cat err)"
}
for kind in pipe zero; do
    is_no_file "$BENCH" sweep -c ./$kind.yaml -m "$model" --dry-run --no-probe --mem none
    is_no_file "$BENCH" generate -m "$model" -p a -n 1 --tuned $kind.yaml
    is_no_file "$RESEARCH" gates --trace $kind.txt -n 10
    is_no_file "$BENCH" synth ./$kind.yaml Q4_0 -o made.gguf
    rm -rf d g h
    mkdir d g
    ln -s "$WORK/$kind.csv" d/sweep.csv
    is_no_file "$BENCH" recommend d
    ln -s "$WORK/$kind.json" g/gate.json
    is_no_file "$BENCH" gate --report g
    cp -r "$example" h
    chmod -R u+w h
    rm -f h/machine.json
    ln -s "$WORK/$kind.json" h/machine.json
    is_no_file "$BENCH" history changes h/sweep.csv
    timeout 30 "$BENCH" recommend h >out 2>err || fail "recommend with $kind: $? $(cat err)"
done

# A text may come through a pipe, but not without an end.
echo 'Once upon a time' | "$BENCH" tokenize -m "$model" --file /dev/stdin >one || fail "a pipe was refused"
echo 'Once upon a time' >text
"$BENCH" tokenize -m "$model" --file text >two
cmp one two || fail "a text through a pipe is another one"
