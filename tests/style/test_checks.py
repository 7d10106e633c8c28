#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each check of tools/ catches the fault it is there for, and is silent about a clean tree."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = ROOT / "tools"
SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
MACHINE_PATH = "/" + "root/x"



def field_table(shown=None, without=None):
    """docs/field-cases.md, where other rows say that no test shows the case."""
    rows = {case: "not shown by a test: the caller's" for case in range(1, 76)}
    rows.update({51: "`b_gives_zero_field_51`", **(shown or {})})
    return "# Field cases\n\n| case | what | shown by |\n|---|---|---|\n" + "".join(
        f"| {case} | it broke | {text} |\n" for case, text in rows.items() if case != without)


CLEAN = {
    "docs/field-cases.md": field_table(),
    "include/kiln/a.h": SPDX + '#ifndef KILN_A_H\n#define KILN_A_H\n\n#ifdef __cplusplus\n'
    'extern "C" {\n#endif\n\n/** Say. Threads: any. Capture: allowed. @return 0 */\n'
    "KILN_API int kiln_say(int n);\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n",
    "src/base/b.h": SPDX + "int ki_b_get(int n);\n",
    "src/base/b.c": SPDX + '#include <stddef.h>\n\n#include "base/b.h"\n\n'
    "static const char *const names[] = {\"a\"};\n\nint ki_b_get(int n)\n{\n"
    "    return names[0] == NULL ? n : 0;\n}\n",
    "tests/meson.build": "# SPDX-License-Identifier: Apache-2.0\nsubdir('unit')\n",
    "tests/unit/meson.build": "# SPDX-License-Identifier: Apache-2.0\nunits = ['test_b']\n",
    "tests/unit/test_b.c": SPDX + "static void b_gives_zero_field_51(void **state)\n{\n"
    "    (void)state;\n}\n"
    "\nint main(void)\n{\n"
    "    const struct CMUnitTest tests[] = {cmocka_unit_test(b_gives_zero_field_51)};\n\n"
    "    return cmocka_run_group_tests(tests, 0, 0);\n}\n",
}


def function(body, head="int ki_f(int n)"):
    return f"{SPDX}{head}\n{{\n{body}}}\n"


def nested(depth):
    opens = "".join("    " * (i + 1) + "if (n) {\n" for i in range(depth))
    return opens + "".join("    " * (depth - i) + "}\n" for i in range(depth))


