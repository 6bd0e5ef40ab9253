# SPDX-License-Identifier: MIT
#
# bench serve --speculate: answers are those without, alone and several at once; what was
# drafted is in /metrics and next to usage; what cannot draft is refused. Whether drafts
# pay on this machine decides how many there are.
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || skip "no python3"
data=$SRC/tests/data/models

refused 2 "drafts are off, lookup or mtp, not" serve -m "$data/stories260K-f32.gguf" --port 0 \
    --speculate copy
refused 3 "no layer that predicts further tokens" serve \
    -m "$data/stories260K-f32.gguf" --port 0 --speculate mtp
refused 2 "makes vectors" serve -m "$data/zoo/bert-mean.gguf" --port 0 --speculate lookup
stories=$data/stories260K-f32.gguf
refused 2 "exclude each other" serve -m "$stories" --port 0 --speculate lookup \
    --draft "$stories"
refused 2 "another vocabulary" serve -m "$stories" --port 0 --draft "$data/llama.gguf"
refused 2 "none.gguf" serve -m "$stories" --port 0 --draft none.gguf
refused 3 "1.00 KiB" serve -m "$stories" --port 0 --draft "$stories" --kv-memory 1K

PYTHONPATH=$SRC/tests/cli/serve python3 - "$data" <<'END'
import sys
import threading
from server import Server, check

USERS, N = 4, 120


def answers(server, prompt):
    """Several users at once: text and usage of each, with what was drafted."""
    got = [None] * USERS

    def request(i):
        got[i] = server.complete(prompt=prompt * (i + 1), max_tokens=N, seed=i,
                                 temperature=0.7 * (i % 2), ignore_eos=True)

    threads = [threading.Thread(target=request, args=(i,)) for i in range(USERS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return got


def run(model, how, prompt):
    by = ["--speculate", how] if how in ("off", "lookup", "mtp") else ["--draft", how]
    server = Server(model, "--sequences", "3", "--ctx", "512", *by)
    check(("drafts by" in server.line) == (how != "off"), server.line)
    # the weights and the cache of a draft model are a part of what is planned
    check(("(weights " in server.line) == (by[0] == "--draft"), server.line)
    got = answers(server, prompt)
    metrics = server.metrics()
    drafted = sum(a.get("timings", {}).get("draft_n", 0) for a in got)
    accepted = sum(a.get("timings", {}).get("draft_n_accepted", 0) for a in got)
    check(metrics["slm_drafted_tokens_total"] == drafted, metrics, got)
    for k, total in (("tried", drafted), ("accepted", accepted)):
        n = [metrics[f'slm_draft_{k}_total{{position="{i}"}}'] for i in range(1, 8)]
        check(n == sorted(n, reverse=True) and sum(n) <= total, k, n)
        check(k == "tried" or sum(n) == accepted, n, accepted)
    check(how != "off" or drafted == 0, got)
    check(all(a["usage"]["completion_tokens"] == N for a in got), got)
    print(how, "drafted", drafted, "accepted", accepted)
    return [a["choices"][0]["text"] for a in got]


data = sys.argv[1]
plain = run(data + "/stories260K-f32.gguf", "off", "Once upon a time, ")
for how in "lookup", data + "/stories260K-f32.gguf", data + "/shakespeare3M-f16.gguf":
    got = run(data + "/stories260K-f32.gguf", how, "Once upon a time, ")
    check(got == plain, how, got, plain)
# In eight bits passes of several tokens round otherwise, and a tie parts texts for good:
# test_scheduler_drafts.c holds them to the model.
for how in "mtp", "lookup":
    run(data + "/zoo/qwen35-mtp.gguf", how, [5, 17, 99, 4, 230])
END
