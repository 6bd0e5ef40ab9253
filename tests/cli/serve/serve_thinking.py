# SPDX-License-Identifier: MIT
#
# serve_thinking.py - thoughts apart from answers, as a client of `bench serve` gets them
#
# The model writes stories, without markers: a template opens the block of thoughts,
# and a budget closes it.
import json
import sys

from server import Server, check

model = sys.argv[1]
TEMPLATE = """{% for m in messages %}{% if m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}<think>
{% if enable_thinking is false %}

</think>

{% endif %}{% endif %}{% if reasoning_effort %}{% endif %}"""


def parts(events):
    """Thoughts and text of a stream, and that no text comes before a thought."""
    thought = text = ""
    for e in events:
        for c in e["choices"]:
            more = c["delta"].get("reasoning_content", "")
            check(not (more and text), "a thought behind text:", events)
            thought += more
            text += c["delta"].get("content") or ""
    return thought, text


def message(answer):
    return answer["choices"][0]["message"]


def thoughts(s):
    talk = [{"role": "user", "content": "Once upon a time"}]
    free = s.chat(messages=talk, max_tokens=20)
    check(message(free)["content"] == "" and len(message(free)["reasoning_content"]) > 20, free)
    check(free["usage"]["completion_tokens_details"]["reasoning_tokens"] == 20, free)

    # The budget closes the block, with the tokens of the marker; the answer follows.
    for name in ("reasoning_budget", "thinking_budget"):
        a = s.chat(messages=talk, max_tokens=60, **{name: 8})
        check(message(a)["content"] and "think>" not in str(message(a)), a)
        check(free["choices"][0]["message"]["reasoning_content"].startswith(
            message(a)["reasoning_content"]), free, a)
        check(a["usage"]["completion_tokens_details"]["reasoning_tokens"] >= 8, a)
        check(a["usage"]["completion_tokens"] == 60, a)
    events = s.stream("/v1/chat/completions", messages=talk, max_tokens=60, reasoning_budget=8,
                      stream_options={"include_usage": True})
    check(parts(events) == (message(a)["reasoning_content"], message(a)["content"]), events, a)
    check(events[0]["choices"][0]["delta"]["role"] == "assistant", events[0])
    check(events[-1]["usage"]["completion_tokens_details"] == a["usage"]["completion_tokens_details"],
          events[-1], a)
    two = s.chat(messages=talk, max_tokens=60, reasoning_budget=8, n=2)
    check([c["message"] for c in two["choices"]] == [message(a)] * 2, two, a)

    # As many tokens as there are may end in the marker itself.
    for most in range(8, 24):
        cut = s.chat(messages=talk, max_tokens=most, reasoning_budget=8)
        check(cut["usage"]["completion_tokens"] == most, most, cut)

    # Without thoughts: by the template, by a budget of none, and before a schema.
    off = s.chat(messages=talk, max_tokens=20, enable_thinking=False)
    check("reasoning_content" not in message(off) and message(off)["content"], off)
    kwargs = s.chat(messages=talk, max_tokens=20, chat_template_kwargs={"enable_thinking": False})
    none = s.chat(messages=talk, max_tokens=20, reasoning_budget=0)
    check(message(off) == message(kwargs) == message(none), off, kwargs, none)
    check("completion_tokens_details" not in off["usage"], off)
    form = {"type": "json_schema", "json_schema": {"schema": {"enum": ["cat", "dog"]}}}
    a = s.chat(messages=talk, max_tokens=60, response_format=form)
    check(json.loads(message(a)["content"]) in ("cat", "dog"), a)

    # Stop strings end the answer, not the thoughts.
    a = s.chat(messages=talk, max_tokens=60, reasoning_budget=8)
    word = message(a)["reasoning_content"].split()[0]
    check(message(s.chat(messages=talk, max_tokens=60, reasoning_budget=8, stop=[word]))
          ["reasoning_content"] == message(a)["reasoning_content"], word, a)


def variables(s):
    check(s.chat(max_tokens=2, reasoning_effort="low"), "a variable of the template")
    for fields, name in (({"documents": [{}]}, "documents"),
                         ({"chat_template_kwargs": {"my_own": 1}}, "my_own"),
                         ({"reasoning_budget": -2}, "reasoning_budget"),
                         ({"thinking_budget": "a"}, "thinking_budget")):
        check(s.chat(400, **fields)["error"]["param"] == name, fields)
    prompt = s.post("/apply-template", {
        "messages": [{"role": "user", "content": "a"}], "enable_thinking": False})["prompt"]
    check(prompt == "a<think>\n\n</think>\n\n", prompt)


def no_thoughts(s):
    """A template without thoughts has none of the variables."""
    for name, value in (("enable_thinking", False), ("reasoning_effort", "low"),
                        ("reasoning_budget", 5), ("thinking_budget", 1)):
        error = s.chat(400, **{name: value})["error"]
        check(error["param"] == name and error["code"] == "unsupported", error)
    for budget in (-1, 0):
        check("reasoning_content" not in message(s.chat(max_tokens=5, reasoning_budget=budget)), budget)


with open("template", "w") as f:
    f.write(TEMPLATE)
for template, drafts, tests in (("./template", "off", (thoughts, variables)),
                                ("./template", "lookup", (thoughts,)),
                                ("zephyr", "off", (no_thoughts,))):
    s = Server(model, "--sequences", "2", "--ctx", "512", "--chat-template", template,
               "--speculate", drafts)
    for test in tests:
        test(s)
    check(s.stop() == 0, "stopped with an error")
