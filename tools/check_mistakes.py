#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Patterns that were seen once and are not wanted again; each new lesson adds a row."""

import re
import sys

from source_files import CODE_SUFFIXES, blank, is_c, line_of, project_files, read, run_check

C_FILES = r".*\.[ch]"
NOT_IN_TESTS = r"(src|include|tools|examples)/.*\.[ch]"
SOURCES = r".*\.(c|h|cpp|cu|cuh|py|sh|build|yml|yaml|md)|.*/(quickstart|check|run|pre-commit)"
LIBRARY = r"(src|include)/.*\.[ch]"
ITSELF = r"tools/check_mistakes\.py|tests/style/.*"

# (what to look for, in which files, but not in these, why not). In C, comments and the
# insides of literals are not seen.
IN_CODE = (
    (r"\b(malloc|calloc|realloc|free|strdup|strndup|aligned_alloc)\s*\(", LIBRARY,
     r"src/base/mem\.[ch]", "the caller's allocator is base/mem"),
    (r"\b(f?printf|puts|putchar|fputs|perror|vf?printf)\s*\(", LIBRARY, None,
     "a library does not speak; use ki_log"),
    (r"\b(exit|_exit|abort|signal|sigaction|atexit)\s*\(", LIBRARY, None,
     "a library does not leave"),
    (r"\b(secure_)?getenv\s*\(", LIBRARY, r"src/(kiln|options)\.c",
     "the environment is read in kiln_create alone"),
    (r"\b(setenv|unsetenv|putenv|setlocale|uselocale|chdir|umask)\s*\(", LIBRARY, None,
     "a library does not change its process"),
    (r"\b(strcpy|strcat|sprintf|vsprintf|stpcpy|gets|strncpy|strncat)\s*\(", NOT_IN_TESTS, None,
     "no length; use base/text or snprintf"),
    (r"\b(strtok|atoi|atol|atoll|atof|sscanf|scanf|rand|gmtime|localtime|asctime)\s*\(",
     NOT_IN_TESTS, None, "silent about bad input or not thread-safe"),
    (r"\b(system|popen|tmpnam|mktemp|tempnam)\s*\(", LIBRARY + r"|tools/.*\.[ch]", None,
     "a shell or a guessable name"),
    (r"\b(alloca)\s*\(", C_FILES, None, "the stack has no error"),
    (r"\bmmap\s*\(", LIBRARY, None, "a file can change beneath a map; read it whole"),
    (r"ki_hash\w*\s*\([^;]*sizeof\s*\(\s*(struct|\*)", LIBRARY, None,
     "struct memory has padding; hash fields as text"),
    (r"\btypedef\s+struct\b", C_FILES, r"src/run/driver\.h|src/build/nvrtc\.h",
     "structs are spelled struct"),
    (r"\bdlopen\s*\([^;]*RTLD_GLOBAL", C_FILES, None, "RTLD_LOCAL always"),
    (r"\bpthread_(create|atfork)\s*\(", LIBRARY, r"src/warm\.c|src/base/sync\.c",
     "threads start in one place"),
    (r"\bassert\s*\(\s*0\s*\)", C_FILES, None, "say what was expected"),
)
IN_TEXT = (
    (r"\t", r".*\.(c|h|cpp|cu|cuh|py|build|yml|yaml|md)", None, "a tab"),
    (r"[ \t]+$", SOURCES, None, "a blank at the end of a line"),
    (r"\r", SOURCES, None, "a carriage return"),
    (r"\b(TODO|FIXME|XXX|HACK)\b", SOURCES, ITSELF, "finish it, or leave it out"),
    (r"(?<![\w.])/(work|root)/", SOURCES, ITSELF, "a path of one machine"),
    (r"(?<![\w.])/(home)/", SOURCES, r"tests/.*", "a path of one machine"),
    (r"(?i)\b(index.url|find.links|registry ?=|(deb|snapshot)\.debian\.org)",
     SOURCES, ITSELF, "a registry; the machine's own settings name it"),
    (r"(?i)\b(co.authored.by|as requested|per the brief|the user asked)\b", SOURCES, ITSELF,
     "about how the work was made"),
    (r"(?i)\b(issues?|pull request|PR|ticket|bug) ?#\d+", SOURCES, ITSELF,
     "a tracker's number; say what was learnt"),
    (r"#\s*if\s+0\b", r".*\.(c|h|cpp|cu|cuh)", None, "dead code"),
    (r"NOLINT(?!\w*\([\w.,-]+\):? \S)", r".*\.(c|h|cpp|cu|cuh)", None,
     "a suppression names its check and its reason on the same line"),
)
SPDX = "SPDX-License-Identifier: Apache-2.0"
NEEDS_SPDX = re.compile(r".*\.(c|h|cpp|cu|cuh|py|sh)|tools/(quickstart|check)")


def check(root):
    faults = []
    files = project_files(root)
    for path in files:
        own = path.as_posix()
        if not re.fullmatch(SOURCES + r"|" + NEEDS_SPDX.pattern, own):
            continue
        text = read(root, path)
        faults += matches(path, text, IN_TEXT)
        if path.suffix in CODE_SUFFIXES:
            faults += matches(path, blank(text), IN_CODE)
        if path.suffix == ".md":
            faults += dead_links(root, path, text)
        if is_c(path):
            faults += slash_comments(path, text)
        if text and not text.endswith("\n"):
            faults.append(f"{path}:{text.count(chr(10)) + 1}: no newline at the end")
        if NEEDS_SPDX.fullmatch(own) and SPDX not in text[:200]:
            faults.append(f"{path}:1: no {SPDX}")
    return len(files), faults


def matches(path, text, rows):
    own = path.as_posix()
    faults = []
    for pattern, where, but_not, why in rows:
        if not re.fullmatch(where, own) or (but_not and re.fullmatch(but_not, own)):
            continue
        for match in re.finditer(pattern, text, re.MULTILINE):
            shown = match.group().strip() or "blank"
            faults.append(f"{path}:{line_of(text, match.start())}: {shown}: {why}")
    return faults


def dead_links(root, path, text):
    """Links of a page to files that are not there."""
    links = re.finditer(r"\]\((?![a-z]+:|#)(?P<to>[^)#]+)[^)]*\)", text)
    return [f"{path}:{line_of(text, m.start())}: {m['to']}: no such file"
            for m in links if not (root / path.parent / m["to"]).exists()]


def slash_comments(path, text):
    """`//` outside of comments and literals: what somebody forgot to take out."""
    without_stars = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text,
                           flags=re.DOTALL)
    without_literals = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', without_stars)
    return [f"{path}:{line_of(without_literals, m.start())}: // in C; comments that stay are /* */"
            for m in re.finditer(r"//", without_literals)]


if __name__ == "__main__":
    sys.exit(run_check("check_mistakes", check))
