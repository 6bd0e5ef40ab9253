#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Files that come with a folder may be pipes that nobody writes to, or links to devices
# without an end: they are refused in one sentence, at once, and a text that a user names
# has a most number of bytes.
. "$SRC/tests/cli/lib.sh"
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
