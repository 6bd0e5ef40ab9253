#!/bin/bash
# SPDX-License-Identifier: MIT
#
# action.yml from its first step to its last, as a runner would run it: its variables and
# files, releases and GitHub's comments on loopback. A pull request gets one comment, that
# of a fork none; a program with another sum is not run. The gate is a stored one, and in
# ci/full also a real one of two commits.
. "$SRC/tests/cli/lib.sh"
python=$(python_with_yaml) || skip "no python3-yaml"
for tool in jq curl git; do
    command -v $tool >/dev/null || skip "no $tool"
done
python=$("$python" -c 'import sys; print(sys.executable)') # which may be looked for by a script
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
unset SLMBENCH_CACHE

# ---- a repository with two commits, and a "release": a program whose gates are stored ones
git init -q -b main clone
for side in old new; do
    printf '#!/bin/sh\n# %s\nexec "%s" "$@"\n' $side "$BENCH" >clone/engine
    chmod +x clone/engine
    git -C clone add -A
    git -C clone commit -q -m $side
done
before=$(git -C clone rev-parse HEAD^)
mkdir release
cat >release/bench-$(uname -m) <<END
#!/bin/bash
printf '%s\n' "\$*" >>"$WORK/calls"
[ -z "\${TOKEN:-}" ] || echo "the program sees the token" >>"$WORK/leaks"
case \$*,\$(cat "$WORK/stored") in
--version*) exec "$BENCH" --version ;;
*--calibrate*,slow*) echo "bench: this machine cannot detect a slowdown of 5 %" >&2; exit 3 ;;
*--calibrate*) echo "it can" && exit ;;
*,refused*) echo "bench: A: cannot find the program x%0A::error::y" >&2; exit 2 ;;
*,same*) echo "A and B have the same files: there is nothing to compare"; exit ;;
esac
mkdir -p "\${@: -1}"
cp "$WORK/\$(cat "$WORK/stored").json" "\${@: -1}/gate.json"
echo "::error::from a build"
exec "$BENCH" gate --report "\${@: -1}" --no-charts --exit-codes 0,1,0
END
chmod +x release/bench-*
(cd release && sha256sum bench-* >SHA256SUMS)
cp "$SRC/tests/fuzz/seeds/gate_json/gate.json" pass.json
jq '.verdict = "fail" | .metrics[0].verdict = "fail" | .metrics[0].name = "decode @someone <b>" |
    .metrics[0].effect = {ratio: .9, lo: .88, hi: .91, p_fail: .0001, p_pass: 1}' pass.json >fail.json

# ---- what a runner has
python3 "$SRC/tests/cli/decide/github_api.py" port state.json &
api=$!
trap 'kill $api' EXIT
state() { # MAY-WRITE TOKEN N-OTHER-COMMENTS
    jq -n --argjson w "$1" --arg t "$2" --argjson n "$3" '{may_write: $w, token: $t,
        comments: [range($n) | {id: (. + 1), body: "a comment that names slmbench gate: gate"}]}' >state.json
}
state true secret-1 120
for _ in $(seq 200); do [ -s port ] && break; sleep 0.02; done
runner() { # PULL TOKEN: context.json of a run
    jq -n --arg pull "$1" --arg token "$2" --arg temp "$WORK/temp" --arg before "$before" \
        --arg api "http://127.0.0.1:$(cat port)" '{
        runner: {temp: $temp, os: "Linux", arch: "X64"},
        github: {token: $token, sha: "0123456789abcdef", action_ref: "v9.9.9", action_repository: "owner/slmbench",
            event: (if $pull == "" then {before: $before}
                else {pull_request: {number: $pull, base: {sha: $before}}} end)},
        variables: {GITHUB_API_URL: $api, GITHUB_SERVER_URL: "https://github.example",
            GITHUB_REPOSITORY: "owner/engine", GITHUB_RUN_ID: "42", GITHUB_SHA: "0123456789abcdef",
            GITHUB_STEP_SUMMARY: ($temp + "/summary.md")}}' >runner.json
}
# runs CODE INPUTS: the action ends with CODE; its output in out, its outputs in outputs.json
runs() {
    local code=0
    rm -rf temp calls
    mkdir temp
    jq --argjson given "$2" --arg url "file://$WORK/release" '.inputs = {url: $url} + $given' \
        runner.json >context.json
    "$python" "$SRC/tests/support/workflows.py" action "$SRC/action.yml" context.json clone \
        >out 2>&1 </dev/null || code=$?
    tail -n 1 out >outputs.json
    [ $code = "$1" ] || fail "the action with $2 ended with $code, not $1: $(cat out)"
}
output() { jq -r ".$1" outputs.json; }
comments() { jq '[.comments[] | select(.body | startswith("<!-- slmbench gate: "))] | length' state.json; }
commits='{"build": "true", "run": "engine", "model": "nano:Q4_0", "options": "--ctx 8 -t \"1\"", "detect": "5%"}'

# ---- a pull request: a failure, and then a success in the same comment
runner 7 secret-1
echo fail >stored
runs 1 "$commits"
[ "$(output verdict)" = fail ] || fail "outputs: $(cat outputs.json)"
grep -q "^gate --calibrate --a HEAD --build true --run engine --ctx 8 -t 1 -m nano:Q4_0 --margin 3% --budget 10m --detect 5% " calls &&
    grep -q "^gate --a $before --b HEAD --build true --run engine --ctx 8 -t 1 -m nano:Q4_0 " calls ||
    fail "what bench was called with: $(cat calls)"
