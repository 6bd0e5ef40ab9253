# SPDX-License-Identifier: MIT
#
# ci/gate finds the old side, builds both and hands over what `bench gate` says. A
# "build" is a copy of the script harness/program here: bench gate has its own test.
. "${SRC:?}/tests/cli/lib.sh" || exit 1
[ "${SLM_TEST_LONG:-}" = 1 ] || skip "half a minute long: SLM_TEST_LONG=1 runs it"
export CODE=0 LOG=$WORK/log

# commit NAME [TURNS]: a commit whose program says NAME
commit() {
    sed "s/^name=.*/name=$1 turns=${2:-1}/" "$WORK/program" >harness/program
    chmod +x harness/program
    git add -A
    git commit -q -m "$1"
}

# ends CODE TEXT ARGUMENTS...: ci/gate ends with CODE and says TEXT
ends() {
    local want=$1 text=$2 got=0
    shift 2
    ci/gate "$@" >"$WORK/out" 2>&1 </dev/null || got=$?
    [ $got = "$want" ] || fail "ci/gate $*: $got, not $want: $(cat "$WORK/out")"
    grep -qF -- "$text" "$WORK/out" ||
        fail "ci/gate $* does not say '$text': $(cat "$WORK/out")"
}

cat >program <<'END'
#!/bin/bash
name=
case $1 in
name) echo "$name" ;;
turn) [ "$turns" = 0 ] || echo "{\"turn\": $turns, \"version\": \"0\"}" ;;
gate)
    printf '%s\n' "$@" >"$LOG"
    while [ $# -gt 0 ]; do
        case $1 in
        --a) a=$("$2" name) ;;
        --b) b=$("$2" name) ;;
        -o)
            mkdir "$2" || exit 3
            echo "# A summary" >"$2/gate.md"
            echo "::error title=x::slower" >"$2/annotations.txt"
            ;;
        --exit-codes) case $CODE in [14]) CODE=$(echo "$2" | cut -c3) ;; esac ;;
        esac
        shift
    done
    echo "$a against $b"
    exit "$CODE"
    ;;
esac
END
program_repository repo
cd repo

# ---- which is the old side
commit one
ends 0 "skipped: this is the first commit"
commit two
ends 0 "one against two"
ends 0 "skipped: nothing that is built has changed" --against HEAD
ends 2 "there is no commit 'nowhere'" --against nowhere
git checkout -q -b branch
commit three
commit four
ends 0 "two against four" # where the branch left main
ends 0 "three against four" --against HEAD^
ends 0 "two against four" --against 0000000000000000000000000000000000000000
sed -i 's/^name=four/name=five/' harness/program
ends 0 "four against five" # not yet committed
ends 0 "with uncommitted changes"
git checkout -q -f main
git merge -q --no-ff branch -m merged
ends 0 "two against four" # its first parent
echo text >README
commit four
ends 0 "skipped: nothing that is built has changed"
commit six
[ -z "$(git status --porcelain)" ] || fail "it leaves things: $(git status --porcelain)"

# ---- clones without their history
git clone -q --depth 1 "file://$PWD" ../shallow
cd ../shallow
git remote set-url origin "file://$WORK/no-such-repository"
ends 3 "'fetch-depth: 0'"
git remote set-url origin "file://$WORK/repo"
ends 0 "four against six"
cd ../repo

# ---- what it hands over, and where results are
ends 0 "four against six" -m nano:Q4_0 --margin 3
paste -sd' ' "$LOG" | grep -q -- " --budget 5m -m nano:Q4_0 --margin 3$" || fail "$(cat "$LOG")"
[ -e build/gate/results/gate.md ] || fail "no summary"
ends 0 "four against six" --budget 1m
[ "$(grep -c budget "$LOG")" = 1 ] || fail "two budgets: $(cat "$LOG")"
(cd harness && ../ci/gate --output ../there >/dev/null) || fail "--output is not the caller's"
[ -e there/gate.md ] || fail "no summary there"
(
    export GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=$WORK/summary.md
    ends 0 "::error title=x::slower"
    ends 0 "::warning title=x::slower" --informing
    grep -q "A summary" "$WORK/summary.md" || fail "no summary of the step"
    ends 0 "::notice title=bench gate::skipped: nothing" --against HEAD
    grep -q "skipped: nothing" "$WORK/summary.md" || fail "the summary does not say why"
)
CODE=1 ends 1 "four against six"
CODE=4 ends 4 "four against six"
CODE=1 ends 0 "four against six" --informing
CODE=4 ends 0 "four against six" --informing
CODE=3 ends 3 "four against six" --informing # could not measure
ends 2 "--against needs a value" --against

# ---- sides that cannot be measured
commit seven 0
commit eight
ends 0 "skipped: the old side has no worker"
commit nine 2
ends 0 "skipped: the old side has no worker" # as this one does
echo 'message(FATAL_ERROR "no such library")' >>CMakeLists.txt
commit ten 2
ends 3 "the new side does not build"
git checkout -q HEAD^ CMakeLists.txt
commit eleven 2
ends 0 "skipped: the old side does not build here"
rm -rf build
ends 0 "nine against eleven" --against HEAD~2
rm -rf "$WORK"
