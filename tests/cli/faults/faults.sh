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
    faults locks --positions every --once --commands quality --kinds lock --faults ENOLCK
    faults distinct --positions distinct --once --commands convert --kinds list
    # A server that never has to wait is ended by SIGTERM, too.
    faults serve --positions 1 --commands serve --kinds accept,send,thread \
        --faults EMFILE,ECONNABORTED,EPIPE,EAGAIN
    exit 0
fi

# By length, side by side: the first two take hours.
faults gate --positions distinct --commands gate >gate.log 2>&1 &
faults sweep --positions distinct --commands sweep,resume,plot >sweep.log 2>&1 &
faults serve --positions every --commands serve >serve.log 2>&1 &
faults others --positions every --commands rows,tree,gguf,topo,plan,quality,convert,occupied,chosen,tokenize,generate,recommend,report,history,again,compare,changes,decode,quantize,pack,imatrix >others.log 2>&1 &
code=0
for job in $(jobs -p); do
    wait "$job" || { now=$?; [ $code = 1 ] || code=$now; }
done
grep -H . gate.log sweep.log serve.log others.log
exit $code
