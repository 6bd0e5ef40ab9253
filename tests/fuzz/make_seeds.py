#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz targets that are made by programs, a few KB each.

    make_seeds.py BENCH [SEED_DIR]

BENCH is the program: gates, kernels, histories and importance matrices are
its own writing. Those of gguf/ (but the packed one), safetensors/ and report/ are kept as
they are. Standard library only; run from the root of the repository.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.abspath(sys.argv[1])
OUT = sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, "seeds")
EXAMPLE = "results/examples/granite-rapids-2vcpu/"

GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
LLAMA3 = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
          " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
TEXT = "I'll  say \"\u00e9\U0001f600\" 12345 times,\r\n\n <s>a  b\t"


def put(target, name, content):
    os.makedirs(os.path.join(OUT, target), exist_ok=True)
    if isinstance(content, (dict, list)):
        content = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    if isinstance(content, str):
        content = content.encode()
    content = content.replace(os.path.dirname(BENCH).encode() + b"/", b"")
    with open(os.path.join(OUT, target, name), "wb") as f:
        f.write(content)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def bench(scratch, *args):
    subprocess.run([BENCH, *args], cwd=scratch, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env={**os.environ, "XDG_CACHE_HOME": scratch})


def own_writing(scratch):
    model = "nano:Q4_0"
    bench(scratch, "gate", "--a", BENCH, "-m", model, "-t", "1", "--budget", "15s",
          "--ctx", "0", "--prefill", "none", "-o", "gate", "--no-charts", "--add-to", "h.db")
    put("gate_json", "gate.json", json.loads(read(scratch + "/gate/gate.json")))
    put("trace", "rounds.csv", read(scratch + "/gate/rounds.csv")[:3000])
    bench(scratch, "kernels", "--formats", "q4_0", "--ops", "gemv", "--quick", "--weights",
          "hot", "-t", "1", "-o", "kernels", "--no-charts")
    kernels = json.loads(read(scratch + "/kernels/kernels.json"))
    kernels["benchmarks"] = kernels["benchmarks"][:8]
    put("kernel_results", "kernels.json", kernels)
    os.makedirs(scratch + "/sweep")
    for name in ("sweep.csv", "machine.json"):
        with open(scratch + "/sweep/" + name, "wb") as f:
            f.write(b"".join(read(EXAMPLE + name).splitlines(True)[:4 if name[0] == "s"
                                                                   else None]))
    bench(scratch, "history", "add", "h.db", "sweep")
    put("database", "h.db", read(scratch + "/h.db"))
    table = read(scratch + "/sweep/sweep.csv")
    put("csv", "sweep.csv", table)
    put("history", "sweep.csv", table)
    text = os.path.join(scratch, "text")
    with open(text, "w", encoding="utf-8") as f:
        f.write("once upon a time there was a little girl. " * 40)
    bench(scratch, "imatrix", "-m", os.path.abspath("tests/data/models/stories260K-f32.gguf"),
          "--text", text, "-o", "im.gguf", "--ctx", "64", "--chunks", "1")
    put("imatrix", "im.gguf", read(scratch + "/im.gguf"))


def tables_of_runs():
    put("csv", "short.csv", "run,point,kind,status,model,tok_s\n"
        "r1,a,decode,ok,m,1.5\nr1,\"b\"\"c\",prefill,oom,\"m,n\",\nr2,a,decode,ok,m,2\n")
    put("history", "runs.csv", "run,run_utc,commit_id,version,compiler,host,machine,point,"
        "kind,status,attempt,tok_s\nr1,2026-01-01T00:00:00Z,c,v,gcc,h,m,p,decode,ok,1,5\n"
        "r2,2026-01-02T00:00:00Z,c,v,gcc,h,m,p,decode,ok,1,6\n")
    put("history", "row.json", {"kind": "decode", "status": "ok", "model": "m", "point": "p",
                                "tok_s": 1.5, "threads": 2})


