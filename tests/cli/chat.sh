# SPDX-License-Identifier: MIT
# bench chat: from a pipe and at a terminal; what it remembers, forgets and refuses
. "$SRC/tests/cli/lib.sh"
model=$SRC/tests/data/models/stories260K-f32.gguf
chat() {
    "$BENCH" chat -m "$model" --chat-template zephyr --temp 0 "$@" 2>err
}

# The answer is what the family's markers make the model say, in whole lines.
question=$'<|user|>\nOnce upon a time, Lily</s>\n<|assistant|>\n'
"$BENCH" generate -m "$model" --special -n 30 -p "$question" 2>/dev/null >want.txt
echo "Once upon a time, Lily" | chat -n 30 >got.txt || fail "$(cat err)"
[ "$(sed '1s/^ //' want.txt)" = "$(cat got.txt)" ] ||
    fail "answer: $(cat got.txt), not: $(cat want.txt)"
[ ! -s err ] || fail "not quiet with a pipe: $(cat err)"

# A second question costs its own tokens only, and is answered as if all were read anew.
printf 'Once upon a time, Lily\n/stats\nThen she\n/stats\n' | chat -n 10 >got.txt
first=$(sed -n 's/^last answer: prefill \([0-9]*\) .*/\1/p' err | head -1)
second=$(sed -n 's/^last answer: prefill \([0-9]*\) .*/\1/p' err | tail -1)
all=$(sed -n 's/^all answers: prefill \([0-9]*\) .*/\1/p' err | tail -1)
[ "$all" = $((first + second)) ] || fail "prefill of $first and $second, of all $all"
[ "$second" -lt "$first" ] || fail "the second question read $second tokens again"
grep -q "^context: [0-9]* of 512 positions used by 4 messages" err || fail "$(cat err)"
answer=$(head -1 got.txt)
"$BENCH" generate -m "$model" --special -n 10 2>/dev/null >want.txt \
    -p "$question $answer</s>"$'\n<|user|>\nThen she</s>\n<|assistant|>\n'
[ "$(sed '1s/^ //' want.txt)" = "$(sed 1d got.txt)" ] ||
    fail "second answer: $(sed 1d got.txt), not: $(cat want.txt)"

# /reset: the first answer again, the system's message still there.
printf 'Lily\n/reset\nLily\n' | chat -n 12 --system "Tell a story." >got.txt
echo Lily | chat -n 12 --system "Tell a story." >once.txt
[ "$(cat got.txt)" = "$(cat once.txt once.txt)" ] || fail "reset: $(cat got.txt)"
echo Lily | chat -n 12 >none.txt
cmp -s once.txt none.txt && fail "a system's message says nothing"

# Lines that go on; empty ones; the end of the file counts as the end of a line.
printf 'Once upon\\\na time\n\n' | chat -n 5 >got.txt
printf 'Once upon\\\na time\\' | chat -n 5 >other.txt
cmp -s got.txt other.txt || fail "two lines: $(cat got.txt) and: $(cat other.txt)"
[ "$(wc -l <got.txt)" = 1 ] || fail "not one answer: $(cat got.txt)"

# A marker in a question is words: several tokens, and not the one that ends a turn.
printf 'a\n/reset\n/stats\na</s>\n/stats\n' | chat -n 1 >got.txt
plain=$(sed -n 's/^last answer: prefill \([0-9]*\) .*/\1/p' err | head -1)
marked=$(sed -n 's/^last answer: prefill \([0-9]*\) .*/\1/p' err | tail -1)
[ "$marked" -ge $((plain + 3)) ] || fail "a marker: $plain and $marked tokens"

# With a window of the KV cache nothing is dropped and no answer is too long: until the
# window is full the answers are the same, and then the model goes on, with drafts too.
for i in 1 2 3 4 5 6 7 8 9; do echo "Once upon a time"; done >questions
chat -n 20 --ctx 512 <questions >whole.txt
printf '/stats\n' | cat questions - | chat -n 20 --ctx 96 --kv-window 90 >got.txt ||
    fail "window: $(cat err)"
