# SPDX-License-Identifier: MIT
#
# serve_dialects.py - /v1/messages and /v1/responses of `bench serve`: a chat's answer in
# the words of Anthropic's and of OpenAI's newer API, whole and as events
import json
import sys

from server import TAGS, Server, check

model = sys.argv[1]
TALK = [{"role": "user", "content": "Once upon a time, Lily"}]
THINKS = ("{% for m in messages %}{{ m.content }}{% endfor %}"
          "{% if add_generation_prompt %}<think>\n{% endif %}{# </think> #}"
          "{% if messages[0].reasoning_content %}<think>\n</think>\n\n{% endif %}")


def events(s, path, body):
    """[(name, data)] of a stream; each event has its name twice."""
    status, headers, text = s.ask("POST", path, {"stream": True, **body})
    check(status == 200 and headers["Content-Type"].startswith("text/event-stream"), text)
    got = []
    for block in text.split("\n\n"):
        if block and not block.startswith(":"):
            name, data = block.split("\n")
            name, data = name.removeprefix("event: "), json.loads(data.removeprefix("data: "))
            check(data["type"] == name, block)
            got.append((name, data))
    return got


def timed(answer, n_output, n_prompt):
    """An answer, or the event that ends one, has the times that a chat's answer has."""
    t = answer["timings"]
    check(t["predicted_n"] == n_output and t["prompt_n"] + t["cache_n"] == n_prompt and
          t["prompt_ms"] > 0 and t["predicted_ms"] > 0, answer)


def chat_text(s, **fields):
    return s.chat(messages=TALK, **fields)["choices"][0]["message"]


# ---- /v1/messages --------------------------------------------------------------------

def messages(s):
    body = {"model": s.name, "max_tokens": 20, "messages": TALK, "temperature": 0}
    whole = s.post("/v1/messages", body)
    text = chat_text(s, max_tokens=20)["content"]
    check(whole["id"].startswith("msg_") and whole["type"] == "message" and
          whole["role"] == "assistant" and whole["model"] == s.name, whole)
    check(whole["content"] == [{"type": "text", "text": text}], whole, text)
    check((whole["stop_reason"], whole["stop_sequence"]) == ("max_tokens", None), whole)
    n = s.post("/v1/messages/count_tokens", {"model": s.name, "messages": TALK})["input_tokens"]
    usage = whole["usage"]
    check(usage["input_tokens"] + usage["cache_read_input_tokens"] == n > 5 and
          usage["output_tokens"] == 20, usage, n)
    timed(whole, 20, n)

    got = events(s, "/v1/messages", body)
    check([e[0] for e in got if e[0] != "content_block_delta"] ==
          ["message_start", "content_block_start", "content_block_stop", "message_delta",
           "message_stop"], got)
    start = got[0][1]["message"]
    check(start["content"] == [] and start["stop_reason"] is None and
          start["usage"]["input_tokens"] == n, start)
    check("".join(d["delta"]["text"] for name, d in got if name == "content_block_delta") == text,
          got, text)
    check(got[-2][1]["delta"] == {"stop_reason": "max_tokens", "stop_sequence": None} and
          got[-2][1]["usage"]["output_tokens"] == 20, got[-2])
    timed(got[-2][1], 20, n)

    # The stop string that ended it is reported; so is an end without one.
    words = text.split()
    for stream in (False, True):
        stops = {**body, "stop_sequences": ["never this", words[3]]}
        if stream:
            end = events(s, "/v1/messages", stops)[-2][1]["delta"]
        else:
            end = s.post("/v1/messages", stops)
        check((end["stop_reason"], end["stop_sequence"]) == ("stop_sequence", words[3]), end)
    form = {"format": {"type": "json_schema", "schema": {"enum": ["cat", "dog"]}}}
    a = s.post("/v1/messages", {**body, "output_config": form, "max_tokens": 60})
    check(json.loads(a["content"][0]["text"]) in ("cat", "dog") and a["stop_reason"] == "end_turn", a)

    # Blocks and a system's text become a chat's messages.
    blocks = {**body, "system": [{"type": "text", "text": "Be ", "cache_control": {}},
                                 {"type": "text", "text": "kind."}],
              "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello "},
                                                        {"type": "text", "text": "you"}]},
                           {"role": "assistant", "content": "Hi"}, *TALK]}
    same = s.chat(max_tokens=20, messages=[
        {"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello you"},
        {"role": "assistant", "content": "Hi"}, *TALK])["choices"][0]["message"]["content"]
    check(s.post("/v1/messages", blocks)["content"][0]["text"] == same, same)


