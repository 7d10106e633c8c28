# SPDX-License-Identifier: Apache-2.0
"""Calls that are wrong: exit status 2 and one line that names what is."""

import cli_support
from cli_support import DEPLOYMENT, FLASH, CliTest

TOPK = ("topk=4", "block_size=2", "table_width=4")
# each op's outputs have an address, all together do not
HUGE = ("--model", FLASH, "--max-model-len", "1048576", "--max-num-batched-tokens", "2147483647",
        "--image-width", "1000000000")
MANIFEST = "manifest.json"   # written by setUp, with no targets

# (what stands in the message, the call)
CALLS = (
    ("no command", []),
    ("frob: no such command", ["frob"]),
    ("--frob: no such command", ["--frob"]),
    ("frob: no such command", ["help", "frob"]),
    ("now: unexpected argument", ["help", "plan", "now"]),
    ("x: unexpected argument", ["--version", "x"]),
    ("--json: unexpected argument", ["--version", "--json"]),
    ("pack: not in this kiln yet", ["pack", "file"]),
    ("unpack: not in this kiln yet", ["unpack", "file"]),
    # deployments
    ("--model: missing", ["plan"]),
    ("--max-model-len: missing", ["plan", "--model", FLASH]),
    ("--max-num-batched-tokens: missing", ["plan", "--model", FLASH, "--max-model-len", "8192"]),
    ("extra: unexpected argument", ["plan", *DEPLOYMENT, "extra"]),
    ("--nope: no such flag", ["plan", *DEPLOYMENT, "--nope"]),
    ("-x: no such flag", ["plan", *DEPLOYMENT, "-x"]),
    ("--json: given twice", ["plan", *DEPLOYMENT, "--json", "--json"]),
    ("--model: given twice", ["plan", *DEPLOYMENT, "--model=x"]),
    ("--json: takes no value", ["plan", *DEPLOYMENT, "--json=1"]),
    ("--max-model-len: expected a value", ["plan", "--model", FLASH, "--max-model-len"]),
    ("--model: expected a value", ["plan", "--model="]),
    ("--max-num-seqs: expected an integer from 1", ["plan", *DEPLOYMENT, "--max-num-seqs", "0"]),
    ('got "8k"', ["plan", *DEPLOYMENT, "--max-num-seqs", "8k"]),
    ('got "1.5"', ["plan", *DEPLOYMENT, "--max-num-seqs", "1.5"]),
    ('got "0x10"', ["plan", *DEPLOYMENT, "--max-num-seqs", "0x10"]),
    ('got ""', ["plan", *DEPLOYMENT, "--max-num-seqs", ""]),
    ('got " 8"', ["plan", *DEPLOYMENT, "--max-num-seqs", " 8"]),
    ('got "-"', ["plan", *DEPLOYMENT, "--max-num-seqs", "-"]),
    ('got "99999999999999999999"', ["plan", *DEPLOYMENT, "--max-num-seqs=99999999999999999999"]),
    ("--block-size", ["plan", *DEPLOYMENT, "--block-size", "0"]),
    ("--block-size", ["plan", *DEPLOYMENT, "--block-size", "100"]),
    ("--block-size", ["plan", *DEPLOYMENT, "--block-size", "192"]),
    ("--num-speculative-tokens", ["plan", *DEPLOYMENT, "--num-speculative-tokens", "-1"]),
    ("--dcp-world", ["plan", *DEPLOYMENT, "--dcp-world", "0"]),
    ("--dcp-interleave", ["plan", *DEPLOYMENT, "--dcp-interleave", "3"]),
    ("--dcp-interleave", ["plan", *DEPLOYMENT, "--dcp-interleave", "4"]),
    ("--dcp-storage: expected sharded or replicated",
     ["plan", *DEPLOYMENT, "--dcp-storage", "split"]),
    ('--profile: expected flashmla or flashinfer, got "flash"',
     ["plan", *DEPLOYMENT, "--profile", "flash"]),
    ("--profile: sglang is not in this kiln yet, expected flashmla or flashinfer",
     ["plan", *DEPLOYMENT, "--profile", "sglang"]),
    ("--profile: b12x is not in this kiln yet",
     ["warm", *DEPLOYMENT, "--profile", "b12x", "--arch", "sm_120"]),
    ("--profile: flashinfer_sm120 is not in this kiln yet",
     ["check", *DEPLOYMENT, "--profile", "flashinfer_sm120", "--arch", "sm_120"]),
    ("--image-width", ["plan", *DEPLOYMENT, "--image-width", "-1"]),
    ("--image-width is 2147483647", ["plan", *DEPLOYMENT, "--image-width", "2147483647"]),
    ("sm_99", ["plan", *DEPLOYMENT, "--arch", "sm_99"]),
    ("compute_90", ["plan", *DEPLOYMENT, "--arch", "compute_90"]),
    ("native", ["warm", *DEPLOYMENT, "--arch", "native"]),
    ('target "sm_?90"', ["plan", *DEPLOYMENT, "--arch", "sm_\x1b90"]),
    ("--arch", ["plan", *DEPLOYMENT, "--arch", ""]),
    ("--arch", ["plan", *DEPLOYMENT, "--arch", "sm_90,"]),
    ("--arch", ["plan", *DEPLOYMENT, "--arch", "sm_" + "9" * 40]),
    ("sm_90 is given twice", ["plan", *DEPLOYMENT, "--arch", "sm_90,sm_100,sm_90"]),
    ("--max-model-len: cannot be given with --manifest",
     ["plan", "--manifest", MANIFEST, "--max-model-len", "8"]),
    ("--manifest-out: expected a value", ["plan", *DEPLOYMENT, "--manifest-out"]),
    # each number that makes outputs too large is named
    ("--num-speculative-tokens 2147483400",
     ["plan", *DEPLOYMENT, "--max-num-seqs", "1", "--num-speculative-tokens", "2147483400"]),
    *(("all ops together would pass 2^63",
       ["plan", *HUGE, *flags]) for flags in ((), ("--json",), ("--manifest-out", "huge.json"))),
    # warm, check, list, trim
    ("--arch: missing", ["warm", *DEPLOYMENT]),
    ("--arch: missing, and manifest.json names no targets", ["warm", "--manifest", MANIFEST]),
    ("--jobs", ["warm", *DEPLOYMENT, "--arch", "sm_90", "--jobs", "0"]),
    ("--jobs", ["warm", *DEPLOYMENT, "--arch", "sm_90", "--jobs", "many"]),
    ("--json: no such flag", ["warm", *DEPLOYMENT, "--arch", "sm_90", "--json"]),
    ("--arch: expected --plan", ["check", "--arch", "sm_90"]),
    ("names no targets", ["check", "--plan", MANIFEST]),
    ("--plan: cannot be given with --manifest",
     ["check", "--plan", MANIFEST, "--manifest", MANIFEST]),
    ("--cache", ["check", "--cache", ""]),
    ("--cache: an empty folder name", ["check", "--cache", "a::b"]),
    ("--cache: an empty folder name", ["check", "--cache", "a:"]),
    ("expected one folder", ["warm", *DEPLOYMENT, "--arch", "sm_90", "--cache", "a:b"]),
    ("expected one folder", ["list", "--cache", "a:b"]),
    ("expected one folder", ["trim", "--max-bytes", "0", "--cache", "a:b"]),
    ("expected one folder", ["doctor", "--cache", "a:b"]),
    ("expected one folder", ["run", "--on", "cpu", "--cache", "a:b", "missing.json"]),
    ("here: unexpected argument", ["list", "here"]),
    ("--max-bytes: missing", ["trim"]),
    ("--max-bytes", ["trim", "--max-bytes", "-1"]),
    ("--max-bytes", ["trim", "--max-bytes", "1k"]),
    ("me: unexpected argument", ["doctor", "me"]),
    # emit
    ("no op given", ["emit"]),
    ("frob: no such op; expected one of global_topk", ["emit", "frob"]),
    ("step: not in this kiln yet", ["emit", "step"]),
    ("topk", ["emit", "global_topk"]),
    ("frob: unknown field; global_topk has topk", ["emit", "global_topk", *TOPK, "frob=1"]),
    ("topk: given twice", ["emit", "global_topk", *TOPK, "topk=4"]),
    ("topk: expected field=value", ["emit", "global_topk", "topk"]),
    ('topk: expected an integer, got "four"', ["emit", "global_topk", "topk=four"]),
    ('topk: expected an integer, got "1.5"', ["emit", "global_topk", "topk=1.5"]),
    ('topk: expected an integer, got ""', ["emit", "global_topk", "topk="]),
    ("topk", ["emit", "global_topk", "topk=0", "block_size=2", "table_width=4"]),
    ("topk", ["emit", "global_topk", "topk=2147483648", "block_size=2", "table_width=4"]),
    ("slots_stride", ["emit", "global_topk", *TOPK, "slots_stride=3"]),
    ("dcp_interleave", ["emit", "global_topk", *TOPK, "dcp_world=2", "dcp_interleave=3"]),
    ("--json: no such flag", ["emit", "global_topk", *TOPK, "--json"]),
    # run, bench
    ("no case file given", ["run"]),
    ('--on: "nowhere"', ["run", "--on", "nowhere", "missing.json"]),
    ("--on: expected a value", ["run", "missing.json", "--on"]),
    ("frob: nothing to time", ["bench", "frob"]),
)


