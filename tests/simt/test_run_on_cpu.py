# SPDX-License-Identifier: Apache-2.0
"""kiln run --on cpu: the given cases under every checker, and what it says when it cannot."""

import json
import os
import pathlib
import random
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parent.parent / "tools")]

import cli_support  # noqa: E402
from cli_support import DATA, CliTest  # noqa: E402
from embed_templates import inline  # noqa: E402

CASES = sorted((DATA / "cases").glob("*.json"))
TEMPLATES = DATA.resolve().parent / "kernels" / "templates"


# int32 inputs that may hold anything; what a caller promises (bounds, gathered rows) is not here
WILD = {"topk_indices", "token_indices", "prefill_topk_indices", "decode_swa_indices",
        "decode_compressed_indices", "token_to_req", "req_id", "block_table", "swa_block_table",
        "seq_lens", "replay_start", "decode_compressed_lens", "left_visible", "right_visible",
        "live_tokens", "active_width"}
WILD_VALUES = (-2**31, -2**31 + 1, -1, 2**30, 2**31 - 1, 2**31 - 2, 0x7fc00000, 0x3f800000)


def make_wild(value, draw):
    """Half of the numbers, others."""
    if isinstance(value, list):
        return [make_wild(each, draw) for each in value]
    return draw.choice(WILD_VALUES) if draw.random() < 0.5 else value


