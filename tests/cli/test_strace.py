# SPDX-License-Identifier: Apache-2.0
"""What `kiln warm` touches, as the kernel saw it; run where strace is (its path in STRACE)."""

import os
import re
import subprocess

import cli_support
from cli_support import KILN, SMALL, CliTest


class Strace(CliTest):
    def test_warm_opens_no_driver_and_writes_in_its_cache_alone(self):
        log = self.tmp / "log"
        subprocess.run(
            [os.environ["STRACE"], "-f", "-qq", "-e", "trace=%file", "-o", log, KILN, "warm",
             *map(str, SMALL), "--arch", "sm_90", "--cache", self.cache],
            env=self.env, check=True, stdout=subprocess.DEVNULL, timeout=300)
        calls = log.read_text().splitlines()

        self.assertEqual([c for c in calls if re.search(r"libcuda\.|/dev/nvidia|\.nv/", c)], [])
        # openat beneath the folder's descriptor names no path from the root
        written = [c for c in calls if re.search(r"O_WRONLY|O_RDWR|O_CREAT|rename|mkdir|unlink", c)
                   and re.search(r'"/', c) and "ENOENT" not in c]
        strangers = [c for c in written if f'"{self.cache}' not in c and '"/dev/null"' not in c
                     and f'"{self.tmp}"' not in c and "EEXIST" not in c]
        self.assertEqual(strangers, [])
        self.assertTrue(any("rename" in c for c in calls))


cli_support.main()
