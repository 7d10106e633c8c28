#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every #include points the way the layers allow; docs/architecture.md has the picture."""

import re
import sys

from source_files import CODE_SUFFIXES, blank, is_c, project_files, read, run_check

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?P<name>["<][^">]*[">])', re.MULTILINE)

# For each folder, first match wins: what its files may include besides the system's headers.
MAY_INCLUDE = (
    (r"include/kiln/", r"kiln/(op/)?\w+\.h"),
    (r"src/base/", r"base/\w+\.h|kiln/status\.h"),
    (r"src/plan/op_",
     r"(base|plan)/\w+\.h|reference/reference\.h|kiln/(status|ops|op_info|plan)\.h"),
    (r"src/plan/", r"(base|plan)/\w+\.h|kiln/(status|ops|op_info|plan|layout)\.h"),
    (r"src/build/", r"(base|build)/\w+\.h|plan/(key|target)\.h|kiln/(status|store)\.h"),
    (r"src/run/launcher", r"(base|run)/\w+\.h|plan/(key|target|op|ops|deployment)\.h|kiln/\w+\.h"),
    (r"src/run/", r"(base|run)/\w+\.h|plan/(key|target|op)\.h|kiln/(status|ops|op_info)\.h"),
    (r"src/reference/", r"reference/\w+\.h|kiln/(ops|op_info|report|status)\.h"),
    (r"src/[^/]*$", r"((base|plan|build|run|reference)/)?\w+\.h|kiln/\w+\.h"),
    (r"tools/", r"kiln/\w+\.h|(?!prepare\.h|context\.h)\w+\.h"),
    (r"simt/", r"kiln_simt\w*\.h"),
    (r"kernels/", r"common/\w+\.cuh"),
    (r"examples/", r"(kiln/)?\w+\.h"),
)

# Headers of other projects, each with the only files that may include it.
ONLY_IN = (
    (r"cuda\.h",
     r"src/run/(driver|device|module|launch|memory|programmatic|user_object)\.[ch]|src/gpu\.c|"
     r"tests/.*|examples/.*"),
    (r"nvrtc\.h", r"src/build/(nvrtc\.[ch]|compile\.c)|tests/.*"),
    (r"sodium.*\.h", r"src/base/hash\.c|tests/.*"),
    (r"jansson\.h", r"tools/kiln/.*|src/plan/(deployment|manifest|json)\w*\.[ch]|tests/.*"),
    (r"cmocka\.h", r"tests/.*"),
    (r"dlfcn\.h", r"src/build/nvrtc\w*\.c|src/run/driver\.c|tools/.*|tests/.*"),
    (r"(cuda_runtime|cuda_runtime_api)\.h", r"(examples|tests/headers)/.*"),
)


def check(root):
    files = project_files(root, CODE_SUFFIXES)
    faults = []
    edges = {}
    for path in files:
        text = blank(read(root, path), keep_literals=True)
        names = [
            (text.count("\n", 0, m.start()) + 1, m["name"]) for m in INCLUDE.finditer(text)
        ]
        faults += layer_faults(path, names) + (order_faults(path, names) if is_c(path) else [])
        edges[path.as_posix()] = [name.strip('"') for _, name in names if name[0] == '"']
    return len(files), faults + cycle_faults(edges)


def layer_faults(path, names):
    """Includes that point to the wrong layer, or to a header that other files own."""
    faults = []
    own = path.as_posix()
    allowed = next((may for where, may in MAY_INCLUDE if re.match(where, own)), None)
    for line, name in names:
        inner = name[1:-1]
        for header, where in ONLY_IN:
            if re.fullmatch(header, inner) and not re.fullmatch(where, own):
                faults.append(f"{path}:{line}: {name} belongs in {where} only")
        if name[0] == '"' and allowed and not re.fullmatch(allowed, inner):
            faults.append(f"{path}:{line}: {name} is not for this layer, which may: {allowed}")
        if name[0] == "<" and inner.startswith("kiln/"):
            faults.append(f'{path}:{line}: {name} is kiln\'s own; expected "{inner}"')
    return faults


def order_faults(path, names):
    """System headers first, then kiln's public ones, then internal ones."""
    faults = []
    last = 0
    for line, name in names:
        rank = 0 if name[0] == "<" else 1 if name.startswith('"kiln/') else 2
        if rank < last:
            faults.append(f"{path}:{line}: {name} comes too late; expected system headers, "
                          "then kiln/, then internal ones")
        last = max(last, rank)
    return faults


def cycle_faults(edges):
    """Headers that include each other, straight or around corners."""
    graph = {}
    for path, names in edges.items():
        name = re.sub(r"^(src|include)/", "", path)
        graph[name] = names
    faults = []
    done = set()

    def visit(name, trail):
        if name in trail:
            faults.append(f"{name}:1: includes itself: {' -> '.join([*trail, name])}")
        elif name not in done:
            for other in graph.get(name, ()):
                visit(other, [*trail, name])
            done.add(name)

    for name in sorted(graph):
        visit(name, [])
    return faults


if __name__ == "__main__":
    sys.exit(run_check("check_layers", check))
