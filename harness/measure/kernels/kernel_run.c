/* SPDX-License-Identifier: MIT
 *
 * kernel_run.c - the child, its progress and its end
 *
 * The child reads the names of its cases from its standard input and reports finished
 * repetitions on its standard output; the end of its standard error is shown when it
 * fails. It has its own process group, so that this process handles Ctrl-C: it sends
 * SIGTERM once, and the child writes the finished repetitions.
 */
#include "harness/measure/kernels/kernel_plan.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/program.h"
#include "harness/base/progress.h"
#include "harness/machine/child.h"

#define MAX_ARGS 16

static enum status find_program(char *path, size_t cap, struct err *err)
{
    snprintf(path, cap, "%s/bench_kernels", self_dir());
    if (!access(path, X_OK))
        return ST_OK;
    return err_set(err, ST_UNSUPPORTED,
                   "there is no program bench_kernels next to %.200s: it is built if "
                   "google-benchmark is installed (apt-get install libbenchmark-dev, "
                   "then build again)",
                   self_path());
}

enum status kernel_run_check(struct err *err)
{
    char path[PATH_MAX];

    return find_program(path, sizeof path, err);
}

/* "avx512vnni,avx2": the levels that --isa-disable switched off. */
static void disabled_levels(char *list, size_t cap)
{
    const uint32_t off = isa_detected() & ~isa_usable();

    list[0] = '\0';
    for (int isa = 0; isa < KERN_N_ISA; isa++)
        if (off >> isa & 1)
            text_append(list, cap, "%s%s", list[0] ? "," : "",
                        isa_name((enum kern_isa)isa));
}

/* A child that has ended before it read them all is judged by its end. */
static void write_cases(struct child *c, const struct kernel_plan *plan)
{
    struct err ignored = ERR_INIT;

    for (size_t i = 0; i < plan->n_run; i++) {
        char line[KERNEL_NAME_MAX + 1];

        snprintf(line, sizeof line, "%s\n", kernel_case_name(&plan->run[i]).text);
        if (child_write(c, line, &ignored))
            break;
    }
    close(c->in);
    c->in = -1;
}

static enum status start(struct child *c, const struct kernel_run_params *p,
                         int json_fd, struct err *err)
{
    char arg[MAX_ARGS][4300], program[4096], levels[128], threads[4096];
    char *argv[MAX_ARGS + 1];
    const struct child_params params = {.program = program,
                                        .argv = argv,
                                        .talk = true,
                                        .foreign = true,
                                        .also_fd = json_fd};
    enum status st;
    int n = 0;

    if (find_program(program, sizeof program, err))
        return err->code;
    disabled_levels(levels, sizeof levels);
    threads[0] = '\0';
    for (int i = 0; i < p->plan->n_threads; i++)
        text_append(threads, sizeof threads, "%s%d", i ? "," : "", p->plan->threads[i]);
    snprintf(arg[n++], sizeof arg[0], "%s", program);
    snprintf(arg[n++], sizeof arg[0], "--cases=/proc/self/fd/0");
    snprintf(arg[n++], sizeof arg[0], "--threads=%s", threads);
    snprintf(arg[n++], sizeof arg[0], "--placement=%s", p->placement);
    snprintf(arg[n++], sizeof arg[0], "--progress");
    snprintf(arg[n++], sizeof arg[0], "--benchmark_out=/proc/self/fd/%d", json_fd);
    snprintf(arg[n++], sizeof arg[0], "--benchmark_out_format=json");
    snprintf(arg[n++], sizeof arg[0], "--benchmark_enable_random_interleaving=true");
    snprintf(arg[n++], sizeof arg[0], "--benchmark_repetitions=%d", p->n_repetitions);
    snprintf(arg[n++], sizeof arg[0], "--benchmark_min_time=%.6f", p->min_time_s);
    if (levels[0])
        snprintf(arg[n++], sizeof arg[0], "--isa-disable=%s", levels);
    for (int i = 0; i < n; i++)
        argv[i] = arg[i];
    argv[n] = NULL;
    st = child_start(c, &params, err);
    if (st == ST_OK)
        write_cases(c, p->plan);
    return st;
}

