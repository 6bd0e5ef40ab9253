#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A system call that fails: one sentence and an exit code, nothing lost, nothing left.
# A call of every kind in the quickest commands; with SLM_TEST_LONG=1 every call of
# readers, history and serve, and all that differ in what measures for seconds.
# tests/faults/faults.py says what is promised.
. "$SRC/tests/cli/lib.sh"
command -v python3 >/dev/null || skip "no python3"
python3 -c 'import sqlite3' 2>/dev/null || skip "no sqlite3 for python3"
[ -x "${FAULT_RUNNER:-}" ] || skip "no fault_runner"

# faults NAME OPTION...: in a folder of its own
faults() {
    python3 "$SRC/tests/faults/faults.py" "$FAULT_RUNNER" "$BENCH" "$SRC" "$WORK/$1" "${@:2}"
}

# Whichever look at a file fails, the .part of a large file goes: all positions are few.
faults parts --positions 100 --commands pack,quantize --kinds stat --faults EIO
if ! is_full; then
    faults files --positions 1 --commands decode,quantize,pack,history \
        --kinds open,read,write,fsync,rename,unlink,mkdir,truncate,mmap,fork,thread,exec,pipe,stat,list,lock,cgroup,io_uring
    faults fence --positions distinct --once --commands quantize --kinds fence
    faults locks --positions every --once --commands quality --kinds lock --faults ENOLCK
    faults distinct --positions distinct --once --commands convert --kinds list
    # A server that never has to wait is ended by SIGTERM, too.
    faults serve --positions 1 --commands serve --kinds accept,send,thread \
        --faults EMFILE,ECONNABORTED,EPIPE,EAGAIN
    exit 0
fi

# Side by side; SLM_TEST_FAULTS takes some of them, SLM_TEST_SHARD a part of each. A
# shard of .github/workflows/full.yml takes two hours and less.
declare -A jobs=(
    [gate]="distinct gate" [sweep]="distinct sweep" [resume]="distinct resume,probe,plot" [serve]="every serve"
    [decode]="every decode,generate" [files]="every quantize,pack,imatrix,convert,occupied,chosen,quality,plan"
    [readers]="every rows,tree,gguf,topo,tokenize,recommend,report,history,again,compare,changes"
)
read -ra names <<<"${SLM_TEST_FAULTS:-${!jobs[*]}}"
pids=()
for name in "${names[@]}"; do
    [ -n "${jobs[$name]:-}" ] || fail "SLM_TEST_FAULTS: '$name' is none of ${!jobs[*]}"
    read -r positions commands <<<"${jobs[$name]}"
    faults "$name" --positions "$positions" --commands "$commands" --shard "${SLM_TEST_SHARD:-1/1}" >"$name.log" 2>&1 &
    pids+=($!)
done
code=0
for pid in "${pids[@]}"; do
    wait "$pid" || { now=$?; [ $code = 1 ] || code=$now; }
done
grep -H . -- *.log
exit $code
