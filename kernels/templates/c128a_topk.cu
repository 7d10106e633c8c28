// SPDX-License-Identifier: Apache-2.0
// c128a_topk: rows that attend every complete record.
//
//   width = clamp(active_width, 0, kCapacity)
//   n     = pos < 0 ? 0 : min((pos + 1) / kCompressRatio, width)
//   decode row  t < num_decode_tokens: decode_slots[t, j < n] = slot of record j, or -1
//   prefill row t - num_decode_tokens: prefill_local[., j < n] = j
//   and -1 in the other columns below width; those past it are not touched.
//
// In:  positions[num_tokens] int64, token_to_req[num_tokens],
//      block_table[table_rows, kTableWidth] (rows kTableStride apart),
//      slot_mapping[num_tokens] int64, or null.
// Out: decode_slots[num_decode_tokens, kCapacity], decode_lens[num_decode_tokens],
//      prefill_local[num_tokens - num_decode_tokens, kCapacity]. int32 but where said.
//
// A row belongs to one warp of each block in x, kThreads / 32 rows a block. The blocks of
// one x deal its rows' columns out among them in pieces of 256, so that few rows still
// fill the GPU and neither grid nor code depends on how many columns are active. With
// kDcpWorld > 1 a decode row is made of its rank's records alone, and a warp counts the
// usable ones before its slices itself: reading the pages again is cheaper than waiting
// for other warps. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kCompressRatio = 128; // raw tokens of a record
constexpr int kCapacity = 8192;     // columns and row stride of the outputs
constexpr int kBlockSize = 2;       // slots of a page
constexpr int kTableWidth = 4096;   // pages of a request
constexpr int kTableStride = 4096;  // elements between rows of block_table
constexpr int kDcpWorld = 1;        // ranks that share the cache
constexpr int kDcpInterleave = 1;   // consecutive ids of one rank
constexpr int kThreads = 128;       // threads of a block
#endif

static_assert(kCompressRatio >= 1 && kCapacity >= 1,
              "compress_ratio and capacity must be at least 1");
static_assert(
    kBlockSize >= 1 && kTableWidth >= 1 && kTableWidth <= kTableStride,
    "block_size and table_width must be at least 1, table_stride at least table_width");
static_assert(kDcpWorld >= 1 && kDcpInterleave >= 1 && kBlockSize % kDcpInterleave == 0,
              "dcp_interleave must divide block_size");
static_assert(kThreads % 32 == 0, "a row takes a whole warp");

#include "common/arch.cuh"
#include "common/check.cuh"
#include "common/compact.cuh"
#include "common/count.cuh"
#include "common/int_math.cuh"
#include "common/launch_order.cuh"
#include "common/paging.cuh"
#include "common/quad.cuh"
#include "common/record_row.cuh"
#include "common/records.cuh"
#include "common/report.cuh"

struct args_t {
    int num_tokens;
    int table_rows;
    count_t num_decode_tokens;
    count_t active_width;
    const long long *positions;
    count_t live_tokens;
    const int *token_to_req;
    const long long *slot_mapping;
    const int *block_table;
    int *decode_slots;
    int *decode_lens;
    int *prefill_local;
    int dcp_rank;
    report_t *report;
};

constexpr unsigned kRows = kThreads / kWarp;

// How many of the records [begin, end) have a usable page, by a warp.
template <bool kWide>
__device__ inline unsigned count_usable(const int *pages, unsigned begin, unsigned end)
{
    if (begin == end) {
        return 0;
    }
    const unsigned n_pages = div_up<unsigned>(end, kBlockSize);
    const unsigned slices = div_up(n_pages, kSlice);
    unsigned usable = 0;
#pragma unroll 8 // look-ups of several slices in flight
    for (unsigned slice = begin / kBlockSize / kSlice; slice < slices; slice++) {
        const int_quad_t quad = load_quad<kWide>(pages, slice, n_pages);
#pragma unroll
        for (unsigned i = 0; i < kQuad; i++) {
            const unsigned page = column_of<kWide>(slice, i);
            const unsigned first = greatest(page * kBlockSize, begin);
            const unsigned last = least((page + 1) * kBlockSize, end);
            const bool counts =
                slot_in_page<kBlockSize>(quad.at[i], 0) >= 0 && first < last;
            usable += counts ? last - first : 0;
        }
    }
    return __reduce_add_sync(kWholeWarp, usable);
}

// The usable ones of the records [0, n) at the front. Returns how many, in the first
// block.
template <bool kWide>
__device__ inline unsigned compact_slices(int *row, unsigned width, unsigned n,
                                          const int *pages)
{
    const unsigned slices = div_up(width, kSlice);
    unsigned kept = 0; // of the records below `counted`
    unsigned counted = 0;
    for (unsigned slice = blockIdx.y; slice < slices; slice += gridDim.y) {
        if (slice * kSlice < n) {
            kept += count_usable<kWide>(pages, counted, slice * kSlice);
            counted = least((slice + 1) * kSlice, n);
        }
#pragma unroll
        for (unsigned i = 0; i < kQuad; i++) {
            const unsigned column = column_of<false>(slice, i);
            int slot = -1;
            if (column < n) {
                slot = slot_in_page<kBlockSize>(__ldg(pages + column / kBlockSize),
                                                column % kBlockSize);
            } else if (column < width) {
                row[column] = -1;
            }
            const unsigned place = place_kept(slot >= 0, kept);
            if (slot >= 0) {
                row[place] = slot;
            }
        }
    }
    if (blockIdx.y == 0) {
        kept += count_usable<kWide>(pages, counted, n);
        for (unsigned column = kept + lane_of_thread(); column < n; column += kWarp) {
            row[column] = -1;
        }
    }
    return kept;
}

