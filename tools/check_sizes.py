#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files, lines and functions stay small enough to read; docs/architecture.md has the limits.

Functions are found by their braces in the first column, which the format check guarantees.
"""

import re
import sys

from source_files import CODE_SUFFIXES, CUDA_SUFFIXES, blank, is_c, project_files, read, run_check

MAX_FILE_LINES = 700
MAX_PUBLIC_HEADER_LINES = 400
MAX_TEMPLATE_LINES = 300
MAX_COLUMNS = 100
MAX_FUNCTION_LINES = 80
MAX_NESTING = 3
MAX_PARAMETERS = 6  # besides err, which nearly every function has

# Fakes have the prototypes of the library that they stand in for, which pass no context.
FAKE = re.compile(r"tests/support/fake_")

FUNCTION = re.compile(r"^(?P<head>[A-Za-z_][^;{}#]*?\([^;{}]*\))[^;{}()]*\n\{\n(?P<body>.*?)^\}",
                      re.MULTILINE | re.DOTALL)
PROTOTYPE = re.compile(r"^(?P<head>[A-Za-z_][^;{}#=]*\([^;{}]*\))[^;{}()]*;", re.MULTILINE)
CONTROL_OPENS = re.compile(r"(\) |\belse |\bdo |: |^\s*)\{$")
ELSE_AFTER_RETURN = re.compile(r"\b(return\b[^;{}]*|break|continue|goto \w+);\s*\}\s*else\b")
FILE_SCOPE = re.compile(r"^(?:static|extern|_Thread_local)\b[^;(){}]*?(?==|;|\{)", re.MULTILINE)


def check(root):
    files = project_files(root, CODE_SUFFIXES | {".py"})
    faults = []
    for path in files:
        text = read(root, path)
        faults += file_faults(path, text.splitlines())
        if path.suffix != ".py":
            faults += code_faults(path, blank(text))
    return len(files), faults


def max_lines(path):
    if path.parts[:2] == ("include", "kiln"):
        return MAX_PUBLIC_HEADER_LINES
    if path.suffix in CUDA_SUFFIXES:
        return MAX_TEMPLATE_LINES
    return MAX_FILE_LINES


def file_faults(path, lines):
    faults = []
    if len(lines) > max_lines(path):
        faults.append(f"{path}:1: {len(lines)} lines; at most {max_lines(path)}")
    for number, line in enumerate(lines, start=1):
        if len(line) > MAX_COLUMNS:
            faults.append(f"{path}:{number}: {len(line)} columns; at most {MAX_COLUMNS}")
    return faults


def code_faults(path, text):
    faults = []

    def add(offset, message):
        faults.append(f"{path}:{text.count(chr(10), 0, offset) + 1}: {message}")

    for function in FUNCTION.finditer(text):
        body = function["body"]
        start = function.start("body")
        lines = function["head"].count("\n") + body.count("\n") + 3
        name, _ = signature(function["head"])
        if lines > MAX_FUNCTION_LINES:
            add(function.start(), f"{name} has {lines} lines; at most {MAX_FUNCTION_LINES}")
        depth, where = deepest(body)
        if depth > MAX_NESTING:
            add(start + where, f"{name} nests {depth} deep; at most {MAX_NESTING}")
        for match in re.finditer(r"^[ \t]*#[ \t]*if", body, re.MULTILINE):
            add(start + match.start(), f"#if inside {name}; give each platform a function")
    # In CUDA, both arms of an `if constexpr` may return.
    if is_c(path) and not FAKE.match(path.as_posix()):
        for match in ELSE_AFTER_RETURN.finditer(text):
            add(match.end(), "else after a jump; the else is not needed")
        for match in [*FUNCTION.finditer(text), *PROTOTYPE.finditer(text)]:
            name, n = signature(match["head"])
            if n > MAX_PARAMETERS:
                add(match.start(), f"{name} has {n} parameters; at most {MAX_PARAMETERS}")
        for match in FILE_SCOPE.finditer(text):
            if is_mutable(match.group()):
                add(match.start(), f"mutable at file scope: {' '.join(match.group().split())}")
    return faults


def signature(head):
    """(name, number of parameters) of a function's head; `...` and err do not count."""
    head = re.sub(r"\b([A-Z_]+|__attribute__\(?)\([^()]*\)+", "", head).strip()
    depth, at = 0, len(head)
    while at > 0:
        at -= 1
        depth += (head[at] == ")") - (head[at] == "(")
        if depth == 0 and head[at] == "(":
            break
    name = re.search(r"\w*\s*$", head[:at])
    inner = head[at + 1 : -1]
    while re.search(r"\([^()]*\)", inner):
        inner = re.sub(r"\([^()]*\)", "_", inner)
    parameters = [p for p in inner.split(",") if p.strip() not in ("", "void", "...")
                  and not re.search(r"struct kiln_error \*\w+$", p.strip())]
    return name.group().strip() if name else head, len(parameters)


def deepest(body):
    """How deep control blocks nest, and where. An initialiser's braces do not count."""
    kinds = []
    worst, where, offset = 0, 0, 0
    for line in body.splitlines(keepends=True):
        for at, char in enumerate(line):
            if char == "{":
                opens = CONTROL_OPENS.search(line[: at + 1]) and line[at + 1 :].isspace()
                kinds.append(bool(opens))
                if sum(kinds) > worst:
                    worst, where = sum(kinds), offset + at
            elif char == "}" and kinds:
                kinds.pop()
        offset += len(line)
    return worst, where


def is_mutable(declaration):
    """Whether a variable may change: the last thing before its name is not const."""
    if declaration.startswith('extern "') or " inline " in declaration:
        return False
    before_name = re.sub(r"\s*\w+\s*(\[.*)?$", "", declaration, flags=re.DOTALL)
    if re.fullmatch(r"(static|extern)\s+(const\s+)?(struct|enum|union)", before_name):
        return False  # a type
    after_star = before_name.rpartition("*")[2] if "*" in before_name else before_name
    return "const" not in after_star.split()


if __name__ == "__main__":
    sys.exit(run_check("check_sizes", check))
