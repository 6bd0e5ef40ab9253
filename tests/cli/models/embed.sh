# SPDX-License-Identifier: MIT
# bench embed: vectors as JSON and raw, from arguments, lines and tokens; what it refuses
. "$SRC/tests/cli/lib.sh"
zoo=$SRC/tests/data/models/zoo bert=$zoo/bert-mean.gguf

# ---- every model of the index: exact to the rounding of its weights' activations
near() {
    od -An -v -t f4 -w4 "$1" >a.txt
    od -An -v -t f4 -w4 "$2" | paste - a.txt |
        awk -v bound="$3" 'NF == 2 { e += ($1 - $2) ^ 2; p += $1 ^ 2; n++ }
             END { if (!(n && e / p <= 3 * bound)) { print "NMSE " e / p; exit 1 } }'
}
while IFS=, read -r file _ _ n ids exact nmse _; do
    "$BENCH" embed -m "$zoo/$file" --tokens "${ids// /,}" -o v.f32 --no-normalize 2>err ||
        fail "$file: $(cat err)"
    [ "$(stat -c %s v.f32)" = $((n * 4)) ] || fail "$file: $(stat -c %s v.f32) bytes"
    near v.f32 "$zoo/$exact" "$nmse" || fail "$file differs from its exact vector"
done < <(tail -n +2 "$zoo/embeddings.csv")

# ---- texts: one line of JSON each, of length 1
"$BENCH" embed -m "$bert" "a b c" "d" "a b c" >args.json 2>err
[ "$(wc -l <args.json)" = 3 ] || fail "$(cat args.json)"
grep -q '^{"index":0,"n_tokens":5,"vector":\[' args.json || fail "$(head -c 200 args.json)"
grep -q '^bench: 3 texts of 13 tokens in .* s: .* texts/s, .* tokens/s (' err || fail "$(cat err)"
tr -d '[]' <args.json | sed 's/.*"vector"://; s/}//' |
    awk -F, 'NF != 64 { exit 1 } { s = 0; for (i = 1; i <= NF; i++) s += $i ^ 2
             if (s < 0.9999 || s > 1.0001) exit 1 }' || fail "not 64 numbers of length 1"
[ "$(sed -n 1p args.json | cut -d: -f3-)" = "$(sed -n 3p args.json | cut -d: -f3-)" ] ||
    fail "one text, two vectors"

# The same from lines of a file and of standard input, also in passes of one text.
printf 'a b c\nd\r\na b c\n' >lines.txt
"$BENCH" embed -m "$bert" -f lines.txt >file.json 2>err
cmp -s args.json file.json || fail "lines of a file"
"$BENCH" embed -m "$bert" -f - <lines.txt >stdin.json 2>err
cmp -s args.json stdin.json || fail "standard input"
"$BENCH" embed -m "$bert" -f lines.txt -o all.f32 2>err
"$BENCH" embed -m "$bert" -f lines.txt --batch 5 -t 2 -o - >each.f32 2>err
near each.f32 all.f32 1e-6 || fail "passes of one text"
"$BENCH" embed -m "$bert" -f lines.txt -o all.json --json 2>err
cmp -s args.json all.json || fail "JSON in a file"

# Poolings: each another vector; none: one vector for each token.
for pooling in mean cls last; do
    "$BENCH" embed -m "$bert" "a b c" --pooling $pooling >$pooling.json 2>err
done
cmp -s mean.json <(head -n 1 args.json) || fail "the file's pooling is the mean"
! cmp -s cls.json mean.json && ! cmp -s last.json cls.json || fail "poolings are alike"
"$BENCH" embed -m "$bert" "a b c" --pooling none >none.json 2>err
grep -q '"vectors":\[\[' none.json || fail "$(head -c 100 none.json)"
[ "$(tr -cd '[' <none.json | wc -c)" = 6 ] || fail "not 5 vectors in a list"

# A model without a pooling of its own makes vectors by one that is named.
llama=$SRC/tests/data/models/llama.gguf
"$BENCH" embed -m "$llama" "once" --pooling last >llama.json 2>err || fail "$(cat err)"
refused 2 "choose one with --pooling" embed -m "$llama" "once"

# ---- longer than the context of 64
long=$(printf 'a %.0s' $(seq 80))
refused 2 "text 1 has 82 tokens, and the model's context is 64" embed -m "$bert" "$long"
printf 'a\n%s\n' "$long" >long.txt
refused 2 "line 2 of long.txt has 82 tokens" embed -m "$bert" -f long.txt
"$BENCH" embed -m "$bert" -f long.txt --truncate >cut.json 2>err || fail "$(cat err)"
grep -q '"index":1,"n_tokens":64,' cut.json || fail "$(cut -c1-60 cut.json)"
grep -q "1 text was longer than the context of 64 tokens and was cut" err || fail "$(cat err)"