def claims():
    put("claim", "sizes", "36.7 tok/s, 4.1 GB, ryzen 5900x, 8 threads")
    put("claim", "shape", "Llama 2 7B:Q4_K_M, 12,5 t/s, 51 Gb/s, 2048 ctx")
    put("claim", "both", "5 tokens per second,qwen3-4b,1.5 GiB,38 GB/s")


def config(kind, **more):
    c = {"model_type": kind, "num_hidden_layers": 2, "hidden_size": 64,
         "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2,
         "head_dim": 16, "vocab_size": 256, "max_position_embeddings": 512,
         "rms_norm_eps": 1e-6, "layer_norm_eps": 1e-5, "rope_theta": 10000.0,
         "hidden_act": "silu", "tie_word_embeddings": True}
    c.update(more)
    return c


def configs():
    experts = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2,
               "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
               "norm_topk_prob": True, "decoder_sparse_step": 1}
    gemma = {"hidden_activation": "gelu_pytorch_tanh", "hidden_act": "gelu_pytorch_tanh",
             "query_pre_attn_scalar": 16, "sliding_window": 64,
             "final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0,
             "sliding_window_pattern": 6, "rope_local_base_freq": 10000.0}
    delta = {"layer_types": ["linear_attention", "full_attention"],
             "linear_num_key_heads": 2, "linear_num_value_heads": 4,
             "linear_key_head_dim": 16, "linear_value_head_dim": 16,
             "linear_conv_kernel_dim": 4, "full_attention_interval": 2,
             "partial_rotary_factor": 0.25, "attn_output_gate": True}
    for kind in ("llama", "mistral", "qwen2", "qwen3", "stablelm", "glm", "glm4"):
        put("config", kind, config(kind, partial_rotary_factor=0.5, attention_bias=False))
    for kind in ("mixtral", "qwen2_moe", "qwen3_moe"):
        put("config", kind, config(kind, **experts))
    for kind in ("gemma2", "gemma3_text"):
        put("config", kind, config(kind, **gemma))
    put("config", "gemma3", {"model_type": "gemma3", "text_config": config("x", **gemma)})
    put("config", "phi", config("phi", hidden_act="gelu_new", partial_rotary_factor=0.5))
    long = {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8}
    put("config", "phi3", config("phi3", rope_scaling=long, partial_rotary_factor=1.0,
                                 original_max_position_embeddings=256))
    put("config", "llama3", config("llama", rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 256}))
    put("config", "qwen3_5", {"model_type": "qwen3_5", "text_config": config(
        "qwen3_5_text", rope_parameters={"rope_type": "default", "rope_theta": 1e6,
                                         "mrope_section": [2, 1, 1]}, **delta)})
    put("config", "chatglm", {
        "model_type": "chatglm", "num_layers": 2, "hidden_size": 64, "ffn_hidden_size": 128,
        "num_attention_heads": 4, "multi_query_attention": True,
        "multi_query_group_num": 2, "kv_channels": 16, "padded_vocab_size": 256,
        "seq_length": 512, "layernorm_epsilon": 1e-5, "rmsnorm": True, "add_qkv_bias": True,
        "rope_ratio": 1.0, "original_rope": True})
    moe = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
           "n_group": 2, "topk_group": 1, "routed_scaling_factor": 2.5}
    ssm = {"n_groups": 2, "conv_kernel": 4, "use_conv_bias": True, "use_bias": False}
    put("config", "gpt_oss", config(
        "gpt_oss", attention_bias=True, swiglu_limit=7.0, num_local_experts=4,
        num_experts_per_tok=2, sliding_window=64, quantization_config={
            "quant_method": "mxfp4"}, layer_types=["sliding_attention", "full_attention"]))
    put("config", "apertus", config("apertus", hidden_act="xielu"))
    put("config", "glm4_moe", config("glm4_moe", n_shared_experts=1, first_k_dense_replace=1,
                                     num_nextn_predict_layers=1, **moe))
    put("config", "bitnet", config("bitnet", architectures=["BitnetForCausalLM"],
                                   attention_bias=False, weight_bits=1, input_bits=8))
    put("config", "gpt2", {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4,
                           "n_positions": 512, "n_inner": 128,
                           "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5})
    put("config", "gpt_neox", config("gpt_neox", hidden_act="gelu", rotary_pct=0.25,
                                     rotary_emb_base=10000, use_parallel_residual=True))
    put("config", "falcon", {"model_type": "falcon", "hidden_size": 64, "n_layer": 2,
                             "n_head": 4, "num_kv_heads": 2, "multi_query": True,
                             "new_decoder_architecture": True, "ffn_hidden_size": 128,
                             "alibi": False, "parallel_attn": True, "bias": False})
    put("config", "internlm2", config("internlm2", bias=False))
    put("config", "mamba2", config("mamba2", num_heads=8, head_dim=16, state_size=16,
                                   rms_norm=True, layer_norm_epsilon=1e-5, **ssm))
    put("config", "falcon_h1", config(
        "falcon_h1", mamba_n_heads=8, mamba_d_head=16, mamba_n_groups=1, mamba_d_state=16,
        mamba_d_conv=4, mamba_conv_bias=True, embedding_multiplier=4.0,
        lm_head_multiplier=4.0, key_multiplier=0.5, ssm_multipliers=[1, 2, 3, 4, 5],
        mlp_multipliers=[0.5, 2], ssm_in_multiplier=2.0))
    for kind, pattern in (("nemotron_h", "M-*"), ("nemotron_h_moe", "ME*")):
        put("config", kind, config(
            "nemotron_h", num_hidden_layers=3, hybrid_override_pattern=pattern,
            mlp_hidden_act="relu2", mamba_num_heads=8, mamba_head_dim=16,
            ssm_state_size=16, moe_shared_expert_intermediate_size=32, **ssm, **moe))
    put("config", "qwen3_next", config("qwen3_next", mlp_only_layers=[], **delta, **experts))
    put("config", "folder", {
        "config.json": config("llama", num_hidden_layers=1, hidden_size=8),
        "tokenizer.json": byte_level(GPT2), "tokenizer_config.json": {
            "bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": True,
            "chat_template": "{{ messages }}"},
        "generation_config.json": {"eos_token_id": [0, 1], "bos_token_id": 0},
        "special_tokens_map.json": {"eos_token": "</s>"}})


def byte_level(regex, **more):
    t = {"added_tokens": [
        {"id": 0, "content": "<s>", "special": True, "lstrip": False, "rstrip": True},
        {"id": 1, "content": "</s>", "special": True}],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated",
             "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]},
        "post_processor": {"type": "TemplateProcessing", "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A"}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}},
        "model": {"type": "BPE", "ignore_merges": True, "merges": [],
                  "vocab": {"<s>": 0, "</s>": 1}}}
    letters = [chr(c) for c in range(33, 127)] + ["\u0120", "\u010a", "\u010d", "\u0109",
                                                  "\u00c3", "\u00a9", "\u00f0"]
    for c in letters:
        t["model"]["vocab"][c] = len(t["model"]["vocab"])
    for left, right in (("a", "b"), ("\u0120", "a"), ("\u0120", "t"), ("ab", "ab")):
        t["model"]["vocab"].setdefault(left + right, len(t["model"]["vocab"]))
        t["model"]["merges"].append(left + " " + right)
    t.update(more)
    return t


