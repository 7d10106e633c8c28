/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checked build: the same results, and a report of what the rules turned away.
 *
 * A kiln that was created with `checked` builds and prepares the checked variant of every
 * kernel, another key. The variant writes to the report that its args name: a small
 * buffer in device memory, this header and `capacity` entries behind it. Launches and
 * replays add to it, so one may serve a whole step; it never traps, and never changes a
 * result. A reference whose args name a report (in host memory) writes the same entries.
 *
 * What is reported, op by op: docs/checked-build.md.
 */
#ifndef KILN_REPORT_H
#define KILN_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * X(value, NAME, name, text): why something was turned away. Values are pinned. An entry
 * of a live, valid row, but for counts, which are of the launch (row and column -1).
 */
#define KILN_REASON_TABLE(X)                                                             \
    X(1, KILN_REASON_REQUEST, "request", "request out of range")                         \
    X(2, KILN_REASON_ID, "id", "id that has no page")                                    \
    X(3, KILN_REASON_PAGE, "page", "page that cannot be used")                           \
    X(4, KILN_REASON_RANGE, "range", "index that an int32 cannot hold")                  \
    X(5, KILN_REASON_LENGTH, "length", "length that was clipped")                        \
    X(6, KILN_REASON_LIVE_TOKENS, "live_tokens", "count out of range")                   \
    X(7, KILN_REASON_DECODE_TOKENS, "num_decode_tokens", "count out of range")           \
    X(8, KILN_REASON_ACTIVE_WIDTH, "active_width", "count out of range")                 \
    X(9, KILN_REASON_FIRST_REQUEST, "first_request", "count out of range")               \
    X(10, KILN_REASON_SPANS, "span_start_loc", "bound out of range")

enum kiln_reason {
#define KILN_REASON_VALUE(value, name, word, text) name = (value),
    KILN_REASON_TABLE(KILN_REASON_VALUE)
#undef KILN_REASON_VALUE
};

struct kiln_report_entry {
    int32_t op;     /* enum kiln_op: whose kernel */
    int32_t row;    /* of the launch; -1: the launch as a whole */
    int32_t column; /* of the input, as the page says; -1: the row as a whole */
    int32_t reason; /* enum kiln_reason */
    int64_t value;  /* what was turned away */
};

/* `capacity` struct kiln_report_entry follow. Aligned to 8 bytes. */
struct kiln_report {
    uint64_t n_found;  /* all that was found; entries beyond capacity were not kept */
    uint32_t capacity; /* the first that many found are kept, in no order */
    uint32_t reserved;
};

/** Bytes of a report with room for that many entries. Threads: any. Capture: allowed.
 * @return the header's and the entries' bytes. */
KILN_API size_t kiln_report_bytes(uint32_t capacity);

/**
 * Make an empty report, to be copied to the device; or to be given to a reference.
 *
 * @param buf kiln_report_bytes(capacity) bytes, aligned to 8
 * Owner: the caller
 * Threads: any
 * Capture: allowed
 * @return the report in `buf`; NULL: buf is NULL
 * Since: 1
 */
KILN_API struct kiln_report *kiln_report_init(void *buf, uint32_t capacity);

/**
 * The entries of a report that was copied back, sorted in place by op, row, column,
 * reason and value: the same findings, the same order.
 *
 * @param out_n how many were kept; n_found - *out_n were not
 * Owner: they live in the report
 * Threads: any
 * Capture: allowed
 * @return the entries; NULL: report is NULL
 * Since: 1
 */
KILN_API const struct kiln_report_entry *kiln_report_sort(struct kiln_report *report,
                                                          size_t *out_n);

/**
 * An entry in words: "global_topk: row 3, column 17: id that has no page: 4711".
 *
 * @param buf ends in a NUL; 160 bytes hold every entry, what does not fit is cut
 * Threads: any
 * Capture: allowed
 * @return KILN_OK; KILN_E_ARGUMENT: a pointer is NULL or size_bytes is 0
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_report_text(const struct kiln_report_entry *entry, char *buf, size_t size_bytes,
                 struct kiln_error *err);

/** A reason's name, "id", as in JSON. Threads: any. Capture: allowed.
 * @return static; "unknown" for a value that is none. */
KILN_API const char *kiln_reason_name(enum kiln_reason value);

#ifdef __cplusplus
}
#endif
#endif
