# SPDX-License-Identifier: MIT
#
# bench serve with models that continue a text from checkpoints: a later turn computes
# its own tokens, memory is as the first line plans it, and nothing is kept where that is
# switched off
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || skip "no python3"

PYTHONPATH=$SRC/tests/cli/serve python3 - "$SRC/tests/data/models" <<'END'
import re
import sys
from server import Server, check

TAIL = 16  # of a prompt, before which a checkpoint is


def prompt(n, seed):
    return [5 + (i * 7 + seed * 31 + i * i % 11) % 200 for i in range(n)]


def cached(server, tokens, **fields):
    usage = server.complete(prompt=tokens, max_tokens=5, ignore_eos=True, **fields)["usage"]
    return usage["prompt_tokens_details"]["cached_tokens"]


for name in sys.argv[2:] or ("gemma3", "zoo/qwen35-mtp", "zoo/lfm2", "zoo/granitehybrid-moe"):
    model = f"{sys.argv[1]}/{name}.gguf"
    server = Server(model, "--sequences", "2", "--ctx", "256")
    first = prompt(100, 1)
    check(cached(server, first) == 0, name)
    check(cached(server, first + prompt(30, 2)) == 100 - TAIL, name)
    check(cached(server, first[:70] + prompt(40, 3)) == 0, name)
    check(cached(server, first[:70] + prompt(50, 4)) == 70, "it parted there", name)
    check(cached(server, first, cache_prompt=False) == 0, name)
    n = int(re.search(r" for (\d+) checkpoints", server.line)[1])
    server.wait_idle()
    metrics = server.metrics()
    check(metrics["slm_checkpoints"] == n, server.line, metrics)
    check(1 < metrics["slm_checkpoints_kept"] <= n, metrics)
    check(metrics["slm_checkpoints_kept"] + metrics["slm_checkpoints_free"] == n, metrics)
    check(metrics["slm_cached_tokens_total"] == 100 - TAIL + 70, metrics)
    check(metrics["slm_checkpoints_restored_total"] == 2, metrics)
    check(metrics["slm_checkpoints_made_total"] - metrics["slm_checkpoints_dropped_total"] ==
          metrics["slm_checkpoints_kept"], metrics)
    server.stop()

    server = Server(model, "--sequences", "2", "--ctx", "256", "--no-prefixes")
    check("checkpoints" not in server.line, server.line)
    for _ in range(2):
        check(cached(server, first) == 0, name)
    check(server.metrics()["slm_checkpoints"] == 0, name)
    server.stop()
END
