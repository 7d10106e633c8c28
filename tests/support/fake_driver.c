/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_driver.h. Rules of capture are those that the driver was seen to follow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fake_driver.h"
#include "support/fake_driver_graph.h"

/* The one place where a file-scope variable cannot be had otherwise: see the header. */
static struct fake_driver *installed;
static _Thread_local CUcontext current_context;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* Handles are addresses of these. */
struct CUctx_st {
    char unused;
};
struct CUstream_st {
    bool capturing, global, broken;
};
struct CUevent_st {
    char unused;
};
struct CUlib_st {
    char unused;
};
struct CUkern_st {
    char unused;
};
static struct CUctx_st the_context;
static struct CUctx_st the_other_context;
static struct CUkern_st the_kernel;

static const char *result_name(CUresult result)
{
    static const struct {
        CUresult result;
        const char *name;
    } names[] = {
#define RESULT_NAME(result) {result, #result}
        RESULT_NAME(CUDA_SUCCESS),
        RESULT_NAME(CUDA_ERROR_INVALID_VALUE),
        RESULT_NAME(CUDA_ERROR_OUT_OF_MEMORY),
        RESULT_NAME(CUDA_ERROR_NO_DEVICE),
        RESULT_NAME(CUDA_ERROR_INVALID_IMAGE),
        RESULT_NAME(CUDA_ERROR_NO_BINARY_FOR_GPU),
        RESULT_NAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION),
        RESULT_NAME(CUDA_ERROR_INVALID_SOURCE),
        RESULT_NAME(CUDA_ERROR_NOT_FOUND),
        RESULT_NAME(CUDA_ERROR_LAUNCH_FAILED),
        RESULT_NAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
        RESULT_NAME(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED),
        RESULT_NAME(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT),
        RESULT_NAME(CUDA_ERROR_UNKNOWN),
#undef RESULT_NAME
    };
    for (size_t i = 0; i < KI_COUNT_OF(names); i++) {
        if (names[i].result == result) {
            return names[i].name;
        }
    }
    return NULL;
}

struct fake_driver *fake_installed(void)
{
    return installed;
}

void *fake_make(size_t size)
{
    void *made = calloc(1, size);
    if (made == NULL) {
        abort();
    }
    return made;
}

/* With the mutex held. */
static CUresult result_of_call(struct fake_driver *fake, enum fake_call call)
{
    if (fake->fail_nth != 0 && fake->n_calls == fake->fail_nth) {
        return fake->fail_result;
    }
    if (fake->fail_call_nth != 0 && call == fake->fail_call &&
        fake->calls[call] == fake->fail_call_nth) {
        return fake->fail_result;
    }
    return CUDA_SUCCESS;
}

/* Opens every function: counts the call, keeps its order, says whether it shall fail, and
 * leaves the mutex held. */
CUresult fake_enter(enum fake_call call)
{
    struct fake_driver *fake = installed;
    pthread_mutex_lock(&fake->mutex);
    fake->calls[call]++;
    if (call == FAKE_get_error_name) {
        return CUDA_SUCCESS;
    }
    fake->n_calls++;
    if (fake->n_order < FAKE_ORDER) {
        fake->order[fake->n_order++] = call;
    }
    return result_of_call(fake, call);
}

CUresult fake_leave(CUresult result)
{
    pthread_mutex_unlock(&installed->mutex);
    return result;
}

/* An unsafe call on a thread that is not relaxed, beside a capture in global mode, is
 * refused and breaks the capture. With the mutex held. */
static CUresult police(void)
{
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
        installed->n_global_captures == 0) {
        return CUDA_SUCCESS;
    }
    installed->n_broken = installed->n_global_captures;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* As enter, for a call that captures do not suffer. */
CUresult fake_enter_unsafe(enum fake_call call)
{
    CUresult result = fake_enter(call);
    CUresult policed = police();
    return result != CUDA_SUCCESS ? result : policed;
}

