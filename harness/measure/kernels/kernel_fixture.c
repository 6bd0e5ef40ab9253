/* SPDX-License-Identifier: MIT
 *
 * kernel_fixture.c - data shared by the cases of one process
 *
 * Interleaving opens a case many times, so data that are slow to make are made once and
 * kept, except the content of the cold buffer, which depends on the format.
 */
#include "harness/measure/kernels/kernel_parts.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"

#define MIB       ((size_t)1 << 20)
#define FILL_UNIT (2 * MIB) /* shares of the filling threads: whole huge pages */

struct checked {
    const struct kern_row *row;
    size_t n_x;
    double weight_ns;
    struct err err;
};

struct known_roof {
    struct kernel_name name;
    double value;
};

struct kernel_fixture {
    const struct topology *topo;
    enum placement placement;
    struct mem cold;
    enum kern_format cold_format; /* whose pattern it holds; KERN_N_FMT: none */
    bool cold_packed;
    double huge_share;
    void *pattern[KERN_N_FMT][2]; /* [1]: packed */
    struct checked *checked;
    struct known_roof *roofs;
    size_t n_checked, n_roofs;
};

enum status kernel_fixture_open(struct kernel_fixture **fixture,
                                const struct topology *topo, enum placement placement,
                                struct err *err)
{
    struct kernel_fixture *b = calloc(1, sizeof *b);

    if (!b)
        return err_set(err, ST_NO_MEMORY, "no memory to measure in");
    b->topo = topo;
    b->placement = placement;
    b->cold_format = KERN_N_FMT;
    *fixture = b;
    return ST_OK;
}

void kernel_fixture_close(struct kernel_fixture *fixture)
{
    if (!fixture)
        return;
    mem_free(&fixture->cold);
    for (int i = 0; i < KERN_N_FMT; i++) {
        free(fixture->pattern[i][false]);
        free(fixture->pattern[i][true]);
    }
    free(fixture->checked);
    free(fixture->roofs);
    free(fixture);
}

size_t kernel_fixture_cold_bytes(const struct kernel_fixture *fixture)
{
    const struct topology *t = fixture->topo;
    const size_t most = topology_usable_bytes(t, 0) / 4;
    size_t bytes = probe_pass_bytes(t->threads_default);

    if (most && bytes > most)
        bytes = most;
    return bytes / FILL_UNIT * FILL_UNIT;
}

double kernel_fixture_huge_share(const struct kernel_fixture *fixture)
{
    return fixture->huge_share;
}

enum status fixture_pool(struct thread_pool **pool,
                         const struct kernel_fixture *fixture, int n_threads,
                         struct err *err)
{
    if (n_threads > TOPO_MAX_CPUS)
        return err_set(err, ST_USAGE, "%d threads are more than %d", n_threads,
                       TOPO_MAX_CPUS);
    return placement_pool(pool, fixture->topo, fixture->placement, n_threads, err);
}

/* ---- weights --------------------------------------------------------------------- */

const void *fixture_pattern(struct kernel_fixture *fixture, enum kern_format format,
                            bool packed)
{
    void **kept = fixture->pattern[format];

    if (!kept[false])
        kept[false] = parts_weights(format, (size_t)FIXTURE_PATTERN_ROWS * KERNEL_COLS);
    if (packed && kept[false] && !kept[true])
        kept[true] = parts_panels(format, isa_usable(), kept[false],
                                  FIXTURE_PATTERN_ROWS, KERNEL_COLS);
    return kept[packed];
}

struct fill_job {
    uint8_t *to;
    size_t bytes;
    const uint8_t *pattern; /* NULL: any bytes */
    size_t pattern_bytes;
};

static void fill_share(void *arg, int thread, int n_threads)
{
    const struct fill_job *job = arg;
    size_t at, end;

    thread_pool_share(job->bytes, FILL_UNIT, thread, n_threads, &at, &end);
    if (!job->pattern) {
        memset(job->to + at, 1, end - at);
        return;
    }
    while (at < end) { /* byte i is byte i of the pattern repeated */
        const size_t from = at % job->pattern_bytes;
        const size_t rest = job->pattern_bytes - from;
        const size_t n = rest < end - at ? rest : end - at;

        memcpy(job->to + at, job->pattern + from, n);
        at += n;
    }
}

