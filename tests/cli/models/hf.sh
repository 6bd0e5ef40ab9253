#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Hugging Face folders: the same logits as the GGUF file they were made from, whole or
# sharded, in every type; quantised at load as a GGUF file is; refusals.
. "$SRC/tests/cli/lib.sh"
shared=${SLM_SHARED:-$SRC/../shared}
tokens=1,71,294,35,133,63,256,233,244,197,110,51,252,17,202,224,314,4,231,139
more=120,305,55,165,18,14,16,280,7,198,113,219,17,273,116,227,256,286,122,179

# job NAME ARGUMENTS...: a function of hf_jobs.py, all in one process; prints what that prints
mkfifo jobs replies
python3 "$SRC/tests/support/models/hf_jobs.py" <jobs >replies &
exec 8>jobs 9<replies
job() {
    local reply=
    printf '%s\0' $# "$@" >&8
    IFS= read -r -d '' reply <&9 || fail "$*: Python ended"
    [ "${reply:0:1}" = 0 ] || { echo "${reply:1}" >&2; return 1; }
    printf %s "${reply:1}"
}
folder() { job folder "$@"; }
# Logits of the 40 tokens of the reference data.
logits() {
    local out=$1
    shift
    "$BENCH" logits --tokens $tokens,$more -o "$out" "$@" >/dev/null 2>err ||
        fail "logits $*: $(cat err)"
}
# near BOUND A B: the error of A against B, as a share of B's power
near() { job near "$@" || fail "$*"; }
# reword FOLDER CODE: its config c changed by a line of Python
reword() { job reword "$@"; }
# key FOLDER KEY: a metadata value, or nothing
key() { job key "$BENCH" "$@"; }

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
grep -q 'no vocabulary, so other engines will refuse it' err || fail "quantize: $(cat err)"
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
    job tokenizer "$file" llama.f32/tokenizer.json
    "$BENCH" tokenize -m "$file" -f "$file.inp" >want.txt
    "$BENCH" tokenize -m llama.f32 -f "$file.inp" >have.txt
    cmp want.txt have.txt || fail "$v: other ids"
done
if [ -e llama.f32/tokenizer.json ]; then # patterns that nobody has published
    folder "$SRC/tests/data/models/llama.gguf" patterns
    job tokenizer \
        "$shared/golden/tokenizers/ggml-vocab-gpt-2.gguf" patterns/tokenizer.json
    python3 - <<'PY'
import json
t = json.load(open("patterns/tokenizer.json"))
t["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "[a-z]+|[^a-z]+"}, "behavior": "Isolated",
     "invert": False},
    {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]}
json.dump(t, open("patterns/tokenizer.json", "w"))
PY
    "$BENCH" quantize patterns patterns.gguf F16 >out 2>err || fail "quantize: $(cat err)"
    grep -q 'other engines will refuse the file: its tokenizer splits' err ||
        fail "patterns without a name: $(cat err)"
fi
rm -f llama.f32/tokenizer.json

# ---- a folder with its vocabulary tells the story that the file tells ---------------
stories=$SRC/tests/data/models/stories260K-f32.gguf
folder "$stories" stories
job tokenizer "$stories" stories/tokenizer.json
echo '{"bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": true}' \
    >stories/tokenizer_config.json
"$BENCH" generate -m "$stories" --weights packed -n 60 -p 'The big' >want.txt 2>err
"$BENCH" generate -m stories -n 60 -p 'The big' >have.txt 2>err
"$BENCH" quantize stories stories.gguf F32 >out 2>err || fail "quantize: $(cat err)"
grep -q 'they do not read slmbench.tokenizer' err || fail "keys of this project: $(cat err)"
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

# The same of further families.
# Products with MXFP4 round their inputs: the bound is that of the file.
zoo=$shared/golden/models/zoo
[ -e "$zoo/architectures.csv" ] || zoo=$SRC/tests/data/models/zoo
n_folders=0 i=0
while IFS=, read -r file arch _ _ ids exact reference _; do
    # ci/test takes every fourth of many, and those that are used below
    case $file in gpt-oss* | nemotron_h_moe* | bitnet-tq2* | falcon-h1* | gpt2*) ;; *)
        [ ! -e "$shared" ] || is_full || [ $((i++ % 4)) = 0 ] || continue ;;
    esac
    folder "$zoo/$file" "zoo.$file" 2>err || { echo "$file: left out"; continue; }
    "$BENCH" logits -m "zoo.$file" --tokens "${ids// /,}" -o zoo.out >out 2>err ||
        fail "$file as a folder: $(cat err)"
    case $file in *mxfp4*) bound=$(awk "BEGIN { print 1.2 * $reference }") ;; *) bound=1e-6 ;; esac
    near $bound zoo.out "$zoo/$exact"
    n_folders=$((n_folders + 1))
