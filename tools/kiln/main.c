/* SPDX-License-Identifier: Apache-2.0 */
/* kiln's command line: finds the sub-command, and sees to it that no lost output passes
 * for success. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kiln/version.h"

#include "commands.h"
#include "report.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const struct cli_command *const commands[] = {
    &cli_plan, &cli_warm, &cli_check, &cli_list,   &cli_trim,
    &cli_emit, &cli_run,  &cli_bench, &cli_doctor,
};

/* In the page of the command line, and not built yet. */
static const char *const later[] = {"pack", "unpack"};

/* A closed standard stream would be the next file that something opens, a cache entry
 * for one. */
static void hold_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* read-only where output is wanted, so that writing it still fails */
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) < 0) {
            return;
        }
    }
}

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}

static int no_such_command(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(later); i++) {
        if (strcmp(later[i], name) == 0) {
            return cli_wrong("%s: not in this kiln yet", name);
        }
    }
    return cli_wrong("%s: no such command; kiln --help lists them", name);
}

static int print_overview(void)
{
    (void)puts("usage: kiln COMMAND ...\n"
               "\n"
               "The metadata kernels of sparse attention, generated for the shape you "
               "serve.\n");
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        (void)printf("  %-8s %s\n", commands[i]->name, commands[i]->summary);
    }
    (void)puts("\n"
               "kiln help COMMAND describes one; kiln --version prints the version.\n"
               "Exit status: 0 done; 1 something failed or differed; 2 the call was "
               "wrong.");
    return CLI_DONE;
}

static int print_help(int argc, char **argv)
{
    if (argc == 0) {
        return print_overview();
    }
    const struct cli_command *command = find_command(argv[0]);
    if (argc > 1) {
        return cli_wrong("%s: unexpected argument", argv[1]);
    }
    if (command == NULL) {
        return no_such_command(argv[0]);
    }
    (void)fputs(command->help, stdout);
    return CLI_DONE;
}

static int print_version(int argc, char **argv)
{
    if (argc > 0) {
        return cli_wrong("%s: unexpected argument", argv[0]);
    }
    (void)puts("kiln " KILN_VERSION);
    return CLI_DONE;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (is_help(argv[i])) {
            return true;
        }
    }
    return false;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        return cli_wrong("no command given; kiln --help lists them");
    }
    const char *name = argv[1];
    if (is_help(name) || strcmp(name, "help") == 0) {
        return print_help(argc - 2, argv + 2);
    }
    if (strcmp(name, "--version") == 0) {
        return print_version(argc - 2, argv + 2);
    }
    const struct cli_command *command = find_command(name);
    if (command == NULL) {
        return no_such_command(name);
    }
    if (asks_for_help(argc - 2, argv + 2)) {
        return print_help(1, argv + 1);
    }
    return command->run(argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
    hold_standard_streams();
    /* a write that fails is reported, and dies of nothing */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    return cli_close_output(run(argc, argv));
}
