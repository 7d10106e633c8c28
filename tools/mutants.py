# SPDX-License-Identifier: Apache-2.0
"""Finds what can be changed in a kernel template, one small fault at a time.

A mutant is one edit of the text with helpers written in. What is never executed is left
alone: the sample constants, directives and comments. In a static_assert only comparisons
change, which makes each stricter: a shape at the limit then fails to compile.
"""

import re
from dataclasses import dataclass

from embed_templates import inline
from source_files import DEVICE_ONLY, blank, blank_matches

CLASSES = ("comparison", "one", "barrier", "mask", "stride", "test", "store", "update")

SWAPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
COMPARISON = re.compile(r"(?<=\s)(?:[<>]=?|[=!]=)(?=\s)")
PLUS_MINUS_ONE = re.compile(r"(?<=[\w)\]])\s+([+-])\s+1u?\b(?![.\w])")
MINUS_ONE = re.compile(r"(?<![\w)\]]\s)-1\b(?![.\w])")
BARRIER = re.compile(r"\b__sync(?:threads|warp)(?:_\w+)?\([^;]*\)\s*;")
WHOLE_WARP = re.compile(r"(?<=[(,\s])kWholeWarp\b(?!\s*=)")
WARP_OPERATION = re.compile(r"\b__(?:ballot|all|any|shfl\w*|reduce_\w+|match_\w+)_sync\(")
BIT_AND = re.compile(r"\s&\s")
STRIDE = re.compile(r"\bk\w*(?:Stride|Span)\b")
AT_MOST_STRIDE = re.compile(r"\b(k\w+) <= (k\w*(?:Stride|Span))\b")
AT_LEAST_WIDTH = re.compile(r"\b(k\w*(?:Stride|Span)) >= (k\w+)\b")
JUNCTION = re.compile(r"&&|\|\|")
CONDITION = re.compile(r"\b(if|while) \(")
BOOLEAN = re.compile(r"\bconst bool \w+\s*=\s*")
STATEMENT = re.compile(r"[^;{}]+;")
ASSIGNMENT = re.compile(r"(?<=[\w)\]])\s+(?:[+\-*/%&|^]|<<|>>)?=\s+")
LINE = re.compile(r'#line (\d+) "([^"]+)"')
SAMPLES = re.compile(r"^#ifndef KILN_PRELUDE$.*?^#endif$", re.DOTALL | re.MULTILINE)
DIRECTIVE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
STATIC_ASSERT = re.compile(r"\bstatic_assert\(")
STARTS = (" = ", " =\n", "+= ", "-= ", "return ", "return\n", " ? ", " ?\n")
ENDS = (" ? ", " ?\n", "&&", "||")
FUNCTION = re.compile(r"__(?:device|global)__\s[^;{}=]*?\b(?!__launch_bounds__)(\w+)\(")
ARGUMENT_LIST = re.compile(r"(?<=\w)<(?=\S)[^<>;={}()]*>")
OPENS, CLOSES = "([{", ")]}"


@dataclass(frozen=True)
class Mutant:
    kind: str  # one of CLASSES
    file: str  # relative to the folder of templates
    line: int
    function: str  # that the line is in; "-" where it is in none
    text: str  # the line, without its indentation
    what: str  # the change, in words
    begin: int  # in the template's text
    end: int
    becomes: str

    @property
    def place(self):
        """The same for one change of a helper, whichever template includes it."""
        return self.file, self.line, self.what

    @property
    def name(self):
        """Survives edits elsewhere in the file."""
        return self.file, self.function, self.text, self.what

    def applied(self, text):
        return text[: self.begin] + self.becomes + text[self.end :]


