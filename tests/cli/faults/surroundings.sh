#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What whoever starts the program has left it: descriptors that are not meant for it, and
# limits of files and stacks. Either it works, or it ends with one sentence.
. "$SRC/tests/cli/lib.sh"
model=$SRC/tests/data/models/stories260K-f32.gguf
echo secret >secret

# ---- descriptors: neither the program nor what it starts has them
has_none() { # WHAT PID
    local fd
    for fd in /proc/"$2"/fd/*; do
        [ "$(readlink "$fd" || true)" != "$WORK/secret" ] || fail "$1 has the caller's file as ${fd##*/}"
    done
}
mkdir tools
cat >tools/gnuplot <<'END2'
#!/bin/sh
readlink /proc/self/fd/* >>"$FOUND"
for form in svg png; do echo drawn >"${1%.gp}.$form"; done
END2
cat >tools/engine <<'END2'
#!/bin/sh
readlink /proc/self/fd/* >>"$FOUND"
echo "speed: 250.5 tok/s"
END2
chmod +x tools/*
export FOUND=$WORK/found
cp -r "$SRC/results/examples/granite-rapids-2vcpu" plot
chmod -R u+w plot
: >found
PATH=$WORK/tools:$PATH "$BENCH" plot plot >out 2>err 5<secret 77<secret || fail "plot: $(cat err)"
"$BENCH" decode -m "$model" -t 1 -n 4 --budget 0.1 --engine "x=$WORK/tools/engine {model} =~ speed: ([0-9.]+)" \
    >out 2>err 5<secret 77<secret || fail "decode: $(cat out err)"
[ "$(grep -c /dev/null found)" -ge 2 ] || fail "nothing was started: $(cat found)"
! grep -q /secret found || fail "a program that is started has the caller's file"
mkfifo go
"$BENCH" worker <go >out 5<secret 600<secret 1500<secret &
pid=$!
exec 7>go
for ((i = 0; i < 600; i++)); do [ ! -s out ] || break; sleep 0.05; done
has_none "a worker" $pid
exec 7>&-
wait $pid || fail "a worker: $(cat out)"
# What an argument names is meant for it.
"$BENCH" rows /dev/fd/9 9<"$SRC/results/examples/granite-rapids-2vcpu/sweep.csv" >out 2>err ||
    fail "a file by its descriptor: $(cat err)"

# ---- files of no size
file_limited() { (ulimit -f 0 && "$@"); }
code=0
file_limited "$BENCH" fields --markdown 2>&1 >file | cat >err || true
grep -q "^bench: cannot write to standard output$" err || fail "ulimit -f 0: $(cat err)"
for command in "quantize $model new.gguf Q8_0" "synth nano:Q4_0 -o new.gguf" "pack $model -o new.gguf" \
    "tokenize -m $model --json text" "plot plot" "rows plot -o new.txt" "history add new.db plot" \
    "report plot -o new.html"; do
    file_limited "$BENCH" $command 2>&1 >file | cat >err
    code=${PIPESTATUS[0]}
    [ "$code" = 2 ] || [ "$code" = 3 ] || fail "'$command' with ulimit -f 0 ended with $code: $(cat err)"
    grep -q "^bench: .*\(File too large\|cannot write\|full\|I/O error\)" err || fail "'$command' with ulimit -f 0: $(cat err)"
done
for file in new.gguf new.txt new.html; do [ ! -e $file ] || fail "$file was written"; done

# ---- small stacks
stack_limited() { (ulimit -s 64 && "$@"); }
for command in "gguf $model" topo "tokenize -m $model text" "generate -m $model -t 2 -n 4 -p text" "rows plot"; do
    code=0
    stack_limited "$BENCH" $command >out 2>err || code=$?
    [ "$code" = 0 ] || { [ "$code" = 3 ] && grep -q "^bench: stacks are limited to 64 KiB here" err; } ||
        fail "'$command' with ulimit -s 64 ended with $code: $(cat err)"
done
# Who may not raise the limit gets a sentence; one of 2 MiB will do.
if command -v setpriv >/dev/null && [ "$(id -u)" = 0 ]; then
    unable=(setpriv --bounding-set -sys_resource --inh-caps -sys_resource)
    code=0
    stack_limited "${unable[@]}" "$BENCH" gguf "$model" >out 2>err || code=$?
    [ "$code" = 3 ] && [ "$(cat err)" = "bench: stacks are limited to 64 KiB here and 1024 are needed; \`ulimit -s \
8192\` before, or as root, gives more" ] || fail "a small stack for good: $code: $(cat out err)"
    (ulimit -s 2048 && "${unable[@]}" "$BENCH" decode -m "$model" -t 2 -n 4 --budget 0.1) >out 2>err ||
        fail "2 MiB: $(cat err)"
fi