class BadCalls(CliTest):
    def test_every_wrong_call_exits_2_and_says_why_in_one_line(self):
        self.kiln("plan", *DEPLOYMENT, "--manifest-out", MANIFEST)

        for needle, args in CALLS:
            with self.subTest(cli_support.shown(args)):
                self.assert_fails(2, needle, *args)

        self.assertEqual(sorted(p.name for p in self.tmp.iterdir()), ["home", MANIFEST])

    def test_messages_are_one_line_whatever_the_arguments_hold(self):
        self.assert_fails(2, "no such command", "two\nlines\x1b[31m\r")
        self.assert_fails(2, "no such op", "emit", "x" * 100000)
        self.assert_fails(2, "no such command", "y" * 4096)


class Help(CliTest):
    COMMANDS = ("plan", "warm", "check", "list", "trim", "emit", "run", "bench", "doctor")

    def test_the_overview_lists_every_command(self):
        for call in (["--help"], ["help"], ["-h"]):
            text = self.kiln(*call)

            for command in self.COMMANDS:
                self.assertIn(f"\n  {command} ", text)

    def test_every_command_explains_itself_either_way(self):
        for command in self.COMMANDS:
            text = self.kiln("help", command)

            self.assertTrue(text.startswith(f"usage: kiln {command}"), text)
            self.assertEqual(text, self.kiln(command, "--help"))
            self.assertEqual(text, self.kiln(command, "--frob", "-h"))

    def test_the_version_is_one_line(self):
        self.assertRegex(self.kiln("--version"), r"\Akiln \d+\.\d+\.\d+\n\Z")


cli_support.main()
