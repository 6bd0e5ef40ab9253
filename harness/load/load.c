/* SPDX-License-Identifier: MIT
 *
 * load.c - ladder, capacity, open loop: which step is next
 */
#include "harness/load/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/base/format.h"
#include "harness/base/program.h"
#include "harness/base/progress.h"
#include "harness/load/client.h"

#define GAIN       1.05 /* throughput that grows less has stopped */
#define MORE       3    /* times as many requests where a step was undecided */
#define MAX_MODELS (256u << 10)
#define SHORT      8   /* words of the prompts that calibrate */
#define LONG       200 /* at most: they fit where the prompts asked for do */

struct run {
    struct load_answer *a;
    const struct load_settings *s;
    const struct row *done;
    size_t n_done;
    load_row_fn *fn;
    void *arg;
    struct load_prompts prompts;
    struct load_target target;
    char url[600], base[560], model[96];
    struct progress progress;
    char doing[80];
    size_t n_wanted;
    double limit_s;
};

/* ---- the server ------------------------------------------------------------------ */

static enum status make_urls(struct run *x, struct err *err)
{
    const char *url = x->s->url;
    size_t n = strlen(url);

    while (n && url[n - 1] == '/')
        n--;
    if (n >= 3 && !strncmp(url + n - 3, "/v1", 3))
        n -= 3;
    if ((strncmp(url, "http://", 7) && strncmp(url, "https://", 8)) || n < 8 || n > 500)
        return err_set(err, ST_USAGE,
                       "'%s' is no address of a server, as http://127.0.0.1:8080", url);
    snprintf(x->base, sizeof x->base, "%.*s", (int)n, url);
    snprintf(x->url, sizeof x->url, "%s/v1/%s", x->base,
             x->s->completions ? "completions" : "chat/completions");
    x->target =
        (struct load_target){.url = x->url,
                             .key = x->s->key_env ? getenv(x->s->key_env) : NULL,
                             .silence_s = x->s->silence_s};
    if (x->s->key_env && (!x->target.key || strlen(x->target.key) > 500 ||
                          strpbrk(x->target.key, "\r\n")))
        return err_set(err, ST_USAGE, "--api-key-env: %s has no API key of one line",
                       x->s->key_env);
    return ST_OK;
}

/* The name that requests carry: the user's, or the first that the server has. */
static enum status find_model(struct run *x, struct err *err)
{
    char *text = malloc(MAX_MODELS), url[600];
    const char *name = NULL;
    json_t *list = NULL;
    int http;
    enum status st;

    if (!text)
        return err_set(err, ST_NO_MEMORY, "no memory for a list of models");
    snprintf(url, sizeof url, "%s/v1/models", x->base);
    st = load_client_get(url, x->target.key, 10, &http, text, MAX_MODELS, err);
    if (st == ST_OK && !http)
        st = err_set(err, ST_IO, "no server answers at %s", x->base);
    if (st == ST_OK && http == 200) {
        list = json_loads(text, 0, NULL);
        name = json_string_value(
            json_object_get(json_array_get(json_object_get(list, "data"), 0), "id"));
    }
    if (x->s->model)
        name = x->s->model;
    if (st == ST_OK && !name)
        st = err_set(err, ST_IO,
                     "%s/v1/models names no model (HTTP %d); name one with --model",
                     x->base, http);
    if (st == ST_OK)
        text_harmless(x->model, sizeof x->model, name);
    free(text);
    json_decref(list);
    return st;
}

/* ---- calibration ----------------------------------------------------------------- */

/* Two answers of a token to prompts of a few words and of many: how many tokens a word
 * is, and what the server adds. A server that says no usage leaves a word a token. */
static enum status calibrate(struct run *x, struct err *err)
{
    const double half = fmin(fmax(x->prompts.prompt.a / 2, 2 * SHORT), LONG);
    const int n_words[2] = {SHORT + LOAD_UNIQUE_WORDS, (int)half + LOAD_UNIQUE_WORDS};
    struct load_prompts p = x->prompts;
    int64_t tokens[2] = {-1, -1};
    enum status st = ST_OK;

