#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# No command writes onto what it reads, whatever the two names are: the input is found by
# device and inode, in all parts of a model and under the name that an output has until it
# is complete.
. "$SRC/tests/cli/lib.sh"
stories=$SRC/tests/data/models/stories260K-f32.gguf
example=$SRC/results/examples/epyc-zen4-2vcpu
sums=$WORK.sums
state() { find . -type f ! -name out ! -name err -exec sha256sum {} + | sort; }
remember() { state >"$sums"; }

cp "$stories" m.gguf
chmod u+w m.gguf
ln -s m.gguf link.gguf
ln m.gguf hard.gguf
yes 'Once upon a time there was a model.' | head -n 200 >text.txt
cp m.gguf x.gguf.part
mkdir r
cp "$example/sweep.csv" r/history.csv
chmod -R u+w r
"$BENCH" history add db.sqlite "$example" >out 2>err || fail "history add: $(cat err)"
remember

# spared COMMAND...: refused in one sentence, and every file is as it was
spared() {
    refused 2 "would replace" "$@"
    state | cmp -s "$sums" - || fail "'$*' changed a file: $(state | diff "$sums" -)"
}

for out in m.gguf ./m.gguf link.gguf hard.gguf; do
    spared logits -m m.gguf --tokens 1,2 -o "$out"
    spared imatrix -m m.gguf --text text.txt -o "$out"
    spared gguf m.gguf --tensor output_norm.weight -o "$out"
    spared tune -m m.gguf -o "$out" --budget 1
    spared quantize m.gguf "$out" Q8_0
done
spared imatrix -m m.gguf --text text.txt -o text.txt
spared quantize x.gguf.part x.gguf Q8_0
spared history changes db.sqlite --json db.sqlite --no-charts
spared history changes db.sqlite --markdown db.sqlite --no-charts
spared history changes r/history.csv -o r
spared history compare db.sqlite --rows r/history.csv --json r/history.csv
spared gate --b "$BENCH" -m m.gguf --json m.gguf --budget 10s
spared gate -m m.gguf --calibrate --json m.gguf --budget 10s
code=0
"$RESEARCH" record-trace m.gguf -m m.gguf -t 1 >out 2>err || code=$?
[ $code = 2 ] && grep -q "would replace" err || fail "record-trace onto its model: $code $(cat err)"
cmp -s m.gguf "$stories" || fail "record-trace destroyed its model"

# Every part of a split model, and every file of a folder.
if command -v python3 >/dev/null; then
    python3 "$SRC/tests/support/split_gguf.py" "$SRC/tests/data/models/llama.gguf" sh 3
    python3 "$SRC/tests/support/make_hf_folder.py" "$SRC/tests/data/models/llama.gguf" folder --type F16
    remember
    for part in sh-*.gguf; do
        spared logits -m sh-00001-of-00003.gguf --tokens 1 -o "$part"
        spared quantize sh-00001-of-00003.gguf "$part" Q8_0
    done
    for file in folder/*; do
        spared logits -m folder --tokens 1 -o "$file"
        spared quantize folder "$file" Q8_0
    done
fi

# And what is no input is written.
"$BENCH" logits -m m.gguf --tokens 1 -o other >out 2>err || fail "$(cat err)"
[ -s other ] || fail "nothing was written"
rm -f "$sums"
