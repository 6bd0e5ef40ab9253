/* SPDX-License-Identifier: MIT
 *
 * cmd_decode.c - `bench decode`: one point in the foreground
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/measure/engines/engine_run.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/machine/cache.h"
#include "harness/machine/measuring.h"
#include "harness/measure/point/point_measure.h"
#include "harness/rows/row.h"

struct watch {
    struct progress progress;
    char phase[32];
};

/* Fractions are of a phase: the time of loading is no measure for measuring. */
static void on_progress(void *arg, const char *phase, double fraction)
{
    struct watch *w = arg;

    if (strcmp(phase, w->phase)) {
        snprintf(w->phase, sizeof w->phase, "%s", phase);
        progress_part(&w->progress);
    }
    progress_update(&w->progress, fraction, phase);
}

static enum status measure(const struct point *p, const struct topology *topo,
                           struct row *row, struct point_samples *samples,
                           struct err *err)
{
    struct watch watch = {.phase = ""};
    const struct sandbox_limits limits = {p->setup.mem_limit,
                                          model_setup_quota(&p->setup)};
    bool made;
    enum status status;

    status = *p->engine ? engine_check_point(p, err) : ST_OK;
    if (status == ST_OK)
        status = sandbox_check_with("", &limits, err);
    if (status)
        return status;
    sandbox_clean_leftovers("");
    if (p->setup.model.synthetic && p->setup.residency != WEIGHTS_MEMORY)
        status = modelref_make_file(&p->setup.model, &made, err);
    if (status)
        return status;
    progress_begin(&watch.progress, "decode");
    status = (*p->engine ? engine_run : point_run)(p, topo, row, samples, on_progress,
                                                   &watch, err);
    progress_end(&watch.progress);
    return status;
}

static enum status print_profile(const struct row *row, const json_t *profile,
                                 struct err *err)
{
    struct point_profile *p = malloc(sizeof *p);

    if (!p)
        return err_set(err, ST_NO_MEMORY, "no memory for a profile");
    point_profile_from_json(p, profile);
    point_profile_print(stdout, p, row);
    free(p);
    return ST_OK;
}

static enum status print_row(const struct row *row, const json_t *profile,
                             const struct point_options *o, struct err *err)
{
    if (o->json) {
        json_t *object = row_json(row);

        if (profile)
            json_object_set(object, "profile", (json_t *)(uintptr_t)profile);
        return cmd_print_json(object, 9, err);
    }
    if (o->all) {
        row_print(stdout, row);
        return ST_OK;
    }
    row_print_summary(stdout, row);
    printf("\nEvery column: --all or --json.\n");
    return ST_OK;
}

static int exit_code(const struct row *row)
{
    if (row->status == ROW_STATUS_INTERRUPTED)
        return status_exit_code(ST_INTERRUPTED);
    return row->status != ROW_STATUS_OK && row->status != ROW_STATUS_PARTIAL;
}

int cmd_decode(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct topology *topo = NULL;
    struct point_options *o = calloc(1, sizeof *o);
    struct point_samples samples = {0};
    struct row row;
    enum status status =
        o ? topology_open(&topo, "", &err) : err_set(&err, ST_NO_MEMORY, "no memory");
    int code = 0;

    if (status == ST_OK)
        status = point_options_parse(o, argc, argv, topo, &err);
    if (status == ST_OK && !o->help) {
        interrupt_catch();
        status = measuring_begin(&err);
        if (status == ST_OK)
            status = cache_find(topo, &err);
        if (status == ST_OK)
            status = measure(&o->point, topo, &row, &samples, &err);
        if (status == ST_OK)
            status = print_row(&row, samples.profile, o, &err);
        if (status == ST_OK && samples.profile && !o->json)
            status = print_profile(&row, samples.profile, &err);
        if (status == ST_OK)
            code = exit_code(&row);
    }
    point_samples_free(&samples);
    free(o);
    free(topo);
    return status ? cmd_end(&err) : code;
}
