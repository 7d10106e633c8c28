# SPDX-License-Identifier: Apache-2.0
"""Each op in Triton, the way an engine would write it: one rank, the shape's constants as
`constexpr`. What a kernel must compute is said in include/kiln/op/<name>.h.

`OPS` gives for each op a launcher and the tunings it is worth trying: launcher(v, a, c) takes the
shape's fields, the arguments by kiln's names (tensors and ints) and one tuning.
"""

import triton
import triton.language as tl

TWO31 = tl.constexpr(1 << 31)

# For kernels that know the requests of a step. How many there are is another number each time,
# and a server cannot compile while it serves: it has no kernel for one request, which Triton would
# make by itself, and none for each number of steps of a search.
per_step = triton.jit(do_not_specialize=["num_requests", "first_request", "steps"])


# ---- helpers -------------------------------------------------------------------------------------

@triton.jit
def page_of(pages, live, ids, BLOCK_SIZE: tl.constexpr, TABLE_WIDTH: tl.constexpr):
    """(page, offset) of local ids; page -1 where the table has none."""
    unsigned = ids.to(tl.uint32, bitcast=True)
    live = live & (unsigned < TABLE_WIDTH * BLOCK_SIZE)
    page = tl.load(pages + unsigned // BLOCK_SIZE, mask=live, other=-1)
    return page, (unsigned % BLOCK_SIZE).to(tl.int32, bitcast=True)


@triton.jit
def slot_of(pages, live, ids, BLOCK_SIZE: tl.constexpr, TABLE_WIDTH: tl.constexpr):
    page, offset = page_of(pages, live, ids, BLOCK_SIZE, TABLE_WIDTH)
    usable = (page >= 0) & (page < TWO31 // BLOCK_SIZE)
    return tl.where(usable, page * BLOCK_SIZE + offset, -1)


@triton.jit
def spread(slots, BLOCK_SIZE: tl.constexpr, SPAN: tl.constexpr):
    """Slots of a pool whose pages lie SPAN apart; -1 where that is no int32."""
    far = (slots // BLOCK_SIZE).to(tl.int64) * SPAN + slots % BLOCK_SIZE
    return tl.where((slots >= 0) & (far < TWO31), far, -1).to(tl.int32)


@triton.jit
def request_of_row(starts, num_requests, token, REQUESTS: tl.constexpr):
    """The request of one token: how many end at or before it."""
    request = 0
    for first in range(0, num_requests, REQUESTS):
        r = first + tl.arange(0, REQUESTS)
        ends = tl.load(starts + 1 + r, mask=r < num_requests, other=2147483647)
        request += tl.sum((ends <= token).to(tl.int32))
    return request


@triton.jit
def request_of_each(starts, num_requests, tokens, steps):
    """The request of each token of a block, by bisection; num_requests behind the last."""
    low = tl.zeros_like(tokens)
    high = low + num_requests
    for _ in range(steps):
        middle = (low + high) // 2
        open_ = low < high
        end = tl.load(starts + 1 + middle, mask=open_, other=0)
        passed = open_ & (end <= tokens)
        low = tl.where(passed, middle + 1, low)
        high = tl.where(open_ & (end > tokens), middle, high)
    return low


@triton.jit
def window_start(pos, left, W: tl.constexpr):
    return tl.maximum(pos - (W - 1) - tl.maximum(left - (W - 1), 0), 0)


# ---- rows of picks -------------------------------------------------------------------------------

@triton.jit
def global_topk_kernel(ids, token_to_req, table, valid, slots, lens, table_rows,
                       TOPK: tl.constexpr, IDS_STRIDE: tl.constexpr, SLOTS_STRIDE: tl.constexpr,
                       BLOCK_SIZE: tl.constexpr, TABLE_WIDTH: tl.constexpr,
                       TABLE_STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    request = tl.load(token_to_req + token)
    live = (request >= 0) & (request < table_rows)
    if valid is not None:
        live = live & (tl.load(valid + token) != 0)
    pages = table + tl.where(live, request, 0).to(tl.int64) * TABLE_STRIDE
    mapped = 0
    for first in tl.static_range(0, TOPK, BLOCK):
        column = first + tl.arange(0, BLOCK)
        picks = tl.load(ids + token * IDS_STRIDE + column, mask=column < TOPK, other=-1)
        slot = slot_of(pages, live, picks, BLOCK_SIZE, TABLE_WIDTH)
        tl.store(slots + token * SLOTS_STRIDE + column, slot, mask=column < TOPK)
        mapped += tl.sum((slot >= 0).to(tl.int32))
    tl.store(lens + token, mapped)


def global_topk(v, a, c):
    global_topk_kernel[(a["num_tokens"],)](
        a["topk_indices"], a["token_to_req"], a["block_table"], a.get("is_valid_token"), a["slots"],
        a["lens"], a["block_table"].shape[0], v["topk"], v["topk_stride"], v["slots_stride"],
        v["block_size"], v["table_width"], v["table_stride"], **c)


@triton.jit
def req_to_global_kernel(ids, req_id, table, valid, out, counts, table_rows, TOPK: tl.constexpr,
                         IDS_STRIDE: tl.constexpr, OUT_STRIDE: tl.constexpr,
                         BLOCK_SIZE: tl.constexpr, PAGE_STRIDE: tl.constexpr,
                         TABLE_WIDTH: tl.constexpr, TABLE_STRIDE: tl.constexpr,
                         BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    request = tl.load(req_id + token)
    live = (request >= 0) & (request < table_rows)
    if valid is not None:
        live = live & (tl.load(valid + token) != 0)
    pages = table + tl.where(live, request, 0).to(tl.int64) * TABLE_STRIDE
    mapped = 0
    for first in tl.static_range(0, TOPK, BLOCK):
        column = first + tl.arange(0, BLOCK)
        picks = tl.load(ids + token * IDS_STRIDE + column, mask=column < TOPK, other=-1)
        page, offset = page_of(pages, live, picks, BLOCK_SIZE, TABLE_WIDTH)
        place = page.to(tl.int64) * PAGE_STRIDE + offset
        slot = tl.where((page >= 0) & (place < TWO31), place, -1).to(tl.int32)
        tl.store(out + token * OUT_STRIDE + column, slot, mask=column < TOPK)
        mapped += tl.sum((slot >= 0).to(tl.int32))
    tl.store(counts + token, mapped)


def req_to_global(v, a, c):
    req_to_global_kernel[(a["num_tokens"],)](
        a["token_indices"], a["req_id"], a["block_table"], a.get("is_valid_token"),
        a["global_indices"], a["counts"], a["block_table"].shape[0], v["topk"], v["topk_stride"],
        v["out_stride"], v["block_size"], v["page_stride"], v["table_width"], v["table_stride"],
        **c)


# ---- every record --------------------------------------------------------------------------------

@triton.jit
def c128a_topk_kernel(positions, token_to_req, table, slot_mapping, decode_slots, decode_lens,
                      prefill_local, num_decode_tokens, active_width, table_rows,
                      R: tl.constexpr, CAPACITY: tl.constexpr, BLOCK_SIZE: tl.constexpr,
                      TABLE_WIDTH: tl.constexpr, TABLE_STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    begin = tl.program_id(1) * BLOCK
    step = tl.num_programs(1) * BLOCK
    pos = tl.load(positions + token)
    n = tl.where(pos < 0, 0, tl.minimum((pos + 1) // R, active_width)).to(tl.int32)
    if token < num_decode_tokens:
        request = tl.load(token_to_req + token)
        live = (request >= 0) & (request < table_rows)
        if slot_mapping is not None:
            live = live & (tl.load(slot_mapping + token) >= 0)
        n = tl.where(live, tl.minimum(n, TABLE_WIDTH * BLOCK_SIZE), 0)
        pages = table + tl.where(live, request, 0).to(tl.int64) * TABLE_STRIDE
        for first in range(begin, active_width, step):
            column = first + tl.arange(0, BLOCK)
            slot = slot_of(pages, column < n, column, BLOCK_SIZE, TABLE_WIDTH)
            tl.store(decode_slots + token * CAPACITY + column, slot, mask=column < active_width)
        if begin == 0:
            tl.store(decode_lens + token, n)
    else:
        row = prefill_local + (token - num_decode_tokens) * CAPACITY
        for first in range(begin, active_width, step):
            column = first + tl.arange(0, BLOCK)
            tl.store(row + column, tl.where(column < n, column, -1), mask=column < active_width)


def c128a_topk(v, a, c):
    blocks = triton.cdiv(a["active_width"], c["BLOCK"])
    grid = (a["num_tokens"], min(blocks, c["splits"]))
    c128a_topk_kernel[grid](
        a["positions"], a["token_to_req"], a["block_table"], a.get("slot_mapping"),
        a["decode_slots"], a["decode_lens"], a["prefill_local"], a["num_decode_tokens"],
        a["active_width"], a["block_table"].shape[0], v["compress_ratio"], v["capacity"],
        v["block_size"], v["table_width"], v["table_stride"], BLOCK=c["BLOCK"],
        num_warps=c["num_warps"])


# ---- windows -------------------------------------------------------------------------------------

@triton.jit
def combine_topk_swa_kernel(picks, starts, seq_lens, gather_lens, left_visible, right_visible, out,
                            lens, workspace_rows, swa_base, num_requests, TOPK: tl.constexpr,
                            PICKS_STRIDE: tl.constexpr, W: tl.constexpr, R: tl.constexpr,
                            IMAGE: tl.constexpr, OUT_STRIDE: tl.constexpr, WIDTH: tl.constexpr,
                            BLOCK: tl.constexpr, REQUESTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    token = tl.load(starts) + tl.program_id(0)
    b = request_of_row(starts, num_requests, token, REQUESTS)
    known = b < num_requests
    begin = tl.load(starts + b, mask=known, other=0)
    end = tl.load(starts + 1 + b, mask=known, other=0)
    seq_len = tl.load(seq_lens + b, mask=known, other=0)
    gathered = tl.load(gather_lens + b, mask=known, other=0)
    pos = seq_len - (end - token)
    live = known & (token >= begin) & (pos >= 0)
    left, right = 0, 0
    if IMAGE > 0 and left_visible is not None:
        left = tl.maximum(tl.load(left_visible + row), 0)
        right = tl.maximum(tl.load(right_visible + row), 0)
    k = 0
    if R > 0:
        k = tl.minimum((pos + 1) // R, TOPK)
    k = tl.where(live, k, 0)
    start = window_start(pos, left, W)
    n = tl.minimum(tl.minimum(pos + right + 1, seq_len) - start, W + IMAGE)
    n = tl.where(live, n, 0)
    base = workspace_rows * b
    shift = start - (seq_len - gathered) - k
    for first in tl.static_range(0, WIDTH, BLOCK):
        column = first + tl.arange(0, BLOCK)
        g = column + shift
        inside = (column >= k) & (column < k + n) & (g >= 0) & (g < gathered)
        value = tl.where(inside, base + swa_base + g, -1)
        if TOPK > 0:
            pick = tl.load(picks + row * PICKS_STRIDE + column, mask=column < k, other=-1)
            value = tl.where((pick >= 0) & (pick < swa_base), base + pick, value)
        tl.store(out + row * OUT_STRIDE + column, value, mask=column < WIDTH)
    tl.store(lens + row, k + n)


def combine_topk_swa(v, a, c):
    width = v["topk"] + v["window"] + v["image_width"]
    combine_topk_swa_kernel[(a["num_tokens"],)](
        a.get("topk_indices"), a["query_start_loc"], a["seq_lens"], a["gather_lens"],
        a.get("left_visible"), a.get("right_visible"), a["combined_indices"], a["combined_lens"],
        a["workspace_rows"], a["swa_base"], a["seq_lens"].shape[0], v["topk"], v["topk_stride"],
        v["window"], v["compress_ratio"], v["image_width"], v["combined_stride"],
        triton.cdiv(width, v["align"]) * v["align"], REQUESTS=32, **c)


@triton.jit(do_not_specialize=["num_rows", "token_offset", "requests"])
def swa_indices_kernel(starts, seq_lens, token_to_req, table, valid, left_visible, right_visible,
                       indices, lens, num_rows, token_offset, requests, W: tl.constexpr,
                       WIDTH: tl.constexpr, STRIDE: tl.constexpr, IMAGE: tl.constexpr,
                       CAUSAL: tl.constexpr, BLOCK_SIZE: tl.constexpr, TABLE_WIDTH: tl.constexpr,
                       TABLE_STRIDE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    launched = row < num_rows
    token = row + token_offset
    request = tl.load(token_to_req + token, mask=launched, other=-1)
    live = (request >= 0) & (request < requests)
    if valid is not None:
        live = live & (tl.load(valid + token, mask=launched, other=0) != 0)
    end = tl.load(starts + 1 + request, mask=live, other=0)
    stop = tl.load(seq_lens + request, mask=live, other=0)
    if CAUSAL:
        pos = stop - (end - token)
        live = live & (pos >= 0)
        left, right = 0, 0
        if IMAGE > 0 and left_visible is not None:
            left = tl.maximum(tl.load(left_visible + token, mask=live, other=0), 0)
            right = tl.maximum(tl.load(right_visible + token, mask=live, other=0), 0)
        start = window_start(pos, left, W)
        stop = start + tl.minimum(tl.minimum(pos + right + 1, stop) - start, W + IMAGE)
    else:
        prefix = stop - (end - tl.load(starts + request, mask=live, other=0))
        start = tl.maximum(prefix - W, 0)
    start = tl.maximum(start, stop - WIDTH)
    n = tl.where(live, tl.maximum(stop - start, 0), 0)
    column = tl.arange(0, BLOCK)[None, :]
    position = start[:, None] + column
    pages = table + tl.where(live, request, 0).to(tl.int64)[:, None] * TABLE_STRIDE
    slot = slot_of(pages, column < n[:, None], position, BLOCK_SIZE, TABLE_WIDTH)
    tl.store(indices + row.to(tl.int64)[:, None] * STRIDE + column, slot,
             mask=launched[:, None] & (column < WIDTH))
    tl.store(lens + row, n, mask=launched)


def swa_indices(v, a, c):
    swa_indices_kernel[(triton.cdiv(a["num_rows"], c["ROWS"]),)](
        a["query_start_loc"], a["seq_lens"], a["token_to_req"], a["block_table"],
        a.get("is_valid_token"), a.get("left_visible"), a.get("right_visible"), a["swa_indices"],
        a["swa_lens"], a["num_rows"], a["token_offset"],
        min(a["seq_lens"].shape[0], a["block_table"].shape[0]), v["window"], v["index_width"],
        v["index_stride"], v["image_width"], v["causal"], v["block_size"], v["table_width"],
        v["table_stride"], BLOCK=triton.next_power_of_2(v["index_width"]), **c)


# ---- a mixed batch -------------------------------------------------------------------------------

@triton.jit
def mixed_decode_row(swa, compressed, compressed_lens, out, pages, token, live,
                     SWA_WIDTH: tl.constexpr, WS: tl.constexpr, KP: tl.constexpr,
                     DECODE_TOPK: tl.constexpr, DECODE_LOCAL: tl.constexpr,
                     SWA_BLOCK_SIZE: tl.constexpr, SWA_SPAN: tl.constexpr,
                     BLOCK_SIZE: tl.constexpr, SPAN: tl.constexpr, TABLE_WIDTH: tl.constexpr,
                     BLOCK: tl.constexpr):
    """A decode token's row; returns the length of its second part."""
    for first in tl.static_range(0, WS, BLOCK):
        column = first + tl.arange(0, BLOCK)
        given = tl.load(swa + token * SWA_WIDTH + column, mask=live & (column < SWA_WIDTH),
                        other=-1)
        tl.store(out + column, spread(given, SWA_BLOCK_SIZE, SWA_SPAN), mask=column < WS)
    mapped = 0
    for first in tl.static_range(0, KP, BLOCK):
        column = first + tl.arange(0, BLOCK)
        slot = tl.load(compressed + token * DECODE_TOPK + column,
                       mask=live & (column < DECODE_TOPK), other=-1)
        if DECODE_LOCAL:
            slot = slot_of(pages, live, slot, BLOCK_SIZE, TABLE_WIDTH)
        slot = spread(slot, BLOCK_SIZE, SPAN)
        tl.store(out + WS + column, slot, mask=column < KP)
        mapped += tl.sum((slot >= 0).to(tl.int32))
    if not DECODE_LOCAL:
        mapped = DECODE_TOPK
        if compressed_lens is not None:
            mapped = tl.minimum(tl.maximum(tl.load(compressed_lens + token), 0), DECODE_TOPK)
    return tl.where(live, mapped, 0)


@triton.jit
def mixed_prefill_row(picks, out, swa_pages, pages, start, n, k, WS: tl.constexpr, KP: tl.constexpr,
                      TOPK: tl.constexpr, SWA_BLOCK_SIZE: tl.constexpr, SWA_SPAN: tl.constexpr,
                      SWA_TABLE_WIDTH: tl.constexpr, BLOCK_SIZE: tl.constexpr, SPAN: tl.constexpr,
                      TABLE_WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    for first in tl.static_range(0, WS, BLOCK):
        column = first + tl.arange(0, BLOCK)
        slot = slot_of(swa_pages, column < n, start + column, SWA_BLOCK_SIZE, SWA_TABLE_WIDTH)
        tl.store(out + column, spread(slot, SWA_BLOCK_SIZE, SWA_SPAN), mask=column < WS)
    for first in tl.static_range(0, KP, BLOCK):
        column = first + tl.arange(0, BLOCK)
        pick = tl.load(picks + column, mask=(column < k) & (column < TOPK), other=-1)
        slot = slot_of(pages, column < k, pick, BLOCK_SIZE, TABLE_WIDTH)
        tl.store(out + WS + column, spread(slot, BLOCK_SIZE, SPAN), mask=column < KP)


@triton.jit(do_not_specialize=["num_decode_tokens", "requests"])
def mixed_sparse_indices_kernel(
        starts, seq_lens, token_to_req, valid, swa_table, table, decode_swa, decode_compressed,
        decode_lens, picks, out, lens, num_decode_tokens, requests, W: tl.constexpr,
        SWA_WIDTH: tl.constexpr, R: tl.constexpr, TOPK: tl.constexpr, DECODE_TOPK: tl.constexpr,
        DECODE_LOCAL: tl.constexpr, SWA_BLOCK_SIZE: tl.constexpr, SWA_SPAN: tl.constexpr,
        SWA_TABLE_WIDTH: tl.constexpr, SWA_TABLE_STRIDE: tl.constexpr, BLOCK_SIZE: tl.constexpr,
        SPAN: tl.constexpr, TABLE_WIDTH: tl.constexpr, TABLE_STRIDE: tl.constexpr,
        KP: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    request = tl.load(token_to_req + token)
    known = (request >= 0) & (request < requests)
    live = True
    if valid is not None:
        live = tl.load(valid + token) != 0
    row = out + token * (SWA_WIDTH + KP)
    pages = table + tl.where(known, request, 0).to(tl.int64) * TABLE_STRIDE
    if token < num_decode_tokens:
        if DECODE_LOCAL:
            live = live & known
        length = mixed_decode_row(decode_swa, decode_compressed, decode_lens, row, pages, token,
                                  live, SWA_WIDTH, SWA_WIDTH, KP, DECODE_TOPK, DECODE_LOCAL,
                                  SWA_BLOCK_SIZE, SWA_SPAN, BLOCK_SIZE, SPAN, TABLE_WIDTH, BLOCK)
        tl.store(lens + token, SWA_WIDTH + length)
    else:
        live = live & known
        end = tl.load(starts + 1 + request, mask=live, other=0)
        pos = tl.load(seq_lens + request, mask=live, other=0) - (end - tl.program_id(0))
        live = live & (pos >= 0)
        start = window_start(pos, 0, W)
        n = tl.where(live, pos + 1 - start, 0)
        k = 0
        if R > 0:
            k = tl.where(live, tl.minimum((pos + 1) // R, TOPK), 0)
        swa_pages = swa_table + tl.where(live, request, 0).to(tl.int64) * SWA_TABLE_STRIDE
        mixed_prefill_row(picks + (token - num_decode_tokens) * TOPK, row, swa_pages, pages, start,
                          n, k, SWA_WIDTH, KP, TOPK, SWA_BLOCK_SIZE, SWA_SPAN, SWA_TABLE_WIDTH,
                          BLOCK_SIZE, SPAN, TABLE_WIDTH, BLOCK)
        tl.store(lens + token, SWA_WIDTH + k)


def mixed_sparse_indices(v, a, c):
    assert v["image_width"] == 0
    mixed_sparse_indices_kernel[(a["num_tokens"],)](
        a["query_start_loc"], a["seq_lens"], a["token_to_req"], a.get("is_valid_token"),
        a["swa_block_table"], a["block_table"], a["decode_swa_indices"],
        a["decode_compressed_indices"], a.get("decode_compressed_lens"), a["prefill_topk_indices"],
        a["sparse_indices"], a["sparse_lens"], a["num_decode_tokens"],
        min(a["seq_lens"].shape[0], a["block_table"].shape[0], a["swa_block_table"].shape[0]),
        v["window"], v["swa_width"], v["compress_ratio"], v["topk"], v["decode_topk"],
        v["decode_local"], v["swa_block_size"], v["swa_span"], v["swa_table_width"],
        v["swa_table_stride"], v["block_size"], v["span"], v["table_width"], v["table_stride"],
        triton.cdiv(max(v["topk"], v["decode_topk"]), 4) * 4, **c)


# ---- one element a token -------------------------------------------------------------------------

@per_step
def compressed_slots_kernel(starts, seq_lens, table, own_slots, slots, num_tokens, num_requests,
                            steps, table_rows, R: tl.constexpr, BLOCK_SIZE: tl.constexpr,
                            TABLE_WIDTH: tl.constexpr, TABLE_STRIDE: tl.constexpr,
                            BLOCK: tl.constexpr):
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    launched = token < num_tokens
    b = request_of_each(starts, num_requests, token, steps)
    live = launched & (b < num_requests) & (token >= tl.load(starts))
    end = tl.load(starts + 1 + b, mask=live, other=0)
    pos = tl.load(seq_lens + b, mask=live, other=0) - (end - token)
    live = live & (pos >= 0) & ((pos + 1) % R == 0) & (b < table_rows)
    if own_slots is not None:
        live = live & (tl.load(own_slots + token, mask=launched, other=-1) >= 0)
    pages = table + tl.where(live, b, 0).to(tl.int64) * TABLE_STRIDE
    page, offset = page_of(pages, live, pos // R, BLOCK_SIZE, TABLE_WIDTH)
    slot = tl.where(page >= 0, page.to(tl.int64) * BLOCK_SIZE + offset, -1)
    tl.store(slots + token, slot, mask=launched)


def compressed_slots(v, a, c):
    requests = a["seq_lens"].shape[0]
    compressed_slots_kernel[(triton.cdiv(a["num_tokens"], c["BLOCK"]),)](
        a["query_start_loc"], a["seq_lens"], a["block_table"], a.get("own_slots"), a["slots"],
        a["num_tokens"], requests, requests.bit_length(), a["block_table"].shape[0],
        v["compress_ratio"], v["block_size"], v["table_width"], v["table_stride"], **c)


@per_step
def token_to_req_kernel(starts, out, num_tokens, num_requests, steps, PAD: tl.constexpr,
                        BLOCK: tl.constexpr):
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    b = request_of_each(starts, num_requests, token, steps)
    known = (b < num_requests) & (token >= tl.load(starts))
    tl.store(out + token, tl.where(known, b, PAD), mask=token < num_tokens)


def token_to_req(v, a, c):
    requests = a["query_start_loc"].shape[0] - 1
    token_to_req_kernel[(triton.cdiv(a["num_tokens"], c["BLOCK"]),)](
        a["query_start_loc"], a["token_to_req"], a["num_tokens"], requests,
        requests.bit_length(), v["pad_req"], **c)


@triton.jit
def is_valid_token_kernel(slot_mapping, out, live_tokens, num_tokens, BLOCK: tl.constexpr):
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    launched = token < num_tokens
    slot = tl.load(slot_mapping + token, mask=launched, other=-1)
    valid = (slot >= 0) & (token < tl.load(live_tokens))
    tl.store(out + token, valid.to(tl.uint8), mask=launched)


def is_valid_token(v, a, c):
    assert v["dcp_world"] == 1
    is_valid_token_kernel[(triton.cdiv(a["num_tokens"], c["BLOCK"]),)](
        a["slot_mapping"], a["is_valid_token"], a["live_tokens"], a["num_tokens"], **c)


@per_step
def gather_lens_kernel(starts, seq_lens, out, first_request, num_requests, W: tl.constexpr,
                       BLOCK: tl.constexpr):
    b = first_request + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = b < num_requests
    begin = tl.load(starts + b, mask=inside, other=0)
    length = tl.load(starts + 1 + b, mask=inside, other=0) - begin
    prefix = tl.load(seq_lens + b, mask=inside, other=0) - length
    gathered = length + tl.minimum(tl.maximum(prefix, 0), W - 1)
    tl.store(out + b - first_request, gathered, mask=inside)


def gather_lens(v, a, c):
    requests = a["seq_lens"].shape[0]
    gather_lens_kernel[(triton.cdiv(requests - a["first_request"], c["BLOCK"]),)](
        a["query_start_loc"], a["seq_lens"], a["gather_lens"], a["first_request"], requests,
        v["window"], **c)


@per_step
def image_visibility_kernel(starts, seq_lens, span_starts, span_begin, span_end, left_out,
                            right_out, num_tokens, num_requests, steps, num_spans, first_token,
                            IMAGE: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    b = request_of_each(starts, num_requests, token, steps)
    live = (b < num_requests) & (token >= tl.load(starts)) & (token < num_tokens)
    live = live & (token >= first_token)
    end = tl.load(starts + 1 + b, mask=live, other=0)
    pos = tl.load(seq_lens + b, mask=live, other=0) - (end - token)
    live = live & (pos >= 0)
    span = tl.minimum(tl.maximum(tl.load(span_starts + b, mask=live, other=0), 0), num_spans)
    last = tl.minimum(tl.maximum(tl.load(span_starts + 1 + b, mask=live, other=0), 0), num_spans)
    left = tl.zeros_like(token)
    right = tl.zeros_like(token)
    for i in range(0, tl.max(last - span)):
        inside = live & (span + i < last)
        begins = tl.load(span_begin + span + i, mask=inside, other=0)
        ends = tl.load(span_end + span + i, mask=inside, other=-1)
        inside = inside & (begins <= pos) & (pos <= ends)
        left = tl.where(inside, tl.minimum(pos - begins, IMAGE - 1), left)
        right = tl.where(inside, tl.minimum(ends - pos, IMAGE), right)
    tl.store(left_out + token, left, mask=token < num_tokens)
    tl.store(right_out + token, right, mask=token < num_tokens)


def image_visibility(v, a, c):
    requests = a["seq_lens"].shape[0]
    image_visibility_kernel[(triton.cdiv(a["num_tokens"], c["BLOCK"]),)](
        a["query_start_loc"], a["seq_lens"], a["span_start_loc"], a["span_begin"], a["span_end"],
        a["left_visible"], a["right_visible"], a["num_tokens"], requests, requests.bit_length(),
        a["span_begin"].shape[0], a["first_token"], v["image_width"], **c)


# ---- what to try ---------------------------------------------------------------------------------

def tunings(*pairs, **more):
    return [{"BLOCK": block, "num_warps": warps, **more} for block, warps in pairs]


PICKS = tunings((512, 1), (512, 2), (512, 4), (1024, 4), (2048, 4), (2048, 8))
SMALL = tunings((32, 1), (128, 4), (256, 4))
OPS = {
    "global_topk": (global_topk, PICKS),
    "req_to_global": (req_to_global, PICKS),
    "c128a_topk": (c128a_topk, tunings((256, 2), (1024, 4), splits=64)
                   + tunings((512, 4), (1024, 8), splits=2)),
    "combine_topk_swa": (combine_topk_swa, tunings((128, 1), (512, 2), (1024, 4), (2048, 8))),
    "swa_indices": (swa_indices, [{"ROWS": rows, "num_warps": warps}
                                  for rows, warps in ((1, 1), (4, 4), (8, 4))]),
    "mixed_sparse_indices": (mixed_sparse_indices,
                             tunings((128, 1), (256, 2), (512, 2), (512, 4))),
    "compressed_slots": (compressed_slots, SMALL),
    "token_to_req": (token_to_req, SMALL),
    "is_valid_token": (is_valid_token, SMALL),
    "gather_lens": (gather_lens, SMALL),
    "image_visibility": (image_visibility, SMALL),
}


def tunings_of(name, v):
    """The tunings of an op for a shape: blocks of picks no wider than the row."""
    tried = OPS[name][1]
    if tried is PICKS:
        tried = [c for c in tried if c["BLOCK"] <= triton.next_power_of_2(v["topk"])] or tried[:1]
    return tried
