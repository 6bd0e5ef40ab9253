#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What the program says of itself: --help of it and of every command (80 columns, and a
# screen of 45 lines), its columns (text, JSON, and the tables that results/README.md ends
# with); and where it finds its files: in the source tree from the build tree, and only
# there; elsewhere in ../share/slmbench beside it
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
! "$BENCH" fields surplus 2>/dev/null || fail "an argument was accepted"

# ---- files that come with the program
"$BENCH" synth --list >list
grep -q '^yi-1.5-9b ' list || fail "the build tree has no shapes: $(cat list)"

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/bin"
cp "$BENCH" "$place/bin/bench"
BENCH=$place/bin/bench
refused 2 "share/slmbench/models has no shapes" synth yi-1.5-9b Q4_0 -o x.gguf
refused 2 "cannot open the configuration quick" sweep -c quick --dry-run

mkdir -p "$place/share/slmbench"
cp -r "$SRC/configs/sweeps" "$SRC/configs/texts" "$SRC/plots" "$place/share/slmbench"
mkdir "$place/share/slmbench/models"
cp "$SRC/configs/models/nano.yaml" "$place/share/slmbench/models/mine.yaml"
"$BENCH" synth --list >list
grep -q '^mine ' list || fail "the installed shape is missing: $(cat list)"
! grep -q '^yi-1.5-9b ' list || fail "shapes of the source tree: $(cat list)"
"$BENCH" synth mine Q4_0 -o mine.gguf >/dev/null
"$BENCH" sweep -c quick -m mine.gguf --mem none --dry-run >plan 2>err ||
    fail "the installed sweep is not found: $(cat err)"

# A variable of the environment replaces the directory of shapes.
SLMBENCH_SHAPES=$SRC/configs/models "$BENCH" synth --list >list
grep -q '^yi-1.5-9b ' list || fail "SLMBENCH_SHAPES is ignored: $(cat list)"
