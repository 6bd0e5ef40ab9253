# SPDX-License-Identifier: MIT
#
# serve_api.py - what a client of OpenAI's API gets from `bench serve`
import json
import math
import re
import signal
import socket
import sys
import threading
import time

from server import Server, check

model = sys.argv[1]
STORY = ", there was a little girl named Lily. She loved to play"


def text_of(answer, i=0):
    choice = answer["choices"][i]
    return choice["text"] if "text" in choice else choice["message"]["content"]


def joined(events, index=0):
    text = ""
    for e in events:
        for c in e["choices"]:
            if c["index"] == index:
                text += c["text"] if "text" in c else c["delta"].get("content", "")
    return text


def completions(s):
    a = s.complete(max_tokens=20)
    check(text_of(a).startswith(STORY[:30]), "another story:", a)
    check(a["choices"][0]["finish_reason"] == "length", a)
    check(a["usage"]["completion_tokens"] == 20, a)
    check(a["usage"]["total_tokens"] == 20 + a["usage"]["prompt_tokens"], a)
    check(s.complete()["usage"]["completion_tokens"] == 16, "16 tokens unless it says more")

    # Streaming gives the same text, in pieces, whatever else is asked for.
    for fields in ({}, {"logprobs": 2}, {"stop": ["play"]}, {"seed": 3, "temperature": 1}):
        whole = s.complete(max_tokens=30, **fields)
        events = s.stream("/v1/completions", prompt="Once upon a time", max_tokens=30, **fields)
        check(joined(events) == text_of(whole), fields, joined(events), whole)
        ends = [c["finish_reason"] for e in events for c in e["choices"]]
        check(ends[-1] == whole["choices"][0]["finish_reason"] and not any(ends[:-1]), ends)

    # A text, tokens, several of either; n of each.
    ids = [1, 403, 407, 261, 378]
    some = s.complete(prompt=["Once upon a time", "The dog"], n=2, max_tokens=8)
    check([c["index"] for c in some["choices"]] == [0, 1, 2, 3], some)
    check(text_of(some, 0) == text_of(some, 1) != text_of(some, 2), some)
    check(text_of(some, 0) == text_of(s.complete(max_tokens=8)), some)
    check(s.complete(prompt=ids)["usage"]["prompt_tokens"] == 5, "tokens are not encoded")
    both = s.complete(prompt=[ids, ids[:3]], max_tokens=2)
    check(both["usage"]["prompt_tokens"] == 8, both)

    # Stop strings end before themselves, also where they are cut into tokens.
    stopped = s.complete(max_tokens=60, stop=["loved to", "never"])
    check(text_of(stopped) == STORY[:STORY.index("loved")], stopped)
    check(stopped["choices"][0]["finish_reason"] == "stop", stopped)

    # Equal seeds, equal texts; other seeds, others.
    draw = [text_of(s.complete(temperature=1.2, seed=seed, max_tokens=30)) for seed in (7, 7, 8)]
    check(draw[0] == draw[1] != draw[2], "seeds:", draw)
    free = {text_of(s.complete(temperature=1.5, max_tokens=30)) for _ in range(3)}
    check(len(free) > 1, "without a seed all texts are equal:", free)
    check(text_of(s.complete(temperature=2, top_k=1, max_tokens=9)) ==
          text_of(s.complete(temperature=2, min_p=1, max_tokens=9)) ==
          text_of(s.complete(max_tokens=9)), "one token is left, and it is not the likeliest")

    # Log-probabilities: of all tokens they sum to one; the likeliest is taken.
    a = s.complete(max_tokens=6, logprobs=20)["choices"][0]["logprobs"]
    check(len(a["tokens"]) == len(a["token_logprobs"]) == len(a["top_logprobs"]) == 6, a)
    for each, top in zip(a["token_logprobs"], a["top_logprobs"]):
        check(math.isclose(each, max(top.values()), abs_tol=1e-4), each, top)
        check(0.5 < sum(math.exp(v) for v in top.values()) < 1.0001, top)
    check("".join(a["tokens"]) == text_of(s.complete(max_tokens=6)), a)
    check(a["text_offset"][1] == len(a["tokens"][0]), a)

    # They are the same in a stream, and where a stop string holds the text back.
    fields = {"max_tokens": 12, "logprobs": 1}
    a = s.complete(**fields)["choices"][0]["logprobs"]
    fields["stop"] = [STORY[3:14] + "#"]
    check(s.complete(**fields)["choices"][0]["logprobs"] == a, "other log-probabilities")
    events = s.stream("/v1/completions", prompt="Once upon a time", **fields)
    for key in a:
        check(sum((e["choices"][0]["logprobs"][key] for e in events), []) == a[key], key, a, events)

    # A bias forbids a token, or leaves nothing else.
    first = s.complete(max_tokens=1, logprobs=0)["choices"][0]["logprobs"]["tokens"]
    other = s.complete(max_tokens=1, logit_bias={"410": 100})
    check(text_of(other) != first[0] and text_of(other), other)
    again = s.complete(max_tokens=40, frequency_penalty=2, presence_penalty=2)
    check(text_of(again) != text_of(s.complete(max_tokens=40)), "penalties change nothing")
    check(s.complete(max_tokens=400, ignore_eos=True)["usage"]["completion_tokens"] == 400,
          "ignore_eos ends")


