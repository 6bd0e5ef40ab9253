# SPDX-License-Identifier: MIT
#
# vectors.py - a server of /v1/embeddings whose delay is known
#
# usage: vectors.py PORT_FILE LOG_FILE MS EVERY
# Answers MS milliseconds after a request was read; with EVERY, from the twentieth request
# on each EVERY-th has no vector. LOG_FILE gets a line for each answer, as slow_server's.
import itertools
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT_FILE, LOG_FILE, MS, EVERY = *sys.argv[1:3], float(sys.argv[3]), int(sys.argv[4])
log = open(LOG_FILE, "w", buffering=1)


class Handler(BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", 1 << 16
    numbers = itertools.count(1)

    def log_message(self, *args):
        pass

    def reply(self, o):
        text = json.dumps(o).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.reply({"data": [{"id": "v"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        arrived = time.monotonic_ns()
        assert self.path == "/v1/embeddings" and set(body) == {"model", "input"}, body
        number = next(self.numbers)
        time.sleep(MS / 1000)
        n = len(body["input"].split()) + 2
        fails = EVERY and number >= 20 and number % EVERY == 0
        data = [] if fails else [{"embedding": [0.25] * 384}]
        sent = time.monotonic_ns()
        self.reply({"object": "list", "data": data, "usage": {"prompt_tokens": n, "total_tokens": n}})
        log.write(f"{self.headers['X-Request-Id']}/1/{n}/0 {arrived} {sent}\n")


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open(PORT_FILE + ".part", "w") as f:
    f.write(str(server.server_port))
os.rename(PORT_FILE + ".part", PORT_FILE)
server.serve_forever()
