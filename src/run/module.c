/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cubin -> loaded kernel. The driver loads lazily by default, and the first touch of a
 * kernel waits until the GPU is idle, so every stage of the load is asked for here. Knows
 * neither where the cubin came from nor what the kernel does.
 */
#include "run/module.h"

/* One load under way: what its failures are told with. */
struct load {
    const struct ki_driver *driver;
    const struct ki_device *device;
    const char *entry_name;
    struct kiln_error *err;
};

/* Results that speak about the image, not about the machine: another image may load. */
static bool is_refusal(CUresult result)
{
    return result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
           result == CUDA_ERROR_INVALID_PTX ||
           result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
           result == CUDA_ERROR_INVALID_SOURCE || result == CUDA_ERROR_NOT_FOUND;
}

static enum kiln_status check(const struct load *load, CUresult result, const char *call)
{
    const struct ki_driver *driver = load->driver;
    const struct ki_target target = load->device->target;
    if (result == CUDA_SUCCESS) {
        return KILN_OK;
    }
    const char *name = ki_driver_result_name(driver, result);
    if (is_refusal(result)) {
        return ki_fail_native(load->err, KILN_E_CUBIN_REFUSED, KILN_ORIGIN_DRIVER,
                              (int)result, name,
                              "the driver (CUDA %d.%d) does not take the cubin of %s on "
                              "this sm_%d%d device: %s",
                              driver->version / 1000, driver->version % 1000 / 10,
                              load->entry_name, target.major, target.minor, call);
    }
    if (ki_device_is_capture_result(result)) {
        return ki_fail_native(
            load->err, KILN_E_CAPTURING, KILN_ORIGIN_DRIVER, (int)result, name,
            "the driver (CUDA %d.%d) does not load %s while a stream is "
            "being captured: prepare before the capture begins: %s",
            driver->version / 1000, driver->version % 1000 / 10, load->entry_name, call);
    }
    return ki_fail_native(load->err, KILN_E_DRIVER, KILN_ORIGIN_DRIVER, (int)result, name,
                          "loading %s: %s", load->entry_name, call);
}

static enum kiln_status load_kernel(const struct load *load, struct ki_blob image,
                                    struct ki_module *module)
{
    const struct ki_driver *driver = load->driver;
    KI_TRY(check(load,
                 driver->library_load_data(&module->library, image.data, NULL, NULL, 0,
                                           NULL, NULL, 0),
                 "cuLibraryLoadData"));
    return check(
        load,
        driver->library_get_kernel(&module->kernel, module->library, load->entry_name),
        "cuLibraryGetKernel");
}

/* Without this the code would move to the GPU at the first launch, and wait there. */
static enum kiln_status finish_load(const struct load *load,
                                    const struct ki_module *module)
{
    const struct ki_driver *driver = load->driver;
    CUfunction function = NULL;
    KI_TRY(check(load, driver->kernel_get_function(&function, module->kernel),
                 "cuKernelGetFunction"));
    if (driver->func_load == NULL) {
        return KILN_OK;
    }
    return check(load, driver->func_load(function), "cuFuncLoad");
}

static enum kiln_status get_attribute(const struct load *load,
                                      const struct ki_module *module,
                                      CUfunction_attribute attribute, int *out)
{
    return check(load,
                 load->driver->kernel_get_attribute(out, attribute, module->kernel,
                                                    load->device->ordinal),
                 "cuKernelGetAttribute");
}

static enum kiln_status get_attributes(const struct load *load, struct ki_module *module)
{
    KI_TRY(get_attribute(load, module, CU_FUNC_ATTRIBUTE_NUM_REGS, &module->registers));
    KI_TRY(get_attribute(load, module, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                         &module->smem_bytes));
    return get_attribute(load, module, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
                         &module->local_bytes);
}

static enum kiln_status load_whole(const struct load *load, struct ki_blob image,
                                   struct ki_module *module)
{
    KI_TRY(load_kernel(load, image, module));
    KI_TRY(finish_load(load, module));
    return get_attributes(load, module);
}

enum kiln_status ki_module_load(const struct ki_driver *driver,
                                const struct ki_device *device, struct ki_blob image,
                                const char *entry_name, struct ki_module *out,
                                struct kiln_error *err)
{
    const struct load load = {driver, device, entry_name, err};
    struct ki_module module = {.code_bytes = (int)image.size};
    struct ki_relaxed scope;
    KI_TRY(ki_relaxed_enter(driver, &scope, err));
    enum kiln_status status = load_whole(&load, image, &module);
    if (status == KILN_OK) {
        *out = module;
    } else if (module.library != NULL) {
        (void)driver->library_unload(module.library);
    }
    ki_relaxed_leave(driver, &scope);
    return status;
}

enum kiln_status ki_module_load_here(const struct ki_driver *driver,
                                     const struct ki_device *device,
                                     const struct ki_module *module,
                                     const char *entry_name, struct kiln_error *err)
{
    const struct load load = {driver, device, entry_name, err};
    struct ki_relaxed scope;
    KI_TRY(ki_relaxed_enter(driver, &scope, err));
    enum kiln_status status = finish_load(&load, module);
    ki_relaxed_leave(driver, &scope);
    return status;
}

void ki_module_unload(const struct ki_driver *driver, struct ki_module *module)
{
    struct ki_relaxed scope;
    if (module->library == NULL) {
        return;
    }
    /* An unrelaxed unload could kill another thread's capture, a leak harms nobody. */
    if (ki_relaxed_enter(driver, &scope, NULL) == KILN_OK) {
        (void)driver->library_unload(module->library);
        ki_relaxed_leave(driver, &scope);
    }
    *module = (struct ki_module){.library = NULL};
}
