#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""C and CUDA files are as clang-format 14 writes them. `--fix` rewrites those that are not."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from source_files import CODE_SUFFIXES, project_files

VERSION = "14"  # others format differently, so one is pinned


def find_clang_format():
    """The pinned clang-format's path, or None."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path and re.search(rf"version {VERSION}\.", version_of(path)):
            return path
    return None


def version_of(path):
    return subprocess.run([path, "--version"], capture_output=True, text=True).stdout


def faults_of(tool, root, path):
    """The first fault that the tool would mend in one file; empty when there is none."""
    done = subprocess.run([tool, "--style=file", "--dry-run", "--Werror", str(root / path)],
                          capture_output=True, text=True)
    if done.returncode == 0:
        return []
    first = re.search(r":(\d+):\d+: error", done.stderr)
    return [f"{path}:{first.group(1) if first else 1}: not formatted; tools/check_format.py --fix"]


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("files", type=Path, nargs="*", help="default: all")
    args = parser.parse_args(argv)
    tool = find_clang_format()
    if tool is None:
        print(f"check_format: clang-format {VERSION} is not installed; tools/check installs it")
        return 1
    files = args.files or project_files(args.root, CODE_SUFFIXES)
    if args.fix:
        paths = [args.root / path for path in files]
        return subprocess.run([tool, "--style=file", "-i", *paths]).returncode
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = sum(pool.map(lambda path: faults_of(tool, args.root, path), files), [])
    for fault in faults:
        print(fault)
    print(f"check_format: {len(files)} looked at, {len(faults)} faults")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
