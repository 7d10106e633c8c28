# SPDX-License-Identifier: Apache-2.0
"""`kiln check`, `list` and `trim`: a cache is whole and complete, or says what it lacks."""

import json
import os
import shutil

import cli_support
from cli_support import SMALL, WarmCacheTest


class Check(WarmCacheTest):
    def setUp(self):
        super().setUp()
        self.kiln("plan", *SMALL, "--arch", "sm_90", "--manifest-out", "m.json")
        self.n = len(self.entries())

    def test_a_warm_cache_is_complete_without_nvrtc_field_61(self):
        text = self.kiln("check", "--cache", self.cache, "--plan", "m.json",
                         env={"KILN_NVRTC": "/nowhere/libnvrtc.so"})

        self.assertEqual(text.splitlines()[-2:], [f"{self.n} kernels planned, 0 missing",
                                                  f"{self.n} entries, 0 faulty"])

    def test_what_is_planned_and_unsupported_is_one_line_each(self):
        lines = self.kiln("check", "--cache", self.cache, "--plan", "m.json").splitlines()

        unsupported = [x["op"] for x in self.plan(*SMALL) if not x["supported"]]
        self.assertEqual([line.split()[:2] for line in lines[:-2]],
                         [["unsupported", op] for op in unsupported])

    def test_every_kind_of_damage_is_named_and_rebuilt_field_51(self):
        entry = self.entries()[0]
        whole = entry.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        last = bytearray(whole)
        last[-1] ^= 0x80

        for label, data in (("flipped", flipped), ("last byte", last), ("cut", whole[:-100]),
                            ("cut to the head", whole[:16]), ("empty", b""),
                            ("longer", whole + b"\0"), ("zeros", bytes(len(whole))),
                            ("padded", whole[:-4096] + bytes(4096)),
                            ("of another kernel", self.entries()[1].read_bytes())):
            with self.subTest(label):
                entry.write_bytes(data)
                lines = self.errors("check", "--cache", self.cache, rc=1)
                self.assertEqual(len(lines), 1, lines)
                self.assertIn(entry.name, lines[0])
                self.assertEqual(self.warm(*SMALL, "--arch", "sm_90"), (1, self.n - 1, 0))
                self.kiln("check", "--cache", self.cache)

    def test_a_damaged_kernel_is_missing_from_the_plan_too(self):
        self.entries()[0].write_bytes(b"")

        lines = self.errors("check", "--cache", self.cache, "--plan", "m.json", rc=1)

        self.assertEqual(len(lines), 2, lines)
        self.assertIn("missing: ", lines[1])

    def test_missing_kernels_are_named_one_by_one_field_62(self):
        text = self.run_kiln("check", "--cache", self.cache, "--plan", "m.json", "--arch",
                             "sm_90,sm_100")

        lines = text.stderr.decode().splitlines()
        self.assertEqual(text.returncode, 1)
        self.assertEqual(len(lines), self.n)
        for line in lines:
            self.assertRegex(line, r"\Akiln: error: missing: \w+ sm_100 \w+=")
        self.assertIn(f"{2 * self.n} kernels planned, {self.n} missing", text.stdout.decode())

    def test_flags_say_a_plan_as_well_as_a_manifest(self):
        self.kiln("check", "--cache", self.cache, *SMALL, "--arch", "sm_90")
        self.assert_fails(2, "--arch: missing", "check", "--cache", self.cache, *SMALL)

    def test_an_empty_folder_is_no_fault_until_a_plan_needs_it(self):
        empty = self.tmp / "empty"
        empty.mkdir()

        self.assertIn("0 entries, 0 faulty", self.kiln("check", "--cache", empty))
        self.assertEqual(len(self.errors("check", "--cache", empty, "--plan", "m.json", rc=1)),
                         self.n)

    def test_a_folder_that_does_not_exist_is_a_fault(self):
        self.assert_fails(1, "gone", "check", "--cache", self.tmp / "gone")
        self.assert_fails(1, "gone", "check", "--cache", f"{self.cache}:{self.tmp / 'gone'}",
                          "--plan", "m.json")

    def test_a_plan_may_be_spread_over_folders_field_59(self):
        other = self.tmp / "other"
        shutil.copytree(self.cache, other)
        for entry in self.entries()[:2]:
            entry.unlink()
        for entry in sorted(other.rglob("*.kiln"))[2:]:
            entry.unlink()

        self.errors("check", "--cache", self.cache, "--plan", "m.json", rc=1)
        self.kiln("check", "--cache", f"{self.cache}:{other}", "--plan", "m.json")

    def test_an_entry_that_is_no_file_is_called_that(self):
        entry = self.entries()[0]
        makers = (entry.mkdir, lambda: os.mkfifo(entry), lambda: entry.symlink_to("/dev/null"))
        for make, undo in zip(makers, (entry.rmdir, entry.unlink, entry.unlink)):
            entry.unlink(missing_ok=True)
            make()

            self.assert_fails(1, f"{entry.name}: it is not a regular file", "check", "--cache",
                              self.cache)
            undo()

    def test_a_link_to_a_folder_is_refused_however_it_is_written_field_57(self):
        (self.tmp / "link").symlink_to(self.cache)

        for name in ("link", "link/", "link//", "link/.", "link/./", self.tmp / "link/"):
            for env, call in (({}, ["check", "--cache", f"{name}"]),
                              ({"KILN_CACHE_DIR": f"{self.tmp / 'link'}/."}, ["check"])):
                self.assert_fails(1, "not a link to one", *call, env=env)
        self.kiln("check", "--cache", self.cache + "/./")

    def test_a_folder_that_others_can_write_is_a_fault_field_57(self):
        os.chmod(self.cache, 0o777)

        self.assert_fails(1, self.cache, "check", "--cache", self.cache)


class ListAndTrim(WarmCacheTest):
    def test_list_shows_every_entry(self):
        lines = self.kiln("list", "--cache", self.cache).splitlines()
        n = len(self.entries())
        size = sum(p.stat().st_size for p in self.entries())

        self.assertEqual(len(lines), n + 2)
        self.assertEqual(lines[-1], f"{n} entries, 0 faulty, {size} bytes")
        for entry in self.entries():
            self.assertIn(entry.name, "\n".join(lines))

    def test_list_json_holds_the_key(self):
        for line in self.kiln("list", "--cache", self.cache, "--json").splitlines():
            entry = json.loads(line)
            self.assertEqual(entry["target"], "sm_90")
            self.assertIn(f"op={entry['op']}\n", entry["key"])

    def test_list_names_a_faulty_entry(self):
        self.entries()[0].write_bytes(b"x")

        self.assert_fails(1, self.entries()[0].name, "list", "--cache", self.cache)

    def test_trim_deletes_the_oldest_until_it_fits(self):
        size = sum(p.stat().st_size for p in self.entries())
        oldest = self.entries()[-1]
        os.utime(oldest, (1, 1))

        self.assertIn("0 removed", self.kiln("trim", "--max-bytes", size, "--cache", self.cache))
        self.assertIn("1 removed", self.kiln("trim", "--max-bytes", size - 1, "--cache",
                                             self.cache))
        self.assertFalse(oldest.exists())
        self.kiln("trim", "--max-bytes", "0", "--cache", self.cache)
        self.assertEqual(self.entries(), [])

    def test_trim_names_a_folder_that_is_not_there(self):
        self.assert_fails(1, "gone", "trim", "--max-bytes", "0", "--cache", self.tmp / "gone")
        self.assert_fails(1, "gone", "list", "--cache", self.tmp / "gone")


cli_support.main()