done < <(tail -n +2 "$zoo/architectures.csv")
[ $n_folders -ge 3 ] || fail "only $n_folders further folders"
# MXFP4 in another order of nibbles is the same blocks.
for t in gate up down; do
    "$BENCH" gguf "$zoo/gpt-oss-mxfp4.gguf" --tensor blk.1.ffn_${t}_exps.weight -o a.out
    "$BENCH" gguf zoo.gpt-oss-mxfp4.gguf --tensor blk.1.ffn_${t}_exps.weight -o b.out
    cmp a.out b.out || fail "gpt-oss: other experts"
done
# Halves of floats with factors, with columns as rows.
for file in falcon-h1 gpt2 gpt-oss; do
    [ -e "$zoo/$file.gguf" ] || continue
    row=$(grep "^$file.gguf," "$zoo/architectures.csv" | cut -d, -f5 | tr ' ' ,)
    folder "$zoo/$file.gguf" zoo.bf16 --type BF16
    "$BENCH" logits -m zoo.bf16 --tokens "$row" -o zoo.out >out 2>err || fail "$file: $(cat err)"
    near 1e-3 zoo.out "$zoo/$file.exact.f32"
    "$BENCH" quantize zoo.bf16 zoo.bf16.gguf Q8_0 >out 2>err || fail "$file: $(cat err)"
    "$BENCH" logits -m zoo.bf16:Q8_0 --tokens "$row" -o a.out >out 2>err || fail "$file: $(cat err)"
    "$BENCH" logits -m zoo.bf16.gguf --weights packed --tokens "$row" -o b.out >out 2>err
    cmp a.out b.out || fail "$file: the converted file is another model"
    rm -rf zoo.bf16
done
mv zoo.gpt-oss-mxfp4.gguf oss
mv zoo.nemotron_h_moe.gguf nemotron
[ ! -e zoo.bitnet-tq2_0.gguf ] || mv zoo.bitnet-tq2_0.gguf bitnet
rm -rf zoo.*

# ---- Qwen 3.5, against its equations over the folder's own tensors -------------------
hybrid=1,7,30,2,44,9,9,13,26,5,0,49
for kind in "" --experts; do
    job qwen35 qwen35$kind $hybrid exact $kind
    "$BENCH" logits -m qwen35$kind --tokens $hybrid -o a.out >out 2>err || fail "$(cat err)"
    near 1e-6 a.out exact
    "$BENCH" quantize qwen35$kind qwen35.gguf F32 >out 2>err || fail "quantize: $(cat err)"
    "$BENCH" logits -m qwen35.gguf --weights packed --tokens $hybrid -o b.out >out
    cmp a.out b.out || fail "the converted file is another model"
done

# ---- LFM2 and Granite 4, against the exact logits of the GGUF files they are made of --
for m in lfm2 lfm2moe granitehybrid granitehybrid-moe; do
    zoo=$SRC/tests/data/models/zoo
    [ -e "$zoo/$m.gguf" ] || zoo=$shared/golden/models/zoo
    [ -e "$zoo/$m.gguf" ] || continue
    row=$(grep "^$m.gguf," "$zoo/architectures.csv" | cut -d, -f5 | tr ' ' ,)
    folder "$zoo/$m.gguf" $m.hf
    "$BENCH" logits -m $m.hf --tokens "$row" -o a.out >out 2>err || fail "$(cat err)"
    near 1e-6 a.out "$zoo/$m.exact.f32"
    "$BENCH" quantize $m.hf $m.gguf F32 >out 2>err || fail "quantize: $(cat err)"
    "$BENCH" logits -m $m.gguf --weights packed --tokens "$row" -o b.out >out
    cmp a.out b.out || fail "the converted file is another model"
done

# ---- the same config in the words of newer folders ----------------------------------
for m in stablelm gemma2 gemma3; do
    folder "$SRC/tests/data/models/$m.gguf" $m.f32
    logits $m.old -m $m.f32
done
reword stablelm.f32 'c["rope_parameters"] = {"rope_type": "default",
    "rope_theta": c.pop("rope_theta"), "partial_rotary_factor": c.pop("partial_rotary_factor")}'
