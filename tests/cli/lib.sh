# SPDX-License-Identifier: MIT
#
# lib.sh - what the tests of the program begin with: an empty directory $WORK to be in,
# two ways to complain, and what some tests share
set -eu
rm -rf "$WORK"
mkdir -p "$WORK"
cd "$WORK"
[ -z "${PYTHON_FOLDER:-}" ] || PATH=$PYTHON_FOLDER:$PATH

# is_full: whether this is ci/full, where tests take what ci/test has no time for
is_full() {
    [ -n "${SLM_TEST_LONG:-}" ]
}

# Half of the time of many short measurements would be spent on roofs. A test of the cache
# or of a roof unsets these.
is_full || export SLMBENCH_LLC=64M SLMBENCH_PROBE=rough

fail() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

# refused CODE TEXT COMMAND ARGUMENTS...: ends with CODE, prints nothing, and says one
# line with TEXT in it
refused() {
    local code=$1 text=$2 got=0
    shift 2
    "$BENCH" "$@" >out 2>err </dev/null || got=$?
    [ "$got" = "$code" ] || fail "'$*' ended with $got, not $code: $(cat err)"
    [ "$(wc -l <err)" = 1 ] || fail "'$*': not one line: $(cat err)"
    grep -qF -- "$text" err || fail "'$*' does not say '$text': $(cat err)"
    [ ! -s out ] || fail "'$*' printed something: $(cat out)"
}

# worker_of PID: the process that measures for it, if there is one by now; its keeper is
# between the two
worker_of() {
    local keeper
    for keeper in $(pgrep -P "$1"); do
        pgrep -P "$keeper" -f '^bench worker$' && return 0
    done
    return 0
}

# draws_again FOLDER CHART: its script draws it once more, and gnuplot prints nothing
draws_again() {
    rm -f "$1/$2.svg"
    (cd "$1" && LC_ALL=C.UTF-8 gnuplot "$2.gp") >said 2>&1 || fail "$2.gp: $(cat said)"
    [ ! -s said ] || fail "gnuplot about $2.gp: $(cat said)"
    grep -q "</svg>" "$1/$2.svg" || fail "$2.svg is not whole"
}

# draws_alone FOLDER COMMAND...: without gnuplot it draws the charts of the folder as SVG,
# prints how to get PNG, and where there is gnuplot that draws the same
draws_alone() {
    local folder=$1 found=no code=0
    shift
    rm -f "$folder"/*.svg
    PATH=/nowhere "$@" >said 2>err </dev/null || code=$?
    [ $code = 0 ] || fail "$* without gnuplot ended with $code: $(cat err)"
    [ "$(grep -c "gnuplot is not installed, so charts are SVG only; for PNG " err)" = 1 ] ||
        fail "$* without gnuplot: not one hint: $(cat err)"
    for svg in "$folder"/*.svg; do
        tail -n 1 "$svg" | grep -qx "</svg>" && [ ! -e "${svg%.svg}.png" ] || fail "$svg"
        found=yes
        same_as_gnuplot "$folder" "$(basename "$svg" .svg)"
    done
    [ $found = yes ] || fail "$* drew nothing without gnuplot: $(ls "$folder")"
}

# same_as_gnuplot FOLDER CHART: its script, in a copy, draws the same texts at the same places
same_as_gnuplot() {
    command -v gnuplot >/dev/null && command -v python3 >/dev/null || return 0
    rm -rf by_gnuplot
    mkdir by_gnuplot
    cp "$1/$2.csv" "$1/$2.gp" by_gnuplot
    draws_again by_gnuplot "$2"
    python3 "$SRC/tests/support/same_charts.py" "$1/$2.svg" "by_gnuplot/$2.svg" >said 2>&1 ||
        fail "drawn without gnuplot, $2: $(cat said)"
}

# with_budget SECONDS COMMAND...: COMMAND with that --budget, and again with twice as much
# as long as the gate refuses it as too short: how long a launch takes is the machine's
# business. Its output is in out and err.
with_budget() {
    local seconds=$1 code
    shift
    while true; do
        code=0
        "$@" --budget "${seconds}s" >out 2>err </dev/null || code=$?
        [[ $(<err) =~ a\ budget\ of\ .*\ holds\ [0-9]*\ launches\ of\ this\ model ]] || return $code
        seconds=$((2 * seconds))
    done
}

# threads_for N: N, or how many threads have a CPU each here
threads_for() {
    "$BENCH" topo --json | awk -v n="$1" -F '[:,]' '
        $1 ~ /"(cpus_allowed|cpu_quota)"/ && $2 + 0 > 0 && $2 + 0 < n { n = int($2) }
        END { print n < 1 ? 1 : n }'
}

# skip REASON: this machine cannot run the test
skip() {
    echo "skipped: $*"
    rm -rf "$WORK"
    exit 77
}

# memory_group NAME: makes a group whose memory can be limited: $box, with its limit in the
# file $limit; 1 where none can be made. Who has made it removes it.
memory_group() {
    local file
    for file in memory/memory.limit_in_bytes memory.max; do
        box=/sys/fs/cgroup/$(dirname $file)/slm-$1-$$
        limit=$box/$(basename $file)
        mkdir "$box" 2>/dev/null || continue
        [ ! -e "$limit" ] || return 0
        rmdir "$box"
    done
    return 1
}

# has_terminals: whether there are pseudo terminals, which systems without devpts lack
has_terminals() {
    python3 -c 'import pty; pty.openpty()' 2>/dev/null && return
    echo "no pseudo terminals: what is shown at one is not tested" >&2
    return 1
}

# python_with_yaml: prints the name of a python3 that can read YAML, which that of the
# tests, without installed packages, cannot; 1 without
python_with_yaml() {
    local p
    for p in $(type -ap python3) /usr/bin/python3; do
        ! $p -c 'import yaml' 2>/dev/null || { echo $p; return; }
    done
    return 1
}

# program_repository DIR: an empty repository with ci/gate, whose "build" of bench is a
# copy of harness/program
program_repository() {
    local tool
    for tool in git cmake ninja; do
        command -v $tool >/dev/null || skip "no $tool"
    done
    unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY CI_DEFAULT_BRANCH
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
    export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t
    export GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
    git init -q -b main "$1"
    mkdir "$1/ci" "$1/harness"
    cp "$SRC/ci/gate" "$SRC/ci/setup" "$1/ci/"
    cp "$SRC/CMakePresets.json" "$1/"
    printf '%s\n' /build/ /gate/ >"$1/.gitignore"
    cat >"$1/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(program NONE)
add_custom_target(bench ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/harness/program bench)
END
}
