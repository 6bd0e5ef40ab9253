# SPDX-License-Identifier: MIT
#
# at_terminal.py COLUMNS COMMAND...: what a command prints at a terminal of that width, each
# line as it is after its last redrawing; 1 if a line or a drawing is wider, else its exit
# code. Commands to copy, "  bench ...", may be wider where WIDE_COMMANDS is set.
import fcntl, os, pty, re, struct, sys, termios
columns, (pid, fd) = int(sys.argv[1]), pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execv(sys.argv[2], sys.argv[2:])
text = b""
while True:
    try:
        text += os.read(fd, 4096)
    except OSError:
        break
text = text.decode().replace("\r\n", "\n")
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
lines = [line.split("\r\x1b[K") for line in text.split("\n")]
print(*[drawn[-1] for drawn in lines], sep="\n", end="")
may = re.compile(r" +bench " if os.environ.get("WIDE_COMMANDS") else r"(?!)")
wide = [one for drawn in lines for one in drawn if len(one.rstrip("\r")) >= columns
        and not may.match(one)]
if wide:
    print(*wide, sep="\n", file=sys.stderr)
sys.exit(1 if wide else code)