    p.texts = NULL;
    p.n_prefix = 0;
    p.output = (struct load_dist){LOAD_FIXED, 2, 2};
    for (int i = 0; i < 2 && st == ST_OK; i++) {
        const struct load_work work = {
            .n_users = 1, .n_wanted = 1, .body = load_prompts_body, .body_arg = &p};
        struct load_result r;

        p.prompt = (struct load_dist){LOAD_FIXED, n_words[i], n_words[i]};
        p.n_before = UINT32_MAX + (uint64_t)i;
        st = load_client_run(&r, &x->target, &work, err);
        if (st)
            break;
        if (r.is_interrupted)
            st = err_set(err, ST_INTERRUPTED, "interrupted");
        else if (r.n && r.records[0].end == LOAD_OK)
            tokens[i] = r.records[0].n_prompt;
        else
            st = err_set(err, ST_IO, "%s does not answer a request: %s", x->url,
                         r.n ? r.records[0].why : "none was sent");
        load_result_free(&r);
    }
    if (st == ST_OK)
        load_prompts_calibrate(&x->prompts, n_words[0], tokens[0], n_words[1],
                               tokens[1]);
    return st;
}

/* ---- one step -------------------------------------------------------------------- */

static void on_progress(void *arg, size_t n_ended, double seconds)
{
    struct run *x = arg;
    const double by_n = (double)n_ended / (double)x->n_wanted;
    const double by_time = x->limit_s > 0 ? seconds / x->limit_s : 0;

    progress_update(&x->progress, fmax(by_n, fmin(by_time, 0.99)), x->doing);
}

static void describe(const struct run *x, int n_users, double rate, struct row *row)
{
    const struct load_settings *s = x->s;
    const time_t now = time(NULL);
    struct tm tm;

    row_init(row);
    gmtime_r(&now, &tm);
    strftime(row->utc, sizeof row->utc, "%Y-%m-%dT%H:%M:%SZ", &tm);
    row->kind = ROW_LOAD;
    row->attempt = s->round ? s->round : 1;
    snprintf(row->build, sizeof row->build, "%.39s", build_version());
    snprintf(row->model, sizeof row->model, "%s", x->model);
    text_harmless(row->server_url, sizeof row->server_url, x->base);
    load_dist_text(&s->prompt, row->prompt_lengths, sizeof row->prompt_lengths);
    if (s->file) {
        const char *name = strrchr(s->file, '/');

        text_harmless(row->prompt_lengths, sizeof row->prompt_lengths,
                      name ? name + 1 : s->file);
    }
    load_dist_text(&s->output, row->output_lengths, sizeof row->output_lengths);
    row->prefix_tokens = s->n_prefix;
    snprintf(row->engine, sizeof row->engine, "%s", s->name ? s->name : "");
    snprintf(row->slo, sizeof row->slo, "%s", s->slo.name);
    row->load_mode = n_users ? LOAD_MODE_CLOSED : LOAD_MODE_OPEN;
    if (n_users)
        row->n_users = n_users;
    else
        row->rate_asked = rate;
    if (n_users)
        snprintf(row->point, sizeof row->point, "load/%s%s%.20s/p%.12s/o%.12s/u%d",
                 row->engine, *row->engine ? "/" : "", x->model, row->prompt_lengths,
                 row->output_lengths, n_users);
    else
        snprintf(row->point, sizeof row->point, "load/%s%s%.20s/p%.12s/o%.12s/r%.4g",
                 row->engine, *row->engine ? "/" : "", x->model, row->prompt_lengths,
                 row->output_lengths, rate);
}

static enum status make_samples(struct load_samples *out, const struct load_result *r,
                                size_t n_warm_up, struct err *err)
{
    out->e2e.ms = calloc(r->n + 1, sizeof *out->e2e.ms);
    out->requests = calloc((r->n + 1) * REQUEST_CELLS, sizeof *out->requests);
    if (!out->e2e.ms || !out->requests)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu times", r->n);
    for (size_t i = n_warm_up; i < r->n; i++) {
        double *cells = &out->requests[out->n_requests++ * REQUEST_CELLS];

        load_request_cells(&r->records[i], cells);
        if (cells[REQUEST_E2E_S] > 0) /* a failed one has none */
            out->e2e.ms[out->e2e.n++] = 1000 * cells[REQUEST_E2E_S];
    }
    return ST_OK;
}

