# SPDX-License-Identifier: Apache-2.0
"""The examples on a machine without a GPU: stand_in_gpu.c computes what they launch."""

import os
import re
import subprocess
import tempfile
import unittest

MODELS = os.path.join(os.environ["KILN_TEST_DATA"], "models")


def run(name, *args, **env):
    with tempfile.TemporaryDirectory(prefix="kiln-examples-") as cache:
        return subprocess.run([os.environ[name], *args], capture_output=True, text=True,
                              env={**os.environ, "KILN_CACHE_DIR": cache, **env})


def serve(model, *args, **env):
    return run("SERVER_EMBED", "--model", os.path.join(MODELS, model), *args, **env)


class ServerEmbed(unittest.TestCase):
    def test_every_graph_is_replayed_and_nothing_differs(self):
        done = serve("deepseek-v4-flash.json", "--steps", "300", "--seed", "5")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        replays = re.findall(r"^graph of .* (\d+) replays", done.stdout, re.MULTILINE)
        self.assertEqual(len(replays), 8)
        self.assertNotIn("0", replays)
        self.assertRegex(done.stdout, r"\n300 steps, .* elements compared, 0 differ\n$")
        self.assertIn("refused after the seal: 0\n", done.stdout)

    def test_other_models_are_served(self):
        for model in ("deepseek-v3.2.json", "ratios-0-1-2.json"):
            done = serve(model, "--steps", "3", "--max-model-len", "3000", "--seed", "2")
            self.assertEqual((done.returncode, done.stderr), (0, ""), model)

    def test_one_wrong_element_is_found_and_named(self):
        # Launches of a step start with token_to_req, whose first element is flipped.
        done = serve("deepseek-v4-flash.json", "--steps", "1", KILN_STAND_IN_FAULT="0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("step 0, token_to_req.token_to_req, layer 0, row 0, column 0: ", done.stderr)

    def test_a_wrong_layer_is_found_and_named(self):
        done = serve("deepseek-v4-flash.json", "--steps", "1", KILN_STAND_IN_FAULT="30")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^step 0, combine_topk_swa\.4\.combined_indices, "
                                      r"layer \d+, row 0, column 0: -?\d+, expected -?\d+\n$")

    def test_bad_calls_are_refused(self):
        for args in ((), ("--steps", "5"), ("--model", "m", "--steps", "x"), ("--model",)):
            done = run("SERVER_EMBED", *args)
            self.assertEqual(done.returncode, 2, args)
            self.assertTrue(done.stderr.startswith("usage: "), args)
        done = serve("no-such-model.json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no-such-model.json", done.stderr)


class GraphCapture(unittest.TestCase):
    def test_live_rows_change_from_replay_to_replay(self):
        done = run("GRAPH_CAPTURE")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "8 live: row 4 starts 448 449 450\n"
                                      "3 live: row 4 starts -1 -1 -1\n")


if __name__ == "__main__":
    unittest.main()
