/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that looks like NVRTC 13.7 and cannot compile, as one does that finds no builtins
 * of its own version. Tests copy it to where they want it.
 */
#include <stddef.h>
#include <string.h>

#include <nvrtc.h>

static const char log_text[] =
    "nvrtc: error: failed to open libnvrtc-builtins.so.13.7.\n";

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 7;
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult result)
{
    return result == NVRTC_SUCCESS ? "NVRTC_SUCCESS"
                                   : "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
}

nvrtcResult nvrtcGetNumSupportedArchs(int *n)
{
    *n = 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *archs)
{
    archs[0] = 90;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source,
                               const char *name, int n_headers,
                               const char *const *headers, const char *const *names)
{
    (void)source, (void)name, (void)n_headers, (void)headers, (void)names;
    *program = NULL;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    *program = NULL;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int n_options,
                                const char *const *options)
{
    (void)program, (void)n_options, (void)options;
    return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size_bytes)
{
    (void)program;
    *size_bytes = 0;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin)
{
    (void)program, (void)cubin;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size_bytes)
{
    (void)program;
    *size_bytes = sizeof(log_text);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    (void)program;
    memcpy(log, log_text, sizeof(log_text));
    return NVRTC_SUCCESS;
}
