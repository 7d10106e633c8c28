# SPDX-License-Identifier: Apache-2.0
"""What the doctor says of cache folders, which it leaves as they are."""

import ctypes
import json
import os
import pathlib

import cli_support
from cli_support import CliTest

PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2


def obey_modes():
    """Ahead of an exec: root is held to a folder's mode too, as anybody else is."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH) if os.geteuid() == 0 else ():
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


class Folders(CliTest):
    def look(self, cache=None):
        """The one finding of the topic cache."""
        done = self.run_kiln("doctor", "--json", "--cache", cache or self.cache,
                             preexec_fn=obey_modes)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        cache_lines = [x for x in found if x["topic"] == "cache"]
        self.assertEqual(len(cache_lines), 1, cache_lines)
        return cache_lines[0]

    def make_warm(self):
        """The folders that `kiln warm` leaves."""
        for folder in ("", "kiln-v1", "kiln-v1/tmp"):
            (pathlib.Path(self.cache) / folder).mkdir(mode=0o755)

    def set_mode(self, path, mode):
        os.chmod(path, mode)
        self.addCleanup(os.chmod, path, 0o755)

    def test_a_folder_of_its_own_is_ok(self):
        self.make_warm()

        self.assertEqual(self.look()["state"], "ok")

    def test_a_folder_that_can_only_be_read_is_a_note(self):
        self.make_warm()
        for folder in ("kiln-v1/tmp", "kiln-v1", ""):
            self.set_mode(pathlib.Path(self.cache) / folder, 0o555)
        finding = self.look()

        self.assertEqual(finding["state"], "note")
        self.assertIn(f"folder {self.cache}: 0 kernels; cannot be written to: ", finding["text"])
        self.assertIn(f"{self.cache}/kiln-v1", finding["text"])

    def test_a_folder_that_cannot_be_read_is_named_whole(self):
        self.make_warm()
        private = pathlib.Path(self.cache) / "kiln-v1"
        self.set_mode(private, 0)
        finding = self.look()

        self.assertEqual(finding["state"], "fault")
        self.assertIn(f'"{private}" cannot be opened: Permission denied', finding["text"])

    def test_a_missing_folder_is_a_note_and_stays_missing(self):
        for name in ("cache", "a/b/c", "a/b/"):
            finding = self.look(f"{self.tmp}/{name}")

            self.assertEqual(finding["state"], "note")
            self.assertIn("is not there", finding["text"])
        self.assertEqual(list(self.tmp.iterdir()), [self.home])

    def test_nothing_is_made_in_a_folder_or_in_a_home(self):
        os.mkdir(self.cache, 0o755)
        self.assertEqual(self.look()["state"], "ok")
        self.run_kiln("doctor")

        self.assertEqual(os.listdir(self.cache), [])
        self.assertEqual(os.listdir(self.home), [])

    def test_a_missing_folder_that_cannot_be_made_is_a_fault(self):
        self.set_mode(self.tmp, 0o555)
        finding = self.look()

        self.assertEqual(finding["state"], "fault")
        self.assertIn(f'"{self.tmp}" cannot be written to: Permission denied', finding["text"])


cli_support.main()