grep -q "dropped" err && fail "something was dropped: $(cat err)"
positions=$(sed -n 's/^context: \([0-9]*\) positions, 94 of them visible,.*/\1/p' err)
[ "${positions:-0}" -gt 250 ] || fail "$(cat err)"
[ "$(sed -n 1,2p got.txt)" = "$(sed -n 1,2p whole.txt)" ] || fail "$(cat got.txt) and $(cat whole.txt)"
[ "$(wc -l <got.txt)" -ge 9 ] || fail "not nine answers: $(cat got.txt)"
chat -n 20 --ctx 96 --kv-window 90 --speculate lookup <questions >drafts.txt
cmp -s got.txt drafts.txt || fail "drafts change it: $(cat drafts.txt), not $(cat got.txt)"
echo Lily | chat --ctx 60 --kv-window 50 >got.txt
grep -q "ended after 60 tokens" err || fail "an answer without end: $(cat err)"
echo Lily | chat -n 700 --ctx 60 --kv-window 50 >got.txt || fail "$(cat err)"
! grep -q "ended" err || fail "an answer of 700 tokens: $(cat err)"
printf 'Lily\n%0900d\nLily\n' 7 | chat -n 3 --ctx 100 --kv-window 90 >got.txt
[ "$(wc -l <got.txt)" = 3 ] || fail "a long question: $(cat got.txt)"
refused 2 "at most 508" chat -m "$model" --chat-template zephyr --kv-window 509

# A full context drops the oldest messages and goes on; what cannot fit is said.
for i in 1 2 3 4 5 6; do echo "Once upon a time"; done | chat -n 20 --ctx 128 >got.txt ||
    fail "full context: $(cat err)"
grep -q "context of 128 positions is full: the oldest 2 messages were dropped" err ||
    fail "nothing dropped: $(cat err)"
[ "$(wc -l <got.txt)" -ge 6 ] || fail "not six answers: $(cat got.txt)"
printf 'Lily\n%0300d\nLily\n' 7 | chat -n 3 --ctx 100 >got.txt
grep -q "question does not fit the context of 100 positions" err || fail "$(cat err)"
[ "$(wc -l <got.txt)" = 2 ] || fail "a question too long: $(cat got.txt)"
echo Lily | chat --ctx 60 >got.txt
grep -q "ended before the answer" err || fail "a short context: $(cat err)"

# Guesses change no answer, wherever it ends.
for n in 5 40 41 42 43 200; do
    printf 'Lily and Ben and Lily and Ben and\nThe end. The end.\n' >talk.txt
    chat -n $n <talk.txt >got.txt || fail "$(cat err)"
    chat -n $n --speculate lookup <talk.txt >other.txt || fail "$(cat err)"
    cmp -s got.txt other.txt || fail "-n $n: $(cat other.txt), not: $(cat got.txt)"
done

# Commands.
printf '/help\n/rest\n/quit\nLily\n' | chat >got.txt || fail "/quit: $(cat err)"
[ ! -s got.txt ] || fail "an answer after /quit: $(cat got.txt)"
grep -q "^/stats" err || fail "/help: $(cat err)"
grep -q "did you mean /reset" err || fail "/rest: $(cat err)"

"$BENCH" chat --help | grep -q -- --system

# ---- the prompt that a question becomes
echo "Hi there" | "$BENCH" chat -m "$model" --chat-template zephyr --system "Be brief." --show-prompt >got.txt 2>err ||
    fail "--show-prompt: $(cat err)"
printf '<|system|>\nBe brief.</s>\n<|user|>\nHi there</s>\n<|assistant|>\n\n' | cmp - got.txt ||
    fail "--show-prompt: $(cat got.txt)"
printf '{{ bos_token }}{%% for m in messages %%}[{{ m.content }}]{%% endfor %%}' >own.jinja
echo "Hi" | "$BENCH" chat -m "$model" --chat-template own.jinja --show-prompt >got.txt 2>err
[ "$(cat got.txt)" = "<s>[Hi]" ] || fail "a file: $(cat got.txt err)"
printf 'a\n{{ raise_exception("never twice") }}' >own.jinja
code=0
echo "Hi" | "$BENCH" chat -m "$model" --chat-template own.jinja >got.txt 2>err || code=$?
[ "$code" = 2 ] && grep -q "line 2: never twice" err || fail "a template's own refusal, exit $code: $(cat err)"
refused 2 "chatml, gemma, llama-2" chat -m "$model"
refused 2 "has no chat template" chat -m "$model"
refused 2 "neither a name (chatml, " chat -m "$model" --chat-template alpaca
refused 2 "name the model" chat
refused 2 "argument" chat -m "$model" hello
refused 2 "--speculate: drafts are off, lookup or mtp, not" chat -m "$model" --speculate yes
refused 2 "min-p" chat -m "$model" --min-p 7
refused 2 "no-such" chat -m no-such.gguf

