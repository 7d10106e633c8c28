#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which lines of the templates and which branches of the emitter do tests reach? All must be.

usage: coverage.py BUILD [--jobs N]    BUILD: a build folder with the property driver

Templates: random cases of each op are executed on the CPU, compiled for gcov, and what each
program reached is added up by the templates' own lines. A block that no shape compiles counts
as a line that was not reached. Emitter: the unit tests of src/plan, built for gcov.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from source_files import DEVICE_ONLY, blank, blank_matches

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "kernels" / "templates"
CASES_OF_OP = 400
EMITTER = ("src/plan/source.c", "src/plan/key.c", "src/plan/ops.c")
EMITTER_TESTS = ("test_key", "test_launcher", "test_launcher_order", "test_op_args", "test_ops",
                 "test_seal", "test_source")

# More than 4,096 rows, which no random case has: tests/mutation/cases/combine_topk_swa-7-*.
ELSEWHERE = (("combine_topk_swa.cu", "load_picks(picks, 0, n_picks, quads);"),)

# Branches that no input of a test can take: (file, a part of the line, why).
EXPLAINED = (
    ("src/plan/ops.c", "info != NULL", "words are wanted of ops that there are"),
    ("src/plan/ops.c", "KILN_EXTENT_DECODE_REQUESTS ||", "no output has their rows"),
    ("src/plan/ops.c", "assert(counter", "what divides rows is there"),
    ("src/plan/ops.c", "counter != NULL) {", "and all but a few ops have one"),
    ("src/plan/source.c", "used < CONSTANT_NAME - 1", "no field's name is that long"),
    ("src/plan/source.c", "*field <= 'z'", "no field's name has more than letters and _"),
    ("src/plan/source.c", "template == NULL", "an op's template is built in with the op"),
    ("src/plan/key.c", "size < 0", "no key is too long, and vsnprintf does not fail"),
    ("src/plan/key.c", "writer.full", "no key is too long"),
    ("src/plan/ops.c", "i < info->n_args", "each stride has its array,"),
    ("src/plan/ops.c", "arg->width != NULL) {", "and that has columns"),
    ("src/plan/ops.c", "if (arg == NULL) {", "what divides rows is asked for where it is"),
    ("src/plan/ops.c", "switch (extent) {", "no array has a row for each decoding request"),
    ("src/plan/ops.c", "KI_COUNT_OF(rows)", "each op counts rows of some kind"),
    ("src/plan/ops.c", "arg->may_be_null || is_empty", "gcc's second copy of a test"),
    ("src/plan/ops.c", "switch (arg->kind) {", "the kinds are all there"),
)

# Compiles for gcov what is a kernel, and nothing else; without optimising, which moves lines.
# The kernel's statics are its shared memory and are overwritten, so counters get a section of
# their own.
COMPILER = r"""#!/bin/sh
case "$*" in
*kiln_simt_kernel.cpp*)
    for word; do
        shift
        [ "$word" = kernel.o ] && word=kernel.s
        set -- "$@" "$word"
    done
    g++ "$@" --coverage -O0 -fdata-sections -S || exit 1
    sed -i 's/\.section\t\.bss\.__gcov[^,]*/.section .kiln_counters/' kernel.s
    exec g++ -c kernel.s -o kernel.o ;;
*"-o program"*) exec g++ "$@" --coverage ;;
esac
exec g++ "$@"
"""


class Failed(Exception):
    """What could not be measured, and why."""


