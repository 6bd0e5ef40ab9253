#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a test of Hugging Face folders needs Python for, in one process for all of it.

    hf_jobs.py <jobs >replies

Starting Python and reading its modules takes longer than most of these jobs. A job is
its number of words, the name of a function below and its arguments, each with a NUL
behind it; a reply is 0 or 1 (failed), and what the job printed, with one NUL behind it.
Files are relative to where this was started. Standard library only.
"""
import array
import contextlib
import io
import json
import os
import subprocess
import sys

import make_hf_folder
import make_qwen35_folder
import make_tokenizer_json


def by_main(module):
    def job(*arguments):
        sys.argv = [module.__name__ + ".py", *arguments]
        module.main()
    return job


def near(bound, a, b):
    """Fails unless the error of A against B, as a share of B's power, is within a bound."""
    x, y = array.array("f"), array.array("f")
    for to, path in ((x, a), (y, b)):
        with open(path, "rb") as f:
            to.frombytes(f.read())
    error = sum((p - q) ** 2 for p, q in zip(x, y)) / sum(q * q for q in y)
    print("%s: NMSE %.3g" % (a, error))
    if len(x) != len(y) or not error <= float(bound):
        raise SystemExit("not within " + bound)


def reword(folder, code):
    """Changes the config c of a folder by a piece of Python."""
    path = folder + "/config.json"
    with open(path) as f:
        c = json.load(f)
    exec(code, {"c": c})
    with open(path, "w") as f:
        json.dump(c, f)


def key(bench, model, name):
    """Prints a metadata value, or nothing."""
    text = subprocess.run([bench, "gguf", model, "--json"], stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, check=True).stdout
    print(json.loads(text)["metadata"].get(name, ""))


JOBS = {"folder": by_main(make_hf_folder), "tokenizer": by_main(make_tokenizer_json),
        "qwen35": by_main(make_qwen35_folder), "near": near, "reword": reword, "key": key}


def words(stream):
    word = bytearray()
    while True:
        byte = stream.read(1)
        if not byte:
            return
        if byte != b"\0":
            word += byte
            continue
        yield os.fsdecode(bytes(word))
        word.clear()


def main():
    stream = words(sys.stdin.buffer)
    for n in stream:
        name, *arguments = [next(stream) for _ in range(int(n))]
        code, out = 0, io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                JOBS[name](*arguments)
            except (Exception, SystemExit) as e:
                code = 1
                print("%s: %s: %s" % (name, type(e).__name__, e))
        sys.stdout.write("%d%s\0" % (code, out.getvalue()))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
