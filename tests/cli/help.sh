#!/bin/bash
# SPDX-License-Identifier: MIT
#
# --help of the program and of every command: 80 columns, and a screen of 45 lines
. "$SRC/tests/cli/lib.sh"

columns=80 lines=45

# fits NAME FILE
fits() {
    local widest
    widest=$(wc -L <"$2")
    [ "$widest" -le $columns ] || fail "help of $1 has a line of $widest columns: \
$(awk -v n=$columns 'length > n { print; exit }' "$2")"
    [ "$(wc -l <"$2")" -le $lines ] ||
        fail "help of $1 has $(wc -l <"$2") lines, more than $lines"
}

"$BENCH" --help >help
fits bench help
commands=$(sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' help)
[ "$(wc -w <<<"$commands")" -ge 19 ] || fail "no list of commands: $(cat help)"
for command in $commands count; do
    "$BENCH" "$command" --help >help.$command || fail "no help of $command"
    grep -q "^usage: bench $command" help.$command || fail "$command: no usage"
    fits "$command" help.$command
    ! grep -E ' $' help.$command || fail "help of $command: blanks at a line's end"
done

# Only commands that run kernels know --isa-disable.
grep -q -- --isa-disable help.generate || fail "generate runs kernels"
! grep -q -- --isa-disable help.plot help.fields || fail "plot and fields run none"
refused 2 "plot has no option --isa-disable" plot --isa-disable avx2 .
refused 2 "unexpected argument 'surplus'" fields surplus
