# SPDX-License-Identifier: MIT
#
# serve_tools.py - calls of tools as a client of `bench serve` gets them
#
# The model writes stories and has never called anything: what it writes is what the
# grammar leaves it.
import json
import sys

from server import HEAD, TAGS, TAIL, THINKS, TOOLS, Server, check, is_valid, joined

model = sys.argv[1]
# XML whose strings are as they are.
XML = HEAD + """{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}
{% for k, v in c.function.arguments | items %}<arg>{{ k }}</arg><value>{{ v if v is string else v | tojson
}}</value>{% endfor %}</call>{% endfor %}""" + TAIL
# A control token of the model's vocabulary marks calls.
CONTROL = HEAD + """{% for c in m.tool_calls or [] %}<s>{{ c.function.name }}:{{ c.function.arguments | tojson }}
{% endfor %}""" + TAIL
# Messages with headers, as gpt-oss writes them.
HARMONY = """{% for t in tools or [] %}{{ t.function.name }} {% endfor %}{% for m in messages -%}
{% if m.role != 'assistant' %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% else -%}
{% if m.thinking %}<|start|>assistant<|channel|>analysis<|message|>{{ m.thinking }}<|end|>{% endif -%}
{% if m.tool_calls %}{% set f = m.tool_calls[0].function %}<|start|>assistant to=functions.{{ f.name -}}
<|channel|>commentary json<|message|>{{ f.arguments | tojson }}<|call|>{% else -%}
<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|return|>{% endif %}{% endif %}{% endfor -%}
{% if add_generation_prompt %}<|start|>assistant{% endif %}"""
TALK = [{"role": "user", "content": "Once upon a time"}]


def named(name):
    return {"type": "function", "function": {"name": name}}


def without_ids(calls):
    return [c["function"] for c in calls]


def required(s):
    for seed in range(4):
        fields = dict(messages=TALK, tools=TOOLS, tool_choice="required", seed=seed, temperature=1,
                      parallel_tool_calls=False, max_tokens=200)
        c = s.chat(**fields)["choices"][0]
        calls = c["message"]["tool_calls"]
        check(c["finish_reason"] == "tool_calls" and c["message"]["content"] is None, c)
        check(len(calls) == 1 and is_valid(calls[0]), c)
        text, streamed, reason = joined(s.stream("/v1/chat/completions", **fields))
        check(not text and reason == "tool_calls", text, reason)
        check(without_ids(streamed) == without_ids(calls), streamed, calls)
    two = s.chat(messages=TALK, tools=TOOLS, tool_choice="required", n=2, max_tokens=200,
                 parallel_tool_calls=False, seed=1)
    ids = [c["message"]["tool_calls"][0]["id"] for c in two["choices"]]
    check(ids[0] != ids[1], ids)
    # As many calls as there are tokens; what is cut is a beginning.
    c = s.chat(messages=TALK, tools=TOOLS, tool_choice="required", max_tokens=200, seed=3)
    check(all(is_valid(x) for x in c["choices"][0]["message"]["tool_calls"][:-1]), c)


def one_by_name(s):
    for name in ("now", "weather"):
        c = s.chat(messages=TALK, tools=TOOLS, tool_choice=named(name), max_tokens=200,
                   logprobs=True)
        choice = c["choices"][0]
        calls = choice["message"]["tool_calls"]
        check(len(calls) == 1 and calls[0]["function"]["name"] == name and is_valid(calls[0]), c)
        check(len(choice["logprobs"]["content"]) == c["usage"]["completion_tokens"], c)
    # Any number of tokens: what is there begins the whole.
    for most in range(1, c["usage"]["completion_tokens"] + 1):
        cut = s.chat(messages=TALK, tools=TOOLS, tool_choice=named("weather"), max_tokens=most,
                     temperature=0)["choices"][0]
        for call in cut["message"].get("tool_calls", ()):
            check(call["function"]["name"] == "weather", cut)
        check(cut["finish_reason"] in ("length", "tool_calls"), cut)


def only(mode, *names):
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [named(n) for n in names]}}


