#!/bin/bash
# SPDX-License-Identifier: MIT
#
# bench gate of two servers, of two commits, and of two models whose answers are compared:
# a slower one fails, what cannot take turns is refused, and nothing is left behind.
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || { echo "needs python3"; exit 77; }
export SLMBENCH_CACHE=$WORK/cache

# One short round of a launch.
cat >short.yaml <<'END'
model: nano:Q4_K_M
prefill: [none]
ctx: [0]
rounds: 1
margin: 10%
memory: false
load: false
END
gate=(gate -c short.yaml --no-charts --seed 3)

# ---- servers. A static program has no libcurl, and prints that.
has_servers=yes
if "$BENCH" load --url http://127.0.0.1:1 2>&1 | grep -q libcurl; then
    has_servers=
else
    server() { echo "$SLOW_SERVER port.$1 log.$1 port={port} ttft=2 gap=$2"; }
    if is_full; then
        code=0
        "$BENCH" "${gate[@]}" --budget 60s --a-launch "$(server a 8)" --b-launch "$(server b 8)" \
            -o servers >out 2>err || code=$?
        [ "$code" = 0 ] || [ "$code" = 4 ] || fail "equal servers: exit $code: $(cat out err)"
    fi

    # two that are there
    rm -f port.a port.b
    "$SLOW_SERVER" port.a log.a ttft=2 gap=4 &
    "$SLOW_SERVER" port.b log.b ttft=2 gap=8 &
    for _ in $(seq 100); do [ -s port.a ] && [ -s port.b ] && break; sleep 0.05; done
    a=http://127.0.0.1:$(cat port.a) b=http://127.0.0.1:$(cat port.b)
    refused 2 "A and B are one server" "${gate[@]}" --a "$a" --b "$a/v1/"
    refused 2 "between two machines" "${gate[@]}" --a "$a" --b "http://192.0.2.1:80"
    refused 2 "is there already" "${gate[@]}" --a "$a" --b-launch "$(server b 4)"
    for own in "--threads 2" "--weights mmap" "--model nano:Q4_0"; do
        refused 2 "${own% *} and servers exclude each other" "${gate[@]}" --a "$a" --b "$b" $own
    done
    refused 2 "--mem limits what the gate starts" "${gate[@]}" --a "$a" --b "$b" --mem 1G
    code=0
    "$BENCH" "${gate[@]}" --budget 30s --a "$a" --b "$b" -o urls >out 2>err || code=$?
    [ "$code" = 1 ] || fail "two addresses: exit $code: $(cat out err)"
    grep -q "the gate did not start these servers" out || fail "no note: $(cat out)"
    grep -q "^<pre>bench gate --a $a --b $b -c short.yaml --margin 10% --budget 30s</pre>$" urls/gate.md ||
        fail "this repeats no gate of two addresses: $(cat urls/gate.md)"
    kill %1 %2
    refused 2 "no server answers at" "${gate[@]}" --a "$a" --b "$b"
    refused 2 "A ended before it was ready: no room" "${gate[@]}" \
        --a-launch 'sh -c "echo no room >&2; exit 1" {port}' --b-launch "$(server b 4)"
    ! is_full || refused 2 "computes while nobody requests anything" "${gate[@]}" --budget 30s \
        --a-launch "$(server a 4) & while :; do :; done" --b-launch "$(server b 4)"
fi
refused 2 "--mem does not reach into a container" "${gate[@]}" --mem 1G \
    --a-launch "podman run -p {port}:80 old" --b-launch "X=1 /usr/bin/docker run -p {port}:80 new"
for way in "sudo docker" "  docker" "env X=1 podman" "timeout 9 /usr/local/bin/nerdctl" "exec 'docker'" "docker-compose"; do
    refused 2 "--mem does not reach into a container" "${gate[@]}" --mem 1G \
        --a-launch "$way run -p {port}:80 old" --b-launch "x --model docker.gguf --port {port}"
done
refused 2 "a server's command has {port}" "${gate[@]}" --a-launch "llama-server"
refused 2 "A is a build of bench and B a server, which cannot take turns: A is this program unless --a" \
    "${gate[@]}" --b-launch "x --port {port}"

