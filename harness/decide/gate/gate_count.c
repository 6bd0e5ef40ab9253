/* SPDX-License-Identifier: MIT
 *
 * gate_count.c - both programs under a counter
 */
#include "harness/decide/gate/gate_count.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/interrupt.h"
#include "harness/base/program.h"
#include "harness/base/progress.h"
#include "harness/machine/child.h"
#include "harness/measure/worker/count_work.h"

#define KERNEL_CALLS 100
#define TOKENS       10
#define PATIENCE_NS  ((uint64_t)300 * 1000000000) /* of the slowest, under callgrind */
#define ENOUGH       3 /* names that failed before counting is given up */
#define N_SIDES      2
#define WHY_CAP      200

struct counter {
    char valgrind[512]; /* its path; "": the CPU counts */
    char dir[256];      /* for callgrind's files; "": none */
};

/* A program that runs under the counter once. */
struct job {
    struct child child;
    const char *program;
    char calls[16];
    double instructions; /* NAN: none, and why has the reason */
    char why[WHY_CAP];
    bool running;
};

/* ---- one run --------------------------------------------------------------------- */

static void read_number(void *arg, const char *line, size_t len)
{
    struct job *j = arg;
    char text[32];

    if (len == 0 || len >= sizeof text || !isdigit((unsigned char)line[0]))
        return;
    memcpy(text, line, len);
    text[len] = '\0';
    j->instructions = strtod(text, NULL);
}

static const char *out_path(char *path, size_t cap, const struct counter *c, int i)
{
    snprintf(path, cap, "%s/%d", c->dir, i);
    return path;
}

static enum status start(struct job *j, int i, const struct counter *c,
                         const char *name, struct err *err)
{
    char out[300], option[340];
    const char *argv[10];
    int n = 0;

    j->child = (struct child)CHILD_INIT;
    j->instructions = NAN;
    j->why[0] = '\0';
    if (c->valgrind[0]) {
        snprintf(option, sizeof option, "--callgrind-out-file=%s",
                 out_path(out, sizeof out, c, i));
        argv[n++] = c->valgrind;
        argv[n++] = "--tool=callgrind";
        argv[n++] = "--toggle-collect=" COUNT_WORK_FUNCTION;
        argv[n++] = "--log-file=/dev/null";
        argv[n++] = option;
    }
    argv[n++] = j->program;
    argv[n++] = "count";
    argv[n++] = name;
    argv[n++] = j->calls;
    if (!c->valgrind[0])
        argv[n++] = "--pmu";
    argv[n] = NULL;
    const struct child_params p = {
        .program = argv[0], .argv = (char *const *)(uintptr_t)argv, .talk = true};
    const enum status st = child_start(&j->child, &p, err);
    j->running = st == ST_OK;
    return st;
}

/* The total of callgrind's file; NAN: it has none. */
static double read_total(const char *path)
{
    FILE *f = fopen(path, "re");
    char line[512];
    double total = NAN;

    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "totals: ", 8) || !strncmp(line, "summary: ", 9))
            total = strtod(strchr(line, ' '), NULL);
    if (f)
        fclose(f);
    return total;
}

