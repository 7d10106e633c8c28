# SPDX-License-Identifier: Apache-2.0
"""Files that are wrong: exit status 1 and one line with file, field and what was expected."""

import copy
import json
import os
import resource

import cli_support
from cli_support import DEPLOYMENT, CliTest

GOOD = {
    "op": "global_topk",
    "shape": {"topk": 4, "topk_stride": 8, "slots_stride": 4, "block_size": 2, "table_width": 4,
              "table_stride": 4, "dcp_world": 1, "dcp_interleave": 1},
    "args": {"topk_indices": [[0, 1, 2, -1]], "token_to_req": [0], "is_valid_token": [1],
             "block_table": [[10, 11, 12, 13]], "num_tokens": 1},
    "expect": {"slots": [[20, 21, 22, -1]], "lens": [3]},
}
WINDOW = {
    "op": "combine_topk_swa",
    "shape": {"topk": 0, "window": 2, "compress_ratio": 0, "align": 4},
    "args": {"topk_indices": [[0]], "query_start_loc": [0, 1], "seq_lens": [2],
             "gather_lens": [2], "workspace_rows": 8, "swa_base": 4, "num_tokens": 1},
    "expect": {"combined_indices": [[4, 5, -1, -1]], "combined_lens": [2]},
}
CAPACITY = {
    "op": "c128a_topk",
    "shape": {"compress_ratio": 1, "capacity": 4, "block_size": 2, "table_width": 2},
    "args": {"positions": [2], "num_decode_tokens": 1, "token_to_req": [0],
             "block_table": [[3, 4]], "active_width": 2},
    "expect": {"decode_slots": [[6, 7, None, None]], "decode_lens": [2], "prefill_local": []},
}
GONE = object()
MIB = 1 << 20


def limit_memory():
    """In the child; what kiln itself takes is a few MiB."""
    resource.setrlimit(resource.RLIMIT_AS, (200 * MIB, 200 * MIB))


# 30 MB that would take GiB once parsed
CROWDED = b"[" + b"{}," * 10_000_000 + b"{}]"