# (check, file, its text, what the check must say)
PLANTED = (
    ("layers", "src/base/x.c", SPDX + '#include "plan/key.h"\n', "not for this layer"),
    ("layers", "src/base/x.c", SPDX + '#include "prepare.h"\n', "not for this layer"),
    ("layers", "src/plan/x.c", SPDX + '#include "build/store.h"\n', "not for this layer"),
    ("layers", "src/build/x.c", SPDX + '#include "run/table.h"\n', "not for this layer"),
    ("layers", "src/build/x.c", SPDX + '#include "plan/source.h"\n', "not for this layer"),
    ("layers", "src/run/x.c", SPDX + '#include "build/cubin.h"\n', "not for this layer"),
    ("layers", "tools/kiln/x.c", SPDX + '#include "base/text.h"\n', "not for this layer"),
    ("layers", "src/kiln.c", SPDX + "#include <cuda.h>\n", "belongs in"),
    ("layers", "src/build/store.c", SPDX + "#include <nvrtc.h>\n", "belongs in"),
    ("layers", "src/plan/key.c", SPDX + "#include <sodium.h>\n", "belongs in"),
    ("layers", "src/base/x.c", SPDX + '#include "base/b.h"\n#include <stdio.h>\n', "too late"),
    ("layers", "src/base/x.c", SPDX + "#include <kiln/a.h>\n", "kiln's own"),
    ("layers", "src/base/x.h", SPDX + '#include "base/x.h"\n', "includes itself"),
    ("sizes", "src/x.c", SPDX + "int x;\n" * 700, "701 lines; at most 700"),
    ("sizes", "include/kiln/x.h", SPDX + "\n" * 400, "at most 400"),
    ("sizes", "kernels/templates/x.cu", SPDX + "\n" * 300, "at most 300"),
    ("sizes", "src/x.c", SPDX + "/* " + "x" * 98 + "\n*/\n", "101 columns; at most 100"),
    ("sizes", "src/x.c", function("    n++;\n" * 78), "ki_f has 81 lines; at most 80"),
    ("sizes", "src/x.c", function(nested(4)), "nests 4 deep"),
    ("sizes", "src/x.c", function("", "int ki_f(int a, int b, int c, int d, int e, int f, int g)"),
     "7 parameters"),
    ("sizes", "src/x.h", SPDX + "int ki_f(int a, int b, int c,\n  int d, int e, int f, int g);\n",
     "7 parameters"),
    ("sizes", "src/x.c", function("", "int ki_f(int a, void (*f)(int), int c, int d, int e,\n"
                                  "         int g, void *h, struct kiln_error *err)"),
     "ki_f has 7 parameters"),
    ("sizes", "src/x.c", function("#if X\n    n++;\n#endif\n"), "#if inside ki_f"),
    ("sizes", "src/x.c", function("    if (n) {\n        return 1;\n    } else {\n    }\n"),
     "else after a jump"),
    ("sizes", "src/x.c", SPDX + "static int count;\n", "mutable at file scope"),
    ("sizes", "src/x.c", SPDX + "static const char *name = 0;\n", "mutable at file scope"),
    ("sizes", "src/x.c", SPDX + "static struct ki_x cache[4];\n", "mutable at file scope"),
    ("headers", "include/kiln/x.h", SPDX + "KILN_API int kiln_x(void);\n", "no include guard"),
    ("headers", "include/kiln/x.h", SPDX + "KILN_API int kiln_x(void);\n", 'no extern "C"'),
    ("headers", "include/kiln/x.h", SPDX + "KILN_API int kiln_x(void);\n", "kiln_x has no /** */"),
    ("headers", "include/kiln/x.h",
     SPDX + "/** X. Threads: any. @return 0 */\nKILN_API int kiln_x(void);\n", "lacks Capture:"),
    ("headers", "include/kiln/x.h",
     SPDX + "/** X. Capture: no. @return 0 */\nKILN_API int kiln_x(void);\n", "lacks Threads:"),
    ("headers", "include/kiln/x.h",
     SPDX + "/** X. Threads: any. Capture: no. */\nKILN_API int kiln_x(void);\n", "lacks @return"),
    ("headers", "include/kiln/x.h", SPDX + "struct ki_secret;\n", "is internal"),
    ("mistakes", "src/x.c", function("    free(0);\n"), "base/mem"),
    ("mistakes", "src/x.c", function('    printf("x");\n'), "does not speak"),
    ("mistakes", "src/x.c", function("    exit(1);\n"), "does not leave"),
    ("mistakes", "src/base/x.c", function('    getenv("X");\n'), "kiln_create alone"),
    ("mistakes", "src/x.c", function('    setlocale(0, "");\n'), "does not change its process"),
    ("mistakes", "tools/kiln/x.c", function("    strcpy(a, b);\n"), "no length"),
    ("mistakes", "tools/kiln/x.c", function('    n = atoi("1");\n'), "silent about bad input"),
    ("mistakes", "tools/kiln/x.c", function('    system("ls");\n'), "a shell"),
    ("mistakes", "src/x.c", function("    ki_hash(&k, sizeof(struct k));\n"), "has padding"),
    ("mistakes", "src/x.c", SPDX + "typedef struct x x_t;\n", "spelled struct"),
    ("mistakes", "src/x.c", function("    n++; // why\n"), "// in C"),
    ("mistakes", "src/x.c", SPDX + "/* TO" + "DO: later */\n", "finish it"),
    ("mistakes", "src/x.c", function("\tn++;\n"), "a tab"),
    ("mistakes", "src/x.c", SPDX + "int x; \n", "a blank at the end"),
    ("mistakes", "src/x.c", SPDX + "int x;\r\n", "a carriage return"),
    ("mistakes", "src/x.c", SPDX + "int x;", "no newline at the end"),
    ("mistakes", "src/x.c", SPDX + f"/* {MACHINE_PATH} */\n", "a path of one machine"),
    ("mistakes", "docs/x.md", "See issue #" + "12.\n", "a tracker's number"),
    ("mistakes", "docs/x.md", "[more](none.md)\n", "no such file"),
    ("mistakes", "src/x.c", SPDX + "#if 0\n#endif\n", "dead code"),
    ("mistakes", "src/x.c", SPDX + "int x; /* NOLINT */\n", "names its check and its reason"),
    ("mistakes", "src/x.c", "int x;\n", "no SPDX"),
    ("tests", "tests/unit/test_x.c", CLEAN["tests/unit/test_b.c"], "no meson.build lists it"),
    ("tests", "tests/unit/test_b.c",
     CLEAN["tests/unit/test_b.c"].replace("(void)state", "skip()"), "only tests/gpu may skip"),
    ("tests", "tests/unit/test_b.c",
     CLEAN["tests/unit/test_b.c"].replace("return ", "return 77 + "), "only tests/gpu may skip"),
    ("tests", "tests/unit/test_b.c",
     CLEAN["tests/unit/test_b.c"] + "\nstatic void b_two(void **state)\n{\n}\n",
     "b_two is never registered"),
    ("tests", "tests/unit/test_b.c", SPDX + "int main(void)\n{\n}\n", "registers no cmocka test"),
    ("tests", "tests/unit/meson.build", "units = ['test_b']\nshould_fail: true\n", "switched off"),
    ("tests", "docs/field-cases.md", field_table(without=7), "no row for case 7"),
    ("tests", "docs/field-cases.md", field_table({76: "`b`"}), "or no such case"),
    ("tests", "docs/field-cases.md", field_table() + "| 3 | again | not shown by a test: x |\n",
     "a second row for case 3"),
    ("tests", "docs/field-cases.md", field_table({3: "as 1"}), "names no test"),
    ("tests", "docs/field-cases.md", field_table({3: "`b_gives_zero_field_3`"}),
     "b_gives_zero_field_3: no test of that name"),
    ("tests", "docs/field-cases.md", field_table({3: "`b_gives_zero_field_51`"}),
     "b_gives_zero_field_51: no test of that name carries its number"),
    ("tests", "docs/field-cases.md", field_table({51: "not shown by a test: x"}),
     "b_gives_zero_field_51 shows it"),
    ("tests", "tests/unit/test_b.c",
     CLEAN["tests/unit/test_b.c"].replace("field_51", "field_51_76"), "has no row for case 76"),
    ("tests", "tests/lost/meson.build", "x = 1\n", "no subdir() leads here"),
    ("format", "src/base/b.c", SPDX + "int  x  ;\n", "not formatted"),
)


