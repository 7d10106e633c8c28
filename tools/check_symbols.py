#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the built libraries export: static kiln_ and ki_ only, shared kiln_ only.

usage: check_symbols.py LIBRARY...    (.a or .so, told apart by name)
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

FORBIDDEN_IMPORTS = re.compile(
    r"cu[A-Z]\w+|nvrtc[A-Z]\w+|printf|puts|exit|abort|system|getenv|setenv|signal|sigaction"
)
MAY_READ_ENVIRONMENT = "getenv"  # kiln_create does


def symbols(library, *flags):
    """[(name, type)] as nm sees them."""
    command = ["nm", "--format=posix", *flags, str(library)]
    listing = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    rows = [line.split() for line in listing.splitlines()]
    return [(row[0].split("@")[0], row[1]) for row in rows if len(row) >= 2 and len(row[1]) == 1]


def check(library):
    """(number of exported symbols, faults) of one library."""
    shared = ".so" in library.name
    allowed = r"kiln_\w+" if shared else r"(kiln|ki)_\w+"
    dynamic = ["--dynamic"] if shared else []
    exported = symbols(library, "--extern-only", "--defined-only", *dynamic)
    faults = [f"{library.name}: exports {name}; expected {allowed}"
              for name, _ in exported if not re.fullmatch(allowed, name)]
    for name, _ in symbols(library, "--undefined-only", *dynamic):
        if FORBIDDEN_IMPORTS.fullmatch(name) and name != MAY_READ_ENVIRONMENT:
            faults.append(f"{library.name}: needs {name}, which a library must not call or link")
    for name, kind in symbols(library, "--defined-only"):
        if kind in "bB" and not shared:
            faults.append(f"{library.name}: {name} is a variable without a const")
    return len(exported), faults


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", type=Path, nargs="+")
    faults = []
    for library in parser.parse_args(argv).libraries:
        count, found = check(library)
        faults += found
        if count == 0:
            faults.append(f"{library.name}: exports nothing")
        print(f"check_symbols: {library.name}: {count} exported")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