static void add_up(struct load_step *step, const struct load_figures *f)
{
    step->n += f->n;
    step->n_ttft_met += f->n_ttft_met;
    step->n_tpot_met += f->n_tpot_met;
    step->verdict = slo_judge_both(step->n_ttft_met, step->n_tpot_met, step->n);
}

/* Memory's bandwidth at one end of a step, which takes about a second. */
static void read_roof(struct run *x, void (*read)(struct load_roof *))
{
    char text[120];

    if (!x->s->roof)
        return;
    snprintf(text, sizeof text, "%s: the memory's bandwidth, about a second", x->doing);
    progress_update(&x->progress, read == load_roof_before ? 0 : 0.99, text);
    read(x->s->roof);
}

static enum status measure(struct run *x, struct load_step *step,
                           const struct load_work *work, struct err *err)
{
    struct load_samples samples = {0};
    struct noise before, noise;
    struct load_figures f;
    struct load_result r;
    enum status st;

    read_roof(x, load_roof_before);
    noise_read(&before, "");
    st = load_client_run(&r, &x->target, work, err);
    if (st)
        return st;
    noise_since(&noise, &before, "");
    read_roof(x, load_roof_after);
    x->prompts.n_before += r.n + (size_t)work->n_users;
    st = load_figures_make(&f, &r, work->n_users, &x->s->slo, err);
    if (st == ST_OK) {
        load_row_fill(&step->row, x->s, &f, &r, &noise);
        if (x->s->roof)
            load_roof_note(x->s->roof, &step->row);
        add_up(step, &f);
        /* requests that an interrupt cut off say nothing of the limits */
        step->row.slo_verdict = (int)(r.is_interrupted ? SLO_UNDECIDED : step->verdict);
        st = make_samples(&samples, &r, f.n_warm_up, err);
    }
    if (st == ST_OK && x->fn)
        st = x->fn(x->arg, &step->row, &samples, err);
    point_samples_free(&samples.e2e);
    free(samples.requests);
    if (st == ST_OK && r.is_interrupted)
        st = err_set(err, ST_INTERRUPTED, "interrupted");
    if (st == ST_OK && r.gave_up)
        st = err_set(err, ST_IO, "%s: %s", x->base,
                     *step->row.detail ? step->row.detail : "no request succeeds");
    load_result_free(&r);
    return st;
}

/* A step that is known from a run that ended early. */
static const struct row *find_done(const struct run *x, const struct row *row)
{
    const struct row *found = NULL;

    for (size_t i = 0; i < x->n_done; i++)
        if (x->done[i].status == ROW_STATUS_OK &&
            !strcmp(x->done[i].point, row->point) &&
            !strcmp(x->done[i].slo, row->slo) && x->done[i].attempt >= row->attempt &&
            (!found || x->done[i].attempt > found->attempt))
            found = &x->done[i];
    return found;
}

static struct load_step *new_step(struct run *x)
{
    struct load_answer *a = x->a;

    memset(&a->step[a->n_steps], 0, sizeof a->step[0]);
    return &a->step[a->n_steps++];
}

static void note_best(struct load_answer *a)
{
    const int i = (int)a->n_steps - 1;

    if (a->step[i].n_users &&
        (a->best < 0 || a->step[i].row.tok_per_s > a->step[a->best].row.tok_per_s))
        a->best = i;
}

/* n_users at once, in as many tries as it takes to decide, two at most. */
static enum status run_users(struct run *x, int n_users, struct load_step **out,
                             struct err *err)
{
    struct load_work work = {.n_users = n_users,
                             .limit_s = x->s->step_s,
                             .body = load_prompts_body,
                             .body_arg = &x->prompts,
                             .progress = on_progress,
                             .progress_arg = x};
    struct load_step *step = new_step(x);
    const struct row *known;
    enum status st = ST_OK;

