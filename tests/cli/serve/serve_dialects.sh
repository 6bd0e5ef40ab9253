# SPDX-License-Identifier: MIT
# bench serve: /v1/messages as Anthropic's clients have it, /v1/responses as OpenAI's do
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || skip "no python3"
PYTHONPATH=$SRC/tests/cli/serve python3 "$SRC/tests/cli/serve/serve_dialects.py" \
    "$SRC/tests/data/models/stories260K-f32.gguf"
