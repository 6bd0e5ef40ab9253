# SPDX-License-Identifier: MIT
#
# serve_faults.py - a server's worst clients, and what is left of them afterwards
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from server import Server, check

model, n_requests, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
random.seed(1)
MEMORY = "process_resident_memory_bytes"
CTX, SEQUENCES, QUEUE = 512, 4, 400
# A thread of glibc keeps of what it has freed up to 7 pieces of each size up to 1 KiB,
# and with them the pages that they lie on: about half a MiB once some thousand requests
# were answered, which would hide a leak. Without that, memory after many requests is
# what it was after few.
os.environ["GLIBC_TUNABLES"] = "glibc.malloc.tcache_count=0"
s = Server(model, "--sequences", str(SEQUENCES), "--ctx", str(CTX), "--queue", str(QUEUE),
           "--chat-template", "zephyr", "--max-body", "1M", "--timeout", "30")


def dial():
    return socket.create_connection((s.host, s.port), timeout=60)


def post(body, path="/v1/completions", headers=""):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"{headers}Content-Length: {len(body)}\r\n\r\n").encode() + body


def reply(c):
    """The reply's status: 0 where the connection ended without one."""
    try:
        text = c.recv(65536)
    except OSError:
        return 0
    return int(text[9:12]) if text[:9] == b"HTTP/1.1 " else 0


def leave(c, reset):
    if reset:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    c.close()


def vanish(n=200):
    """At every point of a request."""
    whole = post({"prompt": "a", "max_tokens": 400, "ignore_eos": True, "stream": True})
    plain = post({"prompt": "a", "max_tokens": 400, "ignore_eos": True})
    clients = []
    for i in range(n):
        c = dial()
        if i % 4 == 0:
            c.sendall(whole[:random.randrange(len(whole))])
        elif i % 4 == 1:
            c.sendall(plain)
        elif i % 4 == 2:
            c.sendall(whole)
            if i % 8 == 2:
                c.recv(1)
        clients.append(c)
        if len(clients) > 50:
            leave(clients.pop(random.randrange(len(clients))), i % 3 == 0)
    for i, c in enumerate(clients):
        leave(c, i % 3 == 0)


def slow_readers(n=1):
    """They ask for megabytes, and read nothing; others are answered meanwhile."""
    clients = []
    for _ in range(n):
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.connect((s.host, s.port))
        c.sendall(post({"messages": [{"role": "user", "content": "a"}], "max_tokens": 400, "n": 8,
                        "ignore_eos": True, "stream": True, "logprobs": True, "top_logprobs": 20},
                       "/v1/chat/completions"))
        clients.append(c)
    s.complete(max_tokens=5)
    s.wait_idle()
    for c in clients:
        c.close()
    check(s.metrics()["slm_clients_cut_total"] > 0, "none was cut off")


def large_bodies(size):
    for chunked in (False, True):
        c = dial()
        head = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {size}"
        c.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  f"application/json\r\n{head}\r\n\r\n".encode())
        piece = b"x" * (1 << 20)
        for _ in range(size >> 20):
            c.sendall(b"100000\r\n" + piece + b"\r\n" if chunked else piece)
        if chunked:
            c.sendall(b"0\r\n\r\n")
        check(reply(c) == 413, "a body of", size, "bytes", chunked)
        c.close()


