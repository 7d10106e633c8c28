# SPDX-License-Identifier: Apache-2.0
"""Every op beside a Triton version of the same algorithm: the same inputs, the same context and
stream, all outputs compared, then both timed in turns.

    python3 tests/gpu/triton/side_by_side.py --library build/src/libkiln.so

A row a line: op, size, kiln us, triton us, kiln/triton. The times are medians of graph replays
over the launches in a graph, of which several are captured; Triton's is that of its best tuning.
Then an op a line. The exit status is 1 if an output differs, if an op is more than 2% slower over
its sizes (the geometric mean), or more than 10% slower at one: where arrays come to lie in memory
is worth up to 5% of one row, from run to run.
"""

import argparse
import os
import statistics
import sys

from kiln_library import OUTPUT, Array, Library

LAUNCHES = 40  # in a graph
CAPTURES = 5  # of each side
REPLAYS = 25  # of each graph, in turns
TUNING_REPLAYS = 15
TOLERANCE = 1.02  # of an op over its sizes
ROW_TOLERANCE = 1.10
POISON = 0xA5


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True, help="libkiln.so")
    parser.add_argument("--only", metavar="OP", help="the rows of one op")
    parser.add_argument("--interpret", action="store_true",
                        help="no GPU: Triton's interpreter against the reference, small sizes")
    return parser.parse_args(argv)


class Pair:
    """One case on both sides: the same inputs, outputs of their own."""

    def __init__(self, library, case, device):
        self.library, self.case = library, case
        self.op = library.ops[case.op]
        self.shape = self.op.shape(**case.fields)
        self.v = self.op.values(self.shape)
        self.kiln_outputs = self._outputs(device)
        self.triton_outputs = self._outputs(device)
        self.triton_launch = triton_ops.OPS[case.op][0]
        self.packed = self.op.pack(**{name: argument(value) for name, value in
                                      {**case.args, **self.kiln_outputs}.items()})
        self._check_inputs()

    def _outputs(self, device):
        outputs = {}
        for name, arg in self.op.args.items():
            if arg.kind == OUTPUT:
                layout = self.op.layout(self.shape, name)
                size = self.case.rows[name] * layout.stride * SIZES[layout.dtype]
                data = torch.full((max(size, 16),), POISON, dtype=torch.uint8, device=device)
                outputs[name] = data.view(DTYPES[layout.dtype])
        return outputs

    def _check_inputs(self):
        """A tensor of another type or row length would be read as something else."""
        for name, value in self.case.args.items():
            if isinstance(value, torch.Tensor) and name in self.op.args:
                layout = self.op.layout(self.shape, name)
                assert value.dtype == DTYPES[layout.dtype], f"{self.op.name}.{name}: {value.dtype}"
                assert value.is_contiguous(), f"{self.op.name}.{name}"
                if layout.is_matrix:
                    assert value.shape[1] == layout.stride, f"{self.op.name}.{name}"

    def prepare(self):
        self.kernel = self.library.prepare(self.op, self.shape, stream_of())

    def kiln(self):
        self.library.launch(self.kernel, self.packed, stream_of())

    def reference(self):
        self.library.reference(self.op, self.shape, self.packed)

    def triton(self, tuning):
        self.triton_launch(self.v, {**self.case.args, **self.triton_outputs}, tuning)

    def differing(self):
        """Outputs that differ, padding and columns that nobody writes included."""
        return [name for name, output in self.kiln_outputs.items()
                if not torch.equal(output, self.triton_outputs[name])]

    def unwritten(self):
        """Outputs with rows, all of them still poison: then equality says nothing."""
        return [name for name, output in self.kiln_outputs.items()
                if self.case.rows[name] and bool((output == output.new_tensor(
                    [POISON] * output.element_size(), dtype=torch.uint8).view(
                        output.dtype)).all())]


def argument(value):
    return Array(value.data_ptr(), value.shape[0]) if isinstance(value, torch.Tensor) else value


def stream_of():
    return torch.cuda.current_stream().cuda_stream


def captured(launch, launches):
    """A graph of so many launches, replayed once."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            launch()
    graph.replay()
    torch.cuda.synchronize()
    return graph


def in_turns(graphs, replays):
    """The median time of each graph in us, all replayed in turns, the first one changing. A
    delay ahead of them keeps the host's own time out."""
    times = [[] for _ in graphs]
    for turn in range(replays):
        order = [(i + turn) % len(graphs) for i in range(len(graphs))]
        events = [torch.cuda.Event(enable_timing=True) for _ in range(len(graphs) + 1)]
        torch.cuda._sleep(200000)
        events[0].record()
        for place, i in enumerate(order):
            graphs[i].replay()
            events[place + 1].record()
        torch.cuda.synchronize()
        for place, i in enumerate(order):
            times[i].append(events[place].elapsed_time(events[place + 1]) * 1000)
    return [statistics.median(t) for t in times]