logits a.out -m stablelm.f32
cmp a.out stablelm.old || fail "partial_rotary_factor in rope_parameters"
reword gemma3.f32 'c["rope_parameters"] = {
    "full_attention": {"rope_type": "default", "rope_theta": c.pop("rope_theta")},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
c["layer_types"] = ["sliding_attention" if (i + 1) % 6 else "full_attention"
                    for i in range(c["num_hidden_layers"])]'
logits a.out -m gemma3.f32
cmp a.out gemma3.old || fail "rope_parameters of each kind of layer"
reword gemma3.f32 'c["rope_parameters"]["sliding_attention"]["rope_theta"] = 20000.0'
[ "$(key gemma3.f32 gemma3.rope.freq_base_swa)" = 20000.0 ] || fail "the local base is lost"
reword gemma2.f32 'c["final_logit_softcapping"] = None'
[ "$(key gemma2.f32 gemma2.final_logit_softcapping)" = 0.0 ] || fail "a cap of null is one"
reword gemma2.f32 'del c["final_logit_softcapping"]'
[ "$(key gemma2.f32 gemma2.final_logit_softcapping)" = 30.0 ] || fail "the default cap is lost"

folder "$SRC/tests/data/models/phi3.gguf" phi3.f32
[ "$(key phi3.f32 phi3.attention.sliding_window)" = 32767 ] || fail "a wide window is lost"

# ---- BitNet: floats of a folder become the ternary blocks of the file -------------------
if [ -e bitnet ]; then
    "$BENCH" quantize bitnet bitnet.gguf TQ2_0 >out 2>err || fail "quantize: $(cat err)"
    for t in attn_q attn_k attn_v attn_output ffn_gate ffn_up ffn_down; do
        "$BENCH" gguf bitnet.gguf --tensor blk.0.$t.weight -o a.out
        "$BENCH" gguf "$shared/golden/models/zoo/bitnet-tq2_0.gguf" --tensor blk.0.$t.weight -o b.out
        cmp a.out b.out || fail "bitnet: another $t"
    done
    logits weights.out -m bitnet:TQ2_0 -t 1
    logits b.out -m bitnet:TQ2_0 -t 3
    cmp weights.out b.out || fail "bitnet: the threads make another model"
    reword bitnet 'c["model_type"] = "llama"'
    logits a.out -m bitnet:TQ2_0
    cmp weights.out a.out || fail "bitnet: the class of the model does not count"
    reword bitnet 'c["hidden_act"] = "relu2"'
    refused 3 "hidden_act is 'relu2'; of bitnet models only 'silu'" gguf bitnet
    reword bitnet 'c["model_type"] = "bitnet"; c["architectures"] = ["BitNetForCausalLM"]
c["quantization_config"] = {"quant_method": "bitnet"}'
    refused 3 'of bitnet models only BitnetForCausalLM (2024, SiLU) is supported' gguf bitnet
fi

# ---- YaRN switched on as model cards write it: the context grows with it -------------
model_ctx() { "$BENCH" plan -m "$1" --json 2>err | python3 -c 'import json, sys
print(json.load(sys.stdin)["model_ctx"])' || fail "plan $1: $(cat err)"; }
folder "$SRC/tests/data/models/llama.gguf" yarn
reword yarn 'c.update(max_position_embeddings=2048, rope_scaling={
    "factor": 4.0, "original_max_position_embeddings": 2048, "type": "yarn"})'
logits yarn.out -m yarn
! cmp -s yarn.out llama.out || fail "yarn changes nothing"
[ "$(model_ctx yarn)" = 8192 ] || fail "the context with yarn is $(model_ctx yarn)"
"$BENCH" quantize yarn yarn.gguf F32 >out 2>err || fail "quantize: $(cat err)"
[ "$(model_ctx yarn.gguf)" = 8192 ] || fail "the file's context is $(model_ctx yarn.gguf)"
reword yarn 'c["rope_parameters"] = {**c.pop("rope_scaling"), "rope_type": "yarn",
    "rope_theta": c.pop("rope_theta"), "attention_factor": None, "truncate": True}'
