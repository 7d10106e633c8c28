/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From addresses and the long reports of the compilers' checkers to one line. The place is the
 * innermost one that is in the emitted text: not in the header that executes it.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cpu_child.h"
#include "cpu_report.h"
#include "cpu_tools.h"

/* Is a "file:line" one of the emitted text? Cuts what is before the file's own name. */
static const char *template_place(const char *place)
{
    const char *common = strstr(place, "common/");
    const char *slash = strrchr(place, '/');

    if (strstr(place, ".cu") == NULL) {
        return NULL;
    }
    if (common != NULL) {
        return common;
    }
    return slash != NULL ? slash + 1 : place;
}

/* ---- an address */

static void add_places(char *text, const char *before, char *why)
{
    char *rest = NULL;
    int n = 0;

    for (char *line = strtok_r(text, "\n", &rest); line != NULL && n < 3;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *place = template_place(line);

        if (place == NULL) {
            continue;
        }
        cli_append(why, CPU_WHY_BYTES, "%s%.*s", n == 0 ? before : " < ",
                   (int)strcspn(place, " "), place);
        n++;
    }
}

/* Where an address is in the templates, with who called that. */
static void add_address(const char *program, uint64_t pc, const char *before, char *why)
{
    char address[32];

    /* the address is where a call returns to; the call is before it */
    (void)snprintf(address, sizeof address, "0x%" PRIx64, pc - 1);
    char *tool = cpu_find_program("addr2line");
    const char *words[] = {tool, "-i", "-e", program, address, NULL};
    char *text = tool != NULL ? cpu_output_of(words) : NULL;
    if (text != NULL) {
        add_places(text, before, why);
    } else {
        cli_append(why, CPU_WHY_BYTES, "%s%s+%s", before, program, address);
    }
    free(text);
    free(tool);
}

void cpu_report_fault(const char *program, const struct kiln_simt_reply *reply, char *why)
{
    cli_append(why, CPU_WHY_BYTES, "%.*s", KILN_SIMT_MESSAGE_BYTES, reply->message);
    if (reply->pc != 0) {
        add_address(program, reply->pc, ", at ", why);
    }
    if (reply->other_pc != 0) {
        add_address(program, reply->other_pc, ", and ", why);
    }
}

/* ---- a checker's report */

struct report {
    char kind[256];
    char places[2][128];
    int n_places;
    bool in_stack; /* a place of this stack was taken */
    char who[96];
};

static void copy_cut(char *out, size_t size_bytes, const char *text, const char *stop)
{
    const char *end = strstr(text, stop);
    size_t len = end != NULL ? (size_t)(end - text) : strlen(text);

    out[0] = '\0';
    cli_append(out, size_bytes, "%.*s", (int)len, text);
}

/* "    #2 0x55 in function file:line:column" */
static void take_frame(struct report *report, const char *line)
{
    char word[256];
    const char *name = strstr(line, ".cu");

    while (name != NULL && name > line && name[-1] != ' ') {
        name--;
    }
    if (name == NULL || report->in_stack || report->n_places == 2) {
        return;
    }
    copy_cut(word, sizeof word, name, " ");
    copy_cut(report->places[report->n_places++], sizeof report->places[0],
             template_place(word), " ");
    report->in_stack = true;
}

static void take_line(struct report *report, const char *line)
{
    const char *error = strstr(line, "ERROR: ");
    const char *warning = strstr(line, "WARNING: ");
    const char *runtime = strstr(line, "runtime error: ");
    const char *hash = strstr(line, "    #");

    if (strncmp(line, "kiln_simt: ", 11) == 0) {
        copy_cut(report->who, sizeof report->who, line + 11, "\n");
    } else if (runtime != NULL && report->kind[0] == '\0') {
        copy_cut(report->kind, sizeof report->kind, runtime + 15, "\n");
        const char *place = template_place(line);
        if (place != NULL) {
            copy_cut(report->places[0], sizeof report->places[0], place, ": runtime");
            report->n_places = 1;
        }
    } else if ((error != NULL || warning != NULL) && report->kind[0] == '\0') {
        copy_cut(report->kind, sizeof report->kind,
                 error != NULL ? error + 7 : warning + 9,
                 error != NULL ? " on address" : " (pid");
    } else if (hash == line) {
        take_frame(report, line);
    } else {
        report->in_stack = false;
    }
}

void cpu_report_death(FILE *errors, int wait_status, char *why)
{
    struct report report = {.n_places = 0};
    char line[1024];

    rewind(errors);
    while (fgets(line, sizeof line, errors) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        take_line(&report, line);
    }
    if (report.kind[0] == '\0' && WIFSIGNALED(wait_status)) {
        cli_append(why, CPU_WHY_BYTES, "ended by signal %d (%s)", WTERMSIG(wait_status),
                   strsignal(WTERMSIG(wait_status)));
        return;
    }
    if (report.kind[0] == '\0') {
        cli_append(why, CPU_WHY_BYTES, "ended with status %d and said nothing",
                   WEXITSTATUS(wait_status));
        return;
    }
    cli_append(why, CPU_WHY_BYTES, "%s%s%s", report.who,
               report.who[0] != '\0' ? ": " : "", report.kind);
    for (int i = 0; i < report.n_places; i++) {
        cli_append(why, CPU_WHY_BYTES, "%s%s", i == 0 ? ", at " : ", and ",
                   report.places[i]);
    }
}
