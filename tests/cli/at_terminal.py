# SPDX-License-Identifier: MIT
#
# at_terminal.py COLUMNS COMMAND...: what a command prints at a terminal of that width;
# 1 if a line is wider, else its exit code
import fcntl, os, pty, struct, sys, termios
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
print(text, end="")
wide = [line for line in text.split("\n") if len(line) >= columns]
if wide:
    print(*wide, sep="\n", file=sys.stderr)
sys.exit(1 if wide else code)
