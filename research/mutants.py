# SPDX-License-Identifier: MIT
"""mutants.py - small faults in C sources, for research/mutate

A mutant changes one token, negates one condition or removes one statement. Strings,
comments, preprocessor lines, assertions, definitions of types and lengths of arrays stay
as they are, and so do statements that free memory or report a lack of it: no test
of a decision sees these.
"""
import collections
import re

TOKEN = re.compile(r"""
    (?P<skip> ^[ \t]*\#(?:\\\n|[^\n])* | //[^\n]* | /\*.*?\*/ | \n | [ \t\r]+ )
  | (?P<string> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' )
  | (?P<number> \.?[0-9](?:[eEpP][+-]|[\w.])* )
  | (?P<name> [A-Za-z_]\w* )
  | (?P<op> <<=|>>=|->|\+\+|--|&&|\|\||[-+*/%&|^=<>!]=|<<|>>|. )""", re.X | re.M | re.S)
Token = collections.namedtuple("Token", "kind text at")
Mutant = collections.namedtuple("Mutant", "kind at before after")

RELATIONS = {"<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"],
             "==": ["!="], "!=": ["=="]}
SIGNS = {"+": "-", "-": "+", "*": "/", "/": "*", "+=": "-=", "-=": "+=", "++": "--", "--": "++"}
LOGIC = {"&&": "||", "||": "&&"}
WORDS = {"true": "false", "false": "true", "fmin": "fmax", "fmax": "fmin"}
HEADS = ("if", "while", "for", "switch")
OPENING, CLOSING = ("(", "[", "{"), (")", "]", "}")
NO_STATEMENT = {"const", "static", "struct", "enum", "union", "int", "unsigned", "char", "double",
                "float", "bool", "void", "long", "short", "extern", "typedef", "do", "case",
                "default", "else", "assert", "_Static_assert", *HEADS}


def closing(tokens, i):
    """Index of what closes the bracket at i, or None."""
    depth = 0
    for k in range(i, len(tokens)):
        depth += (tokens[k].text in OPENING) - (tokens[k].text in CLOSING)
        if depth == 0:
            return k
    return None


def left_out(tokens):
    """Indices of tokens in assertions and in definitions of types."""
    out = set()
    for i, t in enumerate(tokens):
        begin = None
        if t.text in ("assert", "_Static_assert"):
            begin = i + 1
        elif t.text in ("struct", "union", "enum"):
            begin = next((k for k in (i + 1, i + 2) if k < len(tokens) and tokens[k].text == "{"), None)
        if begin:
            out.update(range(i, (closing(tokens, begin) or begin) + 1))
    return out


def is_value(token):
    return token.kind in ("number", "name") and token.text not in ("return", "case") or \
        token.text in (")", "]")


def is_size(tokens, i):
    """A number in brackets that is an array's length, or in sizeof x[0]: no decision."""
    if i < 3 or tokens[i - 1].text != "[" or tokens[i + 1].text != "]":
        return False
    return tokens[i - 3].text in ("sizeof", "*", ",") or tokens[i - 3].kind == "name"


def numbers(text):
    """What a constant is changed to."""
    if re.fullmatch(r"[0-9]+[uUlL]*", text):
        n, suffix = re.fullmatch(r"([0-9]+)(.*)", text).groups()
        return [f"{k}{suffix}" for k in (int(n) + 1, int(n) - 1) if k >= 0]
    if re.fullmatch(r"0[xX].*", text) or not any(d in text for d in "123456789"):
        return []
    return [f"({text} * 1.1)"]


def statement(tokens, i, depth, heads):
    """Index of the semicolon that ends the statement beginning with token i, or None."""
    first, second, third = ([*tokens[i:i + 3], tokens[i], tokens[i]])[:3]
    label = tokens[i - 1].text == ":" and "case" in (tokens[i - 2].text, tokens[i - 3].text)
    begins = label or tokens[i - 1].text in (";", "{", "}", "else") or i - 1 in heads
    if not depth or not begins or first.text in NO_STATEMENT or first.text.endswith("_t") or \
            (first.kind != "name" and first.text not in ("*", "(", "++", "--")):
        return None
    if first.text not in ("return", "goto") and first.kind == "name" and \
            (second.kind == "name" or second.text == "*" and third.kind == "name"):
        return None  # a declaration
    level = 0
    for k in range(i, len(tokens)):
        level += (tokens[k].text in OPENING) - (tokens[k].text in CLOSING)
        if level < 0:
            return None
        if level == 0 and tokens[k].text == ";":
            is_last = depth == 1 and tokens[k + 1].text == "}"
            words = {t.text for t in tokens[i:k]}
            no_decision = first.text.endswith("free") or "ST_NO_MEMORY" in words
            return None if no_decision or first.text == "return" and is_last else k
    return None


def mutants_of(text):
    """Every mutant of a C source, in its order."""
    tokens = [Token(m.lastgroup, m.group(), m.start()) for m in TOKEN.finditer(text)]
    tokens = [t for t in tokens if t.kind != "skip"]
    out, found, depth, level = left_out(tokens), [], 0, 0
    heads = {closing(tokens, i + 1) for i, t in enumerate(tokens) if t.text in HEADS}

    def add(kind, i, after, last=None):
        end = tokens[i if last is None else last]
        found.append(Mutant(kind, tokens[i].at, text[tokens[i].at:end.at + len(end.text)], after))

    for i, t in enumerate(tokens):
        depth += (t.text == "{") - (t.text == "}")
        level += (t.text == "(") - (t.text == ")")
        if i in out or i == 0 or i + 1 == len(tokens):
            continue
        binary = is_value(tokens[i - 1]) and (t.text != "*" or text[t.at - 1] == text[t.at + 1] == " ")
        for after in RELATIONS.get(t.text, []):
            add("relation", i, after)
        if t.text in SIGNS and (binary or t.text in ("++", "--")):
            add("sign", i, SIGNS[t.text])
        if t.text in LOGIC:
            add("logic", i, LOGIC[t.text])
        if t.text in WORDS:
            add("word", i, WORDS[t.text])
        if t.kind == "number" and not is_size(tokens, i):
            for after in numbers(t.text):
                add("constant", i, after)
        if t.text in ("if", "while") and tokens[i + 1].text == "(":
            end = closing(tokens, i + 1)
            inner = text[tokens[i + 1].at:tokens[end].at + 1]
            add("condition", i, f"{t.text} (!{inner})", end)
        end = None if level else statement(tokens, i, depth, heads)
        if end is not None:
            add("statement", i, ";", end)
    return found
