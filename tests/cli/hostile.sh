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
example=$SRC/results/examples/granite-rapids-2vcpu
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
        [ -n "${SANITIZE:-}" ] || ulimit -v 4000000 # whose shadow is of terabytes
        timeout 30 "$@" >out 2>err </dev/null
    ) || code=$?
    [ $code = 2 ] || fail "'$*' ended with $code: $(head -c 500 err)"
    [ "$(wc -l <err)" = 1 ] || fail "'$*': not one line: $(head -c 500 err)"
    grep -q "is a pipe or a device; copy it to a regular file" err || fail "'$*' says: $(cat err)"
}
for kind in pipe zero; do
    is_no_file "$BENCH" sweep -c ./$kind.yaml -m "$model" --dry-run --no-probe --mem none
    is_no_file "$RESEARCH" gates --trace $kind.txt -n 10
    timeout 60 "$BENCH" probe --passes 1 --bytes 1M -t 1 --disk $kind.txt >out 2>err || fail "probe of a $kind: $? $(cat err)"
    grep -q "not measured: $kind.txt is a pipe or a device" out || fail "probe of a $kind: $(cat out)"
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

# ---- names of files and folders, and texts of models, control neither a terminal nor a
# CI system, wherever they are printed
bad=$'::error::p\e]0;t\a\xc2\x9bm\xe2\x80\xae\n::add-mask::x ##[group]y'
mkdir names
cd names
cp "$model" "$bad.gguf"
cp -r "$example" "$bad"
chmod -R u+w "$bad"
yes 'Once upon a time there was a model.' | head -n 60 >"$bad.txt"

# is_harmless CODE COMMAND...: ends so, and what it prints does no harm
is_harmless() {
    local want=$1 code=0
    shift
    timeout 100 "$@" >out 2>err </dev/null || code=$?
    [ $code = "$want" ] || fail "'$*' ended with $code: $(cat err)"
    if LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae|^[ \t]*::|##\[' out err; then
        fail "'$*' printed what a name says: $(cat -v out err)"
    fi
}
is_harmless 0 "$BENCH" gguf "$bad.gguf"
is_harmless 0 "$BENCH" gguf "$bad.gguf" --json
is_harmless 0 "$BENCH" plan -m "$bad.gguf"
is_harmless 0 "$BENCH" quantize "$bad.gguf" "$bad.q8.gguf" Q8_0
is_harmless 0 "$BENCH" synth nano Q4_0 -o "$bad.nano.gguf"
is_harmless 0 "$BENCH" imatrix -m "$bad.gguf" --text "$bad.txt" -o "$bad.im" --ctx 64 --chunks 2
is_harmless 0 "$BENCH" quality -m "$bad.gguf:Q4_0" --reference "$bad.gguf" --text "$bad.txt" --ctx 64 --chunks 2 \
    --cache-dir "$bad.cache" -o "$bad.quality"
is_harmless 0 "$BENCH" quality -m "$bad.gguf:Q4_0" --reference "$bad.gguf" --text "$bad.txt" --ctx 64 --chunks 2 \
    --cache-dir "$bad.cache" -o "$bad.quality" --json
is_harmless 0 "$BENCH" choose -m "$bad.gguf" --calibration "$bad.txt" --types q8_0,q4_0 --groups 8 --chunks 2 \
    --sense-chunks 1 --mixes 1 --max-file 1M --no-probe --launches 1 --budget 0.05 -t 1 -o "$bad.choice"
is_harmless 0 "$BENCH" decode -m "$bad.gguf" -t 1 -n 2 --budget 0.05
is_harmless 0 "$BENCH" decode -m "$bad.gguf" -t 1 -n 1 --budget 0.05 --speculate "$bad.txt"
is_harmless 0 "$BENCH" decode -m "$bad.gguf" -t 1 -n 2 --budget 0.05 --json
is_harmless 0 "$BENCH" sweep -m "$bad.gguf" --threads 1 --ctx 0 --prefill none -n 2 --budget 0.05 --mem none \
    --no-probe --no-charts --repeats 0 -o "$bad.sweep"
is_harmless 0 "$BENCH" recommend "$bad.sweep"
is_harmless 0 "$BENCH" history add "$bad.db" "$bad"
is_harmless 2 "$BENCH" history changes "$bad" "$bad"
is_harmless 2 "$BENCH" recommend "$bad.nothing"
is_harmless 0 env PATH=/nowhere "$BENCH" plot "$bad"
is_harmless 2 "$BENCH" "$bad"
is_harmless 2 "$BENCH" generate -m "$bad.nothing" -p a
is_harmless 2 "$RESEARCH" "$bad"
is_harmless 2 "$RESEARCH" gates --trace "$bad.nothing" -n 10
is_harmless 0 "$RESEARCH" record-trace "$bad.trace" -m "$bad.gguf" -t 1 -n 100
is_harmless 0 "$RESEARCH" gates --trace "$bad.trace" -n 10

# The command of a row is harmless and names the same file.
again=$("$BENCH" recommend "$bad.sweep" | sed -n 's/^  \(bench decode .*\)/\1/p')
[[ $again == "bench decode -m $'"*"::error::p\\x1b"* ]] || fail "the command: $again"
bench() { "$BENCH" "$@"; }
eval "$again" >out 2>err || fail "the command of a row does not run: $(cat err)"

# Cells of a table, in columns of texts and in those of a closed set, which a newer
# version may have more words of.
for column in model placement kv_type residency; do
    mkdir "$column"
    awk -F, -v OFS=, -v column="$column" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i }
        NR > 1 { $at = "\033[2J" } 1' "$example/sweep.csv" >"$column/sweep.csv"
    is_harmless 0 "$BENCH" recommend "$column"
    grep -qF '\x1b[2J' out || fail "the cell of $column is not shown: $(cat out)"
done

# Tensors and keys of a model.
if command -v python3 >/dev/null; then
    python3 - "$model" named.gguf <<'END'
import sys
old, new = b"blk.0.attn_norm.weight", b"::\x1b\xc2\x9b\n::##[x"
data = open(sys.argv[1], "rb").read()
assert data.count(old) == 1
new = new.ljust(len(old), b"y")
key, bad_key = b"general.name", b"::add-mask::"
assert data.count(key) == 1
open(sys.argv[2], "wb").write(data.replace(old, new).replace(key, bad_key))
END
    is_harmless 0 "$BENCH" gguf named.gguf --tensors
    is_harmless 0 "$BENCH" gguf named.gguf --json --tensors
    is_harmless 0 "$BENCH" quantize named.gguf Q8_0 --dry-run
    is_harmless 2 "$BENCH" logits -m named.gguf --tokens 1 -o x
fi
cd ..