class RunOnCpu(CliTest):
    @classmethod
    def setUpClass(cls):
        """One cache for all: what is compiled does not depend on the test."""
        folder = tempfile.TemporaryDirectory(prefix="kiln-cpu-")
        cls.addClassCleanup(folder.cleanup)
        cls.shared_cache = folder.name

    def setUp(self):
        super().setUp()
        self.cache = self.shared_cache

    def run_all(self, *flags):
        text = self.kiln("run", *CASES, "--on", "cpu", "--cache", self.cache, *flags)
        self.assertEqual(text.splitlines()[-1], f"{len(CASES)} passed, 0 failed")

    def test_every_case_passes_kilns_own_checker_in_any_order(self):
        self.assertGreater(len(CASES), 0)
        for seed in range(6):
            with self.subTest(seed):
                self.run_all("--seed", seed)

    def test_every_case_passes_under_each_sanitizer(self):
        for checker in ("address", "thread", "memory", "none"):
            with self.subTest(checker):
                self.run_all("--sanitize", checker)

    def test_every_case_reports_what_the_reference_does(self):
        self.run_all("--checked")

    def test_report_is_written_without_a_fault_under_each_sanitizer(self):
        cases = [path for path in CASES if path.stem.endswith("-000")]
        for checker in ("address", "thread", "memory"):
            with self.subTest(checker):
                text = self.kiln("run", *cases, "--on", "cpu", "--cache", self.cache,
                                 "--sanitize", checker, "--checked")

                self.assertEqual(text.splitlines()[-1], f"{len(cases)} passed, 0 failed")

    def assert_report_differs(self, op, right, wrong, case, message):
        """A changed template computes what it should, and reports something else."""
        text = inline(TEMPLATES / f"{op}.cu")[0].decode()
        self.assertEqual(text.count(right), 1)
        template = self.tmp / "wrong.cu"
        template.write_text(text.replace(right, wrong))
        path = self.write("case.json", case)
        flags = ("--on", "cpu", "--cache", self.cache, "--template", template)

        self.kiln("run", path, *flags)
        lines = self.errors("run", path, *flags, "--checked", rc=1)

        self.assertEqual(lines, [f"kiln: error: {path}: {message}"])

    def test_what_the_reference_does_not_report_fails(self):
        self.assert_report_differs(
            "token_to_req", "\n    kiln_token_to_req(const __grid_constant__ args_t args)\n{",
            "\n    kiln_token_to_req(const __grid_constant__ args_t args)\n{\n"
            "if (kChecked && is_first_thread()) report(args.report, kReasonId, 3, 4, 5);",
            {"op": "token_to_req", "shape": {"pad_req": 0},
             "args": {"query_start_loc": [0, 1], "num_tokens": 1}},
            "report[0]: expected no more, got token_to_req: row 3, column 4: "
            "id that has no page: 5")

    def test_what_a_kernel_does_not_report_fails(self):
        self.assert_report_differs(
            "global_topk", "    if (to == nullptr) {", "    if (reason == kReasonId) {",
            {"op": "global_topk", "shape": {"topk": 2, "block_size": 2, "table_width": 1},
             "args": {"topk_indices": [[0, -7]], "token_to_req": [0], "block_table": [[3]]}},
            "report[0]: expected global_topk: row 0, column 1: id that has no page: -7, "
            "got no more")

    def test_header_that_a_kernel_writes_fails(self):
        self.assert_report_differs(
            "token_to_req", "\n    kiln_token_to_req(const __grid_constant__ args_t args)\n{",
            "\n    kiln_token_to_req(const __grid_constant__ args_t args)\n{\n"
            "if (kChecked && args.report != nullptr && is_first_thread()) "
            "args.report->capacity = 9;",
            {"op": "token_to_req", "shape": {"pad_req": 0},
             "args": {"query_start_loc": [0, 1], "num_tokens": 1}},
            "report: expected capacity 16, reserved 0, got 9, 0")

    def test_no_row_keeps_what_an_earlier_step_left_field_2(self):
        """Outputs are poison before the launch, null where they still are."""
        n_rows = 0
        lines = self.kiln("run", *CASES, "--on", "cpu", "--json", "--cache", self.cache)
        for path, line in zip(CASES, lines.splitlines(), strict=True):
            width = json.loads(path.read_text())["args"].get("active_width")
            for name, rows in json.loads(line)["outputs"].items():
                if width is not None and name.endswith(("decode_slots", "prefill_local")):
                    rows = [row[:max(width, 0)] for row in rows]
                rows = [row if isinstance(row, list) else [row] for row in rows]
                n_rows += len(rows[1:])
                stale = [i for i, row in enumerate(rows) if None in row]
                self.assertEqual(stale, [], f"{path.name}: {name}")
        self.assertGreater(n_rows, 1000)

    def test_no_address_is_formed_of_wild_numbers_field_26(self):
        """Ids, requests, pages and lengths of any value: nothing but the arrays is touched, and
        each result is the reference's."""
        draw = random.Random(26)
        paths = []
        for path in CASES:
            case = json.loads(path.read_text())
            if not re.search(r"-100-00[0-3]$", path.stem) or not WILD & set(case["args"]):
                continue
            case.pop("expect")
            for name in sorted(WILD & set(case["args"])):
                case["args"][name] = make_wild(case["args"][name], draw)
            file = self.write(path.name, case)
            case["expect"] = json.loads(self.kiln("run", file, "--json"))["outputs"]
            paths.append(self.write(path.name, case))
        self.assertGreaterEqual(len(paths), 24)
        for checker in ("kiln", "address"):
            with self.subTest(checker):
                self.kiln("run", *paths, "--on", "cpu", "--sanitize", checker, "--cache",
                          self.cache)

    def test_second_run_compiles_nothing(self):
        self.run_all()
        made = sorted(os.listdir(f"{self.cache}/cpu-v1"))

        self.run_all()

        self.assertEqual(sorted(os.listdir(f"{self.cache}/cpu-v1")), made)

    def test_no_compiler_says_what_to_install(self):
        lines = self.errors("run", CASES[0], "--on", "cpu", rc=1,
                            env={"PATH": str(self.tmp), "CXX": ""})

        self.assertEqual(len(lines), 1)
        for word in ("no C++ compiler", "install", "g++", "clang"):
            self.assertIn(word, lines[0])

    def test_reference_needs_no_compiler(self):
        self.kiln("run", CASES[0], "--on", "reference", env={"PATH": str(self.tmp)})

    def test_folder_that_others_may_write_is_refused(self):
        folder = self.tmp / "open" / "cpu-v1"
        folder.mkdir(parents=True)
        folder.chmod(0o777)

        lines = self.errors("run", CASES[0], "--on", "cpu", "--cache", folder.parent, rc=1)

        self.assertIn("nobody else can write", lines[0])

    def test_folder_in_one_that_others_may_write_is_refused_unless_sticky(self):
        above = self.tmp / "open"
        (above / "cpu-v1").mkdir(parents=True, mode=0o700)
        link = self.tmp / "link"
        link.symlink_to(above)
        above.chmod(0o777)

        for folder in (above, link, f"{link}/"):
            lines = self.errors("run", CASES[0], "--on", "cpu", "--cache", folder, rc=1)
            self.assertIn("nobody else can write", lines[0])

        above.chmod(0o1777)
        self.kiln("run", CASES[0], "--on", "cpu", "--cache", above)

    def test_unknown_checker_is_named(self):
        lines = self.errors("run", CASES[0], "--on", "cpu", "--sanitize", "asan", rc=2)

        self.assertIn('"asan"', lines[0])

    def test_damaged_entry_is_made_again(self):
        cache = self.tmp / "damaged"
        self.kiln("run", CASES[0], "--on", "cpu", "--cache", cache)
        keys = list(cache.glob("cpu-v1/*/key"))
        self.assertEqual(len(keys), 2)  # the runtime's and the kernel's
        for key in keys:
            key.write_text("damaged")

        self.kiln("run", CASES[0], "--on", "cpu", "--cache", cache)

        self.assertEqual(list(cache.glob("cpu-v1/*/key")), keys)
        self.assertNotIn("damaged", [key.read_text() for key in keys])

    def test_wrong_expectation_fails(self):
        case = json.loads(CASES[0].read_text())
        name = next(iter(case["expect"]))
        case["expect"][name] = [[7]] if case["expect"][name] == [] else []
        path = self.tmp / "wrong.json"
        path.write_text(json.dumps(case))

        self.errors("run", path, "--on", "cpu", "--cache", self.cache, rc=1)

    def test_fault_in_a_template_is_named_with_its_line(self):
        text = inline(TEMPLATES / "combine_topk_swa.cu")[0].decode()
        right = "if (thread == 0) {"
        self.assertEqual(text.count(right), 1)
        wrong = self.tmp / "wrong.cu"
        wrong.write_text(text.replace(right, "if (thread <= 1) {"))
        cases = [path for path in CASES if "combine" in path.name]

        lines = self.errors("run", *cases, "--on", "cpu", "--cache", self.cache, "--template",
                            wrong, rc=1)

        self.assertRegex(lines[0], r"writes combined_lens\[\d+\], which thread \d+ of the same "
                                   r"block wrote before, at combine_topk_swa\.cu:\d+")


if __name__ == "__main__":
    cli_support.main()
