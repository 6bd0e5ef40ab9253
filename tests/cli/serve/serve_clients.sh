# SPDX-License-Identifier: MIT
# bench serve: clients that are published as packages for Node, in the folder
# NODE_CLIENTS. ci/real installs them and runs this.
. "$SRC/tests/cli/lib.sh"
command -v node >/dev/null || skip "no node"
packages="openai @anthropic-ai/sdk ai @ai-sdk/openai-compatible @langchain/openai @langchain/core ollama"
modules=${NODE_CLIENTS:-}
for package in $packages; do
    [ -d "${modules:-/nonexistent}/node_modules/$package" ] ||
        skip "no npm package $package in the folder NODE_CLIENTS: ci/real installs it"
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
servers=()
trap 'kill "${servers[@]}" 2>/dev/null || true' EXIT
# serve MODEL OPTIONS...: its address into url
serve() {
    local line=out${#servers[@]}
    "$BENCH" serve -m "$SRC/tests/data/models/$1" --port 0 "${@:2}" >"$line" 2>>err &
    servers+=($!)
    for _ in $(seq 300); do
        [ -s "$line" ] || sleep 0.1
    done
    url=$(sed -n 's/.* on \(http:[^,]*\),.*/\1/p' "$line")
    [ -n "$url" ] || fail "no first line: $(cat err)"
}
serve zoo/bert-mean.gguf --name vectors
vectors=$url
serve stories260K-f32.gguf --name tiny --chat-template ./template
for client in client/*.mjs; do
    node "$client" "$url/v1" "$vectors/v1" >>printed 2>&1 || fail "$(cat printed)"
done
cat printed
for server in "${servers[@]}"; do
    kill -TERM "$server"
    wait "$server" || fail "stopped with $?: $(cat err)"
done
trap - EXIT
