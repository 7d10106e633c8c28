/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can go wrong, and how a call says so. Status values are pinned: a number is never
 * reused. Negative values come in families by stage, so that a caller can switch
 * coarsely.
 */
#ifndef KILN_STATUS_H
#define KILN_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KILN_API __attribute__((visibility("default")))
#define KILN_MUST_USE __attribute__((warn_unused_result))
#else
#define KILN_API
#define KILN_MUST_USE
#endif

/* X(value, NAME, text): the one table behind the enum, the names, the texts and
 * docs/errors.md. */
#define KILN_STATUS_TABLE(X)                                                             \
    X(0, KILN_OK, "done")                                                                \
    X(-1, KILN_E_ARGUMENT, "an argument is not what the call accepts")                   \
    X(-2, KILN_E_VERSION, "the caller was built against a newer kiln")                   \
    X(-10, KILN_E_SHAPE, "the shape is not one that the op can have")                    \
    X(-11, KILN_E_TARGET, "the target is unknown or cannot be served")                   \
    X(-12, KILN_E_UNSUPPORTED, "this kiln does not have the op yet")                     \
    X(-13, KILN_E_PARSE, "a config or manifest is not what it should be")                \
    X(-20, KILN_E_NVRTC_MISSING, "no usable NVRTC was found")                            \
    X(-21, KILN_E_COMPILE, "NVRTC refused the source")                                   \
    X(-30, KILN_E_STORE, "the kernel cache on disk failed")                              \
    X(-40, KILN_E_DRIVER_MISSING, "no usable CUDA driver was found")                     \
    X(-41, KILN_E_NO_CONTEXT, "the thread has no current CUDA context")                  \
    X(-42, KILN_E_DRIVER, "a CUDA driver call failed")                                   \
    X(-43, KILN_E_CAPTURING, "not allowed while a stream is being captured")             \
    X(-44, KILN_E_NOT_READY, "the kernel has not been prepared")                         \
    X(-45, KILN_E_LIMIT, "the cap on live kernels is reached")                           \
    X(-46, KILN_E_FORKED, "not allowed in a child after fork")                           \
    X(-47, KILN_E_CUBIN_REFUSED, "the driver refused the cubin")                         \
    X(-48, KILN_E_BUSY, "something that is still in use would go away")                  \
    X(-50, KILN_E_MEMORY, "out of memory")                                               \
    X(-51, KILN_E_SYSTEM, "an operating-system call failed")                             \
    X(-52, KILN_E_TIMEOUT, "another thread's build did not end in time")                 \
    X(-90, KILN_E_INTERNAL, "a fault in kiln itself")

enum kiln_status {
#define KILN_STATUS_VALUE(value, name, text) name = (value),
    KILN_STATUS_TABLE(KILN_STATUS_VALUE)
#undef KILN_STATUS_VALUE
};

/* Who learned of the failure first. */
enum kiln_origin {
    KILN_ORIGIN_KILN = 0,
    KILN_ORIGIN_NVRTC = 1,
    KILN_ORIGIN_DRIVER = 2,
    KILN_ORIGIN_OS = 3,
};

#define KILN_MESSAGE_BYTES 1024

/*
 * The detail of one failure. The caller owns it, it is never allocated, and every call
 * takes NULL in its place. It is written on failure only; a message names the thing, its
 * value and what was expected.
 */
struct kiln_error {
    enum kiln_status status;
    enum kiln_origin origin;
    int32_t native_code; /* nvrtcResult, CUresult or errno; 0 when origin is kiln */
    char message[KILN_MESSAGE_BYTES];
};

/**
 * The name of a status, such as "KILN_E_SHAPE"; "KILN_E_?" for a number that is none.
 *
 * Owner: static, never freed.
 * Threads: any
 * Capture: allowed
 * @return a string, never NULL
 * Since: 1
 */
KILN_API const char *kiln_status_name(int status);

/**
 * One line on what a status means.
 *
 * Owner: static, never freed.
 * Threads: any
 * Capture: allowed
 * @return a string, never NULL
 * Since: 1
 */
KILN_API const char *kiln_status_text(int status);

enum kiln_log_level {
    KILN_LOG_NONE = 0,
    KILN_LOG_ERROR = 1, /* a call failed */
    KILN_LOG_WARN = 2,  /* it worked, but degraded */
    KILN_LOG_INFO = 3,  /* built, loaded, trimmed */
    KILN_LOG_DEBUG = 4,
};

/* Called from any thread that calls kiln, and from those of kiln_warm. The text is one line
 * without a newline, or a compiler's whole log, and valid for the call. It must not call
 * kiln. */
typedef void (*kiln_log_fn)(void *user, enum kiln_log_level level, const char *text);

#ifdef __cplusplus
}
#endif
#endif
