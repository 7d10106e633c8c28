# SPDX-License-Identifier: Apache-2.0
"""Models of ratios 0, 1 and 2: what they launch, written down by hand, and each of those kernels
executed on the CPU."""

import json
import pathlib
import random
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

import cli_support  # noqa: E402
from cli_support import DATA, CliTest  # noqa: E402

MODEL = DATA / "models" / "ratios-0-1-2.json"
WINDOW_ONLY = {"topk": 0, "topk_stride": 1, "window": 128, "compress_ratio": 0,
               "image_width": 0, "align": 128, "combined_stride": 128}
RANKS = {"dcp_world": 1, "dcp_interleave": 1}


def picks(block, table):
    return {"topk": 512, "topk_stride": 512, "slots_stride": 512, "block_size": block,
            "table_width": table, "table_stride": table, **RANKS}


def combined(ratio):
    return {"topk": 512, "topk_stride": 512, "window": 128, "compress_ratio": ratio,
            "image_width": 0, "align": 128, "combined_stride": 640}


def records(ratio, block, table):
    return {"compress_ratio": ratio, "block_size": block, "table_width": table,
            "table_stride": table, **RANKS}


def window(width, table, causal):
    return {"window": 128, "index_width": width, "index_stride": width, "causal": causal,
            "dcp_storage": "sharded", "block_size": 64, "table_width": table,
            "table_stride": table, "image_width": 0, **RANKS}


def step(table, slots):
    """Segments in their order: with an indexer a ratio's slots come twice in a row."""
    segments = [("token_to_req", {"pad_req": 0}), ("is_valid_token", {"dcp_world": 1}),
                ("gather_lens", {"window": 128}), ("swa_indices", window(128, table, True))]
    segments += [("compressed_slots", shape) for shape in slots for _ in range(2)]
    return {"segments": [{"op": op, "shape": shape} for op, shape in segments]}


def once(table, slots):
    return [("token_to_req", {"pad_req": 0}, 1), ("is_valid_token", {"dcp_world": 1}, 1),
            ("gather_lens", {"window": 128}, 1), ("swa_indices", window(128, table, True), 1),
            ("step", step(table, slots), 1)]


# label, flags, the model's ratios (None: the file's), layers, what is launched how often
DEPLOYMENTS = (
    ("block 128", ("--max-model-len", 1048576, "--block-size", 128), None, 40,
     [("combine_topk_swa", WINDOW_ONLY, 2),
      ("global_topk", picks(128, 8192), 19), ("combine_topk_swa", combined(1), 19),
      ("global_topk", picks(64, 8192), 19), ("combine_topk_swa", combined(2), 19),
      ("compressed_slots", records(1, 128, 8192), 2),
      ("compressed_slots", records(2, 64, 8192), 2),
      *once(16384, [records(1, 128, 8192), records(2, 64, 8192)])]),
    ("block 64, drafts",
     ("--max-model-len", 100000, "--block-size", 64, "--num-speculative-tokens", 5), None, 40,
     [("combine_topk_swa", WINDOW_ONLY, 2),
      ("global_topk", picks(64, 1563), 19), ("combine_topk_swa", combined(1), 19),
      ("global_topk", picks(32, 1563), 19), ("combine_topk_swa", combined(2), 19),
      ("compressed_slots", records(1, 64, 1563), 2),
      ("compressed_slots", records(2, 32, 1563), 2),
      ("swa_indices", window(192, 1563, False), 1),
      *once(1563, [records(1, 64, 1563), records(2, 32, 1563)])]),
    # a ratio of 1 is a window where there is no 2; layers without a ratio are windows too
    ("no indexers", ("--max-model-len", 70000, "--block-size", 64), [0, 1, 1], 5,
     [("combine_topk_swa", WINDOW_ONLY, 5), *once(1094, [])]),
    ("ratio 2 alone, a draft layer behind the last",
     ("--max-model-len", 70000, "--block-size", 128), [0, 2, 2, 2], 3,
     [("combine_topk_swa", WINDOW_ONLY, 1),
      ("global_topk", picks(64, 547), 3), ("combine_topk_swa", combined(2), 3),
      ("compressed_slots", records(2, 64, 547), 2),
      *once(1094, [records(2, 64, 547)])]),
)