static CUresult fake_get_error_name(CUresult result, const char **out)
{
    fake_enter(FAKE_get_error_name);
    *out = result_name(result);
    return fake_leave(*out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

static CUresult fake_init(unsigned int flags)
{
    (void)flags;
    return fake_leave(fake_enter(FAKE_init));
}

static CUresult fake_device_get_count(int *out)
{
    CUresult result = fake_enter(FAKE_device_get_count);
    *out = installed->n_devices;
    return fake_leave(result);
}

static CUresult fake_device_get(CUdevice *out, int ordinal)
{
    CUresult result = fake_enter(FAKE_device_get);
    *out = ordinal;
    return fake_leave(result);
}

static CUresult fake_device_get_name(char *out, int size, CUdevice device)
{
    CUresult result = fake_enter(FAKE_device_get_name);
    snprintf(out, (size_t)size, "Fake GPU %d", device);
    return fake_leave(result);
}

static CUresult fake_device_get_attribute(int *out, CUdevice_attribute attribute,
                                          CUdevice device)
{
    CUresult result = fake_enter(FAKE_device_get_attribute);
    (void)device;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
        *out = installed->cc_major;
    } else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) {
        *out = installed->cc_minor;
    } else if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) {
        *out = FAKE_SMS;
    } else {
        *out = 0;
    }
    return fake_leave(result);
}

static CUresult fake_primary_ctx_retain(CUcontext *out, CUdevice device)
{
    CUresult result = fake_enter(FAKE_primary_ctx_retain);
    (void)device;
    if (result == CUDA_SUCCESS) {
        installed->live.contexts++;
        *out = &the_context;
    }
    return fake_leave(result);
}

/* Releases do their work even when they are told to fail: the driver often returns there
 * what an earlier call did wrong. */
static CUresult fake_primary_ctx_release(CUdevice device)
{
    CUresult result = fake_enter(FAKE_primary_ctx_release);
    (void)device;
    installed->live.contexts--;
    return fake_leave(result);
}

static CUresult fake_ctx_get_current(CUcontext *out)
{
    CUresult result = fake_enter(FAKE_ctx_get_current);
    *out = current_context;
    return fake_leave(result);
}

static CUresult fake_ctx_set_current(CUcontext context)
{
    CUresult result = fake_enter(FAKE_ctx_set_current);
    if (result == CUDA_SUCCESS) {
        current_context = context;
    }
    return fake_leave(result);
}

static CUresult fake_ctx_get_device(CUdevice *out)
{
    CUresult result = fake_enter(FAKE_ctx_get_device);
    *out = 0;
    return fake_leave(result);
}

static CUresult load_result(CUresult result)
{
    struct fake_driver *fake = installed;
    int nth = fake->calls[FAKE_library_load_data];
    int n_refused = fake->refuse_images != 0 ? fake->refuse_images : 1;
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (fake->loads_fail_in_capture && fake->n_capturing > 0) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (fake->refuse_image_nth != 0 && nth >= fake->refuse_image_nth &&
        nth < fake->refuse_image_nth + n_refused) {
        return fake->refuse_result;
    }
    return CUDA_SUCCESS;
}

static CUresult fake_library_load_data(CUlibrary *out, const void *code,
                                       CUjit_option *jit_options, void **jit_values,
                                       unsigned int n_jit, CUlibraryOption *options,
                                       void **values, unsigned int n_options)
{
    CUresult result = load_result(fake_enter_unsafe(FAKE_library_load_data));
    (void)code, (void)jit_options, (void)jit_values, (void)n_jit;
    (void)options, (void)values, (void)n_options;
    if (result == CUDA_SUCCESS) {
        installed->live.libraries++;
        *out = fake_make(sizeof(**out));
    }
    return fake_leave(result);
}

static CUresult fake_library_unload(CUlibrary library)
{
    CUresult result = fake_enter_unsafe(FAKE_library_unload);
    installed->live.libraries--;
    free(library);
    return fake_leave(result);
}

static CUresult fake_library_get_kernel(CUkernel *out, CUlibrary library,
                                        const char *name)
{
    CUresult result = fake_enter(FAKE_library_get_kernel);
    (void)library, (void)name;
    *out = &the_kernel;
    return fake_leave(result);
}

