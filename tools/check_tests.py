#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every test runs: each is listed, none is switched off, and only the GPU's may be skipped.
docs/field-cases.md has a row for every case: tests that carry its number, or why none can."""

import re
import sys
from pathlib import Path

from source_files import blank, line_of, project_files, read, run_check

MAY_SKIP = re.compile(r"tests/(gpu|support)/")
SKIPS = re.compile(r"\bskip\s*\(|\b(return|exit)\s*\(?\s*77\b|GNU_SKIP|EXIT_SKIP")
SKIPS_IN_PYTHON = re.compile(r"\bunittest\.skip|\bskipTest\s*\(|\bpytest\.(skip|mark\.skip|xfail)"
                             r"|\b(sys\.)?exit\(77\)")
SWITCHED_OFF = re.compile(r"should_fail\s*:\s*true|\bif\s+false\b|\bdisabler\s*\(|subdir_done\s*\(")
CMOCKA_TEST = re.compile(r"\b(cmocka_unit_test\w*|cmocka_run_group_tests\w*)\s*\(")
FIELD_CASES = Path("docs/field-cases.md")
N_FIELD_CASES = 75
FIELD_ROW = re.compile(r"^\| (\d+) \|[^|\n]*\| ([^|\n]*) \|$", re.MULTILINE)
FIELD_TEST = re.compile(r"\b\w*?field((?:_\d+)+)\b")
NOT_SHOWN = "not shown by a test: "
TEST_FUNCTION = re.compile(r"^static void (\w+)\(void \*\*\w+\)\n\{", re.MULTILINE)


def check(root):
    files = [p for p in project_files(root) if p.parts[0] == "tests"]
    sources = [p for p in files if re.fullmatch(r"(test|fuzz)_\w+\.(c|py)|\w+_test\.py", p.name)]
    builds = [p for p in files if p.name == "meson.build"]
    faults = []
    for path in sources:
        faults += listing_faults(root, path) + skip_faults(root, path)
        if path.suffix == ".c" and path.name.startswith("test_"):
            faults += registration_faults(root, path)
    for path in builds:
        faults += build_faults(root, path)
    return len(sources), faults + field_faults(root, files)


def listing_faults(root, path):
    """A test that no meson.build names is a test that nobody runs."""
    for folder in (path.parent, *path.parent.parents):
        build = root / folder / "meson.build"
        if build.is_file() and re.search(rf"\b{re.escape(path.stem)}\b", build.read_text()):
            return []
        if folder == Path("tests"):
            break
    return [f"{path}:1: no meson.build lists it, so it never runs"]


def skip_faults(root, path):
    if MAY_SKIP.match(path.as_posix()):
        return []
    pattern = SKIPS if path.suffix == ".c" else SKIPS_IN_PYTHON
    text = blank(read(root, path)) if path.suffix == ".c" else read(root, path)
    return [f"{path}:{line_of(text, m.start())}: {m.group()}: only tests/gpu may skip; fail instead"
            for m in pattern.finditer(text)]


def registration_faults(root, path):
    """Test functions that no table of the file registers, and files without any."""
    text = blank(read(root, path))
    if not CMOCKA_TEST.search(text):
        return [f"{path}:1: registers no cmocka test"]
    return [f"{path}:{line_of(text, m.start())}: {m.group(1)} is never registered"
            for m in TEST_FUNCTION.finditer(text)
            if len(re.findall(rf"\b{m.group(1)}\b", text)) < 2]


def build_faults(root, path):
    text = re.sub(r"#[^\n]*", "", read(root, path))
    faults = [f"{path}:{line_of(text, m.start())}: {m.group()}: a test that is switched off"
              for m in SWITCHED_OFF.finditer(text)]
    parent = root / path.parent.parent / "meson.build"
    if path.parent != Path("tests") and parent.is_file():
        listed = re.search(rf"['/]{re.escape(path.parent.name)}'|'{path.parent.name}'|foreach",
                           parent.read_text())
        if not listed:
            faults.append(f"{path}:1: no subdir() leads here, so its tests never run")
    return faults


def field_faults(root, files):
    """The table against the tests, both ways."""
    table = read(root, FIELD_CASES) if (root / FIELD_CASES).is_file() else ""
    rows = {}
    faults = []
    for row in FIELD_ROW.finditer(table):
        case, line = int(row[1]), line_of(table, row.start())
        if case in rows or not 1 <= case <= N_FIELD_CASES:
            faults.append(f"{FIELD_CASES}:{line}: a second row for case {case}, or no such case")
        rows[case] = (line, row[2])
    if table:
        faults += [f"{FIELD_CASES}:1: no row for case {case}"
                   for case in range(1, N_FIELD_CASES + 1) if case not in rows]
    tests = field_tests(root, files)
    for case, (line, text) in rows.items():
        faults += [f"{FIELD_CASES}:{line}: case {case}: {fault}"
                   for fault in row_faults(text, tests.get(case, {}))]
    return faults + [f"{path}:1: {name}: {FIELD_CASES} has no row for case {case}"
                     for case, named in tests.items() if case not in rows
                     for name, path in named.items()]


def field_tests(root, files):
    """Case -> name of a test that carries its number -> file. What a macro makes of an op's name
    begins with "_"."""
    tests = {}
    for path in files:
        if path.suffix not in (".c", ".py") or path.parts[:2] == ("tests", "style"):
            continue
        for match in FIELD_TEST.finditer(read(root, path)):
            for case in match[1].strip("_").split("_"):
                tests.setdefault(int(case), {})[match[0]] = path
    return tests


def row_faults(text, tests):
    named = re.findall(r"`(\w*field_\w+)`", text)
    made = tuple(name for name in tests if name.startswith("_"))
    if text.startswith(NOT_SHOWN):
        return [f"{name} shows it" for name in tests]
    if not named:
        return [f'names no test; expected some, or "{NOT_SHOWN}" and why']
    return [f"{name}: no test of that name carries its number" for name in named
            if name not in tests and not (made and name.endswith(made))]


if __name__ == "__main__":
    sys.exit(run_check("check_tests", check))
