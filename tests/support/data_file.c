/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the files under tests/. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/data_file.h"

enum { FILE_MAX_BYTES = 1 << 22 };

char *data_file_read(const char *folder, const char *name, size_t *size)
{
    char path[1024];
    const char *root = getenv("KILN_TEST_DATA");

    if (root == NULL) {
        fail_msg("KILN_TEST_DATA is not set: expected the folder tests/");
    }
    (void)snprintf(path, sizeof(path), "%s/%s/%s", root, folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail_msg("%s cannot be opened", path);
    }
    char *text = calloc(1, FILE_MAX_BYTES + 1);
    assert_non_null(text);
    *size = fread(text, 1, FILE_MAX_BYTES, file);
    assert_true(feof(file));
    (void)fclose(file);
    return text;
}

json_t *data_file_json(const char *folder, const char *name)
{
    size_t size = 0;
    char *text = data_file_read(folder, name, &size);
    json_error_t where;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);

    free(text);
    if (root == NULL) {
        fail_msg("%s: line %d: %s", name, where.line, where.text);
    }
    return root;
}