static CUresult fake_kernel_get_function(CUfunction *out, CUkernel kernel)
{
    CUresult result = fake_enter_unsafe(FAKE_kernel_get_function);
    *out = (CUfunction)(void *)kernel;
    return fake_leave(result);
}

static CUresult fake_kernel_get_attribute(int *out, CUfunction_attribute attribute,
                                          CUkernel kernel, CUdevice device)
{
    CUresult result = fake_enter(FAKE_kernel_get_attribute);
    (void)kernel, (void)device;
    if (attribute == CU_FUNC_ATTRIBUTE_NUM_REGS) {
        *out = FAKE_REGISTERS;
    } else if (attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) {
        *out = FAKE_SMEM_BYTES;
    } else if (attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) {
        *out = FAKE_LOCAL_BYTES;
    } else {
        *out = 0;
    }
    return fake_leave(result);
}

static CUresult fake_func_load(CUfunction function)
{
    (void)function;
    return fake_leave(fake_enter_unsafe(FAKE_func_load));
}

static void keep_launch(const CUlaunchConfig *config, CUfunction function, void **params)
{
    struct fake_driver *fake = installed;
    struct fake_launch *launch;
    size_t size = fake->params_bytes < FAKE_PARAMS ? fake->params_bytes : FAKE_PARAMS;
    if (fake->n_launches < FAKE_LAUNCHES) {
        launch = &fake->launches[fake->n_launches];
        launch->config = *config;
        launch->function = function;
        launch->is_programmatic =
            config->numAttrs == 1 &&
            config->attrs->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
            config->attrs->value.programmaticStreamSerializationAllowed == 1;
        launch->config.attrs = NULL; /* it lay on the caller's stack */
        launch->captured = config->hStream != NULL && config->hStream->capturing;
        memcpy(launch->params, params[0], size);
    }
    fake->n_launches++;
}