# ---- refusals
refused 2 "name the model" embed x
refused 2 "one of these" embed -m "$bert"
refused 2 "one of these" embed -m "$bert" x -f lines.txt
refused 2 "mean, cls, last or none" embed -m "$bert" x --pooling max
refused 2 "token 320 is outside" embed -m "$bert" --tokens 1,320
refused 2 "no-such" embed -m "$bert" -f no-such
: >empty.txt
refused 2 "empty.txt is empty" embed -m "$bert" -f empty.txt
refused 2 "nowhere" embed -m "$bert" x -o nowhere/x.f32
refused 2 "lines.txt" embed -m "$bert" -f lines.txt -o lines.txt

# ---- an encoder predicts nothing, and says what does make its vectors
for command in "generate -p a" "logits --tokens 1 -o x.f32" chat "decode --tokens 4"; do
    refused 3 "bench embed" $command -m "$bert"
done
refused 3 "bench embed" plan -m "$bert"
refused 3 "bench embed" quality -m "$bert"
"$BENCH" gguf "$bert" >gguf.txt
grep -q "an encoder without an output matrix" gguf.txt || fail "$(cat gguf.txt)"

# ---- shapes of embedding models
"$BENCH" synth all-minilm-l6-v2 Q8_0 -o mini.gguf >out
grep -q "^measure it: bench embed -m mini.gguf" out || fail "$(cat out)"
"$BENCH" embed -m mini.gguf -f lines.txt -o mini.f32 --weights packed 2>err || fail "$(cat err)"
[ "$(stat -c %s mini.f32)" = $((3 * 384 * 4)) ] || fail "$(stat -c %s mini.f32) bytes"
sed 's/n_layers: 24/n_layers: 2/; s/262144/512/' "$SRC/configs/models/embeddinggemma-300m.yaml" >gemma.yaml
"$BENCH" synth gemma.yaml Q4_0 -o gemma.gguf >out
"$BENCH" embed -m gemma.gguf "a" -o gemma.f32 2>err || fail "$(cat err)"
[ "$(stat -c %s gemma.f32)" = $((768 * 4)) ] || fail "$(stat -c %s gemma.f32) bytes"
sed 's/pooling: mean/pooling: max/' gemma.yaml >odd.yaml
refused 2 "pooling is 'max', and it must be mean, cls or last" synth odd.yaml Q4_0 -o x.gguf
sed '/pooling/d' gemma.yaml >odd.yaml
refused 2 "it must be mean, cls or last" synth odd.yaml Q4_0 -o x.gguf

# ---- other ways to hold a model: quantised, packed, streamed
"$BENCH" synth all-minilm-l6-v2 F16 -o mini16.gguf >out
"$BENCH" embed -m mini16.gguf -f lines.txt -o mini16.f32 2>err || fail "$(cat err)"
"$BENCH" embed -m mini16.gguf:Q8_0 -f lines.txt -o mini8.f32 2>err || fail "$(cat err)"
near mini8.f32 mini16.f32 1e-3 || fail "quantised while loading"
"$BENCH" pack mini.gguf -o packed.gguf >out 2>err || fail "$(cat err)"
for weights in mmap packed stream; do
    "$BENCH" embed -m packed.gguf -f lines.txt -o packed.f32 --weights $weights 2>err ||
        fail "$(cat err)"
    near packed.f32 mini.f32 1e-6 || fail "packed, $weights"
done

# ---- an importance matrix, of an encoder's matrices and of those behind the pooling
dense=$zoo/gemma-embedding-dense.gguf
"$BENCH" imatrix -m "$dense" --text "$SRC/README.md" --ctx 200 --chunks 3 -o im.gguf 2>err >out ||
    fail "$(cat err)"
"$BENCH" gguf im.gguf --tensors >im.txt 2>/dev/null || "$BENCH" gguf im.gguf >im.txt
for tensor in blk.5.ffn_down dense_3; do
    grep -q "$tensor.weight" im.txt || fail "no $tensor in the importance matrix: $(cat im.txt)"
done
"$BENCH" quantize "$dense" dense.q4.gguf Q4_0 --imatrix im.gguf >out 2>err || fail "$(cat err)"
"$BENCH" embed -m dense.q4.gguf "a b c" >q4.json 2>err || fail "$(cat err)"

