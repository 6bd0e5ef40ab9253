/* SPDX-License-Identifier: MIT
 *
 * gate_trace_record.c - recording turns of a model
 */
#include "research/gate_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/thread_pool.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/newfile.h"
#include "harness/base/parse.h"
#include "harness/base/progress.h"
#include "harness/machine/measuring.h"
#include "harness/machine/topology.h"
#include "harness/measure/worker/measured.h"
#include "research/research.h"

/* A turn: n_tokens tokens from an empty cache. */
struct turn {
    struct measured measured;
    int n_tokens;
};

/* The tokens are any: their cost does not depend on which. */
static enum status decode(void *arg, uint64_t *ns, struct err *err)
{
    const struct turn *turn = arg;
    const int32_t token = 1;
    enum status st = ST_OK;

    (void)ns;
    for (int i = 0; st == ST_OK && i < turn->n_tokens; i++)
        st = slm_eval(turn->measured.m, &token, 1, SLM_LOGITS_LAST, err);
    return st;
}

static enum status take_turn(struct turn *turn, double *seconds, struct err *err)
{
    struct measured_step step = {
        .kind = MEASURED_CALL, .call = decode, .call_arg = turn};
    uint64_t ns = 0;

    slm_truncate(turn->measured.m, 0);
    const enum status st = measured_sample(&turn->measured, &step, &ns, err);
    *seconds = (double)ns * 1e-9;
    return st;
}

/* How many tokens take about turn_s, by the fastest of a few tries. */
static enum status choose_tokens(struct turn *turn, double turn_s, struct err *err)
{
    const int most = slm_info(turn->measured.m)->n_ctx;
    double seconds = 0;

    for (int n = 1;; n *= 2) {
        double least = INFINITY;

        turn->n_tokens = n = n < most ? n : most;
        for (int i = 0; i < 3; i++) {
            if (take_turn(turn, &seconds, err))
                return err->code;
            least = fmin(least, seconds);
        }
        if (least >= turn_s / 2 || n == most) {
            const double wanted = round(n * turn_s / least);

            turn->n_tokens = wanted < 1 ? 1 : wanted > most ? most : (int)wanted;
            return ST_OK;
        }
    }
}

static enum status write_head(FILE *f, const struct gate_trace_plan *plan,
                              int n_threads, int n_tokens, struct err *err)
{
    struct topology *topo = NULL;
    char note[512];
    enum status st = topology_open(&topo, "", err);

    if (st == ST_OK)
        fprintf(f,
                "# %s, %d CPUs; %s, %d thread%s, %d token%s a turn%s%s\n"
                "# milliseconds of each turn, in order; recorded by "
                "bench-research record-trace\n",
                topo->cpu_model, topo->n_cpus, format_path(plan->session.model).text,
                n_threads, n_threads > 1 ? "s" : "", n_tokens, n_tokens > 1 ? "s" : "",
                plan->note ? "; " : "", text_harmless(note, sizeof note, plan->note));
    free(topo);
    return st;
}

static enum status write_turns(FILE *f, struct turn *turn, size_t n_turns,
                               struct err *err)
{
    struct progress progress;
    enum status st = ST_OK;
    double seconds = 0;

    progress_begin(&progress, "turns");
    for (size_t i = 0; st == ST_OK && i < n_turns; i++) {
        st = interrupted() ? err_set(err, ST_INTERRUPTED, "interrupted")
                           : take_turn(turn, &seconds, err);
        if (st == ST_OK && fprintf(f, "%.5g\n", seconds * 1e3) < 0)
            st = err_set_errno(err, ST_IO, "the turns cannot be written");
        progress_update(&progress, (double)(i + 1) / (double)n_turns, NULL);
    }
    progress_end(&progress);
    return st;
}

enum status gate_trace_record(struct gate_trace_plan *plan, struct err *err)
{
    struct slm *m = NULL;
    struct turn turn = {.n_tokens = 0};
    struct path_list inputs = {0};
    struct newfile n = {.f = NULL};
    int n_threads;
    enum status st = session_inputs(&inputs, &plan->session, err);

    if (st == ST_OK)
        st = path_list_check_output(&inputs, plan->path, err);
    path_list_free(&inputs);
    if (st == ST_OK)
        st = measuring_begin(err);
    if (st == ST_OK)
        st = session_open(&m, &plan->session, &n_threads, err);

    if (st == ST_OK)
        st = measured_borrow(&turn.measured, m, 1, err);
    if (st == ST_OK)
        st = choose_tokens(&turn, plan->turn_s, err);
    if (st == ST_OK)
        st = newfile_open(&n, plan->path, err);
    if (st == ST_OK)
        st = write_head(n.f, plan, n_threads, turn.n_tokens, err);
    if (st == ST_OK)
        st = write_turns(n.f, &turn, plan->n_turns, err);
    if (n.f && st)
        newfile_abort(&n);
    else if (n.f)
        st = newfile_commit(&n, plan->path, err);
    measured_close(&turn.measured);
    slm_close(m);
    return st;
}

#define TURN_S  0.03
#define N_TURNS 2000

enum status research_record_trace(const struct research_options *o, struct err *err)
{
    struct gate_trace_plan plan = {.path = o->path,
                                   .note = o->note,
                                   .session = {.model = o->model},
                                   .n_turns = o->n ? o->n : N_TURNS,
                                   .turn_s = TURN_S};
    long long n_threads = 0;
    enum status st = ST_OK;

    if (plan.n_turns < GATE_TRACE_MIN || plan.n_turns > GATE_TRACE_MAX)
        return err_set(err, ST_USAGE, "--turns %zu is outside %d..%d", plan.n_turns,
                       GATE_TRACE_MIN, GATE_TRACE_MAX);
    if (o->threads)
        st = parse_count(o->threads, "--threads", "", 1, THREAD_POOL_MAX, &n_threads,
                         err);
    plan.session.setup.n_threads = (int)n_threads;
    return st ? st : gate_trace_record(&plan, err);
}
