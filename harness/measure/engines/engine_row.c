/* SPDX-License-Identifier: MIT
 *
 * engine_row.c - figures of another program as a row
 */
#include "harness/measure/engines/engine_row.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "harness/base/format.h"
#include "harness/machine/measuring.h"
#include "harness/stats/stats.h"
#include "kernels/isa.h"
#include "kernels/units.h"

/* ---- before ---------------------------------------------------------------------- */

void engine_row_begin(struct engine_run *x)
{
    struct row *row = x->r->row;

    snprintf(row->engine, sizeof row->engine, "%s", x->e.name);
    point_fill_columns(&x->r->settings, FIELD_COMPUTED, row);
    /* These are this program's. */
    row->weights_asked = row->residency = row->tuning = FIELD_NO_ENUM;
    if (row->ctx > 0)
        row->ctx_fill = CTX_FILL_PREFILL;
}

void engine_row_cpus(struct engine_run *x)
{
    const struct model_setup *setup = &x->r->settings.setup;

    if (setup->explicit_cpus)
        format_cpus(x->r->row->cpus, sizeof x->r->row->cpus, setup->cpus,
                    setup->n_threads);
}

void engine_row_ceiling(struct engine_run *x)
{
    struct row *row = x->r->row;

    if (row->roof_gbps > 0 && row->bytes_per_token > 0)
        row->roof_tok_per_s = row->roof_gbps * 1e9 / (double)row->bytes_per_token;
}

/* ---- its end --------------------------------------------------------------------- */

void engine_row_fails(struct engine_run *x, const char *why)
{
    x->r->row->status = ROW_STATUS_ERROR;
    snprintf(x->r->row->detail, sizeof x->r->row->detail, "%.190s", why);
}

static void note_oom(struct engine_run *x)
{
    x->r->row->status = ROW_STATUS_OOM;
    snprintf(x->r->row->detail, sizeof x->r->row->detail,
             "%s was killed for memory%s%s: give more with --mem, or take a smaller "
             "model",
             x->e.name, x->r->usage.limit_bytes ? " at the limit of " : "",
             x->r->usage.limit_bytes ? bytes_text(x->r->usage.limit_bytes).text : "");
}

static void note_code(struct engine_run *x, const struct engine_child *c)
{
    char text[260];

    snprintf(text, sizeof text, "%s ended with exit code %d%s%s", x->e.name,
             WEXITSTATUS(c->wstatus), *c->last_words ? ": " : "", c->last_words);
    engine_row_fails(x, text);
}

static void note_signal(struct engine_run *x, const struct engine_child *c)
{
    const int number = WTERMSIG(c->wstatus);
    char text[260];

    if (number == SIGKILL && x->r->sandbox && x->r->usage.n_oom_kills) {
        note_oom(x);
        return;
    }
    snprintf(text, sizeof text, "%s died of signal %d (%s)%s%s", x->e.name, number,
             strsignal(number), *c->last_words ? ": " : "", c->last_words);
    engine_row_fails(x, text);
}

static void read_figures(struct engine_run *x, const struct engine_child *c)
{
    struct err why = ERR_INIT;
    char text[1100];
    enum status st;

    switch (x->e.kind) {
    case ENGINE_LLAMA_SERVER:
    case ENGINE_SERVER:
        x->figures = x->talk.figures;
        st = *x->talk.why ? err_set(&why, ST_IO, "%s", x->talk.why) : ST_OK;
        break;
    case ENGINE_LLAMA_BENCH:
        st = engine_read_llama_bench(&x->figures, c->output, c->n_output, &x->requested,
                                     &why);
        break;
    case ENGINE_BY_REGEX:
        st = engine_read_regex(&x->figures, c->output, c->n_output, x->e.figure, &why);
        break;
    default:
        st = engine_read_json(&x->figures, c->output, c->n_output, x->e.figure, &why);
        break;
    }
    if (st == ST_OK)
        return;
    snprintf(text, sizeof text, "%s: %s", x->e.name, why.msg);
    engine_row_fails(x, text);
    x->figures.n = 0;
    x->figures.mean = 0;
}

