#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a folder of sentence-transformers from a small embedding model's GGUF file.

    make_embed_folder.py MODEL.gguf OUTDIR [--bare]

config.json, model.safetensors, tokenizer.json, and modules.json with what it names:
1_Pooling, 2_Dense and 3_Dense. Weights are dequantised. --bare leaves modules.json out.
"""
import array
import json
import os
import re
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_hf_folder import Gguf  # noqa: E402

BERT = {"token_embd": "embeddings.word_embeddings",
        "position_embd": "embeddings.position_embeddings",
        "token_types": "embeddings.token_type_embeddings",
        "token_embd_norm": "embeddings.LayerNorm", "attn_q": "attention.self.query",
        "attn_k": "attention.self.key", "attn_v": "attention.self.value",
        "attn_output": "attention.output.dense",
        "attn_output_norm": "attention.output.LayerNorm",
        "ffn_up": "intermediate.dense", "ffn_down": "output.dense",
        "layer_output_norm": "output.LayerNorm"}
NOMIC = {"token_embd": "embeddings.word_embeddings",
         "token_types": "embeddings.token_type_embeddings", "token_embd_norm": "emb_ln",
         "attn_qkv": "attn.Wqkv", "attn_output": "attn.out_proj",
         "attn_output_norm": "norm1", "ffn_up": "mlp.fc11", "ffn_gate": "mlp.fc12",
         "ffn_down": "mlp.fc2", "layer_output_norm": "norm2"}
CAUSAL = {"token_embd": "embed_tokens", "output_norm": "norm",
          "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj",
          "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
          "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
          "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm",
          "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
          "ffn_down": "mlp.down_proj"}
GEMMA = dict(CAUSAL, post_attention_norm="post_attention_layernorm",
             ffn_norm="pre_feedforward_layernorm",
             post_ffw_norm="post_feedforward_layernorm")
KINDS = {"bert": (BERT, "encoder.layer."), "nomic-bert": (NOMIC, "encoder.layers."),
         "qwen3": (CAUSAL, "layers."), "gemma-embedding": (GEMMA, "layers.")}
POOLINGS = {1: "mean_tokens", 2: "cls_token", 3: "lasttoken"}


def config(arch, get, n_vocab):
    n = {"hidden_size": "embedding_length", "num_hidden_layers": "block_count",
         "num_attention_heads": "attention.head_count",
         "intermediate_size": "feed_forward_length",
         "max_position_embeddings": "context_length"}
    c = {k: get(v) for k, v in n.items()}
    c.update(vocab_size=n_vocab)
    if arch == "bert":
        c.update(model_type="bert", hidden_act="gelu", type_vocab_size=2,
                 position_embedding_type="absolute",
                 layer_norm_eps=get("attention.layer_norm_epsilon"))
    elif arch == "nomic-bert":
        c = {"model_type": "nomic_bert", "n_embd": c["hidden_size"],
             "n_layer": c["num_hidden_layers"], "n_head": c["num_attention_heads"],
             "n_inner": c["intermediate_size"], "n_positions": 8192,
             "max_trained_positions": c["max_position_embeddings"],
             "rotary_emb_base": get("rope.freq_base"), "rotary_emb_fraction": 1.0,
             "activation_function": "swiglu", "prenorm": False, "causal": False,
             "layer_norm_epsilon": get("attention.layer_norm_epsilon"),
             "type_vocab_size": 2}
    else:
        c.update(num_key_value_heads=get("attention.head_count_kv"),
                 head_dim=get("attention.key_length"), tie_word_embeddings=True,
                 rms_norm_eps=get("attention.layer_norm_rms_epsilon"),
                 rope_theta=get("rope.freq_base"))
        if arch == "qwen3":
            c.update(model_type="qwen3", hidden_act="silu")
        else:
            c.update(model_type="gemma3_text", use_bidirectional_attention=True,
                     hidden_activation="gelu_pytorch_tanh",
                     sliding_window=get("attention.sliding_window"),
                     query_pre_attn_scalar=c["head_dim"],
                     rope_local_base_freq=get("rope.freq_base_swa"))
    return c


def write(path, tensors):
    head, at = {}, 0
    for name, (ne, v) in tensors.items():
        head[name] = {"dtype": "F32", "shape": ne[::-1],
                      "data_offsets": [at, at + 4 * len(v)]}
        at += 4 * len(v)
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, v in tensors.values():
            f.write(v.tobytes())


def tokenizer(arch, g):
    """Whole words of one letter; the tokens around a text as each kind has them."""
    words = {}
    bos, eos = (g.kv["tokenizer.ggml.%s_token_id" % x] for x in ("bos", "eos"))
    for i, t in enumerate(g.kv["tokenizer.ggml.tokens"]):
        if i in (bos, eos):
            continue
        words[t[1:] if t.startswith("\u2581") and len(t) > 1 else "##%d" % i] = i
    special = {"[CLS]": bos, "[SEP]": eos}
    around = [] if arch == "qwen3" else [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}]
    steps = {"pre_tokenizer": {"type": "WhitespaceSplit"}}
    if "bert" in arch:  # as the models are published, which GGUF has a name for
        steps = {"normalizer": {"type": "BertNormalizer", "clean_text": True,
                                "handle_chinese_chars": True, "strip_accents": None,
                                "lowercase": True},
                 "pre_tokenizer": {"type": "BertPreTokenizer"},
                 "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}}
        words.update({"##" + w: words.pop(w) for w in "xyz" if w in words})
    return {**steps, "model": {"type": "WordPiece", "unk_token": "##0", "vocab": words,
                      "continuing_subword_prefix": "##"},
            "added_tokens": [{"id": i, "content": t, "special": True}
                             for t, i in special.items()],
            "post_processor": {
                "type": "TemplateProcessing",
                "single": around + [{"Sequence": {"id": "A", "type_id": 0}},
                                    {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
                "special_tokens": {t: {"id": t, "ids": [i], "tokens": [t]}
                                   for t, i in special.items()}}}


def main():
    g = Gguf(sys.argv[1])
    out, arch = sys.argv[2], g.kv["general.architecture"]
    names, layers = KINDS[arch]
    put, dense = {}, {}
    for name, (ne, v) in g.tensors.items():
        m = re.match(r"(?:blk\.(\d+)\.)?(.*)\.(weight|bias)$", name)
        if m[2].startswith("dense_"):
            dense["%s_Dense" % m[2][6:]] = (ne, v)
            continue
        if arch == "gemma-embedding" and "norm" in m[2]:
            v = array.array("f", (x - 1 for x in v))
        where = layers + m[1] + "." if m[1] else ""
        put["%s%s.%s" % (where, names[m[2]], m[3])] = (ne, v)
    if arch == "bert":
        put["pooler.dense.weight"] = ([1, 1], array.array("f", [0]))
    os.makedirs(out + "/1_Pooling")
    write(out + "/model.safetensors", put)
    n_vocab = g.tensors["token_embd.weight"][0][1]
    files = {"config.json": config(arch, lambda k: g.kv["%s.%s" % (arch, k)], n_vocab),
             "tokenizer.json": tokenizer(arch, g)}
    pooling = g.kv[arch + ".pooling_type"]
    files["1_Pooling/config.json"] = dict(
        {"pooling_mode_" + v: k == pooling for k, v in POOLINGS.items()},
        word_embedding_dimension=8, pooling_mode_max_tokens=False)
    modules = [("", "models.Transformer"), ("1_Pooling", "models.Pooling")]
    for folder, (ne, v) in sorted(dense.items()):
        os.mkdir("%s/%s" % (out, folder))
        write("%s/%s/model.safetensors" % (out, folder), {"linear.weight": (ne, v)})
        files[folder + "/config.json"] = {
            "in_features": ne[0], "out_features": ne[1], "bias": False,
            "activation_function": "torch.nn.modules.linear.Identity"}
        modules.append((folder, "models.Dense"))
    modules.append(("9_Normalize", "models.Normalize"))
    if "--bare" not in sys.argv:
        files["modules.json"] = [
            {"idx": i, "name": str(i), "path": p, "type": "sentence_transformers." + t}
            for i, (p, t) in enumerate(modules)]
    for name, content in files.items():
        with open("%s/%s" % (out, name), "w") as f:
            json.dump(content, f)


if __name__ == "__main__":
    main()