class Template:
    """One template's whole text, and its mutants."""

    def __init__(self, path):
        self.name = path.name
        self.text = inline(path)[0].decode()
        self.lines = line_table(path.name, self.text)
        code = blank(self.text)
        for pattern in (SAMPLES, DEVICE_ONLY, DIRECTIVE):
            code = blank_matches(pattern, code)
        self.code = code
        self.flat = without_argument_commas(code)
        self.asserts = [(m.start(), closing(code, m.end() - 1))
                        for m in STATIC_ASSERT.finditer(code)]
        self.functions = [(m.start(), closing(code, code.find("{", m.end())), m[1])
                          for m in FUNCTION.finditer(code)]

    def mutants(self):
        """All of them, in the text's order, each place and change once."""
        found, seen = [], {}
        for finder in (comparisons, ones, barriers, masks, strides, tests, statements):
            for kind, begin, end, becomes, what in finder(self):
                file, line = self.lines[self.text.count("\n", 0, begin)]
                text = self.text.splitlines()[self.text.count("\n", 0, begin)].strip()
                n = seen[file, line, what] = seen.get((file, line, what), 0) + 1
                what = what if n == 1 else f"{what} ({n})"
                where = self.function_at(begin)
                found.append(Mutant(kind, file, line, where, text, what, begin, end, becomes))
        return sorted(found, key=lambda m: (m.begin, CLASSES.index(m.kind), m.what))

    def file_at(self, at):
        return self.lines[self.text.count("\n", 0, at)][0]

    def function_at(self, at):
        names = [name for begin, end, name in self.functions if begin <= at < end]
        return names[-1] if names else "-"

    def in_assert(self, at):
        return any(begin <= at < end for begin, end in self.asserts)


def line_table(name, text):
    """(file, line) of each line of a text with helpers written in."""
    table, file, number = [], name, 0
    for line in text.splitlines():
        found = LINE.match(line)
        number += 1
        table.append((file, number))
        if found:
            file, number = found[2], int(found[1]) - 1
    return table


def without_argument_commas(code):
    """The code, in which no comma stands between a template's arguments; places stay."""
    while True:
        found = ARGUMENT_LIST.search(code)
        if not found:
            return code
        inner = found.group()[1:-1].replace(",", "_")
        code = f"{code[: found.start()]}_{inner}_{code[found.end() :]}"