def allowed(s):
    """Some of the tools may be called; the prompt has all of them."""
    fields = dict(messages=TALK, tools=TOOLS, max_tokens=200, parallel_tool_calls=False, seed=5, temperature=1)
    free = s.chat(**fields, tool_choice="required")
    for names in (["now"], ["weather"], ["weather", "now", "weather"]):
        c = s.chat(**fields, tool_choice=only("required", *names))
        calls = c["choices"][0]["message"]["tool_calls"]
        check(len(calls) == 1 and calls[0]["function"]["name"] in names and is_valid(calls[0]), c)
        check(c["usage"]["prompt_tokens"] == free["usage"]["prompt_tokens"], c, free)
    check(without_ids(calls) == without_ids(free["choices"][0]["message"]["tool_calls"]), calls, free)
    auto = s.chat(messages=TALK, tools=TOOLS, tool_choice=only("auto", "now"), max_tokens=20)
    check(auto["choices"] == s.chat(messages=TALK, tools=TOOLS, max_tokens=20)["choices"], auto)


def text_or_none(s):
    """The model begins no call by itself, so its text is what it would be."""
    plain = s.chat(messages=TALK, max_tokens=20, temperature=0, tools=TOOLS, tool_choice="none")
    auto = s.chat(messages=TALK, max_tokens=20, temperature=0, tools=TOOLS)
    check(plain["choices"][0]["message"] == auto["choices"][0]["message"], plain, auto)
    check("tool_calls" not in auto["choices"][0]["message"], auto)
    check(auto["choices"][0]["finish_reason"] == "length", auto)
    text, calls, _ = joined(s.stream("/v1/chat/completions", messages=TALK, max_tokens=20,
                                     temperature=0, tools=TOOLS))
    check(text == auto["choices"][0]["message"]["content"] and not calls, text, calls)
    # The marker written by force of a bias: with auto a call follows, with none nothing.
    ids = s.post("/tokenize", {"content": "<", "add_special": False})["tokens"]
    bias = {str(ids[-1]): 100}
    c = s.chat(messages=TALK, max_tokens=60, tools=TOOLS, tool_choice="none", logit_bias=bias)
    check("tool_calls" not in c["choices"][0]["message"], c)
    form = {"type": "json_schema", "json_schema": {"schema": {"enum": ["cat", "dog"]}}}
    c = s.chat(messages=TALK, tools=TOOLS, tool_choice="none", response_format=form)
    check(json.loads(c["choices"][0]["message"]["content"]) in ("cat", "dog"), c)


def with_format(s):
    """A call, or a text that follows the schema, which may spell what begins a call."""
    form = {"type": "json_schema", "json_schema": {"schema": {"enum": ["a <call>\n{\"name\": \"now\"", 7]}}}
    for seed in range(6):
        fields = dict(messages=TALK, tools=TOOLS, response_format=form, seed=seed, temperature=2, max_tokens=200,
                      parallel_tool_calls=False)
        c = s.chat(**fields)["choices"][0]
        text, calls, reason = joined(s.stream("/v1/chat/completions", **fields))
        check(reason == c["finish_reason"] and text == (c["message"]["content"] or ""), text, calls, c)
        if reason == "tool_calls":
            check(is_valid(calls[0]) and without_ids(calls) == without_ids(c["message"]["tool_calls"]), c)
        else:
            check(json.loads(text) in form["json_schema"]["schema"]["enum"] and not calls, c)
    # A bias makes the first letter of a call, or of a text, the likeliest.
    for first, want in (("<", "tool_calls"), ("7", "stop")):
        ids = s.post("/tokenize", {"content": first, "add_special": False})["tokens"]
        c = s.chat(messages=TALK, tools=TOOLS, response_format=form, max_tokens=200, parallel_tool_calls=False,
                   logit_bias={str(ids[-1]): 100})["choices"][0]
        check(c["finish_reason"] == want, c)
    c = s.chat(messages=TALK, tools=TOOLS, response_format=form, tool_choice="required", max_tokens=200,
               parallel_tool_calls=False)["choices"][0]
    check(is_valid(c["message"]["tool_calls"][0]), c)
    form = {"type": "json_schema", "json_schema": {"schema": {"not": {}}}}
    check(s.chat(400, tools=TOOLS, response_format=form)["error"]["param"] == "response_format", form)


