# SPDX-License-Identifier: MIT
# bench serve: clients that vanish, read slowly, send too much or nonsense, prompts of
# 8 MB, and many requests: every refusal is a proper one, nobody else waits for it, no
# slot stays taken, memory comes back.
# SERVE_REQUESTS and SERVE_SECONDS say how many and how long; ci/full: 10,000, 10 minutes.
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || skip "no python3"
if [ -n "${SLM_TEST_LONG:-}" ]; then
    requests=10000 seconds=600
    [ -z "${SANITIZE:-}" ] || seconds=60
else
    requests=100 seconds=1
fi
PYTHONPATH=$SRC/tests/cli/serve python3 "$SRC/tests/cli/serve/serve_faults.py" \
    "$SRC/tests/data/models/stories260K-f32.gguf" "${SERVE_REQUESTS:-$requests}" \
    "${SERVE_SECONDS:-$seconds}"