grep -q "bench gate: fail" temp/summary.md && grep -q "^::error title=bench gate%3A fail" out ||
    fail "no summary, no annotation: $(cat temp/summary.md out)"
grep -q "<testcase" "$(output junit)" && [ -s "$(output directory)/gate.json" ] || fail "nothing to upload"
awk '/^::stop-commands::/ { stopped = substr($0, 18) } $0 == "::" stopped "::" { stopped = "" }
     /^::error::from a build/ { n++; if (stopped == "") exit 1 } END { exit n == 0 }' out ||
    fail "what a build prints is a command of the runner: $(cat out)"
[ "$(comments)" = 1 ] && [ "$(output comment)" = "https://github.example/owner/engine/pull/7#1120" ] ||
    fail "no comment: $(cat out)"
jq -r '.comments[-1].body' state.json >comment.md
grep -q "bench gate: fail" comment.md && grep -q "actions/runs/42" comment.md && ! grep -q "@someone" comment.md ||
    fail "the comment: $(cat comment.md)"
[ ! -e leaks ] && ! grep -q secret-1 out || fail "the token is where others see it"
cp temp/summary.md failed.md
echo pass >stored
runs 0 "$commits"
jq -e '.comments[-1].body | contains("bench gate: pass")' state.json >/dev/null && [ "$(comments)" = 1 ] ||
    fail "not updated: $(cat state.json)"

# ---- a pull request from a fork: the token may only read; and no token at all
state false secret-1 3
runs 0 "$commits"
grep -q "^::notice title=bench gate::no comment on the pull request: the token may not write" out &&
    [ "$(comments)" = 0 ] || fail "of a fork: $(cat out)"
grep -q "bench gate: pass" temp/summary.md || fail "a fork has no summary"

# ---- a program with another sum than the release's
sed -i 's/^..../0000/' release/SHA256SUMS
runs 1 '{"a": "x"}'
grep -q "it is not run" out && [ ! -e calls ] || fail "a wrong sum: $(cat out)"
if ! is_full; then
    rm -rf "$WORK"
    exit
fi

# ---- other sums and releases
echo >release/SHA256SUMS
runs 1 '{"a": "x"}'
grep -q "has no sum of" out && [ ! -e calls ] || fail "no sum: $(cat out)"
(cd release && sha256sum bench-* >SHA256SUMS)
runs 1 '{"a": "x", "sha256": "1234"}'
grep -q "not 1234: it is not run" out && [ ! -e calls ] || fail "another sum: $(cat out)"
runs 1 '{"url": "file:///nowhere", "a": "x"}'
grep -q "^::error title=bench gate::.*cannot be downloaded" out || fail "no release: $(cat out)"

# ---- two gates of one workflow have a comment each
state true secret-1 0
runs 0 "$commits"
runs 0 '{"a": "x", "b": "y", "name": "other"}'
[ "$(comments)" = 2 ] || fail "two gates, $(comments) comments"

# ---- tokens that may not even read, a verdict that does not depend on it, a push
for token in "" wrong; do
    runner 7 "$token"
    runs 0 "$commits"
    grep -q "^::notice title=bench gate::no comment" out || fail "token '$token': $(cat out)"
done
echo fail >stored
runs 1 "$commits" # fails for the verdict
echo pass >stored

runner "" secret-1
runs 0 "$commits"
[ "$(output comment)" = "" ] || fail "a push: $(cat out)"

# ---- no verdict: a runner that is too noisy, a program that is refused, equal commits
echo slow >stored
runs 1 "$commits"
grep -q "cannot detect" temp/summary.md && [ "$(grep -c "^gate" calls)" = 1 ] || fail "a noisy runner: $(cat out)"
echo refused >stored
runs 1 "$commits"
grep -q '^::error title=bench gate::bench: A: cannot find the program x%250A' out || fail "refused: $(cat out)"
grep -q "no verdict (exit code 2)" temp/summary.md || fail "no reason: $(cat temp/summary.md)"
echo same >stored
runs 0 "$commits"
grep -q "nothing to compare" temp/summary.md && [ "$(output verdict)" = none ] || fail "equal: $(cat out)"
runs 1 '{"build": "true"}'
grep -q "belong together" out || fail "build without run: $(cat out)"
runs 1 '{"build": "true", "run": "engine", "base": "nowhere"}'
grep -q "does not have the commit nowhere" out || fail "no commit: $(cat out)"

# ---- a real gate of two commits
runner 7 secret-1
state true secret-1 0
runs 0 "{\"program\": \"$BENCH\", \"build\": \"true\", \"run\": \"engine\", \"model\": \"nano:Q4_0\",
    \"budget\": \"60s\", \"margin\": \"50%\", \"options\": \"-t 1 --ctx 8 --prefill none\"}"
[[ $(output verdict) = pass || $(output verdict) = inconclusive ]] && [ "$(comments)" = 1 ] ||
    fail "a real gate: $(cat out)"
rm -rf "$WORK"
