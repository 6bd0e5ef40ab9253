#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A mapped model that becomes shorter while it is read is one sentence and exit code 2
# of a command that runs it, and an error of the point that measures it.
. "$SRC/tests/cli/lib.sh"
model=$SRC/tests/data/models/stories260K-f32.gguf
why='has become shorter while it was read'

# one_sentence COMMAND: how it ended, by $code and err
one_sentence() {
    [ "$code" = 2 ] || fail "$1 ended with $code: $(cat err)"
    [ "$(grep -c '^bench: ' err)" = 1 ] || fail "$1: not one sentence: $(cat err)"
    grep -qF "model.gguf $why" err || fail "$1: $(cat err)"
}

# A chat has answered, and is asked again.
cp "$model" model.gguf
coproc chat { "$BENCH" chat -m model.gguf --weights mmap --chat-template zephyr --temp 0 -n 20 2>err; }
pid=$chat_PID
to=${chat[1]} from=${chat[0]}
exec 5>&"$to" 6<&"$from"
echo "Once upon a time" >&5
read -r -u 6 answer
truncate -s 64K model.gguf
(echo "Then she" >&5) || true # it may have ended by now: SIGPIPE
exec 5>&- {to}>&-
code=0
cat <&6 >/dev/null
wait "$pid" || code=$?
one_sentence chat

# The measuring worker has opened the model, and measures once before and once after.
cp "$model" model.gguf
open='{"open": {"model": "model.gguf", "path": "model.gguf", "residency": 1, "kv_type": 0,
    "n_batch": 16, "cpus": [], "memory_bytes": 0, "isa_disabled": 0, "seed": 3, "slower": 0,
    "n_loads": 1, "steps": [[0, 1, 4, ""]]}}'
coproc worker { "$BENCH" worker 2>err; }
pid=$worker_PID
to=${worker[1]} from=${worker[0]}
exec 5>&"$to" 6<&"$from"
read -r -u 6 greeting
printf '%s\n{"take": [2]}\n' "${open//$'\n'/}" >&5
while read -r -u 6 answer && [[ $answer != '{"s":'* ]]; do
    [[ $answer != *error* ]] || fail "the worker: $answer"
done
truncate -s 64K model.gguf
(echo '{"take": [2]}' >&5) || true
exec 5>&- {to}>&-
code=0
cat <&6 >last
wait "$pid" || code=$?
[ "$code" = 2 ] || fail "the worker ended with $code: $(cat last err)"
grep -qF "model.gguf $why" last || fail "the worker: $(cat last err)"

# A whole measurement: the point has an error, and the command says so.
cp "$model" model.gguf
"$BENCH" decode -m model.gguf -t 1 --weights mmap --ctx 0 -n 1000000 --budget 600 --all >row 2>err &
pid=$!
measuring=
for ((i = 0; i < 1200 && !${#measuring}; i++)); do
    kill -0 $pid 2>/dev/null || fail "decode has ended: $(cat row err)"
    child=$(worker_of $pid)
    ! grep -qs "$WORK/model.gguf" /proc/${child:-0}/maps || measuring=$child
    sleep 0.1
done
[ -n "$measuring" ] || fail "no process has mapped the model"
truncate -s 64K model.gguf
code=0
wait $pid || code=$?
[ $code = 1 ] || fail "decode ended with $code: $(cat row err)"
grep -qE '^ *status +error' row || fail "decode: $(cat row err)"
grep -qF "model.gguf $why" row || fail "decode does not say why: $(cat row err)"
[ ! -e /proc/$measuring/maps ] || fail "the measuring process goes on"
