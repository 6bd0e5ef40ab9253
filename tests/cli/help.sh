#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What the program says of itself: --help of it and of every command (80 columns, and a
# screen of 50 lines), and its columns (text, JSON, and the tables that results/README.md
# ends with)
. "$SRC/tests/cli/lib.sh"

columns=80 lines=50

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
for command in $commands; do
    "$BENCH" "$command" --help >help.$command || fail "no help of $command"
    grep -q "^usage: bench $command" help.$command || fail "$command: no usage"
    fits "$command" help.$command
    ! grep -E ' $' help.$command || fail "help of $command: blanks at a line's end"
done

# ---- plain English
for verb in add compare changes gates; do
    "$BENCH" history $verb --help >help.history_$verb || fail "no help of history $verb"
    fits "history $verb" help.history_$verb
done
if command -v python3 >/dev/null; then
    python3 "$SRC/tests/language.py" --texts "$PWD"/help* || fail "words that help does not use"
fi

"$BENCH" help topo | cmp - help.topo || fail "bench help topo is not bench topo --help"
refused 2 "there is no command 'nothing'" help nothing
for word in version -V --version; do
    "$BENCH" $word | grep -q '^bench [0-9]' || fail "no version: bench $word"
done

# Only commands that run kernels know --isa-disable.
grep -q -- --isa-disable help.generate || fail "generate runs kernels"
! grep -q -- --isa-disable help.plot help.fields || fail "plot and fields run none"
refused 2 "plot has no option --isa-disable" plot --isa-disable avx2 .
refused 2 "gate: --calibrate takes no value" gate --calibrate=yes

# Two models of a command that takes one are no model and a forgotten one.
for command in chat choose decode embed gate generate imatrix logits plan serve tokenize; do
    refused 2 "--model is given twice, as a.gguf and b.gguf, and $command takes one" $command -m a.gguf -m b.gguf
done
refused 2 "--draft is given twice, as a.gguf and b.gguf" generate -m c.gguf --draft a.gguf --draft b.gguf

# ---- bench fields
"$BENCH" fields >text
grep -qE '^  roof_gbps +GB/s +read bandwidth' text || fail "no roof: $(cat text)"
"$BENCH" fields --json >json
[ "$(grep -c '"name"' json)" = "$(grep -c '^  ' text)" ] || fail "JSON and text differ"
grep -q '"values"' json || fail "no values of closed sets: $(cat json)"
for type in text integer number; do
    grep -q "\"type\": \"$type\"" json || fail "no column of type $type: $(cat json)"
done
"$BENCH" fields --markdown >markdown
tail -n "$(wc -l <markdown)" "$SRC/results/README.md" | cmp - markdown ||
    fail "results/README.md is not up to date: append \`bench fields --markdown\`"
refused 2 "there is no column 'surplus'; \`bench fields\` lists them" fields surplus
refused 2 "there is no column 'mbu_l'; did you mean mbu_lo?" fields mbu mbu_l
"$BENCH" fields mbu limiter >two
grep -q '^  mbu ' two && grep -q '^  limiter ' two && [ "$(grep -c '^  [a-z]' two)" = 2 ] && [ "$(wc -L <two)" -le 79 ] ||
    fail "two columns: $(cat two)"
! has_terminals || python3 "$SRC/tests/cli/at_terminal.py" 80 "$BENCH" fields >wrapped || fail "fields at a terminal: $(cat wrapped)"
