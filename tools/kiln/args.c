/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of flags. It knows no command; every mistake names the flag and what it
 * takes. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "report.h"

static struct cli_flag *add_flag(struct cli_flags *flags, const char *name,
                                 enum cli_flag_kind kind)
{
    assert(flags->n < CLI_FLAGS_MAX);
    struct cli_flag *flag = &flags->items[flags->n++];

    *flag = (struct cli_flag){.name = name, .kind = kind};
    return flag;
}

void cli_add_switch(struct cli_flags *flags, const char *name, bool *on)
{
    add_flag(flags, name, CLI_SWITCH)->on = on;
}

void cli_add_text(struct cli_flags *flags, const char *name, const char **text)
{
    add_flag(flags, name, CLI_TEXT)->text = text;
}

void cli_add_integer(struct cli_flags *flags, const char *name, int64_t min, int64_t max,
                     int64_t *integer)
{
    struct cli_flag *flag = add_flag(flags, name, CLI_INTEGER);

    flag->min = min;
    flag->max = max;
    flag->integer = integer;
}

bool cli_parse_integer(const char *text, int64_t *out)
{
    const char *digits = *text == '-' ? text + 1 : text;
    char *end;

    if (*digits == '\0' || digits[strspn(digits, "0123456789")] != '\0') {
        return false;
    }
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0) {
        return false;
    }
    *out = value;
    return true;
}

/* The flag that `word` names, up to its end or its '='. */
static struct cli_flag *find_flag(struct cli_flags *flags, const char *word)
{
    size_t len = strcspn(word, "=");

    for (size_t i = 0; i < flags->n; i++) {
        const char *name = flags->items[i].name;

        if (strlen(name) == len && strncmp(name, word, len) == 0) {
            return &flags->items[i];
        }
    }
    return NULL;
}

static int set_flag(struct cli_flag *flag, const char *value)
{
    int64_t number;

    if (flag->kind == CLI_TEXT) {
        if (*value == '\0') {
            return cli_wrong("%s: expected a value, got an empty one", flag->name);
        }
        *flag->text = value;
        return CLI_DONE;
    }
    if (!cli_parse_integer(value, &number) || number < flag->min || number > flag->max) {
        return cli_wrong("%s: expected an integer from %" PRId64 " to %" PRId64
                         ", got \"%s\"",
                         flag->name, flag->min, flag->max, value);
    }
    *flag->integer = number;
    return CLI_DONE;
}

/* Take the flag at argv[*i] and its value; *i ends on the last one used. */
static int take_flag(struct cli_flags *flags, int argc, char **argv, int *i)
{
    const char *word = argv[*i];
    const char *equals = strchr(word, '=');
    struct cli_flag *flag = find_flag(flags, word);

    if (flag == NULL) {
        return cli_wrong("%s: no such flag here; --help lists them", word);
    }
    if (flag->given) {
        return cli_wrong("%s: given twice", flag->name);
    }
    flag->given = true;
    if (flag->kind == CLI_SWITCH) {
        if (equals != NULL) {
            return cli_wrong("%s: takes no value", flag->name);
        }
        *flag->on = true;
        return CLI_DONE;
    }
    if (equals != NULL) {
        return set_flag(flag, equals + 1);
    }
    if (*i + 1 >= argc) {
        return cli_wrong("%s: expected a value after it", flag->name);
    }
    *i += 1;
    return set_flag(flag, argv[*i]);
}

int cli_args_parse(struct cli_flags *flags, int argc, char **argv,
                   struct cli_words *words)
{
    bool only_words = false;

    *words = (struct cli_words){.items = argv};
    for (int i = 0; i < argc; i++) {
        if (only_words || argv[i][0] != '-') {
            words->items[words->n++] = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--") == 0) {
            only_words = true;
            continue;
        }
        int status = take_flag(flags, argc, argv, &i);
        if (status != CLI_DONE) {
            return status;
        }
    }
    return CLI_DONE;
}

int cli_args_parse_flags(struct cli_flags *flags, int argc, char **argv)
{
    struct cli_words words;
    int status = cli_args_parse(flags, argc, argv, &words);

    if (status == CLI_DONE && words.n > 0) {
        return cli_wrong("%s: unexpected argument", words.items[0]);
    }
    return status;
}