# An interrupt ends a chat from a pipe, with its exit code; at a terminal it ends the
# answer, and the second one at the prompt the program.
mkfifo pipe
"$BENCH" chat -m "$model" --chat-template zephyr <pipe >got.txt 2>err &
pid=$!
exec 3>pipe
echo Lily >&3
while [ ! -s got.txt ]; do sleep 0.1; done
sleep 0.3
kill -INT $pid
exec 3>&-
code=0
wait $pid || code=$?
[ $code = 130 ] || fail "interrupted: $code, $(cat err)"

# At a terminal a line can be edited, and earlier ones come back; characters of several
# bytes, and bytes that are none, do no harm. The terminal is left as it was.
if has_terminals; then
    cat >terminal.py <<'END'
import os, pty, re, select, sys, termios, time
keys, code = {"end": (b"\x04", 0), "interrupt": (b"\x03", 130)}[sys.argv[1]]
go, begin = os.pipe()
pid, fd = pty.fork()
if pid == 0:
    os.read(go, 1)                            # the terminal was looked at
    os.execv(sys.argv[2], sys.argv[2:])
text = b""
before = termios.tcgetattr(fd)
os.write(begin, b".")
def read(timeout):
    global text
    if not select.select([fd], [], [], timeout)[0]:
        return False
    try:
        more = os.read(fd, 4096)
    except OSError:
        more = b""
    text += more
    return bool(more)
def until(pattern, after=0):
    """The end of the first match of pattern behind text[after]."""
    limit = time.time() + 120
    while True:
        found = re.compile(pattern, re.S).search(text, after)
        if found:
            return found.end()
        assert time.time() < limit, (pattern, text[after:])
        read(1)
at = until(rb"context of 512 positions; /help lists the commands\r\n.*> ")
def say(line, answer):
    global at
    os.write(fd, line)
    at = until(answer + rb".*> ", at)
say(b"Lily\r", rb"Lily\r?\n.+\r\n")
first = rb"last answer: first token after [0-9.]+ s\r\n"
speed = rb"last answer: prefill [0-9]+ tokens at .*positions used by 2 messages;[^\n]*\n"
say(b"/stats\r", first + speed)
say(b"/statz\x7fs\r", first + speed)          # backspace
say(b"stats\x1b[H/\r", first + speed)         # the key Home
say(b"\x1b[A\r", first + speed)               # the line before
say(b"/sta\x03", rb"once more, or /quit, to leave")
say(b"/stats\r", first + speed)               # what was typed before Ctrl-C is gone
say("Zo\u00eb \U0001f600\x7f and".encode() + b"\xff\xc3 Ben\r", rb"\r?\n.+\r\n")
say(b"/stats\r", first)
# Ctrl-C while it answers, or at the prompt if it no longer does: either way it goes on,
# and takes lines once the signal has come
os.write(fd, b"Once upon a time\r")
at = until(rb"time\r?\n", at)
os.write(fd, b"\x03")
stats = rb"all answers: prefill .*positions used"
while not re.search(stats, text[at:], re.S):
    os.write(fd, b"\r/stats\r")
    pause = time.time() + 2
    while time.time() < pause and not re.search(stats, text[at:], re.S):
        read(0.1)
while read(1):
    pass
at = len(text)                                # of what Ctrl-C says next, nothing was said before
assert termios.tcgetattr(fd)[3] & termios.ICANON == 0
os.write(fd, keys)
if code:
    at = until(rb"once more, or /quit, to leave.*> ", at)
    os.write(fd, keys)
limit = time.time() + 120
while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
    assert time.time() < limit, ("it has not ended", text[at:])
    read(1) or time.sleep(0.01)
status = ended[1]
assert os.waitstatus_to_exitcode(status) == code, (status, text[at:])
assert termios.tcgetattr(fd)[:4] == before[:4], "the terminal is another"
print(text.decode(errors="replace"))
END
    for how in "C end" "C.UTF-8 interrupt"; do
        LC_ALL=${how% *} TERM=xterm python3 terminal.py "${how#* }" "$BENCH" chat \
            -m "$model" --chat-template zephyr -n 5 >screen.txt 2>&1 || fail "$how: $(cat screen.txt)"
    done
fi

# /stats says what speculative decoding did.
printf 'Lily and Ben and Lily and Ben and\n/stats\n' | chat -n 40 --speculate lookup >got.txt
grep -qE "^last answer: first token after [0-9.]+ s$" err || fail "no first token: $(cat err)"
grep -qE "^speculation, last answer: [0-9]+ tokens in [0-9]+ passes, [0-9]+ of [0-9]+ drafted" err ||
    fail "no speculation: $(cat err)"
