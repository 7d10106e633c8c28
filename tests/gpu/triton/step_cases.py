# SPDX-License-Identifier: Apache-2.0
"""Steps as a server runs them: the inputs of each op at the sizes that are compared.

Decode: every token its own request, contexts up to 65,536 tokens. Prefill: four requests of
unequal length. Some picks are -1, some pages are not there, the last row of a decode batch is
padding: all of that a step has, and both sides must agree on it.
"""

from typing import NamedTuple

import torch

CONTEXT = 65536
MAX_MODEL_LEN = 1 << 20
BLOCK = 256  # the scheduler's block, raw tokens
WINDOW = 128
PAGES = 100000
I32 = torch.int32


class Case(NamedTuple):
    op: str
    size: str
    fields: dict  # of the shape; the others have their defaults
    args: dict  # inputs by kiln's names: tensors and ints
    rows: dict  # of the outputs


class Step:
    """The batch that the cases of one size share: query_start_loc, seq_lens, positions."""

    def __init__(self, device, tokens, requests):
        self.device, self.tokens, self.requests = device, tokens, requests
        self.random = torch.Generator(device).manual_seed(tokens * 31 + requests)
        cuts = [tokens * i * (i + requests) // (2 * requests * requests)
                for i in range(requests + 1)]
        lengths = torch.tensor([b - a for a, b in zip(cuts, cuts[1:])])
        if tokens == requests:
            lengths = torch.ones(requests, dtype=torch.int64)
        starts = torch.cat((torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)))
        # contexts from an eighth of the longest to the longest, each at least its own query
        spread = torch.linspace(CONTEXT // 8, CONTEXT, requests).long()
        seq_lens = torch.maximum(spread, lengths)
        request = torch.repeat_interleave(torch.arange(requests), lengths)
        positions = seq_lens[request] - starts[request + 1] + torch.arange(tokens)
        self.query_start_loc = starts.to(device, I32)
        self.seq_lens = seq_lens.to(device, I32)
        self.token_to_req = request.to(device, I32)
        self.positions = positions.to(device)
        self.lengths = lengths.to(device)

    def valid(self):
        """All tokens but the last, which pads a captured batch."""
        flags = torch.ones(self.tokens, dtype=torch.uint8, device=self.device)
        flags[-1] = 1 if self.tokens == 1 else 0
        return flags

    def picks(self, topk, ratio, rows=None):
        """Selected records of each token: any order, -1 where there are not so many."""
        positions = self.positions if rows is None else self.positions[rows]
        records = ((positions + 1) // ratio)[:, None]
        draw = torch.rand(len(positions), topk, device=self.device, generator=self.random)
        ids = (draw * records).to(I32)
        column = torch.arange(topk, device=self.device)[None, :]
        return torch.where(column < records, ids, -1).contiguous()

    def table(self, width, used):
        """Pages of each request: random ones, -1 behind what is used, few of them lost."""
        pages = torch.randint(PAGES, (self.requests, width), dtype=I32, device=self.device,
                              generator=self.random)
        column = torch.arange(width, device=self.device)[None, :]
        lost = torch.rand(pages.shape, device=self.device, generator=self.random) < 0.002
        return torch.where((column < used) & ~lost, pages, -1).contiguous()

    def mapping(self):
        slots = torch.randint(1 << 24, (self.tokens,), device=self.device, generator=self.random)
        slots[-1] = slots[-1] if self.tokens == 1 else -1
        return slots

    def batch(self):
        return {"query_start_loc": self.query_start_loc, "seq_lens": self.seq_lens}


def step_of(device, tokens):
    """Up to 256 tokens decode, more of them prefill."""
    return Step(device, tokens, tokens if tokens <= 256 else 4)


def global_topk(device, topk, tokens):
    step = step_of(device, tokens)
    width = MAX_MODEL_LEN // BLOCK
    return Case("global_topk", f"topk {topk}, {tokens} tokens",
                {"topk": topk, "block_size": 64, "table_width": width},
                {"topk_indices": step.picks(topk, 4), "token_to_req": step.token_to_req,
                 "is_valid_token": step.valid(), "block_table": step.table(width, CONTEXT // BLOCK),
                 "num_tokens": tokens},
                {"slots": tokens, "lens": tokens})


def req_to_global(device, topk, tokens):
    step = step_of(device, tokens)
    width = 163840 // 64
    return Case("req_to_global", f"topk {topk}, {tokens} tokens",
                {"topk": topk, "block_size": 64, "page_stride": 64, "table_width": width},
                {"token_indices": step.picks(topk, 1), "req_id": step.token_to_req,
                 "is_valid_token": step.valid(), "block_table": step.table(width, CONTEXT // 64),
                 "num_tokens": tokens},
                {"global_indices": tokens, "counts": tokens})


def c128a_topk(device, decode, prefill, width):
    """Rows of `width` records at most, in a buffer for a million tokens."""
    step = step_of(device, max(decode, prefill))
    tokens = decode + prefill
    positions = torch.cat((step.positions[:decode], step.positions[:prefill]))
    positions = positions * (width * 128 // CONTEXT) if width * 128 >= CONTEXT else \
        positions % (width * 128)
    request = torch.cat((step.token_to_req[:decode], step.token_to_req[:prefill]))
    slots = torch.cat((step.mapping()[:decode], step.mapping()[:prefill]))
    table_width = MAX_MODEL_LEN // BLOCK
    return Case("c128a_topk", f"{decode} decode + {prefill} prefill, width {width}",
                {"compress_ratio": 128, "capacity": 8192, "block_size": 2,
                 "table_width": table_width},
                {"positions": positions, "token_to_req": request, "slot_mapping": slots,
                 "block_table": step.table(table_width, width // 2),
                 "num_decode_tokens": decode, "active_width": width, "num_tokens": tokens},
                {"decode_slots": decode, "decode_lens": decode, "prefill_local": prefill})


def combine_topk_swa(device, topk, ratio, tokens):
    step = Step(device, tokens, 4)
    records = CONTEXT // ratio if ratio else 0
    gathered = step.lengths + torch.clamp(step.seq_lens - step.lengths, max=WINDOW - 1)
    picks = step.picks(max(topk, 1), ratio or 1)
    return Case("combine_topk_swa", f"topk {topk}, {tokens} tokens",
                {"topk": topk, "topk_stride": max(topk, 1), "window": WINDOW,
                 "compress_ratio": ratio, "align": 128},
                {**step.batch(), "topk_indices": picks, "gather_lens": gathered.to(I32),
                 "workspace_rows": records + tokens + WINDOW, "swa_base": records,
                 "num_tokens": tokens},
                {"combined_indices": tokens, "combined_lens": tokens})


def swa_indices(device, tokens, causal=True):
    step = step_of(device, tokens)
    width = MAX_MODEL_LEN // 64
    return Case("swa_indices", f"{tokens} tokens" + ("" if causal else ", draft"),
                {"window": WINDOW, "index_width": WINDOW if causal else 192, "block_size": 64,
                 "table_width": width, "causal": causal},
                {**step.batch(), "token_to_req": step.token_to_req,
                 "is_valid_token": step.valid(), "block_table": step.table(width, CONTEXT // 64),
                 "token_offset": 0, "num_rows": tokens},
                {"swa_indices": tokens, "swa_lens": tokens})


def mixed_sparse_indices(device, decode, tokens, local):
    step = Step(device, tokens, tokens) if decode == tokens else Step(device, tokens, 4)
    width, swa_width = MAX_MODEL_LEN // BLOCK, MAX_MODEL_LEN // 64
    rows = slice(decode, None)
    given = step.picks(512, 4, slice(0, decode))
    window = step.picks(WINDOW, 1, slice(0, decode))
    lens = (given >= 0).sum(1).to(I32)
    args = {**step.batch(), "token_to_req": step.token_to_req, "is_valid_token": step.valid(),
            "swa_block_table": step.table(swa_width, CONTEXT // 64),
            "block_table": step.table(width, CONTEXT // BLOCK),
            "decode_swa_indices": window, "decode_compressed_indices": given,
            "prefill_topk_indices": step.picks(512, 4, rows), "num_decode_tokens": decode,
            "num_tokens": tokens}
    if not local:
        args["decode_compressed_lens"] = lens
    return Case("mixed_sparse_indices",
                f"{decode} decode of {tokens} tokens" + (", local" if local else ""),
                {"window": WINDOW, "swa_width": WINDOW, "compress_ratio": 4, "topk": 512,
                 "decode_topk": 512, "decode_local": local, "swa_block_size": 64, "swa_span": 192,
                 "swa_table_width": swa_width, "block_size": 64, "span": 192,
                 "table_width": width},
                args, {"sparse_indices": tokens, "sparse_lens": tokens})


def compressed_slots(device, ratio, tokens):
    step = step_of(device, tokens)
    width = MAX_MODEL_LEN // BLOCK
    return Case("compressed_slots", f"ratio {ratio}, {tokens} tokens",
                {"compress_ratio": ratio, "block_size": BLOCK // ratio, "table_width": width},
                {**step.batch(), "own_slots": step.mapping(), "num_tokens": tokens,
                 "block_table": step.table(width, CONTEXT // BLOCK)},
                {"slots": tokens})


def token_to_req(device, tokens):
    step = step_of(device, tokens)
    return Case("token_to_req", f"{tokens} tokens", {},
                {"query_start_loc": step.query_start_loc, "num_tokens": tokens},
                {"token_to_req": tokens})


def is_valid_token(device, tokens):
    live = torch.full((1,), tokens, dtype=I32, device=device)
    return Case("is_valid_token", f"{tokens} tokens", {"dcp_world": 1},
                {"slot_mapping": step_of(device, tokens).mapping(), "live_tokens": live,
                 "num_tokens": tokens},
                {"is_valid_token": tokens})


def gather_lens(device, requests):
    step = Step(device, 32 * requests, requests)
    return Case("gather_lens", f"{requests} requests", {"window": WINDOW},
                {**step.batch(), "first_request": requests // 2},
                {"gather_lens": requests - requests // 2})


def image_visibility(device, tokens):
    """Two images in each request: one that ends where its sequence does, one further ahead."""
    step = step_of(device, tokens)
    last = step.seq_lens - 1
    ends = torch.stack((last - 600, last), 1).flatten()
    spans = torch.arange(step.requests + 1, dtype=I32, device=device) * 2
    return Case("image_visibility", f"{tokens} tokens", {"image_width": 512},
                {**step.batch(), "span_start_loc": spans, "span_begin": ends - 500,
                 "span_end": ends, "first_token": 0, "num_tokens": tokens},
                {"left_visible": tokens, "right_visible": tokens})


def makers(few):
    """(maker, its sizes) of every case; `few`: of each op small ones."""
    def some(sizes):
        return [n for n in sizes if n <= 4] + [9] if few else sizes

    tokens = (1, 32, 256, 4096, 16384)
    step_tokens = (1, 256, 8192)
    yield from ((global_topk, k, n) for k in (512, 1024, 2048) for n in some(tokens))
    yield from ((req_to_global, 2048, n) for n in some(tokens))
    yield from ((c128a_topk, n, 0, w) for w in (128, 2048, 8192) for n in some((1, 32, 256)))
    yield from ((c128a_topk, *sizes) for sizes in ((3, 5, 256),) if few)
    yield from ((c128a_topk, *sizes) for sizes in ((0, 4096, 512), (64, 4096, 512)) if not few)
    yield from ((combine_topk_swa, k, r, n) for k, r in ((0, 0), (512, 4), (1024, 4))
                for n in (([9] if few else (1024, 4096, 16384))))
    yield from ((combine_topk_swa, 8192, 128, n) for n in ([9] if few else (1024,)))
    yield from ((swa_indices, n) for n in some(step_tokens))
    yield from ((swa_indices, n, False) for n in some((256,)))
    yield from ((mixed_sparse_indices, n, n, False) for n in some((1, 256)))
    yield from ((mixed_sparse_indices, n, n, True) for n in some((256,)))
    yield from ((mixed_sparse_indices, *sizes, False)
                for sizes in (((3, 9),) if few else ((256, 8192),)))
    yield from ((compressed_slots, r, n) for r in (4, 128) for n in some((*step_tokens, 16384)))
    yield from ((make, n) for make in (token_to_req, is_valid_token, image_visibility)
                for n in some(step_tokens))
    yield from ((gather_lens, n) for n in some((1, 64, 512)))


def all_cases(device, only=None, few=False):
    """Each case, made when it is its turn; `only`: an op's name."""
    for make, *sizes in makers(few):
        if only is None or make.__name__ == only:
            yield make(device, *sizes)
