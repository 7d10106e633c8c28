/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of a sub-command as a table: strict, each at most once, "--name value" or
 * "--name=value". */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_flag_kind { CLI_SWITCH, CLI_TEXT, CLI_INTEGER };

struct cli_flag {
    const char *name; /* with its dashes */
    enum cli_flag_kind kind;
    int64_t min, max; /* CLI_INTEGER, inclusive */
    bool *on;         /* CLI_SWITCH */
    const char **text;
    int64_t *integer;
    bool given; /* set by cli_args_parse */
};

enum { CLI_FLAGS_MAX = 24 };
struct cli_flags {
    struct cli_flag items[CLI_FLAGS_MAX];
    size_t n;
};

void cli_add_switch(struct cli_flags *flags, const char *name, bool *on);
void cli_add_text(struct cli_flags *flags, const char *name, const char **text);
void cli_add_integer(struct cli_flags *flags, const char *name, int64_t min, int64_t max,
                     int64_t *integer);

/* What is left when the flags are gone; the strings are argv's. */
struct cli_words {
    char **items;
    size_t n;
};

/* argv without the program and the sub-command. CLI_DONE or CLI_WRONG, reported. */
int cli_args_parse(struct cli_flags *flags, int argc, char **argv,
                   struct cli_words *words);

/* As cli_args_parse, for a command that takes no words. */
int cli_args_parse_flags(struct cli_flags *flags, int argc, char **argv);

/* A whole decimal int64, nothing around it. */
bool cli_parse_integer(const char *text, int64_t *out);

#endif
