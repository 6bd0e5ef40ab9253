# SPDX-License-Identifier: MIT
#
# lib.sh - what the tests of bench load begin with: python, a server whose delays are
# known, and bench load with it
. "$SRC/tests/cli/lib.sh"
python=$(command -v python3) || skip "needs python3"
"$BENCH" load http://127.0.0.1:1 >out 2>err || true
! grep -q "built without libcurl" err || skip "no libcurl"

server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true' EXIT
# serve OPTIONS...: the server that answers from now on, at $url
serve() {
    [ -z "$server" ] || { kill "$server" && wait "$server" 2>/dev/null || true; }
    rm -f port
    "$SLOW_SERVER" port log "$@" &
    server=$!
    for _ in $(seq 200); do
        [ ! -s port ] || break
        sleep 0.05
    done
    url=http://127.0.0.1:$(cat port) || fail "no server"
}
load() { "$BENCH" load "$url" --no-roof --prompt 40 --max-late 1000 "$@" >out 2>err </dev/null; }
