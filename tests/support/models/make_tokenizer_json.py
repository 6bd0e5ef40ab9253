#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the tokenizer.json that a GGUF file's vocabulary could come from, for tests.

    make_tokenizer_json.py VOCAB.gguf OUT.json

Byte-level vocabularies keep their merges; of those with scores every way in which a
token can be made of two others is a merge, in the order of the scores. Standard library
only.
"""
import json
import sys

from make_hf_folder import Gguf

WORDS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
REST = " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
SPLITS = {"llama-bpe": WORDS + "|\\p{N}{1,3}|" + REST, "qwen2": WORDS + "|\\p{N}|" + REST}
BLANK = "\u2581"
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": BLANK}


def byte_level(g, out):
    pre = g.kv["tokenizer.ggml.pre"]
    steps = [{"type": "ByteLevel", "add_prefix_space": False,
              "use_regex": pre not in SPLITS}]
    if pre in SPLITS:
        steps.insert(0, {"type": "Split", "pattern": {"Regex": SPLITS[pre]},
                         "behavior": "Isolated", "invert": False})
    out["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    out["model"].update(merges=g.kv["tokenizer.ggml.merges"],
                        ignore_merges=pre == "llama-bpe")


def by_score(g, out, plain):
    scores, merges = g.kv["tokenizer.ggml.scores"], []
    for token in sorted(plain, key=lambda t: -scores[plain[t]]):
        merges += ([token[:i], token[i:]] for i in range(1, len(token))
                   if token[:i] in plain and token[i:] in plain)
    space = g.kv.get("tokenizer.ggml.add_space_prefix", True)
    out["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": BLANK}, REPLACE]} if space else REPLACE
    out["model"].update(merges=merges, byte_fallback=True)


def main():
    g = Gguf(sys.argv[1])
    tokens = g.kv["tokenizer.ggml.tokens"]
    types = g.kv["tokenizer.ggml.token_type"]
    out = {"model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}},
           "added_tokens": [{"id": i, "content": t, "special": kind != 4}
                            for i, (t, kind) in enumerate(zip(tokens, types))
                            if kind in (2, 3, 4)]}
    if g.kv["tokenizer.ggml.model"] == "gpt2":
        byte_level(g, out)
    else:
        out["model"]["unk_token"] = tokens[types.index(2)] if 2 in types else None
        by_score(g, out, {t: i for i, t in enumerate(tokens) if types[i] in (1, 4)})
    with open(sys.argv[2], "w") as f:
        json.dump(out, f, ensure_ascii=True)


if __name__ == "__main__":
    main()
