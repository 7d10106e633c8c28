#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every test runs: each is listed, none is switched off, and only the GPU's may be skipped."""

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
    return len(sources), faults


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


if __name__ == "__main__":
    sys.exit(run_check("check_tests", check))