def tokenizers():
    for name, regex in (("gpt2", GPT2), ("llama3", LLAMA3), ("nested", "(a+)+$|(\\w|b)*c"),
                        ("digits", "\\p{N}{1,3}")):
        put("tokenizer_json", name, {"tokenizer": byte_level(regex), "text": TEXT})
    put("tokenizer_json", "split", {"text": "aaaa", "tokenizer": byte_level(
        "x", pre_tokenizer={"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
             "invert": True},
            {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}]})})


def chosen_by_bytes():
    """Inputs of the targets that take decisions from bytes."""
    rng = random.Random(1)
    for target, n in (("gguf", 400), ("split", 200), ("vocabulary", 1500), ("imatrix", 500),
                      ("quality", 16)):
        for i in range(4):
            put(target, "chosen-%d" % i, bytes([1 + i]) + rng.randbytes(n)
                .translate(bytes(b if b < 128 or i & 1 else b & 127 for b in range(256))))
    for i in range(8):
        put("history", "chosen-%d" % i, bytes([1]) + rng.randbytes(40))
    put("quality", "raw", b"rawslmqual1" + bytes([7] + 7 * [0] + [24] + 7 * [0]) + bytes(64))


def engines():
    test = {"build_commit": "abc", "n_threads": 2, "n_prompt": 0, "n_gen": 8, "avg_ts": 8.0,
            "stddev_ts": 0.5, "samples_ns": [10**9, 10**9]}
    put("engine", "name", b"\0x=/opt/run '{model}' -t {threads} =~ speed: ([0-9.]+)")
    put("engine", "llama-bench", b"\1log\n" + json.dumps([test, test]).encode())
    put("engine", "lines", b"\1" + b"\n".join(2 * [json.dumps(test).encode()]))
    put("engine", "json", b"\2" + json.dumps({"results": [{"tps": [1, 2.5]}]}).encode())
    put("engine", "regex", b"\3warm\n12.5 tok/s\n13 tok/s\n")


