# SPDX-License-Identifier: MIT
#
# clients.py - clients of a server under mixed load, for haul.py
#
# A kind of client is a generator that is given its Client and yields behind each request:
# it remembers its conversations while the load pauses.
import json
import random
import re
import time

from server import TOOLS, check, is_valid, joined

COMPLETIONS, CHAT, MESSAGES = "/v1/completions", "/v1/chat/completions", "/v1/messages"
STORY = [{"role": "user", "content": "Once upon a time"}]
NATIVE_TOOLS = [{"name": t["function"]["name"], "input_schema": t["function"].get("parameters", {"type": "object"})}
                for t in TOOLS]
TEXTS = {"text", "content", "reasoning_content", "thinking", "name", "arguments", "partial_json", "delta",
         "finish_reason", "stop_reason"}


def texts(value, key=None):
    """What a model has written of an answer, whole or in events, and how that ended."""
    if isinstance(value, dict):
        return "".join(texts(v, k) for k, v in value.items())
    if isinstance(value, list):
        return "".join(texts(v, key) for v in value)
    return value if isinstance(value, str) and key in TEXTS else ""


class Client:
    """Sends requests of a kind until a time. known: texts of answers that may not change, by request."""

    def __init__(self, server, kind, known):
        self.connection, self.work, self.known = server.connect(600), kind(self), known
        self.n, self.random = 0, random.Random(1)

    def run(self, end):
        while time.monotonic() < end:
            next(self.work)
        self.connection.close()

    def send(self, path, body, leave=None):
        """The answer, its JSON or its events; nothing where the client leaves: behind some
        bytes, or, for none, at a random time up to 30 ms."""
        self.connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        self.n += 1
        if leave == 0:
            time.sleep(self.random.uniform(0, 0.03))
            return self.connection.close()
        reply = self.connection.getresponse()
        text = reply.read(leave).decode(errors="replace")
        check(reply.status == 200, path, str(body)[:300], reply.status, text)
        if leave:
            return self.connection.close()
        events = [json.loads(e) for e in re.findall(r"^data: ({.*)", text, re.M)]
        answer = events or json.loads(text)
        if self.known is not None and body.get("temperature") == 0:
            got = texts(answer)
            check(self.known.setdefault(json.dumps(body), got) == got, "another answer to", str(body)[:200], got)
        return answer


def same(path, leave=None, **body):
    """One request, again and again; one that is left is sent to its end the next time."""
    def work(client):
        while True:
            for how in dict.fromkeys((leave, None)):
                client.send(path, body, how)
                yield
    return work


def tools(client):
    """Thoughts, calls and their results, whole and in events, then a text."""
    while True:
        talk = list(STORY)
        for choice, stream in (("required", False), ("required", True), ("auto", True)):
            answer = client.send(CHAT, {"messages": talk, "tools": TOOLS, "tool_choice": choice, "stream": stream,
                                        "parallel_tool_calls": False, "max_tokens": 200, "temperature": 0,
                                        "reasoning_budget": 4})
            yield
            if stream:
                text, calls, reason = joined(answer)
            else:
                message, reason = answer["choices"][0]["message"], answer["choices"][0]["finish_reason"]
                text, calls = message["content"], message.get("tool_calls", [])
            check(reason == "tool_calls" or choice == "auto" or reason == "length", answer)
            if reason != "tool_calls":
                break
            check(len(calls) == 1 and is_valid(calls[0]), answer)
            calls = [{**calls[0], "id": "a"}]  # as in the same answer to another request
            talk += [{"role": "assistant", "content": text, "tool_calls": calls},
                     {"role": "tool", "tool_call_id": "a", "content": "3 degrees"}]


def talks(*names):
    """Conversations that begin alike, come back in turn and grow until the context is nearly full."""
    def work(client):
        known = {name: [] for name in names}
        while True:
            for name, talk in known.items():
                talk.append({"role": "user", "content": f"What does {name} do then?" if talk else
                             f"Once upon a time, in a big house next to a park, there was {name}. One day"})
                answer = client.send(CHAT, {"messages": talk, "max_tokens": 24, "temperature": 0,
                                            "reasoning_budget": 0})
                yield
                talk.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})
                if answer["usage"]["total_tokens"] > 300:
                    talk.clear()
    return work


LONG = {"max_tokens": 300, "stream": True, "ignore_eos": True}
KINDS = [
    same(COMPLETIONS, prompt="Once upon a time", max_tokens=40, temperature=0),
    same(COMPLETIONS, prompt="The dog ran to", max_tokens=60, temperature=0, stream=True),
    same(COMPLETIONS, prompt="a " * 100, max_tokens=8, temperature=0, cache_prompt=False),
    same(COMPLETIONS, prompt=["One day", "Lily"], n=2, seed=7, max_tokens=20),
    same(CHAT, messages=STORY, max_tokens=30, temperature=0, response_format={"type": "json_object"}),
    same(CHAT, messages=STORY, max_tokens=40, temperature=0, reasoning_budget=8, stream=True),
    same(MESSAGES, messages=STORY, max_tokens=90, temperature=0, stream=True, tools=NATIVE_TOOLS,
         tool_choice={"type": "any"}, thinking={"type": "enabled", "budget_tokens": 8}),
    same("/v1/responses", input="Once upon a time", max_output_tokens=40, temperature=0, stream=True),
    tools,
    talks("Lily", "Tim", "the dog"),
    talks("Sue", "Ben", "the cat"),
    talks("Tom", "Mia", "the bird"),
    # Clients that leave: in an answer, in a call, and while their prompt waits or is computed.
    same(CHAT, 64, messages=STORY, **LONG),
    same(CHAT, 900, messages=STORY, tools=TOOLS, tool_choice="required", reasoning_budget=2, **LONG),
    same(COMPLETIONS, 0, prompt="b " * 100, max_tokens=100),
    same(MESSAGES, 0, messages=[{"role": "user", "content": "c " * 100}], max_tokens=100, stream=True),
]
# Answers that are longer together than the pages are: some are dropped and computed again.
TOO_LONG = same(COMPLETIONS, prompt=["One", "A cat", "The sun", "A boy"], max_tokens=700, temperature=0,
                ignore_eos=True)
