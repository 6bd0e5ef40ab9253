# SPDX-License-Identifier: MIT
# bench serve: calls of tools, in messages and in streams
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || skip "no python3"
PYTHONPATH=$SRC/tests/cli/serve python3 "$SRC/tests/cli/serve/serve_tools.py" \
    "$SRC/tests/data/models/stories260K-f32.gguf"
