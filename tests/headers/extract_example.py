# SPDX-License-Identifier: Apache-2.0
"""usage: extract_example.py README.md OUTPUT.c    writes the README's first C block."""

import re
import sys
from pathlib import Path

MAX_LINES = 29

block = re.search(r"^```c\n(.*?)^```$", Path(sys.argv[1]).read_text(), re.DOTALL | re.MULTILINE)
if block is None:
    sys.exit(f"{sys.argv[1]}: no block of C in it")
if block.group(1).count("\n") > MAX_LINES:
    sys.exit(f"{sys.argv[1]}: the example has over {MAX_LINES} lines")
Path(sys.argv[2]).write_text(block.group(1))