def message_errors(s):
    body = {"max_tokens": 5, "messages": TALK}
    for fields, status, kind in (({"max_tokens": None}, 400, "invalid_request_error"),
                                 ({"messages": "a"}, 400, "invalid_request_error"),
                                 ({"messages": [{"role": "system", "content": "a"}]}, 400,
                                  "invalid_request_error"),
                                 ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, 400,
                                  "invalid_request_error"),
                                 ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
                                  400, "invalid_request_error"),
                                 ({"tool_choice": "any"}, 400, "invalid_request_error"),
                                 ({"thinking": {"type": "enabled", "budget_tokens": 9}}, 400,
                                  "invalid_request_error"),
                                 ({"n": 2}, 400, "invalid_request_error"),
                                 ({"max_completion_tokens": 2}, 400, "invalid_request_error"),
                                 ({"mcp_servers": [{}]}, 400, "invalid_request_error"),
                                 ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, 400,
                                  "invalid_request_error"),
                                 ({"model": "other"}, 404, "not_found_error")):
        error = s.post("/v1/messages", {**body, **fields}, status)
        check(error["type"] == "error" and error["error"]["type"] == kind, fields, error)
    check(s.post("/v1/messages", {**body, "thinking": {"type": "disabled"},
                                  "metadata": {"user_id": "a"}})["type"] == "message", "disabled")
    error = s.post("/v1/messages/count_tokens", {"messages": 1}, 400)
    check(error["type"] == "error", error)
    status, _, text = s.ask("GET", "/v1/messages")
    check(status == 405 and json.loads(text)["type"] == "error", status, text)


# ---- /v1/responses -------------------------------------------------------------------