void engine_row_end(struct engine_run *x, const struct engine_child *c)
{
    struct row *row = x->r->row;

    if (c->end == ENGINE_INTERRUPTED) {
        row->status = ROW_STATUS_INTERRUPTED;
    } else if (c->end == ENGINE_HUNG && *x->talk.why) {
        row->status = ROW_STATUS_PARTIAL;
        snprintf(row->detail, sizeof row->detail,
                 "%s was ended: %.100s; --timeout gives it more", x->e.name,
                 x->talk.why);
    } else if (c->end == ENGINE_HUNG) {
        row->status = ROW_STATUS_PARTIAL;
        snprintf(row->detail, sizeof row->detail,
                 "%s was ended: no result within %.0f s; --timeout gives it more",
                 x->e.name, c->limit_s);
    } else if (c->end == ENGINE_TALKS) {
        char text[120];

        snprintf(text, sizeof text, "%s printed more than %u KiB", x->e.name,
                 ENGINE_MAX_OUTPUT >> 10);
        engine_row_fails(x, text);
    } else if (WIFSIGNALED(c->wstatus)) {
        note_signal(x, c);
    } else if (x->r->sandbox && x->r->usage.n_oom_kills && WEXITSTATUS(c->wstatus)) {
        note_oom(x); /* a script's exit code shows how its child ended */
    } else if (WEXITSTATUS(c->wstatus)) {
        note_code(x, c);
    } else {
        read_figures(x, c);
    }
}

void engine_row_worker(struct engine_run *x, bool answered)
{
    const struct worker_client *w = &x->r->worker;
    struct row *row = x->r->row;

    if (row->status == FIELD_NO_ENUM && w->end == WORKER_INTERRUPTED)
        row->status = ROW_STATUS_INTERRUPTED;
    else if (row->status == FIELD_NO_ENUM && !answered)
        engine_row_fails(x, *w->error ? w->error
                            : w->end == WORKER_SILENT
                                ? "the measuring process hangs: it sent nothing for "
                                  "too long (SLMBENCH_SILENCE)"
                                : "the measuring process ended without an answer");
}

/* ---- its figures ----------------------------------------------------------------- */

/* Repetitions in ms; for figures without samples only their mean. */
static bool make_samples(struct engine_run *x)
{
    struct point_samples *s = &x->r->samples;
    const struct engine_figures *f = &x->figures;
    const size_t n = f->n ? f->n : 1;

    s->ms = calloc(n, sizeof *s->ms);
    if (!s->ms)
        return false;
    s->n = n;
    for (size_t i = 0; i < n; i++)
        s->ms[i] = x->effort.n_tokens * 1e3 / (f->n ? f->tok_per_s[i] : f->mean);
    return true;
}

/* While it loads, a model that fits is read from disk too, and its CPU quota is used
 * up: only the measured part of what was counted is its own, and which part is not
 * known of pages. */
static void share_noise(struct engine_run *x, double measured_s, double n_tokens)
{
    const double share = x->wall_s > measured_s ? measured_s / x->wall_s : 1;
    const double done = n_tokens + x->effort.n_tokens; /* with its warm-up */

    x->noise.throttled_ns = (uint64_t)((double)x->noise.throttled_ns * share);
    x->noise.n_refaults = x->r->sandbox ? x->r->usage.n_refaults : x->noise.n_refaults;
    x->noise.n_major_faults =
        x->r->fits ? 0 : (uint64_t)((double)x->noise.n_major_faults * n_tokens / done);
    x->noise.n_refaults =
        x->r->fits ? 0 : (uint64_t)((double)x->noise.n_refaults * n_tokens / done);
}

/* Judged as repetitions, since roofs know their bytes and operations; printed as
 * tokens. */
static void judge(struct engine_run *x)
{
    struct point_run *r = x->r;
    const bool is_decode = r->settings.kind == POINT_DECODE;
    const double n = is_decode ? x->effort.n_tokens : 1;
    struct point_facts facts = r->facts;
    double measured_s = 0;

    for (size_t i = 0; i < r->samples.n; i++)
        measured_s += r->samples.ms[i] * 1e-3;
    facts.tokens_per_sample = x->effort.n_tokens;
    facts.bytes_per_sample *= n;
    facts.ops_per_sample *= n;
    facts.llc_bytes *= n;
    facts.llc_hi_bytes *= n;
    share_noise(x, measured_s, (double)r->samples.n * x->effort.n_tokens);
    point_judge(r->row, &r->samples, &facts, &x->noise);
    if (r->fits)
        r->row->major_faults_per_token = r->row->refaults_per_token = NAN;
    for (size_t i = 0; i < r->samples.n; i++)
        r->samples.ms[i] /= n;
    r->row->lat_p50_ms /= n;
    r->row->lat_p95_ms /= n;
    r->row->lat_p99_ms /= n;
}

