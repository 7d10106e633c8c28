# SPDX-License-Identifier: Apache-2.0
"""tools/mutants.py finds each kind of fault, and tools/mutate.py keeps its list honest."""

import pathlib
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent.parent / "tools"
sys.path.insert(0, str(TOOLS))

import mutate  # noqa: E402
from mutants import Template  # noqa: E402

HELPER = """\
#pragma once

__device__ inline int last_of(int n)
{
    return n > 0 ? n - 1 : -1;
}
"""

TEMPLATE = """\
// a comment with a < b and -1 in it
#ifndef KILN_PRELUDE
constexpr int kWidth = 4;
constexpr int kRowStride = 8;
constexpr int kOtherStride = 8;
#endif
static_assert(kWidth >= 1 && kWidth <= kRowStride, "a < b");
#include "common/helper.cuh"

template <typename int_t>
__device__ inline int_t twice(int_t a)
{
    return a * 2;
}

extern "C" __global__ void kiln_sample(const int *in, int *out, int *other)
{
    __shared__ int counts[kWidth];
    const bool inside = threadIdx.x < limit_of<kWidth, 2> && in != nullptr;
    int sum = 0;
    if (inside) {
        counts[threadIdx.x] = in[blockIdx.x * kRowStride + threadIdx.x];
    }
    __syncthreads();
    while (sum < 3) {
        sum += last_of(counts[0]);
    }
    sum = __shfl_sync(kWholeWarp, sum, 0) & 7;
    *other = twice<int>(sum);
    out[blockIdx.x * kOtherStride] = sum;
}
"""


class Mutants(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kiln-mutants-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "common").mkdir()
        (self.folder / "common" / "helper.cuh").write_text(HELPER)
        self.path = self.folder / "sample.cu"
        self.path.write_text(TEMPLATE)
        self.template = Template(self.path)
        self.mutants = self.template.mutants()

    def changes(self, kind, file="sample.cu"):
        return [m.what for m in self.mutants if m.kind == kind and m.file == file]

    def line_of(self, what):
        found = [m for m in self.mutants if m.what == what]
        self.assertTrue(found, what)
        line = found[0].line
        return line, (self.folder / found[0].file).read_text().splitlines()[line - 1].strip()

    def test_comparisons_are_those_of_code_and_assertions(self):
        self.assertEqual(self.changes("comparison"),
                         [">= becomes >", "<= becomes <", "< becomes <=", "!= becomes ==",
                          "< becomes <="])

    def test_ones_are_found_in_helpers_at_their_own_line(self):
        self.assertEqual(self.changes("one", "common/helper.cuh"),
                         ["- 1 becomes - 2", "- 1 is dropped", "-1 becomes 0"])
        self.assertEqual(self.line_of("-1 becomes 0"), (5, "return n > 0 ? n - 1 : -1;"))

    def test_barriers_are_removed(self):
        self.assertEqual(self.changes("barrier"), ["__syncthreads(); is removed"])
        self.assertEqual(self.line_of("__syncthreads(); is removed"), (24, "__syncthreads();"))

    def test_masks_and_warp_operations_are_weakened(self):
        self.assertEqual(self.changes("mask"),
                         ["& 7 is dropped", "__shfl_sync becomes its own lane's sum",
                          "__shfl_sync(kWholeWarp, sum, 0) & is dropped",
                          "kWholeWarp loses a lane"])

    def test_strides_are_exchanged_with_widths_and_with_each_other(self):
        changes = self.changes("stride")
        for change in ("kRowStride becomes kWidth", "kRowStride becomes kOtherStride",
                       "kWidth becomes kRowStride", "kOtherStride becomes kRowStride"):
            self.assertIn(change, changes)

    def test_tests_lose_each_operand_and_become_constants(self):
        self.assertEqual(self.changes("test"),
                         ["&& in != nullptr is dropped",
                          "threadIdx.x < limit_of<kWidth, 2> && in != nullptr becomes false",
                          "threadIdx.x < limit_of<kWidth, 2> && in != nullptr becomes true",
                          "threadIdx.x < limit_of<kWidth, 2> && is dropped",
                          "inside becomes false", "inside becomes true",
                          "sum < 3 becomes false"])

    def test_stores_and_updates_are_removed(self):
        self.assertEqual(self.changes("store"),
                         ["counts[threadIdx.x] = in[blockIdx.x * kRowStride + threadIdx.x]; "
                          "is removed",
                          "*other = twice<int>(sum); is removed",
                          "out[blockIdx.x * kOtherStride] = sum; is removed"])
        self.assertEqual(self.changes("update"),
                         ["sum += last_of(counts[0]); is removed",
                          "sum = __shfl_sync(kWholeWarp, sum, 0) & 7; is removed"])

    def test_a_mutant_changes_its_own_place_alone(self):
        for mutant in self.mutants:
            changed = mutant.applied(self.template.text)
            self.assertNotEqual(changed, self.template.text, mutant.what)
            self.assertEqual(changed[: mutant.begin], self.template.text[: mutant.begin])
            self.assertTrue(changed.endswith(self.template.text[mutant.end :]))

    def test_mutants_name_the_function_they_are_in(self):
        functions = {m.text: m.function for m in self.mutants}

        self.assertEqual(functions["return n > 0 ? n - 1 : -1;"], "last_of")
        self.assertEqual(functions["__syncthreads();"], "kiln_sample")
        self.assertEqual(
            functions['static_assert(kWidth >= 1 && kWidth <= kRowStride, "a < b");'], "-")

    def test_names_of_mutants_are_unique(self):
        self.assertEqual(len({m.place for m in self.mutants}), len(self.mutants))

    def test_names_survive_lines_put_in_above(self):
        names = {m.name for m in self.mutants}
        self.path.write_text("// one more line\n" + TEMPLATE)

        self.assertEqual({m.name for m in Template(self.path).mutants()}, names)

    def test_sample_has_each_class_of_each_file_once_and_is_the_same_again(self):
        chosen = mutate.sample(self.mutants, 0)

        kinds = [(m.file, m.kind) for m in chosen]
        self.assertEqual(len(kinds), len(set(kinds)))
        self.assertEqual(set(kinds), {(m.file, m.kind) for m in self.mutants})
        self.assertEqual(chosen, mutate.sample(self.mutants, 0))

    def test_sample_of_other_seeds_comes_to_every_mutant(self):
        seen = {m.place for seed in range(500) for m in mutate.sample(self.mutants, seed)}

        self.assertEqual(seen, {m.place for m in self.mutants})


