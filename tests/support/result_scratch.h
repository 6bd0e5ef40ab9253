/* SPDX-License-Identifier: MIT
 *
 * result_scratch.h - result sets that were never measured, and a directory for their
 * files
 */
#ifndef SLM_TESTS_RESULT_SCRATCH_H
#define SLM_TESTS_RESULT_SCRATCH_H

#include "tests/support/test.h"

#include <ftw.h>
#include <sys/stat.h>

#include "harness/rows/result_set.h"

#define EXAMPLE SLM_SOURCE_DIR "/results/examples/granite-rapids-2vcpu"

/* What a failed test has left goes as well. */
static char scratch[] = "test_results_XXXXXX";

static inline int make_scratch(void **state)
{
    (void)state;
    return mkdtemp(scratch) ? 0 : -1;
}

static inline int remove_one(const char *path, const struct stat *st, int kind,
                             struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

static inline int remove_scratch(void **state)
{
    (void)state;
    return nftw(scratch, remove_one, 4, FTW_DEPTH | FTW_PHYS);
}

static inline char *scratch_path(const char *name)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s", scratch, name);
    unlink(path);
    return path;
}

static inline struct machine_key example_key(void)
{
    json_t *root = json_load_file(EXAMPLE "/machine.json", 0, NULL);
    struct machine_key key;

    assert_non_null(root);
    assert_true(machine_key_read(&key, json_object_get(root, "topology")));
    json_decref(root);
    return key;
}

/* n runs of one point, a day apart, at the given speeds. */
static inline struct result_set made(const double *speed, size_t n,
                                     const struct machine_key *key)
{
    struct err err = ERR_INIT;
    struct result_set h = {0};

    for (size_t i = 0; i < n; i++) {
        struct result_run *run;
        struct row r;

        assert_int_equal(result_set_add_run(&h, "made", &run, &err), ST_OK);
        snprintf(run->id, sizeof run->id, "%zu", i);
        snprintf(run->commit, sizeof run->commit, "c%zu", i);
        snprintf(run->utc, sizeof run->utc, "2026-01-%02uT00:00:00Z",
                 1 + (unsigned)i % 31);
        run->has_machine = true;
        run->machine = *key;
        row_init(&r);
        memcpy(r.utc, run->utc, sizeof r.utc);
        strcpy(r.point, "m/decode/t2");
        r.kind = POINT_DECODE;
        strcpy(r.model, "m");
        r.status = ROW_STATUS_OK;
        strcpy(r.validity, "valid");
        r.attempt = 1;
        r.n_threads = 2;
        r.ctx = 0;
        r.tok_per_s = speed[i];
        r.mem_peak_bytes = (int64_t)1 << 30;
        r.mem_resident_bytes = (int64_t)1 << 29;
        assert_int_equal(result_set_add_row(&h, "made", &r, &err), ST_OK);
    }
    return h;
}

#endif
