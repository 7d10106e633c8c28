# SPDX-License-Identifier: Apache-2.0
"""`kiln plan`: what a deployment launches, and what does not change it."""

import json
import os
import resource
import threading

import cli_support
from cli_support import DATA, DEPLOYMENT, FLASH, CliTest

# the given lists, and the calls that must give them
GIVEN = (
    ("deepseek-v4-flash-1048576.jsonl", DEPLOYMENT),
    ("glm-5-131072.jsonl",
     ("--model", DATA / "models" / "glm-5.json", "--max-model-len", "131072",
      "--max-num-batched-tokens", "8192")),
    ("ratios-0-1-2-262144-block128-spec5.jsonl",
     ("--model", DATA / "models" / "ratios-0-1-2.json", "--max-model-len", "262144",
      "--max-num-batched-tokens", "8192", "--block-size", "128", "--num-speculative-tokens", "5")),
)


def canonical(lines, *fields):
    return sorted(json.dumps({k: line[k] for k in fields}, sort_keys=True) for line in lines)


def shapes(lines):
    return canonical(lines, "op", "shape")


class Plan(CliTest):
    def flash(self, model_len, *flags, tokens="8192"):
        return self.plan("--model", FLASH, "--max-model-len", model_len,
                         "--max-num-batched-tokens", tokens, *flags)

    def test_plans_are_the_given_lists_field_62(self):
        for name, call in GIVEN:
            with self.subTest(name):
                given = [json.loads(line)
                         for line in (DATA / "plans" / name).read_text().splitlines()]

                lines = self.plan(*call)

                self.assertEqual(canonical(lines, "op", "shape", "layers"),
                                 canonical(given, "op", "shape", "layers"))

    def test_a_line_has_the_documented_fields_in_order(self):
        for line in self.plan(*DEPLOYMENT):
            self.assertEqual(list(line), ["op", "shape", "supported", "layers", "rows", "bytes"])
            self.assertIs(type(line["supported"]), bool)
            self.assertGreater(line["rows"], 0)
            self.assertGreater(line["bytes"], 0)

    def test_each_op_and_shape_is_listed_once(self):
        for _, call in GIVEN:
            lines = shapes(self.plan(*call))

            self.assertEqual(len(lines), len(set(lines)))

    def test_what_all_layers_share_is_launched_once_a_step_field_24(self):
        shared = {"token_to_req": 1, "is_valid_token": 1, "gather_lens": 1, "c128a_topk": 1,
                  "swa_indices": 1, "step": 1}
        for model in sorted((DATA / "models").glob("*.json")):
            with self.subTest(model.name):
                lines = self.plan("--model", model, "--max-model-len", "65536",
                                  "--max-num-batched-tokens", "8192")

                for op, most in shared.items():
                    launches = sum(line["layers"] for line in lines if line["op"] == op)
                    self.assertLessEqual(launches, most, op)
                # a ratio with indexer has two caches, whatever the number of its layers
                for line in lines:
                    if line["op"] == "compressed_slots":
                        self.assertLessEqual(line["layers"], 2)

    def test_the_same_call_prints_the_same_bytes(self):
        self.assertEqual(self.kiln("plan", *DEPLOYMENT, "--json"),
                         self.kiln("plan", *DEPLOYMENT, "--json"))

    def test_batch_sizes_change_no_shape_field_15_60(self):
        usual = shapes(self.flash("1048576"))

        self.assertEqual(shapes(self.flash("1048576", tokens="16384")), usual)
        self.assertEqual(shapes(self.flash("1048576", "--max-num-seqs", "12")), usual)

    def test_the_exact_context_length_is_in_no_shape_field_14(self):
        self.assertEqual(shapes(self.flash("1048576")), shapes(self.flash("1048575")))
        self.assertEqual(shapes(self.flash("1048576")), shapes(self.flash("1048513")))
        self.assertNotEqual(shapes(self.flash("1048576")), shapes(self.flash("1040000")))

    def test_keys_of_a_config_that_do_not_matter_change_nothing(self):
        config = json.loads((DATA / "models" / "deepseek-v4-flash.json").read_text())
        config.update(frob=[1, {"x": None}], torch_dtype="float16", vocab_size=1.5)
        config = dict(reversed(config.items()))
        model = self.write("config.json", config)

        self.assertEqual(self.kiln("plan", "--model", model, *DEPLOYMENT[2:], "--json"),
                         self.kiln("plan", *DEPLOYMENT, "--json"))

    def test_flags_at_their_defaults_change_nothing(self):
        defaults = ("--max-num-seqs=256", "--block-size=256", "--num-speculative-tokens=0",
                    "--dcp-world=1", "--dcp-interleave=1", "--dcp-storage=sharded",
                    "--image-width=0", "--profile=flashmla")

        self.assertEqual(self.kiln("plan", *DEPLOYMENT, *defaults, "--json"),
                         self.kiln("plan", *DEPLOYMENT, "--json"))

    def test_speculative_tokens_add_draft_rows_and_a_draft_window(self):
        plain = self.flash("1048576")
        draft = self.flash("1048576", "--num-speculative-tokens", "5")
        added = [line for line in draft if line["shape"] not in [p["shape"] for p in plain]]
        rows = {line["op"]: line["rows"] for line in draft}

        self.assertEqual([(a["op"], a["shape"]["causal"], a["shape"]["index_width"])
                          for a in added], [("swa_indices", False, 192)])
        self.assertEqual(rows["global_topk"], 256 * 6)

    def test_image_columns_widen_rows_and_add_their_op(self):
        ops = [line["op"] for line in self.flash("1048576")]
        wide = self.flash("1048576", "--image-width", "64")

        self.assertEqual(sorted([*ops, "image_visibility"]), sorted(line["op"] for line in wide))

    def test_ranks_share_the_table(self):
        line = next(x for x in self.flash("1048576", "--dcp-world", "4")
                    if x["op"] == "global_topk")

        self.assertEqual((line["shape"]["dcp_world"], line["shape"]["table_width"]), (4, 1024))

    def test_the_profile_aligns_combined_rows(self):
        rows = {profile: [line["shape"] for line in
                          self.flash("8192", "--image-width", "65", "--profile", profile)
                          if line["op"] == "combine_topk_swa" and line["shape"]["topk"] == 512]
                for profile in ("flashmla", "flashinfer")}

        self.assertEqual([(s["align"], s["combined_stride"]) for s in rows["flashmla"]],
                         [(128, 768)])
        self.assertEqual([(s["align"], s["combined_stride"]) for s in rows["flashinfer"]],
                         [(4, 708)])

    def test_rows_that_the_consumer_cannot_take_are_an_error_field_4(self):
        config = json.loads((DATA / "models" / "deepseek-v4-flash.json").read_text())
        model = self.write("odd.json", {**config, "index_topk": 17})
        call = ("--model", model, *DEPLOYMENT[2:], "--arch", "sm_90")

        for command in ("plan", "warm", "check"):
            for profile, wrong in (("flashmla", "width = 17: expected a multiple of 64"),
                                   ("flashinfer", "slots_stride = 17: expected a multiple of 4")):
                with self.subTest(command=command, profile=profile):
                    self.assert_fails(
                        2, f"--profile is {profile} and index_topk 17: {profile} cannot take "
                        f"slots of global_topk: {wrong}", command, *call, "--profile", profile)

    def test_the_table_for_people_totals_the_kernels_and_buffers(self):
        text = self.kiln("plan", *DEPLOYMENT)
        lines = self.plan(*DEPLOYMENT)
        # a ratio's main cache and its indexer's each have slots of their own
        sets = {"compressed_slots": lambda x: x["layers"], "step": lambda x: 0}
        mib = sum(x["bytes"] * sets.get(x["op"], lambda x: 1)(x) for x in lines) / 2**20
        missing = sum(not x["supported"] for x in lines)

        self.assertEqual(len(text.splitlines()), len(lines) + 2)
        self.assertEqual(text.splitlines()[-1],
                         f"{len(lines)} kernels, {missing} of them not in this kiln yet; "
                         f"{mib:.2f} MiB of buffers")


