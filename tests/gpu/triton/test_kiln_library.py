# SPDX-License-Identifier: Apache-2.0
"""The binding that the comparison with Triton launches through, on host arrays: it reads every
op's table, and what the reference makes of the given cases through it is what they expect."""

import ast
import ctypes
import json
import os
import pathlib
import sys
import unittest

import kiln_library
import side_by_side
from kiln_library import Array, KilnError, Library

CASES = pathlib.Path(os.environ["KILN_TEST_DATA"]) / "cases"
LIBRARY = Library(os.environ["KILN_LIBRARY"])
CTYPES = {"u8": ctypes.c_uint8, "i32": ctypes.c_int32, "i64": ctypes.c_int64}
POISON = 0xA5
FOLDER = pathlib.Path(__file__).resolve().parent


class HostArray:
    """Rows at their stride, poisoned where nothing was given."""

    def __init__(self, layout, rows, given=()):
        self.layout = layout
        self.rows = rows
        ctype = CTYPES[layout.dtype]
        self.data = (ctype * max(rows * layout.stride, 1))()
        ctypes.memset(self.data, POISON, ctypes.sizeof(self.data))
        self.poison = self.data[0]
        for row, values in enumerate(given):
            values = values if layout.is_matrix else [values]
            start = row * layout.stride
            self.data[start:start + len(values)] = values

    def argument(self):
        return Array(ctypes.addressof(self.data), self.rows)

    def listed(self):
        """As a case file lists it: no padding, null where nothing was written."""
        values = [None if v == self.poison else v for v in self.data]
        width, stride = self.layout.width, self.layout.stride
        if not self.layout.is_matrix:
            return values[:self.rows]
        return [values[r * stride:r * stride + width] for r in range(self.rows)]

    def padding_is_whole(self):
        width, stride = self.layout.width, self.layout.stride
        return all(v == self.poison for r in range(self.rows)
                   for v in self.data[r * stride + width:(r + 1) * stride])


def call_of(case):
    """(op, shape, arguments, arrays) of a case file."""
    op = LIBRARY.ops[case["op"]]
    shape = op.shape(**case["shape"])
    arrays, arguments = {}, {}
    for name, value in {**case["args"], **case["expect"]}.items():
        kind = op.args[name].kind
        if kind == kiln_library.OUTPUT:
            arrays[name] = HostArray(op.layout(shape, name), len(value))
        elif kind == kiln_library.INPUT:
            arrays[name] = HostArray(op.layout(shape, name), len(value), value)
        else:
            arguments[name] = value
    arguments.update({name: array.argument() for name, array in arrays.items()})
    return op, shape, arguments, arrays


def given_cases(name):
    return sorted(CASES.glob(f"{name}-100-*.json"))


class KilnLibraryTest(unittest.TestCase):
    def test_every_op_with_given_cases_is_read(self):
        with_cases = {path.name.split("-")[0] for path in CASES.glob("*-100-*.json")}
        self.assertEqual({op.name for op in LIBRARY.ops.values() if op.supported}, with_cases)
        self.assertGreaterEqual(len(with_cases), 11)

    def test_arguments_lie_apart_inside_their_struct(self):
        sizes = {kiln_library.COUNT: 16, kiln_library.NUMBER: 4, kiln_library.EXTENT: 4}
        for op in LIBRARY.ops.values():
            if not op.supported:
                continue
            end = 0
            for arg in sorted(op.args.values(), key=lambda arg: arg.offset):
                self.assertGreaterEqual(arg.offset, end, (op.name, arg.name))
                end = arg.offset + sizes.get(arg.kind, 8)
            self.assertLessEqual(end, op.args_bytes, op.name)

    def test_the_reference_gives_what_the_cases_expect(self):
        for name in sorted(op.name for op in LIBRARY.ops.values() if op.supported):
            self.assertEqual(len(given_cases(name)), 12, name)
            for path in given_cases(name):
                with self.subTest(path.name):
                    case = json.loads(path.read_text())
                    op, shape, arguments, arrays = call_of(case)
                    LIBRARY.reference(op, shape, op.pack(**arguments))
                    for output, expected in case["expect"].items():
                        self.assertEqual(arrays[output].listed(), expected, output)
                        self.assertTrue(arrays[output].padding_is_whole(), output)

    def test_defaults_are_filled_in(self):
        op = LIBRARY.ops["global_topk"]
        values = op.values(op.shape(topk=8, block_size=64, table_width=5))
        self.assertEqual(values, {"topk": 8, "topk_stride": 8, "slots_stride": 8, "block_size": 64,
                                  "table_width": 5, "table_stride": 5, "dcp_world": 1,
                                  "dcp_interleave": 1})

    def test_a_count_may_lie_in_memory(self):
        op = LIBRARY.ops["is_valid_token"]
        live = ctypes.c_int32(2)
        out = HostArray(op.layout(op.shape(), "is_valid_token"), 3)
        LIBRARY.reference(op, op.shape(), op.pack(
            num_tokens=3, is_valid_token=out.argument(),
            live_tokens=Array(ctypes.addressof(live), 1)))
        self.assertEqual(out.listed(), [1, 1, 0])

    def test_a_failure_says_what_kiln_said(self):
        op = LIBRARY.ops["global_topk"]
        with self.assertRaisesRegex(KilnError, "KILN_E_SHAPE: .*topk"):
            op.shape(block_size=64, table_width=5)
        with self.assertRaisesRegex(KilnError, "no shape field .*'width'"):
            op.shape(topk=8, block_size=64, table_width=5, width=3)
        with self.assertRaisesRegex(KilnError, "no argument .*'picks'"):
            op.pack(picks=Array(0, 0))
        with self.assertRaisesRegex(KilnError, "dcp_storage = 'split': not a choice"):
            LIBRARY.ops["swa_indices"].shape(dcp_storage="split")


class ComparisonTest(unittest.TestCase):
    """What can be said of the comparison without PyTorch and Triton."""

    def setUp(self):
        self.ops = {op.name for op in LIBRARY.ops.values() if op.supported}

    def parsed(self, name):
        return ast.parse((FOLDER / name).read_text(), name)

    def test_every_op_has_a_triton_version(self):
        tables = [node.value for node in self.parsed("triton_ops.py").body
                  if isinstance(node, ast.Assign) and node.targets[0].id == "OPS"]
        self.assertEqual(self.ops, {key.value for key in tables[0].keys})

    def test_every_op_has_cases(self):
        made = {node.args[0].value for node in ast.walk(self.parsed("step_cases.py"))
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                and node.func.id == "Case"}
        self.assertEqual(self.ops, made)

    def test_an_op_is_slower_over_its_sizes_or_much_slower_at_one(self):
        for ratios, status in (((0.9, 1.05), 0), ((1.0, 1.06), 1), ((0.5, 1.11), 1),
                               ((1.02,), 0), ((1.021,), 1)):
            rows = [("token_to_req", 0.8)] + [("gather_lens", ratio) for ratio in ratios]
            lines, got = side_by_side.summary(rows)
            self.assertEqual(got, status, ratios)
            self.assertIn(f"{status} ops slower, 0 differ", lines[-1])

    def test_a_difference_and_no_rows_are_failures(self):
        self.assertEqual(side_by_side.summary([("a", None), ("b", 0.9)])[1], 1)
        self.assertEqual(side_by_side.summary([])[1], 1)


if __name__ == "__main__":
    program = unittest.main(exit=False, argv=[sys.argv[0], "-v"])
    sys.exit(0 if program.result.wasSuccessful() and program.result.testsRun > 0 else 1)