def run(command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        lines = done.stdout.splitlines()[-20:]
        raise Failed(f"{' '.join(map(str, command))}: exit status {done.returncode}\n"
                     + "\n".join(lines))
    return done.stdout


def gcov(data, folder):
    """The files of a .gcda as gcov reports them."""
    done = subprocess.run(["gcov", "-b", "--json-format", "--stdout", str(data)],
                          capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        raise Failed(f"gcov {data}: {done.stderr.strip()}")
    return [file for line in done.stdout.splitlines() for file in json.loads(line)["files"]]


# ---- templates


def run_op(build, op, folder):
    """Random cases of an op; its programs, which know their lines, stay in the folder."""
    wrapper = folder / "c++"
    wrapper.write_text(COMPILER)
    wrapper.chmod(0o755)
    run([build / "tests/property/property", "--op", op, "--cases", CASES_OF_OP, "--sanitize",
         "none", "--cache", folder, "--keep", folder], env={**os.environ, "CXX": str(wrapper)})
    reached = defaultdict(int)
    for notes in sorted(folder.glob("cpu-v1/*/kernel.gcno")):
        add_program(notes.parent, reached)
    return reached


def add_program(entry, reached):
    """Adds {(file, line): how often} of one program."""
    # it writes beside where it was compiled, before the folder got its name
    found = re.search(rb"[\w./-]+/kernel\.gcda", (entry / "program").read_bytes())
    data = Path(found.group().decode())
    if not data.exists():
        return  # it was given empty grids alone
    data.replace(entry / "kernel.gcda")
    for file in gcov(entry / "kernel.gcda", entry):
        name = file["file"]
        if not (TEMPLATES / name).is_file():
            continue
        for line in file["lines"]:
            reached[name, line["line_number"]] += line["count"]


def blocks_of(text):
    """(first line, last line) of each block in braces that holds a statement."""
    text = blank(text)
    opened = []
    for at, char in enumerate(text):
        if char == "{":
            opened.append(at)
        elif char == "}" and opened:
            start = opened.pop()
            if re.search(r";", text[start:at]) and is_code(text, start):
                yield text.count("\n", 0, start) + 1, text.count("\n", 0, at) + 1


def is_code(text, at):
    """Whether a brace opens a function's or a statement's block, not a type or a list."""
    head = re.split(r"[;{}]", text[:at])[-1]
    return not re.search(r"\b(struct|enum|namespace|union)\b[^()]*$|=\s*$|\breturn\s*$", head)


def report_templates(reached):
    """Prints a line per template, and one per line that was not reached. Returns how many."""
    faults = 0
    for path in sorted(TEMPLATES.rglob("*.cu*")):
        name = path.relative_to(TEMPLATES).as_posix()
        counts = {line: n for (file, line), n in reached.items() if file == name}
        missed = {line: "never reached" for line, n in counts.items() if n == 0}
        text = path.read_text()
        missed = {line: why for line, why in missed.items()
                  if (name, text.splitlines()[line - 1].strip()) not in ELSEWHERE}
        for first, last in blocks_of(blank_matches(DEVICE_ONLY, text)):
            if not any(first <= line <= last for line in counts):
                missed[first] = f"no shape compiles the block up to line {last}"
        hit = sum(n > 0 for n in counts.values())
        print(f"{name:28} {hit}/{len(counts)} lines")
        for line, why in sorted(missed.items()):
            print(f"    {name}:{line}: {why}")
        faults += len(missed)
    return faults


def check_templates(build, jobs):
    reached = defaultdict(int)
    with tempfile.TemporaryDirectory(prefix="kiln-coverage-") as folder:
        with ThreadPoolExecutor(jobs) as pool:
            tasks = []
            for op in sorted(path.stem for path in TEMPLATES.glob("*.cu")):
                (Path(folder) / op).mkdir()
                tasks.append(pool.submit(run_op, build, op, Path(folder) / op))
            for task in tasks:
                for place, n in task.result().items():
                    reached[place] += n
    if not reached:
        raise Failed("no template's line was seen")
    return report_templates(reached)


# ---- the emitter


def explained(name, line):
    return next((why for file, part, why in EXPLAINED if file == name and part in line), None)


def report_source(name, lines):
    """Prints a line for a source file of the emitter. Returns how many branches were missed
    without an explanation, and how many explanations explain nothing."""
    used = set()
    text = (ROOT / name).read_text().splitlines()
    branches = hit = faults = n_explained = 0
    for line in lines:
        counts = [b["count"] for b in line["branches"] if not b["throw"]]
        branches += len(counts)
        hit += sum(n > 0 for n in counts)
        if counts and 0 in counts:
            source = text[line["line_number"] - 1]
            why = explained(name, source)
            if why:
                used.add(why)
                n_explained += counts.count(0)
            else:
                faults += 1
                print(f"    {name}:{line['line_number']}: a branch is never taken: "
                      f"{source.strip()}")
    for file, part, why in EXPLAINED:
        if file == name and why not in used:
            faults += 1
            print(f"    {name}: nothing is missed there any more: {part}")
    print(f"{name:28} {hit}/{branches} branches, {n_explained} explained")
    return faults


def check_emitter(jobs):
    faults = 0
    with tempfile.TemporaryDirectory(prefix="kiln-coverage-") as folder:
        run(["meson", "setup", folder, ROOT, "-Db_coverage=true", "-Dbuildtype=debug",
             "-Dtools=disabled", "-Dtests=enabled"])
        run(["ninja", "-C", folder, f"-j{jobs}", *(f"tests/unit/{t}" for t in EMITTER_TESTS)])
        for test in EMITTER_TESTS:
            run([Path(folder) / "tests/unit" / test],
                env={**os.environ, "KILN_TEST_DATA": str(ROOT / "tests")})
        for name in EMITTER:
            stem = name.removeprefix("src/").replace("/", "_")
            lines = [line for data in Path(folder).glob(f"src/*/{stem}.gcda")
                     for file in gcov(data, folder) if file["file"].endswith(name)
                     for line in file["lines"]]
            if not lines:
                raise Failed(f"{name}: no test reached it")
            faults += report_source(name, lines)
    return faults


def main():
    parser = argparse.ArgumentParser(description="what tests reach of templates and emitter")
    parser.add_argument("build", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    try:
        faults = check_templates(args.build.resolve(), args.jobs) + check_emitter(args.jobs)
    except (Failed, OSError) as error:
        print(f"coverage: {error}", file=sys.stderr)
        return 1
    print(f"coverage: {faults} not reached")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
