# SPDX-License-Identifier: MIT
#
# lib.sh - what the tests of the program begin with: an empty directory $WORK to be in,
# and two ways to complain
set -eu
rm -rf "$WORK"
mkdir -p "$WORK"
cd "$WORK"

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
