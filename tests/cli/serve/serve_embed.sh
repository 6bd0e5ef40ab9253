# SPDX-License-Identifier: MIT
# bench serve with an embedding model: /v1/embeddings as its clients see it
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || skip "no python3"
zoo=$SRC/tests/data/models/zoo
for m in bert-mean gemma-embedding-dense; do
    PYTHONPATH=$SRC/tests/cli/serve python3 "$SRC/tests/cli/serve/serve_embed.py" \
        "$zoo/$m.gguf"
done
PYTHONPATH=$SRC/tests/cli/serve python3 "$SRC/tests/cli/serve/serve_embed.py" --generates \
    "$SRC/tests/data/models/stories260K-f32.gguf"
