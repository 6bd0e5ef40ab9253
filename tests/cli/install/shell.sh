#!/bin/bash
# SPDX-License-Identifier: MIT
#
# shell.sh - completion in bash, and in zsh and fish where they are installed; manual pages
. "$SRC/tests/cli/lib.sh"
export XDG_CONFIG_HOME=$WORK/config
mkdir -p bin config/slmbench/models folder
ln -s "$BENCH" bin/bench
PATH=$WORK/bin:$PATH
cp "$SRC/configs/models/nano.yaml" config/slmbench/models/mine.yaml
touch model.gguf

# ---- what the program offers
# offers KIND WORD -- WORDS...: the first line, and one of the others
offers() {
    local kind=$1 word=$2 out
    shift 3
    out=$("$BENCH" complete "$@" 2>err) && [ ! -s err ] || fail "complete $*: $(cat err)"
    [ "${out%%$'\n'*}" = "$kind" ] || fail "complete $*: not $kind: $out"
    [ -z "$word" ] || [[ $out == *$'\n'$word$'\t'* ]] || fail "complete $*: no $word: $out"
}
offers words sweep -- ""
offers words --version -- --
offers words gate -- help ga
offers words recommend -- man rec
offers words --placement -- sweep --pl
offers words compact -- sweep -m x --placement ""
offers words openmetrics -- rows results --format ""
offers words --placement=smt -- decode --placement=s
offers words avx2 -- generate --isa-disable ""
offers words amx -- generate --isa-disable am
offers words add -- history ""
offers words --commit -- history add results.db --c
offers words "" -- sweep --threads ""
offers words models/nano.yaml -- files models/n
offers model nano:Q4_K_M -- synth nano:Q4
offers words shell/bench.zsh -- files shell/
offers model tinyllama-1.1b -- sweep -m tiny
offers model mine -- sweep --model mi
offers model tinyllama-1.1b:Q4_K_M -- sweep -m tinyllama-1.1b:Q4
offers model tinyllama-1.1b:Q4_0,Q8_0 -- sweep -m tinyllama-1.1b:Q4_0,
offers model nano -- synth na
offers files quick -- sweep -c ""
offers files "" -- gguf ""
offers files "" -- nothing ""
offers folders "" -- sweep -o ""
! "$BENCH" complete "" | grep -qE '^(worker|turn|complete)' || fail "what is hidden is offered"
# Every option in --help, in ci/full of every command.
"$BENCH" --help >help
commands=$(sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' help)
few="sweep gate chat fields"
for command in $(if is_full; then echo "$commands"; else echo "$few"; fi); do
    offered=$'\n'$("$BENCH" complete "$command" --)
    "$BENCH" "$command" --help >help
    while IFS= read -r line; do
        [[ $line =~ ^\ \ (-.,|\ \ \ )\ (--[a-z-]+) ]] || continue
        [[ $offered == *$'\n'${BASH_REMATCH[2]}$'\t'* ]] || fail "$command ${BASH_REMATCH[2]} is not offered"
    done <help
done

# ---- in the shells
cat >in.bash <<'END'
source "$SRC/configs/shell/bench.bash"
# typed LINE: the replies to a tabulator at its end
typed() {
    COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=(bench) COMPREPLY=()
    _bench
    printf '%s\n' "${COMPREPLY[@]}"
}
typed "bench rec"
typed "bench sweep --placement co"
typed "bench sweep -m tinyllama-1.1b:Q4_K_M"
typed "bench decode --placement=sm"
typed "bench gguf mod"
typed "bench sweep -o fol"
END
SRC=$SRC bash in.bash >out 2>err || fail "bash: $(cat err)"
[ ! -s err ] || fail "bash: $(cat err)"
printf '%s\n' recommend compact Q4_K_M smt model.gguf folder | diff - out || fail "bash offers others"

skipped=
if command -v fish >/dev/null; then
    fish --no-config -c "source $SRC/configs/shell/bench.fish
        complete -C 'bench rec'; complete -C 'bench sweep --placement co'
        complete -C 'bench gguf mod'; complete -C 'bench sweep -o fol'" >out 2>err </dev/null || fail "fish: $(cat err)"
    cut -f1 out >words
    printf '%s\n' recommend compact model.gguf folder/ | diff - words || fail "fish offers others: $(cat out)"
else
    skipped="$skipped fish"
fi
if command -v zsh >/dev/null && has_terminals; then
    python3 "$SRC/tests/cli/install/zsh_types.py" "$SRC/configs/shell/bench.zsh" >out 2>&1 || fail "zsh: $(cat out)"
else
    skipped="$skipped zsh"
fi

# ---- manual pages
"$BENCH" man -o man
"$BENCH" man -o again
diff -r man again || fail "pages differ from time to time"
for command in $commands; do
    [ -s "man/bench-$command.1" ] || fail "no page of $command"
done
"$BENCH" man sweep | cmp - man/bench-sweep.1 || fail "two pages of sweep"
"$BENCH" man | cmp - man/bench.1 || fail "two pages of bench"
if command -v groff >/dev/null; then
    # All at once: a warning names its page.
    groff -man -Tutf8 -ww -rF0 man/*.1 >text 2>err || fail "groff: $(cat err)"
    [ ! -s err ] || fail "groff warns: $(head -n 5 err)"
    sed 's/\x1b\[[0-9;]*m//g; s/.\x08//g' text | tr -s ' \n' ' ' >flat
    for text in "bench-gate - test whether a build is slower than another" "--placement LIST" \
        "bench history add DB ROWS..." "bench history compare results.db --rows new --margin 5%" "EXIT STATUS"; do
        grep -qF -- "$text" flat || fail "no '$text' in the pages"
    done
    ! grep -q '`' flat || fail "a backtick is printed"
else
    skipped="$skipped groff"
fi
refused 2 "there is no command 'nothing'" man nothing
refused 2 "unexpected argument 'sweep'" man sweep -o man
[ -z "$skipped" ] || echo "not tested, not installed:$skipped"
