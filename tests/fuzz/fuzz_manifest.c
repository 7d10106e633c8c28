/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests. What can be read can be written, and reads the same again. */
#include <string.h>

#include "kiln/plan.h"

#include "fuzz.h"

static char *write_manifest(const struct kiln_manifest *manifest, size_t *out_size)
{
    FUZZ_CHECK(kiln_manifest_write(manifest, NULL, 0, out_size, NULL) == KILN_OK);
    char *text = malloc(*out_size + 1);
    FUZZ_CHECK(text != NULL);
    FUZZ_CHECK(kiln_manifest_write(manifest, text, *out_size + 1, out_size, NULL) ==
               KILN_OK);
    return text;
}

static void check_written(const struct kiln_manifest *manifest)
{
    struct kiln_manifest again = {0};
    size_t size, size_again;
    char *text = write_manifest(manifest, &size);

    FUZZ_CHECK(kiln_manifest_read(text, size, "again", &again, NULL) == KILN_OK);
    FUZZ_CHECK(
        memcmp(again.plan.digest, manifest->plan.digest, sizeof again.plan.digest) == 0);
    char *text_again = write_manifest(&again, &size_again);
    FUZZ_CHECK(size == size_again && memcmp(text, text_again, size) == 0);
    free(text);
    free(text_again);
    kiln_plan_finish(&again.plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_manifest manifest = {0};
    struct kiln_error err = {0};

    if (kiln_manifest_read((const char *)data, size, "manifest.json", &manifest, &err) ==
        KILN_OK) {
        check_written(&manifest);
        kiln_plan_finish(&manifest.plan);
    } else {
        FUZZ_CHECK(err.status != KILN_OK && err.message[0] != '\0');
        FUZZ_CHECK(manifest.plan.items == NULL);
    }
    return 0;
}