# (case, path of the field, its new value, what stands in the message)
CHANGES = (
    (GOOD, "op", GONE, "op: expected the name of an op, got nothing"),
    (GOOD, "op", 5, "op: expected the name of an op, got an integer"),
    (GOOD, "op", "frob", 'op: "frob" is no op; expected one of global_topk'),
    (GOOD, "op", "step", "op: step is not in this kiln yet"),
    (GOOD, "shape", GONE, "shape: missing"),
    (GOOD, "shape", [], "shape: expected an object, got a list"),
    (GOOD, "args", GONE, "args: missing"),
    (GOOD, "args", None, "args: expected an object, got null"),
    (GOOD, "expect", [], "expect: expected an object"),
    (GOOD, "comment", "x", "comment: unknown field"),
    (GOOD, "shape.frob", 1, "shape.frob: unknown field; global_topk has topk"),
    (GOOD, "shape.topk", GONE, "topk"),
    (GOOD, "shape.topk", "4", "shape.topk: expected an integer, got a string"),
    (GOOD, "shape.topk", 4.0, "shape.topk: expected an integer, got a number that is no integer"),
    (GOOD, "shape.topk", True, "shape.topk: expected an integer, got true"),
    (GOOD, "shape.topk", None, "shape.topk: expected an integer, got null"),
    (GOOD, "shape.topk", 0, "topk"),
    (GOOD, "shape.topk", -4, "topk"),
    (GOOD, "shape.topk", 2**31, "topk"),
    (GOOD, "shape.topk_stride", 3, "topk_stride"),
    (GOOD, "shape.table_stride", 3, "table_stride"),
    (GOOD, "shape.block_size", 0, "block_size"),
    (GOOD, "shape.dcp_interleave", 3, "dcp_interleave"),
    (GOOD, "args.frob", 1, "args.frob: unknown field; global_topk has topk_indices"),
    (GOOD, "args.slots", [[1, 2, 3, 4]], "args.slots: unknown field"),
    (GOOD, "args.table_rows", 1, "args.table_rows: unknown field"),
    (GOOD, "args.token_to_req", GONE, "args.token_to_req: missing, global_topk needs it"),
    (GOOD, "args.block_table", GONE, "args.block_table: missing"),
    (GOOD, "args.topk_indices", 5, "args.topk_indices: expected a list, got an integer"),
    (GOOD, "args.topk_indices", [5], "args.topk_indices[0]: expected a list, got an integer"),
    (GOOD, "args.topk_indices", [[0, 1, 2]], "args.topk_indices[0]: 3 elements, expected 4"),
    (GOOD, "args.topk_indices", [[0, 1, 2, 3, 4]], "args.topk_indices[0]: 5 elements"),
    (GOOD, "args.topk_indices", [], "args.topk_indices: 0 long, expected 1"),
    (GOOD, "args.topk_indices", [[0, 1, 2, "3"]], "args.topk_indices[0][3]: expected an integer"),
    (GOOD, "args.topk_indices", [[0, 1, 2, 2**31]],
     "args.topk_indices[0][3]: 2147483648 does not fit int32"),
    (GOOD, "args.topk_indices", [[0, 1, -2**31 - 1, 2]], "args.topk_indices[0][2]: -2147483649"),
    (GOOD, "args.topk_indices", [[0, 1, 2.5, 2]], "args.topk_indices[0][2]: expected an integer"),
    (GOOD, "args.topk_indices", [[0, None, 2, 2]], "args.topk_indices[0][1]: expected an integer"),
    (GOOD, "args.token_to_req", [0, 0], "args.token_to_req: 2 long, expected 1 (one per token)"),
    (GOOD, "args.token_to_req", [[0]], "args.token_to_req[0]: expected an integer, got a list"),
    (GOOD, "args.is_valid_token", [256], "args.is_valid_token[0]: 256 does not fit a byte"),
    (GOOD, "args.is_valid_token", [-1], "args.is_valid_token[0]: -1 does not fit a byte"),
    (GOOD, "args.is_valid_token", [True], "args.is_valid_token[0]: expected an integer, got true"),
    (GOOD, "args.is_valid_token", None, "args.is_valid_token: expected a list, got null"),
    (GOOD, "args.is_valid_token", [], "args.is_valid_token: 0 long, expected 1"),
    (GOOD, "args.block_table", [[1, 2, 3]], "args.block_table[0]: 3 elements, expected 4"),
    (GOOD, "args.num_tokens", 2, "args.topk_indices: 1 long, expected 2"),
    (GOOD, "args.num_tokens", -1, "args.num_tokens: -1, expected 0 or more"),
    (GOOD, "args.num_tokens", 2**40, "args.num_tokens: 1099511627776 does not fit int32"),
    (GOOD, "args.num_tokens", "1", "args.num_tokens: expected an integer, got a string"),
    (GOOD, "args.live_tokens", [1], "args.live_tokens: expected an integer, got a list"),
    (GOOD, "args.live_tokens", 2**31, "args.live_tokens: 2147483648 does not fit int32"),
    (GOOD, "args.dcp_rank", 1, "dcp_rank"),
    (GOOD, "args.dcp_rank", -1, "dcp_rank"),
    (GOOD, "expect.frob", [], "expect.frob: unknown field; global_topk has slots, lens"),
    (GOOD, "expect.lens", [], "expect.lens: 0 long, expected 1"),
    (GOOD, "expect.lens", 3, "expect.lens: expected a list"),
    (GOOD, "expect.lens", ["3"], "expect.lens[0]: expected an integer or null, got a string"),
    (GOOD, "expect.lens", [2**31], "expect.lens[0]: 2147483648 does not fit int32"),
    (GOOD, "expect.slots", [[20, 21, 22]], "expect.slots[0]: 3 elements, expected 4"),
    (GOOD, "expect.lens", [4], "lens[0]: expected 4, got 3"),
    (GOOD, "expect.slots", [[20, 21, 23, -1]], "slots[0][2]: expected 23, got 22"),
    (GOOD, "expect.slots", [[20, None, 22, -1]],
     "slots[0][1]: expected nothing written (null), got 21"),
    (WINDOW, "args.left_visible", [0], "right_visible"),
    (WINDOW, "args.query_start_loc", [], "args.query_start_loc: empty"),
    (WINDOW, "args.seq_lens", [2, 2], "args.seq_lens: 2 long, expected 1 (one per request)"),
    (WINDOW, "args.num_tokens", GONE, "args.num_tokens: missing"),
    (WINDOW, "args.swa_base", GONE, "args.swa_base: missing"),
    (WINDOW, "args.workspace_rows", 2**31, "args.workspace_rows: 2147483648 does not fit int32"),
    (WINDOW, "shape.combined_stride", 2**31 - 1, "8 GiB"),
    (CAPACITY, "args.positions", [2**63], "not JSON"),
    (CAPACITY, "args.num_decode_tokens", GONE, "args.num_decode_tokens: missing"),
    (CAPACITY, "expect.decode_slots", [[6, 7, -1, None]],
     "decode_slots[0][2]: expected -1, got nothing written"),
)

