/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A deployment's numbers, made complete and checked, and the names that they have on the
 * command line, in manifests and in a model's config. Must know no op.
 */
#ifndef KI_PLAN_DEPLOYMENT_H
#define KI_PLAN_DEPLOYMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/plan.h"

int64_t *ki_deployment_at(struct kiln_deployment *deployment,
                          const struct kiln_deployment_field *field);
int64_t ki_deployment_get(const struct kiln_deployment *deployment,
                          const struct kiln_deployment_field *field);

/* The choices of a field in words: "sharded or replicated". */
enum { KI_CHOICES_BYTES = 96 };
void ki_deployment_list_choices(const struct kiln_deployment_field *field,
                                char out[KI_CHOICES_BYTES]);

/*
 * Fill in the defaults and check every number alone: KILN_E_ARGUMENT names the flag, or
 * the model's field. What follows from several numbers is checked by kiln_plan_make.
 */
enum kiln_status ki_deployment_resolve(const struct kiln_deployment *deployment,
                                       struct kiln_deployment *out,
                                       struct kiln_error *err);

/* The model's part from an object that has the fields of its config; others are ignored. */
enum kiln_status ki_deployment_read_model(const char *name, const json_t *root,
                                          struct kiln_deployment *d,
                                          struct kiln_error *err);

enum {
    KI_RATIO_ALL = 128,   /* the ratio whose layers attend every record: no indexer */
    KI_WINDOW_BLOCK = 64, /* slots of a page of the window cache */
};

/* The layers of one ratio. */
struct ki_layer_kind {
    int64_t ratio; /* before the first: -1 */
    int64_t layers;
    bool is_window_only;
    bool has_indexer;
};

/* Go on to the kind of the next greater ratio of a complete deployment; false: none. */
bool ki_deployment_next_kind(const struct kiln_deployment *d, struct ki_layer_kind *kind);

/* Pages of a complete deployment: whole records in each, whole turns of interleaving. */
enum kiln_status ki_deployment_check_blocks(const struct kiln_deployment *d,
                                            struct kiln_error *err);

#endif