static CUresult fake_launch_kernel_ex(const CUlaunchConfig *config, CUfunction function,
                                      void **params, void **extra)
{
    CUresult result = fake_enter(FAKE_launch_kernel_ex);
    (void)extra;
    if (result == CUDA_SUCCESS && (config->gridDimX == 0 || config->gridDimY == 0)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    /* The legacy stream would have to wait for the capturing one. */
    if (result == CUDA_SUCCESS && config->hStream == NULL && installed->n_capturing > 0) {
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (result == CUDA_SUCCESS) {
        keep_launch(config, function, params);
    }
    return fake_leave(result);
}

static CUresult fake_stream_create(CUstream *out, unsigned int flags)
{
    CUresult result = fake_enter(FAKE_stream_create);
    (void)flags;
    if (result == CUDA_SUCCESS) {
        installed->live.streams++;
        *out = fake_make(sizeof(**out));
    }
    return fake_leave(result);
}

static void forget_capture(CUstream stream)
{
    if (stream->capturing) {
        installed->n_capturing--;
        installed->n_global_captures -= stream->global;
        stream->capturing = false;
    }
}

static CUresult fake_stream_destroy(CUstream stream)
{
    CUresult result = fake_enter(FAKE_stream_destroy);
    installed->live.streams--;
    forget_capture(stream);
    free(stream);
    return fake_leave(result);
}

static CUresult fake_stream_synchronize(CUstream stream)
{
    CUresult result = fake_enter_unsafe(FAKE_stream_synchronize);
    if (result == CUDA_SUCCESS && stream->capturing) {
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return fake_leave(result);
}

static CUresult fake_stream_is_capturing(CUstream stream, CUstreamCaptureStatus *out)
{
    CUresult result = fake_enter(FAKE_stream_is_capturing);
    *out = stream->capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                             : CU_STREAM_CAPTURE_STATUS_NONE;
    return fake_leave(result);
}

static CUresult fake_thread_exchange_capture_mode(CUstreamCaptureMode *mode)
{
    CUresult result = fake_enter(FAKE_thread_exchange_capture_mode);
    if (result == CUDA_SUCCESS) {
        CUstreamCaptureMode old = thread_mode;
        thread_mode = *mode;
        *mode = old;
    }
    return fake_leave(result);
}

static CUresult fake_stream_begin_capture(CUstream stream, CUstreamCaptureMode mode)
{
    CUresult result = fake_enter(FAKE_stream_begin_capture);
    if (result == CUDA_SUCCESS && stream->capturing) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        stream->capturing = true;
        stream->global = mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        installed->n_capturing++;
        installed->n_global_captures += stream->global;
    }
    return fake_leave(result);
}

static CUresult fake_stream_end_capture(CUstream stream, CUgraph *out)
{
    CUresult result = fake_enter(FAKE_stream_end_capture);
    bool broken = stream->global && installed->n_broken > 0;
    *out = NULL;
    forget_capture(stream);
    if (result == CUDA_SUCCESS && broken) {
        installed->n_broken--;
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (result == CUDA_SUCCESS) {
        installed->live.graphs++;
        *out = fake_make(sizeof(**out));
    }
    return fake_leave(result);
}

static CUresult fake_mem_alloc(CUdeviceptr *out, size_t size)
{
    CUresult result = fake_enter_unsafe(FAKE_mem_alloc);
    void *memory = NULL;
    if (result == CUDA_SUCCESS && posix_memalign(&memory, 256, size) != 0) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        installed->live.allocations++;
        *out = (CUdeviceptr)(uintptr_t)memory;
    }
    return fake_leave(result);
}

static CUresult fake_mem_free(CUdeviceptr address)
{
    CUresult result = fake_enter_unsafe(FAKE_mem_free);
    installed->live.allocations--;
    free((void *)(uintptr_t)address);
    return fake_leave(result);
}

static CUresult copy(enum fake_call call, void *to, const void *from, size_t size)
{
    CUresult result = fake_enter(call);
    if (result == CUDA_SUCCESS) {
        memcpy(to, from, size);
    }
    return fake_leave(result);
}

static CUresult fake_memcpy_htod_async(CUdeviceptr to, const void *from, size_t size,
                                       CUstream stream)
{
    (void)stream;
    return copy(FAKE_memcpy_htod_async, (void *)(uintptr_t)to, from, size);
}

static CUresult fake_memcpy_dtoh_async(void *to, CUdeviceptr from, size_t size,
                                       CUstream stream)
{
    (void)stream;
    return copy(FAKE_memcpy_dtoh_async, to, (const void *)(uintptr_t)from, size);
}

static CUresult fake_memcpy_dtod_async(CUdeviceptr to, CUdeviceptr from, size_t size,
                                       CUstream stream)
{
    (void)stream;
    return copy(FAKE_memcpy_dtod_async, (void *)(uintptr_t)to,
                (const void *)(uintptr_t)from, size);
}

static CUresult fake_event_create(CUevent *out, unsigned int flags)
{
    CUresult result = fake_enter(FAKE_event_create);
    (void)flags;
    if (result == CUDA_SUCCESS) {
        installed->live.events++;
        *out = fake_make(sizeof(**out));
    }
    return fake_leave(result);
}

static CUresult fake_event_destroy(CUevent event)
{
    CUresult result = fake_enter(FAKE_event_destroy);
    installed->live.events--;
    free(event);
    return fake_leave(result);
}

static CUresult fake_event_record(CUevent event, CUstream stream)
{
    (void)event, (void)stream;
    return fake_leave(fake_enter(FAKE_event_record));
}

static CUresult fake_event_synchronize(CUevent event)
{
    (void)event;
    return fake_leave(fake_enter_unsafe(FAKE_event_synchronize));
}

static CUresult fake_event_elapsed_time(float *out, CUevent begin, CUevent end)
{
    CUresult result = fake_enter(FAKE_event_elapsed_time);
    (void)begin, (void)end;
    *out = 0.25F;
    return fake_leave(result);
}

static void fill_table(struct ki_driver *out)
{
    memset(out, 0, sizeof(*out));
#define FAKE_MEMBER(member, symbol, version, required) out->member = fake_##member;
    KI_DRIVER_TABLE(FAKE_MEMBER)
#undef FAKE_MEMBER
    out->version = FAKE_VERSION;
}

void fake_driver_init(struct fake_driver *fake, struct ki_driver *out)
{
    memset(fake, 0, sizeof(*fake));
    pthread_mutex_init(&fake->mutex, NULL);
    fake->n_devices = 1;
    fake->cc_major = 9;
    fake->fail_result = CUDA_ERROR_UNKNOWN;
    fake->refuse_result = CUDA_ERROR_INVALID_IMAGE;
    installed = fake;
    current_context = NULL;
    thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    fill_table(out);
}

void fake_driver_finish(struct fake_driver *fake)
{
    installed = NULL;
    current_context = NULL;
    pthread_mutex_destroy(&fake->mutex);
}

bool fake_driver_is_clean(const struct fake_driver *fake)
{
    const struct fake_live *live = &fake->live;
    bool clean = live->contexts == 0 && live->streams == 0 && live->events == 0 &&
                 live->libraries == 0 && live->allocations == 0 && live->graphs == 0 &&
                 live->execs == 0 && live->user_objects == 0 && fake->n_capturing == 0 &&
                 thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!clean) {
        fprintf(
            stderr,
            "alive: %d contexts, %d streams, %d events, %d libraries, %d "
            "allocations, %d graphs, %d execs, %d user objects, %d captures; thread mode "
            "%d\n",
            live->contexts, live->streams, live->events, live->libraries,
            live->allocations, live->graphs, live->execs, live->user_objects,
            fake->n_capturing, (int)thread_mode);
    }
    return clean;
}

void fake_driver_forget(struct fake_driver *fake)
{
    pthread_mutex_lock(&fake->mutex);
    memset(fake->calls, 0, sizeof(fake->calls));
    fake->n_calls = 0;
    fake->n_order = 0;
    fake->n_launches = 0;
    pthread_mutex_unlock(&fake->mutex);
}

int fake_driver_count(struct fake_driver *fake, enum fake_call call)
{
    pthread_mutex_lock(&fake->mutex);
    int count = fake->calls[call];
    pthread_mutex_unlock(&fake->mutex);
    return count;
}

int fake_driver_first(const struct fake_driver *fake, enum fake_call call)
{
    for (int i = 0; i < fake->n_order; i++) {
        if (fake->order[i] == call) {
            return i;
        }
    }
    return -1;
}

CUcontext fake_driver_context(void)
{
    return &the_context;
}

CUcontext fake_driver_other_context(void)
{
    return &the_other_context;
}

void fake_driver_set_context(CUcontext context)
{
    current_context = context;
}

CUstreamCaptureMode fake_driver_thread_mode(void)
{
    return thread_mode;
}

/* The row of the table with this symbol: its address, in the form of dlsym's. */
static bool find_symbol(const char *symbol, int version, void *out)
{
    struct ki_driver table;
    fill_table(&table);
#define FIND_SYMBOL(member, name, since, required)                                       \
    if (strcmp(symbol, #name) == 0 && version == (since)) {                              \
        memcpy(out, &table.member, sizeof(table.member));                                \
        return true;                                                                     \
    }
    KI_DRIVER_TABLE(FIND_SYMBOL)
#undef FIND_SYMBOL
    return false;
}

CUresult fake_driver_get_proc_address(const char *symbol, void **out, int version,
                                      cuuint64_t flags,
                                      CUdriverProcAddressQueryResult *found)
{
    const char *hidden = installed->hidden_symbol;
    (void)flags;
    *out = NULL;
    *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (hidden != NULL && strcmp(symbol, hidden) == 0) {
        return CUDA_SUCCESS;
    }
    if (find_symbol(symbol, version, out)) {
        *found = CU_GET_PROC_ADDRESS_SUCCESS;
    }
    return CUDA_SUCCESS;
}
