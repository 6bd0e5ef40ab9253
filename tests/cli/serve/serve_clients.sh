# SPDX-License-Identifier: MIT
# bench serve: OpenAI's client for Node. `npm install openai` in a folder, and that as
# OPENAI_NODE; ci/full does so where there is npm and a network.
. "$SRC/tests/cli/lib.sh"
command -v node >/dev/null || skip "no node"
modules=${OPENAI_NODE:-}
if [ -z "$modules" ] && [ -n "${SLM_TEST_LONG:-}" ] && command -v npm >/dev/null; then
    mkdir packages
    (cd packages && timeout 120 npm install --silent --no-fund --no-audit openai) >npm.txt 2>&1 &&
        modules=$PWD/packages
fi
[ -d "${modules:-/nonexistent}/node_modules/openai" ] ||
    skip "no npm package openai: install it in a folder and name that as OPENAI_NODE"

mkdir client
ln -s "$(realpath "$modules/node_modules")" client/node_modules
cp "$SRC/tests/cli/serve/openai.mjs" client/
"$BENCH" serve -m "$SRC/tests/data/models/stories260K-f32.gguf" --port 0 --name tiny \
    --chat-template zephyr >out 2>err &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
for _ in $(seq 300); do
    [ -s out ] || sleep 0.1
done
url=$(sed -n 's/.* on \(http:[^,]*\),.*/\1/p' out)
[ -n "$url" ] || fail "no first line: $(cat err)"
node client/openai.mjs "$url/v1" >said 2>&1 || fail "$(cat said)"
kill -TERM $server
wait $server || fail "stopped with $?: $(cat err)"
trap - EXIT
