/* SPDX-License-Identifier: Apache-2.0 */
/* The sub-commands. Each lives in the file of its name. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

struct cli_command {
    const char *name;
    const char *summary; /* one line */
    const char *help;    /* usage and flags */
    /* argv without the program and the command; returns the exit status, reported */
    int (*run)(int argc, char **argv);
};

extern const struct cli_command cli_bench, cli_check, cli_doctor, cli_emit, cli_list,
    cli_plan, cli_run, cli_trim, cli_warm;

#endif