    step->n_users = n_users;
    describe(x, n_users, 0, &step->row);
    known = find_done(x, &step->row);
    *out = step;
    if (known) {
        step->row = *known;
        step->verdict = (enum row_slo_verdict)known->slo_verdict;
        step->n = known->n_requests > 0 ? (size_t)known->n_requests : 0;
        step->n_ttft_met = known->n_ttft_met > 0 ? (size_t)known->n_ttft_met : 0;
        step->n_tpot_met = known->n_tpot_met > 0 ? (size_t)known->n_tpot_met : 0;
        note_best(x->a);
        return ST_OK;
    }
    for (int try = 1; try <= 2 && st == ST_OK; try++) {
        const size_t n = (size_t)x->s->n_requests * (try > 1 ? MORE : 1);

        if (try > 1 && (step->verdict != SLO_UNDECIDED || x->s->users.n))
            break;
        describe(x, n_users, 0, &step->row);
        step->row.attempt += try - 1;
        work.n_wanted = x->n_wanted = n + 2 * (size_t)n_users; /* with warm-up */
        x->limit_s = work.limit_s;
        snprintf(x->doing, sizeof x->doing, "%d user%s%s", n_users,
                 plural(n_users, "s"), try > 1 ? ", again" : "");
        progress_part(&x->progress);
        progress_step(&x->progress);
        st = measure(x, step, &work, err);
    }
    note_best(x->a);
    return st;
}

/* ---- which ----------------------------------------------------------------------- */

static bool has_room(const struct run *x)
{
    return x->a->n_steps + 4 < LOAD_MAX_STEPS;
}

static enum status ladder(struct run *x, struct err *err)
{
    double before = 0;
    enum status st = ST_OK;

    for (int n = 1; n <= x->s->max_users && st == ST_OK && has_room(x); n *= 2) {
        struct load_step *step;

        st = run_users(x, n, &step, err);
        if (st == ST_OK && !(step->row.tok_per_s > GAIN * before) &&
            step->verdict != SLO_MEETS)
            break;
        before = fmax(before, step->row.tok_per_s);
    }
    return st;
}

/* The ends so far: the most that meet the SLO with none below them that does not, the
 * fewest above that miss it. */
static void find_ends(struct load_answer *a)
{
    a->carries = a->misses = 0;
    for (size_t i = 0; i < a->n_steps; i++)
        if (a->step[i].n_users && a->step[i].verdict == SLO_MISSES &&
            (!a->misses || a->step[i].n_users < a->misses))
            a->misses = a->step[i].n_users;
    for (size_t i = 0; i < a->n_steps; i++)
        if (a->step[i].verdict == SLO_MEETS && a->step[i].n_users > a->carries &&
            (!a->misses || a->step[i].n_users < a->misses))
            a->carries = a->step[i].n_users;
}

static bool is_tried(const struct load_answer *a, int n_users)
{
    for (size_t i = 0; i < a->n_steps; i++)
        if (a->step[i].n_users == n_users)
            return true;
    return false;
}

/* The middle of the longest stretch between the ends that nobody tried; 0: none. */
static int next_users(const struct load_answer *a)
{
    int begin = 0, longest = 0, at = 0;

    for (int n = a->carries + 1; n <= a->misses; n++) {
        if (n < a->misses && !is_tried(a, n)) {
            begin = begin ? begin : n;
            if (n - begin + 1 > longest) {
                longest = n - begin + 1;
                at = (begin + n) / 2;
            }
        } else {
            begin = 0;
        }
    }
    return at;
}

static enum status find_capacity(struct run *x, struct err *err)
{
    struct load_answer *a = x->a;
    enum status st = ST_OK;