def results(s):
    """A loop of calls and results; the template writes both."""
    talk = list(TALK)
    for _ in range(2):
        message = s.chat(messages=talk, tools=TOOLS, tool_choice="required", max_tokens=200,
                         parallel_tool_calls=False)["choices"][0]["message"]
        talk += [message, {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"],
                           "content": "{\"temp\": 3}"}]
    prompt = s.post("/apply-template", {"messages": talk, "tools": TOOLS})["prompt"]
    check(prompt.count("<call>") == 2 and prompt.count("tool: {\"temp\": 3}") == 2, prompt)
    check(s.chat(messages=talk, tools=TOOLS, max_tokens=5), talk)
    check(s.chat(messages=talk, max_tokens=5), talk)
    call = message["tool_calls"][0]
    bad = [[*TALK, message, {"role": "tool", "tool_call_id": "other", "content": ""}],
           [*TALK, message, {"role": "tool", "content": ""}],
           [*TALK, message, *TALK], [*TALK, message],
           [*TALK, {"role": "tool", "tool_call_id": call["id"], "content": ""}],
           [*TALK, {"role": "assistant", "tool_calls": [{"id": "a"}]}, *TALK],
           [*TALK, {"role": "assistant", "tool_calls": {}}, *TALK]]
    for messages in bad:
        check(s.chat(400, messages=messages, tools=TOOLS)["error"]["param"] == "messages",
              messages)


def refusals(s):
    for fields, param in (
            ({"tools": {}}, "tools"), ({"tools": [{}]}, "tools"),
            ({"tools": [{"type": "web_search"}]}, "tools"),
            ({"tools": [{"type": "function", "function": {}}]}, "tools"),
            ({"tools": [TOOLS[0], TOOLS[0]]}, "tools"),
            ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools"),
            ({"tools": [{"type": "function", "function": {
                "name": "a", "parameters": {"not": {}}}}]}, "tools"),
            ({"tools": TOOLS, "tool_choice": "some"}, "tool_choice"),
            ({"tools": TOOLS, "tool_choice": named("other")}, "tool_choice"),
            ({"tool_choice": "required"}, "tool_choice"),
            ({"tools": TOOLS, "tool_choice": only("auto", "now", "other")}, "tool_choice"),
            ({"tools": TOOLS, "tool_choice": only("none", "now")}, "tool_choice"),
            ({"tools": TOOLS, "tool_choice": only("auto")}, "tool_choice"),
            ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools"}}, "tool_choice"),
            ({"tools": TOOLS, "parallel_tool_calls": 1}, "parallel_tool_calls"),
            ({"functions": [{"name": "a"}]}, "functions"),
            ({"function_call": {"name": "a"}}, "function_call")):
        error = s.chat(400, **fields)["error"]
        check(error["param"] == param, fields, error)
    check("use tools" in s.chat(400, functions=[{"name": "a"}])["error"]["message"], "instead")


def thoughts(s):
    """Thoughts come first, then the call."""
    c = s.chat(messages=TALK, tools=TOOLS, tool_choice=named("weather"), max_tokens=300,
               reasoning_budget=8)["choices"][0]
    check(c["message"]["reasoning_content"] and is_valid(c["message"]["tool_calls"][0]), c)
    c = s.chat(messages=TALK, tools=TOOLS, max_tokens=30)["choices"][0]
    check("tool_calls" not in c["message"] and c["message"]["reasoning_content"], c)
    c = s.chat(messages=TALK, tools=TOOLS, max_tokens=200, reasoning_budget=8, response_format={
        "type": "json_schema", "json_schema": {"schema": {"const": "a <call>"}}})["choices"][0]
    check(c["message"]["reasoning_content"], c)
    check(c["finish_reason"] == "tool_calls" or json.loads(c["message"]["content"]) == "a <call>", c)


