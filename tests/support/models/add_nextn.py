#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Give a small Hugging Face folder a layer that predicts further tokens, for tests.

    add_nextn.py FOLDER WANT

The layer is a copy of the model's last layer with attention, under the names that the
folders of its kind have; what joins it with the model is random. WANT/ gets the tensors
that GGUF files have for that, as floats: a file each, named as there. Prints the numbers
of the copied layer and of the new one. Reads a single model.safetensors of F32.
"""
import array
import json
import math
import os
import random
import re
import struct
import sys

from make_hf_folder import write_file

# Names in folders: eh_proj, enorm, hnorm, the last norm, and the layer's prefix.
BEHIND = ["model.layers.%d." + n for n in
          ("eh_proj", "enorm", "hnorm", "shared_head.norm", "")]
QWEN = ["mtp.fc", "mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.norm",
        "mtp.layers.0."]
BAILING = BEHIND[:3] + ["model.layers.%d.final_layernorm", BEHIND[4]]
KINDS = {"glm4_moe": BEHIND, "deepseek_v2": BEHIND, "deepseek_v3": BEHIND,
         "bailing_moe_v2": BAILING, "qwen3_next": QWEN, "qwen3_5_text": QWEN,
         "qwen3_5_moe_text": QWEN}


def read_file(path):
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        header, data = json.loads(f.read(n)), f.read()
    header.pop("__metadata__", None)
    out = {}
    for name, t in header.items():
        assert t["dtype"] == "F32", name
        out[name] = (t["shape"], array.array("f", data[slice(*t["data_offsets"])]))
    return out


def main():
    folder, want = sys.argv[1:3]
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    config = config.get("text_config", config)
    names = KINDS[config["model_type"]]
    file = os.path.join(folder, "model.safetensors")
    tensors = read_file(file)
    attends = [m for m in (re.match(r"(.*layers\.)(\d+)\.(self_attn|attention)\.", n)
                           for n in tensors) if m]
    last = max(attends, key=lambda m: int(m[2]))
    own, width = config["num_hidden_layers"], config["hidden_size"]
    names = [n % own if "%" in n else n for n in names]
    before = "%s%s." % (last[1], last[2])
    for name in [n for n in tensors if n.startswith(before)]:
        tensors[names[4] + name[len(before):]] = tensors[name]
    rng = random.Random(3)
    plus = 1.0 if names[0] == "mtp.fc" else 0.0
    os.makedirs(want)
    end = "layer_output_norm" if "final_layernorm" in names[3] else "nextn.shared_head_norm"
    for name, gguf in zip(names, ("nextn.eh_proj", "nextn.enorm", "nextn.hnorm", end)):
        shape = [width] if "norm" in gguf else [width, 2 * width]
        mean, spread = (1.0 - plus, 0.3) if "norm" in gguf else (0, 1 / math.sqrt(width))
        v = array.array("f", (mean + rng.uniform(-spread, spread)
                              for _ in range(math.prod(shape))))
        tensors[name + ".weight"] = (shape, v)
        with open(os.path.join(want, "blk.%d.%s.weight" % (own, gguf)), "wb") as f:
            array.array("f", (x + plus * (len(shape) == 1) for x in v)).tofile(f)
    write_file(file, sorted(tensors.items()), "F32")
    print(last[2], own)


if __name__ == "__main__":
    main()