def write_tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, newline="")


def run_tool(name, *args):
    done = subprocess.run([sys.executable, TOOLS / name, *map(str, args)], capture_output=True,
                          text=True)
    return done.returncode, done.stdout + done.stderr


class WithTree(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="kiln-checks-"))
        self.addCleanup(shutil.rmtree, self.root)


class Checks(WithTree):
    def plant(self, files):
        shutil.rmtree(self.root)
        self.root.mkdir()
        write_tree(self.root, files)
        shutil.copy(ROOT / ".clang-format", self.root)

    def test_clean_tree_has_no_fault(self):
        self.plant(CLEAN)
        for check in ("layers", "sizes", "headers", "mistakes", "tests", "format"):
            with self.subTest(check):
                status, output = run_tool(f"check_{check}.py", "--root", self.root)
                self.assertEqual(status, 0, output)

    def test_planted_fault_is_named(self):
        for check, name, text, message in PLANTED:
            with self.subTest(f"{check}: {message}"):
                self.plant({**CLEAN, name: text})
                status, output = run_tool(f"check_{check}.py", "--root", self.root)
                self.assertEqual(status, 1, output)
                self.assertIn(message, output)
                self.assertIn(name.removeprefix("src/") if "itself" in message else name, output)

    def test_empty_tree_is_a_fault(self):
        for check in ("layers", "sizes", "headers", "mistakes", "tests", "format"):
            with self.subTest(check):
                self.plant({})
                (self.root / ".clang-format").unlink()
                status, output = run_tool(f"check_{check}.py", "--root", self.root)
                self.assertEqual(status, 1, output)


class Symbols(WithTree):
    def library(self, source, kind):
        (self.root / "x.c").write_text(source)
        if kind == "shared":
            library = self.root / "libx.so"
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, self.root / "x.c"], check=True)
            return library
        subprocess.run(["cc", "-c", "-o", self.root / "x.o", self.root / "x.c"], check=True)
        subprocess.run(["ar", "rcs", self.root / "libx.a", self.root / "x.o"], check=True)
        return self.root / "libx.a"

    def test_static_library_may_export_internal_names(self):
        library = self.library("int kiln_a(void) { return 0; } int ki_b(void) { return 0; }", "a")

        status, output = run_tool("check_symbols.py", library)

        self.assertEqual(status, 0, output)

    def test_shared_library_may_not_export_internal_names(self):
        library = self.library("int kiln_a(void) { return 0; } int ki_b(void) { return 0; }",
                               "shared")

        status, output = run_tool("check_symbols.py", library)

        self.assertEqual(status, 1)
        self.assertIn("exports ki_b", output)

    def test_foreign_export_is_named(self):
        library = self.library("int helper(void) { return 0; }", "a")

        status, output = run_tool("check_symbols.py", library)

        self.assertEqual(status, 1)
        self.assertIn("exports helper", output)

    def test_linked_driver_call_is_named(self):
        library = self.library("int cuInit(int); int kiln_a(void) { return cuInit(0); }", "a")

        status, output = run_tool("check_symbols.py", library)

        self.assertEqual(status, 1)
        self.assertIn("needs cuInit", output)

    def test_mutable_variable_is_named(self):
        library = self.library("int kiln_a(void) { static int n; return n++; }", "a")

        status, output = run_tool("check_symbols.py", library)

        self.assertEqual(status, 1)
        self.assertIn("without a const", output)