class EquivalentList(unittest.TestCase):
    def read(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            return mutate.read_equivalent(pathlib.Path(file.name))

    def test_entries_are_stanzas_under_comments(self):
        entries = self.read("# about\n\nfile: a.cu\nin: f\nline: a < b;\n"
                            "change: < becomes <=\nwhy: b: never\n")

        self.assertEqual(entries, {("a.cu", "f", "a < b;", "< becomes <="): "b: never"})

    def test_entry_without_a_reason_is_refused(self):
        with self.assertRaisesRegex(mutate.MutationError, "expected the lines file, in"):
            self.read("file: a.cu\nin: f\nline: a < b;\nchange: < becomes <=\n")

    def test_entry_given_twice_is_refused(self):
        entry = "file: a.cu\nin: f\nline: a < b;\nchange: < becomes <=\nwhy: so\n\n"
        with self.assertRaisesRegex(mutate.MutationError, "twice"):
            self.read(entry * 2)

    def test_entry_that_matches_nothing_is_found(self):
        stale = list(mutate.stale_entries({("gone.cu", "f", "x", "y"): "z"}, []))

        self.assertEqual(stale, [("gone.cu", "f", "x", "y")])

    def test_every_entry_of_the_project_is_well_formed(self):
        self.assertGreater(len(mutate.read_equivalent(mutate.EQUIVALENT)), 0)


class Verdicts(unittest.TestCase):
    def verdict(self, stderr, status=1):
        return mutate.verdict(mutate.subprocess.CompletedProcess([], status, "", stderr))

    def test_each_way_to_be_caught_is_told_apart(self):
        cases = {
            "value": "kiln: error: /x/a.json: slots[1][0]: expected 1, got -1",
            "report": "kiln: error: a.json: cpu: global_topk: a.cu:20: divergence: block",
            "endless": "kiln: error: a.json: cpu: step: ended by signal 24 "
                       "(CPU time limit exceeded)",
            "nonsense": "kiln: error: --on cpu: /usr/bin/c++: a.cu:3:1: error: expected ')'",
            "compile": "kiln: error: --on cpu: /usr/bin/c++: a.cu:3:1: error: static assertion",
        }
        for how, text in cases.items():
            with self.subTest(how):
                self.assertEqual(self.verdict(text)[0], how)

    def test_what_says_nothing_about_the_mutant_is_no_kill(self):
        for text in ("", "kiln: error: a.json: cannot be read: No such file",
                     "kiln: error: --on cpu: /usr/bin/c++: c++: fatal error: Killed signal "
                     "terminated program cc1plus"):
            with self.assertRaises(mutate.MutationError):
                self.verdict(text)


if __name__ == "__main__":
    unittest.main()
