#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a small random XLM-RoBERTa folder, and what it stands for, for tests.

    make_xlmr_folder.py OUTDIR TOKEN,TOKEN,... TEXT...

OUTDIR is a folder of sentence-transformers as multilingual E5 is published, the vector
the mean of all tokens. OUTDIR/exact.mean.f32 and exact.cls.f32 are the vectors of the
tokens, computed here from the folder's own tensors in double precision, by the published
equations: positions from that of padding on, the exact GELU, one kind of text.
OUTDIR/exact.ids has a line of ids for each TEXT, by the best of all divisions into
tokens. OUTDIR/model.gguf is the model as llama.cpp's converter writes it, and rank.gguf
the same as a reranker. Standard library only.
"""
import array
import json
import math
import os
import random
import struct
import sys

from make_hf_folder import write_file

EMBD, FF, LAYERS, HEADS, POSITIONS, PAD, EPS = 32, 64, 2, 4, 20, 1, 1e-5
BLANK = "\u2581"
PIECES = [BLANK, "a", "b", "c", "d", BLANK + "a", BLANK + "b", "ab", BLANK + "ab", "cd",
          BLANK + "cab", "dab", "\u4e2d", "\u00e9", BLANK + "d", "bc", "abc"]
TOKENS = ["<s>", "<pad>", "</s>", "<unk>", *PIECES, "<mask>"]
SCORES = [0.0] * 4 + [-2.0 - (7 * i % 11) / 4 - len(p) / 8 for i, p in enumerate(PIECES)]
SCORES.append(0.0)
CONTROL, UNKNOWN, NORMAL = 3, 2, 1
KINDS = [CONTROL] * 3 + [UNKNOWN] + [NORMAL] * len(PIECES) + [CONTROL]
LAYER = {"attention.self.query": ("attn_q", EMBD, EMBD),
         "attention.self.key": ("attn_k", EMBD, EMBD),
         "attention.self.value": ("attn_v", EMBD, EMBD),
         "attention.output.dense": ("attn_output", EMBD, EMBD),
         "attention.output.LayerNorm": ("attn_output_norm", EMBD, 0),
         "intermediate.dense": ("ffn_up", FF, EMBD),
         "output.dense": ("ffn_down", EMBD, FF),
         "output.LayerNorm": ("layer_output_norm", EMBD, 0)}


def make_tensors():
    """The folder's tensors, and their names in GGUF."""
    rng, out, names = random.Random(11), {}, {}

    def add(name, gguf, rows, k):
        mean, spread = (0.0, 1.5 / math.sqrt(k)) if k else (1.0, 0.4)
        out[name + ".weight"] = ([rows, k] if k else [rows], array.array("f", (
            mean + rng.uniform(-spread, spread) for _ in range(rows * max(k, 1)))))
        names[name + ".weight"] = gguf + ".weight"

    def bias(name, gguf, rows):
        out[name + ".bias"] = ([rows], array.array("f", (
            rng.uniform(-0.4, 0.4) for _ in range(rows))))
        names[name + ".bias"] = gguf + ".bias"

    base = "roberta.embeddings."
    add(base + "word_embeddings", "token_embd", len(TOKENS), EMBD)
    add(base + "position_embeddings", "position_embd", POSITIONS + PAD + 1, EMBD)
    add(base + "token_type_embeddings", "token_types", 1, EMBD)
    add(base + "LayerNorm", "token_embd_norm", EMBD, 0)
    bias(base + "LayerNorm", "token_embd_norm", EMBD)
    for i in range(LAYERS):
        for name, (gguf, rows, k) in LAYER.items():
            at, to = "roberta.encoder.layer.%d.%s" % (i, name), "blk.%d.%s" % (i, gguf)
            add(at, to, rows, k)
            bias(at, to, rows)
    return out, names


# ---- the model ---------------------------------------------------------------------

