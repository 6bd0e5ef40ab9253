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
