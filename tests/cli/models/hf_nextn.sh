#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Folders with a layer that predicts further tokens: it is found under its folder's names,
# is the one that a GGUF file has, and drafts.
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || exit 0
shared=${SLM_SHARED:-$SRC/../shared}
support=$SRC/tests/support/models

# zoo NAME: the file's path, or nothing
zoo() {
    for at in "$SRC/tests/data/models/zoo" "$shared/golden/models/zoo"; do
        [ ! -e "$at/$1.gguf" ] || { echo "$at/$1.gguf" && return; }
    done
}
# key FOLDER KEY: a metadata value of its architecture, or nothing
key() { "$BENCH" gguf "$1" --json | python3 -c 'import json, sys
m = json.load(sys.stdin)["metadata"]
print(m.get(m["general.architecture"] + "." + sys.argv[1], ""))' "$2"; }
# drafts MODEL: the text that it continues with drafts of its own layer, and without
drafts() {
    "$BENCH" generate -m "$1" -p "What is the" -n 30 >plain.txt 2>err || fail "$1: $(cat err)"
    "$BENCH" generate -m "$1" -p "What is the" -n 30 --speculate mtp >text.txt 2>err || fail "$1: $(cat err)"
    cmp plain.txt text.txt || fail "$1: mtp makes another text"
    grep -q '^speculative decoding: ' err || fail "$1: $(cat err)"
}
# tensors CODE: Python with layer(Gguf(FILE), N), the tensors of a layer as {name: (shape, values)}
tensors() { python3 - "$@" 2>py.err <<PY || fail "$*: $(tail -n 1 py.err)"
import array, os, sys
sys.path.insert(0, "$support")
from make_hf_folder import Gguf

def layer(file, n):
    at = "blk.%d." % int(n)
    return {k[len(at):]: v for k, v in file.tensors.items() if k.startswith(at)}

exec(sys.argv[1], globals())
PY
}
# read_by MODEL LAYER FOLDER: what it has become, under GGUF's names
read_by() {
    [ "$(key "$1" block_count)/$(key "$1" nextn_predict_layers)" = $(($2 + 1))/1 ] ||
        fail "$1: $(key "$1" block_count) layers, $(key "$1" nextn_predict_layers) of them further ones"
}

# ---- files that have such a layer, as folders: every tensor of it, and its drafts -------
for m in qwen35-mtp glm4moe; do
    file=$(zoo $m)
    [ -n "$file" ] || continue
    python3 "$support/make_hf_folder.py" "$file" $m
    python3 "$support/make_tokenizer_json.py" "$file" $m/tokenizer.json
    last=$(($(key "$file" block_count) - 1))
    read_by $m $last
    "$BENCH" quantize $m $m.gguf F32 >out 2>err || fail "$m: $(cat err)"
    # norms less 1 are rounded
    tensors "a, b = layer(Gguf('$file'), $last), layer(Gguf('$m.gguf'), $last)
assert sorted(a) == sorted(b), sorted(b)
for k, (shape, v) in a.items():
    assert b[k][0] == shape, k
    assert max(abs(x - y) for x, y in zip(v, b[k][1])) <= 2e-7, k"
    drafts $m
    mv text.txt text.folder
    drafts $m.gguf
    cmp text.txt text.folder || fail "$m: the converted file has another text"
    rm -rf $m $m.gguf
done

# ---- folders that get one under the names of their kind ----------------------------------
python3 "$support/make_qwen35_folder.py" qwen35 1 exact
python3 "$support/make_qwen35_folder.py" qwen35moe 1 exact --experts
n=0
for m in qwen35 qwen35moe bailingmoe2 qwen3next deepseek2-v3 deepseek2-lite; do
    if [ ! -e $m ]; then
        file=$(zoo $m)
        [ -n "$file" ] || continue
        python3 "$support/make_hf_folder.py" "$file" $m
        python3 "$support/make_tokenizer_json.py" "$file" $m/tokenizer.json
    fi
    [ -z "$(key $m nextn_predict_layers)" ] || fail "$m: a layer that is not there"
    "$BENCH" logits -m $m --tokens 1,2,3,4,5 -o logits.out >out 2>err || fail "$m: $(cat err)"
    python3 "$support/add_nextn.py" $m want.$m >layers.txt 2>err || fail "$m: $(cat err)"
    read -r from to <layers.txt
    read_by $m "$to"
    "$BENCH" quantize $m $m.gguf F32 >out 2>err || fail "$m: $(cat err)"
    tensors "g = Gguf('$m.gguf')
a, b = layer(g, $from), layer(g, $to)
joins = sorted(os.listdir('want.$m'))
for name in joins:
    want = array.array('f', open('want.$m/' + name, 'rb').read())
    assert g.tensors[name][1] == want, name
assert len(b) == len(a) + len(joins), sorted(b)
for k, v in a.items():
    assert b[k] == v, k"
    "$BENCH" logits -m $m --tokens 1,2,3,4,5 -o a.out >out 2>err || fail "$m: $(cat err)"
    cmp a.out logits.out || fail "$m: the layer takes part in what the model computes"
    [ ! -e $m/tokenizer.json ] || drafts $m
    n=$((n + 1))
done
[ $n -ge 3 ] || fail "only $n folders"

# ---- what is not understood -----------------------------------------------------------
reword() { python3 - "$@" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
from add_nextn import read_file, write_file
t = read_file("bailingmoe2/model.safetensors")
exec(sys.argv[2])
write_file("bailingmoe2/model.safetensors", sorted(t.items()), "F32")
PY
}
reword "$support" 't["model.layers.90.enorm.weight"] = t["model.layers.3.enorm.weight"]'
refused 2 "behind which at most 16 predict further tokens; the tensor 'model.layers.90.enorm.weight'" gguf bailingmoe2
reword "$support" 'del t["model.layers.90.enorm.weight"], t["model.layers.3.enorm.weight"]'
refused 2 "blk.3.nextn.enorm.weight is missing" generate -m bailingmoe2 -p x --speculate mtp
reword "$support" 't["model.layers.3.fnorm.weight"] = t["model.layers.3.hnorm.weight"]'
refused 3 "'model.layers.3.fnorm.weight' is no part of a bailing_moe_v2 model as known here" gguf bailingmoe2
rm -rf ./*
