# SPDX-License-Identifier: Apache-2.0
"""kiln run --checked: what the rules turn away, as the reference reports it."""

import json

import cli_support
from cli_support import DATA, CliTest

CASES = sorted((DATA / "cases").glob("*.json"))
# A page that cannot be used, twenty ids below -1, and a request that has no table.
WRONG = {
    "op": "global_topk",
    "shape": {"topk": 24, "block_size": 2, "table_width": 2},
    "args": {"topk_indices": [[0, 1, 2, -1, *[-7] * 20], [0, *[-1] * 23]],
             "token_to_req": [0, 5], "block_table": [[10, -3]]},
    "expect": {"slots": [[20, 21, *[-1] * 22], [-1] * 24]},
}


def entry(row, column, reason, value):
    return {"op": "global_topk", "row": row, "column": column, "reason": reason, "value": value}


REPORT = {
    "found": 22,
    "entries": [entry(0, 2, "page", -3), *(entry(0, i, "id", -7) for i in range(4, 24)),
                entry(1, -1, "request", 5)],
}


class Checked(CliTest):
    def test_every_case_passes_and_lines_under_it_say_what_was_reported(self):
        lines = self.kiln("run", *CASES, "--checked").splitlines()

        self.assertEqual([line for line in lines if not line.startswith("      ")],
                         [*(f"pass  {path}" for path in CASES), f"{len(CASES)} passed, 0 failed"])

    def test_json_has_a_sorted_report_and_else_what_it_has_unchecked(self):
        plain = self.kiln("run", *CASES, "--json").splitlines()
        lines = self.kiln("run", *CASES, "--json", "--checked").splitlines()

        for before, line in zip(map(json.loads, plain), map(json.loads, lines), strict=True):
            self.assertEqual(list(line), ["op", "on", "outputs", "report", "pass"])
            report = line.pop("report")
            self.assertEqual(line, before)
            self.assertEqual(report["found"], len(report["entries"]))
            places = [(e["row"], e["column"]) for e in report["entries"]]
            self.assertEqual(places, sorted(places))
            self.assertLessEqual({e["op"] for e in report["entries"]}, {line["op"]})

    def test_report_names_the_kernel_and_the_inputs_it_turned_away_field_27(self):
        result = json.loads(self.kiln("run", self.write("wrong.json", WRONG), "--json",
                                      "--checked"))

        self.assertEqual(result["report"], REPORT)

    def test_people_see_twenty_lines_and_how_many_more_there_are(self):
        path = self.write("wrong.json", WRONG)

        lines = self.kiln("run", path, "--checked").splitlines()

        self.assertEqual(len(lines), 1 + 20 + 1 + 1)
        self.assertEqual(lines[0], f"pass  {path}")
        self.assertEqual(lines[1], "      global_topk: row 0, column 2: "
                                   "page that cannot be used: -3")
        self.assertEqual(lines[2:21], [f"      global_topk: row 0, column {i}: "
                                       "id that has no page: -7" for i in range(4, 23)])
        self.assertEqual(lines[21], "      ... and 2 more")

    def test_without_the_flag_nothing_is_said_of_it(self):
        path = self.write("wrong.json", WRONG)

        self.assertEqual(self.kiln("run", path), f"pass  {path}\n1 passed, 0 failed\n")
        self.assertEqual(list(json.loads(self.kiln("run", path, "--json"))),
                         ["op", "on", "outputs", "pass"])

    def test_wrong_outputs_fail_as_they_do_unchecked(self):
        wrong = {**WRONG, "expect": {"lens": [2, 1]}}

        self.assert_fails(1, "lens[1]: expected 1, got 0", "run",
                          self.write("wrong.json", wrong), "--checked")


class EmitChecked(CliTest):
    def test_source_differs_in_the_one_constant(self):
        shape = ("global_topk", "topk=512", "block_size=64", "table_width=4096")
        plain = self.kiln("emit", *shape)

        checked = self.kiln("emit", *shape, "--checked")

        self.assertEqual(checked, plain.replace("bool kChecked = false;\n",
                                                "bool kChecked = true;\n", 1))
        self.assertNotEqual(checked, plain)


cli_support.main()
