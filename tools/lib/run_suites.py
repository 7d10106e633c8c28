# SPDX-License-Identifier: Apache-2.0
"""Builds kiln in each configuration, runs the suites in order, adds up. Called by tools/check.

A suite without tests, a test that meson lists and that did not run, and a skip outside of
the gpu suite all count as failures.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

FOLDER = Path("build-check")
COMMON = ["-Dtests=enabled", "-Dtools=enabled", "-Dwerror=true"]
BUILDS = {
    "main": [],
    "address": ["-Db_sanitize=address,undefined", "-Dbuildtype=debug"],
    "thread": ["-Db_sanitize=thread"],
}
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}
# name: [(build, suite)], in the order in which they run, the cheap ones first
STEPS = {
    "style": [("main", "style")],
    "unit": [("main", "unit")],
    "headers": [("main", "headers")],
    "sanitizers": [("address", "unit"), ("address", "cases"), ("thread", "unit")],
    "nvrtc": [("main", "nvrtc")],
    "cli": [("main", "cli")],
    "cases": [("main", "cases")],
    "simt": [("main", "simt")],
    "property": [("main", "property")],
    "mutation": [("main", "mutation")],
    "fuzz": [("main", "fuzz"), ("address", "fuzz")],
    "gpu": [("main", "gpu")],
}
MAY_SKIP = {"gpu"}
MAX_LOG_LINES = 60


class Tally:
    """What passed, failed and was skipped so far."""

    def __init__(self):
        self.counts = Counter()
        self.seconds = {}

    def add(self, kind, n=1):
        self.counts[kind] += n

    def fail(self, what, log=""):
        self.counts["failed"] += 1
        print(f"FAILED {what}")
        for line in log.splitlines()[-MAX_LOG_LINES:]:
            print(f"    {line}")

    def last_line(self):
        c = self.counts
        skipped = f", {c['skipped']} skipped" if c["skipped"] else ""
        return f"{c['passed']} passed, {c['failed']} failed{skipped}"


def build(name, tally):
    """The build folder, or None when it does not build."""
    folder = FOLDER / name
    FOLDER.mkdir(exist_ok=True)
    script = '. tools/lib/setup.sh; log=$1; shift; build "$@"'
    done = subprocess.run(
        ["bash", "-c", script, "build", str(FOLDER / f"{name}.log"), str(folder), "all",
         *COMMON, *BUILDS[name]], capture_output=True, text=True)
    if done.returncode != 0:
        tally.fail(f"build {name}", done.stdout + done.stderr)
        return None
    return folder


def listed_tests(folder):
    """{suite: [test names]} of a build folder, without the project's name before a suite."""
    listing = subprocess.run(["meson", "introspect", "--tests", str(folder)],
                             capture_output=True, text=True, check=True).stdout
    suites = {}
    for test in json.loads(listing):
        for suite in test["suite"]:
            suites.setdefault(suite.rpartition(":")[2], []).append(test["name"])
    return suites


def without_address_randomisation():
    """A prefix for thread-sanitized programs, which some kernels' layouts break."""
    prefix = ["setarch", os.uname().machine, "-R"]
    if shutil.which("setarch") and subprocess.run([*prefix, "true"],
                                                  capture_output=True).returncode == 0:
        return prefix
    return []


def run_suite(build_name, folder, suite, tally):
    """Run one suite of one build and add its results, read from meson's own record."""
    label = suite if build_name == "main" else f"{suite} ({build_name})"
    expected = listed_tests(folder).get(suite, [])
    if not expected:
        tally.fail(f"{label}: the suite has no tests")
        return
    record = folder / "meson-logs" / f"check-{suite}.json"
    record.unlink(missing_ok=True)
    prefix = without_address_randomisation() if build_name == "thread" else []
    done = subprocess.run(
        [*prefix, "meson", "test", "-C", str(folder), "--suite", suite,
         "--logbase", f"check-{suite}"],
        capture_output=True, text=True, env={**os.environ, **SANITIZERS})
    rows = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    for row in rows:
        add_result(row, label, suite, tally)
    if len(rows) != len(expected):
        tally.fail(f"{label}: {len(expected)} tests are listed, {len(rows)} ran",
                   done.stdout + done.stderr)


def add_result(row, label, suite, tally):
    name = f"{label}: {row['name']}"
    output = f"{row.get('stdout') or ''}{row.get('stderr') or ''}"
    if row["result"] == "OK":
        tally.add("passed")
    elif row["result"] == "SKIP" and suite in MAY_SKIP:
        tally.add("skipped")
        print(f"skipped {name}")
    else:
        tally.fail(f"{name}: {row['result']} after {row.get('duration', 0):.1f} s", output)


def run_quickstart(tally):
    """The quickstart on a machine without a toolkit: NVRTC and headers from pip, empty cache."""
    with tempfile.TemporaryDirectory(prefix="kiln-check-") as cache:
        env = {**os.environ, "KILN_HIDE_TOOLKIT": "1", "KILN_CACHE_DIR": cache,
               "KILN_BUILD_DIR": str(FOLDER / "wheels")}
        env.pop("KILN_NVRTC", None)
        done = subprocess.run(["tools/quickstart"], capture_output=True, text=True, env=env)
    output = done.stdout + done.stderr
    wanted = (": 0 compiled, ", "all as expected", "export KILN_NVRTC=")
    if done.returncode != 0 or not all(text in done.stdout for text in wanted):
        tally.fail(f"quickstart with NVRTC from pip: exit status {done.returncode}", output)
    elif len(done.stdout.splitlines()) >= 20:
        tally.fail("quickstart with NVRTC from pip: 20 lines or more", output)
    else:
        tally.add("passed")


def run_coverage(folders, tally):
    """What tests reach of templates and emitter; the report is printed."""
    if "main" not in folders:
        folders["main"] = build("main", tally)
    if folders["main"] is None:
        return
    done = subprocess.run([sys.executable, "tools/coverage.py", str(folders["main"])],
                          capture_output=True, text=True)
    print(done.stdout, end="")
    if done.returncode != 0:
        tally.fail("coverage", done.stdout + done.stderr)
    else:
        tally.add("passed")


def run_step(name, parts, folders, tally):
    started = time.monotonic()
    before = Counter(tally.counts)
    if name == "quickstart":
        run_quickstart(tally)
    if name == "coverage":
        run_coverage(folders, tally)
    for build_name, suite in parts:
        if build_name not in folders:
            folders[build_name] = build(build_name, tally)
        if folders[build_name] is not None:
            run_suite(build_name, folders[build_name], suite, tally)
    new = tally.counts - before
    skipped = f", {new['skipped']} skipped" if new["skipped"] else ""
    print(f"{name:11} {new['passed']} passed, {new['failed']} failed{skipped} "
          f"({time.monotonic() - started:.1f} s)", flush=True)


def main(wanted):
    steps = {**STEPS, "coverage": [], "quickstart": []}
    unknown = [name for name in wanted if name not in steps]
    if unknown:
        print(f"no suite {unknown[0]}; there are: {' '.join(steps)}", file=sys.stderr)
        return 2
    tally = Tally()
    folders = {}
    for name, parts in steps.items():
        if not wanted or name in wanted:
            run_step(name, parts, folders, tally)
    if not wanted and folders.get("main"):
        known = {suite for parts in STEPS.values() for _, suite in parts}
        for suite in sorted(set(listed_tests(folders["main"])) - known):
            tally.fail(f"{suite}: meson has this suite, tools/check does not run it")
    print(tally.last_line())
    return 1 if tally.counts["failed"] or not tally.counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