def chats(s):
    a = s.chat(max_tokens=20)
    check(a["object"] == "chat.completion" and a["choices"][0]["message"]["role"] == "assistant", a)
    events = s.stream("/v1/chat/completions", messages=[{"role": "user", "content": [
        {"type": "text", "text": "Once upon a time"}, {"type": "text", "text": ", Lily"}]}],
        max_completion_tokens=20, stream_options={"include_usage": True})
    check(joined(events) == text_of(a), joined(events), a)
    check(events[0]["choices"][0]["delta"]["role"] == "assistant", events[0])
    check(events[-1]["choices"] == [] and events[-1]["usage"]["completion_tokens"] == 20, events)
    check(all(e["usage"] is None for e in events[:-1]), events)

    told = s.chat(max_tokens=20, messages=[{"role": "developer", "content": "Tell"},
                                           {"role": "system", "content": "a story"},
                                           {"role": "user", "content": "Once upon a time, Lily"}])
    check(told["usage"]["prompt_tokens"] > a["usage"]["prompt_tokens"], told)
    top = s.chat(max_tokens=4, logprobs=True, top_logprobs=3)["choices"][0]["logprobs"]["content"]
    check(len(top) == 4 and all(len(t["top_logprobs"]) == 3 for t in top), top)
    check(all(bytes(t["bytes"]).decode() == t["token"] for t in top), top)

    # A second turn computes its own tokens only.
    talk = [{"role": "user", "content": "Once upon a time there was a dog. " * 8}]
    first = s.chat(messages=talk, max_tokens=30)
    talk += [{"role": "assistant", "content": text_of(first)}, {"role": "user", "content": "And?"}]
    second = s.chat(messages=talk, max_tokens=5)["usage"]
    check(second["prompt_tokens_details"]["cached_tokens"] > first["usage"]["prompt_tokens"] * 0.9,
          first["usage"], second)


