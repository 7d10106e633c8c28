# SPDX-License-Identifier: Apache-2.0
"""A bare nvcc accepts what `kiln emit` prints; run where there is one (its path in NVCC)."""

import os
import subprocess

import cli_support
from cli_support import CliTest

SHAPES = (
    ("global_topk", "topk=512", "block_size=64", "table_width=4096"),
    ("global_topk", "topk=7", "topk_stride=9", "block_size=3", "table_width=5", "dcp_world=2"),
    ("c128a_topk", "compress_ratio=128", "capacity=8192", "block_size=2", "table_width=4096"),
    ("combine_topk_swa", "topk=512", "window=128", "compress_ratio=4"),
    ("combine_topk_swa", "topk=0", "window=128", "compress_ratio=0", "image_width=16"),
)


class Nvcc(CliTest):
    def test_a_bare_nvcc_compiles_every_source_without_warnings(self):
        for shape in SHAPES:
            with self.subTest(" ".join(shape)):
                source = self.write("source.cu", self.kiln("emit", *shape))

                done = subprocess.run(
                    [os.environ["NVCC"], "-cubin", "-arch", "sm_90", "-Werror", "all-warnings",
                     "-o", self.tmp / "out.cubin", source],
                    capture_output=True, text=True, timeout=300, check=False)

                self.assertEqual((done.returncode, done.stderr), (0, ""))


cli_support.main()