    a->by_ladder = true;
    find_ends(a);
    while (st == ST_OK && a->misses && next_users(a) && has_room(x)) {
        struct load_step *step;

        st = run_users(x, next_users(a), &step, err);
        find_ends(a);
    }
    for (size_t i = 0; i < a->n_steps; i++) {
        const struct load_step *s = &a->step[i];

        a->undecided |= s->n_users > a->carries && s->verdict == SLO_UNDECIDED &&
                        (!a->misses || s->n_users < a->misses);
        if (s->n_users == a->carries && s->n_users)
            a->rate = s->row.req_per_s;
    }
    return st;
}

void load_answer_join(struct load_answer *a, const struct load_answer *b)
{
    for (size_t i = 0; i < b->n_steps && a->n_steps < LOAD_MAX_STEPS; i++) {
        a->step[a->n_steps++] = b->step[i];
        note_best(a);
    }
}

static enum status run_open(struct run *x, double rate, double share, struct err *err)
{
    const size_t n = (size_t)fmax(30, fmin(x->s->n_requests, rate * x->s->step_s));
    double *at_s = malloc(n * sizeof *at_s);
    struct load_step *step = new_step(x);
    const struct load_work work = {.at_s = at_s,
                                   .n_wanted = n,
                                   .body = load_prompts_body,
                                   .body_arg = &x->prompts,
                                   .progress = on_progress,
                                   .progress_arg = x};
    enum status st;

    if (!at_s)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu times", n);
    load_poisson(at_s, n, rate, x->s->seed + (uint64_t)(share * 100));
    describe(x, 0, rate, &step->row);
    if (share > 0)
        step->row.capacity_pct = 100 * share;
    x->n_wanted = n;
    x->limit_s = 0;
    snprintf(x->doing, sizeof x->doing, "%.3g requests a second", rate);
    progress_part(&x->progress);
    progress_step(&x->progress);
    st = measure(x, step, &work, err);
    free(at_s);
    return st;
}

static enum status run_all(struct run *x, struct err *err)
{
    static const double shares[] = {0.5, 0.7, 0.9};
    const struct load_settings *s = x->s;
    struct load_step *step;
    enum status st = ST_OK;

    if (s->rate > 0)
        return run_open(x, s->rate, 0, err);
    for (size_t i = 0; i < s->users.n && st == ST_OK && has_room(x); i++)
        st = run_users(x, s->users.v[i], &step, err);
    if (!s->users.n) {
        st = ladder(x, err);
        if (st == ST_OK)
            st = find_capacity(x, err);
    }
    for (size_t i = 0; i < 3 && st == ST_OK && s->open_loop && x->a->rate > 0; i++)
        st = run_open(x, x->a->rate * shares[i], shares[i], err);
    return st;
}

enum status load_run(struct load_answer *a, const struct load_settings *s,
                     const struct row *done, size_t n_done, load_row_fn *fn, void *arg,
                     struct err *err)
{
    struct run *x = calloc(1, sizeof *x);
    struct load_texts *texts = NULL;
    enum status st;

    memset(a, 0, sizeof *a);
    a->best = -1;
    if (!x)
        return err_set(err, ST_NO_MEMORY, "no memory");
    *x = (struct run){
        .a = a, .s = s, .done = done, .n_done = n_done, .fn = fn, .arg = arg};
    st = load_client_check(err);
    if (st == ST_OK && s->file)
        st = load_texts_read(&texts, s->file, err);
    if (st == ST_OK)
        st = make_urls(x, err);
    if (st == ST_OK)
        st = find_model(x, err);
    x->prompts = (struct load_prompts){.prompt = s->prompt,
                                       .output = s->output,
                                       .n_prefix = s->n_prefix,
                                       .is_chat = !s->completions,
                                       .ignore_eos = s->ignore_eos,
                                       .model = s->model ? s->model : x->model,
                                       .seed = s->seed,
                                       .tokens_per_word = 1,
                                       .texts = texts};
    if (st == ST_OK && s->roof)
        load_roof_begin(s->roof);
    if (st == ST_OK)
        st = calibrate(x, err);
    if (st == ST_OK) {
        progress_begin(&x->progress, "load");
        st = run_all(x, err);
        progress_end(&x->progress);
    }
    load_texts_free(texts);
    free(x);
    return st;
}