def closing(code, at):
    """Where the bracket at `at` ends."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] in OPENS) - (code[i] in CLOSES)
        if depth == 0:
            return i
    return len(code)


def one_line(text):
    return " ".join(text.split())


def operand_begin(code, at, stops):
    """Where the operand that ends before `at` begins: behind a stop or an opening bracket."""
    depth = 0
    while at > 0:
        char = code[at - 1]
        depth += (char in CLOSES) - (char in OPENS)
        if depth < 0 or depth == 0 and (
                char in ",;:}" or any(code.endswith(s, 0, at) for s in stops)):
            break
        at -= 1
    return at + len(code[at:]) - len(code[at:].lstrip())


def operand_end(code, at, stops):
    """Where the operand that begins behind `at` ends."""
    depth = 0
    while at < len(code):
        char = code[at]
        depth += (char in OPENS) - (char in CLOSES)
        if depth < 0 or depth == 0 and (char in ",;" or any(code.startswith(s, at) for s in stops)):
            break
        at += 1
    return len(code[:at].rstrip())


# ---- one finder for each class; each gives (class, begin, end, becomes, what)


def comparisons(t):
    for m in COMPARISON.finditer(t.code):
        if not t.code[: m.start()].rstrip().endswith("template"):
            swapped = SWAPPED[m.group()]
            if t.in_assert(m.start()) and swapped in ("<=", ">="):
                continue  # would allow more
            yield "comparison", m.start(), m.end(), swapped, f"{m.group()} becomes {swapped}"


def ones(t):
    for m in PLUS_MINUS_ONE.finditer(t.code):
        if not t.in_assert(m.start()):
            begin = m.start(1)
            yield "one", begin, m.end(), f"{m[1]} 0", f"{m[1]} 1 is dropped"
            yield "one", begin, m.end(), f"{m[1]} 2", f"{m[1]} 1 becomes {m[1]} 2"
    for m in MINUS_ONE.finditer(t.code):
        if not t.in_assert(m.start()):
            yield "one", m.start(), m.end(), "0", "-1 becomes 0"


def barriers(t):
    for m in BARRIER.finditer(t.code):
        yield "barrier", m.start(), m.end(), ";", f"{one_line(m.group())} is removed"


def masks(t):
    for m in WHOLE_WARP.finditer(t.code):
        yield "mask", m.start(), m.end(), "(kWholeWarp >> 1)", "kWholeWarp loses a lane"
    for m in WARP_OPERATION.finditer(t.code):
        end = closing(t.code, m.end() - 1) + 1
        arguments = split_arguments(t.text[m.end() : end - 1])
        yield ("mask", m.start(), end, f"({arguments[1]})",
               f"{m.group()[:-1]} becomes its own lane's {one_line(arguments[1])}")
    for m in BIT_AND.finditer(t.code):
        begin = operand_begin(t.flat, m.start(), (*STARTS, "&&", "||"))
        end = operand_end(t.flat, m.end(), ENDS)
        if not re.search(r"^(const |\w+_t$)", t.code[begin : m.start()]):
            left, right = t.text[begin : m.start()], t.text[m.end() : end]
            yield "mask", begin, end, left, f"& {one_line(right)} is dropped"
            yield "mask", begin, end, right, f"{one_line(left)} & is dropped"


def split_arguments(text):
    parts, depth = [""], 0
    for char in text:
        depth += (char in OPENS) - (char in CLOSES)
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def strides(t):
    """A width in its stride's place, a stride in its width's, one array's in another's."""
    # the template's own assertions say which width belongs to which stride
    pairs = AT_MOST_STRIDE.findall(t.code)
    pairs += [(width, stride) for stride, width in AT_LEAST_WIDTH.findall(t.code)]
    names = sorted({m.group() for m in STRIDE.finditer(t.code) if t.file_at(m.start()) == t.name})
    instead = {}
    for width, stride in pairs:
        instead.setdefault(width, set()).add(stride)
        instead.setdefault(stride, set()).add(width)
    for name in names:
        instead.setdefault(name, set()).update(n for n in names if n != name)
    for m in re.finditer(r"\bk\w+", t.code):
        # a helper's are its parameters
        is_own = t.file_at(m.start()) == t.name and not re.match(r"\s*=[^=]", t.code[m.end() :])
        if is_own and not t.in_assert(m.start()):
            for other in sorted(instead.get(m.group(), ())):
                yield "stride", m.start(), m.end(), other, f"{m.group()} becomes {other}"


def tests(t):
    for m in JUNCTION.finditer(t.code):
        begin = operand_begin(t.flat, m.start(), (*STARTS, "&&", "||"))
        end = operand_end(t.flat, m.end(), ENDS)
        if not t.in_assert(m.start()):
            left, right = t.text[begin : m.start()].rstrip(), t.text[m.end() : end].lstrip()
            yield "test", begin, end, left, f"{m.group()} {one_line(right)} is dropped"
            yield "test", begin, end, right, f"{one_line(left)} {m.group()} is dropped"
    for m in CONDITION.finditer(t.code):
        end = closing(t.code, m.end() - 1)
        yield from constants(t, m.end(), end, ("false",) if m[1] == "while" else ("true", "false"))
    for m in BOOLEAN.finditer(t.code):
        end = operand_end(t.flat, m.end(), ())
        yield from constants(t, m.end(), end, ("true", "false"))
    for m in re.finditer(r"\s\?\s", t.code):
        begin = operand_begin(t.flat, m.start(), STARTS)
        yield from constants(t, begin, m.start(), ("true", "false"))


def constants(t, begin, end, values):
    if not t.in_assert(begin):
        for value in values:
            shown = one_line(t.text[begin:end])
            yield "test", begin, end, value, f"{shown} becomes {value}"


def statements(t):
    """Every assignment and call that stands alone, taken away."""
    for m in STATEMENT.finditer(t.code):
        begin = m.start() + len(m.group()) - len(m.group().lstrip())
        text = t.code[begin : m.end()]
        kind = statement_kind(text)
        if kind and not t.in_assert(begin) and text.count("(") == text.count(")"):
            yield kind, begin, m.end(), ";", f"{one_line(text)} is removed"


def statement_kind(text):
    flat = re.sub(r"\[[^\[\]]*\]", "[]", text)
    assignment = ASSIGNMENT.search(flat)
    if assignment:
        target = flat[: assignment.start()]
        if re.match(r"\*\w|[\w.>-]+\[\]$", target) and " " not in target.split("(")[0]:
            return "store"
        return "update" if re.fullmatch(r"\w+(?:(?:\.|->)\w+|\[\])*", target) else None
    called = re.match(r"(\w+)(?:<[^;=]*>)?\(", flat)
    if called and not called[1].startswith(("__sync", "static_assert")):
        return "store"
    return None
