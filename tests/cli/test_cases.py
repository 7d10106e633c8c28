# SPDX-License-Identifier: Apache-2.0
"""The given cases on the reference, and that a wrong expectation never passes."""

import json

import cli_support
from cli_support import DATA, CliTest

CASES = sorted((DATA / "cases").glob("*.json"))


class Cases(CliTest):
    def read(self):
        """(path, case) of every case whose op this kiln has."""
        return [(path, json.loads(path.read_text())) for path in CASES]

    def test_every_case_passes(self):
        self.assertGreater(len(CASES), 0)

        text = self.kiln("run", *CASES, "--on", "reference")

        self.assertEqual(text.splitlines(),
                         [*(f"pass  {path}" for path in CASES), f"{len(CASES)} passed, 0 failed"])

    def test_json_gives_the_outputs_of_every_case(self):
        lines = self.kiln("run", *CASES, "--json").splitlines()

        for (path, case), line in zip(self.read(), lines, strict=True):
            with self.subTest(path.name):
                result = json.loads(line)

                self.assertEqual(list(result), ["op", "on", "outputs", "pass"])
                self.assertEqual((result["op"], result["on"], result["pass"]),
                                 (case["op"], "reference", True))
                for name, value in case["expect"].items():
                    self.assertEqual(result["outputs"][name], value, name)

    def test_any_changed_expectation_fails(self):
        files = []
        for path, case in self.read():
            for name, rows in case["expect"].items():
                if not rows or rows[-1] == []:
                    continue
                row = rows[-1] if isinstance(rows[-1], list) else rows
                kept = row[-1]
                for value in (None if kept is not None else -1, 7 if kept != 7 else 8):
                    row[-1] = value
                    files.append(self.write(f"{len(files)}.json", case))
                row[-1] = kept
        self.assertGreater(len(files), len(CASES))

        done = self.run_kiln("run", *files)

        lines = done.stderr.decode().splitlines()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.decode(), f"0 passed, {len(files)} failed\n")
        for file, line in zip(files, lines, strict=True):
            self.assertRegex(line, rf"\Akiln: error: {file}: \w+(\[\d+\])+: expected .*, got ")

    def test_a_failed_case_says_so_in_json(self):
        path, case = self.read()[0]
        name, rows = next((n, r) for n, r in case["expect"].items() if r)
        case["expect"][name] = [None] * len(rows) if not isinstance(rows[0], list) else [
            [None] * len(row) for row in rows]

        done = self.run_kiln("run", self.write(path.name, case), "--json")

        self.assertEqual(done.returncode, 1)
        self.assertIs(json.loads(done.stdout)["pass"], False)

    def test_a_case_may_expect_some_outputs_or_none(self):
        path, case = self.read()[0]
        for expect in ({}, None):
            case["expect"] = expect
            if expect is None:
                del case["expect"]
            self.kiln("run", self.write(path.name, case))

    def test_unwritten_elements_are_null_in_json(self):
        case = {"op": "c128a_topk",
                "shape": {"compress_ratio": 1, "capacity": 4, "block_size": 2, "table_width": 2},
                "args": {"positions": [2, 0], "num_decode_tokens": 1, "token_to_req": [0, 9],
                         "block_table": [[3, 4]], "active_width": 3}}

        outputs = json.loads(self.kiln("run", self.write("case.json", case), "--json"))["outputs"]

        self.assertEqual(outputs, {"decode_slots": [[6, 7, 8, None]], "decode_lens": [3],
                                   "prefill_local": [[0, -1, -1, None]]})

    def test_the_gpu_is_named_where_there_is_none(self):
        done = self.run_kiln("run", CASES[0], "--on", "gpu")

        if done.returncode != 0:
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"kiln: error: gpu: ", done.stderr)


cli_support.main()
