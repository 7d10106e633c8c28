/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads libcuda.so.1 and binds the table through cuGetProcAddress, each symbol at the
 * version whose prototype cuda.h has, so that a newer driver cannot hand out another
 * signature. Knows nothing of kernels; never sets or reads the environment.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "run/driver.h"

enum { OLDEST_DRIVER = 12000 };

#define LIBRARY_NAME "libcuda.so.1"

/* One row of the table: where its pointer goes, and what to ask the driver for. */
struct symbol {
    const char *name;
    int version;
    int required;
    size_t offset; /* of the member in struct ki_driver */
};

static const struct symbol symbols[] = {
#define SYMBOL(member, symbol, version, required)                                        \
    {#symbol, version, required, offsetof(struct ki_driver, member)},
    KI_DRIVER_TABLE(SYMBOL)
#undef SYMBOL
};

/* POSIX's dlsym gives an object pointer and means a function; ISO C has no cast for it.
 */
static void store_function(void *member, void *address)
{
    _Static_assert(sizeof(void *) == sizeof(void (*)(void)), "POSIX: one pointer size");
    memcpy(member, &address, sizeof(address));
}

static enum kiln_status check_version(int version, struct kiln_error *err)
{
    if (version >= OLDEST_DRIVER) {
        return KILN_OK;
    }
    return ki_fail(err, KILN_E_DRIVER_MISSING,
                   "the CUDA driver is of version %d.%d, kiln needs %d.%d or newer",
                   version / 1000, version % 1000 / 10, OLDEST_DRIVER / 1000,
                   OLDEST_DRIVER % 1000 / 10);
}

/* The driver answers success with a null address for a symbol that it does not have. */
static enum kiln_status bind_symbol(struct ki_driver *driver, const struct symbol *symbol,
                                    ki_get_proc_address_fn get_proc_address,
                                    struct kiln_error *err)
{
    void *address = NULL;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CUresult result = get_proc_address(symbol->name, &address, symbol->version,
                                       CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
    if (result != CUDA_SUCCESS) {
        address = NULL;
    }
    if (address == NULL && symbol->required) {
        return ki_fail(err, KILN_E_DRIVER_MISSING,
                       "the CUDA driver %d.%d has no %s of version %d.%d",
                       driver->version / 1000, driver->version % 1000 / 10, symbol->name,
                       symbol->version / 1000, symbol->version % 1000 / 10);
    }
    store_function((char *)driver + symbol->offset, address);
    return KILN_OK;
}

enum kiln_status ki_driver_bind(struct ki_driver *driver, int version,
                                ki_get_proc_address_fn get_proc_address,
                                struct kiln_error *err)
{
    struct ki_driver bound = {.version = version, .library = driver->library};
    KI_TRY(check_version(version, err));
    for (size_t i = 0; i < KI_COUNT_OF(symbols); i++) {
        KI_TRY(bind_symbol(&bound, &symbols[i], get_proc_address, err));
    }
    CUresult result = bound.init(0);
    if (result != CUDA_SUCCESS) {
        return ki_fail_native(err, KILN_E_DRIVER_MISSING, KILN_ORIGIN_DRIVER, (int)result,
                              ki_driver_result_name(&bound, result),
                              "the CUDA driver %d.%d does not start: cuInit",
                              version / 1000, version % 1000 / 10);
    }
    *driver = bound;
    return KILN_OK;
}

/* The two exports that are needed before cuGetProcAddress can be used. */
struct exports {
    __typeof__(cuDriverGetVersion) *get_version;
    ki_get_proc_address_fn get_proc_address;
    int version;
};

static enum kiln_status find_exports(void *library, struct exports *out,
                                     struct kiln_error *err)
{
    store_function(&out->get_version, dlsym(library, "cuDriverGetVersion"));
    store_function(&out->get_proc_address, dlsym(library, "cuGetProcAddress_v2"));
    if (out->get_version == NULL || out->get_version(&out->version) != CUDA_SUCCESS) {
        return ki_fail(err, KILN_E_DRIVER_MISSING,
                       LIBRARY_NAME " was loaded, but does not tell its version");
    }
    /* A driver older than 12.0 has no _v2: its age is what the caller should read. */
    KI_TRY(check_version(out->version, err));
    if (out->get_proc_address == NULL) {
        return ki_fail(err, KILN_E_DRIVER_MISSING,
                       LIBRARY_NAME " was loaded, but has no cuGetProcAddress_v2");
    }
    return KILN_OK;
}

enum kiln_status ki_driver_open(struct ki_driver *driver, struct kiln_error *err)
{
    struct ki_driver opened = {.version = 0};
    struct exports exports = {NULL, NULL, 0};
    enum kiln_status status;

    /* NODELETE: the driver keeps threads of its own that must not lose their code. */
    opened.library = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (opened.library == NULL) {
        const char *reason = dlerror();
        return ki_fail(err, KILN_E_DRIVER_MISSING,
                       "cannot load the CUDA driver, " LIBRARY_NAME ": %s",
                       reason != NULL ? reason : "no reason given");
    }
    status = find_exports(opened.library, &exports, err);
    if (status != KILN_OK) {
        goto out;
    }
    status = ki_driver_bind(&opened, exports.version, exports.get_proc_address, err);
    if (status != KILN_OK) {
        goto out;
    }
    *driver = opened;
    return KILN_OK;
out:
    ki_driver_close(&opened);
    return status;
}

void ki_driver_close(struct ki_driver *driver)
{
    if (driver->library != NULL) {
        dlclose(driver->library);
    }
    *driver = (struct ki_driver){.version = 0};
}

const char *ki_driver_result_name(const struct ki_driver *driver, CUresult result)
{
    const char *name = NULL;
    if (driver->get_error_name(result, &name) != CUDA_SUCCESS) {
        return NULL;
    }
    return name;
}

enum kiln_status ki_driver_check(const struct ki_driver *driver, CUresult result,
                                 const char *call, struct kiln_error *err)
{
    if (result == CUDA_SUCCESS) {
        return KILN_OK;
    }
    return ki_fail_native(err, KILN_E_DRIVER, KILN_ORIGIN_DRIVER, (int)result,
                          ki_driver_result_name(driver, result), "%s", call);
}