# (bytes of a file, what stands in the message)
BYTES = (
    (b"", "not JSON"),
    (b"   \n", "not JSON"),
    (b"{", "not JSON"),
    (b"[]", "expected an object, got a list"),
    (b"5", "not JSON"),
    (b"null", "not JSON"),
    (b"{} {}", "not JSON"),
    (b"{}", "op: expected the name of an op, got nothing"),
    (b"\x00\x01\xff\xfe" * 1000, "not JSON"),
    (b'{"op": "global_topk\\u0000"}', "not JSON"),
    (b'{"op": "global\x00topk"}', "not JSON"),
    (b'{"op": "\xff"}', "not JSON"),
    (b'{"op": "a\nb\x1b[31m"}', "not JSON"),
    (b'{"op": "global_topk", "op": "global_topk"}', "not JSON"),
    (b"[" * 100000, "not JSON"),
    (b'{"a":' * 100000, "not JSON"),
    (b'{"op": ' + b"9" * 100000 + b"}", "not JSON"),
    (b'{"op": 1e999}', "not JSON"),
    (b"{'op': 1}", "not JSON"),
    (b'{"op": "global_topk",}', "not JSON"),
    (CROWDED, "too many values"),
    (b'{"":0' + b',"":0' * 30_000_000 + b"}", "too many values"),
    (json.dumps(GOOD).replace('"token_to_req"', '"lens": [], "token_to_req": [0], "token_to_req"')
     .encode(), "not JSON"),
)


def changed(case, path, value):
    case = copy.deepcopy(case)
    *parents, last = path.split(".")
    place = case
    for parent in parents:
        place = place[parent]
    if value is GONE:
        del place[last]
    else:
        place[last] = value
    return case


class CaseFiles(CliTest):
    def test_the_cases_that_are_changed_pass_unchanged(self):
        for case in (GOOD, WINDOW, CAPACITY):
            self.kiln("run", self.write("case.json", case))

    def test_every_bad_field_is_named(self):
        for case, path, value, needle in CHANGES:
            with self.subTest(f"{path} = {value}"):
                file = self.write("case.json", changed(case, path, value))

                self.assert_fails(1, needle, "run", file)

    def test_files_that_are_no_case_are_refused(self):
        for data, needle in BYTES:
            with self.subTest(repr(data[:40])):
                self.assert_fails(1, needle, "run", self.write("case.json", data))

    def test_a_file_of_any_size_is_refused_clearly(self):
        huge = self.tmp / "huge.json"
        with huge.open("wb") as file:
            file.truncate(1 << 40)

        self.assert_fails(1, "larger than", "run", huge)
        self.assert_fails(1, "larger than", "run", "/dev/zero")
        self.assert_fails(1, "not JSON", "run", "/dev/null")

    def test_lists_are_measured_before_memory_is_taken_for_them(self):
        empty = {"topk_indices": [], "token_to_req": [], "is_valid_token": []}
        for case, changes, needle in (
                (GOOD, {"args": {**GOOD["args"], **empty, "num_tokens": 500_000_000}},
                 "args.topk_indices: 0 long, expected 500000000"),
                (GOOD, {"shape": {**GOOD["shape"], "slots_stride": 500_000_000},
                        "expect": {"lens": []}}, "expect.lens: 0 long, expected 1"),
                (WINDOW, {"args": {**WINDOW["args"], "num_tokens": 500_000_000}},
                 "args.topk_indices: 1 long, expected 500000000")):
            with self.subTest(needle):
                file = self.write("case.json", {**case, **changes})

                done = self.run_kiln("run", file, preexec_fn=limit_memory)

                self.assertEqual(done.returncode, 1)
                self.assertIn(needle, done.stderr.decode())

    def test_no_memory_is_said_in_words(self):
        file = self.write("case.json", b"[" + b"0," * 10_000_000 + b"0]")

        for call in (["run", file], ["plan", "--model", file, *DEPLOYMENT[2:]],
                     ["plan", "--manifest", file]):
            done = self.run_kiln(*call, preexec_fn=limit_memory)

            self.assertEqual(done.returncode, 1)
            self.assertIn("case.json: out of memory", done.stderr.decode())

    def test_files_that_cannot_be_read_are_named(self):
        self.assert_fails(1, "missing.json: cannot be read", "run", "missing.json")
        self.assert_fails(1, "home: cannot be read", "run", "home")

    def test_one_bad_file_does_not_stop_the_others(self):
        good = self.write("good.json", GOOD)
        done = self.run_kiln("run", "missing.json", good, good)

        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.decode().splitlines(),
                         [f"pass  {good}", f"pass  {good}", "2 passed, 1 failed"])

    def test_empty_lists_are_a_launch_of_no_rows(self):
        case = copy.deepcopy(GOOD)
        case["args"] = {"topk_indices": [], "token_to_req": [], "block_table": []}
        case["expect"] = {"slots": [], "lens": []}

        self.kiln("run", self.write("case.json", case))

    def test_a_dash_leads_a_file_name_after_two_dashes(self):
        self.write("-case.json", GOOD)

        self.kiln("run", "--", "-case.json")