class Model:
    def __init__(self, tensors):
        self.tensors = tensors

    def row(self, name, i):
        return list(self.tensors["roberta.embeddings.%s_embeddings.weight" % name][1]
                    [i * EMBD:(i + 1) * EMBD])

    def linear(self, name, x):
        w, b = (self.tensors["roberta.%s.%s" % (name, kind)][1] for kind in
                ("weight", "bias"))
        return [sum(w[r * len(x) + i] * v for i, v in enumerate(x)) + b[r]
                for r in range(len(b))]

    def norm(self, name, x):
        w, b = (self.tensors["roberta.%s.%s" % (name, kind)][1] for kind in
                ("weight", "bias"))
        mean = sum(x) / len(x)
        scale = 1 / math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + EPS)
        return [(v - mean) * scale * w[i] + b[i] for i, v in enumerate(x)]

    def attend(self, at, x):
        q, k, v = ([self.linear(at + "self." + n, t) for t in x]
                   for n in ("query", "key", "value"))
        head, out = EMBD // HEADS, [[0.0] * EMBD for _ in x]
        for h in range(0, EMBD, head):
            for i, mine in enumerate(q):
                score = [math.exp(sum(mine[h + e] * other[h + e] for e in range(head)) /
                                  math.sqrt(head)) for other in k]
                for p, value in zip(score, v):
                    for e in range(head):
                        out[i][h + e] += p / sum(score) * value[h + e]
        return out

    def states(self, tokens):
        x = [[a + b + c for a, b, c in zip(self.row("word", t),
                                           self.row("position", PAD + 1 + i),
                                           self.row("token_type", 0))]
             for i, t in enumerate(tokens)]
        x = [self.norm("embeddings.LayerNorm", t) for t in x]
        for i in range(LAYERS):
            at = "encoder.layer.%d." % i
            mixed = self.attend(at + "attention.", x)
            for n, (t, m) in enumerate(zip(x, mixed)):
                y = self.linear(at + "attention.output.dense", m)
                y = self.norm(at + "attention.output.LayerNorm",
                              [a + b for a, b in zip(t, y)])
                up = [u / 2 * (1 + math.erf(u / math.sqrt(2)))
                      for u in self.linear(at + "intermediate.dense", y)]
                down = self.linear(at + "output.dense", up)
                x[n] = self.norm(at + "output.LayerNorm", [a + b for a, b in zip(y, down)])
        return x


def divide(text):
    """Ids of a text: for each word the division with the highest sum of scores."""
    ids = [0]
    for word in text.split():
        word = BLANK + word
        best = [(0.0, [])] + [None] * len(word)
        for i in range(len(word)):
            for id, piece in enumerate(TOKENS):
                if KINDS[id] == NORMAL and best[i] and word.startswith(piece, i):
                    end, way = i + len(piece), (best[i][0] + SCORES[id], best[i][1] + [id])
                    if not best[end] or way[0] > best[end][0]:
                        best[end] = way
        ids += best[-1][1]
    return ids + [2]


# ---- files -------------------------------------------------------------------------

