// SPDX-License-Identifier: Apache-2.0
// image_visibility: how far a token sees to either side inside its image span.
//
//   left_visible[t]  = min(pos - begin, kImageWidth - 1)
//   right_visible[t] = min(end - pos, kImageWidth)
//
// for a token t >= first_token whose position pos lies in a span [begin, end] of its
// request b, the last such of the spans span_start_loc[b] ... span_start_loc[b + 1] - 1;
// else 0 and 0.
//
// In:  query_start_loc[num_requests + 1], which never decreases, seq_lens[num_requests],
//      span_start_loc[num_requests + 1], clamped to [0, num_spans], span_begin and
//      span_end[num_spans].
// Out: left_visible[num_tokens], right_visible[num_tokens]. All int32.
//
// One thread per token. A warp searches the requests of its 32 tokens together; then each
// goes through the spans of its own request, which are few, so that decode tokens, each of
// another request, do not wait for one another. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kImageWidth = 64; // most visible tokens to the right
constexpr int kThreads = 256;   // threads of a block
#endif

static_assert(kImageWidth >= 1, "image_width must be at least 1");
static_assert(kThreads % 32 == 0, "tokens are searched by whole warps");

#include "common/arch.cuh"
#include "common/int_math.cuh"
#include "common/launch_order.cuh"
#include "common/report.cuh"
#include "common/token_places.cuh"

struct args_t {
    const int *query_start_loc;
    const int *seq_lens;
    const int *span_start_loc;
    const int *span_begin;
    const int *span_end;
    int *left_visible;
    int *right_visible;
    int num_tokens;
    int num_requests;
    int num_spans;
    int first_token;
    report_t *report;
};

struct span_t {
    int begin;
    int end; // inclusive
};

constexpr span_t kNoSpan = {0x7fffffff, -1};

__device__ inline bool holds(const span_t &span, int position)
{
    return span.begin <= position && position <= span.end;
}

__device__ inline span_t span_of_token(const args_t &args, const place_t &place)
{
    const int first = clamp(args.span_start_loc[place.request], 0, args.num_spans);
    const int stop = clamp(args.span_start_loc[place.request + 1], 0, args.num_spans);
    for (int i = stop - 1; i >= first; i--) {
        const span_t span = {args.span_begin[i], args.span_end[i]};
        if (holds(span, place.position)) {
            return span;
        }
    }
    return kNoSpan;
}

// What the rules turned away, for the checked build. By the first warp of the launch.
__device__ inline void check_bounds(const args_t &args)
{
    if (args.num_requests == 0) {
        return;
    }
    for (int i = lane_of_thread(); i <= args.num_requests; i += kWarp) {
        const int bound = args.span_start_loc[i];
        if (bound < 0 || bound > args.num_spans) {
            report(args.report, kReasonSpans, i, -1, bound);
        }
    }
}

// Of a token with a place in its sequence.
__device__ inline void check_token(const args_t &args, unsigned row, const place_t &place)
{
    const int first = clamp(args.span_start_loc[place.request], 0, args.num_spans);
    const int stop = clamp(args.span_start_loc[place.request + 1], 0, args.num_spans);
    const long long position = place.position;
    for (int i = stop - 1; i >= first; i--) {
        const long long left = position - args.span_begin[i];
        const long long right = args.span_end[i] - position;
        if (left < 0 || right < 0) {
            continue;
        }
        if (left > kImageWidth - 1) {
            report(args.report, kReasonLength, row, 0, left);
        }
        if (right > kImageWidth) {
            report(args.report, kReasonLength, row, 1, right);
        }
        return;
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_image_visibility(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    let_next_kernel_start();
    const unsigned row = blockIdx.x * kThreads + threadIdx.x;
    const unsigned tokens = static_cast<unsigned>(args.num_tokens);
    // Lanes past the last token take part in the search, with that one.
    const int token = static_cast<int>(least(row, tokens - 1));
    const place_t place = place_of_token<true>(args.query_start_loc, args.seq_lens,
                                               args.num_requests, args.num_tokens, token);
    const int position = place.position;
    span_t span = kNoSpan;
    if (token >= args.first_token && position >= 0) {
        span = span_of_token(args, place);
    }
    if (row < tokens) {
        const bool inside = holds(span, position);
        // Unsigned: a span may begin far before its sequence.
        const unsigned left =
            static_cast<unsigned>(position) - static_cast<unsigned>(span.begin);
        args.left_visible[row] =
            inside ? static_cast<int>(least<unsigned>(left, kImageWidth - 1)) : 0;
        args.right_visible[row] = inside ? least(span.end - position, kImageWidth) : 0;
    }
    if constexpr (kChecked) {
        if (row < kWarp) {
            check_bounds(args);
        }
        if (row < tokens && token >= args.first_token && position >= 0) {
            check_token(args, row, place);
        }
    }
}
