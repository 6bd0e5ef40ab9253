#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Chat templates that a generator writes, rendered by Jinja and by the interpreter.

usage: generated_templates.py TEST_JINJA [N [SEED]]

Writes N random templates with the tags, filters, tests and methods that published
templates use, renders each with Jinja as the tools that publish models configure it, and
has TEST_JINJA (tests/engine/jinja) render the same file: texts are equal, and where one
raises an error both do. Exit code 77: there is no Jinja for Python.
"""
import copy, json, os, random, subprocess, sys, tempfile

try:
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    print("skipped: no Jinja for Python (apt-get install python3-jinja2)")
    sys.exit(77)

STRINGS = ["", "a", "Hello, World", " padded \n", "user", "<|im_start|>", "x,y,,z", "10",
           "-3.5", "it's", 'say "hi"', "a\tb", "line1\nline2\r\nline3", "日本語 text",
           "emoji 🙂!", "UPPER lower", "</think>done", "{{ not }}", "a b  c"]
CASES = {
    "full": {
        "messages": [
            {"role": "system", "content": "You are\n helpful. "},
            {"role": "user", "content": "Hi <b>there</b>", "name": "Ann"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"type": "function", "function": {"name": "f", "arguments": {"x": 1, "y": [1.5, None]}}}]},
            {"role": "tool", "content": [{"type": "text", "text": "日🙂"}, {"type": "image"}]},
        ],
        "tools": [{"type": "function", "function": {
            "name": "get", "parameters": {"type": "object", "properties": {
                "b": {"type": "string"}, "a": {"type": "integer"}}}}}],
        "n": 7, "z": 0, "neg": -4, "r": 2.5, "t": True, "f": False, "none_value": None,
        "s": "Some Text", "words": ["b", "a", "C", "b"], "numbers": [3, 1, 2], "empty": [],
        "d": {"k": "v", "other": 2, "list": [1, 2]},
    },
    "plain": {"messages": [{"role": "user", "content": "Hello"}], "n": 1, "z": 0, "neg": -1,
              "r": 0.5, "t": True, "f": False, "none_value": None, "s": "", "words": [],
              "numbers": [], "empty": [], "d": {}},
}


class Writer:
    """One random template. Types keep most expressions meaningful; one in 200 is not."""

    def __init__(self, rng):
        self.rng = rng
        self.loops = 0
        self.names = {"int": ["n", "z", "neg"], "str": ["s"], "list": ["words", "numbers", "empty", "messages"],
                      "dict": ["d", "messages[0]"], "bool": ["t", "f"]}
        self.serial = 0
        self.macros = []

    def one(self, *choices):
        return self.rng.choice(choices)

    def literal(self):
        s = self.rng.choice(STRINGS)
        quote = self.one("'", '"')
        for a, b in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), (quote, "\\" + quote)):
            s = s.replace(a, b)
        return quote + s + quote

    def expr(self, kind, depth=0):
        if self.rng.random() < 1 / 200:
            kind = self.one("int", "str", "list", "dict", "bool", "none")
        if depth > 3:
            return self.leaf(kind)
        return getattr(self, "expr_" + kind)(depth + 1)

    def leaf(self, kind):
        names = self.names.get(kind)
        if names and self.rng.random() < 0.6:
            return self.rng.choice(names)
        return {"int": lambda: str(self.rng.choice([0, 1, 2, 3, 10, 255])), "str": self.literal,
                "list": lambda: self.one("words", "numbers", "[1, 'x']", "[]"), "dict": lambda: "d",
                "bool": lambda: self.one("true", "false", "True"),
                "none": lambda: self.one("none", "none_value", "missing", "missing2")}[kind]()

    def any(self, depth):
        return self.expr(self.one("int", "str", "str", "list", "bool", "dict", "none"), depth)

    def expr_none(self, d):
        return self.leaf("none")

    def expr_int(self, d):
        e = self.expr
        pick = self.rng.randrange(12)
        if pick < 3:
            return self.leaf("int")
        if pick < 5:
            return f"({e('int', d)} {self.one('+', '-', '*')} {e('int', d)})"
        if pick == 5:
            return f"({e('int', d)} {self.one('//', '%')} {self.one('2', '-3', '7', e('int', d))})"
        if pick == 6:
            return f"({self.one(e('list', d), e('str', d))} | length)"
        if pick == 7:
            return f"(-{e('int', d)})"
        if pick == 8:
            return f"({e('str', d)} | int({self.one('', '5')}))"
        if pick == 9:
            return f"({e('int', d)} if {e('bool', d)} else {e('int', d)})"
        if pick == 10:
            return f"({e('str', d)}).{self.one('find', 'count')}({self.literal()})"
        return f"({self.one('numbers', '[4, 2]')} | {self.one('sum', 'max', 'min', 'first', 'last')})"

    def expr_str(self, d):
        e = self.expr
        pick = self.rng.randrange(22)
        if pick < 5:
            return self.leaf("str")
        if pick < 7:
            return f"({e('str', d)} {self.one('+', '~')} {e('str', d)})"
        if pick == 7:
            return f"({e('str', d)} ~ {self.any(d)})"
        if pick == 8:
            return f"({e('str', d)} | {self.one('trim', 'upper', 'lower', 'title', 'capitalize', 'string')})"
        if pick == 9:
            m = self.one("strip", "lstrip", "rstrip", "upper", "lower", "title", "capitalize")
            return f"({e('str', d)}).{m}({self.one('', self.literal()) if 'strip' in m else ''})"
        if pick == 10:
            return f"({e('str', d)}).replace({self.literal()}, {self.literal()}{self.one('', ', 1')})"
        if pick == 11:
            return f"({e('str', d)} | replace({self.literal()}, {self.literal()}))"
        if pick == 12:
            return f"(s ~ {e('str', d)})[{self.slice(d)}]"
        if pick == 13:
            return f"({e('list', d)} | join({self.literal()}))"
        if pick == 14:
            return f"({self.one('messages', 'd', 'messages[0]', self.any(d))} | tojson{self.one('', '', '(indent=2)', '(indent=4)')})"
        if pick == 15:
            return f"({e('str', d)} if {e('bool', d)} else {e('str', d)})"
        if pick == 16:
            return f"({self.any(d)} | default({e('str', d)}{self.one('', ', true', ', boolean=true')}))"
        if pick == 17:
            return f"('%s-%d' % ({self.any(d)}, {e('int', d)} | int))"
        if pick == 18:
            return f"({self.any(d)} | string)"
        if pick == 19:
            return f"({e('str', d)} | indent({self.one('2', '4', 'width=3', '2, true', '4, first=true', 'width=1, first=true')}))"
        if pick == 20:
            return f"(({e('str', d)}).split({self.one('', repr(','), self.literal())}) | join('/'))"
        return f"({e('dict', d)}){self.one('.role', '.content', chr(91) + repr('k') + chr(93), '.get(' + repr('k') + ')', '.get(' + repr('q') + ', 3)')}"

    def expr_list(self, d):
        e = self.expr
        pick = self.rng.randrange(14)
        if pick < 3:
            return self.leaf("list")
        if pick == 3:
            return "[" + ", ".join(self.any(d) for _ in range(self.rng.randrange(4))) + "]"
        if pick == 4:
            return f"({e('list', d)} + {e('list', d)})"
        if pick == 5:
            return f"(words + {e('list', d)})[{self.slice(d)}]"
        if pick == 6:
            return f"(range({self.rng.randrange(6)}{self.one('', ', 5', ', 9, 2')}) | list)"
        if pick == 7:
            return f"({self.one('words', chr(91) + '3, 1, 2' + chr(93))} | {self.one('sort', 'sort(reverse=true)', 'unique', 'reverse')} | list)"
        if pick == 8:
            return f"(messages | map(attribute={self.one(repr('role'), repr('content'), repr('name'))}) | list)"
        if pick == 9:
            op = self.one("'role', 'equalto', 'user'", "'name', 'defined'", "'content'", "'role', 'in', ['user', 'tool']")
            return f"(messages | {self.one('selectattr', 'rejectattr')}({op}) | list)"
        if pick == 10:
            return f"({self.one('words', 'numbers')} | {self.one('select', 'reject')}({self.one(repr('string'), repr('odd'), repr('none'))}) | list)"
        if pick == 11:
            return f"({e('str', d)}).split({self.one(repr(','), repr(' '), self.literal(), '')})"
        if pick == 12:
            return f"({e('dict', d)} | {self.one('items', 'dictsort', 'list')} | list)"
        return f"(words | map({self.one(repr('upper'), repr('length'), repr('trim'))}) | list)"

    def expr_dict(self, d):
        pick = self.rng.randrange(5)
        if pick < 2:
            return self.leaf("dict")
        if pick == 2:
            return "{" + ", ".join(f"{self.literal()}: {self.any(d)}" for _ in range(self.rng.randrange(3))) + "}"
        if pick == 3:
            return f"messages[{self.one('0', '-1', '0', '-1', 'loop.index0' if self.loops else '0', '9')}]"
        return f"dict(a={self.any(d)}, b={self.any(d)})"

    def expr_bool(self, d):
        e = self.expr
        pick = self.rng.randrange(12)
        if pick == 0:
            return self.leaf("bool")
        if pick < 3:
            return f"({e('int', d)} {self.one('<', '<=', '>', '>=', '==', '!=')} {e('int', d)})"
        if pick == 3:
            return f"({e('str', d)} {self.one('==', '!=', '<', 'in', 'not in')} {e('str', d)})"
        if pick == 4:
            return f"({e('bool', d)} {self.one('and', 'or')} {e('bool', d)})"
        if pick == 5:
            return f"(not {self.any(d)})"
        if pick == 6:
            test = self.one("defined", "undefined", "none", "string", "number", "mapping", "iterable", "sequence",
                            "boolean", "true", "false", "integer", "float", "callable")
            return f"({self.any(d)} is {self.one('', 'not ')}{test})"
        if pick == 7:
            return f"({e('int', d)} is {self.one('odd', 'even', 'divisibleby(3)', 'eq(1)', 'gt 2', 'sameas(1)')})"
        if pick == 8:
            return f"({e('str', d)}).{self.one('startswith', 'endswith')}({self.literal()})"
        if pick == 9:
            return f"({e('str', d)} in {e('dict', d)})"
        if pick == 10:
            return f"({e('list', d)} == {e('list', d)})"
        return f"(1 < {e('int', d)} <= 7)"

    def slice(self, d):
        part = lambda: self.one("", "0", "1", "-1", "2", "-2", "99")
        return self.one(part() + ":" + part(), part() + ":" + part() + ":" + self.one("", "-1", "2"))

    def tag(self, text):
        return "{%" + self.one("", "", "-", "-", "+") + f" {text} " + self.one("", "", "-", "-") + "%}"

    def text(self):
        return self.one("", "\n", " ", "  \n", "text", "\n\n", "<|im_end|>\n", " \t", "A b\n  ", "日\n", "#", "{ }")

    def new(self, kind):
        self.serial += 1
        name = f"v{self.serial}"
        return name, kind

    def block(self, depth):
        saved = {k: list(v) for k, v in self.names.items()}
        out = "".join(self.statement(depth) for _ in range(self.rng.randrange(1, 4)))
        self.names = saved
        return out

    def statement(self, depth):
        out = self.text()
        pick = self.rng.randrange(14) if depth < 4 else self.rng.randrange(6)
        if pick < 5:
            kind = self.one("str", "str", "int", "list", "bool", "dict")
            out += "{{" + self.one("", "", "-") + " " + self.expr(kind) + self.one("", "", "", " | e") + " " + self.one("", "", "-") + "}}"
        elif pick == 5:
            out += "{#" + self.one("", "-") + " comment " + self.one("", "-") + "#}" if self.rng.random() < 0.3 else self.text()
        elif pick < 8:
            out += self.tag("if " + self.expr("bool")) + self.block(depth + 1)
            if self.rng.random() < 0.4:
                out += self.tag("elif " + self.expr("bool")) + self.block(depth + 1)
            if self.rng.random() < 0.5:
                out += self.tag("else") + self.block(depth + 1)
            out += self.tag("endif")
        elif pick < 10:
            out += self.loop(depth)
        elif pick == 10:
            kind = self.one("int", "str", "list", "bool", "dict")
            name, kind = self.new(kind)
            out += self.tag(f"set {name} = {self.expr(kind)}")
            self.names[kind].append(name)
        elif pick == 11:
            name, _ = self.new("str")
            out += self.tag(f"set {name}{self.one('', ' | trim', ' | upper')}") + self.block(depth + 1) + self.tag("endset")
            self.names["str"].append(name)
        elif pick == 12:
            name, _ = self.new("int")
            out += (self.tag(f"set {name} = namespace(i=0, s='')") + self.tag(f"for x in {self.expr('list')}")
                    + self.tag(f"set {name}.i = {name}.i + 1") + self.tag(f"set {name}.s = {name}.s ~ x")
                    + self.tag("endfor") + "{{ " + f"{name}.i ~ {name}.s" + " }}")
        else:
            name, _ = self.new("str")
            saved, loops = {k: list(v) for k, v in self.names.items()}, self.loops
            self.names["str"].append("p")
            self.loops = 0
            body = self.statement(depth + 2)
            self.names, self.loops = saved, loops
            call = f"{name}({self.expr('str')}{self.one('', ', q=' + self.expr('int'), ', 4')})"
            out += self.tag(f"macro {name}(p, q={self.expr('int')})") + body + "{{ q }}" + self.tag("endmacro")
            out += "{{ " + call + " }}"
            if self.rng.random() < 0.3:
                out += (self.tag(f"macro {name}c(p)") + "[{{ caller() }}]{{ p }}" + self.tag("endmacro")
                        + self.tag(f"call {name}c({self.expr('str')})") + self.text() + self.tag("endcall"))
        return out

    def loop(self, depth):
        self.serial += 1
        name = f"m{self.serial}"
        how = self.rng.randrange(4)
        saved = {k: list(v) for k, v in self.names.items()}
        if how == 0:
            head = f"for {name} in messages"
            self.names["dict"].append(name)
            self.names["str"].append(name + ".role")
        elif how == 1:
            head = f"for {name}, w{name} in ({self.expr('dict')}).items()"
            self.names["str"].append(name)
        else:
            head = f"for {name} in {self.expr('list')}"
            self.names["str"].append(f"({name} | string)")
        if self.rng.random() < 0.25:
            head += f" if {self.expr('bool')}"
        self.loops += 1
        self.names["int"] += ["loop.index", "loop.index0", "loop.length", "loop.revindex"]
        self.names["bool"] += ["loop.first", "loop.last"]
        body = self.block(depth + 1)
        if self.rng.random() < 0.3:
            body += self.tag(f"if {self.expr('bool')}") + self.tag(self.one("break", "continue")) + self.tag("endif") + self.text()
        if self.rng.random() < 0.2:
            body += "{{ loop.cycle('odd', 'even') }}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}"
        self.loops -= 1
        self.names = saved
        other = self.tag("else") + self.text() if self.rng.random() < 0.2 else ""
        return self.tag(head) + body + other + self.tag("endfor")


def environment():
    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = tojson
    return env


def expected(env, text):
    want = {}
    try:
        template = env.from_string(text)
    except Exception:
        return dict.fromkeys(CASES)
    for name, case in CASES.items():
        try:
            # a copy: indent appends to a list that it is given by mistake
            want[name] = template.render(bos_token="<s>", eos_token="</s>", **copy.deepcopy(case))
        except Exception:
            want[name] = None
    return want


def main():
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    env, templates = environment(), []
    for i in range(n):
        writer = Writer(random.Random(seed * 1000003 + i))
        text = "".join(writer.statement(0) for _ in range(writer.rng.randrange(1, 7)))
        want = expected(env, text)
        if any(w is not None and (" at 0x" in w or "<" in w and " object" in w) for w in want.values()):
            continue  # prints an address
        templates.append({"name": f"seed {seed}, number {i}", "chat_template": text, "bos_token": "<s>",
                          "eos_token": "</s>", "expected": want})
    n_texts = sum(w is not None for t in templates for w in t["expected"].values())
    if n_texts < n // 2:
        sys.exit(f"only {n_texts} texts of {2 * n} renderings: the generator writes mostly errors")
    print(f"{len(templates)} templates, {n_texts} texts, {2 * len(templates) - n_texts} errors; Jinja {jinja2.__version__}")
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "templates.json")
        with open(path, "w") as f:
            json.dump({"now": "2026-01-02T03:04:05", "cases": CASES, "templates": templates}, f)
        sys.exit(subprocess.run([sys.argv[1], path]).returncode != 0)


if __name__ == "__main__":
    main()
