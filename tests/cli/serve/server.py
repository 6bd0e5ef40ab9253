# SPDX-License-Identifier: MIT
#
# server.py - a running `bench serve`, and requests to it, for the tests in this folder
import atexit
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time


def fail(*words):
    print(os.path.basename(sys.argv[0]) + ":", *words, file=sys.stderr)
    sys.exit(1)


def check(ok, *words):
    if not ok:
        fail(*words)


def check_events(path, events):
    """Every event is of the same answer; of each choice the first one says who speaks (in
    a chat), and the last one, and no other, how it ended."""
    begun, ended = set(), set()
    for e in events:
        check(all(e[k] == events[0][k] for k in ("id", "object", "created", "model")), e)
        check(e["object"] == ("chat.completion.chunk" if "chat" in path else "text_completion"), e)
        for c in e["choices"]:
            check(c["index"] not in ended, "after its end:", e)
            if "delta" in c:
                check(("role" in c["delta"]) == (c["index"] not in begun), e)
            begun.add(c["index"])
            if c["finish_reason"] is not None:
                check(c["finish_reason"] in ("stop", "length", "tool_calls"), e)
                ended.add(c["index"])
    check(begun and begun == ended, "without an end:", begun - ended)


# Templates whose calls are JSON between tags, and that think first.
HEAD = """{% for t in tools or [] %}{{ t.function.name }} {% endfor %}{% for m in messages %}
{{ m.role }}: {{ m.content }}"""
TAIL = """{% endfor %}{% if add_generation_prompt %}
assistant: {% endif %}"""
TAGS = HEAD + """{% for c in m.tool_calls or [] %}<call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</call>{% endfor %}""" + TAIL
THINKS = TAGS.replace("assistant: {% endif %}", "assistant: <think>\n{% endif %}").replace(
    "{{ m.content }}", "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n"
    "{% endif %}{{ m.content }}")

TOOLS = [
    {"type": "function", "function": {"name": "now"}},
    {"type": "function", "function": {
        "name": "weather", "description": "the weather in a city", "strict": True, "parameters": {
            "type": "object", "additionalProperties": False, "required": ["city", "days"],
            "properties": {"city": {"enum": ["Oslo", "Rome"]},
                           "days": {"type": "integer", "minimum": 1, "maximum": 9}}}}},
]


def is_valid(call):
    function = call["function"]
    arguments = json.loads(function["arguments"])
    check(call["type"] == "function" and len(call["id"]) == 9, call)
    if function["name"] == "now":
        return arguments == {}
    return (function["name"] == "weather" and sorted(arguments) == ["city", "days"] and
            arguments["city"] in ("Oslo", "Rome") and 1 <= arguments["days"] <= 9)


def joined(events):
    """A stream's choice as a message, its deltas as clients join them."""
    text, calls, reason = "", [], None
    for e in events:
        for c in e["choices"]:
            delta = c["delta"]
            text += delta.get("content") or ""
            reason = c["finish_reason"] or reason
            check(delta.get("tool_calls", True), "an event without a call:", e)
            for d in delta.get("tool_calls", ()):
                check(d["index"] in (len(calls) - 1, len(calls)), events)
                if d["index"] == len(calls):
                    check(d["id"] and d["function"]["name"] and d["type"] == "function", d)
                    calls.append(d)
                else:
                    check("id" not in d and "name" not in d["function"], d)
                    calls[-1]["function"]["arguments"] += d["function"]["arguments"]
    return text, calls, reason


class Server:
    """`bench serve -m model options...` on a free port, ready."""

    def __init__(self, model, *options, ready=True):
        self.errors = open("server.err", "w+")
        self.child = subprocess.Popen(
            [os.environ["BENCH"], "serve", "-m", model, "--port", "0", *options],
            stdout=subprocess.PIPE, stderr=self.errors, text=True)
        atexit.register(self.child.kill)  # where the test fails before it is stopped
        self.line = self.child.stdout.readline()
        found = re.search(r"on http://([0-9.]+):(\d+), ", self.line)
        check(found, "no first line:", self.line, self.said())
        self.host, self.port = found[1], int(found[2])

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def connect(self, timeout=60):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None, connection=None):
        """Status, headers and text of the reply; a body that is no text is made JSON. A
        connection that is given stays open."""
        c = connection or self.connect()
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        own = {"Content-Type": "application/json"} if body is not None else {}
        c.request(method, path, body, {**own, **(headers or {})})
        r = c.getresponse()
        text = r.read().decode()
        if not connection:
            c.close()
        return r.status, r.headers, text

    def post(self, path, body, status=200, headers=None):
        """The reply's JSON; of another status than that it is a failure."""
        got, _, text = self.ask("POST", path, body, headers)
        check(got == status, f"{path} {str(body)[:200]}: {got} and not {status}: {text[:400]}")
        answer = json.loads(text)
        if status != 200:
            check(answer["error"]["message"] and answer["error"]["type"], "no error:", text)
        return answer

    def complete(self, status=200, **fields):
        fields.setdefault("prompt", "Once upon a time")
        fields.setdefault("temperature", 0)
        return self.post("/v1/completions", fields, status)

    def chat(self, status=200, **fields):
        fields.setdefault("messages", [{"role": "user", "content": "Once upon a time, Lily"}])
        fields.setdefault("temperature", 0)
        return self.post("/v1/chat/completions", fields, status)

    def stream(self, path, **fields):
        """The events of a stream; the last one must be [DONE]."""
        c = self.connect()
        c.request("POST", path, json.dumps({"stream": True, "temperature": 0, **fields}),
                  {"Content-Type": "application/json"})
        r = c.getresponse()
        text = r.read().decode()
        check(r.status == 200, path, r.status, text)
        check(r.headers["Content-Type"].startswith("text/event-stream"), r.headers)
        events = [e[len("data: "):] for e in text.split("\n\n") if e and not e.startswith(":")]
        check(events[-1] == "[DONE]", "a stream ends with", events[-1])
        events = [json.loads(e) for e in events[:-1]]
        check_events(path, events)
        return events

    def metrics(self, connection=None):
        """Values by name; with labels the name has them."""
        status, _, text = self.ask("GET", "/metrics", connection=connection)
        check(status == 200, "/metrics", status)
        values = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        return values

    def wait_until(self, what, is_so, seconds=60):
        end = time.monotonic() + seconds
        while not is_so():
            check(time.monotonic() < end, "never:", what, self.metrics())
            time.sleep(0.01)

    def wait_idle(self):
        def is_idle():
            m = self.metrics()
            return m["slm_requests_running"] == 0 and m["slm_requests_waiting"] == 0
        self.wait_until("idle", is_idle)

    def stop(self, how=signal.SIGTERM):
        """The exit code."""
        self.child.send_signal(how)
        return self.child.wait(60)