def responses(s):
    body = {"model": s.name, "max_output_tokens": 20, "input": TALK[0]["content"], "temperature": 0}
    whole = s.post("/v1/responses", body)
    text = chat_text(s, max_tokens=20)["content"]
    check(whole["id"].startswith("resp_") and whole["object"] == "response", whole)
    item = whole["output"][0]
    check(len(whole["output"]) == 1 and item["type"] == "message" and item["role"] == "assistant", whole)
    check([c["type"] for c in item["content"]] == ["output_text"] and
          item["content"][0]["text"] == text, item, text)
    check(whole["status"] == "incomplete" and
          whole["incomplete_details"] == {"reason": "max_output_tokens"}, whole)
    check(whole["temperature"] == 0 and whole["max_output_tokens"] == 20 and
          whole["tools"] == [] and whole["error"] is None and whole["store"] is False, whole)
    usage = whole["usage"]
    check(usage["output_tokens"] == 20 and
          usage["total_tokens"] == 20 + usage["input_tokens"], usage)
    timed(whole, 20, usage["input_tokens"])

    got = events(s, "/v1/responses", body)
    check([d["sequence_number"] for _, d in got] == list(range(len(got))), got)
    check([n for n, _ in got if n != "response.output_text.delta"] ==
          ["response.created", "response.in_progress", "response.output_item.added",
           "response.content_part.added", "response.output_text.done",
           "response.content_part.done", "response.output_item.done", "response.incomplete"], got)
    check("".join(d["delta"] for n, d in got if n == "response.output_text.delta") == text, got)
    last = got[-1][1]["response"]
    check(last["output"][0]["content"] == item["content"] and
          last["usage"]["output_tokens"] == 20 and last["status"] == "incomplete", last)
    check(last["output"][0] == got[-2][1]["item"], got[-2:])
    timed(last, 20, usage["input_tokens"])

    # Items and instructions become a chat's messages.
    items = {**body, "instructions": "Be kind.", "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Hello "},
                                     {"type": "input_text", "text": "you"}]},
        {"type": "message", "role": "assistant",
         "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}, *TALK]}
    same = s.chat(max_tokens=20, messages=[
        {"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello you"},
        {"role": "assistant", "content": "Hi"}, *TALK])["choices"][0]["message"]["content"]
    check(s.post("/v1/responses", items)["output"][0]["content"][0]["text"] == same, same)
    form = {"format": {"type": "json_schema", "name": "pet", "schema": {"enum": ["cat", "dog"]}}}
    a = s.post("/v1/responses", {**body, "text": form, "max_output_tokens": 60})
    check(json.loads(a["output"][0]["content"][0]["text"]) in ("cat", "dog") and
          a["status"] == "completed" and a["incomplete_details"] is None and a["text"] == form, a)
    for fields in ({"store": True}, {"previous_response_id": "resp_1"}, {"background": True},
                   {"truncation": "auto"}, {"input": 5}, {"input": [{"type": "computer_call"}]},
                   {"input": [{"content": "a"}]}, {"input": [{"type": "function_call"}]},
                   {"tools": [{"type": "web_search"}]}, {"max_tokens": 5},
                   {"tool_choice": {"type": "web_search"}}, {"text": {"verbosity": "low"}}):
        s.post("/v1/responses", {**body, **fields}, 400)
    check(s.post("/v1/responses", {**body, "store": False, "truncation": "disabled",
                                   "include": []})["object"] == "response", "what changes nothing")


# ---- thoughts ------------------------------------------------------------------------

def thoughts(s):
    message = chat_text(s, max_tokens=60, reasoning_budget=8)
    thought, text = message["reasoning_content"], message["content"]
    body = {"max_tokens": 60, "messages": TALK, "temperature": 0,
            "thinking": {"type": "enabled", "budget_tokens": 8}}
    whole = s.post("/v1/messages", body)["content"]
    check([(b["type"], b.get("thinking", b.get("text"))) for b in whole] ==
          [("thinking", thought), ("text", text)], whole, message)
    got = events(s, "/v1/messages", body)
    for kind, want in (("thinking", thought), ("text", text)):
        check("".join(d["delta"].get(kind, "") for n, d in got if n == "content_block_delta") == want,
              got, want)
    check([d["content_block"]["type"] for n, d in got if n == "content_block_start"] ==
          ["thinking", "text"], got)
    off = s.post("/v1/messages", {**body, "thinking": {"type": "disabled"}})["content"]
    check([b["type"] for b in off] == ["text"], off)

    # A response of thoughts alone: there was no budget.
    got = events(s, "/v1/responses", {"input": "Once upon a time", "max_output_tokens": 20,
                                      "temperature": 0})
    streamed = "".join(d["delta"] for n, d in got if n == "response.reasoning_text.delta")
    last = got[-1][1]["response"]
    check(len(streamed) > 20 and [i["type"] for i in last["output"]] == ["reasoning"] and
          last["output"][0]["content"][0]["text"] == streamed, last)
    check(last["usage"]["output_tokens_details"]["reasoning_tokens"] == 20, last)
    whole = s.post("/v1/responses", {"input": "Once upon a time", "max_output_tokens": 20,
                                     "temperature": 0})
    check(whole["output"][0]["content"][0]["text"] == streamed, whole)

    # It comes again with the next turn.
    again = [{"role": "user", "content": "a"}, *whole["output"],
             {"type": "message", "role": "assistant", "content": "b"}, *TALK]
    check(s.post("/v1/responses", {"input": again, "max_output_tokens": 2})["output"], "again")


# ---- tools ---------------------------------------------------------------------------

WEATHER = {"type": "object", "additionalProperties": False, "required": ["city"],
           "properties": {"city": {"enum": ["Oslo", "Rome"]}}}


def tools_of_messages(s):
    body = {"max_tokens": 100, "messages": TALK, "temperature": 0,
            "tools": [{"name": "now", "input_schema": {"type": "object"}},
                      {"name": "weather", "input_schema": WEATHER}],
            "tool_choice": {"type": "tool", "name": "weather"}}
    whole = s.post("/v1/messages", body)
    use = whole["content"][0]
    check(len(whole["content"]) == 1 and use["type"] == "tool_use" and use["name"] == "weather" and
          use["input"]["city"] in ("Oslo", "Rome") and use["id"], whole)
    check(whole["stop_reason"] == "tool_use", whole)
    got = events(s, "/v1/messages", body)
    start = [d for n, d in got if n == "content_block_start"]
    check(len(start) == 1 and start[0]["content_block"]["name"] == "weather" and
          start[0]["content_block"]["input"] == {}, got)
    text = "".join(d["delta"]["partial_json"] for n, d in got if n == "content_block_delta")
    check(json.loads(text) == use["input"], text, use)
    check(got[-2][1]["delta"]["stop_reason"] == "tool_use", got[-2])
    # One that is cut is an object all the same.
    cut = s.post("/v1/messages", {**body, "max_tokens": whole["usage"]["output_tokens"] - 2})
    check(cut["stop_reason"] == "max_tokens" and
          all(b["input"] in ({}, use["input"]) for b in cut["content"] if b["type"] == "tool_use"), cut)
    # The next turn has what the tool answered.
    more = {**body, "tool_choice": {"type": "auto"}, "max_tokens": 5, "messages": [
        *TALK, {"role": "assistant", "content": whole["content"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"],
                                      "content": [{"type": "text", "text": "rain"}]}]}]}
    check(s.post("/v1/messages", more)["content"][0]["type"] == "text", "the next turn")
    more["messages"][-1]["content"][0]["tool_use_id"] = "another"
    s.post("/v1/messages", more, 400)
    check(s.post("/v1/messages/count_tokens", {k: body[k] for k in ("messages", "tools")})
          ["input_tokens"] > s.post("/v1/messages/count_tokens", {"messages": TALK})["input_tokens"],
          "tools are in the prompt")