class Embedding(WithTree):
    def embed(self, files, *templates):
        write_tree(self.root, files)
        output = self.root / "out.c"
        status, text = run_tool("embed_templates.py", output, "--depfile", self.root / "out.d",
                                *[self.root / name for name in templates])
        return status, text, output

    def text_of(self, output, name):
        """What the generated file gives for a template, asked by a program built from it."""
        main = self.root / "main.c"
        main.write_text(
            '#include <stdio.h>\n#include "plan/templates.h"\nint main(void)\n{\n'
            f'const struct ki_template *t = ki_template_get("{name}");\n'
            "return t == NULL ||\n"
            '       printf("%zu\\n%s", t->size, t->text) < 0;\n}\n')
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion",
                        "-Werror", f"-I{ROOT / 'src'}", "-o", self.root / "main", main, output],
                       check=True)
        printed = subprocess.run([self.root / "main"], capture_output=True, check=True).stdout
        size, text = printed.split(b"\n", 1)
        return int(size), text

    def test_helpers_are_inlined_once_with_line_directives(self):
        status, message, output = self.embed(
            {"op.cu": '// top\n#include "common/a.cuh"\n#include "common/b.cuh"\nint op;\n',
             "common/a.cuh": '#pragma once\n#include "common/b.cuh"\nint a;\n',
             "common/b.cuh": "#pragma once\nint b; // é\n"}, "op.cu")
        self.assertEqual(status, 0, message)

        size, text = self.text_of(output, "op.cu")

        expected = ('// top\n#line 1 "common/a.cuh"\n\n#line 1 "common/b.cuh"\n\nint b; // é\n'
                    '#line 3 "common/a.cuh"\nint a;\n#line 3 "op.cu"\n\nint op;\n').encode()
        self.assertEqual(text, expected)
        self.assertEqual(size, len(expected))
        self.assertEqual(run_tool("embed_templates.py", "--inline", self.root / "op.cu"),
                         (0, expected.decode()))

    def test_output_is_the_same_whatever_the_order_and_the_folder(self):
        files = {"b.cu": "int b;\n", "a.cu": "int a;\n"}
        _, _, output = self.embed(files, "a.cu", "b.cu")
        first = output.read_bytes()
        self.root = self.root / "elsewhere"

        _, _, output = self.embed(files, "b.cu", "a.cu")

        self.assertEqual(output.read_bytes(), first)

    def test_changed_helper_changes_the_text(self):
        files = {"op.cu": '#include "common/a.cuh"\n', "common/a.cuh": "int a;\n"}
        _, _, output = self.embed(files, "op.cu")
        first = self.text_of(output, "op.cu")[1]

        _, _, output = self.embed({**files, "common/a.cuh": "int a; \n"}, "op.cu")

        self.assertNotEqual(self.text_of(output, "op.cu")[1], first)

    def test_unknown_include_is_named_with_its_line(self):
        for spelled in ('"common/none.cuh"', "<cuda_fp16.h>"):
            with self.subTest(spelled):
                status, message, _ = self.embed({"op.cu": f"\n#include {spelled}\n"}, "op.cu")

                self.assertEqual(status, 1)
                self.assertIn(f"op.cu:2: unknown include {spelled}", message)

    def test_include_inside_a_condition_is_refused(self):
        status, message, _ = self.embed(
            {"op.cu": '#if X\n#include "common/a.cuh"\n#endif\n', "common/a.cuh": "\n"}, "op.cu")

        self.assertEqual(status, 1)
        self.assertIn("op.cu:2: an include inside #if", message)

    def test_depfile_names_every_helper(self):
        self.embed({"op.cu": '#include "common/a.cuh"\n', "common/a.cuh": "int a;\n"}, "op.cu")

        self.assertIn("common/a.cuh", (self.root / "out.d").read_text())


if __name__ == "__main__":
    unittest.main()
