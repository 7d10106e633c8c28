# SPDX-License-Identifier: Apache-2.0
"""usage: listed_headers.py FOLDER HEADER...    fails unless they are all headers of the folder."""

import sys
from pathlib import Path

folder = Path(sys.argv[1])
there = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.h"))
listed = sorted(sys.argv[2:])
if there != listed:
    sys.exit(f"headers in {sys.argv[1]}: {there}; tested: {listed}")