logits a.out -m yarn
cmp a.out yarn.out || fail "yarn in rope_parameters is another"
reword yarn 'c["rope_parameters"].update(mscale=0.707, mscale_all_dim=0.707)'
logits weights.out -m yarn
reword yarn 'c["rope_parameters"].update(mscale=None, mscale_all_dim=None, attention_factor=1)'
logits a.out -m yarn
cmp a.out weights.out || fail "two equal weights of the scores leave no factor"
! cmp -s a.out yarn.out || fail "attention_factor changes nothing"
reword yarn 'c["rope_parameters"].update(attention_factor=None, truncate=False)'
logits a.out -m yarn
! cmp -s a.out yarn.out || fail "truncate changes nothing"
"$BENCH" quantize yarn yarn.gguf F32 >out 2>err || fail "quantize: $(cat err)"
grep -q "other engines will compute slightly different logits" err || fail "quantize: $(cat err)"
logits weights.out -m yarn.gguf
cmp a.out weights.out || fail "truncate is lost in the file"
# The same speeds, each pair's by hand, as the factors of another kind.
reword yarn 'import math
p = c["rope_parameters"]
dim, base, ctx = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"], p["rope_theta"], 2048
ends = [dim * math.log(ctx / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (32, 1)]
slowed = [min(max((i - ends[0]) / (ends[1] - ends[0]), 0), 1) for i in range(dim // 2)]
factors = [1 / (s / 4 + 1 - s) for s in slowed]
p.clear()
p.update(rope_type="longrope", rope_theta=base, factor=4.0, original_max_position_embeddings=ctx,
         attention_factor=1 + 0.1 * math.log(4), long_factor=factors, short_factor=factors)'
logits weights.out -m yarn
near 1e-10 a.out weights.out

# ---- tokens that end a text, and chat templates, from the files beside it ------------
special() { key stories "tokenizer.$1"; }
rm stories/tokenizer_config.json
echo '{"bos_token": {"content": "<s>"}, "eos_token": "</s>"}' >stories/special_tokens_map.json
[ "$(special ggml.bos_token_id)/$(special ggml.eos_token_id)" = 1/2 ] || fail "special_tokens_map"
reword stories 'c["eos_token_id"] = [2, 300]'
[ "$(special ggml.eot_token_id)" = 300 ] || fail "a list of ends in config.json"
echo '{"eos_token_id": [2, 301, 302]}' >stories/generation_config.json
[ "$(special ggml.eot_token_id)/$(special ggml.eom_token_id)" = 301/302 ] ||
    fail "a list of ends in generation_config.json"
echo '{"chat_template": "<start_of_turn>x"}' >stories/chat_template.json
[ "$(special chat_template)" = "<start_of_turn>x" ] || fail "chat_template.json"
echo '{"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "a b", "template": "B"},
    {"name": "default", "template": "[INST] x"}, {"name": "no"}]}' >stories/tokenizer_config.json
[ "$(special chat_template)" = "[INST] x" ] && [ "$(special chat_template.tool_use)" = T ] &&
    [ "$(special chat_template.a_b)" = B ] || fail "named chat templates"
"$BENCH" gguf stories | grep -qx "chat templates by name: default, tool_use, a_b" || fail "they are not listed"
"$BENCH" quantize stories named.gguf F32 >out 2>err || fail "quantize: $(cat err)"
[ "$(key named.gguf tokenizer.chat_template.tool_use)" = T ] || fail "a file loses them"
printf '<|im_start|>x\n<|im_end|>' >stories/chat_template.jinja
[ "$(special chat_template)" = '<|im_start|>x
<|im_end|>' ] || fail "chat_template.jinja"
[ -z "$(special chat_template.tool_use)" ] || fail "tokenizer_config.json counts beside files"
mkdir stories/additional_chat_templates
printf R >stories/additional_chat_templates/rag.jinja
printf U >stories/additional_chat_templates/tool_use.jinja
printf no >stories/additional_chat_templates/rag.txt
[ "$(special chat_template.rag)$(special chat_template.tool_use)" = RU ] || fail "additional_chat_templates"
rm stories/chat_template.jinja
[ "$(special chat_template)" = "[INST] x" ] || fail "a default that is in no file"
mkfifo stories/additional_chat_templates/pipe.jinja
refused 2 "pipe.jinja" gguf stories
rm -r stories/additional_chat_templates

# ---- paths as long as the system has them ---------------------------------------------
long=$(printf 'd%.0s' {1..200})
mkdir -p "$long/$long/$long"
cp -r stories "$long/$long/$long/m"
[ "$(key "$long/$long/$long/m" tokenizer.chat_template)" = "[INST] x" ] || fail "a long path"

# ---- a cache of the Hub --------------------------------------------------------------
mkdir -p cache/models--org--tiny-llama/refs cache/models--org--tiny-llama/snapshots
cp -r llama.f32 cache/models--org--tiny-llama/snapshots/0123abcd
refused 2 'is one of those in cache/models--org--tiny-llama/snapshots' \
    gguf cache/models--org--tiny-llama
printf 0123abcd >cache/models--org--tiny-llama/refs/main
refused 2 'in it is cache/models--org--tiny-llama/snapshots/0123abcd' \
    generate -m cache/models--org--tiny-llama
[ "$(key cache/models--org--tiny-llama/snapshots/0123abcd/ general.name)" = tiny-llama ] ||
    fail "a revision is no name"
# As the Hub's library leaves it: links to files by their hash, which a measuring process
# may read behind its fence; a link to another file it may not, whoever reads.
snapshot=cache/models--org--tiny-llama/snapshots/4567
mkdir -p cache/models--org--tiny-llama/blobs $snapshot
for name in llama.f32/*; do
    blob=$(sha256sum "$name" | cut -c1-64)
    cp "$name" "cache/models--org--tiny-llama/blobs/$blob"
    ln -s "../../blobs/$blob" "$snapshot/$(basename "$name")"
done
"$BENCH" decode -m $snapshot -t 1 -n 4 --budget 0.1 >out 2>err || fail "links to blobs: $(cat out err)"
cp llama.f32/config.json elsewhere.json
ln -sf "$WORK/elsewhere.json" $snapshot/config.json
link="config.json is a link to $(realpath elsewhere.json), out of the model's folder"
refused 2 "$link" gguf $snapshot
refused 2 "$link" generate -m $snapshot -p x
refused 2 "$link" decode -m $snapshot -t 1 -n 4

# ---- refusals ----------------------------------------------------------------------
mkdir empty
refused 2 'without a config.json' generate -m empty
mkdir adapter && touch adapter/adapter_config.json
refused 2 'holds an adapter' gguf adapter
refused 2 'llama.f32 has no tokenizer.json, so it holds no vocabulary' tokenize -m llama.f32 x
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\n' >llama.f32/tokenizer.json
refused 2 'tokenizer.json is a Git LFS pointer' tokenize -m llama.f32 x
rm llama.f32/tokenizer.json
reword qwen35 'c["text_config"]["layer_types"][0] = "full_attention"'
refused 3 'layer_types[0] is not linear_attention' gguf qwen35
reword qwen35 'del c["text_config"]["layer_types"]; c["text_config"]["linear_num_key_heads"] = 4'
refused 2 '6 value heads cannot share 4 key heads' gguf qwen35
reword qwen35 'c["text_config"]["linear_num_key_heads"] = 6'
refused 2 'attn_qkv.weight has 80 rows, which 6 heads cannot share' gguf qwen35
reword qwen35--experts 'c["text_config"]["norm_topk_prob"] = False'
refused 3 'norm_topk_prob is false' gguf qwen35--experts
reword lfm2.hf 'c["layer_types"][1] = "mamba"'
refused 3 'layer_types[1] is neither attention nor conv' gguf lfm2.hf
reword lfm2.hf 'del c["layer_types"]'
refused 2 'has no layer_types' gguf lfm2.hf
reword oss 'c["quantization_config"] = {"quant_method": "gptq"}'
refused 3 'quantised already (quantization_config: gptq)' gguf oss
reword oss 'del c["quantization_config"]; c["layer_types"][1] = "sliding_attention"'
refused 3 'layer_types[1] is not full_attention' gguf oss
reword oss 'c["layer_types"][1] = "full_attention"; c["attention_bias"] = False'
refused 3 'attention_bias is false' gguf oss
reword nemotron 'c["hybrid_override_pattern"] = "MEM-"'
refused 3 'layers with and without experts' gguf nemotron
reword nemotron 'c["hybrid_override_pattern"] = "MEMX*"'
refused 3 'not made of M, -, * and E' gguf nemotron
cp -r moe.sharded broken
rm broken/model-00002-of-00005.safetensors
refused 2 'model-00002-of-00005.safetensors' generate -m broken
rm -r broken && cp -r llama.f32 broken
sed -i 's/"model_type": "llama"/"model_type": "t5"/' broken/config.json
refused 3 "model_type 't5' is not supported; supported are: llama" generate -m broken
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
exec 8>&-
wait
rm -rf ./*