def packed_file():
    """Two slices of 20 rows, 16 of each in a panel, and a vector, as `bench pack` has them."""
    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()

    def tensor(name, ne, kind, offset):
        return (text(name) + struct.pack("<I", len(ne)) + struct.pack("<%dQ" % len(ne), *ne)
                + struct.pack("<IQ", kind, offset))

    def page(b):
        return b + bytes(-len(b) % 4096)

    head = b"GGUF" + struct.pack("<IQQ", 3, 2, 4)
    head += text("general.alignment") + struct.pack("<II", 4, 4096)
    head += text("slmbench.layout_version") + struct.pack("<II", 4, 1)
    head += text("slmbench.head_checksum") + struct.pack("<IQ", 10, 1)
    head += text("slmbench.tensor_checksums") + struct.pack("<IIQQQ", 9, 10, 2, 3, 4)
    head += tensor("blk.0.attn_q.weight", (32, 20, 2), 0x534c0000 + 8, 0)
    head += tensor("output_norm.weight", (32,), 0, 4096)
    put("gguf", "packed.gguf", page(head) + page(bytes(range(136)) * 10) + page(bytes(128)))


def layouts():
    """Type 42 in its two layouts, and a matrix with a scale of its own."""
    def text(t):
        return struct.pack("<Q", len(t)) + t.encode()

    for name, block in (("q2_0.gguf", 36), ("q2_0_older.gguf", 34)):
        tensors = (("blk.0.attn_q.weight", (1024, 4), 42, 32 * block),
                   ("blk.0.attn_k.weight", (128, 1), 42, block),
                   ("blk.0.attn_q.scale", (1,), 0, 4),
                   ("blk.0.ffn_up.weight", (64, 2), 40, 72),
                   ("blk.0.ffn_up.scale", (1,), 0, 4))
        head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 1)
        head += text("general.architecture") + struct.pack("<I", 8) + text("llama")
        data = b""
        for tensor, ne, kind, n in tensors:
            head += text(tensor) + struct.pack("<I%dQIQ" % len(ne), len(ne), *ne, kind,
                                               len(data))
            data += bytes(range(n % 256)) + bytes(n - n % 256)
            data += bytes(-len(data) % 32)
        put("gguf", name, head + bytes(-len(head) % 32) + data)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        own_writing(scratch)
    with open("research/traces/xeon-hog.txt", "rb") as f:
        put("trace", "xeon.txt", b"".join(f.readlines()[:130]))
    put("safetensors", "empty.json", "{}")
    put("safetensors", "two.json", {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "b": {"dtype": "BF16", "shape": [], "data_offsets": [16, 18]}})
    put("safetensors", "index.json", {"metadata": {"total_size": 20}, "weight_map": {
        "a": "1.safetensors", "b": "2.safetensors"}})
    packed_file()
    layouts()
    tables_of_runs()
    claims()
    configs()
    tokenizers()
    chosen_by_bytes()
    engines()


if __name__ == "__main__":
    main()
