# SPDX-License-Identifier: MIT
# bench serve: the API, endpoint by endpoint, as its clients see it
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || skip "no python3"
model=$SRC/tests/data/models/stories260K-f32.gguf

"$BENCH" serve --help | grep -q -- --api-key-file
refused 2 "name the model" serve --port 0
refused 2 "argument" serve -m "$model" hello
refused 2 "no-such" serve -m no-such.gguf --port 0
refused 2 "ADDRESS:PORT" serve -m "$model" --listen example.com:80
refused 2 "port" serve -m "$model" --listen 127.0.0.1:x
refused 2 "made for contexts of 512" serve -m "$model" --port 0 --ctx 1000
refused 2 "neither a name (chatml, " serve -m "$model" --port 0 --chat-template x
refused 3 "smaller --ctx" serve -m "$model" --port 0 --kv-memory 1K
printf 'short\n' >keys
refused 2 "line 1" serve -m "$model" --port 0 --api-key-file keys

PYTHONPATH=$SRC/tests/cli/serve python3 "$SRC/tests/cli/serve/serve_api.py" "$model"