enum status fixture_cold(struct kernel_fixture *fixture, enum kern_format format,
                         bool packed, const uint8_t **base, struct err *err)
{
    const bool is_new = !fixture->cold.base;
    struct fill_job job = {.bytes = kernel_fixture_cold_bytes(fixture)};
    struct thread_pool *pool;
    enum status st = ST_OK;

    if (!is_new && (format == KERN_N_FMT || (format == fixture->cold_format &&
                                             packed == fixture->cold_packed))) {
        *base = fixture->cold.base;
        return ST_OK;
    }
    if (format != KERN_N_FMT) {
        job.pattern = fixture_pattern(fixture, format, packed);
        job.pattern_bytes =
            kern_format_bytes(format, (size_t)FIXTURE_PATTERN_ROWS * KERNEL_COLS);
        if (!job.pattern)
            return err_set(err, ST_NO_MEMORY, "no memory for %s weights",
                           kern_format_info(format)->name);
    }
    if (fixture_pool(&pool, fixture, fixture->topo->threads_default, err))
        return err->code;
    if (is_new)
        st = mem_alloc(&fixture->cold, job.bytes, MEM_PAGES_2M, "cold weights", err);
    if (st == ST_OK) {
        job.to = fixture->cold.base;
        thread_pool_run(pool, fill_share, &job);
        if (is_new)
            fixture->huge_share =
                (double)mem_huge_bytes(job.to, job.bytes) / (double)job.bytes;
        fixture->cold_format = format;
        fixture->cold_packed = packed;
        *base = job.to;
    }
    thread_pool_stop(pool);
    return st;
}

/* ---- checks and roofs ------------------------------------------------------------ */

/* One more element at the end of an array of *n; NULL: no memory. */
static void *grow(void **v, size_t *n, size_t size)
{
    void *longer = realloc(*v, (*n + 1) * size);

    if (!longer)
        return NULL;
    *v = longer;
    return (char *)longer + (*n)++ * size;
}

enum status fixture_check(struct kernel_fixture *fixture, const struct kern_row *row,
                          size_t n_x, double *weight_ns, struct err *err)
{
    struct checked *c = NULL, made = {.row = row, .n_x = n_x, .err = ERR_INIT};

    for (size_t i = 0; i < fixture->n_checked && !c; i++)
        if (fixture->checked[i].row == row && fixture->checked[i].n_x == n_x)
            c = &fixture->checked[i];
    if (!c) {
        if (kernel_product(row->op))
            parts_check_product(row, n_x, &made.weight_ns, &made.err);
        else
            parts_check_other(row, &made.err);
        c = grow((void **)&fixture->checked, &fixture->n_checked,
                 sizeof *fixture->checked);
        if (!c)
            return err_set(err, ST_NO_MEMORY, "no memory to check %s", row->name);
        *c = made;
    }
    *weight_ns = c->weight_ns;
    return c->err.code == ST_OK ? ST_OK : err_set(err, c->err.code, "%s", c->err.msg);
}

double kernel_fixture_roof(struct kernel_fixture *fixture,
                           const struct kernel_case *roof)
{
    enum { N_PASSES = 5 };
    struct err err = ERR_INIT;
    struct kernel_work *work;
    double value[N_PASSES], scratch[N_PASSES];
    const struct kernel_name name = kernel_case_name(roof);

    for (size_t i = 0; i < fixture->n_roofs; i++)
        if (!strcmp(fixture->roofs[i].name.text, name.text))
            return fixture->roofs[i].value;
    if (kernel_work_open(&work, fixture, roof, &err))
        return 0;
    const struct kernel_cost cost = kernel_work_cost(work);
    const size_t batch = kernel_work_batch(work);
    for (int i = 0; i < N_PASSES; i++) {
        kernel_work_cool(work, batch);

        const uint64_t begin = clock_ns();
        kernel_work_run(work, batch);
        value[i] = (cost.bytes > 0 ? cost.bytes : cost.ops) * (double)batch /
                   (double)(clock_ns() - begin + 1);
    }
    kernel_work_close(work);
    const double median = stats_median(value, N_PASSES, scratch);
    struct known_roof *r =
        grow((void **)&fixture->roofs, &fixture->n_roofs, sizeof *fixture->roofs);
    if (r) {
        r->name = name;
        r->value = median;
    }
    return median;
}