def make_args(op, shape, draw):
    """Arguments of three requests, the second of no tokens; the middle of the table is used."""
    starts, n_tokens = [0, 3, 3, 8], 8
    lens = [draw.randrange(200, 60000) for _ in range(3)]
    shapes = [shape, *(segment["shape"] for segment in shape.get("segments", []))]
    width = max(each.get("table_width", 0) for each in shapes)
    table = [[draw.randrange(5000) for _ in range(width)] for _ in range(3)]
    ids = [[draw.randrange(-1, 60000) for _ in range(max(shape.get("topk", 0), 1))]
           for _ in range(n_tokens)]
    requests = [0, 0, 0, 2, 2, 2, 2, 2]
    queries = {"query_start_loc": starts, "seq_lens": lens}
    if op == "global_topk":
        return {"topk_indices": ids, "token_to_req": requests, "block_table": table}
    if op == "combine_topk_swa":
        return {**queries, "topk_indices": ids, "gather_lens": [130, 0, 132],
                "workspace_rows": 61000, "swa_base": 60500, "num_tokens": n_tokens}
    if op == "compressed_slots":
        return {**queries, "block_table": table, "num_tokens": n_tokens}
    if op == "swa_indices":
        return {**queries, "token_to_req": requests, "block_table": table,
                "num_rows": n_tokens}
    if op == "gather_lens":
        return {**queries, "first_request": 1}
    if op == "step":
        own = [{"block_table": [row[:segment["shape"]["table_width"]] for row in table]}
               if "table_width" in segment["shape"] else {} for segment in shape["segments"]]
        return {**queries, "num_tokens": n_tokens, "segments": own,
                "slot_mapping": [5, -1, 0, 7, -2, 1, 2, 3]}
    if op == "is_valid_token":
        return {"slot_mapping": [5, -1, 0, 7, -2, 1, 2, 3], "num_tokens": n_tokens}
    return {"query_start_loc": starts, "num_tokens": n_tokens}


class RatioModels(CliTest):
    def plan_of(self, flags, ratios, layers):
        model = MODEL
        if ratios is not None:
            config = {**json.loads(MODEL.read_text()), "compress_ratios": ratios,
                      "num_hidden_layers": layers}
            model = self.write("config.json", config)
        return self.plan("--model", model, "--max-num-batched-tokens", 2048, *flags)

    def test_plans_are_the_lists_written_by_hand(self):
        for label, flags, ratios, layers, expected in DEPLOYMENTS:
            with self.subTest(label):
                lines = self.plan_of(flags, ratios, layers)

                got = [(line["op"], line["shape"], line["layers"]) for line in lines]
                self.assertCountEqual(got, expected)

    def test_every_kernel_equals_the_reference_on_the_cpu(self):
        draw = random.Random(1)
        folder = tempfile.TemporaryDirectory(prefix="kiln-ratio-")
        self.addCleanup(folder.cleanup)
        kernels = {}
        for _, flags, ratios, layers, _ in DEPLOYMENTS:
            for line in self.plan_of(flags, ratios, layers):
                if line["supported"]:
                    kernels[json.dumps([line["op"], line["shape"]])] = line
        self.assertGreaterEqual(len(kernels), 15)
        cases = []
        for i, line in enumerate(kernels.values()):
            case = {"op": line["op"], "shape": line["shape"],
                    "args": make_args(line["op"], line["shape"], draw)}
            path = self.write(f"{i}-{line['op']}.json", case)
            case["expect"] = json.loads(self.kiln("run", path, "--json"))["outputs"]
            self.write(f"{i}-{line['op']}.json", case)
            cases.append(path)

        text = self.kiln("run", *cases, "--on", "cpu", "--cache", folder.name)

        self.assertEqual(text.splitlines()[-1], f"{len(cases)} passed, 0 failed")


if __name__ == "__main__":
    cli_support.main()
