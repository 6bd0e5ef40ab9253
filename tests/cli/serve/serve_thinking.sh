# SPDX-License-Identifier: MIT
# bench serve: thoughts apart from answers, budgets for them, and a template's variables
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || skip "no python3"
PYTHONPATH=$SRC/tests/cli/serve python3 "$SRC/tests/cli/serve/serve_thinking.py" \
    "$SRC/tests/data/models/stories260K-f32.gguf"
