# SPDX-License-Identifier: Apache-2.0
"""tools/coverage.py names what was not reached: lines, blocks no shape compiles, branches."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import coverage  # noqa: E402

TEMPLATE = """struct pair_t {
    int at[2];
};
constexpr pair_t kPair = {1, 2};
__device__ int pick(int i)
{
    if constexpr (kWide) {
        return kPair.at[i];
    }
    return i;
}
"""


class Templates(unittest.TestCase):
    def report(self, reached):
        """(faults, what is printed) for the template above."""
        folder = tempfile.TemporaryDirectory(prefix="kiln-coverage-")
        self.addCleanup(folder.cleanup)
        (pathlib.Path(folder.name) / "pick.cu").write_text(TEMPLATE)
        out = io.StringIO()
        with mock.patch.object(coverage, "TEMPLATES", pathlib.Path(folder.name)), \
                contextlib.redirect_stdout(out):
            faults = coverage.report_templates({("pick.cu", line): n
                                                for line, n in reached.items()})
        return faults, out.getvalue()

    def test_all_reached_is_no_fault(self):
        faults, text = self.report({5: 3, 8: 1, 10: 2})

        self.assertEqual(faults, 0)
        self.assertRegex(text, r"pick\.cu +3/3 lines\n$")

    def test_line_that_was_never_reached_is_named(self):
        faults, text = self.report({5: 3, 8: 0, 10: 2})

        self.assertEqual(faults, 1)
        self.assertIn("2/3 lines", text)
        self.assertIn("pick.cu:8: never reached", text)

    def test_block_that_no_shape_compiles_is_named(self):
        faults, text = self.report({5: 3, 10: 2})

        self.assertEqual(faults, 1)
        self.assertIn("pick.cu:7: no shape compiles the block up to line 9", text)

    def test_function_that_no_shape_compiles_is_named(self):
        faults, text = self.report({})

        self.assertEqual(faults, 2)
        self.assertIn("pick.cu:6: no shape compiles the block up to line 11", text)


class Emitter(unittest.TestCase):
    def report(self, line, counts, explanations=()):
        """(faults, what is printed) for one line of src/plan/key.c."""
        branches = [{"count": n, "throw": False} for n in counts]
        out = io.StringIO()
        with mock.patch.object(coverage, "EXPLAINED", explanations), \
                contextlib.redirect_stdout(out):
            faults = coverage.report_source(
                "src/plan/key.c", [{"line_number": line, "branches": branches}])
        return faults, out.getvalue()

    def test_branch_that_is_never_taken_is_named(self):
        faults, text = self.report(1, [4, 0])

        self.assertEqual(faults, 1)
        self.assertIn("src/plan/key.c:1: a branch is never taken", text)
        self.assertIn("1/2 branches, 0 explained", text)

    def test_explained_branch_is_no_fault(self):
        faults, text = self.report(1, [4, 0], (("src/plan/key.c", "SPDX", "why"),))

        self.assertEqual(faults, 0)
        self.assertIn("1/2 branches, 1 explained", text)

    def test_explanation_of_nothing_is_a_fault(self):
        faults, text = self.report(1, [4, 1], (("src/plan/key.c", "SPDX", "why"),))

        self.assertEqual(faults, 1)
        self.assertIn("nothing is missed there any more", text)


if __name__ == "__main__":
    program = unittest.main(exit=False, argv=[sys.argv[0], "-v"])
    sys.exit(0 if program.result.wasSuccessful() and program.result.testsRun > 0 else 1)
