# SPDX-License-Identifier: Apache-2.0
"""The property driver finds what is broken: templates with one fault each, by name and small."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from embed_templates import inline  # noqa: E402

TEMPLATES = ROOT / "kernels" / "templates"
CACHE = os.environ["KILN_PROPERTY_CACHE"]
SMALL = 60  # numbers that a case made small has at most


def run(*args):
    return subprocess.run([str(arg) for arg in args], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=240, check=False)


class Property(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kiln-property-")
        self.addCleanup(folder.cleanup)
        self.tmp = pathlib.Path(folder.name)

    def drive(self, *flags):
        return run(os.environ["PROPERTY"], "--cache", CACHE, "--keep", self.tmp, *flags)

    def break_template(self, op, right, wrong):
        """A copy of an op's template with one place changed."""
        text = inline(TEMPLATES / f"{op}.cu")[0].decode()
        self.assertEqual(text.count(right), 1, right)
        path = self.tmp / f"{op}.cu"
        path.write_text(text.replace(right, wrong))
        return path

    def assert_caught(self, op, right, wrong, message):
        """The fault is found, made small, and the case file fails again, for kiln run too."""
        template = self.break_template(op, right, wrong)

        done = self.drive("--op", op, "--template", template)

        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout, message)
        case = next(self.tmp.glob("*.json"))
        numbers = re.findall(r"-?\d+", json.dumps(json.loads(case.read_text())["args"]))
        self.assertLess(len(numbers), SMALL, done.stdout)
        again = re.search(r"again: kiln (run .*)", done.stdout).group(1).split()
        self.assertIn(str(case), again)
        failing = run(os.environ["KILN"], *again, "--cache", CACHE)
        self.assertEqual(failing.returncode, 1, failing.stdout)
        good = run(os.environ["KILN"], *again[:-2], "--cache", CACHE)
        self.assertEqual(good.returncode, 0, good.stdout)

    def test_request_one_too_many_is_caught(self):
        self.assert_caught("global_topk",
                           "ahead.request < static_cast<unsigned>(args.table_rows)",
                           "ahead.request <= static_cast<unsigned>(args.table_rows)",
                           r"FAILED global_topk: .*reads 4 bytes of block_table")

    def test_position_one_too_far_is_caught(self):
        self.assert_caught("c128a_topk", "live ? complete_records<kCompressRatio>(position,",
                           "live ? complete_records<kCompressRatio>(position + 1,",
                           r"FAILED c128a_topk: .*(expected|undefined)")

    def test_narrowed_window_is_caught(self):
        self.assert_caught("combine_topk_swa",
                           "kImageWidth>(token.position, token.seq_len, in.left, in.right)",
                           "kImageWidth>(token.position, token.seq_len, in.left, in.right - 1)",
                           r"FAILED combine_topk_swa: .*expected")

    def test_report_of_another_column_is_caught(self):
        self.assert_caught("global_topk", "kReasonRequest, row, -1,",
                           "kReasonRequest, row, 0,",
                           r"FAILED global_topk: report\[\d+\]: expected .* row \d+: request "
                           r"out of range: -?\d+, got .* row \d+, column 0: request")

    def test_same_seed_finds_the_same(self):
        template = self.break_template("global_topk", "owned.local < limit",
                                       "owned.local <= limit")
        first = self.drive("--op", "global_topk", "--template", template, "--seed", "5")
        second = self.drive("--op", "global_topk", "--template", template, "--seed", "5")

        self.assertEqual(first.returncode, 1, first.stdout)
        self.assertEqual(first.stdout.splitlines()[:-1], second.stdout.splitlines()[:-1])

    def test_time_ends_a_run(self):
        done = self.drive("--seconds", "2", "--endless", "--seed", "1")

        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"\d+ cases, 0 failed")

    def test_bad_calls_are_refused(self):
        for flags in (["--op", "nothing"], ["--template", "x.cu"], ["--cases", "0"],
                      ["--sanitize", "asan"], ["--what"]):
            with self.subTest(flags):
                self.assertEqual(self.drive(*flags).returncode, 2)


if __name__ == "__main__":
    program = unittest.main(exit=False, argv=[sys.argv[0], "-v"])
    sys.exit(0 if program.result.wasSuccessful() and program.result.testsRun > 0 else 1)