def nonsense():
    c = dial()
    c.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100000)
    check(reply(c) == 431, "a header of 100 kB")
    c.close()
    c = dial()
    try:
        c.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" +
                  b"".join(b"X%d: a\r\n" % i for i in range(20000)))
    except OSError:
        pass  # it is refused while it is sent
    check(reply(c) in (431, 0), "20,000 headers")
    c.close()
    for text in (b"\r\n\r\n\0\0\0\0", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", os.urandom(500),
                 b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                 b"Content-Length: -1\r\n\r\n", b"POST / HTTP/1.1\r\nHost: localhost\r\n"
                 b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"):
        c = dial()
        c.sendall(text)
        c.shutdown(socket.SHUT_WR)
        check(reply(c) in (0, 400, 404, 411, 413, 431, 505, 501), text)
        c.close()
    good = json.dumps({"prompt": "Once upon a time", "max_tokens": 2, "stop": ["x"]}).encode()
    for _ in range(60):
        bad = bytearray(good)
        for _ in range(random.randrange(1, 4)):
            bad[random.randrange(len(bad))] = random.randrange(256)
        status, _, text = s.ask("POST", "/v1/completions", bytes(bad))
        check(status in (200, 400, 404), bad, status, text)
        check(status == 200 or json.loads(text)["error"]["message"], text)


def pipelined(n=40):
    c = dial()
    c.sendall(post({"prompt": "a", "max_tokens": 2}) * n)
    got = b""
    while got.count(b"HTTP/1.1 200") < n or not got.endswith(b"}}\n"):
        more = c.recv(65536)
        check(more, "ended after", got.count(b"HTTP/1.1 200"), "answers")
        got += more
    c.close()


def mixed(n, end):
    """Whole answers and streams of several clients, of which some leave."""
    left = [n]
    lock = threading.Lock()
    wrong = []

    def client():
        r = random.Random(threading.get_ident())
        while not wrong:
            with lock:
                if left[0] <= 0 and time.monotonic() > end:
                    return
                left[0] -= 1
            body = {"prompt": r.choice(["Once", "The dog", "a " * r.randrange(1, 150)]),
                    "max_tokens": r.randrange(1, 40), "stream": r.random() < 0.5,
                    "temperature": r.random(), "n": r.choice([1, 1, 1, 3])}
            if r.random() < 0.1:
                body["response_format"] = {"type": "json_object"}
            c = dial()
            c.sendall(post(body, headers="Connection: close\r\n"))
            if r.random() < 0.1:
                c.close()
                continue
            text = b""
            while (more := c.recv(65536)):
                text += more
            c.close()
            if text[9:12] != b"200" or (body["stream"] and b"[DONE]" not in text):
                wrong.append((body, text[-300:]))
    threads = [threading.Thread(target=client) for _ in range(12)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    check(not wrong, wrong[:1])


def settled():
    """Nothing is left: of requests, connections, sequences and pages; then the memory."""
    s.wait_idle()
    m = {}

    def is_alone():  # the connection that asks is the only one, in the same answer
        m.update(s.metrics())
        return m["slm_http_connections"] == 1
    s.wait_until("requests and connections are gone", is_alone)
    check(m["slm_http_requests"] == 1, m)
    check(m["slm_kv_pages_free"] + m["slm_kv_pages_kept"] >= m["slm_kv_pages"], "pages are lost:", m)
    a = s.complete(n=SEQUENCES * 2, max_tokens=3)
    check(a["usage"]["completion_tokens"] == SEQUENCES * 6, "a slot is lost:", a)
    time.sleep(1.5)  # then what is free is given back
    return s.metrics()[MEMORY], m["process_open_fds"]


def all_faults(n, duration, largest):
    vanish()
    slow_readers()
    large_bodies(largest)
    nonsense()
    pipelined()
    mixed(n, time.monotonic() + duration)
    return settled()


def stopped():
    """A server that is stopped for longer than its --timeout, as in a frozen container,
    first reads what has come, and then gives connections up."""
    t = Server(model, "--ctx", "128", "--timeout", "1", "--chat-template", "zephyr")
    whole = post({"prompt": "a", "max_tokens": 2})
    c = socket.create_connection((t.host, t.port), timeout=60)
    c.sendall(whole[:-5])
    time.sleep(0.3)
    t.child.send_signal(signal.SIGSTOP)
    c.sendall(whole[-5:])
    time.sleep(3)
    t.child.send_signal(signal.SIGCONT)
    got = reply(c)
    check(got == 200, "a request that came while the server was stopped:", got)
    c.close()
    check(t.stop() == 0, "stopped with an error after a stop")


SHAPE = """arch: llama
n_layers: 1
n_embd: 64
n_ff: 64
n_heads: 1
n_kv_heads: 1
head_dim: 64
n_vocab: 1024
n_ctx_train: 524288
rope_base: 10000
norm_eps: 1e-5
"""


class Turns(threading.Thread):
    """How often another client got something, until it is stopped."""

    def __init__(self, next_turn):
        super().__init__(daemon=True)
        self.next_turn, self.n, self.stops = next_turn, 0, False
        self.start()

    def run(self):
        while not self.stops:
            check(self.next_turn(), "another client's connection ended")
            self.n += 1


def is_healthy(connection):
    connection.request("GET", "/health")
    r = connection.getresponse()
    return r.read() and r.status == 200


def large_prompts():
    """Prompts of 8 MB, as text and as escapes, in chats and completions: some are longer
    than the context by their bytes, the others are encoded up to it. While they are
    prepared a stream moves and /health is answered, each far more often than it would be
    between two of them, and memory is a few times that of the bodies."""
    with open("long.yaml", "w", encoding="utf-8") as f:
        f.write(SHAPE)
    subprocess.run([os.environ["BENCH"], "synth", "./long.yaml", "F32", "-o", "long.gguf"],
                   check=True, capture_output=True)
    size = (8 << 20) - 200
    t = Server("long.gguf", "--ctx", "524288", "--sequences", "1", "--threads", "1",
               "--kv-type", "q4_0", "--chat-template", "zephyr")
    before = t.metrics()[MEMORY]
    clients = []
    for text, why in ((b"Once upon ", b"bytes"), (b"\\u0416", b"at least 524288 tokens")):
        for path, head, tail in (("/v1/completions", b'{"prompt": "', b'"}'),
                                 ("/v1/chat/completions",
                                  b'{"messages": [{"role": "user", "content": "', b'"}]}')):
            body = post(head + text * (size // len(text)) + tail, path)
            c = socket.create_connection((t.host, t.port), timeout=60)
            c.sendall(body[:-1])
            clients.append((c, body[-1:], why))
    stream = socket.create_connection((t.host, t.port), timeout=60)
    stream.sendall(post({"prompt": "a", "max_tokens": 200000, "ignore_eos": True, "stream": True}))
    check(reply(stream) == 200, "no stream")
    health = t.connect()
    turns = [Turns(lambda: stream.recv(1 << 20)),
             Turns(lambda: is_healthy(health))]
    t.wait_until("both are served", lambda: all(turn.n > 0 for turn in turns))
    begin = [turn.n for turn in turns]
    for c, last, _ in clients:
        c.sendall(last)
    for c, _, why in clients:
        text = c.recv(65536)
        check(text[9:12] == b"400" and b"context_length_exceeded" in text and why in text, text)
        c.close()
    n = [turn.n - b for turn, b in zip(turns, begin)]
    for turn in turns:
        turn.stops = True
        turn.join()
    most = int(re.search(r"VmHWM:\s+(\d+) kB", open(f"/proc/{t.child.pid}/status").read())[1]) << 10
    print("while four prompts of 8 MB were refused: %d times more of a stream, %d replies of "
          "/health; memory %d bytes, at most %d" % (*n, before, most))
    check(min(n) > 10 * len(clients), "others waited for large prompts:", n)
    if not os.environ.get("SANITIZE"):
        check(most - before < 10 * (8 << 20), "memory:", before, most)
    stream.close()
    t.wait_idle()
    check(t.stop() == 0, "stopped with an error after large prompts")


# What a process takes once (all pages of the KV cache, buffers of whole chunks, tables,
# masks of grammars) it takes first.
for _ in range(SEQUENCES):
    s.complete(prompt=[random.randrange(3, 500) for _ in range(CTX - 32)], max_tokens=1)
s.complete(prompt=[w * 3 for w in ("a ", "b ", "c ", "d ")], max_tokens=490, ignore_eos=True)
before = all_faults(100, 0, 4 << 20)
after = all_faults(n_requests, seconds, 100 << 20)
if not os.environ.get("SANITIZE"):
    s.wait_until("memory is back within 1 %", lambda: s.metrics()[MEMORY] <= before[0] * 1.01, 20)
    after = s.metrics()[MEMORY], after[1]
print("after 100 requests: %d bytes, %d descriptors; after %d more: %d bytes (%+.2f %%), %d descriptors"
      % (*before, n_requests, after[0], (after[0] / before[0] - 1) * 100, after[1]))
check(after[1] <= before[1], "descriptors are lost:", before, after)
check(s.stop() == 0, "stopped with an error:", s.said())
stopped()
large_prompts()
check(not s.said(), "not quiet:", s.said())
