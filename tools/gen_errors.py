#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write docs/errors.md from the status table in kiln/status.h; --check only compares."""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r'X\((-?\d+), (KILN_\w+), "([^"]*)"\)')
FAMILIES = ((0, "success"), (-9, "usage"), (-19, "plan"), (-29, "build"), (-39, "store"),
            (-49, "run"), (-59, "system"), (-99, "internal"))
# What a caller does about each; a status without a line here is an error of this script.
WHAT_TO_DO = {
    "KILN_OK": "Go on.",
    "KILN_E_ARGUMENT": "Mend the call; the message names the argument and what was expected.",
    "KILN_E_VERSION": "Build against the kiln that is installed, or install the newer one.",
    "KILN_E_SHAPE": "Mend the shape; the message names the field.",
    "KILN_E_TARGET": "Name a target that this NVRTC knows, such as `sm_90`; "
                     "`kiln doctor` lists them.",
    "KILN_E_UNSUPPORTED": "Fall back to the engine's own kernel, or use a newer kiln.",
    "KILN_E_PARSE": "Mend the file; the message names the field.",
    "KILN_E_NVRTC_MISSING": "Install NVRTC or set `KILN_NVRTC`; the message lists each path tried. "
                            "A cache that is warm needs none.",
    "KILN_E_COMPILE": "Report it with the log and the output of `kiln emit`.",
    "KILN_E_STORE": "Look at the folder's owner, mode and free space; `kiln doctor` says which.",
    "KILN_E_DRIVER_MISSING": "Install NVIDIA's driver, or name a target and only build.",
    "KILN_E_NO_CONTEXT": "Make a context current on this thread first.",
    "KILN_E_DRIVER": "Look at the native code; an earlier launch may have broken the context.",
    "KILN_E_CAPTURING": "Prepare before the capture; nothing was touched.",
    "KILN_E_NOT_READY": "Prepare the kernel at start-up; the message has the shape in words.",
    "KILN_E_LIMIT": "Raise `max_kernels`, or find out who asks for so many shapes.",
    "KILN_E_FORKED": "Create a new kiln in the child, or do not fork after start-up.",
    "KILN_E_CUBIN_REFUSED": "Use an NVRTC that is not newer than the driver; both are named.",
    "KILN_E_BUSY": "Destroy what holds it first: the message counts the graphs.",
    "KILN_E_MEMORY": "Free some.",
    "KILN_E_SYSTEM": "Look at the native code, an errno.",
    "KILN_E_TIMEOUT": "Try again, or raise `build_timeout_ms`.",
    "KILN_E_INTERNAL": "Report it.",
}


def family(value):
    return next(name for least, name in FAMILIES if value >= least)


def page(header):
    rows = [(int(value), name, text) for value, name, text in ROW.findall(header)]
    lines = [
        "# Statuses",
        "",
        "Made by `tools/gen_errors.py` from `KILN_STATUS_TABLE`; a test fails when it is old.",
        "Numbers are pinned: none is ever used again for something else. Every failing call",
        "fills the caller's `struct kiln_error` with a message that names the thing, its value",
        "and what was expected; `origin` says whether `native_code` is NVRTC's, the driver's or",
        "the operating system's.",
        "",
        "| value | name | family | meaning | what to do |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {value} | `{name}` | {family(value)} | {text} | {WHAT_TO_DO[name]} |"
              for value, name, text in rows]
    return "\n".join(lines) + "\n"


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args(argv)
    wanted = page((ROOT / "include/kiln/status.h").read_text())
    target = ROOT / "docs/errors.md"
    if not args.check:
        target.write_text(wanted)
        return 0
    if not target.exists() or target.read_text() != wanted:
        print("docs/errors.md: not what the status table says; run tools/gen_errors.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
