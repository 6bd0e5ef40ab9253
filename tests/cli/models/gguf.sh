#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench gguf: what it prints, what it writes, and how it refuses.
. "$SRC/tests/cli/lib.sh"
model=$SRC/tests/data/models/stories260K-f32.gguf

"$BENCH" gguf "$model" >all
grep -q 'GGUF version 3' all
grep -q 'read per token .*(1040384 bytes)' all
grep -qF 'tokenizer.ggml.tokens                    512 x string: "<unk>", "<s>", "</s>"' all
grep -q 'llama.attention.layer_norm_rms_epsilon   1e-05' all
grep -q 'token_embd.weight  *f32  *64 x 512  *131072' all
"$BENCH" gguf "$model" --metadata >part
grep -q '^metadata' part && ! grep -q '^tensors' part
grep -qx "chat template: none" part || fail "a model without a chat template: $(tail -3 part)"
"$BENCH" gguf "$model" --tensors >part
! grep -q '^metadata' part && grep -q '^tensors' part
"$BENCH" gguf --help | grep -q '^usage: bench gguf FILE'

"$BENCH" gguf "$model" --json >json
if command -v python3 >/dev/null; then
    python3 - json <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
assert j["version"] == 3 and j["architecture"] == "llama" and j["n_tensors"] == 47
assert j["bytes_per_token"] == 1040384 and j["tied_output"] is True
assert len(j["tensors"]) == 47 and j["tensors"][0]["shape"] == [64, 512]
assert j["metadata"]["tokenizer.ggml.tokens"]["n"] == 512
assert j["types"] == [{"type": "f32", "n_tensors": 47, "n_weights": 260032, "bytes": 1040128}]
PY
fi

# An architecture of nobody's: the nearest, and what differs, within 80 columns.
if command -v python3 >/dev/null; then
    python3 - "$SRC/tests/data/models/llama.gguf" other.gguf <<'PY'
import sys
d = open(sys.argv[1], "rb").read()
for old, new in (b"llama", b"other"), (b"attn_q.weight", b"attn_x.weight"), \
        (b"head_count_kv", b"head_count_xy"):
    assert old in d
    d = d.replace(old, new)
open(sys.argv[2], "wb").write(d)
PY
    "$BENCH" gguf other.gguf >out
    grep -q 'The architecture is unknown here. Nearest is ' out || fail "no nearest: $(tail -9 out)"
    grep -A1 'tensors that it does not know' out | grep -qF 'blk.#.attn_x.weight' || fail "unknown tensors"
    grep -A1 'tensors that it needs and this file lacks' out | grep -qF 'blk.#.attn_q.weight' ||
        fail "missing tensors"
    grep -A1 'metadata that it does not read' out | grep -q 'attention.head_count_xy' || fail "unread keys"
    ! sed -n '/architecture is unknown/,$p' out | grep -q '.\{81\}' || fail "lines of more than 80 columns"
    "$BENCH" gguf other.gguf --json | python3 -c 'import json, sys
n = json.load(sys.stdin)["nearest"]
assert n["unknown"] == ["blk.#.attn_x.weight"] and n["missing"] == ["blk.#.attn_q.weight"], n' ||
        fail "nearest in JSON"
    refused 3 'architecture "other" is not supported; nearest is ' logits -m other.gguf --tokens 1 -o x
    # A known one with tensors that it does not know.
    sed 's/blk.1.attn_k.weight/blk.1.attn_y.weight/; s/blk.1.attn_v.weight/blk.1.attn_z.weight/' \
        "$SRC/tests/data/models/llama.gguf" >more.gguf
    refused 2 'blk.1.attn_k.weight is missing' logits -m more.gguf --tokens 1 -o x
    python3 - "$SRC/tests/data/models/llama.gguf" fewer.gguf <<'PY'
import struct, sys
d = open(sys.argv[1], "rb").read()
at = d.index(b"llama.block_count") + len("llama.block_count") + 4
assert struct.unpack_from("<I", d, at) == (2,)
open(sys.argv[2], "wb").write(d[:at] + struct.pack("<I", 1) + d[at + 4:])
PY
    refused 3 'tensors blk.1.attn_k.weight, blk.1.attn_norm.weight, ' logits -m fewer.gguf --tokens 1 -o x
    refused 3 ' others are no part of the llama architecture' logits -m fewer.gguf --tokens 1 -o x
fi

# A float32 tensor comes out as it lies in the file.
"$BENCH" gguf "$model" --tensor output_norm.weight -o norm.f32
[ "$(stat -c %s norm.f32)" = 256 ] || fail "norm.f32 has the wrong size"
"$BENCH" gguf "$model" --tensor output_norm.weight -o - | cmp - norm.f32
offset=$(grep -A6 '"output_norm.weight"' json | sed -n 's/.*"offset": \([0-9]*\).*/\1/p')
tail -c +$((offset + 1)) "$model" | head -c 256 | cmp - norm.f32

refused 2 '--rmse accepts no other option' gguf "$model" --rmse "$model" --json
refused 2 'No such file' gguf "$model" --rmse missing.gguf
refused 2 'has another shape' gguf "$model" --rmse "$SRC/tests/data/models/llama.gguf"
"$BENCH" gguf "$model" --rmse "$model" | grep -q '^f32  *47 tensors .* as it was$'
refused 2 'name one GGUF file' gguf
refused 2 'name one GGUF file' gguf "$model" "$model"
refused 2 '--tensor needs -o' gguf "$model" --tensor output_norm.weight
refused 2 '-o needs --tensor' gguf "$model" -o x
refused 2 "did you mean 'output_norm.weight'" gguf "$model" --tensor output_norn.weight -o x
refused 2 'No such file' gguf missing.gguf
refused 2 'is a directory' gguf "$WORK"
refused 2 'not a regular file' gguf /dev/null
mkfifo pipe
refused 2 'not a regular file' gguf pipe
: >empty
refused 2 'is empty' gguf empty
refused 2 'cannot be written' gguf "$model" --tensor output_norm.weight -o "$WORK/no/such/folder"
cp "$model" copy.gguf
refused 2 'would replace' gguf copy.gguf --tensor output_norm.weight -o ./copy.gguf
cmp "$model" copy.gguf
if [ -c /dev/full ]; then
    refused 2 'No space left' gguf "$model" --tensor token_embd.weight -o /dev/full
fi
[ ! -e x ] || fail "a refused command left a file"

# A synthetic model is made, as wherever a model is asked for.
export SLMBENCH_CACHE=$WORK/cache
"$BENCH" gguf nano:Q4_0 >out 2>err || fail "nano:Q4_0: $(cat err)"
grep -q "q4_0" out || fail "nano:Q4_0: $(cat out)"
refused 2 "there are: F32, F16" gguf nano:Q9_9
grep -q 'TQ2_0, MXFP4, NVFP4, Q1_0, Q2_0$' err || fail "the list is cut: $(cat err)"
refused 2 'IQ4_XS, TQ1_0, TQ2_0, MXFP4' gguf nano
grep -q "MXFP4" err || fail "the list of quantisations is cut: $(cat err)"
