# SPDX-License-Identifier: Apache-2.0
"""Thousands of launches make no system call, as the kernel saw it; run where strace is.

usage: test_launch_strace.py STRACE LAUNCH_LOOP
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest


class Strace(unittest.TestCase):
    def test_launches_make_no_system_call(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log")
            # the leak check of the address sanitizer cannot run under another tracer
            subprocess.run([STRACE, "-qq", "-o", log, LOOP], check=True, timeout=120,
                           env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
            calls = log.read_text().splitlines()

        marks = [i for i, call in enumerate(calls) if "write(-1" in call]
        self.assertEqual(len(marks), 2, "the loop's begin and end")
        self.assertGreater(marks[0], 100, "strace saw how the launcher was created")
        self.assertEqual(calls[marks[0] + 1:marks[1]], [])


if __name__ == "__main__":
    STRACE, LOOP = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
