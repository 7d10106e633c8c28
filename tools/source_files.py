# SPDX-License-Identifier: Apache-2.0
"""What the checks share: the project's files, C text with its comments blanked, a report.

A check is a function `check(root)` that returns (number of things looked at, faults), each
fault a "path:line: what is wrong". A check that looked at nothing fails: it is broken.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

C_SUFFIXES = {".c", ".h"}
CUDA_SUFFIXES = {".cu", ".cuh"}
CODE_SUFFIXES = C_SUFFIXES | CUDA_SUFFIXES | {".cpp"}
EMITTED = ("tests", "golden")  # what kiln writes, kept byte for byte
CXX_FOLDER = "simt"  # where kernels run on a CPU; its headers are C++
COMMENT_OR_LITERAL = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL
)

# What only a GPU's compiler sees: nothing on the CPU can tell.
DEVICE_ONLY = re.compile(r"^#if[^\n]*__CUDA_ARCH__.*?^#(?:else|endif)$", re.DOTALL | re.MULTILINE)


def project_files(root, suffixes=None):
    """Every file that belongs to the project, relative to root, in order."""
    names = git_names(root)
    if names is None:
        names = walk_names(root)
    paths = sorted(Path(name) for name in names)
    paths = [p for p in paths if p.parts[:2] != EMITTED]
    return [p for p in paths if (root / p).is_file() and (not suffixes or p.suffix in suffixes)]


def git_names(root):
    """What git knows and what it does not ignore; None outside a repository."""
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
    try:
        listing = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return {name for name in listing.decode().split("\0") if name}


def walk_names(root):
    """A source archive: all files but hidden folders and build folders."""
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [s for s in subfolders if is_source_folder(Path(folder, s))]
        for name in names:
            yield Path(folder, name).relative_to(root).as_posix()


def is_source_folder(folder):
    hidden = folder.name.startswith(".") and folder.name != ".ci"
    return not hidden and folder.name != "__pycache__" and not (folder / "meson-private").exists()


def read(root, path):
    return (root / path).read_bytes().decode("utf-8", errors="replace")


def is_c(path):
    return path.suffix in C_SUFFIXES and path.parts[0] != CXX_FOLDER


def blank(text, keep_literals=False):
    """The text with comments, and literals' insides, turned into spaces; lines stay."""

    def spaces(match):
        found = match.group()
        if found[0] in "\"'":
            return found if keep_literals else found[0] + " " * (len(found) - 2) + found[0]
        return spaces_for(found)

    return COMMENT_OR_LITERAL.sub(spaces, text)


def blank_matches(pattern, text):
    """The text with what the pattern finds turned into spaces; lines stay."""
    return pattern.sub(lambda match: spaces_for(match.group()), text)


def spaces_for(text):
    return re.sub(r"[^\n]", " ", text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def run_check(name, check):
    """The main of a check: looks at --root, prints the faults, gives the exit status."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    looked_at, faults = check(parser.parse_args().root.resolve())
    for fault in faults:
        print(fault)
    print(f"{name}: {looked_at} looked at, {len(faults)} faults")
    if looked_at == 0:
        print(f"{name}: nothing to look at, so nothing was checked")
    return 1 if faults or looked_at == 0 else 0
