#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a Hugging Face folder of a Llama shape with random F16 weights.

    make_shape_folder.py OUTDIR [--layers 22] [--embd 2048] [--ff 5632] [--heads 32]
                         [--kv-heads 4] [--vocab 32000] [--shards 1]

The defaults are TinyLlama's. It means nothing, and is as large and as slow to load as
the real one. Weights repeat every MiB. Standard library only.
"""
import argparse
import json
import math
import os
import random
import struct

PIECE = 1 << 19  # weights


def tensors_of(a):
    head = a.embd // a.heads
    yield "model.embed_tokens.weight", [a.vocab, a.embd]
    yield "model.norm.weight", [a.embd]
    yield "lm_head.weight", [a.vocab, a.embd]
    for i in range(a.layers):
        at = "model.layers.%d." % i
        yield at + "input_layernorm.weight", [a.embd]
        yield at + "post_attention_layernorm.weight", [a.embd]
        yield at + "self_attn.q_proj.weight", [a.embd, a.embd]
        yield at + "self_attn.k_proj.weight", [a.kv_heads * head, a.embd]
        yield at + "self_attn.v_proj.weight", [a.kv_heads * head, a.embd]
        yield at + "self_attn.o_proj.weight", [a.embd, a.embd]
        yield at + "mlp.gate_proj.weight", [a.ff, a.embd]
        yield at + "mlp.up_proj.weight", [a.ff, a.embd]
        yield at + "mlp.down_proj.weight", [a.embd, a.ff]


def write_shard(path, tensors, noise):
    header, at = {}, 0
    for name, shape in tensors:
        n = 2 * math.prod(shape)
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _ in range(at // len(noise)):
            f.write(noise)
        f.write(noise[:at % len(noise)])


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("out")
    for name, value in (("layers", 22), ("embd", 2048), ("ff", 5632), ("heads", 32),
                        ("kv-heads", 4), ("vocab", 32000), ("shards", 1)):
        p.add_argument("--" + name, type=int, default=value)
    a = p.parse_args()
    rng = random.Random(1)
    noise = struct.pack("<%de" % PIECE, *(rng.gauss(0, 0.02) for _ in range(PIECE)))
    tensors, where = list(tensors_of(a)), {}
    os.makedirs(a.out, exist_ok=True)
    for s in range(a.shards):
        file = ("model.safetensors" if a.shards == 1 else
                "model-%05d-of-%05d.safetensors" % (s + 1, a.shards))
        part = tensors[s * len(tensors) // a.shards:(s + 1) * len(tensors) // a.shards]
        write_shard(os.path.join(a.out, file), part, noise)
        where.update((name, file) for name, _ in part)
    if a.shards > 1:
        with open(os.path.join(a.out, "model.safetensors.index.json"), "w") as f:
            json.dump({"metadata": {}, "weight_map": where}, f)
    with open(os.path.join(a.out, "config.json"), "w") as f:
        json.dump({"model_type": "llama", "hidden_act": "silu", "rms_norm_eps": 1e-5,
                   "hidden_size": a.embd, "intermediate_size": a.ff,
                   "num_hidden_layers": a.layers, "num_attention_heads": a.heads,
                   "num_key_value_heads": a.kv_heads, "vocab_size": a.vocab,
                   "max_position_embeddings": 2048, "tie_word_embeddings": False}, f)


if __name__ == "__main__":
    main()
