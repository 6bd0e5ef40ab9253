# SPDX-License-Identifier: MIT
#
# serving.py - a few clients of a `bench serve` whose system calls fail, for faults.py
import http.client
import json
import os
import re
import signal
import threading
import time

KEY = "a-key-of-16-to-255-characters"
START_S = 30


class Serving:
    """Clients of one kind of server. What they got when nothing failed is what they must
    get afterwards."""

    def __init__(self):
        self.known = {}

    def run(self, runner, out, patience_s):
        """Sends requests, then SIGTERM; what was wrong with the answers."""
        self.wrong, self.failed, self.patience_s = [], [], patience_s
        self.is_served_again = False
        self.address = self.wait(runner, out)
        if self.address:
            self.requests()
            self.end(runner)
        return self.wrong

    @staticmethod
    def wait(runner, out):
        """Where it listens; None: it has ended."""
        end = time.monotonic() + START_S
        while runner.poll() is None and time.monotonic() < end:
            with open(out, errors="replace") as f:
                found = re.search(r"on http://([0-9.]+):(\d+), .*\n", f.read())
            if found:
                return found[1], int(found[2])
            time.sleep(0.002)
        Serving.end(runner)
        return None

    @staticmethod
    def end(runner):
        """SIGTERM to the server."""
        try:
            with open(f"/proc/{runner.pid}/task/{runner.pid}/children") as f:
                for pid in f.read().split():
                    os.kill(int(pid), signal.SIGTERM)
        except OSError:
            pass

    def connect(self):
        return http.client.HTTPConnection(*self.address, timeout=self.patience_s)

    def request(self, name, connection, method, path, body=None):
        """The text of an answer with status 200, which must be the known one; None: refused,
        or the connection ended, which is noted."""
        try:
            connection.request(method, path, json.dumps(body) if body else None,
                               {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"})
            reply = connection.getresponse()
            text = reply.read().decode()
        except TimeoutError:
            self.failed.append(f"{name}: no answer in time")
            return None
        except (OSError, http.client.HTTPException) as why:
            self.failed.append(f"{name}: {why!r}")
            return None
        if reply.status != 200:
            self.failed.append(f"{name}: {reply.status}")
            try:
                if not json.loads(text)["error"]["message"]:
                    raise ValueError("no message")
            except (ValueError, KeyError, TypeError) as why:
                self.wrong.append(f"{name}: a refusal {reply.status} without a message: {text[:100]} ({why})")
            return None
        return text

    def compare(self, name, got):
        if got is not None and self.known.setdefault(name, got) != got:
            self.wrong.append(f"{name}: a wrong answer: {got[:200]!r}")

    def complete(self, name, connection, stream=False, prompt="Once upon a time"):
        text = self.request(name, connection, "POST", "/v1/completions",
                            {"prompt": prompt, "max_tokens": 6, "temperature": 0, "stream": stream})
        if text is None:
            return
        events = [e[6:] for e in text.split("\n\n") if e.startswith("data: ")] if stream else [text, "[DONE]"]
        try:
            got = "".join(json.loads(e)["choices"][0]["text"] for e in events[:-1])
        except (ValueError, LookupError) as why:
            self.wrong.append(f"{name}: {why!r}: {text[-200:]}")
            return
        if events[-1] != "[DONE]":
            self.failed.append(f"{name}: a stream without its end")
        elif got or name not in self.known:
            self.compare(name, got)

    def leave(self):
        """A client that ends its connection while its answer is streamed."""
        connection = self.connect()
        try:
            connection.request("POST", "/v1/completions", json.dumps(
                {"prompt": "The dog", "max_tokens": 60, "stream": True, "ignore_eos": True}),
                {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"})
            connection.getresponse().read(20)
        except (OSError, http.client.HTTPException):
            pass
        connection.close()

    def requests(self):
        kept = self.connect()
        self.request("health", kept, "GET", "/health")
        others = [threading.Thread(target=self.complete, args=("stream", self.connect(), True, "Lily")),
                  threading.Thread(target=self.leave)]
        [t.start() for t in others]
        self.complete("whole", kept)
        [t.join() for t in others]
        self.request("metrics", kept, "GET", "/metrics")
        kept.close()
        for _ in range(2):  # one of them may be the client whose call fails
            before = len(self.failed)
            self.complete("last", self.connect())
            self.is_served_again = len(self.failed) == before
            if self.is_served_again:
                break
