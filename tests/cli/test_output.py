# SPDX-License-Identifier: Apache-2.0
"""What is printed, and that output nobody received is never success."""

import json
import os
import resource
import subprocess

import cli_support
from cli_support import DATA, DEPLOYMENT, KILN, CliTest, WarmCacheTest

TOPK = ("global_topk", "topk=512", "block_size=64", "table_width=4096")


class Emit(CliTest):
    def test_the_same_shape_prints_the_same_bytes(self):
        self.assertEqual(self.kiln("emit", *TOPK), self.kiln("emit", *TOPK))

    def test_the_order_of_fields_and_defaults_change_nothing(self):
        self.assertEqual(self.kiln("emit", *TOPK),
                         self.kiln("emit", "global_topk", "table_width=4096", "topk_stride=512",
                                   "dcp_world=1", "block_size=64", "topk=512"))

    def test_another_shape_is_another_source(self):
        self.assertNotEqual(self.kiln("emit", *TOPK),
                            self.kiln("emit", *TOPK[:1], "topk=1024", *TOPK[2:]))

    def test_a_source_is_whole_and_names_no_path_field_45(self):
        text = self.kiln("emit", *TOPK)

        self.assertNotIn("#include", text)
        self.assertNotIn(str(DATA.parent), text)
        self.assertIn("#line", text)
        self.assertIn('extern "C" __global__', text)
        self.assertTrue(text.endswith("\n"))


class Output(CliTest):
    CASE = DATA / "cases" / "global_topk-100-000.json"

    def calls(self):
        return (["--help"], ["--version"], ["plan", *DEPLOYMENT], ["plan", *DEPLOYMENT, "--json"],
                ["emit", *TOPK], ["run", self.CASE], ["run", self.CASE, "--json"], ["doctor"])

    def test_a_full_disk_is_an_error(self):
        for call in self.calls():
            with self.subTest(cli_support.shown(call)), open("/dev/full", "wb") as full:
                done = self.run_kiln(*call, stdout=full)

                self.assertEqual(done.returncode, 1)
                self.assertIn(b"kiln: error: standard output: No space left on device\n",
                              done.stderr)

    def test_a_closed_output_is_an_error(self):
        for call in self.calls():
            with self.subTest(cli_support.shown(call)):
                done = self.run_kiln(*call, stdout=None, preexec_fn=lambda: os.close(1))

                self.assertEqual(done.returncode, 1)
                self.assertIn(b"kiln: error: standard output: ", done.stderr)

    def test_a_reader_that_left_is_an_error_and_no_signal(self):
        for call in self.calls():
            with self.subTest(cli_support.shown(call)):
                reader, writer = os.pipe()
                os.close(reader)
                with os.fdopen(writer, "wb") as pipe:
                    done = self.run_kiln(*call, stdout=pipe)

                self.assertEqual(done.returncode, 1)

    def test_a_file_at_its_size_limit_is_an_error_and_no_signal(self):
        for call in self.calls():
            with self.subTest(cli_support.shown(call)), open(self.tmp / "out", "wb") as out:
                done = self.run_kiln(*call, stdout=out, preexec_fn=lambda: resource.setrlimit(
                    resource.RLIMIT_FSIZE, (5, 5)))

                self.assertEqual(done.returncode, 1)
                self.assertIn(b"kiln: error: standard output: File too large\n", done.stderr)

    def test_output_is_the_same_in_every_locale_field_46(self):
        calls = [call for call in self.calls() if call != ["doctor"]]
        plain = [self.kiln(*call) for call in calls]
        self.env.update(LC_ALL="de_DE.UTF-8", LC_NUMERIC="de_DE.UTF-8")

        self.assertEqual([self.kiln(*call) for call in calls], plain)

    def test_no_escape_sequences_are_printed(self):
        for call in self.calls():
            done = self.run_kiln(*call)

            self.assertNotIn(b"\x1b", done.stdout + done.stderr)

    def test_doctor_names_nvrtc_driver_and_cache(self):
        done = self.run_kiln("doctor", "--json")
        topics = {json.loads(line)["topic"] for line in done.stdout.splitlines()}

        self.assertLessEqual({"nvrtc", "driver", "cache"}, topics)

    def test_json_can_quote_a_path_that_is_not_utf_8(self):
        done = self.run_kiln("doctor", "--json", env={"KILN_NVRTC": b"/nowhere/\xff\x01\"lib.so"})
        texts = [json.loads(line)["text"] for line in done.stdout.splitlines()]

        self.assertIn('/nowhere/?\x01"lib.so', " ".join(texts))

    def test_doctor_fails_where_nvrtc_is_amiss_field_38(self):
        done = self.run_kiln("doctor", env={"KILN_NVRTC": "/nowhere/libnvrtc.so"})

        self.assertEqual(done.returncode, 1)
        self.assertIn(b"/nowhere/libnvrtc.so", done.stdout)
        self.assertIn(b"kiln: error: doctor: ", done.stderr)


class ClosedStreams(WarmCacheTest):
    def test_closed_streams_never_become_a_cache_entry(self):
        self.entries()[0].unlink()

        done = subprocess.run(
            f"exec '{KILN}' warm {' '.join(cli_support.SMALL)} --arch sm_90 "
            f"--cache {self.cache} 0<&- 1>&- 2>&-", shell=True, env=self.env, check=False)

        self.assertEqual(done.returncode, 1)
        self.kiln("check", "--cache", self.cache)


cli_support.main()
