# SPDX-License-Identifier: Apache-2.0
"""Installs kiln into a folder and uses it from there, as a packager and a server would."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

MESON = os.environ["MESON"]
SOURCE = Path(os.environ["KILN_SOURCE"])
NOT_RUN = 77  # no driver


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="kiln-installed-")
        cls.work = Path(cls.folder.name)
        root = cls.work / "root"
        cls.run_ok(MESON, "install", "-C", os.environ["KILN_BUILD"], "--no-rebuild", "--quiet",
                   "--destdir", str(root))
        [pc] = root.rglob("kiln.pc")
        os.environ.update(PKG_CONFIG_PATH=str(pc.parent), PKG_CONFIG_SYSROOT_DIR=str(root),
                          LD_LIBRARY_PATH=str(pc.parent.parent),
                          KILN_CACHE_DIR=str(cls.work / "cache"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @staticmethod
    def run_ok(*command):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{command}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def build(self, name):
        """An example, from a copy of its folder and nothing else."""
        source, build = self.work / name, self.work / f"{name}-build"
        shutil.copytree(SOURCE / "examples" / name, source)
        self.run_ok(MESON, "setup", str(build), str(source), "--werror")
        self.run_ok("ninja", "-C", str(build))
        return build / name

    def check_libraries(self, program):
        libraries = self.run_ok("ldd", str(program))
        if "libkiln" in libraries:  # not where kiln is a static library alone
            self.assertRegex(libraries, r"libkiln\.so\.\d+ => " + re.escape(str(self.work)))
        self.assertNotIn("not found", libraries)
        self.assertIsNone(re.search(r"(?i)cuda|nvrtc|nvidia", libraries), libraries)

    def check_run(self, *command):
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertIn(done.returncode, (0, NOT_RUN), done.stdout + done.stderr)
        if done.returncode == NOT_RUN:
            self.assertRegex(done.stderr, "driver|GPU")

    def test_server_embed(self):
        program = self.build("server-embed")
        self.check_libraries(program)
        self.check_run(program, "--model", SOURCE / "tests/models/deepseek-v4-flash.json",
                       "--steps", "20")

    def test_graph_capture(self):
        program = self.build("graph-capture")
        self.check_libraries(program)
        self.check_run(program)

    def test_consumer_in_cxx(self):
        flags = self.run_ok("pkg-config", "--cflags", "--libs", "kiln").split()
        program = self.work / "consumer"
        self.run_ok(os.environ["CXX"], "-std=c++11", SOURCE / "tests/headers/consumer.cpp", "-o",
                    program, *flags)
        self.check_libraries(program)


if __name__ == "__main__":
    unittest.main()
