#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a small random Qwen 3.5 folder, and the logits it stands for, for tests.

    make_qwen35_folder.py OUTDIR TOKEN,TOKEN,... EXACT.f32 [--experts]

The model is computed here from the folder's own tensors, as its publishers' equations
have them, in double precision: heads of values in the order of the folder, norms that
add 1, decays as logarithms. Nothing is known of how GGUF has any of it. Standard
library only.
"""
import array
import json
import math
import os
import random
import sys

from make_hf_folder import write_file

EMBD, FF, VOCAB, LAYERS, INTERVAL = 32, 48, 50, 4, 2
HEADS, KV_HEADS, HEAD_DIM, ROT = 4, 2, 16, 8
K_HEADS, V_HEADS, DIM, TAPS = 2, 6, 8, 4
EXPERTS, USED, FF_EXPERT, FF_SHARED = 6, 2, 20, 28
KEYS, VALUES, EPS, THETA = K_HEADS * DIM, V_HEADS * DIM, 1e-6, 1e4

CONFIG = {
    "model_type": "qwen3_5", "architectures": ["Qwen3_5ForConditionalGeneration"],
    "tie_word_embeddings": False, "vision_config": {"depth": 1},
    "text_config": {
        "model_type": "qwen3_5_text", "hidden_size": EMBD, "intermediate_size": FF,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "vocab_size": VOCAB,
        "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "hidden_act": "silu",
        "rms_norm_eps": EPS, "max_position_embeddings": 128, "attention_bias": False,
        "attn_output_gate": True, "full_attention_interval": INTERVAL,
        "layer_types": ["full_attention" if (i + 1) % INTERVAL == 0
                        else "linear_attention" for i in range(LAYERS)],
        "linear_num_key_heads": K_HEADS, "linear_num_value_heads": V_HEADS,
        "linear_key_head_dim": DIM, "linear_value_head_dim": DIM,
        "linear_conv_kernel_dim": TAPS, "mtp_num_hidden_layers": 1,
        "rope_parameters": {"rope_type": "default", "rope_theta": THETA,
                            "mrope_interleaved": True, "mrope_section": [2, 1, 1],
                            "partial_rotary_factor": ROT / HEAD_DIM}}}


def config(experts):
    c = json.loads(json.dumps(CONFIG))
    if experts:
        text = c["text_config"]
        c["model_type"], text["model_type"] = "qwen3_5_moe", "qwen3_5_moe_text"
        del text["intermediate_size"]
        text.update(num_experts=EXPERTS, num_experts_per_tok=USED,
                    moe_intermediate_size=FF_EXPERT,
                    shared_expert_intermediate_size=FF_SHARED)
    return c


def make_tensors(experts):
    rng, out = random.Random(7), {}

    def add(name, shape, mean=0.0, spread=None):
        spread = 1.7 / math.sqrt(shape[-1]) if spread is None else spread
        n = math.prod(shape)
        out[name] = (list(shape), array.array(
            "f", (mean + rng.uniform(-spread, spread) for _ in range(n))))

    base = "model.language_model."
    add(base + "embed_tokens.weight", [VOCAB, EMBD], spread=1)
    add(base + "norm.weight", [EMBD], spread=0.3)
    add("lm_head.weight", [VOCAB, EMBD])
    add("model.visual.patch_embed.proj.bias", [EMBD])
    for i in range(LAYERS):
        at = base + "layers.%d." % i
        add(at + "input_layernorm.weight", [EMBD], spread=0.3)
        add(at + "post_attention_layernorm.weight", [EMBD], spread=0.3)
        if experts:
            add(at + "mlp.gate.weight", [EXPERTS, EMBD])
            add(at + "mlp.experts.gate_up_proj", [EXPERTS, 2 * FF_EXPERT, EMBD])
            add(at + "mlp.experts.down_proj", [EXPERTS, EMBD, FF_EXPERT])
            add(at + "mlp.shared_expert_gate.weight", [1, EMBD])
        mlp, ff = ("mlp.shared_expert.", FF_SHARED) if experts else ("mlp.", FF)
        add(at + mlp + "gate_proj.weight", [ff, EMBD])
        add(at + mlp + "up_proj.weight", [ff, EMBD])
        add(at + mlp + "down_proj.weight", [EMBD, ff])
        if (i + 1) % INTERVAL == 0:
            at += "self_attn."
            add(at + "q_proj.weight", [2 * HEADS * HEAD_DIM, EMBD])
            add(at + "k_proj.weight", [KV_HEADS * HEAD_DIM, EMBD])
            add(at + "v_proj.weight", [KV_HEADS * HEAD_DIM, EMBD])
            add(at + "o_proj.weight", [EMBD, HEADS * HEAD_DIM])
            add(at + "q_norm.weight", [HEAD_DIM], spread=0.3)
            add(at + "k_norm.weight", [HEAD_DIM], spread=0.3)
            continue
        at += "linear_attn."
        add(at + "in_proj_qkv.weight", [2 * KEYS + VALUES, EMBD])
        add(at + "in_proj_z.weight", [VALUES, EMBD])
        add(at + "in_proj_a.weight", [V_HEADS, EMBD])
        add(at + "in_proj_b.weight", [V_HEADS, EMBD])
        add(at + "conv1d.weight", [2 * KEYS + VALUES, 1, TAPS], 0.2, 0.6)
        add(at + "dt_bias", [V_HEADS], spread=1)
        add(at + "A_log", [V_HEADS], -1.5, 1)
        add(at + "norm.weight", [DIM], 1, 0.3)
        add(at + "out_proj.weight", [EMBD, VALUES])
    return out


class Model:
    def __init__(self, tensors):
        self.tensors, self.seen = tensors, {}

    def get(self, name):
        return self.tensors[self.at + name][1]

    def times(self, name, x, begin=0, rows=None):
        """Rows from `begin` on, all or `rows` of them, times x."""
        k = len(x)
        w = self.get(name)[begin * k:(begin + rows) * k if rows else None]
        return [sum(w[r * k + i] * x[i] for i in range(k)) for r in range(len(w) // k)]

    @staticmethod
    def norm(x, w=None):
        scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + EPS)
        return [v * scale * (1 + (w[i] if w else 0)) for i, v in enumerate(x)]

    def delta(self, layer, x):
        def unit(v):
            length = math.sqrt(sum(e * e for e in v) + 1e-6)
            return [e / length for e in v]

        self.at += "linear_attn."
        past = self.seen.setdefault((layer, "in"), [[0.0] * (2 * KEYS + VALUES)] * TAPS)
        past.append(self.times("in_proj_qkv.weight", x))
        taps = self.get("conv1d.weight")
        mixed = [sum(taps[c * TAPS + t] * past[t - TAPS][c] for t in range(TAPS))
                 for c in range(2 * KEYS + VALUES)]
        mixed = [v / (1 + math.exp(-v)) for v in mixed]
        z, a, b = (self.times("in_proj_%s.weight" % n, x) for n in "zab")
        decay, dt, w = (self.get(n) for n in ("A_log", "dt_bias", "norm.weight"))
        out = []
        for h in range(V_HEADS):
            key = h // (V_HEADS // K_HEADS) * DIM
            q = [v / math.sqrt(DIM) for v in unit(mixed[key:key + DIM])]
            k = unit(mixed[KEYS + key:KEYS + key + DIM])
            v = mixed[2 * KEYS + h * DIM:2 * KEYS + (h + 1) * DIM]
            s = self.seen.setdefault((layer, h), [[0.0] * DIM for _ in range(DIM)])
            keep = math.exp(-math.exp(decay[h]) * math.log1p(math.exp(a[h] + dt[h])))
            rate = 1 / (1 + math.exp(-b[h]))
            for row in s:
                row[:] = [e * keep for e in row]
            known = [sum(k[i] * s[i][e] for i in range(DIM)) for e in range(DIM)]
            for i in range(DIM):
                for e in range(DIM):
                    s[i][e] += k[i] * rate * (v[e] - known[e])
            o = self.norm([sum(q[i] * s[i][e] for i in range(DIM)) for e in range(DIM)])
            out += [o[e] * w[e] * g / (1 + math.exp(-g))
                    for e, g in enumerate(z[h * DIM:(h + 1) * DIM])]
        return self.times("out_proj.weight", out)

    def rotate(self, v, pos):
        for i in range(ROT // 2):
            angle = pos * THETA ** (-2 * i / ROT)
            x, y = v[i], v[i + ROT // 2]
            v[i] = x * math.cos(angle) - y * math.sin(angle)
            v[i + ROT // 2] = x * math.sin(angle) + y * math.cos(angle)
        return v

    def attend(self, layer, x, pos):
        self.at += "self_attn."
        q, k, v = (self.times(n + "_proj.weight", x) for n in "qkv")
        past = self.seen.setdefault((layer, "kv"), [])
        heads = [k[h * HEAD_DIM:(h + 1) * HEAD_DIM] for h in range(KV_HEADS)]
        past.append(([self.rotate(self.norm(h, self.get("k_norm.weight")), pos)
                      for h in heads], v))
        out = []
        for h in range(HEADS):
            both = q[2 * h * HEAD_DIM:2 * (h + 1) * HEAD_DIM]
            mine = self.rotate(self.norm(both[:HEAD_DIM], self.get("q_norm.weight")), pos)
            kv = h // (HEADS // KV_HEADS)
            score = [math.exp(sum(a * b for a, b in zip(mine, keys[kv])) /
                              math.sqrt(HEAD_DIM)) for keys, _ in past]
            total = sum(score)
            for e, gate in enumerate(both[HEAD_DIM:]):
                o = sum(p * values[kv * HEAD_DIM + e]
                        for p, (_, values) in zip(score, past)) / total
                out.append(o / (1 + math.exp(-gate)))
        return self.times("o_proj.weight", out)

    @staticmethod
    def gated(g, u):
        return [a / (1 + math.exp(-a)) * b for a, b in zip(g, u)]

    def feed(self, x):
        if self.at + "mlp.gate.weight" not in self.tensors:
            g, u = (self.times("mlp.%s_proj.weight" % n, x) for n in ("gate", "up"))
            return self.times("mlp.down_proj.weight", self.gated(g, u))
        score = [math.exp(v) for v in self.times("mlp.gate.weight", x)]
        best = sorted(range(EXPERTS), key=lambda e: -score[e])[:USED]
        total = sum(score[e] for e in best)
        shared = "mlp.shared_expert."
        g, u = (self.times(shared + "%s_proj.weight" % n, x) for n in ("gate", "up"))
        out = self.times(shared + "down_proj.weight", self.gated(g, u))
        (gate,) = self.times("mlp.shared_expert_gate.weight", x)
        out = [v / (1 + math.exp(-gate)) for v in out]
        for e in best:
            both = self.times("mlp.experts.gate_up_proj", x, 2 * FF_EXPERT * e,
                              2 * FF_EXPERT)
            y = self.times("mlp.experts.down_proj",
                           self.gated(both[:FF_EXPERT], both[FF_EXPERT:]), EMBD * e, EMBD)
            out = [a + score[e] / total * b for a, b in zip(out, y)]
        return out

    def step(self, token, pos):
        self.at = base = "model.language_model."
        x = list(self.get("embed_tokens.weight")[token * EMBD:(token + 1) * EMBD])
        for i in range(LAYERS):
            self.at = at = base + "layers.%d." % i
            y = self.norm(x, self.get("input_layernorm.weight"))
            y = self.attend(i, y, pos) if (i + 1) % INTERVAL == 0 else self.delta(i, y)
            x = [a + b for a, b in zip(x, y)]
            self.at = at
            y = self.norm(x, self.get("post_attention_layernorm.weight"))
            x = [a + b for a, b in zip(x, self.feed(y))]
        self.at = base
        x = self.norm(x, self.get("norm.weight"))
        self.at = ""
        return self.times("lm_head.weight", x)


def main():
    folder, tokens, exact = sys.argv[1:4]
    experts = "--experts" in sys.argv[4:]
    tensors = make_tensors(experts)
    model = Model(tensors)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config(experts), f, indent=2)
    write_file(os.path.join(folder, "model.safetensors"), sorted(tensors.items()), "F32")
    with open(exact, "wb") as f:
        for pos, token in enumerate(tokens.split(",")):
            f.write(array.array("f", model.step(int(token), pos)).tobytes())


if __name__ == "__main__":
    main()