class DeploymentFiles(CliTest):
    # (config, what stands in the message)
    CONFIGS = (
        ("", "config.json"),
        ("[]", "config.json"),
        ("{}", "num_hidden_layers"),
        ('{"num_hidden_layers": "43", "index_topk": 512}', "num_hidden_layers"),
        ('{"num_hidden_layers": 43}', "index_topk"),
        ('{"num_hidden_layers": 43, "index_topk": 512, "compress_ratios": 4}', "compress_ratios"),
        ('{"num_hidden_layers": 43, "index_topk": 512, "compress_ratios": [0, "4"]}',
         "compress_ratios"),
        (b"\xff\xfe\x00", "config.json"),
        ('{"num_hidden_layers": 43, "index_topk": 2147483647}',
         "config.json: index_topk is 2147483647, expected an integer from 1 to 16777216"),
        ('{"num_hidden_layers": 43, "index_topk": 512, "sliding_window": 2147483647, '
         '"compress_ratios": [0]}', "config.json: sliding_window is 2147483647"),
        ('{"num_hidden_layers": 43, "index_topk": 512, "sliding_window": 128, '
         '"compress_ratios": [0, 2147483647]}', "config.json: compress_ratios[1] is 2147483647"),
        (CROWDED, "config.json: too many values"),
    )

    def test_every_bad_config_is_named(self):
        for text, needle in self.CONFIGS:
            with self.subTest(text[:200]):
                file = self.write("config.json", text)

                self.assert_fails(1, needle, "plan", "--model", file, *DEPLOYMENT[2:])

    def test_a_config_that_is_not_there_is_named(self):
        self.assert_fails(1, "gone.json: cannot be read", "plan", "--model", "gone.json",
                          *DEPLOYMENT[2:])
        self.assert_fails(1, "gone.json: cannot be read", "warm", "--manifest", "gone.json")
        self.assert_fails(1, "gone.json: cannot be read", "check", "--plan", "gone.json")

    def test_every_bad_manifest_is_named(self):
        self.kiln("plan", *DEPLOYMENT, "--arch", "sm_90", "--manifest-out", "good.json")
        good = json.loads((self.tmp / "good.json").read_text())

        for path, value in (("deployment.max_model_len", 0), ("deployment.max_model_len", GONE),
                            ("deployment.block_size", 100), ("deployment", GONE),
                            ("plan", GONE), ("plan", []), ("plan", good["plan"][1:]),
                            ("targets", ["sm_99"]), ("targets", "sm_90"),
                            ("targets", ["sm_90", "sm_100", "sm_90"]),
                            ("deployment.index_topk", 2**31 - 1),
                            ("deployment.image_width", 2**31 - 1),
                            ("digest", "0" * 64), ("frob", 1), ("kiln_manifest", 2)):
            with self.subTest(f"{path} = {str(value)[:40]}"):
                file = self.write("bad.json", changed(good, path, value))

                self.assert_fails(1, "bad.json", "plan", "--manifest", file)

    def test_a_huge_manifest_is_refused_before_it_is_parsed(self):
        file = self.write("crowded.json", CROWDED)

        self.assert_fails(1, "crowded.json: too many values", "plan", "--manifest", file)
        self.assert_fails(1, "crowded.json: too many values", "check", "--plan", file)

    def test_a_manifest_cut_anywhere_is_refused(self):
        self.kiln("plan", *DEPLOYMENT, "--arch", "sm_90", "--manifest-out", "good.json")
        whole = (self.tmp / "good.json").read_bytes().rstrip()

        for size in range(0, len(whole), len(whole) // 20):
            self.assert_fails(1, "cut.json", "plan", "--manifest",
                              self.write("cut.json", whole[:size]))

    def test_a_manifest_that_cannot_be_written_is_named_and_leaves_nothing(self):
        self.assert_fails(1, "nowhere/m.json", "plan", *DEPLOYMENT, "--manifest-out",
                          "nowhere/m.json")
        self.assert_fails(1, "home", "plan", *DEPLOYMENT, "--manifest-out", "home")

        self.assertEqual(os.listdir(self.tmp), ["home"])


cli_support.main()