# ---- folders, with the modules of sentence-transformers
command -v python3 >/dev/null || exit 0
make=$SRC/tests/support/models/make_embed_folder.py
shared=${SLM_SHARED:-$SRC/../shared}/golden/models/zoo
[ -e "$shared/embeddings.csv" ] || shared=$zoo
while IFS=, read -r file _ _ _ ids exact _; do
    name=${file%.gguf}
    python3 "$make" "$shared/$file" "$name"
    "$BENCH" embed -m "$name" --tokens "${ids// /,}" -o v.f32 --no-normalize 2>err ||
        fail "$name: $(cat err)"
    near v.f32 "$shared/$exact" 1e-6 || fail "the folder $name differs from its exact vector"
    "$BENCH" embed -m "$name" "a b c" >text.json 2>err || fail "$(cat err)"
    n=5
    [ "$name" != qwen3-embedding ] || n=4
    grep -q "\"n_tokens\":$n," text.json || fail "$name: $(cut -c1-60 text.json)"
    "$BENCH" quantize "$name" "$name.gguf" F32 >out 2>err || fail "$(cat err)"
    "$BENCH" embed -m "$name.gguf" --tokens "${ids// /,}" -o w.f32 --no-normalize 2>err
    cmp -s v.f32 w.f32 || fail "$name: the converted file is another model"
    case $name in *bert*)
        # BERT's tokenizer has a name in GGUF, and makes the same tokens there.
        ! grep -q "refuse the file" err || fail "$name: $(cat err)"
        "$BENCH" gguf "$name.gguf" | grep -q 'tokenizer.ggml.model *"bert"' || fail "no bert"
        for text in "a b c" "A Éxyz, bz!" "axyz a.x 中" "[CLS] a ##z"; do
            text=$(printf '%b' "$text")
            "$BENCH" tokenize -m "$name" "$text" >a.ids
            "$BENCH" tokenize -m "$name.gguf" "$text" >b.ids
            cmp -s a.ids b.ids || fail "$name: '$text': $(cat a.ids b.ids)"
        done
        "$BENCH" embed -m "$name.gguf" "a b c" | cmp -s - text.json || fail "$name: a b c" ;;
    esac
done < <(tail -n +2 "$shared/embeddings.csv")
# ---- XLM-RoBERTa: positions behind padding's, tokens by their scores, <s> and </s>
texts=("ab cab" "abcdab d  abc" "é中 xab" "")
python3 "$SRC/tests/support/models/make_xlmr_folder.py" xlmr 0,5,9,10,20,4,2 "${texts[@]:0:2}"
"$BENCH" quantize xlmr own.gguf F32 >out 2>err || fail "$(cat err)"
for m in xlmr xlmr/model.gguf own.gguf; do
    for pooling in mean cls; do
        "$BENCH" embed -m $m --tokens 0,5,9,10,20,4,2 --pooling $pooling -o v.f32 --no-normalize 2>err ||
            fail "$m: $(cat err)"
        near v.f32 xlmr/exact.$pooling.f32 1e-6 || fail "$m: $pooling differs from the equations"
    done
    "$BENCH" embed -m $m "${texts[@]}" -o $(basename $m).f32 2>err || fail "$m: $(cat err)"
    for i in 0 1; do
        ids=$(sed -n $((i + 1))p xlmr/exact.ids)
        "$BENCH" embed -m $m "${texts[i]}" >text.json 2>err || fail "$m: $(cat err)"
        "$BENCH" embed -m $m --tokens "${ids// /,}" 2>err | cmp -s - text.json ||
            fail "$m: '${texts[i]}' is not $ids"
    done
    refused 2 "the model's context is 20" embed -m $m "$long"
done
cmp xlmr.f32 model.gguf.f32 && cmp xlmr.f32 own.gguf.f32 || fail "folder and files differ"
refused 3 "scores pairs of texts (a reranker: pooling_type is 4, and there is cls.output.weight)" \
    embed -m xlmr/rank.gguf x
sed -i 's/"XLMRobertaModel"/"XLMRobertaForSequenceClassification"/' xlmr/config.json
refused 3 "XLMRobertaForSequenceClassification scores texts or pairs of texts" embed -m xlmr x
sed -i 's/XLMRobertaForSequenceClassification/XLMRobertaModel/; s/"pad_token_id": 1/"pad_token_id": 40/' xlmr/config.json
refused 2 "of 22 positions, max_position_embeddings, the first 41 are no text's" embed -m xlmr x

m=gemma-embedding-dense
sed -i 's/"bias": false/"bias": true/' $m/2_Dense/config.json
refused 3 "no bias" embed -m $m x
sed -i 's/models.Dense/models.CNN/' $m/modules.json
refused 3 "the module '2_Dense'" embed -m $m x
python3 "$make" "$bert" bare --bare
refused 2 "choose one with --pooling" embed -m bare x
"$BENCH" embed -m bare x --pooling mean >bare.json 2>err || fail "$(cat err)"
sed -i 's/pooling_mode_max_tokens": false/pooling_mode_max_tokens": true/' bert-mean/1_Pooling/config.json
refused 3 "one of mean, cls and lasttoken" embed -m bert-mean x
