#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a Hugging Face folder from a small GGUF file, for tests.

    make_hf_folder.py MODEL.gguf OUTDIR [--type F32|F16|BF16] [--shards N]

Weights are dequantised and put back into the order, shapes and names that the
folder of such a model has: config.json, model.safetensors (or N shards with their
index). No tokenizer. Reads F32, F16, BF16, Q8_0 and MXFP4; standard library only.
"""
import argparse
import array
import json
import math
import os
import struct

import hf_fused

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f",
           7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
F32, F16, Q8_0, Q6_K, BF16, TQ2_0, MXFP4 = 0, 1, 8, 14, 30, 35, 39


def q6_k(block):
    low, high = block[:128], block[128:192]
    *scales, d = struct.unpack("<16be", block[192:])
    for half in range(2):
        for part in range(4):
            for i in range(32):
                byte = low[64 * half + part % 2 * 32 + i]
                q = byte >> 4 * (part // 2) & 15
                q |= (high[32 * half + i] >> 2 * part & 3) << 4
                yield d * scales[8 * half + 2 * part + i // 16] * (q - 32)


class Gguf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.at = 4
        version, n_tensors, n_kvs = self.take("<IQQ")
        assert self.data[:4] == b"GGUF" and version in (2, 3)
        self.kv = dict(self.pair() for _ in range(n_kvs))
        infos = [self.info() for _ in range(n_tensors)]
        align = self.kv.get("general.alignment", 32)
        base = (self.at + align - 1) // align * align
        self.raw = {}  # blocks of MXFP4, which folders keep
        self.tensors = {name: (ne, self.floats(kind, base + offset, ne, name))
                        for name, ne, kind, offset in infos}

    def take(self, fmt):
        out = struct.unpack_from(fmt, self.data, self.at)
        self.at += struct.calcsize(fmt)
        return out

    def text(self):
        (n,) = self.take("<Q")
        self.at += n
        return self.data[self.at - n:self.at].decode("utf-8", "surrogateescape")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            inner, n = self.take("<IQ")
            return [self.value(inner) for _ in range(n)]
        return self.take(SCALARS[kind])[0]

    def pair(self):
        key = self.text()
        (kind,) = self.take("<I")
        return key, self.value(kind)

    def info(self):
        name = self.text()
        (n_dims,) = self.take("<I")
        ne = list(self.take("<%dQ" % n_dims))
        kind, offset = self.take("<IQ")
        return name, ne, kind, offset

    def floats(self, kind, at, ne, name):
        n = 1
        for x in ne:
            n *= x
        out = array.array("f")
        if kind == F32:
            out.frombytes(self.data[at:at + 4 * n])
        elif kind == F16:
            out.extend(struct.unpack_from("<%de" % n, self.data, at))
        elif kind == BF16:
            half = struct.unpack_from("<%dH" % n, self.data, at)
            out.frombytes(b"".join(struct.pack("<I", h << 16) for h in half))
        elif kind == Q8_0:
            for b in range(n // 32):
                block = struct.unpack_from("<e32b", self.data, at + 34 * b)
                out.extend(block[0] * q for q in block[1:])
        elif kind == Q6_K:
            for b in range(n // 256):
                out.extend(q6_k(self.data[at + 210 * b:at + 210 * (b + 1)]))
        elif kind == TQ2_0:
            for b in range(n // 256):
                q = self.data[at + 66 * b:at + 66 * b + 64]
                (d,) = struct.unpack_from("<e", self.data, at + 66 * b + 64)
                out.extend(d * ((q[half + i] >> 2 * part & 3) - 1) for half in (0, 32)
                           for part in range(4) for i in range(32))
        elif kind == MXFP4:
            self.raw[name] = self.data[at:at + n // 32 * 17]
        else:
            raise SystemExit("type %d cannot be read here" % kind)
        return out


def halves(v, ne, heads):
    """Rows of neighbouring pairs to rows of two halves per head."""
    k, rows = (ne[0], ne[1]) if len(ne) == 2 else (1, ne[0])
    head = rows // heads
    out = array.array("f")
    for h in range(heads):
        for half in (0, 1):
            for i in range(head // 2):
                r = h * head + 2 * i + half
                out.extend(v[r * k:(r + 1) * k])
    return out


OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm",
         "output": "lm_head"}
INNER = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
         "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj"}
MOE = {"ffn_gate_inp": "mlp.gate", "ffn_gate_exps": "mlp.experts.@.gate_proj",
       "ffn_up_exps": "mlp.experts.@.up_proj",
       "ffn_down_exps": "mlp.experts.@.down_proj",
       "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
       "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
       "ffn_up_shexp": "mlp.shared_expert.up_proj",
       "ffn_down_shexp": "mlp.shared_expert.down_proj"}
MIXTRAL = {"ffn_gate_inp": "block_sparse_moe.gate",
           "ffn_gate_exps": "block_sparse_moe.experts.@.w1",
           "ffn_down_exps": "block_sparse_moe.experts.@.w2",
           "ffn_up_exps": "block_sparse_moe.experts.@.w3"}
GEMMA = {"post_attention_norm": "post_attention_layernorm",
         "ffn_norm": "pre_feedforward_layernorm",
         "post_ffw_norm": "post_feedforward_layernorm"}
PHI2 = {"attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2"}
FUSED = {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}
LFM2 = {"attn_norm": "operator_norm", "ffn_norm": "ffn_norm",
        "attn_output": "self_attn.out_proj", "attn_q_norm": "self_attn.q_layernorm",
        "attn_k_norm": "self_attn.k_layernorm", "shortconv.in_proj": "conv.in_proj",
        "shortconv.conv": "conv.conv", "shortconv.out_proj": "conv.out_proj",
        "ffn_gate": "feed_forward.w1", "ffn_down": "feed_forward.w2",
        "ffn_up": "feed_forward.w3", "ffn_gate_inp": "feed_forward.gate",
        "exp_probs_b": "feed_forward.expert_bias",
        "ffn_gate_exps": "feed_forward.experts.@.w1",
        "ffn_down_exps": "feed_forward.experts.@.w2",
        "ffn_up_exps": "feed_forward.experts.@.w3"}
# Gate and up are one tensor there, the first name's.
GRANITE_HYBRID = {
    "ssm_in": "mamba.in_proj", "ssm_conv1d": "mamba.conv1d", "ssm_dt": "mamba.dt_bias",
    "ssm_a": "mamba.A_log", "ssm_d": "mamba.D", "ssm_norm": "mamba.norm",
    "ssm_out": "mamba.out_proj", "ffn_gate": "shared_mlp.input_linear",
    "ffn_down": "shared_mlp.output_linear", "ffn_gate_shexp": "shared_mlp.input_linear",
    "ffn_down_shexp": "shared_mlp.output_linear",
    "ffn_gate_inp": "block_sparse_moe.router.layer",
    "ffn_gate_exps": "block_sparse_moe.input_linear",
    "ffn_down_exps": "block_sparse_moe.output_linear"}
GRANITE = {"ffn_gate_inp": "block_sparse_moe.router.layer",
           "ffn_down_exps": "block_sparse_moe.output_linear",
           "ffn_down_shexp": "shared_mlp.output_linear"}
SHARED = {"ffn_%s_shexp" % x: "mlp.shared_experts.%s_proj" % x
          for x in ("gate", "up", "down")}
ERNIE = dict(MOE, exp_probs_b="mlp.moe_statics.e_score_correction_bias", **SHARED)
POST = {"post_attention_norm": "post_attention_layernorm",
        "post_ffw_norm": "post_feedforward_layernorm"}
HUNYUAN = {"attn_q_norm": "self_attn.query_layernorm",
           "attn_k_norm": "self_attn.key_layernorm"}
STARCODER = {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}
BAILING = dict(MOE, exp_probs_b="mlp.gate.expert_bias",
               attn_qkv="attention.query_key_value", attn_output="attention.dense",
               attn_q_norm="attention.query_layernorm",
               attn_k_norm="attention.key_layernorm", **SHARED)
THINKER = {"ffn_gate_inp": "block_sparse_moe.primary_router",
           **{"ffn_%s_exps" % x: "block_sparse_moe.experts.@." + x
              for x in ("gate", "up", "down")}}
LATENT = {"attn_q_a": "self_attn.q_a_proj", "attn_q_b": "self_attn.q_b_proj",
          "attn_q_a_norm": "self_attn.q_a_layernorm",
          "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
          "attn_kv_a_norm": "self_attn.kv_a_layernorm",
          "attn_kv_b": "self_attn.kv_b_proj"}
DEEPSEEK = dict(MOE, exp_probs_b="mlp.gate.e_score_correction_bias", **LATENT, **SHARED)
# Gemma 3n and 4. Names that end in "." have no ".weight".
PER_LAYER = {
    "per_layer_token_embd": "embed_tokens_per_layer",
    "per_layer_model_proj": "per_layer_model_projection",
    "per_layer_proj_norm": "per_layer_projection_norm",
    "altup_proj": "altup_projections.@", "altup_unembd_proj":
        "altup_unembed_projections.@",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm":
        "post_feedforward_layernorm",
    "post_ffw_norm_1": "post_feedforward_layernorm_1",
    "pre_ffw_norm_2": "pre_feedforward_layernorm_2",
    "post_ffw_norm_2": "post_feedforward_layernorm_2",
    "inp_gate": "per_layer_input_gate", "proj": "per_layer_projection",
    "post_norm": "post_per_layer_input_norm", "layer_output_scale": "layer_scalar.",
    "ffn_gate_inp": "router.proj", "ffn_gate_up_exps": "experts.gate_up_proj.",
    "ffn_down_exps": "experts.down_proj.",
    "altup_correct_scale": "altup.correct_output_scale.",
    "altup_correct_coef": "altup.correction_coefs",
    "altup_predict_coef": "altup.prediction_coefs",
    "altup_router": "altup.modality_router", "altup_router_norm": "altup.router_norm",
    "laurel_l": "laurel.linear_left", "laurel_r": "laurel.linear_right",
    "laurel_post_norm": "laurel.post_laurel_norm"}
SCALES = {"ffn_gate_inp": "router.scale", "ffn_down_exps": "router.per_expert_scale"}
BITNET = {"attn_sub_norm": "self_attn.inner_attn_ln", "ffn_sub_norm": "mlp.ffn_layernorm"}
NAMES = {"bitnet": BITNET, "deepseek2": DEEPSEEK, "minicpm3": LATENT, "gemma3n": PER_LAYER, "gemma4": PER_LAYER, "lfm2": LFM2, "lfm2moe": LFM2, "granitehybrid": GRANITE_HYBRID,
         "smollm3": {}, "granite": {}, "granitemoe": GRANITE, "minicpm": {}, "arcee": {},
         "mistral3": {}, "ernie4_5": {}, "ernie4_5-moe": ERNIE, "seed_oss": POST,
         "hunyuan-dense": HUNYUAN, "olmo2": POST, "olmoe": MOE, "exaone4": POST,
         "gemma": {}, "qwen2vl": {}, "qwen3vl": {}, "command-r": {}, "cohere2": {},
         "starcoder2": STARCODER, "nemotron": {}, "phimoe": MIXTRAL,
         "bailingmoe2": BAILING, "smallthinker": THINKER,
         "llama": MIXTRAL, "qwen2": {}, "qwen3": {}, "qwen2moe": MOE, "qwen3moe": MOE,
         "gemma2": GEMMA, "gemma3": GEMMA, "phi2": PHI2, "phi3": FUSED, "stablelm": {}}


# GGUF files of these rotate neighbouring pairs, the folders halves.
PAIRS = ("llama", "smollm3", "granite", "granitemoe", "minicpm", "arcee", "mistral3")


def joined(g, name, other):
    """A matrix, or each slice of a stack, with the other one's rows behind its own."""
    (ne, a), (_, b) = g.tensors[name], g.tensors[other]
    n = ne[0] * ne[1]
    out = array.array("f")
    for i in range(len(a) // n):
        out.extend(a[i * n:(i + 1) * n])
        out.extend(b[i * n:(i + 1) * n])
    return [*ne[2:], 2 * ne[1], ne[0]], out


def joint_kv_b(g, keys, values):
    """The rows of keys of each head, which GGUF files have transposed, and of values."""
    (ne, k), (v_ne, v) = g.tensors[keys], g.tensors[values]
    n, rank, rows = ne[0], ne[1], v_ne[1]
    out = array.array("f")
    for h in range(ne[2]):
        head = k[h * n * rank:(h + 1) * n * rank]
        for i in range(n):
            out.extend(head[i::n])
        out.extend(v[h * rows * rank:(h + 1) * rows * rank])
    return [ne[2] * (n + rows), rank], out


def hybrid_tensors_of(g, arch):
    """The same of models with recurrent layers."""
    out = {}
    for name, (ne, v) in g.tensors.items():
        if not name.startswith("blk."):
            stem = name.rpartition(".")[0]
            hf = {"token_embd_norm": "model.embedding_norm"}.get(stem) or OUTER[stem]
            out[hf + ".weight"] = (ne[::-1], v)
            continue
        part = name.split(".", 2)[2]
        stem = part.rpartition(".")[0] if "." in part else part
        kind = part[len(stem):]
        layer = "model.layers.%s." % name.split(".")[1]
        if stem.startswith("ffn_up") and arch == "granitehybrid":
            continue  # with gate
        hf = NAMES[arch].get(stem) or INNER[stem]
        if stem.startswith("ffn_gate") and stem != "ffn_gate_inp" and \
                arch == "granitehybrid":
            shape, v = joined(g, name, name.replace("gate", "up"))
            ne = shape[::-1]
        if "@" in hf:
            n = ne[0] * ne[1]
            for e in range(ne[2]):
                out[layer + hf.replace("@", str(e)) + kind] = (
                    ne[1::-1], v[e * n:(e + 1) * n])
        elif stem in ("ssm_a", "ssm_d", "ssm_dt", "exp_probs_b"):
            if stem == "ssm_a":
                v = array.array("f", (math.log(-x) for x in v))
            out[layer + hf] = ([len(v)], v)
        elif stem in ("shortconv.conv", "ssm_conv1d") and kind == ".weight":
            out[layer + hf + kind] = ([ne[1], 1, ne[0]], v)
        else:
            out[layer + hf + kind] = (ne[::-1], v)
    return out


def hybrid_config(g, arch, kv):
    """Members of config.json that others have under other names, or not at all."""
    heads = kv("attention.head_count_kv")
    other = "conv" if arch.startswith("lfm2") else "mamba"
    c = {"num_key_value_heads": max(heads),
         "layer_types": [("full_attention" if other == "conv" else "attention")
                         if n else other for n in heads]}
    if other == "conv":
        c.update(norm_eps=kv("attention.layer_norm_rms_epsilon"), conv_bias=False,
                 conv_L_cache=kv("shortconv.l_cache"), rms_norm_eps=None)
    if arch == "lfm2":  # two thirds, rounded up
        c.update(intermediate_size=None, block_multiple_of=32, block_ffn_dim_multiplier=1.0,
                 block_ff_dim=kv("feed_forward_length") * 3 // 2 - 40,
                 block_auto_adjust_ff_dim=True)
    if arch == "lfm2moe":
        c.update(num_experts=kv("expert_count"), norm_topk_prob=True,
                 num_experts_per_tok=kv("expert_used_count"), use_expert_bias=True,
                 moe_intermediate_size=kv("expert_feed_forward_length"),
                 num_dense_layers=kv("leading_dense_block_count"))
    if arch == "granitehybrid":
        c.update(
            mamba_n_heads=kv("ssm.time_step_rank"), mamba_n_groups=kv("ssm.group_count"),
            mamba_d_head=kv("ssm.inner_size") // kv("ssm.time_step_rank"),
            mamba_d_state=kv("ssm.state_size"), mamba_d_conv=kv("ssm.conv_kernel"),
            mamba_conv_bias=True, mamba_proj_bias=False, position_embedding_type="nope",
            embedding_multiplier=kv("embedding_scale"), hidden_act="silu",
            residual_multiplier=kv("residual_scale"),
            attention_multiplier=kv("attention.scale"), logits_scaling=kv("logit_scale"),
            num_local_experts=kv("expert_count"),
            num_experts_per_tok=kv("expert_used_count"),
            shared_intermediate_size=kv("expert_shared_feed_forward_length"))
    return {"lfm2": "lfm2", "lfm2moe": "lfm2_moe",
            "granitehybrid": "granitemoehybrid"}[arch], c


def per_layer_tensors_of(g):
    """The same of Gemma 3n and 4, as part of a model that also sees."""
    out = {"model.vision_tower.patch.weight": ([1, 1], array.array("f", [1.0]))}
    for name, (ne, v) in g.tensors.items():
        stem, _, kind = name.rpartition(".")
        if stem == "rope_freqs":
            continue
        where, part = "model.language_model.", stem
        if name.startswith("blk."):
            _, layer, part = stem.split(".")
            where += "layers.%s." % layer
            hf = SCALES[part] + "." if kind == "scale" else (
                PER_LAYER.get(part) or INNER[part])
        else:
            hf = PER_LAYER.get(part) or OUTER[part][len("model."):]
        full = where + (hf[:-1] if hf.endswith(".") else hf + "." + kind)
        if "@" not in full:
            out[full] = (ne[::-1], v)
            continue
        n = ne[0] * ne[1]
        for i in range(ne[2]):
            out[full.replace("@", str(i))] = (ne[1::-1], v[i * n:(i + 1) * n])
    return out


def per_layer_config(g, arch, kv, c):
    """config.json of these, with the text model's members in text_config."""
    def largest(key):
        v = kv(key)
        return max(v) if isinstance(v, list) else v

    windows = kv("attention.sliding_window_pattern")
    kv_heads, widths = kv("attention.head_count_kv"), kv("feed_forward_length")
    text = {
        **{k: c[k] for k in ("hidden_size", "num_hidden_layers", "num_attention_heads",
                             "rms_norm_eps", "vocab_size", "max_position_embeddings")
           if k in c},
        "model_type": arch + "_text", "hidden_activation": "gelu_pytorch_tanh",
        "attention_bias": False, "sliding_window": kv("attention.sliding_window"),
        "layer_types": ["sliding_attention" if w else "full_attention" for w in windows],
        "num_key_value_heads": largest("attention.head_count_kv"),
        "num_kv_shared_layers": kv("attention.shared_kv_layers"),
        "hidden_size_per_layer_input": kv("embedding_length_per_layer_input"),
        "final_logit_softcapping": kv("final_logit_softcapping")}
    if arch == "gemma3n":
        text.update(
            head_dim=kv("attention.key_length"), intermediate_size=widths,
            rope_theta=kv("rope.freq_base"), altup_num_inputs=kv("altup.num_inputs"),
            rope_local_base_freq=kv("rope.freq_base_swa"), altup_active_idx=0,
            activation_sparsity_pattern=[0.95 if s > 0 else 0.0
                                         for s in kv("activation_sparsity_scale")])
        return arch, {"text_config": text}
    turning = list(g.tensors["rope_freqs.weight"][1])
    text.update(
        head_dim=kv("attention.key_length_swa"),
        global_head_dim=kv("attention.key_length"),
        intermediate_size=min(widths) if isinstance(widths, list) else widths,
        use_double_wide_mlp=isinstance(widths, list),
        attention_k_eq_v=isinstance(kv_heads, list),
        num_global_key_value_heads=(min(kv_heads) if isinstance(kv_heads, list)
                                    else None),
        enable_moe_block=kv("expert_count") is not None, num_experts=kv("expert_count"),
        top_k_experts=kv("expert_used_count"),
        moe_intermediate_size=kv("expert_feed_forward_length"),
        rope_parameters={
            "full_attention": {"rope_type": "proportional",
                               "rope_theta": kv("rope.freq_base"),
                               "partial_rotary_factor":
                                   turning.count(1.0) / len(turning)},
            "sliding_attention": {"rope_type": "default",
                                  "rope_theta": kv("rope.freq_base_swa")}})
    return arch, {"text_config": text, "tie_word_embeddings": True}


def tensors_of(g, arch):
    """name -> (shape, values), as the folder has them."""
    if arch in hf_fused.NAMES:
        return hf_fused.tensors_of(g, arch)
    if NAMES[arch] is PER_LAYER:
        return per_layer_tensors_of(g)
    if NAMES[arch] in (LFM2, GRANITE_HYBRID):
        return hybrid_tensors_of(g, arch)
    heads = g.kv[arch + ".attention.head_count"]
    kv_heads = g.kv.get(arch + ".attention.head_count_kv", heads)
    out = {}
    for name, (ne, v) in g.tensors.items():
        stem, _, kind = name.rpartition(".")
        if name.startswith("rope_f"):
            continue
        if (arch.startswith("gemma") or (arch == "nemotron" and kind == "weight")) and (
                stem.endswith("norm")):
            v = array.array("f", (x - 1.0 for x in v))
        if not name.startswith("blk."):
            hf = OUTER[stem]
            if arch == "phi2" and stem == "output_norm":
                hf = "model.final_layernorm"
            if arch == "bailingmoe2" and stem == "token_embd":
                hf = "model.word_embeddings"
            out[hf + "." + kind] = (ne[::-1], v)
            continue
        _, layer, part = stem.split(".")
        hf = NAMES[arch].get(part) or INNER.get(part)
        if arch == "seed_oss" and part == "post_attention_norm":
            hf = "post_attention_layernorm"
        full = "model.layers.%s.%s.%s" % (layer, hf, kind)
        if part in ("attn_k_b", "attn_v_b"):
            if part == "attn_k_b":
                full = "model.layers.%s.self_attn.kv_b_proj.weight" % layer
                out[full] = joint_kv_b(g, name, name.replace("k_b", "v_b"))
            continue
        if part == "exp_probs_b":
            out[full[:-len(".bias")]] = ([1, ne[0]] if arch.startswith("ernie")
                                         else ne, v)
            continue
        if arch == "granitemoe" and part in ("ffn_gate_exps", "ffn_gate_shexp",
                                             "ffn_up_exps", "ffn_up_shexp"):
            where = "block_sparse_moe" if part.endswith("exps") else "shared_mlp"
            if "gate" in part:
                out["model.layers.%s.%s.input_linear.weight" % (layer, where)] = joined(
                    g, name, name.replace("gate", "up"))
            continue
        if arch in PAIRS and part in ("attn_q", "attn_k"):
            v = halves(v, ne, heads if part == "attn_q" else kv_heads)
        if arch == "bitnet" and len(ne) == 2:
            v = hf_fused.masters(v)
        if arch == "phi2" and part == "attn_qkv":
            n = len(v) // 3
            for i, x in enumerate("qkv"):
                full = "model.layers.%s.self_attn.%s_proj.%s" % (layer, x, kind)
                out[full] = ([ne[1] // 3, ne[0]] if len(ne) == 2 else [ne[0] // 3],
                             v[i * n:(i + 1) * n])
        elif "@" in full:
            n = ne[0] * ne[1]
            for e in range(ne[2]):
                out[full.replace("@", str(e))] = (ne[1::-1], v[e * n:(e + 1) * n])
        elif part == "ffn_gate_inp_shexp":
            out[full] = ([1, ne[0]], v)
        else:
            out[full] = (ne[::-1], v)
    return out


def config_of(g, arch):
    if arch in hf_fused.NAMES:
        return {k: v for k, v in hf_fused.config_of(g, arch).items() if v is not None}

    def kv(key, missing=None):
        return g.kv.get(arch + "." + key, missing)

    layers, heads = kv("block_count"), kv("attention.head_count")
    width = kv("embedding_length")
    head_dim = kv("attention.key_length", width // heads)
    c = {"hidden_size": width, "num_hidden_layers": kv("block_count"),
         "intermediate_size": kv("feed_forward_length"), "num_attention_heads": heads,
         "num_key_value_heads": kv("attention.head_count_kv", heads),
         "max_position_embeddings": kv("context_length"),
         "rope_theta": kv("rope.freq_base", 10000.0), "vocab_size": kv("vocab_size"),
         "tie_word_embeddings": "output.weight" not in g.tensors}
    if kv("attention.layer_norm_rms_epsilon") is not None:
        c["rms_norm_eps"] = kv("attention.layer_norm_rms_epsilon")
    else:
        c["layer_norm_eps"] = kv("attention.layer_norm_epsilon")
    if head_dim != width // heads or arch in ("qwen3", "qwen3moe", "gemma2", "gemma3"):
        c["head_dim"] = head_dim
    if arch == "starcoder2":
        c["norm_epsilon"] = c.pop("layer_norm_eps")
    if arch == "nemotron":
        c["norm_eps"] = c.pop("layer_norm_eps")
    if kv("attention.key_length"):
        c["head_dim"] = head_dim
    silu = {"hidden_act": "silu"}
    window = kv("attention.sliding_window")
    windows = {"sliding_window": window, "layer_types": [
        "sliding_attention" if window and (i + 1) % 4 else "full_attention"
        for i in range(layers)]}
    yarn = {"type": "yarn", "factor": kv("rope.scaling.factor"),
            "original_max_position_embeddings":
                kv("rope.scaling.original_context_length")}
    routed = {"num_experts_per_tok": kv("expert_used_count"),
              "moe_intermediate_size": kv("expert_feed_forward_length")}
    experts = kv("expert_count")
    granite = {**silu, "embedding_multiplier": kv("embedding_scale"),
               "residual_multiplier": kv("residual_scale"),
               "attention_multiplier": kv("attention.scale"),
               "logits_scaling": kv("logit_scale")}
    factors = {x: list(g.tensors["rope_factors_%s.weight" % x][1])
               for x in ("short", "long") if "rope_factors_%s.weight" % x in g.tensors}
    longrope = factors and {
        "rope_type": "longrope", "short_factor": factors["short"],
        "long_factor": factors["long"], "original_max_position_embeddings":
            kv("rope.scaling.original_context_length", kv("context_length"))}
    sections = kv("rope.dimension_sections", [])[:3]
    rot = kv("rope.dimension_count", head_dim)
    latent = {**silu, "kv_lora_rank": kv("attention.kv_lora_rank"),
              "q_lora_rank": kv("attention.q_lora_rank"), "qk_rope_head_dim": rot,
              "num_key_value_heads": heads, "head_dim": None}
    latent["qk_nope_head_dim"] = kv("attention.key_length_mla", head_dim) - rot
    m = 10 * kv("rope.scaling.yarn_log_multiplier", 0)
    if rot != head_dim and not latent["kv_lora_rank"]:
        c["partial_rotary_factor"] = rot / head_dim
    if NAMES[arch] is PER_LAYER:
        kind, c = per_layer_config(g, arch, kv, c)
        return {"model_type": kind, **c}
    extra = hybrid_config(g, arch, kv) if NAMES[arch] in (LFM2, GRANITE_HYBRID) else {
        "deepseek2": ("deepseek_v3" if kv("expert_gating_func") == 2 else "deepseek_v2", {
            **latent, **routed, "n_routed_experts": experts,
            "v_head_dim": kv("attention.value_length_mla",
                             kv("attention.value_length")),
            "n_shared_experts": kv("expert_shared_count"), "moe_layer_freq": 1,
            "scoring_func": "sigmoid" if kv("expert_gating_func") == 2 else "softmax",
            "topk_method": "noaux_tc" if kv("expert_gating_func") == 2 else "greedy",
            "n_group": kv("expert_group_count"),
            "topk_group": kv("expert_group_used_count"),
            "norm_topk_prob": bool(kv("expert_weights_norm")),
            "routed_scaling_factor": kv("expert_weights_scale"),
            "first_k_dense_replace": kv("leading_dense_block_count"),
            "rope_scaling": dict(yarn, mscale=m, mscale_all_dim=m)}),
        "bitnet": ("bitnet", {**silu, "architectures": ["BitnetForCausalLM"],
                              "attention_bias": False, "weight_bits": 1,
                              "input_bits": 8}),
        "minicpm3": ("minicpm3", {**latent, "scale_emb": 12, "scale_depth": 1.4,
                                  "dim_model_base": 256,
                                  "rope_scaling": longrope or None}),
        "smollm3": ("smollm3", {**silu, "use_sliding_window": False, "no_rope_layers": [
            int((i + 1) % 4 != 0) for i in range(layers)]}),
        "granite": ("granite", granite),
        "granitemoe": ("granitemoeshared" if kv("expert_shared_feed_forward_length")
                       else "granitemoe",
                       {**granite, **routed, "num_local_experts": experts,
                        "shared_intermediate_size":
                            kv("expert_shared_feed_forward_length")}),
        "minicpm": ("minicpm", {**silu, "scale_emb": kv("embedding_scale"),
                                "scale_depth":
                                    (kv("residual_scale") or 0) * layers ** 0.5,
                                "dim_model_base": width / (kv("logit_scale") or 1),
                                "rope_scaling": longrope or None}),
        "arcee": ("arcee", {"hidden_act": "relu2", "rope_scaling": yarn}),
        "mistral3": ("ministral3", {**silu, "rope_parameters": dict(
            yarn, mscale=1.0, mscale_all_dim=1.0, rope_theta=c["rope_theta"],
            llama_4_scaling_beta=kv("attention.temperature_scale"))}),
        "ernie4_5": ("ernie4_5", silu),
        "ernie4_5-moe": ("ernie4_5_moe",
                         {**silu, **routed, "moe_num_experts": experts,
                          "moe_k": kv("expert_used_count"), "moe_layer_interval": 1,
                          "moe_num_shared_experts": kv("expert_shared_count"),
                          "moe_layer_start_index": kv("leading_dense_block_count")}),
        "seed_oss": ("seed_oss", silu),
        "hunyuan-dense": ("hunyuan_v1_dense", {
            **silu, "use_qk_norm": True, "rope_theta": 10000.0,
            "rope_scaling": {"type": "dynamic", "factor": 1.0, "alpha": 1000.0}}),
        "olmo2": ("olmo3" if window else "olmo2",
                  {**silu, **windows, "rope_scaling": dict(
                      yarn, attention_factor=kv("rope.scaling.yarn_attn_factor"))
                   if window else None}),
        "olmoe": ("olmoe", {**silu, **routed, "num_experts": experts,
                            "norm_topk_prob": False}),
        "exaone4": ("exaone4", {**silu, **windows}),
        "gemma": ("gemma", {"hidden_act": "gelu"}),
        "qwen2vl": ("qwen2_vl", {**silu, "rope_scaling": {"type": "mrope",
                                                          "mrope_section": sections}}),
        "qwen3vl": ("qwen3_vl", {**silu, "rope_scaling": {"rope_type": "default",
                                                          "mrope_section": sections}}),
        "command-r": ("cohere", {**silu, "logit_scale": kv("logit_scale")}),
        "cohere2": ("cohere2", {**silu, **windows, "logit_scale": kv("logit_scale")}),
        "starcoder2": ("starcoder2", {"hidden_act": "gelu_pytorch_tanh",
                                      "use_bias": True}),
        "nemotron": ("nemotron", {"hidden_act": "relu2"}),
        "phimoe": ("phimoe", {**silu, **routed, "num_local_experts": experts,
                              "rope_scaling": longrope or None}),
        "bailingmoe2": ("bailing_moe_v2",
                        {**silu, **routed, "num_experts": experts,
                         "score_function": "sigmoid", "use_qk_norm": True,
                         "num_shared_experts": kv("expert_shared_count"),
                         "n_group": kv("expert_group_count"),
                         "topk_group": kv("expert_group_used_count"),
                         "routed_scaling_factor": kv("expert_weights_scale"),
                         "norm_topk_prob": True, "num_nextn_predict_layers": 0,
                         "first_k_dense_replace": kv("leading_dense_block_count")}),
        "smallthinker": ("smallthinker", {
            "moe_num_primary_experts": experts, "norm_topk_prob": True,
            "moe_num_active_primary_experts": kv("expert_used_count"),
            "moe_ffn_hidden_size": kv("expert_feed_forward_length"),
            "moe_primary_router_apply_softmax": kv("expert_gating_func") == 1,
            "sliding_window_size": window,
            "sliding_window_layout": [int(bool(window) and i % 4 != 0)
                                      for i in range(layers)],
            "rope_layout": [int(not window or i % 4 != 0) for i in range(layers)]}),
        "llama": ("mixtral" if kv("expert_count") else "llama",
                  {"hidden_act": "silu", "num_local_experts": kv("expert_count"),
                   "num_experts_per_tok": kv("expert_used_count"),
                   "sliding_window": kv("attention.sliding_window")}),
        "qwen2": ("qwen2", {"hidden_act": "silu", "use_sliding_window": False}),
        "qwen3": ("qwen3", {"hidden_act": "silu"}),
        "qwen2moe": ("qwen2_moe",
                     {"num_experts": kv("expert_count"), "norm_topk_prob": False,
                      "num_experts_per_tok": kv("expert_used_count"),
                      "moe_intermediate_size": kv("expert_feed_forward_length"),
                      "shared_expert_intermediate_size":
                          kv("expert_shared_feed_forward_length")}),
        "qwen3moe": ("qwen3_moe",
                     {"num_experts": kv("expert_count"), "norm_topk_prob": True,
                      "num_experts_per_tok": kv("expert_used_count"),
                      "mlp_only_layers": [], "decoder_sparse_step": 1,
                      "moe_intermediate_size": kv("expert_feed_forward_length")}),
        "gemma2": ("gemma2", {"hidden_activation": "gelu_pytorch_tanh",
                              "attn_logit_softcapping": kv("attn_logit_softcapping"),
                              "final_logit_softcapping": kv("final_logit_softcapping"),
                              "sliding_window": kv("attention.sliding_window"),
                              "query_pre_attn_scalar": head_dim}),
        "gemma3": ("gemma3_text", {"hidden_activation": "gelu_pytorch_tanh",
                                   "sliding_window": kv("attention.sliding_window"),
                                   "query_pre_attn_scalar": head_dim}),
        "phi2": ("phi", {"hidden_act": "gelu_new"}),
        "phi3": ("phi3", {"hidden_act": "silu",
                          "sliding_window": kv("attention.sliding_window"),
                          "original_max_position_embeddings":
                              kv("rope.scaling.original_context_length")}),
        "stablelm": ("stablelm", {"hidden_act": "silu",
                                  "use_parallel_residual":
                                      kv("use_parallel_residual", False)}),
    }[arch]
    c["model_type"] = extra[0]
    c.update(extra[1])
    c = {k: v for k, v in c.items() if v is not None}
    return c


def llama3_scaling(g, config):
    """rope_scaling for factors that are 1 up to a pair and the same number behind it:
    Llama 3.1's rule with next to nothing between its two limits."""
    want = list(g.tensors["rope_freqs.weight"][1])
    kept, before = want.count(1.0), 8192
    if want != sorted(want) or want.count(want[-1]) + kept != len(want):
        raise SystemExit("rope_freqs.weight is not of a kind known here")
    turns = [before * config["rope_theta"] ** (-i / len(want)) / 6.283185307179586
             for i in (kept - 1, kept)]
    middle = (turns[0] * turns[1]) ** 0.5
    return {"rope_type": "llama3", "factor": want[-1],
            "low_freq_factor": middle * 0.99, "high_freq_factor": middle * 1.01,
            "original_max_position_embeddings": before}


def packed(values, kind):
    if kind == "F32":
        return values.tobytes()
    if kind == "F16":
        return struct.pack("<%de" % len(values), *values)
    bits = struct.unpack("<%dI" % len(values), values.tobytes())
    return struct.pack("<%dH" % len(bits),
                       *((b + 0x7fff + (b >> 16 & 1)) >> 16 for b in bits))


def write_file(path, tensors, kind):
    header, data = {"__metadata__": {"format": "pt"}}, []
    at = 0
    for name, (shape, values) in tensors:
        own = kind if len(shape) > 1 else "F32"  # vectors lose nothing
        if isinstance(values, bytes):
            own, raw = "U8", values
        else:
            raw = packed(values, own)
        header[name] = {"dtype": own, "shape": list(shape),
                        "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data.append(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("gguf")
    p.add_argument("out")
    p.add_argument("--type", default="F32", choices=["F32", "F16", "BF16"])
    p.add_argument("--shards", type=int, default=1)
    a = p.parse_args()
    g = Gguf(a.gguf)
    arch = g.kv["general.architecture"]
    config = config_of(g, arch)
    if ("rope_freqs.weight" in g.tensors and "rope_scaling" not in config and
            "text_config" not in config):
        config["rope_scaling"] = llama3_scaling(g, config)
    tensors = sorted(tensors_of(g, arch).items())
    os.makedirs(a.out, exist_ok=True)
    with open(os.path.join(a.out, "config.json"), "w") as f:
        json.dump(config, f, indent=2)
    if a.shards == 1:
        write_file(os.path.join(a.out, "model.safetensors"), tensors, a.type)
        return
    where = {}
    for s in range(a.shards):
        file = "model-%05d-of-%05d.safetensors" % (s + 1, a.shards)
        part = tensors[s::a.shards]
        write_file(os.path.join(a.out, file), part, a.type)
        where.update((name, file) for name, _ in part)
    with open(os.path.join(a.out, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {}, "weight_map": where}, f)


if __name__ == "__main__":
    main()