def templates(s):
    """The prompt of a chat, without an answer; variables and tools reach the template."""
    def prompt(status=200, **body):
        got, _, text = s.ask("POST", "/apply-template", body)
        check(got == status, got, text)
        return json.loads(text)
    talk = [{"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    check(prompt(messages=talk)["prompt"] == "<|system|>\nBe brief.</s>\n<|user|>\nab</s>\n<|assistant|>\n", "zephyr")
    talk += [{"role": "assistant", "content": "c"}]
    check(prompt(messages=talk, add_generation_prompt=False)["prompt"].endswith("<|assistant|>\nc</s>\n"), "no answer")
    check("chat_template_kwargs" in prompt(400, messages=talk, chat_template_kwargs=[1])["error"]["message"], "kwargs")
    check("'rag'" in prompt(400, messages=talk, chat_template="rag")["error"]["message"], "no such template")
    check("not run" in prompt(400, messages=talk, chat_template="{{ 1 }}")["error"]["message"], "a program")
    check("role" in prompt(400, messages=[{"role": "x", "content": ""}])["error"]["message"], "role")
    check(s.ask("GET", "/apply-template")[0] == 405, "GET")


def tokens(s):
    """Texts as tokens and back, as llama.cpp's server has it."""
    def post(path, status=200, **body):
        return s.post(path, body, status)
    text = "Once upon a time"
    ids = post("/tokenize", content=text)["tokens"]
    check(ids == [403, 407, 261, 378], ids)
    check(post("/tokenize", content=text, add_special=True)["tokens"] == [1] + ids, "BOS")
    check(post("/detokenize", tokens=ids)["content"].lstrip() == text, ids)
    check(post("/tokenize", content="")["tokens"] == [], "an empty text")
    # Control tokens that are spelled are found, unless that is switched off.
    check(post("/tokenize", content="</s>")["tokens"][-1] == 2, "a control token")
    check(2 not in post("/tokenize", content="</s>", parse_special=False)["tokens"], "a text")
    check(post("/detokenize", tokens=[1, 403])["content"].startswith("<s>"), "spelled")
    # Pieces are texts, and bytes where a token is a part of a character.
    pieces = post("/tokenize", content="a\u20ac", with_pieces=True)["tokens"]
    whole = b"".join(bytes(p["piece"]) if isinstance(p["piece"], list) else p["piece"].encode()
                     for p in pieces)
    check(whole.decode().lstrip() == "a\u20ac", pieces)
    check([p["id"] for p in pieces] == post("/tokenize", content="a\u20ac")["tokens"], pieces)
    check(post("/detokenize", tokens=[p["id"] for p in pieces])["content"].lstrip() == "a\u20ac", pieces)
    for path, body, param in (("/tokenize", {}, "content"), ("/tokenize", {"content": 1}, "content"),
                              ("/tokenize", {"content": [1, 2]}, "content"),
                              ("/tokenize", {"content": ["a", "b"]}, "content"),
                              ("/tokenize", {"content": "a", "tokens": [1]}, "tokens"),
                              ("/tokenize", {"content": "a", "add_special": 1}, "add_special"),
                              ("/tokenize", {"content": "a " * 300000}, "content"),
                              ("/detokenize", {"tokens": "a"}, "tokens"),
                              ("/detokenize", {"tokens": [[1], [2]]}, "tokens"),
                              ("/detokenize", {"tokens": [512]}, "tokens")):
        check(post(path, 400, **body)["error"]["param"] == param, path, str(body)[:80])
    post("/tokenize", 404, content="a", model="x")


def structured(s):
    a = s.chat(max_tokens=300, response_format={"type": "json_object"})
    if a["choices"][0]["finish_reason"] == "stop":
        check(isinstance(json.loads(text_of(a)), dict), a)
    schema = {"type": "object", "additionalProperties": False, "required": ["name", "age", "kind"],
              "properties": {"name": {"type": "string", "maxLength": 8},
                             "age": {"type": "integer", "minimum": 0, "maximum": 99},
                             "kind": {"enum": ["cat", "dog"]}}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
    for seed in range(3):
        a = s.chat(max_tokens=300, response_format=form, temperature=1, seed=seed)
        check(a["choices"][0]["finish_reason"] == "stop", a)
        got = json.loads(text_of(a))
        check(list(got) == ["name", "age", "kind"] and len(got["name"]) <= 8 and
              0 <= got["age"] <= 99 and got["kind"] in ("cat", "dog"), got)
    schema["properties"]["age"]["not"] = {}
    check("'not'" in s.chat(400, response_format=form)["error"]["message"], "not")


def refusals(s):
    for fields in ({"temperature": 3}, {"temperature": "1"}, {"top_p": 0}, {"n": 0}, {"n": 1000},
                   {"max_tokens": 0}, {"stop": ""}, {"stop": ["a"] * 17}, {"logprobs": 21},
                   {"logit_bias": {"x": 1}}, {"logit_bias": {"512": 1}}, {"seed": "a"},
                   {"prompt": None}, {"prompt": []}, {"prompt": [1, "a"]}, {"prompt": [-1]},
                   {"prompt": {}}, {"stream": 1}, {"suffix": "x"}, {"echo": True},
                   {"best_of": 2}, {"response_format": {"type": "xml"}},
                   {"stream_options": {"include_usage": True}}, {"prompt": "a " * 1000}):
        s.complete(400, **fields)
    for fields in ({"messages": []}, {"messages": "x"}, {"tools": [{"type": "function"}]},
                   {"messages": [{"role": "tool", "content": "x"}]},
                   {"messages": [{"role": "assistant", "content": "x"}]},
                   {"messages": [{"role": "user", "content": "x"}, {"role": "system", "content": ""}]},
                   {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
                   {"messages": [{"role": "user"}]}, {"modalities": ["audio"]},
                   {"top_logprobs": 2}, {"messages": [{"role": "user", "content": "a\0b"}]}):
        s.chat(400, **fields)
    check(s.complete(400, prompt="a " * 1000)["error"]["code"] == "context_length_exceeded", "code")
    check(s.complete(404, model="x")["error"]["code"] == "model_not_found", "code")
    s.complete(user="me", metadata={}, service_tier="auto", store=False, mirostat=0, unknown=None)
    for field in ({"n_predict": 3}, {"mirostat": 2}, {"typical_p": 0.5}, {"temprature": 0}):
        check(s.complete(400, **field)["error"]["param"] in field, field)
    s.chat(tools=[], tool_choice="none", parallel_tool_calls=True)
    for body in ("", "{", "[]", "null", "{\"prompt\": \"a\"} x", "[" * 5000, b"{\"prompt\": \"\xc3\"}",
                 "{\"prompt\": \"a\", \"prompt\": \"b\"}", "{\"prompt\": 1e999}",
                 "{\"prompt\": [" + "1," * 300000 + "1]}"):
        s.post("/v1/completions", body, 400)
    s.post("/v1/completions", "x" * 3000000, 413)
    s.post("/v1/completions", "{}", 415, {"Content-Type": "text/plain"})
    for method, path, status in (("GET", "/", 404), ("GET", "/v1/chat/completions", 405),
                                 ("DELETE", "/v1/models", 405), ("POST", "/v1/embeddings", 404)):
        got, _, text = s.ask(method, path, "{}" if method == "POST" else None)
        check(got == status and json.loads(text)["error"]["message"], method, path, got, text)
    got, _, text = s.ask("GET", "/health", headers={"Host": "evil.example"})
    check(got == 403, "another site's name is taken:", text)


def aborted(s):
    """A client that leaves: its completion ends, whether it is read as a stream or not."""
    before = s.metrics()["slm_requests_cancelled_total"]
    for stream in (True, False):
        c = socket.create_connection((s.host, s.port))
        body = json.dumps({"prompt": "a", "max_tokens": 500, "ignore_eos": True, "n": 3,
                           "stream": stream})
        c.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  f"application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        if stream:
            c.recv(100)
        c.close()
    s.wait_idle()
    s.wait_until("requests are forgotten", lambda: s.metrics()["slm_http_requests"] == 1)
    check(s.metrics()["slm_requests_cancelled_total"] >= before, "nothing was cancelled")


def together(s):
    """Several at once say what each says alone."""
    prompts = ["Once upon a time", "The dog", "A boy named Tim", "One day, a bird"]
    alone = [text_of(s.complete(prompt=p, max_tokens=40)) for p in prompts]
    got = [None] * 16

    def one(i):
        got[i] = text_of(s.complete(prompt=prompts[i % 4], max_tokens=40))
    threads = [threading.Thread(target=one, args=(i,)) for i in range(16)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    check(got == alone * 4, "together:", got, "alone:", alone)


def full(s):
    """More requests than there is room for: 429, and when to come again."""
    c = s.connect()
    c.request("POST", "/v1/completions", json.dumps(
        {"prompt": "a", "n": 18, "max_tokens": 500, "ignore_eos": True, "stream": True}),
        {"Content-Type": "application/json"})
    r = c.getresponse()
    r.read(10)
    status, headers, text = s.ask("POST", "/v1/completions", {"prompt": "a", "n": 17})
    check(status == 429 and int(headers["Retry-After"]) >= 1, status, headers, text)
    r.close()
    c.close()
    s.wait_idle()
    check(s.complete(n=2, max_tokens=2)["usage"]["completion_tokens"] == 4, "after 429")
    error = s.complete(400, n=19)["error"]
    check("room for 18" in error["message"] and error["param"] == "n", error)


def check_prometheus(text):
    """Version 0.0.4 of its text: samples follow the type of their family, once each."""
    check(text.endswith("\n"), text[-80:])
    types, seen, buckets = {}, set(), {}
    for line in text.splitlines():
        comment = re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)", line)
        if comment and comment[1] == "TYPE":
            last = comment[2]
            check(last not in types and comment[3] in ("counter", "gauge", "histogram"), line)
            check(comment[3] != "counter" or last.endswith("_total"), line)
            types[last] = comment[3]
        if comment:
            continue
        sample = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-z]+="[^"\\]*",?)+\})? (\S+)', line)
        check(sample, "no sample:", line)
        name, labels, value = sample.groups()
        if types[last] == "histogram":
            check(name in (last + "_bucket", last + "_sum", last + "_count"), line)
        else:
            check(name == last, line)
        check((name, labels) not in seen and math.isfinite(float(value)), line)
        seen.add((name, labels))
        if name.endswith("_bucket"):
            buckets.setdefault(last, []).append((float(labels[5:-2]), float(value)))
        if name.endswith("_count"):
            check(buckets[last][-1] == (math.inf, float(value)), line)
    check(all(b == sorted(b) and [n for _, n in b] == sorted(n for _, n in b)
              for b in buckets.values()) and len(buckets) == 3, buckets)


def metrics(s):
    m = s.metrics()
    status, headers, text = s.ask("GET", "/metrics")
    check(headers["Content-Type"].startswith("text/plain; version=0.0.4"), headers)
    check_prometheus(text)
    check(m['slm_http_replies_total{route="/v1/completions",code="429"}'] == 1, m)
    check(m["slm_time_to_first_token_seconds_count"] > 20, m)
    check(m["slm_time_to_first_token_seconds_count"] ==
          m['slm_time_to_first_token_seconds_bucket{le="+Inf"}'], m)
    check(m["slm_generated_tokens_total"] > 400 and m["process_resident_memory_bytes"] > 1e6, m)
    check(m["slm_requests_running"] == 0, m)
    status, _, text = s.ask("GET", "/v1/models")
    check(json.loads(text)["data"][0]["id"] == "tiny", text)
    check(s.ask("HEAD", "/health")[0] == 200, "HEAD")


def keys():
    with open("keys", "w") as f:
        f.write("# of the test\nabcdefghijklmnop\n")
    with open("template", "w") as f:
        f.write("Q: {{ messages[0].content }}")
    s = Server(model, "--chat-template", "./template", "--api-key-file", "keys", "--cors",
               "https://a.example", "--sequences", "1")
    check("with keys" in s.line, s.line)
    for given in (None, "Bearer abcdefghijklmno", "Bearer abcdefghijklmnopq", "abcdefghijklmnop"):
        status, headers, _ = s.ask("GET", "/v1/models", headers={"Authorization": given} if given else {})
        check(status == 401 and headers["WWW-Authenticate"] == "Bearer", given, status)
    right = {"Authorization": "Bearer abcdefghijklmnop"}
    check(s.ask("GET", "/v1/models", headers={**right, "Host": "x.example"})[0] == 200, "a key is enough")
    a = s.post("/v1/completions", {"prompt": "a", "max_tokens": 3}, 200, right)
    check(a["usage"]["completion_tokens"] == 3, a)
    # a template of a file, which the fence lets through
    prompt = s.post("/apply-template", {"messages": [{"role": "user", "content": "b"}]}, 200, right)
    check(prompt == {"prompt": "Q: b"}, prompt)
    # one sequence, and yet its next request begins with what the last one computed
    story = {"prompt": "Once upon a time there was a dog. " * 8, "max_tokens": 3}
    for again in (False, True):
        usage = s.post("/v1/completions", story, 200, right)["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        check(cached == usage["prompt_tokens"] - 1 if again else cached < 3, again, usage)
    status, headers, _ = s.ask("OPTIONS", "/v1/completions")
    check(status == 204 and headers["Access-Control-Allow-Origin"] == "https://a.example", headers)
    # Clients in a browser send headers of their own.
    wanted = "authorization,content-type,x-stainless-os"
    status, headers, _ = s.ask("OPTIONS", "/v1/chat/completions", headers={
        "Origin": "https://a.example", "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": wanted})
    check(status == 204 and headers["Access-Control-Allow-Headers"] == wanted, headers)
    check("POST" in headers["Access-Control-Allow-Methods"], headers)
    check(headers["Access-Control-Expose-Headers"] == "Retry-After", headers)
    check(s.stop() == 0, "stopped with an error:", s.said())


def few_pages():
    """Less memory than all contexts take: some wait, and nobody's text changes."""
    s = Server(model, "--sequences", "4", "--ctx", "512", "--kv-memory", "1220K")
    check("for all, it would take" in s.line, s.line)
    prompts = ["Once upon a time", "The dog", "A boy named Tim", "One day, a bird"]
    fields = {"max_tokens": 480, "ignore_eos": True}
    alone = [text_of(s.complete(prompt=p, **fields)) for p in prompts]
    both = s.complete(prompt=prompts, **fields)
    check([text_of(both, i) for i in range(4)] == alone, "other texts with few pages")
    check(s.stop() == 0, "stopped with an error:", s.said())


def many_sequences():
    """More than the tokens that a step has by default."""
    s = Server(model, "--sequences", "600", "--ctx", "32", "--any-model")
    check("600 sequences of 32 positions" in s.line, s.line)
    a = s.complete(max_tokens=3, ignore_eos=True, model="gpt-4o")
    check(a["usage"]["completion_tokens"] == 3 and a["model"] == "stories260K-f32", a)
    check(s.stop() == 0, "stopped with an error:", s.said())


def windows():
    """With a window of the KV cache an answer may be longer than the context."""
    s = Server(model, "--sequences", "1", "--ctx", "256", "--kv-window", "64")
    usage = s.complete(max_tokens=400, ignore_eos=True)["usage"]
    check(usage["completion_tokens"] == 400, usage)
    check(s.stop() == 0, "stopped with an error:", s.said())


def stopping():
    """The first signal finishes what runs, the second ends it."""
    for second in (False, True):
        s = Server(model, "--sequences", "2", "--log")
        raw = socket.create_connection((s.host, s.port))
        raw.sendall(b"G\x1b[2JT /\x1b[31m HTTP/1.1\r\nHost: localhost\r\n\r\n")
        raw.recv(4096)
        raw.close()
        c = s.connect()
        c.request("POST", "/v1/completions", json.dumps(
            {"prompt": "a", "max_tokens": 500, "ignore_eos": True, "n": 2, "stream": True}),
            {"Content-Type": "application/json"})
        r = c.getresponse()
        r.read(10)
        s.child.send_signal(signal.SIGTERM)
        if second:
            time.sleep(0.01)
            s.child.send_signal(signal.SIGTERM)
        rest = r.read().decode()
        code = s.child.wait(60)
        whole = rest.endswith("data: [DONE]\n\n")
        check(whole or second, "cut off:", rest[-300:])
        check(code == 0 if whole else code == 130, "exit code", code, s.said())
        check(" POST /v1/completions 200 " in s.said(), s.said())
        check("\x1b" not in s.said(), "a client controls the terminal:", ascii(s.said()))


s = Server(model, "--sequences", "4", "--ctx", "512", "--queue", "16", "--chat-template", "zephyr",
           "--max-body", "2M", "--name", "tiny")
check("Serves tiny on" in s.line and "4 sequences of 512 positions" in s.line, s.line)
check(s.ask("GET", "/health")[0] == 200, "health")
for part in (completions, chats, templates, tokens, structured, refusals, aborted, together, full, metrics):
    part(s)
check(s.stop() == 0, "stopped with an error:", s.said())
check(not s.said(), "not quiet:", s.said())
keys()
few_pages()
many_sequences()
windows()
stopping()
