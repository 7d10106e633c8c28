# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: the real binary, in an empty home of its own."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

KILN = os.environ["KILN"]
DATA = pathlib.Path(os.environ["KILN_TEST_DATA"])
FLASH = str(DATA / "models" / "deepseek-v4-flash.json")
DEPLOYMENT = ("--model", FLASH, "--max-model-len", "1048576", "--max-num-batched-tokens", "8192")
# with short rows, so that compiling is quick
SMALL = ("--model", FLASH, "--max-model-len", "8192", "--max-num-batched-tokens", "2048")


def shown(args):
    """A call as a person would type it, for messages."""
    return "kiln " + " ".join(repr(a) if " " in a or not a else a for a in map(str, args))


class CliTest(unittest.TestCase):
    """Each test has a folder `tmp` and a home `home` that starts empty."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kiln-cli-")
        self.addCleanup(folder.cleanup)
        self.tmp = pathlib.Path(folder.name)
        self.home = self.tmp / "home"
        self.home.mkdir()
        self.cache = str(self.tmp / "cache")
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("KILN_", "XDG_", "LC_", "LANG")) or k == "KILN_NVRTC"}
        self.env["HOME"] = str(self.home)

    def run_kiln(self, *args, env=None, **options):
        options.setdefault("cwd", self.tmp)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.run([KILN, *map(str, args)], env={**self.env, **(env or {})},
                              stdin=subprocess.DEVNULL, timeout=120, check=False, **options)

    def kiln(self, *args, rc=0, env=None):
        """Run, expect an exit status, return standard output."""
        done = self.run_kiln(*args, env=env)
        if done.returncode != rc:
            self.fail(f"{shown(args)}: exit {done.returncode}, expected {rc}\n"
                      f"{done.stdout.decode()}{done.stderr.decode()}")
        return done.stdout.decode()

    def errors(self, *args, rc, env=None):
        """Run, expect an exit status and nothing but error lines on stderr; return those."""
        done = self.run_kiln(*args, env=env)
        lines = done.stderr.decode(errors="replace").splitlines()
        self.assertEqual(done.returncode, rc, f"{shown(args)}: {lines}")
        for line in lines:
            self.assertTrue(line.startswith("kiln: error: "), f"{shown(args)}: {line!r}")
        return lines

    def assert_fails(self, rc, needle, *args, env=None):
        """One line of error that holds the needle."""
        lines = self.errors(*args, rc=rc, env=env)
        self.assertEqual(len(lines), 1, f"{shown(args)}: {lines}")
        self.assertIn(needle, lines[0], shown(args))

    def write(self, name, data):
        """A file in the test's folder: bytes, text, or anything that JSON can hold."""
        path = self.tmp / name
        if isinstance(data, bytes):
            path.write_bytes(data)
        else:
            path.write_text(data if isinstance(data, str) else json.dumps(data))
        return str(path)

    def plan(self, *args):
        return [json.loads(line) for line in self.kiln("plan", *args, "--json").splitlines()]

    def warm(self, *args, rc=0):
        """(compiled, cached, failed) of the last line."""
        last = self.kiln("warm", *args, "--cache", self.cache, rc=rc).splitlines()[-1]
        words = last.split()
        self.assertEqual(last, f"{words[0]} compiled, {words[2]} cached, {words[4]} failed")
        return int(words[0]), int(words[2]), int(words[4])

    def entries(self):
        return sorted(pathlib.Path(self.cache).rglob("*.kiln"))


class WarmCacheTest(CliTest):
    """Each test has a cache of its own that holds SMALL for sm_90; it is compiled once."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="kiln-cli-")
        cls.addClassCleanup(folder.cleanup)
        cls.warmed = pathlib.Path(folder.name) / "cache"
        subprocess.run([KILN, "warm", *SMALL, "--arch", "sm_90", "--cache", cls.warmed],
                       check=True, stdout=subprocess.DEVNULL, timeout=300)

    def setUp(self):
        super().setUp()
        shutil.copytree(self.warmed, self.cache)


def main():
    # a test file without tests is a mistake
    program = unittest.main(exit=False, argv=[sys.argv[0], "-v"])
    sys.exit(0 if program.result.wasSuccessful() and program.result.testsRun > 0 else 1)
