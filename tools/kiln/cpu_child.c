/* SPDX-License-Identifier: Apache-2.0 */
/* The child's life and what is said to it. What its last words mean is cpu_report.c's. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu_child.h"
#include "cpu_report.h"
#include "cpu_tools.h"
#include "report.h"

/* NOLINTNEXTLINE(readability-non-const-parameter): the child frees it */
void cpu_child_init(struct cpu_child *child, char *program)
{
    *child = (struct cpu_child){.program = program, .fd = -1};
}

static void end(struct cpu_child *child, int *out_status)
{
    int status = 0;

    if (child->fd >= 0) {
        (void)close(child->fd);
    }
    if (child->pid > 0) {
        while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    child->fd = -1;
    child->pid = 0;
    *out_status = status;
}

void cpu_child_finish(struct cpu_child *child)
{
    int status;

    end(child, &status);
    if (child->errors != NULL) {
        (void)fclose(child->errors);
    }
    free(child->program);
    *child = (struct cpu_child){.fd = -1};
}

/* In the child: never returns. */
static void become(const struct cpu_child *child, int fd)
{
    static const char *const options[] = {"ASAN_OPTIONS", "LSAN_OPTIONS", "MSAN_OPTIONS",
                                          "TSAN_OPTIONS", "UBSAN_OPTIONS"};
    char *argv[] = {child->program, NULL};

    /* what is meant for this program is not for that one */
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        (void)unsetenv(options[i]);
    }
    if (dup2(fd, STDIN_FILENO) >= 0 && dup2(fileno(child->errors), STDOUT_FILENO) >= 0 &&
        dup2(fileno(child->errors), STDERR_FILENO) >= 0) {
        (void)execv(child->program, argv);
    }
    _exit(127);
}

static bool start(struct cpu_child *child, char why[CPU_WHY_BYTES])
{
    int ends[2];

    if (child->errors == NULL) {
        child->errors = tmpfile();
    }
    if (child->errors == NULL || ftruncate(fileno(child->errors), 0) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        (void)snprintf(why, CPU_WHY_BYTES, "cannot run %s: %s", child->program,
                       strerror(errno));
        return false;
    }
    rewind(child->errors);
    child->pid = fork();
    if (child->pid == 0) {
        become(child, ends[1]);
    }
    (void)close(ends[1]);
    child->fd = ends[0];
    if (child->pid < 0) {
        child->pid = 0;
        (void)snprintf(why, CPU_WHY_BYTES, "cannot run %s: %s", child->program,
                       strerror(errno));
        return false;
    }
    return true;
}

static bool send_all(int fd, const void *data, size_t size)
{
    const unsigned char *at = data;

    while (size > 0) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* False: the child is gone, or silent for longer than it may be. */
static bool receive_all(struct cpu_child *child, void *data, size_t size, int limit_ms)
{
    unsigned char *at = data;

    while (size > 0) {
        struct pollfd ready = {.fd = child->fd, .events = POLLIN};
        int n_ready = poll(&ready, 1, limit_ms);
        ssize_t n = n_ready > 0 ? recv(child->fd, at, size, 0) : -1;

        if (n_ready == 0) {
            (void)kill(child->pid, SIGKILL);
            return false;
        }
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool send_launch(const struct cpu_child *child, const struct cpu_launch *launch)
{
    const struct kiln_simt_request *request = &launch->request;
    bool is_sent = send_all(child->fd, request, sizeof *request) &&
                   send_all(child->fd, launch->args, request->args_bytes);

    for (uint32_t i = 0; i < request->n_arrays && is_sent; i++) {
        is_sent =
            send_all(child->fd, &launch->arrays[i], sizeof launch->arrays[i]) &&
            send_all(child->fd, launch->data[i], (size_t)launch->arrays[i].data_bytes);
    }
    return is_sent;
}

/* The whole report lies beside the program; what is said of it is one line. */
static void keep_report(const struct cpu_child *child)
{
    char buffer[4096];
    char *path = cpu_format("%s.report", child->program);
    FILE *file = path != NULL ? fopen(path, "wbe") : NULL;

    rewind(child->errors);
    while (file != NULL) {
        size_t n = fread(buffer, 1, sizeof buffer, child->errors);

        if (n == 0 || fwrite(buffer, 1, n, file) != n) {
            (void)fclose(file);
            file = NULL;
        }
    }
    free(path);
}

bool cpu_child_launch(struct cpu_child *child, const struct cpu_launch *launch,
                      char why[CPU_WHY_BYTES])
{
    /* the child counts processor time; the machine may be busy */
    int limit_ms = (int)launch->request.limit_ms * 4 + 10000;
    struct kiln_simt_reply reply;
    int status;

    why[0] = '\0';
    if (child->pid == 0 && !start(child, why)) {
        return false;
    }
    bool is_sent = send_launch(child, launch);
    bool is_answered = receive_all(child, &reply, sizeof reply, limit_ms) &&
                       reply.magic == KILN_SIMT_MAGIC;
    for (uint32_t i = 0; i < launch->request.n_arrays && is_answered && reply.failed == 0;
         i++) {
        if (launch->arrays[i].is_output != 0) {
            is_answered = receive_all(child, launch->data[i],
                                      (size_t)launch->arrays[i].data_bytes, limit_ms);
        }
    }
    if (is_sent && is_answered && reply.failed == 0) {
        return true;
    }
    end(child, &status);
    if (is_answered) {
        cpu_report_fault(child->program, &reply, why);
    } else {
        keep_report(child);
        cpu_report_death(child->errors, status, why);
        cli_append(why, CPU_WHY_BYTES, "; all of it is in %s.report", child->program);
    }
    return false;
}