def side_times(launches):
    """The time of each launch in us, over fresh captures of them all."""
    rounds = [in_turns([captured(launch, LAUNCHES) for launch in launches], REPLAYS)
              for _ in range(CAPTURES)]
    return [statistics.median(times) / LAUNCHES for times in zip(*rounds)]


def best_tuning(pair):
    """The fastest of the op's tunings for this row."""
    tunings = triton_ops.tunings_of(pair.op.name, pair.v)
    for tuning in tunings:
        pair.triton(tuning)
    torch.cuda.synchronize()
    graphs = [captured(lambda t=tuning: pair.triton(t), LAUNCHES // 2) for tuning in tunings]
    times = in_turns(graphs, TUNING_REPLAYS)
    return tunings[times.index(min(times))]


def compare_on_gpu(pair):
    """(ratio, text) of a row; no ratio where outputs differ."""
    pair.prepare()
    tuning = best_tuning(pair)
    for output in pair.triton_outputs.values():
        output.view(torch.uint8).fill_(POISON)
    pair.kiln()
    pair.triton(tuning)
    torch.cuda.synchronize()
    wrong = pair.differing() + pair.unwritten()
    if wrong:
        return None, f"DIFFERS: {', '.join(wrong)}"
    kiln_us, triton_us = side_times([pair.kiln, lambda: pair.triton(tuning)])
    ratio = kiln_us / triton_us
    mark = "slower" if ratio > TOLERANCE else ""
    shown = " ".join(f"{k}={v}" for k, v in tuning.items())
    return ratio, f"{kiln_us:8.2f} {triton_us:8.2f} {ratio:6.3f} {mark:6} {shown}"


def compare_on_cpu(pair):
    """Every tuning in Triton's interpreter against the reference."""
    pair.reference()
    for tuning in triton_ops.tunings_of(pair.op.name, pair.v):
        for output in pair.triton_outputs.values():
            output.view(torch.uint8).fill_(POISON)
        pair.triton(tuning)
        wrong = pair.differing() + pair.unwritten()
        if wrong:
            return None, f"DIFFERS: {', '.join(wrong)} with {tuning}"
    return 1.0, "ok"


def is_slower(ratios):
    """Of an op, by the ratios of its sizes."""
    return statistics.geometric_mean(ratios) > TOLERANCE or max(ratios) > ROW_TOLERANCE


def summary(rows):
    """What (op, ratio) rows come to: lines to print, and the exit status."""
    by_op = {}
    for op, ratio in rows:
        if ratio is not None:
            by_op.setdefault(op, []).append(ratio)
    lines = [f"{op:21} {len(ratios):2} rows, mean ratio {statistics.geometric_mean(ratios):.3f}, "
             f"worst {max(ratios):.3f}{' SLOWER' if is_slower(ratios) else ''}"
             for op, ratios in by_op.items()]
    n_slower = sum(is_slower(ratios) for ratios in by_op.values())
    n_differ = sum(ratio is None for _, ratio in rows)
    lines.append(f"{len(rows)} rows of {len(by_op)} ops, {n_slower} ops slower, {n_differ} differ")
    return lines, 1 if n_slower or n_differ or not rows else 0


def main(argv):
    args = parse(argv)
    library = Library(args.library)
    device = "cpu" if args.interpret else "cuda"
    compare = compare_on_cpu if args.interpret else compare_on_gpu
    rows = []
    if not args.interpret:
        torch.cuda.init()
        torch.zeros(1, device=device)  # the primary context becomes current
        print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
              f"Triton {triton_ops.triton.__version__}")
    print(f"{'op':21} {'size':38} {'kiln':>8} {'triton':>8} {'ratio':>6}", flush=True)
    for case in step_cases.all_cases(device, args.only, few=args.interpret):
        ratio, text = compare(Pair(library, case, device))
        rows.append((case.op, ratio))
        print(f"{case.op:21} {case.size:38} {text}", flush=True)
    lines, status = summary(rows)
    print("\n".join(lines))
    return status


if __name__ == "__main__":
    if "--interpret" in sys.argv:
        os.environ["TRITON_INTERPRET"] = "1"  # is read when a kernel is defined
    try:
        import torch
        import triton  # noqa: F401
    except ImportError as missing:
        sys.exit(f"side_by_side: needs PyTorch and Triton: {missing}")
    import step_cases
    import triton_ops
    DTYPES = {"u8": torch.uint8, "i32": torch.int32, "i64": torch.int64}
    SIZES = {"u8": 1, "i32": 4, "i64": 8}
    sys.exit(main(sys.argv[1:]))
