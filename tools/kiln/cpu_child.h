/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compiled program that executes launches of one kernel: a child that answers until its first
 * fault. A fault, of the kernel or of the child, ends it; the next launch starts another.
 */
#ifndef CLI_CPU_CHILD_H
#define CLI_CPU_CHILD_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "kiln_simt_protocol.h"

enum { CPU_WHY_BYTES = 2048 };

struct cpu_child {
    char *program; /* owned */
    pid_t pid;     /* 0: none runs */
    int fd;        /* of the socket */
    FILE *errors;  /* what it wrote on stderr; owned */
};

/* One launch. The arrays' data are borrowed; those of outputs are overwritten. */
struct cpu_launch {
    struct kiln_simt_request request;
    const unsigned char *args;
    struct kiln_simt_array arrays[KILN_SIMT_ARRAYS_MAX];
    unsigned char *data[KILN_SIMT_ARRAYS_MAX];
};

/* Takes the program's path. */
void cpu_child_init(struct cpu_child *child, char *program);
void cpu_child_finish(struct cpu_child *child);

/* False: the kernel did something wrong, and `why` says what and where. */
bool cpu_child_launch(struct cpu_child *child, const struct cpu_launch *launch,
                      char why[CPU_WHY_BYTES]);

#endif
