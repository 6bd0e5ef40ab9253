# SPDX-License-Identifier: MIT
"""zsh_types.py SCRIPT - lines and a tabulator typed into an interactive zsh that has SCRIPT"""
import os
import pty
import select
import sys
import time

script = os.path.abspath(sys.argv[1])


def read_until(fd, text, seconds=10):
    seen, end = b"", time.monotonic() + seconds
    while text not in seen:
        if not select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
            sys.exit(f"no {text!r} within {seconds} s: {seen[-2000:]!r}")
        try:
            seen += os.read(fd, 65536)
        except OSError:
            sys.exit(f"zsh has ended: {seen[-2000:]!r}")
    return seen


pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm", PS1="", ZDOTDIR="/nonexistent")
    os.execvp("zsh", ["zsh", "-f", "-i"])
os.write(fd, f"PROMPT=; autoload -U compinit && compinit -D -u && source {script} && echo re''ady\n".encode())
read_until(fd, b"ready\r\n")
for typed, whole in ((b"bench rec\t", b"recommend"), (b"bench sweep --placement co\t", b"compact"),
                     (b"bench gguf mod\t", b"model.gguf"), (b"bench sweep -o fol\t", b"folder")):
    os.write(fd, typed)
    read_until(fd, whole)
    os.write(fd, b"\x15")
os.write(fd, b"exit\n")
os.close(fd)
os.waitpid(pid, 0)
