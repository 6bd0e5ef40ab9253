#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Models as they are found: ends of texts wherever they are named, padded embeddings, a
# draft that is padded otherwise, markers typed as text, weights that are no numbers.
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || exit 0
stories=$SRC/tests/data/models/stories260K-f32.gguf
support=$SRC/tests/support/models

# folder NAME [PYTHON]: the model as a folder, whose tokenizer.json (t, its vocabulary v),
# tokenizer_config.json (c) and tensors a line of Python may change
folder() {
    rm -rf "$1"
    python3 "$support/make_hf_folder.py" "$stories" "$1"
    python3 "$support/make_tokenizer_json.py" "$stories" "$1/tokenizer.json"
    python3 - "$@" <<'PY'
import json, struct, sys
f = sys.argv[1] + "/"
t = json.load(open(f + "tokenizer.json"))
v = t["model"]["vocab"]
c = {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True}
weights = open(f + "model.safetensors", "rb").read()
n = struct.unpack("<Q", weights[:8])[0]
head, body = json.loads(weights[8:8 + n]), bytearray(weights[8 + n:])
config = json.load(open(f + "config.json"))


def drop(number):
    name = [k for k in v if v[k] == number][0]
    del v[name]
    t["model"]["merges"] = [m for m in t["model"]["merges"]
                            if name not in (m[0], m[1], m[0] + m[1])]
    return name


def spoil(tensor, at, value):
    begin = head[tensor]["data_offsets"][0]
    size, letter = {"F32": (4, "<f"), "F16": (2, "<e")}[head[tensor]["dtype"]]
    struct.pack_into(letter, body, begin + at * size, value)


def pad(rows):
    global body
    out = bytearray()
    for name in sorted(set(head) - {"__metadata__"}):
        begin, end = head[name]["data_offsets"]
        data = body[begin:end]
        if name in ("model.embed_tokens.weight", "lm_head.weight"):
            data += bytes(len(data) // head[name]["shape"][0] * rows)
            head[name]["shape"][0] += rows
        head[name]["data_offsets"] = [len(out), len(out) + len(data)]
        out += data
    body = out
    config["vocab_size"] += rows


exec(sys.argv[2] if len(sys.argv) > 2 else "")
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
open(f + "model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + body)
json.dump(t, open(f + "tokenizer.json", "w"))
json.dump(c, open(f + "tokenizer_config.json", "w"))
json.dump(config, open(f + "config.json", "w"))
PY
}
generate() {
    "$BENCH" generate -n 50 -p 'Once upon a time' "$@" 2>err || fail "$*: $(cat err)"
}

# ---- what ends a text --------------------------------------------------------------
folder plain
whole=$(generate -m plain)
stop=$(python3 -c "import json; print(json.load(open('plain/tokenizer.json'))['model']['vocab']['.'])")
want=${whole%%.*}
[ "$want" != "$whole" ] || fail "the text has no full stop: $whole"
many=$(seq -s, 3 99)
for ids in "$stop" "[2,$stop]" "[$many,$stop]" "[$stop.0]"; do
    for file in generation_config config; do
        folder ends "config['eos_token_id'] = $ids if '$file' == 'config' else 2"
        [ $file = config ] || echo "{\"eos_token_id\": $ids}" >ends/$file.json
        [ "$(generate -m ends)" = "$want" ] || fail "$file.json: $ids"
        rm -f ends.gguf
        "$BENCH" quantize ends ends.gguf F16 >/dev/null 2>err || fail "$(cat err)"
        [ "$(generate -m ends.gguf)" = "$want" ] || fail "$file.json as GGUF: $ids"
    done
done

# ---- padding of the embedding ------------------------------------------------------
# -m X --draft Y with other paddings: the same text
folder padded 'pad(16)'
folder more 'pad(48)'
for pair in "plain more" "more plain" "padded more"; do
    # shellcheck disable=SC2086
    set -- $pair
    [ "$(generate -m "$1" --draft "$2")" = "$whole" ] || fail "-m $1 --draft $2"
done
folder other 'v["ZZ"] = v.pop(drop(300)) if 0 else (drop(300), 300)[1]'
refused 2 "its token 300 is not the model's" generate -m plain --draft other -p a -n 1

# ---- markers that a file has as text -----------------------------------------------
marked='a, b = drop(511), drop(510)
c["chat_template"] = "{% for m in messages %}<|turn|>{{ m.content }}<|im_end|>{% endfor %}"
'
folder typed "$marked
t['added_tokens'] += [{'id': 511, 'content': '<|turn|>', 'special': True}, {'id': 510, 'content': '<|im_end|>', 'special': True}]"
folder untyped "$marked
v['<|turn|>'], v['<|im_end|>'] = 511, 510"
for kind in typed untyped; do
    "$BENCH" quantize $kind $kind.gguf F32 >/dev/null 2>err || fail "$(cat err)"
    echo hi | "$BENCH" chat -m $kind.gguf --show-prompt -n 1 >$kind.prompt 2>$kind.err ||
        fail "chat: $(cat $kind.err)"
    "$BENCH" tokenize -m $kind.gguf --special '<|turn|>hi<|im_end|>' >$kind.ids 2>err ||
        fail "$(cat err)"
done
cmp typed.ids untyped.ids || fail "$(cat untyped.ids)"
cmp typed.prompt untyped.prompt || fail "$(cat untyped.prompt)"
grep -q "untyped.gguf types <|im_end|>, <|turn|> as text; they are markers here" untyped.err ||
    fail "nothing about markers: $(cat untyped.err)"
! grep -q "as text" typed.err || fail "$(cat typed.err)"

# ---- weights that are no numbers ---------------------------------------------------
# spoiled TENSOR VALUE WHERE NAME
spoiled() {
    folder spoiled "spoil('$1', 70, float('$2'))"
    refused 2 "the model's logits are not numbers (NaN or infinite): $3" \
        generate -m spoiled -p Once -n 3
    code=0
    "$BENCH" quantize spoiled q.gguf Q8_0 >out 2>err || code=$?
    [ $code = 2 ] || fail "quantize: $code: $(cat err)"
    grep -q "the weight $4 has a value that is not a number" err || fail "$(cat err)"
    [ ! -e q.gguf ] || fail "half a file is left"
}
spoiled model.embed_tokens.weight nan "the embedding of a token has such a value" token_embd.weight
spoiled model.layers.0.self_attn.k_proj.weight nan "layer 0 is the first" blk.0.attn_k.weight
spoiled model.layers.3.mlp.down_proj.weight inf "layer 3 is the first" blk.3.ffn_down.weight