/* An interval from mean and deviation of the repetitions, taken as normal; one
 * figure has no interval. */
static void use_deviation(struct engine_run *x)
{
    const bool is_one = x->figures.n == 1 && engine_prints(&x->e);
    const double df = x->effort.n_reps - 1;
    struct row *row = x->r->row;
    double half;

    if (x->figures.n && !is_one)
        return;
    if (engine_is_server(&x->e)) {
        snprintf(row->detail, sizeof row->detail,
                 "%s sent fewer pieces of text than tokens: its interval comes from "
                 "several launches alone",
                 x->e.name);
        return;
    }
    if (is_one || !(df >= 1) || !isfinite(x->figures.deviation)) {
        snprintf(row->detail, sizeof row->detail,
                 "%s prints one figure and no samples: its interval comes from several "
                 "launches alone",
                 x->e.name);
        return;
    }
    half = stats_t_quantile(df) * x->figures.deviation / sqrt(df + 1);
    if (half < row->tok_per_s) {
        row->tok_per_s_lo = row->tok_per_s - half;
        row->tok_per_s_hi = row->tok_per_s + half;
    }
    snprintf(row->detail, sizeof row->detail,
             "%s prints no samples but mean and deviation: the interval takes its %d "
             "repetitions as normal",
             x->e.name, x->effort.n_reps);
}

/* Weights are in its own memory, or mapped: every byte of them once. */
static void note_resident(struct engine_run *x)
{
    const struct point_run *r = x->r;
    const uint64_t own = x->resident_bytes;
    const uint64_t planned = r->anon_bytes;
    const uint64_t copied = own > planned ? own - planned : 0;

    if (!r->sandbox || sandbox_is_adopted(r->sandbox) || !own)
        return;
    x->r->row->mem_resident_bytes =
        (int64_t)(own + (r->weight_bytes > copied ? r->weight_bytes - copied : 0));
}

void engine_row_units(struct row *row, uint32_t isa_mask, uint32_t unused_units)
{
    const bool tiles =
        isa_mask >> KERN_ISA_amx_int8 & 1 &&
        !(row_vectors_gops(row) > 0 && row->gops > row_vectors_gops(row));
    char units[UNITS_TEXT_MAX];

    units_text(unused_units, units, sizeof units);
    snprintf(row->unused_units, sizeof row->unused_units, "%s%s%.80s",
             tiles ? "AMX-INT8" : "", tiles && *units ? " " : "", units);
}

/* Also that it was measured over HTTP, unlike a bench of the same version. */
static void fill_version(struct engine_run *x)
{
    const bool is_server = engine_is_server(&x->e);
    const char *version = x->figures.version;

    snprintf(x->r->row->engine_version, sizeof x->r->row->engine_version, "%.33s%s%s",
             version, is_server && *version ? ", " : "", is_server ? "HTTP" : "");
}

void engine_row_conclude(struct engine_run *x)
{
    struct point_run *r = x->r;
    struct row *row = r->row;

    if (r->sandbox) {
        row->mem_enforced_bytes = (int64_t)r->usage.limit_bytes;
        if (x->peak_bytes)
            row->mem_peak_bytes = (int64_t)x->peak_bytes;
    } else if (x->maxrss_bytes) {
        row->mem_peak_bytes = (int64_t)x->maxrss_bytes;
    }
    if (x->effort.n_reps)
        row->n_wanted = x->effort.n_reps;
    row->residency = FIELD_NO_ENUM; /* the plan's, which is not its own */
    if (row->status != FIELD_NO_ENUM)
        return;
    if (!(x->figures.n || x->figures.mean > 0) || !make_samples(x)) {
        engine_row_fails(x, "no memory for its samples");
        return;
    }
    row->status = ROW_STATUS_OK;
    fill_version(x);
    if (engine_is_server(&x->e))
        row->load_s = x->talk.load_s;
    judge(x);
    engine_row_units(row, isa_detected(), r->topo->unused_units);
    use_deviation(x);
    note_resident(x);
    if (!*row->detail && *x->talk.note)
        snprintf(row->detail, sizeof row->detail, "%s: %s", x->e.name, x->talk.note);
    if (!*row->detail && !r->fits)
        snprintf(row->detail, sizeof row->detail,
                 "does not fit: paged from disk, including the reads while loading");
    noise_remark(&x->noise, row->detail, sizeof row->detail);
    measuring_remark(row->detail, sizeof row->detail);
}
