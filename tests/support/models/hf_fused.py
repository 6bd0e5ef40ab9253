# SPDX-License-Identifier: MIT
"""Folders of models whose folder has another order of rows, other formats or factors of
its own: the inverse of what the engine does, for make_hf_folder.py.
"""
import array
import math


def rows_of(v, k):
    return [v[i:i + k] for i in range(0, len(v), k)]


def flat(rows):
    out = array.array("f")
    for r in rows:
        out.extend(r)
    return out


def transposed(ne, v):
    """[out][in] of each slice to [in][out]."""
    k, n = ne[0], ne[1]
    out = array.array("f")
    for s in range(len(v) // (k * n)):
        one = v[s * k * n:(s + 1) * k * n]
        for i in range(k):
            out.extend(one[i::k])
    return [*ne[2:], k, n], out


def grouped(parts, n_groups, k):
    """Several matrices to groups of rows, a share of each in every group."""
    out = []
    parts = [rows_of(p, k) for p in parts]
    for g in range(n_groups):
        for p in parts:
            n = len(p) // n_groups
            out.extend(p[g * n:(g + 1) * n])
    return flat(out)


def alternating(a, b, k):
    return flat(x for pair in zip(rows_of(a, k), rows_of(b, k)) for x in pair)


# ---- names -----------------------------------------------------------------------

GPT2 = {"token_embd": "wte", "position_embd": "wpe", "output_norm": "ln_f",
        "output": "lm_head", "attn_norm": "h.#.ln_1", "attn_qkv": "h.#.attn.c_attn",
        "attn_output": "h.#.attn.c_proj", "ffn_norm": "h.#.ln_2",
        "ffn_up": "h.#.mlp.c_fc", "ffn_down": "h.#.mlp.c_proj"}
N = "gpt_neox.layers.#."
NEOX = {"token_embd": "gpt_neox.embed_in", "output_norm": "gpt_neox.final_layer_norm",
        "output": "embed_out", "attn_norm": N + "input_layernorm",
        "attn_qkv": N + "attention.query_key_value",
        "attn_output": N + "attention.dense", "ffn_norm": N + "post_attention_layernorm",
        "ffn_up": N + "mlp.dense_h_to_4h", "ffn_down": N + "mlp.dense_4h_to_h"}
T = "transformer.h.#."
FALCON = {"token_embd": "transformer.word_embeddings", "output_norm": "transformer.ln_f",
          "output": "lm_head", "attn_norm": T + "input_layernorm",
          "attn_norm_2": T + "ln_attn", "attn_qkv": T + "self_attention.query_key_value",
          "attn_output": T + "self_attention.dense", "ffn_up": T + "mlp.dense_h_to_4h",
          "ffn_down": T + "mlp.dense_4h_to_h"}
L = "model.layers.#."
COMMON = {"token_embd": "model.embed_tokens", "output_norm": "model.norm",
          "output": "lm_head", "attn_norm": L + "input_layernorm",
          "ffn_norm": L + "post_attention_layernorm",
          "ffn_gate": L + "mlp.gate_proj", "ffn_up": L + "mlp.up_proj",
          "ffn_down": L + "mlp.down_proj", "attn_output": L + "self_attn.o_proj",
          "ffn_gate_inp": L + "mlp.gate",
          **{"attn_" + x: L + "self_attn.%s_proj" % x for x in "qkv"},
          **{"attn_%s_norm" % x: L + "self_attn.%s_norm" % x for x in "qk"},
          **{"ffn_%s_exps" % x: L + "mlp.experts.@.%s_proj" % x
             for x in ("gate", "up", "down")},
          **{"ffn_%s_shexp" % x: L + "mlp.shared_experts.%s_proj" % x
             for x in ("gate", "up", "down")}}
INTERN = dict(COMMON, token_embd="model.tok_embeddings", output="output",
              attn_norm=L + "attention_norm", ffn_norm=L + "ffn_norm",
              attn_q=L + "attention.wqkv", attn_output=L + "attention.wo",
              ffn_gate=L + "feed_forward.w1", ffn_down=L + "feed_forward.w2",
              ffn_up=L + "feed_forward.w3")
APERTUS = dict(COMMON, attn_norm=L + "attention_layernorm",
               ffn_norm=L + "feedforward_layernorm")
GLM = dict(COMMON, post_attention_norm=L + "post_attention_layernorm",
           exp_probs_b=L + "mlp.gate.e_score_correction_bias",
           **{"nextn." + a: L + b for a, b in (
               ("eh_proj", "eh_proj"), ("enorm", "enorm"), ("hnorm", "hnorm"),
               ("shared_head_norm", "shared_head.norm"),
               ("shared_head_head", "shared_head.head"),
               ("embed_tokens", "embed_tokens"))})
OSS = dict(COMMON, post_attention_norm=L + "post_attention_layernorm",
           attn_sinks=L + "self_attn.sinks", ffn_gate_inp=L + "mlp.router")
M = "backbone.layers.#.mixer."
SSM = {"ssm_in": "in_proj", "ssm_conv1d": "conv1d", "ssm_dt": "dt_bias",
       "ssm_a": "A_log", "ssm_d": "D", "ssm_norm": "norm", "ssm_out": "out_proj"}
MAMBA2 = {"token_embd": "backbone.embeddings", "output_norm": "backbone.norm_f",
          "output": "lm_head", "attn_norm": "backbone.layers.#.norm",
          **{k: M + v for k, v in SSM.items()}}
NEMOTRON = dict(MAMBA2, attn_output=M + "o_proj", ffn_up=M + "up_proj",
                ffn_down=M + "down_proj", ffn_gate_inp=M + "gate",
                exp_probs_b=M + "gate.e_score_correction_bias",
                ffn_up_exps=M + "experts.@.up_proj",
                ffn_down_exps=M + "experts.@.down_proj",
                ffn_up_shexp=M + "shared_experts.up_proj",
                ffn_down_shexp=M + "shared_experts.down_proj",
                **{"attn_" + x: M + x + "_proj" for x in "qkv"})
FALCON_H1 = dict(COMMON, output_norm="model.final_layernorm",
                 ffn_norm=L + "pre_ff_layernorm",
                 **{"ffn_" + x: L + "feed_forward.%s_proj" % x
                    for x in ("gate", "up", "down")},
                 **{k: L + "mamba." + v for k, v in SSM.items()})
QN = L + "linear_attn."
NEXT = dict(COMMON, post_attention_norm=L + "post_attention_layernorm",
            attn_qkv=QN + "in_proj_qkvz", ssm_ba=QN + "in_proj_ba",
            ssm_conv1d=QN + "conv1d", ssm_dt=QN + "dt_bias", ssm_a=QN + "A_log",
            ssm_norm=QN + "norm", ssm_out=QN + "out_proj",
            ffn_gate_inp_shexp=L + "mlp.shared_expert_gate",
            **{"ffn_%s_shexp" % x: L + "mlp.shared_expert.%s_proj" % x
               for x in ("gate", "up", "down")})
QWEN35 = dict(NEXT, attn_qkv=QN + "in_proj_qkv", attn_gate=QN + "in_proj_z",
              ssm_beta=QN + "in_proj_b", ssm_alpha=QN + "in_proj_a",
              **{"nextn." + a: "mtp." + b for a, b in (
                  ("eh_proj", "fc"), ("enorm", "pre_fc_norm_embedding"),
                  ("hnorm", "pre_fc_norm_hidden"), ("shared_head_norm", "norm"))})
NAMES = {"gpt2": GPT2, "gptneox": NEOX, "falcon": FALCON, "internlm2": INTERN,
         "apertus": APERTUS, "glm4moe": GLM, "gpt-oss": OSS, "mamba2": MAMBA2,
         "nemotron_h": NEMOTRON, "nemotron_h_moe": NEMOTRON, "falcon-h1": FALCON_H1,
         "qwen3next": NEXT, "qwen35": QWEN35}

# ---- factors of Falcon-H1, besides its weights ------------------------------------

FACTORS = {"token_embd": 4.0, "output": 0.5, "attn_q": 2.0, "attn_k": 2.0 * 0.25,
           "attn_v": 2.0, "attn_output": 0.75, "ssm_out": 1.25, "ffn_gate": 1.5,
           "ffn_down": 0.375}
SSM_FACTORS = [0.5, 2.0, 0.25, 4.0, 1.5]
SSM_IN = 3.0


def unscaled(g, stem, ne, v):
    if stem == "ssm_in":
        state = g.kv["falcon-h1.ssm.group_count"] * g.kv["falcon-h1.ssm.state_size"]
        inner = g.kv["falcon-h1.ssm.inner_size"]
        ends = [inner, 2 * inner, 2 * inner + state, 2 * inner + 2 * state, ne[1]]
        out, at = array.array("f"), 0
        for end, by in zip(ends, SSM_FACTORS):
            out.extend(x / (by * SSM_IN) for x in v[at * ne[0]:end * ne[0]])
            at = end
        return out
    by = FACTORS.get(stem, 1.0)
    return array.array("f", (x / by for x in v))


# ---- BitNet -----------------------------------------------------------------------

def masters(v):
    """Floats of many magnitudes that the model rounds to the ternary values v: their
    mean is v's magnitude, and where v is 0 they are less than half of it."""
    s = max(map(abs, v))
    small = [s * 0.45 * (i * 7919 % 101) / 101 for i in range(len(v))]
    where = [i for i, x in enumerate(v) if x]
    mean = (s * len(v) - sum(y for x, y in zip(v, small) if not x)) / len(where)
    out = array.array("f", (-y if i % 2 else y for i, y in enumerate(small)))
    for nth, i in enumerate(where):
        apart = 0 if nth == len(where) - 1 and nth % 2 == 0 else 0.5 - nth % 2
        out[i] = math.copysign(mean + apart * s, v[i])
    return out


# ---- MXFP4 -----------------------------------------------------------------------

def mx_parts(raw, order):
    """GGUF's blocks of the matrices in order, row by row, to nibbles and scales."""
    nibbles, scales = bytearray(), bytearray()
    for blocks in zip(*[[raw_one[i:i + n] for i in range(0, len(raw_one), n)]
                        for raw_one, n in zip(raw, order)]):
        for row in blocks:
            for b in range(0, len(row), 17):
                q = row[b + 1:b + 17]
                codes = [x & 15 for x in q] + [x >> 4 for x in q]
                scales.append(row[b])
                nibbles.extend(codes[i] | codes[i + 1] << 4 for i in range(0, 32, 2))
    return bytes(nibbles), bytes(scales)


def put_experts_oss(g, out, layer, blk):
    gate, up, down = ("%s.ffn_%s_exps" % (blk, x) for x in ("gate", "up", "down"))
    to = L.replace("#", layer) + "mlp.experts."
    ne, _ = g.tensors[gate + ".weight"]
    if gate + ".weight" in g.raw:
        row = ne[0] // 32 * 17
        nib, sc = mx_parts([g.raw[gate + ".weight"], g.raw[up + ".weight"]], [row, row])
        shape = [ne[2], 2 * ne[1], ne[0] // 32]
        out[to + "gate_up_proj_blocks"] = (shape + [16], nib)
        out[to + "gate_up_proj_scales"] = (shape, sc)
        ne, _ = g.tensors[down + ".weight"]
        nib, sc = mx_parts([g.raw[down + ".weight"]], [ne[0] // 32 * 17])
        out[to + "down_proj_blocks"] = ([ne[2], ne[1], ne[0] // 32, 16], nib)
        out[to + "down_proj_scales"] = ([ne[2], ne[1], ne[0] // 32], sc)
    else:
        both = alternating(g.tensors[gate + ".weight"][1],
                           g.tensors[up + ".weight"][1], ne[0])
        out[to + "gate_up_proj"] = transposed([ne[0], 2 * ne[1], ne[2]], both)
        out[to + "down_proj"] = transposed(*g.tensors[down + ".weight"])
    ne, a = g.tensors[gate + ".bias"]
    both = alternating(a, g.tensors[up + ".bias"][1], 1)
    out[to + "gate_up_proj_bias"] = ([ne[1], 2 * ne[0]], both)
    out[to + "down_proj_bias"] = (g.tensors[down + ".bias"][0][::-1],
                                  g.tensors[down + ".bias"][1])


# ---- tensors ---------------------------------------------------------------------

def values_together(g, stem, ne, v):
    """Heads of values that share one of keys next to each other, in rows or columns; what
    is in front of them stays."""
    groups, d = g.kv["qwen35.ssm.group_count"], g.kv["qwen35.ssm.state_size"]
    heads = g.kv["qwen35.ssm.time_step_rank"]
    if stem == "ssm_out":
        return flat(values_together(g, "", [1, ne[0]], row) for row in rows_of(v, ne[0]))
    front = 2 * groups * d * ne[0] if stem in ("attn_qkv", "ssm_conv1d") else 0
    own = rows_of(v[front:], (len(v) - front) // heads)
    return v[:front] + flat(own[j * groups + k] for k in range(groups)
                            for j in range(heads // groups))


def fused(g, arch, stem, kind, ne, v, blk):
    """What becomes one tensor with others: (shape, values), or None."""
    kv = lambda key, missing=None: g.kv.get(arch + "." + key, missing)
    heads = kv("attention.head_count")
    groups = kv("attention.head_count_kv", heads)
    if stem == "attn_qkv" and arch in ("gptneox", "falcon"):
        k = ne[0] if kind == ".weight" else 1
        n = len(v) // k
        head = n // (heads + 2 * groups)
        cut = [0, heads * head, (heads + groups) * head, n]
        parts = [v[cut[i] * k:cut[i + 1] * k] for i in range(3)]
        return ne[::-1], grouped(parts, groups, k)
    if stem == "attn_q" and arch == "internlm2":
        from make_hf_folder import halves
        q = halves(v, ne, heads)
        ke, key = g.tensors[blk + ".attn_k.weight"]
        key = halves(key, ke, groups)
        out = grouped([q, key, g.tensors[blk + ".attn_v.weight"][1]], groups, ne[0])
        return [len(out) // ne[0], ne[0]], out
    if stem == "attn_qkv" and arch == "qwen3next":
        groups, d = kv("ssm.group_count"), kv("ssm.state_size")
        k = ne[0]
        parts = [v[:groups * d * k], v[groups * d * k:2 * groups * d * k],
                 v[2 * groups * d * k:], g.tensors[blk + ".attn_gate.weight"][1]]
        out = grouped(parts, groups, k)
        return [len(out) // k, k], out
    return None


VALUES = ("attn_qkv", "attn_gate", "ssm_beta", "ssm_alpha", "ssm_conv1d", "ssm_dt", "ssm_a",
          "ssm_out")

# With others' rows, or the experts' own function.
LEFT_OUT = {"internlm2": ("attn_k", "attn_v"), "qwen3next": ("attn_gate",),
            "gpt-oss": tuple("ffn_%s_exps" % x for x in ("gate", "up", "down"))}


def tensors_of(g, arch):
    out = {}
    names = NAMES[arch]
    for name, (ne, v) in g.tensors.items():
        blk, layer, part = "", "", name
        if name.startswith("blk."):
            layer, part = name.split(".", 2)[1:]
            blk = "blk." + layer
        stem, kind = part, ""
        if part.endswith((".weight", ".bias")):
            stem, dot, kind = part.rpartition(".")
            kind = dot + kind
        if stem.startswith("rope_f"):
            continue
        if arch == "gpt-oss" and part == "ffn_gate_exps.weight":
            put_experts_oss(g, out, layer, blk)
        if stem in LEFT_OUT.get(arch, ()):
            continue
        hf = names[stem].replace("#", layer)
        if arch == "falcon" and stem == "attn_norm" and blk + ".attn_norm_2.weight" in g.tensors:
            hf = hf.replace("input_layernorm", "ln_mlp")
        if arch == "falcon-h1":
            v = unscaled(g, stem, ne, v)
            if stem == "ffn_norm":
                kind = ".weight"
        if (arch in ("qwen3next", "qwen35") and stem.endswith("norm") and
                stem != "ssm_norm"):
            v = array.array("f", (x - 1.0 for x in v))
        if arch == "qwen35" and stem in VALUES:
            v = values_together(g, stem, ne, v)
        if arch == "qwen35" and layer:
            own = g.kv["qwen35.block_count"] - g.kv.get("qwen35.nextn_predict_layers", 0)
            if int(layer) >= own:
                hf = hf.replace("model.layers.%s." % layer,
                                "mtp.layers.%d." % (int(layer) - own))
        together = fused(g, arch, stem, kind, ne, v, blk)
        if together:
            out[hf + kind] = together
        elif arch == "gpt2" and kind == ".weight" and len(ne) == 2 and layer:
            out[hf + kind] = transposed(ne, v)
        elif "@" in hf:
            n = ne[0] * ne[1]
            for e in range(ne[2]):
                out[hf.replace("@", str(e)) + kind] = (ne[1::-1], v[e * n:(e + 1) * n])
        elif stem in ("ssm_a", "ssm_d", "ssm_dt", "exp_probs_b", "attn_sinks"):
            if stem == "ssm_a":
                v = array.array("f", (math.log(-x) for x in v))
            out[hf] = ([len(v)], v)
        elif stem == "ssm_conv1d" and kind == ".weight":
            out[hf + kind] = ([ne[1], 1, ne[0]], v)
        elif stem == "ssm_norm":
            out[hf + kind] = ([len(v)], v)
        elif stem == "ffn_gate_inp_shexp":
            out[hf + kind] = ([1, ne[0]], v)
        else:
            out[hf + kind] = (ne[::-1], v)
    if arch == "apertus":
        for key in ("alpha_p", "alpha_n", "beta", "eps"):
            for i, x in enumerate(g.kv["xielu." + key]):
                out["model.layers.%d.mlp.act_fn.%s" % (i, key)] = (
                    [1], array.array("f", [x]))
    return out


# ---- config.json -----------------------------------------------------------------

def config_of(g, arch):
    def kv(key, missing=None):
        return g.kv.get(arch + "." + key, missing)

    layers, heads = kv("block_count"), kv("attention.head_count")
    width = kv("embedding_length")
    eps = kv("attention.layer_norm_rms_epsilon") or kv("attention.layer_norm_epsilon")
    head = kv("attention.key_length")
    plain = {"hidden_size": width, "num_hidden_layers": layers,
             "num_attention_heads": heads,
             "num_key_value_heads": kv("attention.head_count_kv"), "head_dim": head,
             "intermediate_size": kv("feed_forward_length"), "hidden_act": "silu",
             "max_position_embeddings": kv("context_length"), "rms_norm_eps": eps,
             "rope_theta": kv("rope.freq_base"), "vocab_size": kv("vocab_size"),
             "tie_word_embeddings": "output.weight" not in g.tensors}
    groups = {"n_group": kv("expert_group_count"), "topk_group": kv("expert_group_used_count"),
              "num_experts_per_tok": kv("expert_used_count"), "norm_topk_prob": True,
              "moe_intermediate_size": kv("expert_feed_forward_length"),
              "n_routed_experts": kv("expert_count"),
              "routed_scaling_factor": kv("expert_weights_scale")}
    inner = kv("ssm.inner_size", 0)
    ssm = {"conv_kernel": kv("ssm.conv_kernel"), "n_groups": kv("ssm.group_count"),
           "use_conv_bias": True, "use_bias": False}
    ssm_head = inner // kv("ssm.time_step_rank", 1)
    if arch == "gpt2":
        return {"model_type": "gpt2", "n_embd": width, "n_layer": layers, "n_head": heads,
                "n_positions": kv("context_length"), "n_inner": None,
                "activation_function": "gelu_new", "layer_norm_epsilon": eps}
    if arch == "gptneox":
        rot = kv("rope.dimension_count")
        return {**plain, "model_type": "gpt_neox", "hidden_act": "gelu",
                "rotary_pct": rot * heads / width, "rotary_emb_base": 10000,
                "layer_norm_eps": eps, "use_parallel_residual":
                    kv("use_parallel_residual")}
    if arch == "falcon":
        new = kv("attention.head_count_kv") > 1
        return {"model_type": "falcon", "hidden_size": width, "num_hidden_layers": layers,
                "num_attention_heads": heads, "layer_norm_epsilon": eps, "alibi": False,
                "bias": False, "parallel_attn": True, "multi_query": True,
                "new_decoder_architecture": new,
                "num_kv_heads": kv("attention.head_count_kv") if new else heads}
    if arch == "internlm2":
        return {**plain, "model_type": "internlm2", "bias": False,
                "rope_scaling": {"type": "dynamic", "factor": 2.0}}
    if arch == "apertus":
        return {**plain, "model_type": "apertus", "hidden_act": "xielu", "rope_scaling": {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 32}}
    if arch == "glm4moe":
        more = kv("nextn_predict_layers")
        return {**plain, **groups, "model_type": "glm4_moe",
                "num_hidden_layers": layers - more, "num_nextn_predict_layers": more,
                "n_shared_experts": kv("expert_shared_count"),
                "first_k_dense_replace": kv("leading_dense_block_count"),
                "partial_rotary_factor": 0.5, "use_qk_norm": False}
    if arch == "gpt-oss":
        return {**plain, "model_type": "gpt_oss", "attention_bias": True,
                "num_local_experts": kv("expert_count"), "swiglu_limit": 7.0,
                "num_experts_per_tok": kv("expert_used_count"),
                "sliding_window": kv("attention.sliding_window"),
                "layer_types": ["full_attention" if i % 2 else "sliding_attention"
                                for i in range(layers)],
                "quantization_config": {"quant_method": "mxfp4"} if g.raw else None,
                "rope_scaling": {
                    "rope_type": "yarn", "factor": kv("rope.scaling.factor"),
                    "beta_fast": 32.0, "beta_slow": 1.0, "truncate": True,
                    "original_max_position_embeddings":
                        kv("rope.scaling.original_context_length")}}
    if arch == "mamba2":
        return {**ssm, "model_type": "mamba2", "hidden_size": width,
                "num_hidden_layers": layers, "head_dim": ssm_head, "hidden_act": "silu",
                "num_heads": kv("ssm.time_step_rank"), "rms_norm": True,
                "state_size": kv("ssm.state_size"), "layer_norm_epsilon": eps,
                "tie_word_embeddings": plain["tie_word_embeddings"]}
    if arch.startswith("nemotron_h"):
        widths, kvs = kv("feed_forward_length"), kv("attention.head_count_kv")
        mlp = "E" if arch.endswith("moe") else "-"
        return {**plain, **groups, **ssm, "model_type": "nemotron_h",
                "hybrid_override_pattern": "".join(
                    "*" if k else mlp if w else "M" for k, w in zip(kvs, widths)),
                "intermediate_size": max(widths), "num_key_value_heads": max(kvs),
                "mlp_hidden_act": "relu2", "mamba_num_heads": kv("ssm.time_step_rank"),
                "mamba_head_dim": ssm_head, "ssm_state_size": kv("ssm.state_size"),
                "layer_norm_epsilon": eps, "attention_bias": False, "mlp_bias": False,
                "moe_shared_expert_intermediate_size":
                    kv("expert_shared_feed_forward_length")}
    if arch == "falcon-h1":
        return {**plain, "model_type": "falcon_h1", "mamba_n_heads": kv("ssm.time_step_rank"),
                "mamba_d_head": ssm_head, "mamba_n_groups": kv("ssm.group_count"),
                "mamba_d_state": kv("ssm.state_size"), "mamba_d_conv": kv("ssm.conv_kernel"),
                "mamba_conv_bias": True, "mamba_proj_bias": False, "attention_bias": False,
                "embedding_multiplier": FACTORS["token_embd"],
                "lm_head_multiplier": FACTORS["output"],
                "attention_in_multiplier": FACTORS["attn_q"], "key_multiplier": 0.25,
                "attention_out_multiplier": FACTORS["attn_output"],
                "ssm_in_multiplier": SSM_IN, "ssm_multipliers": SSM_FACTORS,
                "ssm_out_multiplier": FACTORS["ssm_out"],
                "mlp_multipliers": [FACTORS["ffn_gate"], FACTORS["ffn_down"]]}
    linear = {"linear_num_key_heads": kv("ssm.group_count"),
              "linear_num_value_heads": kv("ssm.time_step_rank"),
              "linear_key_head_dim": kv("ssm.state_size"),
              "linear_value_head_dim": kv("ssm.state_size"),
              "linear_conv_kernel_dim": kv("ssm.conv_kernel"),
              "full_attention_interval": kv("full_attention_interval"),
              "partial_rotary_factor": kv("rope.dimension_count") / head}
    if arch == "qwen35":
        more = kv("nextn_predict_layers", 0)
        return {**plain, **linear, "model_type": "qwen3_5_text",
                "num_hidden_layers": layers - more, "mtp_num_hidden_layers": more}
    assert arch == "qwen3next"
    return {**plain, **linear, "model_type": "qwen3_next", "norm_topk_prob": True,
            "num_experts": kv("expert_count"), "decoder_sparse_step": 1,
            "num_experts_per_tok": kv("expert_used_count"), "mlp_only_layers": [],
            "moe_intermediate_size": kv("expert_feed_forward_length"),
            "shared_expert_intermediate_size": kv("expert_shared_feed_forward_length")}