// Returns the row's length, in the first block.
__device__ inline unsigned write_decode_row(int *row, unsigned width, unsigned n,
                                            const int *pages)
{
    if constexpr (kDcpWorld == 1) {
        write_row<true>(row, width, n, pages);
        return n;
    } else if (takes_quads(pages)) {
        return compact_slices<true>(row, width, n, pages);
    } else {
        return compact_slices<false>(row, width, n, pages);
    }
}

// What the rules turned away, for the checked build: of a live decode row with its records
// [0, n), by its warp; `once` is null for all lanes but one. Whether the row is not inert.
__device__ inline bool check_decode_row(const args_t &args, unsigned row, unsigned n,
                                        report_t *once)
{
    const bool masks = kDcpWorld == 1 && args.slot_mapping != nullptr;
    if (masks && args.slot_mapping[row] < 0) {
        return false;
    }
    const int request = args.token_to_req[row];
    if (request < 0 || request >= args.table_rows) {
        report(once, kReasonRequest, row, -1, request);
        return false;
    }
    const int *pages = args.block_table + static_cast<long long>(request) * kTableStride;
    for (unsigned record = lane_of_thread(); record < n; record += kWarp) {
        const owned_t owned =
            owned_by<kDcpWorld, kDcpInterleave>(static_cast<int>(record), args.dcp_rank);
        if (owned.mine && owned.local < kPagedIds<kBlockSize, kTableWidth>) {
            check_page<kTwo31 / kBlockSize>({args.report, row, record},
                                            pages[owned.local / kBlockSize]);
        }
    }
    return true;
}

// Of any row, by its warp in one block.
__device__ inline void check_row(const args_t &args, unsigned row)
{
    if (is_first_thread()) {
        report_count(args.report, kReasonDecodeTokens, args.num_decode_tokens,
                     args.num_tokens);
        report_count(args.report, kReasonLiveTokens, args.live_tokens, args.num_tokens);
        report_count(args.report, kReasonActiveWidth, args.active_width, kCapacity);
    }
    const int token = static_cast<int>(row);
    const long long position = args.positions[row];
    if (token >= read_count(args.live_tokens, args.num_tokens) || position < 0) {
        return;
    }
    const int width = clamp(read_count(args.active_width, kCapacity), 0, kCapacity);
    const int n = complete_records<kCompressRatio>(position, width);
    const unsigned long long complete =
        (static_cast<unsigned long long>(position) + 1) / kCompressRatio;
    bool clipped = complete > static_cast<unsigned>(n);
    report_t *once = lane_of_thread() == 0 ? args.report : nullptr;
    if (token < read_count(args.num_decode_tokens, 0)) {
        if (!check_decode_row(args, row, n, once)) {
            return;
        }
        const unsigned owned = owned_below<kDcpWorld, kDcpInterleave>(n, args.dcp_rank);
        clipped = clipped || owned > kPagedIds<kBlockSize, kTableWidth>;
    }
    if (clipped) {
        report(once, kReasonLength, row, -1,
               static_cast<long long>(least(complete, ~0ull >> 1)));
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_c128a_topk(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    let_next_kernel_start();
    const unsigned row = blockIdx.x * kRows + warp_of_thread();
    if (row >= static_cast<unsigned>(args.num_tokens)) {
        return;
    }
    // All that a row may need is under way before the first of it is looked at.
    const int live_tokens = read_count(args.live_tokens, args.num_tokens);
    const int active_width = read_count(args.active_width, kCapacity);
    const int decode_tokens = read_count(args.num_decode_tokens, 0);
    const long long position = args.positions[row];
    const int request = args.token_to_req[row];
    const bool masks = kDcpWorld == 1 && args.slot_mapping != nullptr;
    const long long raw_slot = masks ? args.slot_mapping[row] : 0;

    const int width = clamp(active_width, 0, kCapacity);
    const unsigned n_decode = clamp(decode_tokens, 0, args.num_tokens);
    const bool live = static_cast<int>(row) < live_tokens;
    const bool known = request >= 0 && request < args.table_rows;
    const long long table_row = known ? request : 0;
    const int n = live ? complete_records<kCompressRatio>(position, width) : 0;
    if (row >= n_decode) {
        const long long prefill_row = row - n_decode;
        write_row<false>(args.prefill_local + prefill_row * kCapacity, width, n, nullptr);
    } else {
        const unsigned owned = owned_below<kDcpWorld, kDcpInterleave>(n, args.dcp_rank);
        const unsigned paged = least(owned, kPagedIds<kBlockSize, kTableWidth>);
        const unsigned length =
            write_decode_row(args.decode_slots + static_cast<long long>(row) * kCapacity,
                             width, known && raw_slot >= 0 ? paged : 0,
                             args.block_table + table_row * kTableStride);
        if (blockIdx.y == 0 && lane_of_thread() == 0) {
            args.decode_lens[row] = static_cast<int>(length);
        }
    }
    if constexpr (kChecked) {
        if (blockIdx.y == 0) {
            check_row(args, row);
        }
    }
}
