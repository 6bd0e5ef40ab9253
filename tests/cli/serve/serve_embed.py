# SPDX-License-Identifier: MIT
#
# serve_embed.py MODEL - vectors over HTTP are those of `bench embed`
import base64
import json
import os
import struct
import subprocess
import sys
import threading

from server import Server, check

PATH = "/v1/embeddings"


def embed(model, *arguments):
    out = subprocess.run([os.environ["BENCH"], "embed", "-m", model, *arguments],
                         capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def near(a, b):
    return len(a) == len(b) and sum((x - y) ** 2 for x, y in zip(a, b)) < 1e-4


def unit(v):
    return [x / sum(y * y for y in v) ** 0.5 for x in v]


def main(model):
    texts = ["a b c", "d", "e f g d c b a", ""]
    want = embed(model, *texts)
    n = len(want[0]["vector"])
    s = Server(model, "--sequences", "3")
    check(f"vectors of {n} numbers" in s.line, s.line)

    answer = s.post(PATH, {"input": texts, "model": os.path.basename(model)[:-5]})
    check(answer["object"] == "list" and len(answer["data"]) == 4, answer)
    for i, (got, w) in enumerate(zip(answer["data"], want)):
        check(got["index"] == i and got["object"] == "embedding", got)
        check(near(got["embedding"], w["vector"]), "text", i)
    total = sum(w["n_tokens"] for w in want)
    check(answer["usage"] == {"prompt_tokens": total, "total_tokens": total}, answer["usage"])
    t = answer["timings"]
    check(t["prompt_n"] == total and t["cache_n"] == 0 == t["predicted_n"] and
          t["prompt_ms"] > 0 and t["predicted_ms"] == 0, t)

    # One text; tokens; base64; fewer dimensions.
    one = s.post(PATH, {"input": texts[0]})["data"]
    check(len(one) == 1 and near(one[0]["embedding"], want[0]["vector"]), one)
    ids = embed(model, "--tokens", "1,7,30,2")[0]["vector"]
    check(near(s.post(PATH, {"input": [1, 7, 30, 2]})["data"][0]["embedding"], ids), "tokens")
    two = s.post(PATH, {"input": [[1, 7, 30, 2], [5]]})["data"]
    check(len(two) == 2 and near(two[0]["embedding"], ids), "lists of tokens")
    raw = base64.b64decode(
        s.post(PATH, {"input": texts[0], "encoding_format": "base64"})["data"][0]["embedding"])
    check(near(struct.unpack("<%df" % n, raw), want[0]["vector"]), "base64")
    cut = s.post(PATH, {"input": texts[0], "dimensions": 7})["data"][0]["embedding"]
    check(near(cut, unit(want[0]["vector"][:7])), "dimensions")

    # More texts than a pass has; several clients at once.
    many = s.post(PATH, {"input": texts[:3] * 40})["data"]
    check(all(near(v["embedding"], want[i % 3]["vector"]) for i, v in enumerate(many)), "many")
    bad = []

    def ask(k):
        data = s.post(PATH, {"input": texts[k % 3:k % 3 + 1] * (k + 1)})["data"]
        if not all(near(v["embedding"], want[k % 3]["vector"]) for v in data):
            bad.append(k)

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(not bad, "at once:", bad)

    # What is refused.
    def refused(body, status, word, path=PATH):
        message = s.post(path, body, status)["error"]["message"]
        check(word in message, body, message)

    refused({}, 400, "input is missing")
    refused({"input": 7}, 400, "must be a text")
    refused({"input": [1, 99999]}, 400, "no token")
    refused({"input": ["a"] * 2049}, 400, "at most 2048")
    refused({"input": "a", "dimensions": n + 1}, 400, f"vectors have {n}")
    refused({"input": "a", "encoding_format": "int8"}, 400, "encoding_format")
    refused({"input": ["d", "a " * 4000]}, 400, "input 1 has")
    refused({"input": "a", "model": "gpt-4"}, 404, "the model gpt-4 is not here")
    refused({"prompt": "a"}, 404, "/v1/embeddings", "/v1/completions")
    refused({"messages": [{"role": "user", "content": "a"}]}, 404, "/v1/embeddings",
            "/v1/chat/completions")
    check(s.ask("GET", PATH)[0] == 405, "GET")
    metrics = s.ask("GET", "/metrics")[2]
    check('path="/v1/embeddings"' in metrics or "/v1/embeddings" in metrics, metrics)
    s.stop()


def generates(model):
    s = Server(model)
    message = s.post(PATH, {"input": "a"}, 404)["error"]["message"]
    check("makes no vectors" in message, message)
    s.stop()


if sys.argv[1] == "--generates":
    generates(sys.argv[2])
else:
    main(sys.argv[1])
