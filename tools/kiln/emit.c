/* SPDX-License-Identifier: Apache-2.0 */
/* kiln emit: the CUDA source of a shape, the very bytes that are compiled. */
#include <stdio.h>
#include <stdlib.h>

#include "kiln/kiln.h"

#include "args.h"
#include "commands.h"
#include "report.h"
#include "shape_text.h"

static const char help[] =
    "usage: kiln emit OP [field=value ...] [--checked]\n"
    "\n"
    "Prints the CUDA source of an op at a shape: one text that nvcc -cubin -arch sm_80\n"
    "or newer accepts.\n"
    "Fields that are left out have their defaults; a name that is none lists the op's.\n"
    "\n"
    "  --checked  the variant that reports what the rules turn away\n";

/* Reports and gives NULL where the op is none, or not built yet. */
static const struct kiln_op_info *find_op(const char *name)
{
    const struct kiln_op_info *info = kiln_op_info_by_name(name);
    char names[1024];

    if (info == NULL) {
        cli_op_names(names, sizeof names);
        (void)cli_wrong("%s: no such op; expected one of %s", name, names);
        return NULL;
    }
    if (!info->supported) {
        (void)cli_wrong("%s: not in this kiln yet", info->name);
        return NULL;
    }
    return info;
}

static int emit(const struct kiln_op_info *info, const struct kiln_shape *shape,
                uint32_t variant)
{
    struct kiln_error err;
    size_t size;
    int status = CLI_DONE;

    if (kiln_emit_source(info->op, shape, variant, NULL, 0, &size, &err) != KILN_OK) {
        return cli_report("", &err, true);
    }
    char *text = malloc(size + 1);
    if (text == NULL) {
        return cli_failed("out of memory");
    }
    if (kiln_emit_source(info->op, shape, variant, text, size + 1, &size, &err) !=
        KILN_OK) {
        status = cli_report("", &err, true);
    } else {
        (void)fwrite(text, 1, size, stdout);
    }
    free(text);
    return status;
}

static int run(int argc, char **argv)
{
    struct cli_flags flags = {0};
    struct cli_words words;
    struct kiln_shape shape;
    bool is_checked = false;

    cli_add_switch(&flags, "--checked", &is_checked);
    int status = cli_args_parse(&flags, argc, argv, &words);
    if (status != CLI_DONE) {
        return status;
    }
    if (words.n == 0) {
        return cli_wrong("no op given; usage: kiln emit OP [field=value ...]");
    }
    const struct kiln_op_info *info = find_op(words.items[0]);
    if (info == NULL) {
        return CLI_WRONG;
    }
    status = cli_shape_from_words(info, words.items + 1, words.n - 1, &shape);
    if (status != CLI_DONE) {
        return status;
    }
    return emit(info, &shape, is_checked ? KILN_VARIANT_CHECKED : 0);
}

const struct cli_command cli_emit = {"emit", "print the CUDA source of a shape", help,
                                     run};