def tools_of_responses(s):
    body = {"max_output_tokens": 100, "input": TALK[0]["content"], "temperature": 0,
            "tools": [{"type": "function", "name": "now"},
                      {"type": "function", "name": "weather", "parameters": WEATHER, "strict": True}],
            "tool_choice": {"type": "function", "name": "weather"}}
    whole = s.post("/v1/responses", body)
    call = whole["output"][0]
    check(len(whole["output"]) == 1 and call["type"] == "function_call" and
          call["name"] == "weather" and call["call_id"] and call["status"] == "completed" and
          json.loads(call["arguments"])["city"] in ("Oslo", "Rome"), whole)
    check(whole["status"] == "completed" and whole["tools"] == body["tools"], whole)
    got = events(s, "/v1/responses", body)
    check([n for n, _ in got if not n.endswith(".delta")] ==
          ["response.created", "response.in_progress", "response.output_item.added",
           "response.function_call_arguments.done", "response.output_item.done",
           "response.completed"], got)
    text = "".join(d["delta"] for n, d in got if n.endswith("arguments.delta"))
    check(text == call["arguments"] == got[-3][1]["arguments"], text, call)
    last = got[-1][1]["response"]["output"]
    check([(c["name"], c["arguments"]) for c in last] == [("weather", text)] and
          last[0] == got[-2][1]["item"], last)
    again = [*TALK, *whole["output"],
             {"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}]
    check(s.post("/v1/responses", {**body, "input": again, "tool_choice": "auto",
                                   "max_output_tokens": 5})["output"][0]["type"] == "message", "turn")


with open("template", "w") as f:
    f.write(THINKS)
with open("tools", "w") as f:
    f.write(TAGS)
with open("keys", "w") as f:
    f.write("a-key-of-some-length\n")
for options, tests in ((("--chat-template", "zephyr"), (messages, message_errors, responses)),
                       (("--chat-template", "./template"), (thoughts,)),
                       (("--chat-template", "./tools"), (tools_of_messages, tools_of_responses))):
    s = Server(model, "--sequences", "2", "--ctx", "512", "--name", "tiny", *options)
    s.name = "tiny"
    for test in tests:
        test(s)
    check(s.stop() == 0, "stopped with an error", s.said())
s = Server(model, "--ctx", "256", "--chat-template", "zephyr", "--api-key-file", "keys")
body = {"max_tokens": 2, "messages": TALK}
error = s.post("/v1/messages", body, 401, {"X-Api-Key": "another-key-of-some"})
check(error["error"]["type"] == "authentication_error", error)
check(s.post("/v1/messages", body, headers={"X-Api-Key": "a-key-of-some-length"}), "key")
check(s.post("/v1/messages", body, headers={"Authorization": "Bearer a-key-of-some-length"}), "key")
check(s.stop() == 0, "stopped with an error")
