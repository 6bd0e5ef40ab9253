# SPDX-License-Identifier: MIT
#
# ci/run-tests runs failed tests once more, alone, and .ci/run counts each test once: here with
# a ci/test that runs two folders of tests that no build made.
. "${SRC:?}/tests/cli/lib.sh" || exit 1

mkdir -p .ci ci build/one build/two
cp "$SRC/.ci/run" .ci/
cp "$SRC/ci/run-tests" ci/
cat >ci/test <<'END'
failed=0
for folder in one two; do
    ci/run-tests build/$folder -j 4 || failed=1
done
exit $failed
END
chmod +x ci/test

# one_test FOLDER NAME COMMAND
one_test() {
    echo "add_test($2 bash -c \"$3\")" >>"build/$1/CTestTestfile.cmake"
}
once="[ -e ran ] || { touch ran; exit 1; }"

# run CODE SUMMARY
run() {
    local code=0
    bash .ci/run >out 2>&1 || code=$?
    [ $code = "$1" ] || fail "ended with $code, not $1: $(cat out)"
    [ "$(tail -n 1 out)" = "$2" ] || fail "not '$2': $(cat out)"
}

# ---- all pass at once: nothing runs twice
one_test one passes true
one_test one test@cpu true
one_test two passes true
run 0 "3 passed, 0 failed, 0 skipped"
! grep -q "tiles" out || fail "tiles that no test runs: $(cat out)"
! grep -q "^unstable\|^--- once more" out || fail "what passed ran again: $(cat out)"

# ---- those that failed once are named, counted once, and no failure, in both folders
one_test one once "${once//ran/ran.1}"
one_test one skips "${once//ran/ran.2}; exit 77"
echo 'set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)' >>build/one/CTestTestfile.cmake
one_test two also@cpu "$once"
run 0 "5 passed, 0 failed, 1 skipped"
for name in once skips also@cpu; do
    [ "$(grep -cx "unstable: $name failed once next to others and passed alone" out)" = 2 ] ||
        fail "$name is not named, once at its place and once at the end: $(cat out)"
done
! grep -q "^unstable: \(passes\|test@cpu\) " out || fail "a stable test is named: $(cat out)"
run 0 "5 passed, 0 failed, 1 skipped"
! grep -q "^unstable" out || fail "the next run names what the last one found: $(cat out)"

# ---- one that fails again fails the run, and is not called unstable
rm -f build/*/ran*
one_test one fails false
run 1 "5 passed, 1 failed, 1 skipped"
! grep -q "^unstable: fails " out || fail "what failed twice is called unstable: $(cat out)"
grep -q "^unstable: once " out || fail "next to a failure, what passed alone is not named"

# ---- whether kernels by tiles ran, and how
rm -f build/*/CTestTestfile.cmake
one_test one test_kernels@amx_int8 true
one_test two passes true
run 0 "2 passed, 0 failed, 0 skipped"
grep -qx "kernels by tiles (AMX): emulated, as this CPU has none" out || fail "no word of tiles: $(cat out)"
rm -f build/one/CTestTestfile.cmake
one_test one test_kernels@amx_int8 "exit 77"
echo 'set_tests_properties(test_kernels@amx_int8 PROPERTIES SKIP_RETURN_CODE 77)' >>build/one/CTestTestfile.cmake
run 0 "1 passed, 0 failed, 1 skipped"
how="not run, as this CPU has neither AMX nor AVX-512 VBMI"
! grep -qw amx_int8 /proc/cpuinfo || how="run on this CPU"
grep -qx "kernels by tiles (AMX): $how" out || fail "not '$how': $(cat out)"
