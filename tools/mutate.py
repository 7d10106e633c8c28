#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation proof: each small fault put into a kernel template must make a case fail.

usage: mutate.py --sample | --all [--kiln FILE] [--jobs N] [--only PART] [--verbose]

Each mutant of kernels/templates is executed on the CPU with its op's cases in
tests/mutation/cases, which are small and made to tell mutants apart; an op that has none there
is tried with those of tests/cases. The checked variant runs, which has all that a plain one has.
A mutant is killed by a wrong value, by another report than the reference's, by what the checker
reports, or by not compiling. A helper's mutant is tried in each template that includes it. What
cannot be told from the original stands in tests/mutation/equivalent.txt with the reason. All
else that survives is a missing case.
"""

import argparse
import hashlib
import itertools
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants import CLASSES, Template

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "kernels" / "templates"
EQUIVALENT = ROOT / "tests" / "mutation" / "equivalent.txt"
CASE_FOLDERS = (ROOT / "tests" / "mutation" / "cases", ROOT / "tests" / "cases")
MAX_CASE_BYTES = 1 << 18  # larger ones say nothing new, slowly
# Of processor time for each process, compilers included: a mutant may have no end.
LIMIT_S = 4
NAME_FIELDS = ("file", "in", "line", "change")  # of an entry, as Mutant.name has them
# Orders of threads, alignments and GPU sizes; together they have what the cases need.
SEEDS = range(3)
KILLED = ("value", "report", "compile", "endless")
# What a compiler may say of a mutant. Anything else: it is no program, and proves nothing.
ASSERTED = re.compile(r"static.assert|constant expression")
ERROR = re.compile(r"kiln: error: (?P<text>.*)")


class MutationError(Exception):
    """Something other than a mutant is wrong; the text says what."""


# ---- cases


def cases_by_op():
    """{op: [case file, ...]}, in the order in which they are tried first."""
    chosen = {}
    for folder in CASE_FOLDERS:
        cases = defaultdict(list)
        for path in sorted(folder.glob("*.json")):
            if path.stat().st_size <= MAX_CASE_BYTES:
                cases[json.loads(path.read_text())["op"]].append(path)
        for op, paths in cases.items():
            chosen.setdefault(op, paths)
    return chosen


# ---- execution


class Runner:
    """Executes mutants with kiln; each thread that uses it has a cache of its own."""

    def __init__(self, kiln, folder, jobs):
        self.kiln = kiln
        self.folder = Path(folder)
        self.caches = queue.Queue()
        for i in range(jobs):
            self.caches.put(self.folder / f"cache-{i}")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}

    def run(self, text, cases):
        """(how, message, case) of the first case that fails; None: all pass."""
        cache = self.caches.get()
        try:
            source = cache.with_suffix(".cu")
            source.write_text(text)
            # one shape is compiled once
            for seed, case in itertools.product(SEEDS, cases):
                words = [self.kiln, "run", case, "--on", "cpu", "--template", source,
                         "--cache", cache, "--seed", seed, "--checked"]
                done = subprocess.run(
                    ["sh", "-c", f'ulimit -t {LIMIT_S}; exec "$@"', "sh", *map(str, words)],
                    capture_output=True, text=True, errors="replace", env=self.env,
                    stdin=subprocess.DEVNULL)
                if done.returncode != 0:
                    return *verdict(done), case
            return None
        finally:
            self.forget(cache)
            self.caches.put(cache)

    def forget(self, cache):
        """Drop the programs, and keep the runtime that they are linked with."""
        for entry in (cache / "cpu-v1").glob("*"):
            if (entry / "program").exists() or not (entry / "run.o").exists():
                shutil.rmtree(entry)


def verdict(done):
    """(how, message) of a run that failed."""
    found = ERROR.search(done.stderr)
    text = found["text"] if found else f"exit status {done.returncode}: {done.stderr[-300:]}"
    text = re.sub(r"\S*/", "", text.split(": ", 1)[0]) + ": " + text.split(": ", 1)[-1]
    if text.startswith("--on cpu: ") and "signal terminated program" not in text:
        return "compile" if ASSERTED.search(text) else "nonsense", text
    if re.search(r": cpu: \w+: .*(?:CPU time limit|did not end|no end)", text):
        return "endless", text
    if re.search(r": cpu: \w+: ", text):
        return "report", text
    if re.search(r": expected |touched|not written|padding|nobody wrote", text):
        return "value", text
    raise MutationError(f"kiln failed in a way that says nothing about the mutant: {text}")


# ---- the list of equivalent mutants


def read_equivalent(path):
    """{(file, function, line's text, change): reason} of stanzas of `name: value` lines."""
    entries = {}
    if not path.exists():
        return entries
    for number, block in enumerate(re.split(r"\n\s*\n", path.read_text()), start=1):
        lines = [line for line in block.splitlines() if line.strip() and line[0] != "#"]
        fields = dict(line.split(": ", 1) for line in lines if ": " in line)
        if not lines:
            continue
        if len(fields) != len(lines) or set(fields) != {*NAME_FIELDS, "why"}:
            raise MutationError(f"{path.name}: stanza {number}: expected the lines "
                                f"{', '.join(NAME_FIELDS)} and why: {' / '.join(lines)}")
        key = tuple(fields[name] for name in NAME_FIELDS)
        if key in entries:
            raise MutationError(f"{path.name}: twice: {' / '.join(key)}")
        entries[key] = fields["why"]
    return entries


# ---- a trial


class Trial:
    """Every mutant to be tried, and what became of it."""

    def __init__(self, runner, templates, cases, equivalent):
        self.runner = runner
        self.templates = templates
        self.equivalent = equivalent
        self.cases = {op: list(cases.get(op, [])) for op in templates}
        self.where = defaultdict(list)  # a mutant's place: [(op, mutant)]
        for op, template in templates.items():
            for mutant in template.mutants():
                self.where[mutant.place].append((op, mutant))
        self.best = {}  # a helper's file: the op whose cases killed last

    def check_originals(self, workers):
        """Each template as it is must pass, or its mutants would prove nothing."""
        for op, cases in self.cases.items():
            if not cases:
                raise MutationError(f"{op}.cu: no case in tests/mutation/cases nor tests/cases, "
                                    "so no mutant can be caught")
        for op, failed in zip(self.templates, workers.map(self.run_original, self.templates)):
            if failed:
                raise MutationError(f"{op}.cu: fails as it is: {failed[1]}")

    def run_original(self, op):
        return self.runner.run(self.templates[op].text, self.cases[op])

    def run(self, mutant):
        """(op, how, message) of what killed the mutant; None: it survived."""
        place = mutant.place
        tries = self.where[place]
        if mutant.name in self.equivalent:  # one look is enough to see that it is not
            tries = tries[:1]
        best = self.best.get(place[0])
        for op, own in sorted(tries, key=lambda pair: pair[0] != best):
            text = own.applied(self.templates[op].text)
            failed = self.runner.run(text, list(self.cases[op]))
            if failed:
                how, message, case = failed
                self.best[place[0]] = op
                self.cases[op].sort(key=lambda c: c is not case)  # first next time
                return op, how, message
        return None


def sample(mutants, seed):
    """One mutant of each class and file, the same ones each time."""
    chosen = {}
    for mutant in mutants:
        rank = hashlib.blake2b(f"{seed} {mutant.name}".encode()).digest()
        key = mutant.file, mutant.kind
        if key not in chosen or rank < chosen[key][0]:
            chosen[key] = rank, mutant
    return [mutant for _, mutant in chosen.values()]


# ---- the report


def show(mutant, outcome, message):
    print(f"{(TEMPLATES / mutant.file).relative_to(ROOT)}:{mutant.line}: {outcome}: "
          f"{mutant.kind}: {mutant.what}{message}", flush=True)


def table(results):
    """killed / equivalent / survived for each file and class."""
    cells = defaultdict(Counter)
    for mutant, outcome in results:
        for key in itertools.product((mutant.file, "all"), (mutant.kind, "all")):
            cells[key][outcome] += 1
    columns = (*CLASSES, "all")
    print(f"{'killed/equivalent/survived':28}" + "".join(f"{kind:>12}" for kind in columns))
    for file in [*sorted({file for file, _ in cells} - {"all"}), "all"]:
        row = (cells.get((file, kind)) for kind in columns)
        print(f"{file:28}" + "".join(f"{cell_text(cell):>12}" for cell in row))


def cell_text(cell):
    if not cell:
        return "-"
    killed = sum(cell[how] for how in KILLED)
    return f"{killed}/{cell['equivalent']}/{cell['survived']}"


def judge(mutant, killed, reason, verbose):
    """The outcome's name, printed where it is a fault or asked for."""
    if killed and reason:
        show(mutant, "listed as equivalent, yet killed", f"; {killed[0]}: {killed[2]}")
        return "wrongly listed"
    if killed and killed[1] == "nonsense":
        show(mutant, "is no program, mend tools/mutants.py", f"; {killed[0]}: {killed[2]}")
        return "nonsense"
    if killed:
        if verbose:
            show(mutant, killed[1], f"; {killed[0]}: {killed[2]}")
        return killed[1]
    if reason:
        return "equivalent"
    show(mutant, "SURVIVED", f"\n    {mutant.text}")
    return "survived"


def stale_entries(entries, mutants):
    names = {mutant.name for mutant in mutants}
    for entry in sorted(set(entries) - names):
        print(f"{EQUIVALENT.relative_to(ROOT)}: matches no mutant: {' / '.join(entry)}")
        yield entry


def run_trial(args, folder):
    """Returns the number of faults."""
    started = time.monotonic()
    entries = read_equivalent(EQUIVALENT)
    templates = {path.stem: Template(path) for path in sorted(TEMPLATES.glob("*.cu"))}
    runner = Runner(args.kiln, folder, args.jobs)
    trial = Trial(runner, templates, cases_by_op(), entries)
    mutants = [pairs[0][1] for pairs in trial.where.values()]
    if not mutants:
        raise MutationError(f"no mutant found below {TEMPLATES}")
    n_stale = len(list(stale_entries(entries, mutants)))
    chosen = [m for m in mutants if args.only in f"{m.file}:{m.line}:"]
    if args.sample:
        chosen = sample([m for m in chosen if m.name not in entries], args.seed)
    with ThreadPoolExecutor(args.jobs) as workers:
        trial.check_originals(workers)
        outcomes = []
        for mutant, killed in zip(chosen, workers.map(trial.run, chosen)):
            outcomes.append(judge(mutant, killed, entries.get(mutant.name), args.verbose))
    if args.all:
        table(list(zip(chosen, outcomes)))
    counts = Counter(outcomes)
    parts = [f"{counts[how]} by {how}" for how in KILLED if counts[how]]
    print(f"mutate: {len(chosen)} of {len(mutants)} mutants: "
          f"{sum(counts[how] for how in KILLED)} killed ({', '.join(parts)}), "
          f"{counts['equivalent']} equivalent, {counts['survived']} survived "
          f"({time.monotonic() - started:.0f} s)")
    faults = counts["survived"] + counts["wrongly listed"] + counts["nonsense"]
    return faults + n_stale + (not chosen)


def main(argv):
    parser = argparse.ArgumentParser(description="put faults into kernel templates")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--sample", action="store_true", help="one mutant of each class and file")
    mode.add_argument("--all", action="store_true", help="every mutant, and a table")
    parser.add_argument("--kiln", default=os.environ.get("KILN", "build/tools/kiln/kiln"))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=0, help="which ones --sample takes")
    parser.add_argument("--only", default="", metavar="PART",
                        help="only mutants whose file:line: holds this")
    parser.add_argument("--verbose", action="store_true", help="also say what killed each")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="kiln-mutate-") as folder:
        try:
            return 1 if run_trial(args, folder) else 0
        except (MutationError, OSError) as error:
            print(f"mutate.py: {error}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