class Manifest(CliTest):
    FLAGS = (*DEPLOYMENT, "--max-num-seqs", "64", "--num-speculative-tokens", "2",
             "--dcp-world", "2", "--dcp-interleave", "2", "--dcp-storage", "replicated",
             "--image-width", "64", "--profile", "flashinfer")

    def test_a_manifest_holds_everything_that_changes_a_plan(self):
        text = self.kiln("plan", *self.FLAGS, "--arch", "sm_90,sm_100", "--json",
                         "--manifest-out", "m.json")

        self.assertEqual(self.kiln("plan", "--manifest", "m.json", "--json"), text)

    def test_a_manifest_written_from_a_manifest_is_the_same_file(self):
        self.kiln("plan", *self.FLAGS, "--arch", "sm_90,sm_100", "--manifest-out", "a.json")
        self.kiln("plan", "--manifest", "a.json", "--manifest-out", "b.json")

        self.assertEqual((self.tmp / "a.json").read_bytes(), (self.tmp / "b.json").read_bytes())

    def test_arch_replaces_the_targets_of_a_manifest(self):
        self.kiln("plan", *self.FLAGS, "--arch", "sm_90", "--manifest-out", "a.json")
        self.kiln("plan", "--manifest", "a.json", "--arch", "sm_120", "--manifest-out", "b.json")
        a, b = (json.loads((self.tmp / x).read_text()) for x in ("a.json", "b.json"))

        self.assertEqual((a.pop("targets"), b.pop("targets")), (["sm_90"], ["sm_120"]))
        self.assertEqual(a, b)

    def test_a_manifest_replaces_a_file_whole_and_leaves_no_other(self):
        self.write("m.json", "x" * 1_000_000)

        self.kiln("plan", *self.FLAGS, "--manifest-out", "m.json")

        json.loads((self.tmp / "m.json").read_text())
        self.assertEqual(sorted(p.name for p in self.tmp.iterdir()), ["home", "m.json"])

    def test_a_manifest_keeps_the_permissions_of_the_file_that_it_replaces(self):
        os.chmod(self.write("m.json", "old"), 0o600)

        self.kiln("plan", *self.FLAGS, "--manifest-out", "m.json")

        self.assertEqual((self.tmp / "m.json").stat().st_mode & 0o777, 0o600)

    def test_a_manifest_goes_where_a_link_leads_and_the_link_stays(self):
        (self.tmp / "sub").mkdir()
        self.write("sub/old.json", "old")
        for link, to in (("old", "sub/old.json"), ("new", "sub/new.json"), ("far", "old")):
            with self.subTest(link):
                (self.tmp / link).symlink_to(to)

                self.kiln("plan", *self.FLAGS, "--manifest-out", link)

                self.assertEqual(os.readlink(self.tmp / link), to)
                json.loads((self.tmp / link).read_text())
        self.assertEqual(sorted(os.listdir(self.tmp / "sub")), ["new.json", "old.json"])

    def test_a_link_to_itself_is_an_error(self):
        (self.tmp / "link").symlink_to("link")

        self.assert_fails(1, "link: cannot be written", "plan", *self.FLAGS, "--manifest-out",
                          "link")

    def test_a_manifest_is_written_into_a_pipe(self):
        os.mkfifo(self.tmp / "pipe")
        read = []
        reader = threading.Thread(target=lambda: read.append((self.tmp / "pipe").read_text()),
                                  daemon=True)
        reader.start()

        self.kiln("plan", *self.FLAGS, "--manifest-out", "pipe")
        reader.join(timeout=60)

        self.assertTrue((self.tmp / "pipe").is_fifo())
        self.assertEqual(json.loads(read[0])["kiln_manifest"], 1)

    def test_a_manifest_over_the_size_limit_is_an_error_and_no_signal(self):
        done = self.run_kiln(
            "plan", *self.FLAGS, "--manifest-out", "m.json",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))

        self.assertEqual(done.returncode, 1)
        self.assertIn(b"kiln: error: m.json: cannot be written: File too large", done.stderr)
        self.assertEqual(os.listdir(self.tmp), ["home"])

    def test_an_edit_that_changes_no_shape_leaves_a_good_manifest(self):
        self.kiln("plan", *self.FLAGS, "--arch", "sm_90", "--manifest-out", "m.json")
        manifest = json.loads((self.tmp / "m.json").read_text())
        manifest["deployment"]["max_num_seqs"] += 1
        manifest["targets"] = ["sm_120"]
        self.write("m.json", manifest)

        self.kiln("plan", "--manifest", "m.json", "--manifest-out", "again.json")

        again = json.loads((self.tmp / "again.json").read_text())
        self.assertEqual(again["digest"], manifest["digest"])

    def test_targets_are_checked_without_a_compiler(self):
        self.kiln("plan", *self.FLAGS, "--arch", "sm_90", env={"KILN_NVRTC": "relative.so"})

    def test_a_manifest_names_no_path_field_45(self):
        self.kiln("plan", *self.FLAGS, "--manifest-out", "m.json")

        self.assertNotIn("/", (self.tmp / "m.json").read_text())


cli_support.main()
