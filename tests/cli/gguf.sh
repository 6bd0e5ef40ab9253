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
