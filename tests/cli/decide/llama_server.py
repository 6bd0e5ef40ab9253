#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# llama_server.py - a stand-in for llama-server: each token takes 5 ms
#
# What it does wrong is in the name that it is started by: exits, late, mute, cut, error,
# blind, memory; halves says how many tokens a piece has, as llama-server does. What it
# was started with, and what it was asked, are lines of the file $ASKED.
import http.server
import json
import os
import sys
import time

name = os.path.basename(sys.argv[0])


def note(what):
    with open(os.environ["ASKED"], "a") as f:
        f.write(json.dumps({"name": name, **what}) + "\n")


if sys.argv[1:] == ["--help"]:
    print("-c, --ctx-size N\n--port PORT\n-fa, --flash-attn [on|off|auto]\n--cache-ram N")
    sys.exit()
if sys.argv[1:] == ["--version"]:
    print("version: 7 (abc1234)\nbuilt with cc", file=sys.stderr)
    sys.exit()
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
note({"options": options, "pid": os.getpid(), "cpus": sorted(os.sched_getaffinity(0))})
if open(options["-m"], "rb").read(4) != b"GGUF":
    sys.exit("error: failed to load model")
if name == "exits":
    sys.exit("error: no such tensor")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/health":
            self.answer(503 if name == "late" else 200, b"{}")
        elif self.path == "/props" and name == "llama-server":
            self.answer(200, json.dumps({"build_info": "b7-abc1234"}).encode())
        else:
            self.answer(404, b"{}")

    def event(self, what):
        data = b"data: " + json.dumps(what).encode() + b"\n\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        note({"asked": asked, "path": self.path})
        warms_up = asked["max_tokens"] == 2
        if name == "error" and not warms_up:
            self.answer(500, b'{"error": {"message": "no slot is free"}}')
            return
        if name == "memory" and not warms_up:
            self.all = bytearray(1 << 30)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        n = asked["max_tokens"]
        for i in range(n):
            time.sleep(0.005)
            if i == 3 and name == "cut":
                os._exit(0)
            if i == 3 and name == "mute":
                time.sleep(600)
            if name in ("halves", "blind") and i == 4:
                continue  # this token's text comes with the next one's
            event = {"choices": [{"text": "x", "index": 0, "finish_reason": None}]}
            if name == "halves":
                event["timings"] = {"predicted_n": i + 1}
            self.event(event)
        self.event({"choices": [{"text": "", "finish_reason": "length"}],
                    "usage": {"prompt_tokens": len(asked["prompt"]), "completion_tokens": n}})
        self.wfile.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


http.server.ThreadingHTTPServer(("127.0.0.1", int(options["--port"])), Handler).serve_forever()
