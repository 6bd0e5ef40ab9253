# SPDX-License-Identifier: MIT
# bench serve: clients that are published as packages for Node. `npm install` them in a
# folder, and that as NODE_CLIENTS; ci/full does so where there is npm and a network.
. "$SRC/tests/cli/lib.sh"
command -v node >/dev/null || skip "no node"
packages="openai @anthropic-ai/sdk ai @ai-sdk/openai-compatible @langchain/openai @langchain/core ollama"
modules=${NODE_CLIENTS:-}
if [ -z "$modules" ] && [ -n "${SLM_TEST_LONG:-}" ] && command -v npm >/dev/null; then
    mkdir packages
    # shellcheck disable=SC2086 # words
    (cd packages && timeout 180 npm install --silent --no-fund --no-audit $packages) >npm.txt 2>&1 &&
        modules=$PWD/packages
fi
for package in $packages; do
    [ -d "${modules:-/nonexistent}/node_modules/$package" ] ||
        skip "no npm package $package: install it in a folder and name that as NODE_CLIENTS"
done

mkdir client
ln -s "$(realpath "$modules/node_modules")" client/node_modules
cp "$SRC"/tests/cli/serve/*.mjs client/
cat >template <<'END'
{% for t in tools or [] %}{{ t.function.name }} {% endfor %}{% for m in messages %}
{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}<call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</call>{% endfor %}{% endfor %}{% if add_generation_prompt %}
assistant: {% endif %}
END
"$BENCH" serve -m "$SRC/tests/data/models/stories260K-f32.gguf" --port 0 --name tiny \
    --chat-template ./template >out 2>err &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
for _ in $(seq 300); do
    [ -s out ] || sleep 0.1
done
url=$(sed -n 's/.* on \(http:[^,]*\),.*/\1/p' out)
[ -n "$url" ] || fail "no first line: $(cat err)"
for client in client/*.mjs; do
    node "$client" "$url/v1" >>said 2>&1 || fail "$(cat said)"
done
kill -TERM $server
wait $server || fail "stopped with $?: $(cat err)"
trap - EXIT