/* Its output has ended, or it is to be ended. */
static void finish(struct job *j, int i, const struct counter *c, uint64_t patience_ns)
{
    char out[300], words[160];
    bool killed;
    const int status = child_reap(&j->child, patience_ns, NULL, &killed);

    j->running = false;
    if (c->valgrind[0]) {
        j->instructions = read_total(out_path(out, sizeof out, c, i));
        unlink(out);
    }
    child_stderr_tail(&j->child, words, sizeof words);
    if (killed)
        snprintf(j->why, sizeof j->why, "it took too long");
    else if (WIFSIGNALED(status))
        snprintf(j->why, sizeof j->why, "it was ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        snprintf(j->why, sizeof j->why, "%s", words[0] ? words : "it gave no reason");
    else if (!(j->instructions > 0))
        snprintf(j->why, sizeof j->why,
                 c->valgrind[0]
                     ? "it has no symbols, which callgrind needs (is it stripped, "
                       "or a script?)"
                     : "there was no count");
    if (j->why[0])
        j->instructions = NAN;
}

/* Start them all and wait for all of them. */
static enum status run_jobs(struct job *jobs, int n, const struct counter *c,
                            const char *name, struct err *err)
{
    const uint64_t deadline = clock_ns() + PATIENCE_NS;
    enum status st = ST_OK;
    int n_running = 0;

    for (int i = 0; i < n; i++)
        jobs[i].running = false;
    for (int i = 0; i < n && st == ST_OK; i++) {
        st = start(&jobs[i], i, c, name, err);
        n_running += jobs[i].running;
    }
    while (n_running) {
        const bool late = clock_ns() > deadline;

        if (interrupted() && st == ST_OK)
            st = err_set(err, ST_INTERRUPTED, "interrupted");
        for (int i = 0; i < n; i++) {
            if (!jobs[i].running)
                continue;
            if (child_read_lines(&jobs[i].child, read_number, &jobs[i]) && !late && !st)
                continue;
            finish(&jobs[i], i, c, st || late ? 0 : 10ull * 1000000000);
            child_close(&jobs[i].child);
            n_running--;
        }
        usleep(5000);
    }
    return st;
}

/* ---- one name -------------------------------------------------------------------- */

/* Into count, NAN where a side has none; why has the reason of each side. */
static enum status count_name(struct gate_count *count, char why[N_SIDES][WHY_CAP],
                              const struct counter *c, const char *const prog[N_SIDES],
                              const char *name, struct err *err)
{
    const int calls = strncmp(name, "decode/", 7) != 0 ? KERNEL_CALLS : TOKENS;
    double *const value[N_SIDES] = {&count->a, &count->b};
    struct job jobs[N_SIDES];
    enum status st = ST_OK;

    for (int i = 0; i < N_SIDES; i++) {
        jobs[i].program = prog[i];
        snprintf(jobs[i].calls, sizeof jobs[i].calls, "%d", calls);
    }
    if (c->valgrind[0])
        st = run_jobs(jobs, N_SIDES, c, name, err);
    for (int i = 0; i < N_SIDES && !c->valgrind[0] && st == ST_OK; i++)
        st = run_jobs(&jobs[i], 1, c, name, err); /* alone on the machine */
    if (st)
        return st;
    snprintf(count->name, sizeof count->name, "%.*s", (int)sizeof count->name - 1,
             name);
    for (int i = 0; i < N_SIDES; i++) {
        *value[i] = jobs[i].instructions / calls;
        memcpy(why[i], jobs[i].why, sizeof why[i]);
    }
    return ST_OK;
}

/* ---- the counter ----------------------------------------------------------------- */

static void read_line(void *arg, const char *line, size_t len)
{
    char *first = arg;

    if (!first[0])
        snprintf(first, 48, "%.*s", (int)len, line);
}

/* The first line of what argv prints, without a counter; *ok: it ended well. */
static enum status run_command(bool *ok, char first[48], const char *const *argv,
                               struct err *err)
{
    const struct child_params p = {
        .program = argv[0], .argv = (char *const *)(uintptr_t)argv, .talk = true};
    struct child child = CHILD_INIT;
    const enum status st = child_start(&child, &p, err);

    first[0] = '\0';
    *ok = false;
    if (st == ST_OK) {
        while (child_read_lines(&child, read_line, first))
            usleep(2000);
        *ok = child_reap(&child, 1000000000, NULL, NULL) == 0;
    }
    child_close(&child);
    return st;
}

/* Both programs have the command, or r->no_counts names the one that has not. */
static enum status check_programs(struct gate_result *r,
                                  const char *const prog[N_SIDES], struct err *err)
{
    for (int s = 0; s < N_SIDES; s++) {
        const char *const argv[] = {prog[s], "count", "--help", NULL};
        char first[48];
        bool ok;

        if (run_command(&ok, first, argv, err))
            return err->code;
        if (!ok || !strstr(first, "bench count")) {
            snprintf(r->no_counts, sizeof r->no_counts,
                     "%s (%.120s) has no `bench count`; it is older than that",
                     s ? "B" : "A", prog[s]);
            return ST_OK;
        }
    }
    return ST_OK;
}

/* Whether the CPU counts, and the same number every time. */
static enum status pmu_repeats(bool *repeats, const char *program, const char *name,
                               struct err *err)
{
    const struct counter pmu = {.valgrind = ""};
    double first = NAN;

    *repeats = false;
    for (int i = 0; i < 3; i++) {
        struct job j = {.program = program, .calls = "100"};

        if (run_jobs(&j, 1, &pmu, name, err))
            return err->code;
        if (!isfinite(j.instructions) || (i && j.instructions != first))
            return ST_OK;
        first = j.instructions;
    }
    *repeats = true;
    return ST_OK;
}

/* The levels that callgrind knows. */
static uint32_t levels_of_valgrind(void)
{
    const uint32_t known =
        1u << KERN_ISA_scalar | 1u << KERN_ISA_avx2 | 1u << KERN_ISA_neon;

    return isa_usable() & known;
}

/* counter, the levels it knows, and its name in r; or r->no_counts. */
static enum status choose_counter(struct counter *c, uint32_t *levels,
                                  struct gate_result *r, const char *program,
                                  const struct modelref *model, struct err *err)
{
    const char *tmp = getenv("TMPDIR");
    char name[GATE_MAX_COUNTS][128], version[48];
    const char *const version_command[] = {c->valgrind, "--version", NULL};
    bool pmu, ok;

    *levels = isa_usable();
    if (!gate_count_names(name, model, *levels) ||
        pmu_repeats(&pmu, program, name[0], err))
        return err->code;
    if (pmu) {
        snprintf(r->counted_by, sizeof r->counted_by, "the CPU's own counter");
        return ST_OK;
    }
    *levels = levels_of_valgrind();
    if (!program_find(c->valgrind, sizeof c->valgrind, "valgrind")) {
        snprintf(r->no_counts, sizeof r->no_counts,
                 "this machine lets no program count its instructions, and valgrind is "
                 "not installed (apt-get install valgrind)");
        return ST_OK;
    }
    snprintf(c->dir, sizeof c->dir, "%.200s/slmbench-count-XXXXXX",
             tmp && tmp[0] ? tmp : "/tmp");
    if (!mkdtemp(c->dir)) {
        snprintf(r->no_counts, sizeof r->no_counts,
                 "no directory for callgrind's files can be made as %.150s", c->dir);
        c->dir[0] = '\0';
        return ST_OK;
    }
    if (run_command(&ok, version, version_command, err))
        return err->code;
    snprintf(r->counted_by, sizeof r->counted_by, "callgrind (%s)", version);
    return ST_OK;
}

/* ---- all names ------------------------------------------------------------------- */

static bool any(const struct gate_result *r, int side)
{
    for (size_t i = 0; i < r->n_counts; i++)
        if (isfinite(side ? r->count[i].b : r->count[i].a))
            return true;
    return false;
}

static enum status count_all(struct gate_result *r, const struct counter *c,
                             uint32_t levels, const char *const prog[N_SIDES],
                             const struct modelref *model, struct err *err)
{
    char name[GATE_MAX_COUNTS][128], why[N_SIDES][WHY_CAP],
        last[N_SIDES][WHY_CAP] = {""};
    const size_t n = gate_count_names(name, model, levels);
    struct progress progress;
    enum status st = ST_OK;

    r->count = calloc(n, sizeof *r->count);
    if (!r->count)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu counts", n);
    progress_begin(&progress, "instructions");
    for (size_t i = 0; i < n && st == ST_OK; i++) {
        if (i == ENOUGH && (!any(r, 0) || !any(r, 1)))
            break;
        progress_update(&progress, (double)i / (double)n, name[i]);
        st = count_name(&r->count[r->n_counts], why, c, prog, name[i], err);
        if (st)
            break;
        r->n_counts +=
            isfinite(r->count[r->n_counts].a) || isfinite(r->count[r->n_counts].b);
        for (int k = 0; k < N_SIDES; k++)
            if (why[k][0])
                memcpy(last[k], why[k], sizeof last[k]);
    }
    for (int k = 0; k < N_SIDES && st == ST_OK && !r->no_counts[0]; k++)
        if (!any(r, k))
            snprintf(r->no_counts, sizeof r->no_counts, "%s cannot be counted: %.199s",
                     k ? "B" : "A", last[k]);
    progress_end(&progress);
    return st;
}

enum status gate_count_run(struct gate_result *r, const char *prog_a,
                           const char *prog_b, const struct modelref *model,
                           struct err *err)
{
    const char *const prog[N_SIDES] = {prog_a, prog_b};
    struct counter c = {.valgrind = ""};
    uint32_t levels = 0;
    enum status st = check_programs(r, prog, err);

    if (st == ST_OK && !r->no_counts[0])
        st = choose_counter(&c, &levels, r, prog_b, model, err);
    if (st == ST_OK && !r->no_counts[0])
        st = count_all(r, &c, levels, prog, model, err);
    if (c.dir[0])
        rmdir(c.dir);
    if (st || r->no_counts[0]) {
        gate_result_free(r);
        r->counted_by[0] = '\0';
    }
    return st;
}