def tokenizer():
    special = {t: i for i, t in enumerate(TOKENS) if KINDS[i] != NORMAL}
    return {"added_tokens": [{"id": i, "content": t, "special": True,
                              "lstrip": t == "<mask>"} for t, i in special.items()],
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "WhitespaceSplit"},
                {"type": "Metaspace", "replacement": BLANK, "prepend_scheme": "always"}]},
            "decoder": {"type": "Metaspace", "replacement": BLANK,
                        "prepend_scheme": "always"},
            "post_processor": {"type": "TemplateProcessing", "single": [
                {"SpecialToken": {"id": "<s>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                "special_tokens": {t: {"id": t, "ids": [special[t]], "tokens": [t]}
                                   for t in ("<s>", "</s>")}},
            "model": {"type": "Unigram", "unk_id": 3,
                      "vocab": [list(x) for x in zip(TOKENS, SCORES)]}}


CONFIG = {"model_type": "xlm-roberta", "architectures": ["XLMRobertaModel"],
          "hidden_size": EMBD, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
          "intermediate_size": FF, "hidden_act": "gelu", "type_vocab_size": 1,
          "max_position_embeddings": POSITIONS + PAD + 1, "pad_token_id": PAD,
          "bos_token_id": 0, "eos_token_id": 2, "layer_norm_eps": EPS,
          "vocab_size": len(TOKENS), "position_embedding_type": "absolute"}
U32, I32, F32, BOOL, STR, ARRAY = 4, 5, 6, 7, 8, 9


def write_gguf(path, tensors, names, pooling):
    pairs, data = [], b""

    def text(s):
        s = s.encode()
        return struct.pack("<Q", len(s)) + s

    def put(key, kind, value):
        pairs.append(text(key) + struct.pack("<I", kind) + (
            text(value) if kind == STR else
            struct.pack({U32: "<I", F32: "<f", BOOL: "<?"}[kind], value)))

    def put_list(key, kind, values):
        pairs.append(text(key) + struct.pack("<IIQ", ARRAY, kind, len(values)) + b"".join(
            text(v) if kind == STR else struct.pack("<i" if kind == I32 else "<f", v)
            for v in values))

    put("general.architecture", STR, "bert")
    for key, value in (("block_count", LAYERS), ("context_length", POSITIONS),
                       ("embedding_length", EMBD), ("feed_forward_length", FF),
                       ("attention.head_count", HEADS), ("pooling_type", pooling)):
        put("bert." + key, U32, value)
    put("bert.attention.layer_norm_epsilon", F32, EPS)
    put("bert.attention.causal", BOOL, False)
    put("tokenizer.ggml.model", STR, "t5")
    put("tokenizer.ggml.pre", STR, "default")
    put_list("tokenizer.ggml.tokens", STR, TOKENS)
    put_list("tokenizer.ggml.scores", F32, SCORES)
    put_list("tokenizer.ggml.token_type", I32, KINDS)
    for key, value in (("token_type_count", 1), ("bos_token_id", 0), ("eos_token_id", 2),
                       ("unknown_token_id", 3), ("seperator_token_id", 2),
                       ("padding_token_id", 1), ("mask_token_id", len(TOKENS) - 1)):
        put("tokenizer.ggml." + key, U32, value)
    for key in ("add_space_prefix", "remove_extra_whitespaces", "add_bos_token",
                "add_eos_token"):
        put("tokenizer.ggml." + key, BOOL, True)
    infos = b""
    for name, (shape, v) in tensors.items():
        if "position" in name:
            shape, v = [POSITIONS, EMBD], v[(PAD + 1) * EMBD:]
        infos += text(names[name]) + struct.pack("<I%dQIQ" % len(shape), len(shape),
                                                 *shape[::-1], 0, len(data))
        data += v.tobytes()
    head = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(pairs)) + b"".join(pairs)
    head += infos
    with open(path, "wb") as f:
        f.write(head + b"\0" * (-len(head) % 32) + data)


def main():
    out, tokens, texts = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]
    tensors, names = make_tensors()
    states = Model(tensors).states([int(t) for t in tokens])
    os.makedirs(out + "/1_Pooling")
    write_gguf(out + "/model.gguf", tensors, names, 1)
    head = "classifier.out_proj.weight"
    write_gguf(out + "/rank.gguf", {**tensors, head: ([1, EMBD], array.array("f", EMBD * [1]))},
               {**names, head: "cls.output.weight"}, 4)
    tensors["pooler.dense.weight"] = ([1, 1], array.array("f", [0]))
    write_file(out + "/model.safetensors", sorted(tensors.items()), "F32")
    mean = [sum(s[i] for s in states) / len(states) for i in range(EMBD)]
    for name, v in (("mean", mean), ("cls", states[0])):
        with open("%s/exact.%s.f32" % (out, name), "wb") as f:
            f.write(array.array("f", v).tobytes())
    with open(out + "/exact.ids", "w") as f:
        for text in texts:
            f.write(" ".join(map(str, divide(text))) + "\n")
    files = {"config.json": CONFIG, "tokenizer.json": tokenizer(),
             "modules.json": [
                 {"idx": i, "name": str(i), "path": p, "type": "sentence_transformers." + t}
                 for i, (p, t) in enumerate([("", "models.Transformer"),
                                             ("1_Pooling", "models.Pooling"),
                                             ("2_Normalize", "models.Normalize")])],
             "1_Pooling/config.json": {"word_embedding_dimension": EMBD,
                                       "pooling_mode_mean_tokens": True,
                                       "pooling_mode_cls_token": False}}
    for name, content in files.items():
        with open("%s/%s" % (out, name), "w") as f:
            json.dump(content, f)


if __name__ == "__main__":
    main()
