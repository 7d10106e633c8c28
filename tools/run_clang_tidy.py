#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy 14 over what was compiled from src/ and tools/, several files at once.

usage: run_clang_tidy.py BUILD_FOLDER [PART]    PART: only sources whose path holds it
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOOL = "clang-tidy-14"
ROOT = Path(__file__).resolve().parent.parent
GCC_ONLY = re.compile(r"^-(fsanitize=.*|Wno-.*)$")


def sources(database, part):
    """The project's own C sources of a compilation database, each once, in order."""
    own = set()
    for entry in database:
        path = (Path(entry["directory"]) / entry["file"]).resolve()
        inside = any(folder in path.parents for folder in (ROOT / "src", ROOT / "tools"))
        if inside and path.suffix == ".c" and part in str(path):
            own.add(path)
    return sorted(own)


def tidy(folder, path):
    """What clang-tidy says about one file; empty when it is content."""
    done = subprocess.run([TOOL, "--quiet", "-p", str(folder), str(path)],
                          capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("part", nargs="?", default="")
    args = parser.parse_args(argv)
    if shutil.which(TOOL) is None:
        print(f"run_clang_tidy: {TOOL} is not installed; tools/check installs it")
        return 1
    database = json.loads((args.folder / "compile_commands.json").read_text())
    files = sources(database, args.part)
    wanted = {str(path) for path in files}
    slim = {}
    for entry in database:  # each object is compiled for the tests too; once is enough here
        path = str((Path(entry["directory"]) / entry["file"]).resolve())
        if path in wanted:
            words = entry["command"].split(" ")
            entry["command"] = " ".join(word for word in words if not GCC_ONLY.match(word))
            slim.setdefault(path, entry)
    with tempfile.TemporaryDirectory(prefix="kiln-tidy-") as folder:
        (Path(folder) / "compile_commands.json").write_text(json.dumps(list(slim.values())))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            said = [text for text in pool.map(lambda path: tidy(folder, path), files) if text]
    for text in said:
        print(text.replace(f"{ROOT}/", ""))
    print(f"run_clang_tidy: {len(files)} looked at, {len(said)} with faults")
    return 1 if said or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
