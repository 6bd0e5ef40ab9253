/* SPDX-License-Identifier: MIT
 *
 * sweep_fixture.h - configurations and directories of sweeps
 */
#ifndef SLM_TESTS_SWEEP_FIXTURE_H
#define SLM_TESTS_SWEEP_FIXTURE_H

#include "tests/support/tree.h"

#include "harness/measure/sweep/sweep.h"

static struct topology *topo; /* of a machine with four threads by default */
static char work[64];         /* a directory for the tests of a program */
static char buf[512];

/* ---- of a program ---------------------------------------------------------------- */

static inline int sweep_begin(void **state)
{
    (void)state;
    tree_new(work);
    topo = calloc(1, sizeof *topo);
    assert_non_null(topo);
    topo->threads_default = 4;
    return 0;
}

static inline int sweep_end(void **state)
{
    (void)state;
    tree_remove(work);
    free(topo);
    return 0;
}

/* ---- files and rows -------------------------------------------------------------- */

/* In buf, until the next call. */
static inline const char *in_work(const char *name)
{
    snprintf(buf, sizeof buf, "%s/%s", work, name);
    return buf;
}

static inline void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* The settings that the YAML text makes of the default ones; s is to be freed also on
 * failure. */
static inline enum status load(struct sweep_settings *s, const char *yaml,
                               struct err *err)
{
    assert_int_equal(sweep_settings_init(s, topo, err), ST_OK);
    put(in_work("c.yaml"), yaml);
    return sweep_config_load(s, buf, topo, err);
}

static inline void make_row(struct row *r, const char *id, const char *status,
                            const char *validity)
{
    row_init(r);
    snprintf(r->point, sizeof r->point, "%s", id);
    r->status = row_enum_value(&choices_row_status, status);
    snprintf(r->validity, sizeof r->validity, "%s", validity);
    r->attempt = 1;
}

#endif
