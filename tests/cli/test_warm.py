# SPDX-License-Identifier: Apache-2.0
"""`kiln warm` with the real compiler: what it compiles, and what it leaves behind."""

import os
import pathlib
import signal
import subprocess
import time

import cli_support
from cli_support import DATA, KILN, SMALL, CliTest


class Warm(CliTest):
    def kernels(self, *flags):
        return sum(line["supported"] for line in self.plan(*(flags or SMALL)))

    def test_a_second_run_compiles_nothing_field_18(self):
        n = self.kernels()

        self.assertEqual(self.warm(*SMALL, "--arch", "sm_90,sm_100"), (2 * n, 0, 0))
        self.assertEqual(self.warm(*SMALL, "--arch", "sm_90,sm_100"), (0, 2 * n, 0))
        self.assertEqual(len(self.entries()), 2 * n)

    def test_all_that_a_model_launches_is_warm_field_13(self):
        for model in sorted((DATA / "models").glob("*.json")):
            with self.subTest(model.name):
                manifest = self.tmp / f"manifest-{model.name}"
                call = ("--model", model, "--max-model-len", "65536",
                        "--max-num-batched-tokens", "2048", "--num-speculative-tokens", "2")
                listed = self.plan(*call, "--arch", "sm_90", "--manifest-out", manifest)
                compiled, cached, failed = self.warm("--manifest", manifest)

                self.assertEqual(compiled + cached, sum(line["supported"] for line in listed))
                self.assertEqual(failed, 0)
                self.kiln("check", "--plan", manifest, "--cache", self.cache,
                          env={"KILN_NVRTC": "/nowhere/libnvrtc.so"})

    def test_batch_sizes_and_context_lengths_share_kernels_field_14(self):
        n = self.kernels()
        self.warm(*SMALL, "--arch", "sm_90")

        self.assertEqual(self.warm(*SMALL, "--max-num-seqs", "12", "--arch", "sm_90"), (0, n, 0))
        self.assertEqual(self.warm(*SMALL[:2], "--max-model-len", "8190",
                                   "--max-num-batched-tokens", "16384", "--arch", "sm_90"),
                         (0, n, 0))

    def test_rebuild_compiles_what_is_cached_to_the_same_entries(self):
        self.warm(*SMALL, "--arch", "sm_90")
        names = self.entries()

        self.assertEqual(self.warm(*SMALL, "--arch", "sm_90", "--rebuild", "--jobs", "1"),
                         (len(names), 0, 0))
        self.assertEqual(self.entries(), names)

    def test_a_moved_cache_is_warm_field_45(self):
        n = self.kernels()
        self.warm(*SMALL, "--arch", "sm_90")
        os.rename(self.cache, self.tmp / "elsewhere")
        self.cache = str(self.tmp / "elsewhere")

        self.assertEqual(self.warm(*SMALL, "--arch", "sm_90"), (0, n, 0))

    def test_a_relative_folder_is_taken_from_the_working_folder(self):
        self.cache = "cache"
        self.warm(*SMALL, "--arch", "sm_90")

        self.assertTrue((self.tmp / "cache" / "kiln-v1").is_dir())
        self.kiln("check", "--cache", "cache")

    def test_a_locale_with_decimal_commas_changes_no_entry_field_46(self):
        self.warm(*SMALL, "--arch", "sm_90")
        names = [p.name for p in self.entries()]
        self.env.update(LC_ALL="de_DE.UTF-8", LANG="de_DE.UTF-8")
        self.cache = str(self.tmp / "german")
        self.warm(*SMALL, "--arch", "sm_90")

        self.assertEqual([p.name for p in self.entries()], names)

    def test_unsupported_ops_are_one_line_each_and_not_failed(self):
        text = self.kiln("warm", *SMALL, "--arch", "sm_90,sm_100", "--cache", self.cache)
        lines = [line for line in text.splitlines() if line.startswith("unsupported")]

        self.assertEqual(len(lines), sum(not x["supported"] for x in self.plan(*SMALL)))

    def test_a_manifest_brings_its_targets(self):
        self.kiln("plan", *SMALL, "--arch", "sm_90,sm_120", "--manifest-out", "m.json")

        self.assertEqual(self.warm("--manifest", "m.json"), (2 * self.kernels(), 0, 0))

    def test_nothing_is_written_outside_of_the_cache(self):
        before = sorted(self.tmp.iterdir())
        self.warm(*SMALL, "--arch", "sm_90")

        self.assertEqual(list(self.home.iterdir()), [])
        self.assertEqual(sorted(self.tmp.iterdir()),
                         sorted([*before, pathlib.Path(self.cache)]))

    def test_the_default_folder_follows_the_environment(self):
        for env, folder in (({}, self.home / ".cache" / "kiln"),
                            ({"XDG_CACHE_HOME": str(self.tmp / "xdg")}, self.tmp / "xdg" / "kiln"),
                            ({"KILN_CACHE_DIR": str(self.tmp / "own")}, self.tmp / "own")):
            with self.subTest(str(folder)):
                self.kiln("warm", *SMALL, "--arch", "sm_90", env=env)

                self.assertTrue((folder / "kiln-v1").is_dir())

    def test_a_host_without_a_home_says_so_field_58(self):
        self.assert_fails(1, "cache", "warm", *SMALL, "--arch", "sm_90", env={"HOME": "/"})

    def test_a_cache_that_cannot_be_written_fails(self):
        self.write("cache", "a file where the folder should be")

        self.errors("warm", *SMALL, "--arch", "sm_90", "--cache", self.cache, rc=1)

    def test_without_nvrtc_every_kernel_fails_and_the_path_is_named_field_37(self):
        text = self.run_kiln("warm", *SMALL, "--arch", "sm_90", "--cache", self.cache,
                             env={"KILN_NVRTC": "/nowhere/libnvrtc.so"})

        self.assertEqual(text.returncode, 1)
        self.assertEqual(text.stdout.decode().splitlines()[-1],
                         f"0 compiled, 0 cached, {self.kernels()} failed")
        self.assertIn("/nowhere/libnvrtc.so", text.stderr.decode())
        self.assertEqual(self.entries(), [])

    def test_a_warm_cache_needs_no_nvrtc(self):
        n = self.kernels()
        self.warm(*SMALL, "--arch", "sm_90")
        self.env["KILN_NVRTC"] = "/nowhere/libnvrtc.so"

        self.assertEqual(self.warm(*SMALL, "--arch", "sm_90"), (0, n, 0))

    def test_eight_processes_warm_one_empty_cache_field_51(self):
        calls = [subprocess.Popen(
            [KILN, "warm", *map(str, SMALL), "--arch", "sm_90", "--cache", self.cache],
            env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(8)]
        outputs = [call.communicate(timeout=120)[0].decode() for call in calls]

        self.assertEqual([call.returncode for call in calls], [0] * 8, outputs)
        self.assertEqual(len(self.entries()), self.kernels())
        self.kiln("check", "--cache", self.cache)
        self.assertEqual(self.warm(*SMALL, "--arch", "sm_90"), (0, self.kernels(), 0))

    def test_a_killed_warming_leaves_a_cache_that_verifies_field_51(self):
        for pause_s in (0.05, 0.1, 0.2, 0.3):
            call = subprocess.Popen(
                [KILN, "warm", *map(str, SMALL), "--arch", "sm_90,sm_100", "--cache", self.cache],
                env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(pause_s)
            call.send_signal(signal.SIGKILL)
            call.wait(timeout=120)
            if pathlib.Path(self.cache).is_dir():
                self.kiln("check", "--cache", self.cache)

        self.warm(*SMALL, "--arch", "sm_90,sm_100")
        self.kiln("check", "--cache", self.cache)


cli_support.main()