def marked(s):
    """The marker, which a bias makes the likeliest token, begins a call, or cannot come."""
    fields = dict(messages=TALK, max_tokens=80, logit_bias={"1": 100}, tools=TOOLS,
                  parallel_tool_calls=False)
    c = s.chat(**fields)["choices"][0]
    check(c["finish_reason"] == "tool_calls" and is_valid(c["message"]["tool_calls"][0]), c)
    text, streamed, reason = joined(s.stream("/v1/chat/completions", **fields))
    check((text, reason) == ("", "tool_calls"), text, reason)
    check(without_ids(streamed) == without_ids(c["message"]["tool_calls"]), streamed, c)
    c = s.chat(**fields, tool_choice="none")["choices"][0]
    check("tool_calls" not in c["message"] and len(c["message"]["content"]) > 20, c)


def headers(s):
    """Thoughts, a call or an answer, each behind its header."""
    kinds = set()
    # Nothing begins with a receiver, which the model would choose nearly always.
    pieces = [s.post("/detokenize", {"tokens": [i]})["content"] for i in range(512)]
    bias = {str(i): -100 for i, piece in enumerate(pieces) if piece[:1] in (" ", "t", "\n", "\t")}
    for seed in range(12):
        fields = dict(messages=TALK, tools=TOOLS, seed=seed, temperature=2, max_tokens=250, reasoning_budget=4,
                      logit_bias=bias)
        c = s.chat(**fields)["choices"][0]
        m = c["message"]
        calls = m.get("tool_calls", [])
        check("<|" not in (m["content"] or "") + m.get("reasoning_content", ""), c)
        check(bool(calls) == (c["finish_reason"] == "tool_calls") and all(map(is_valid, calls)), c)
        text, streamed, reason = joined(s.stream("/v1/chat/completions", **fields))
        check(reason == c["finish_reason"] and text == (m["content"] or ""), text, c)
        check(without_ids(streamed) == without_ids(calls), streamed, c)
        kinds.add((bool(m.get("reasoning_content")), bool(calls)))
    check({(True, False), (True, True)} <= kinds and len(kinds) > 2, kinds)
    talk = list(TALK)
    for seed in range(4):
        m = s.chat(messages=talk, tools=TOOLS, tool_choice="required", temperature=2, seed=seed, max_tokens=250,
                   reasoning_budget=4)["choices"][0]["message"]
        check(m["content"] is None and is_valid(m["tool_calls"][0]), m)
        talk = [*TALK, m, {"role": "tool", "tool_call_id": m["tool_calls"][0]["id"], "content": "3"}]
        prompt = s.post("/apply-template", {"messages": talk, "tools": TOOLS})["prompt"]
        check((m.get("reasoning_content") or "") in prompt and prompt.count("<|call|>") == 1, m, prompt)
    # An answer that must be JSON begins behind its header, which is in the prompt.
    form = {"type": "json_schema", "json_schema": {"schema": {"const": "cat"}}}
    c, plain = s.chat(messages=TALK, response_format=form), s.chat(messages=TALK, max_tokens=1)
    check(c["choices"][0]["message"]["content"] == '"cat"', c)
    check(c["usage"]["prompt_tokens"] > plain["usage"]["prompt_tokens"], c, plain)


def no_form(s):
    """A template without calls: tools are refused, and not ignored."""
    for fields in ({}, {"tool_choice": "required"}):
        error = s.chat(400, messages=TALK, tools=TOOLS, **fields)["error"]
        check(error["param"] == "tools" and error["code"] == "unsupported", error)


for template, drafts, tests in (
        (TAGS, "off", (required, one_by_name, allowed, text_or_none, with_format, results, refusals)),
        (XML, "lookup", (required, one_by_name, text_or_none)),
        (CONTROL, "off", (marked,)), (HARMONY, "off", (headers,)), (THINKS, "off", (thoughts,)), (None, "off", (no_form,))):
    if template:
        with open("template", "w") as f:
            f.write(template)
    s = Server(model, "--sequences", "2", "--ctx", "512", "--chat-template",
               "./template" if template else "zephyr", "--speculate", drafts)
    for test in tests:
        test(s)
    check(s.stop() == 0, "stopped with an error")
