# SPDX-License-Identifier: Apache-2.0
"""What `kiln warm` touches, as the kernel saw it; run where strace is (its path in STRACE)."""

import os
import re
import subprocess

import cli_support
from cli_support import KILN, SMALL, CliTest


class Strace(CliTest):
    def trace_warm(self, which):
        log = self.tmp / "log"
        subprocess.run(
            [os.environ["STRACE"], "-f", "-qq", "-e", f"trace={which}", "-o", log, KILN, "warm",
             *map(str, SMALL), "--arch", "sm_90", "--cache", self.cache],
            env=self.env, check=True, stdout=subprocess.DEVNULL, timeout=300)
        return log.read_text().splitlines()

    def test_warm_starts_no_other_program_field_40(self):
        started = [c for c in self.trace_warm("execve,execveat") if "exec" in c]

        self.assertEqual(len(started), 1, started)
        self.assertIn(f'"{KILN}"', started[0])

    def test_warm_opens_no_driver_and_writes_in_its_cache_alone(self):
        calls = self.trace_warm("%file")

        self.assertEqual([c for c in calls if re.search(r"libcuda\.|/dev/nvidia|\.nv/", c)], [])
        # openat beneath the folder's descriptor names no path from the root
        written = [c for c in calls if re.search(r"O_WRONLY|O_RDWR|O_CREAT|rename|mkdir|unlink", c)
                   and re.search(r'"/', c) and "ENOENT" not in c]
        strangers = [c for c in written if f'"{self.cache}' not in c and '"/dev/null"' not in c
                     and f'"{self.tmp}"' not in c and "EEXIST" not in c]
        self.assertEqual(strangers, [])
        self.assertTrue(any("rename" in c for c in calls))


cli_support.main()
