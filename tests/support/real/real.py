#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The comparisons of ci/real, in a folder with the packages: one row of its table for each.

    real.py PROGRAMS tokenizers|templates|types ARGUMENTS...

PROGRAMS: the folder of encode_texts and render_template, with bench in the one above.
Standard library only."""
import array
import json
import math
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = sys.argv[1]
# Without marks of Unicode 14 and later: the tables that `tokenizers` normalises by are older.
RANGES = [(0x20, 0x7f), (0x20, 0x7f), (0xa0, 0x250), (0x300, 0x370), (0x370, 0x530), (0x5d0, 0x5eb),
          (0x620, 0x660), (0x900, 0x980), (0xe00, 0xe40), (0x1e00, 0x2c00), (0x3000, 0x3100),
          (0x4e00, 0x9ffd), (0xac00, 0xd7a4), (0xf900, 0xfb00), (0xff00, 0xffef), (0x10d40, 0x10d66), (0x10d6e, 0x10d90),
          (0x1e900, 0x1e944), (0x1f300, 0x1f700), (0x20000, 0x20100), (0x31350, 0x323b0)]
WORDS = ("the of and to in I'm don't we've he'll CAN'T 123 4567 3.14 1,000 foo_bar HTTPServer hello "
         "def return if (x) {} [] -> != // /* */ http://a.b/c?d=e&f ... !!! -- \t \n \r\n \n\n caf\u00e9 "
         "Stra\u00dfe \u4f60\u597d \u3053\u3093 \uc548\ub155 \u043f\u0440\u0438 \u0645\u0631 \u05e9\u05dc "
         "\u0928\u092e \U0001f600 e\u0301 \ufb01 \u00bd \u2122 <s> <|im_end|>").split(" ")


def texts(n):
    r = random.Random(1)
    char = lambda pool: chr(r.randrange(*pool))
    out = ["", " ", "  ", "\n", " \n ", "\u2581", "\u2581a", " \u2581"]
    while len(out) < n:
        how, pool = r.random(), r.choice(RANGES)
        if how < 0.45:
            out.append("".join(r.choice(WORDS) + r.choice(["", " ", "  "])
                               for _ in range(r.randrange(1, 30))))
        elif how < 0.8:
            out.append("".join(char(pool) if r.random() < 0.8 else r.choice(" \n\t")
                               for _ in range(r.randrange(1, 40))))
        else:
            out.append("".join(char(r.choice(RANGES)) for _ in range(r.randrange(1, 30))))
    return out


def run(*command):
    p = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if p.returncode:
        raise RuntimeError((p.stderr.strip() or "exit code %d" % p.returncode).splitlines()[-1][:160])
    return p.stdout


def reference(*arguments):
    return json.loads(run("node", os.path.join(HERE, "reference.mjs"), *arguments))


def write(name, value):
    with open(name, "w") as f:
        json.dump(value, f)
    return name


def tokenizers(n, *folders):
    list_of = texts(int(n))
    file = write("texts.json", list_of)
    for folder in folders:
        ours = json.loads(run(PROGRAMS + "/encode_texts", folder, file))
        yield (folder.split("/")[-2], list_of, ours,
               reference("ids", folder + "/tokenizer.json", file))


def conversations():
    user, other = {"role": "user", "content": "Hi <there>"}, {"role": "user", "content": " more\n"}
    reply, system = {"role": "assistant", "content": "Yes."}, {"role": "system", "content": "Be brief."}
    for messages in ([user], [system, user], [user, reply, other], [system, user, reply, other]):
        for asks in (True, False):
            yield {"messages": messages, "add_generation_prompt": asks, "bos_token": "<s>",
                   "eos_token": "</s>"}


def templates(*folders):
    for folder in folders:
        with open(folder + "/tokenizer_config.json") as f:
            text = json.load(f).get("chat_template")
        if not isinstance(text, str):
            continue
        jobs = [{"template": text, "input": c} for c in conversations()]
        file = write("jobs.json", jobs)
        yield (folder.split("/")[-2], jobs, json.loads(run(PROGRAMS + "/render_template", file)),
               reference("prompts", file))


def compare(made):
    worst = 0
    for name, asked, ours, theirs in made:
        bad = [i for i in range(len(asked)) if ours[i] != theirs[i]]
        worst |= bool(bad) or len(ours) != len(theirs)
        print("%-28s %6d of %d differ" % (name, len(bad), len(asked)))
        for i in bad[:3]:
            print("    %s\n      ours   %s\n      theirs %s" % tuple(
                ascii(x)[:160] for x in (asked[i], ours[i], theirs[i])))
    return worst


def share(logits):
    top = max(logits)
    e = [math.exp(x - top) for x in logits]
    return [x / sum(e) for x in e]


VERSE = ("O Romeo, Romeo, wherefore art thou Romeo? Deny thy father and refuse thy name. What's in a "
         "name? That which we call a rose by any other name would smell as sweet; so Romeo would, were "
         "he not Romeo called, retain that dear perfection which he owes without that title.")


def is_tie(p, a, b):
    """Rounding alone decides which of two tokens is the more likely one."""
    return max(p[a], p[b]) < 1.1 * min(p[a], p[b])


def one_type(model, kind):
    bench = os.path.dirname(PROGRAMS) + "/bench"
    tokens = ",".join(run(bench, "tokenize", "-m", model, "--bos", VERSE).split()[:64])
    path = kind if kind.endswith(".gguf") else "type.gguf"
    if path != kind:
        run(bench, "quantize", model, path, kind)
    run(bench, "logits", "-m", path, "--tokens", tokens, "-o", "type.f32")
    ours = array.array("f", open("type.f32", "rb").read())
    theirs = reference("shares", path, tokens)
    n = len(ours) // len(theirs)
    same, ties, kl = 0, 0, 0.0
    for i, pairs in enumerate(theirs):
        p, q = share(ours[i * n:(i + 1) * n]), dict(pairs)
        top, their_top = max(range(n), key=p.__getitem__), max(q, key=q.get)
        same += top == their_top
        ties += top != their_top and is_tie(p, top, their_top) and is_tie(q, top, their_top)
        kl += sum(x * math.log(x / max(q.get(k, 0), 1e-9)) for k, x in enumerate(p) if x > 0)
    return same, ties, len(theirs), kl / len(theirs)


def types(model, *kinds):
    worst = 0
    for kind in kinds:
        try:
            same, ties, n, kl = one_type(model, kind)
        except RuntimeError as why:
            unknown = "there is no quantisation" in str(why)
            print("%-28s %s" % (kind, "skipped: this build has no such type" if unknown else why))
            worst |= not unknown
            continue
        finally:
            if os.path.exists("type.gguf"):
                os.remove("type.gguf")
        ok = same + ties == n and abs(kl) < 1e-3  # below 0 by rounding
        worst |= not ok
        print("%-28s %6d of %d most likely tokens, %d ties, KL %.1e%s" % (
            kind, same, n, ties, kl, "" if ok else "  WRONG"))
    return worst


if __name__ == "__main__":
    what, rest = sys.argv[2], sys.argv[3:]
    sys.exit(types(*rest) if what == "types" else
             compare(tokenizers(*rest) if what == "tokenizers" else templates(*rest)))
