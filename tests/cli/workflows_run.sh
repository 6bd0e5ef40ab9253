# SPDX-License-Identifier: MIT
#
# The scripts of the workflow files run here as a runner would run them, with a small
# model and little time: gates on a clone whose programs are this one, and a few
# nights.
. "${SRC:?}/tests/cli/lib.sh" || exit 1
[ "${SLM_TEST_LONG:-}" = 1 ] || skip "half a minute long: SLM_TEST_LONG=1 runs it"
python=$(python_with_yaml) || skip "no python3-yaml"
workflows() { "$python" "$SRC/tests/support/workflows.py" "$@"; }
github=("$SRC/.github/workflows/ci.yml" "$SRC/ci/github/gate.yml" "$SRC/ci/github/nightly.yml")
gitlab=("$SRC/ci/gitlab/gate.yml" "$SRC/ci/gitlab/nightly.yml")
program_repository origin
export GITHUB_STEP_SUMMARY=$WORK/summary.md BENCH SLMBENCH_CACHE=$WORK/cache
for side in old new; do
    printf '#!/bin/sh\n# %s\nexec "$BENCH" "$@"\n' $side >origin/harness/program
    chmod +x origin/harness/program
    git -C origin add -A
    git -C origin commit -q -m $side
done
git clone -q "file://$WORK/origin" clone

# No packages; sweeps of one point.
mkdir bin
for tool in sudo apt-get; do
    printf '#!/bin/sh\nexit 0\n' >bin/$tool
done
cat >bin/bench <<'END'
#!/bin/sh
case $1,$2 in
sweep,*) set -- "$@" --ctx 0 --prefill none --budget 0.2 --repeats 0 --no-probe --no-charts ;;
history,compare) set -- "$@" --disturbed ;; # as this machine may be all the time
esac
exec "$BENCH" "$@"
END
chmod +x bin/*
export PATH=$WORK/bin:$PATH

# A small model and one metric, with a margin that a busy machine keeps, so that it is
# clear at the first look.
cat >"$WORK/small.yaml" <<'END'
model: nano:Q4_K_M
threads: [1]
ctx: [0]
memory: false
load: false
END
short() { # FILE
    sed "s|--budget 5m|-c $WORK/small.yaml --margin 50% --budget 20s|
         s|-m \"\$MODEL\" --margin|-c $WORK/small.yaml --margin|
         s/BUDGET: 10m/BUDGET: 20s/; s/MARGIN: 3%/MARGIN: 50%/
         s/MODEL: [^ ]*/MODEL: nano:Q4_K_M/; s|/var/lib/slmbench/||" "$1"
}
before=$(git -C origin rev-parse HEAD^)
echo '{"github": {"event": {"before": "'"$before"'"}}, "inputs": {"against": "HEAD^"},
       "gitlab": {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "'"$before"'"}}' >context.json
runs() { # FILE JOB CODES DIR
    local file=short/${1#"$SRC/"} code=0
    mkdir -p "$(dirname "$file")"
    short "$1" >"$file"
    workflows run "$PWD/$file" "$2" context.json "$4" >out 2>&1 || code=$?
    [[ " $3 " = *" $code "* ]] || fail "$1: $2 ended with $code: $(cat out)"
}
# The same program on both sides.
runs "${github[0]}" gate "0" clone
grep -q "old: .* old" out && [ -s clone/gate/junit.xml ] || fail "no gate: $(cat out)"
[ -s summary.md ] || fail "no summary of the job"
rm -rf clone/gate
runs "${github[1]}" gate "0" clone
rm -rf clone/gate
runs "${gitlab[0]}" gate "0 4" clone
[ -s clone/gate/junit.xml ] || fail "no JUnit report: $(cat out)"

# ---- nights: the first, one with too few before it, one with a week before it
mkdir nights
runs "${github[2]}" nightly "0" nights
grep -q "The first night" out || fail "the first night: $(cat out)"
[ -s nights/history.sqlite ] || fail "nothing was remembered: $(cat out)"
runs "${github[2]}" nightly "0" nights
grep -q "::warning title=bench history::bench: " out || fail "the second night: $(cat out)"
grep -q " series, " summary.md && [ -s nights/history/history.md ] || fail "no history: $(cat out)"
for day in 1 2 3 4 5 6 7; do
    cp -r nights/night/$((day % 3 + 1)) day$day
    sed -i "s/20[0-9-]*T/2020-01-0${day}T/" day$day/machine.json day$day/sweep.csv
    "$BENCH" history add nights/history.sqlite day$day >out || fail "$(cat out)"
done
runs "${gitlab[1]}" nightly "0 1 4" nights # by how busy this machine is
[ -s nights/gate/junit.xml ] || fail "the third night was not judged: $(cat out)"
grep -q " of 3 runs added" out || fail "the third night was not remembered: $(cat out)"
rm -rf "$WORK"
