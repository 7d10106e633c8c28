#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every public function says who may call it when; no status and no op is undocumented."""

import re
import sys

from source_files import blank, line_of, project_files, read, run_check

DECLARATION = re.compile(r"^KILN_API\b[^;{]*[;{]", re.MULTILINE)
DOC_ABOVE = re.compile(r"/\*\*(?P<doc>(?:(?!\*/).)*)\*/\s*$", re.DOTALL)
NEEDED = ("Threads:", "Capture:", "@return")
INTERNAL = re.compile(r"\bki_\w+|\bKI_\w+")


def check(root):
    headers = [p for p in project_files(root, {".h"}) if p.parts[:2] == ("include", "kiln")]
    faults = []
    declarations = 0
    for path in headers:
        text = read(root, path)
        code = blank(text)
        guard = "_".join(("kiln", *path.parts[2:-1], path.stem, "h")).upper()
        if f"#ifndef {guard}\n#define {guard}\n" not in text:
            faults.append(f"{path}:1: no include guard; expected {guard}")
        if 'extern "C" {' not in text and DECLARATION.search(code):
            faults.append(f'{path}:1: no extern "C"; C++ callers could not link')
        for match in INTERNAL.finditer(code):
            line = line_of(code, match.start())
            faults.append(f"{path}:{line}: {match.group()} is internal, in a public header")
        for match in DECLARATION.finditer(code):
            declarations += 1
            faults += declaration_faults(path, text, match)
    return declarations, faults


def declaration_faults(path, text, match):
    name = re.search(r"(\w+)\s*\(", re.sub(r"\b(KILN_[A-Z_]+|enum|struct)\b", "", match.group()))
    where = f"{path}:{line_of(text, match.start())}: {name.group(1) if name else '?'}"
    above = DOC_ABOVE.search(text, 0, match.start())
    if not above:
        return [f"{where} has no /** */ block right above it"]
    missing = [word for word in NEEDED if word not in above["doc"]]
    return [f"{where}: its comment lacks {', '.join(missing)}"] if missing else []


if __name__ == "__main__":
    sys.exit(run_check("check_headers", check))