# ---- commits: each is built in a tree of its own, which is gone afterwards. Theirs are
# servers, the second one slower.
if [ -n "$has_servers" ] && command -v git >/dev/null; then
    commit() { git -c user.name=x -c user.email=x@x commit -qam "$1"; }
    run_in() { printf '#!/bin/sh\nexec "%s" at log port=$1 ttft=2 gap=%s\n' "$SLOW_SERVER" "$1" >run.in; }
    mkdir tree && cd tree
    git init -q .
    run_in 4
    git add run.in && commit fast
    run_in 8
    commit slow
    cp ../short.yaml .
    build=(--build 'mkdir -p out && cp run.in out/run && chmod +x out/run' --run 'out/run {port}')
    left() {
        [ "$(git worktree list | wc -l)" = 1 ] || fail "a work tree is left: $(git worktree list)"
        [ -z "$(find "$SLMBENCH_CACHE" -name 'gate-*')" ] || fail "left: $(ls "$SLMBENCH_CACHE")"
    }
    code=0
    "$BENCH" "${gate[@]}" --budget 30s --a HEAD~1 "${build[@]}" -o ../commits >out 2>err || code=$?
    [ "$code" = 1 ] || fail "a slower server: exit $code: $(cat out err)"
    grep -qE "^TPOT, depth 0 +[0-9.]+ ms +[0-9.]+ ms +-[0-9.]+ % .* fail$" out ||
        fail "no metric: $(cat out)"
    grep -q "^slow, requests over HTTP" out || fail "no model: $(cat out)"
    pgrep -f "$SLOW_SERVER at log " && fail "a server is left"
    grep -q "^A  out/run {port} of HEAD~1 ($(git rev-parse HEAD~1 | cut -c1-12))" out || fail "side: $(cat out)"
    left
    "$BENCH" "${gate[@]}" --since HEAD "${build[@]}" >out 2>err || fail "no change: $(cat err)"
    grep -q "have the same files: there is nothing to compare" out || fail "no change: $(cat out)"
    echo 'exit 1 # not yet' >>run.in
    code=0
    "$BENCH" "${gate[@]}" --since HEAD~1 --build '! grep "not yet" run.in' --run run.in \
        >out 2>err || code=$?
    [ "$code" = 2 ] || fail "a failed build: exit $code: $(cat err)"
    grep -q "^  exit 1 # not yet$" err && grep -q "B (the working tree) does not build" err ||
        fail "no lines of the build: $(cat err)"
    git diff --quiet && fail "the working tree was changed"
    left
    refused 2 "there is no commit 'nowhere'" "${gate[@]}" --a nowhere "${build[@]}"
    refused 2 "--build needs --run" "${gate[@]}" --a HEAD~1 --build true
    refused 2 "--run needs --build" "${gate[@]}" --a HEAD~1 --run out/run
    # Ctrl-C while it builds
    "$BENCH" "${gate[@]}" --a HEAD~1 --build 'touch "$SLMBENCH_CACHE/built"; sleep 60' --run x >out 2>err &
    for _ in $(seq 100); do [ -e "$SLMBENCH_CACHE/built" ] && break; sleep 0.05; done
    kill -INT $!
    code=0
    wait $! || code=$?
    [ "$code" = 130 ] || fail "Ctrl-C while it builds: $code, $(cat err)"
    left
    cd ..
    (cd / && refused 2 "is in no git repository" "${gate[@]/short/$WORK/short}" --a HEAD "${build[@]}")
fi

# ---- answers of two models
refused 2 "name B's with --b-model" "${gate[@]}" --b "$BENCH" --max-kl 0.1
refused 2 "random weights have no quality to lose" "${gate[@]}" --b-model nano:Q8_0 --max-kl 0.1
if is_full; then
    model=$SRC/tests/data/models/shakespeare3M-f16.gguf
    "$BENCH" quantize "$model" q2.gguf Q2_K >out || fail "quantize"
    code=0
    "$BENCH" "${gate[@]}" -t 1 -m "$model" --b-model q2.gguf --max-kl 0.01 --margin 45 --budget 30s \
        -o answers >out 2>err || code=$?
    [ "$code" = 1 ] || fail "other answers: exit $code: $(cat out err)"
    grep -q "^fail: B's answers diverge too far from A's: KL 0.0" out || fail "answers: $(cat out)"
fi
