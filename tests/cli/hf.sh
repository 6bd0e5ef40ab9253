#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Hugging Face folders: the same logits as the GGUF file they were made from, whole or
# sharded, in every type; quantised at load as a GGUF file is; refusals.
. "$SRC/tests/cli/lib.sh"
shared=${SLM_SHARED:-$SRC/../shared}
tokens=1,71,294,35,133,63,256,233,244,197,110,51,252,17,202,224,314,4,231,139
more=120,305,55,165,18,14,16,280,7,198,113,219,17,273,116,227,256,286,122,179

folder() { python3 "$SRC/tests/make_hf_folder.py" "$@"; }
# Logits of the 40 tokens of the reference data.
logits() {
    local out=$1
    shift
    "$BENCH" logits --tokens $tokens,$more -o "$out" "$@" >/dev/null 2>err ||
        fail "logits $*: $(cat err)"
}
# near BOUND A B: the error of A against B, as a share of B's power
near() {
    python3 - "$@" <<'PY' || fail "$*"
import array, sys
a, b = array.array("f"), array.array("f")
a.frombytes(open(sys.argv[2], "rb").read())
b.frombytes(open(sys.argv[3], "rb").read())
error = sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b)
print("%s: NMSE %.3g" % (sys.argv[2], error))
sys.exit(len(a) != len(b) or not error <= float(sys.argv[1]))
PY
}

# ---- float weights: the exact mathematics of the model ---------------------------
for m in llama llama-mqa llama-moe; do
    folder "$SRC/tests/data/models/$m.gguf" $m.f32
    logits $m.out -m $m.f32
    near 1e-6 $m.out "$SRC/tests/data/models/$m.exact.f32"
done

# ---- shards, halves, threads ----------------------------------------------------
folder "$SRC/tests/data/models/llama-moe.gguf" moe.f16 --type F16
folder "$SRC/tests/data/models/llama-moe.gguf" moe.sharded --type F16 --shards 5
logits moe.f16.out -m moe.f16 -t 1
logits moe.sharded.out -m moe.sharded/ -t 3
cmp moe.f16.out moe.sharded.out || fail "shards make another model"
near 1e-5 moe.f16.out "$SRC/tests/data/models/llama-moe.exact.f32"
folder "$SRC/tests/data/models/llama.gguf" llama.bf16 --type BF16
logits bf16.out -m llama.bf16
near 1e-3 bf16.out "$SRC/tests/data/models/llama.exact.f32"

# ---- quantised at load: both spellings, and close to what it came from -----------
logits q8.out -m llama.f32 --quant q8_0
logits q8_again.out -m llama.f32:Q8_0
cmp q8.out q8_again.out || fail "--quant and :QUANT differ"
near 5e-4 q8.out "$SRC/tests/data/models/llama.exact.f32"
logits q4.out -m moe.sharded:Q4_0
"$BENCH" gguf llama.f32 >gguf.txt
grep -q 'architecture         llama' gguf.txt || fail "gguf: $(cat gguf.txt)"

# ---- a folder is converted: the file is the model that the folder is ---------------
"$BENCH" quantize moe.sharded moe.gguf F16 >out 2>err || fail "quantize: $(cat err)"
logits moe.file.out -m moe.gguf --weights packed
cmp moe.f16.out moe.file.out || fail "the converted file is another model"

# ---- a folder of F16 weights is the F16 file ------------------------------------
shakespeare=$shared/models/shakespeare3M-f16.gguf
if [ -e "$shakespeare" ]; then
    folder "$shakespeare" sh --type F16 --shards 2
    "$BENCH" logits -m "$shakespeare" --weights packed --tokens 1,5,300,77,12 -o a.out 2>err
    "$BENCH" logits -m sh --tokens 1,5,300,77,12 -o b.out 2>err
    cmp a.out b.out || fail "the folder and the file differ"
    for q in Q4_K_M IQ4_XS Q2_K; do
        "$BENCH" logits -m "$shakespeare:$q" --tokens 1,5,300,77,12 -o a.out 2>err
        "$BENCH" logits -m sh --quant $q -t 3 --tokens 1,5,300,77,12 -o b.out 2>err
        cmp a.out b.out || fail "$q of the folder and of the file differ"
    done
else
    echo "no $shakespeare: set SLM_SHARED to where it lies"
fi

# ---- published vocabularies as tokenizer.json: the ids of the GGUF file -------------
for v in gpt-2 llama-spm; do
    file=$shared/golden/tokenizers/ggml-vocab-$v.gguf
    [ -e "$file" ] || { echo "no $file: set SLM_SHARED"; break; }
    python3 "$SRC/tests/make_tokenizer_json.py" "$file" llama.f32/tokenizer.json
    "$BENCH" tokenize -m "$file" -f "$file.inp" >want.txt
    "$BENCH" tokenize -m llama.f32 -f "$file.inp" >have.txt
    cmp want.txt have.txt || fail "$v: other ids"
done
rm -f llama.f32/tokenizer.json

# ---- a folder with its vocabulary tells the story that the file tells ---------------
stories=$SRC/tests/data/models/stories260K-f32.gguf
folder "$stories" stories
python3 "$SRC/tests/make_tokenizer_json.py" "$stories" stories/tokenizer.json
echo '{"bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": true}' \
    >stories/tokenizer_config.json
"$BENCH" generate -m "$stories" --weights packed -n 60 -p 'The big' >want.txt 2>err
"$BENCH" generate -m stories -n 60 -p 'The big' >have.txt 2>err
cmp want.txt have.txt || fail "another story: $(cat have.txt)"

# ---- every architecture that runs as a GGUF file runs as a folder -----------------
for file in "$shared"/golden/models/arch/*.gguf; do
    name=$(basename "$file" .gguf)
    [ -e "$file" ] || { echo "no $file: set SLM_SHARED"; break; }
    "$BENCH" logits -m "$file" --tokens 1,2 -o known.out >/dev/null 2>err ||
        { echo "$name: not supported, left out"; continue; }
    folder "$file" "arch.$name"
    logits "$name.out" -m "arch.$name"
    near 1e-6 "$name.out" "${file%.gguf}.exact.f32"
done

# ---- refusals ----------------------------------------------------------------------
mkdir empty
refused 2 'without a config.json' generate -m empty
cp -r moe.sharded broken
rm broken/model-00002-of-00005.safetensors
refused 2 'model-00002-of-00005.safetensors' generate -m broken
rm -r broken && cp -r llama.f32 broken
sed -i 's/"model_type": "llama"/"model_type": "bert"/' broken/config.json
refused 3 "model_type 'bert' is not supported; supported are: llama" generate -m broken
cp llama.f32/config.json broken/
head -c 1000 llama.f32/model.safetensors >broken/model.safetensors
refused 2 'not whole' generate -m broken
sed -i 's/"hidden_act": "silu"/"hidden_act": "relu"/' broken/config.json
refused 3 "only 'silu' is supported" generate -m broken
cp llama.f32/config.json broken/ && rm broken/model.safetensors
touch broken/pytorch_model.bin
refused 2 'safetensors' generate -m broken
refused 2 'cannot be mapped' logits -m llama.f32 --weights mmap --tokens 1 -o x
refused 2 'is q8_0 already' logits -m "$SRC/tests/data/models/llama.gguf:Q4_0" --tokens 1 -o x
rm -rf ./*
