# SPDX-License-Identifier: Apache-2.0
"""usage: test_readme_example.py PROGRAM    runs the README's example, with or without a GPU."""

import os
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory(prefix="kiln-example-") as cache:
    done = subprocess.run([sys.argv[1]], capture_output=True, text=True,
                          env={**os.environ, "KILN_CACHE_DIR": cache})
print(done.stdout, done.stderr, sep="")
if done.returncode == 0:
    ok = done.stdout == "slots: 20 21 22 -1\n"
else:
    ok = done.returncode == 1 and done.stderr.startswith("KILN_E_DRIVER_MISSING: ")
sys.exit(0 if ok else f"exit status {done.returncode}; expected the slots, or a missing driver")