/* ---- progress -------------------------------------------------------------------- */

/* Runs of a case come in: the first few find out how often to call it, then one per
 * repetition. A run that lasted is a repetition. */
struct tally {
    const struct kernel_run_params *p;
    int *n_done; /* [plan->n_run] */
    size_t n_all_done;
};

static void count_line(void *arg, const char *text, size_t len)
{
    struct tally *t = arg;
    char line[256], *end;
    double seconds;

    snprintf(line, sizeof line, "%.*s", (int)len, text);
    seconds = strtod(line, &end);

    for (size_t i = 0; i < t->p->plan->n_run; i++) {
        if (strcmp(kernel_case_name(&t->p->plan->run[i]).text, end + (*end == ' ')))
            continue;
        if ((t->n_done[i] || seconds >= 0.8 * t->p->min_time_s) &&
            t->n_done[i] < t->p->n_repetitions) {
            t->n_done[i]++;
            t->n_all_done++;
        }
    }
}

/* Until the child has closed its end. */
static void follow(struct child *c, struct tally *t)
{
    const double n_runs = (double)t->p->plan->n_run * t->p->n_repetitions;
    struct progress progress;
    char detail[64];
    bool runs = true, stopped = false;

    progress_begin(&progress, "kernels");
    while (runs) {
        struct pollfd ready = {c->out, POLLIN, 0};

        if (interrupted() && !stopped) {
            child_request_end(c);
            stopped = true;
        }
        if (child_poll(&ready, 1, 200) > 0)
            runs = child_read_lines(c, count_line, t);
        snprintf(detail, sizeof detail, "%zu row%s, %d repetition%s", t->p->plan->n_run,
                 t->p->plan->n_run == 1 ? "" : "s", t->p->n_repetitions,
                 t->p->n_repetitions == 1 ? "" : "s");
        progress_update(&progress, (double)t->n_all_done / n_runs, detail);
    }
    progress_end(&progress);
}

/* ---- its end --------------------------------------------------------------------- */

/* The last line of stderr that is not a warning. */
static void last_error(const struct child *c, char *to, size_t cap)
{
    char text[4096];

    stderr_tail_read(c->error_tail, text, sizeof text);
    snprintf(to, cap, "no reason given");
    for (char *save, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, "***WARNING", 10) != 0)
            snprintf(to, cap, "%s", line);
}

static enum status judge_end(const struct child *c, int rc, struct err *err)
{
    char words[300];

    if (interrupted())
        return err_set(err, ST_INTERRUPTED, "interrupted");
    if (WIFEXITED(rc) && WEXITSTATUS(rc) <= 1) /* 1: a row failed and is named */
        return ST_OK;
    last_error(c, words, sizeof words);
    if (WIFSIGNALED(rc))
        return err_set(err, ST_IO, "bench_kernels was ended by signal %d (%s): %s",
                       WTERMSIG(rc), strsignal(WTERMSIG(rc)), words);
    return err_set(err, ST_IO, "bench_kernels failed: %s", words);
}

enum status kernel_run(const struct kernel_run_params *p, int json_fd, struct err *err)
{
    struct child c = CHILD_INIT;
    struct tally t = {.p = p, .n_done = calloc(p->plan->n_run, sizeof(int))};
    enum status st = t.n_done ? start(&c, p, json_fd, err)
                              : err_set(err, ST_NO_MEMORY, "no memory for progress");

    if (st == ST_OK) {
        follow(&c, &t);
        st = judge_end(&c, child_reap(&c, INT64_MAX, NULL, NULL), err);
    }
    child_close(&c);
    free(t.n_done);
    return st;
}
