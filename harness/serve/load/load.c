/* SPDX-License-Identifier: MIT
 *
 * load.c - ladder, capacity, open loop: which level is next
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "harness/base/format.h"
#include "harness/client/server_ready.h"
#include "harness/serve/load/load_internal.h"

#define GAIN  1.05 /* throughput that grows less has stopped */
#define SHORT 8    /* words of the prompts that calibrate */
#define LONG  200  /* at most: they fit where the requested prompts do */

/* ---- the server ------------------------------------------------------------------ */

static enum status make_urls(struct load_run *x, struct err *err)
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
             x->s->embeddings    ? "embeddings"
             : x->s->completions ? "completions"
                                 : "chat/completions");
    x->target =
        (struct load_target){.url = x->url,
                             .key = x->s->key_env ? getenv(x->s->key_env) : NULL,
                             .is_vector = x->s->embeddings,
                             .silence_s = x->s->silence_s};
    if (x->s->key_env && (!x->target.key || strlen(x->target.key) > 500 ||
                          strpbrk(x->target.key, "\r\n")))
        return err_set(
            err, ST_USAGE,
            "--api-key-env: the variable %s holds no API key, or more than one line",
            x->s->key_env);
    return ST_OK;
}

/* The name that requests carry: the user's, or the first that the server has. */
static enum status find_model(struct load_run *x, struct err *err)
{
    char *name = NULL;
    int http;
    enum status st = server_model(&name, x->base, x->target.key, &http, err);

    if (st == ST_OK && !http)
        st = err_set(err, ST_IO, "no server answers at %s", x->base);
    if (st == ST_OK && x->s->model) {
        free(name);
        name = strdup(x->s->model);
        if (!name)
            st = err_set(err, ST_NO_MEMORY, "no memory for a name");
    }
    if (st == ST_OK && !name && (http == 401 || http == 403))
        st = err_set(err, ST_IO,
                     "%s requires an API key (HTTP %d): name the variable that holds "
                     "it with --api-key-env",
                     x->base, http);
    if (st == ST_OK && !name)
        st = err_set(err, ST_IO,
                     "%s/v1/models names no model (HTTP %d); name one with --model",
                     x->base, http);
    if (st)
        free(name);
    else
        x->model = name;
    return st;
}

/* ---- calibration ----------------------------------------------------------------- */

static void note_calibration(struct load_run *x, const struct load_record *r,
                             int64_t *n_prompt)
{
    *n_prompt = r->n_prompt;
    if (r->n_cached > x->prompts.n_known)
        x->prompts.n_known = r->n_cached;
}

/* An answer that is whole but has no text is one: the first tokens of a model that
 * thinks may be a mark that the server keeps to itself. */
static bool is_answered(const struct load_result *r)
{
    return r->n && (r->records[0].end == LOAD_OK || r->records[0].is_empty);
}

/* The tokens of a prompt of n_words words, answered by one token; number: which prompt
 * it is, since no two may share their words. *n_tokens is negative where the server
 * reports no usage. */
static enum status count_tokens(struct load_run *x, int n_words, int number,
                                int64_t *n_tokens, struct err *err)
{
    struct load_prompts p = x->prompts;
    const struct load_work work = {
        .n_users = 1, .n_wanted = 1, .body = load_prompts_body, .body_arg = &p};
    struct load_result r;
    enum status st;

    p.texts = NULL;
    p.n_prefix = 0;
    p.prompt = (struct load_dist){LOAD_FIXED, n_words, n_words};
    p.output = (struct load_dist){LOAD_FIXED, 2, 2};
    p.n_before = UINT32_MAX + (uint64_t)number;
    st = load_client_run(&r, &x->target, &work, err);
    if (st)
        return st;
    if (r.is_interrupted)
        st = err_set(err, ST_INTERRUPTED, "interrupted");
    else if (!is_answered(&r))
        st = err_set(err, ST_IO, "%s does not answer a request: %s", x->url,
                     r.n ? r.records[0].why : "none was sent");
    else
        note_calibration(x, &r.records[0], n_tokens);
    load_result_free(&r);
    return st;
}

/* Pairs of prompts of a few words and of many give the tokens of a word, what the
 * server adds, and how much of that it keeps. Words differ in their tokens, so short
 * prompts take more pairs, until the long ones have LONG words together; a pair that
 * repeats the counts of the one before is the last. Without usage a word stays a token.
 */
static enum status calibrate(struct load_run *x, struct err *err)
{
    const int n_long = (int)fmin(fmax(x->prompts.prompt.a / 2, 2 * SHORT), LONG);
    const int n_words[2] = {SHORT + LOAD_UNIQUE_WORDS, n_long + LOAD_UNIQUE_WORDS};
    int64_t sums[2] = {0, 0}, before[2] = {0, 0};
    int n_pairs = 0;
    bool is_last = false;

    while (!is_last) {
        struct err why = ERR_INIT;
        int64_t tokens[2];
        enum status st = count_tokens(x, n_words[0], 2 * n_pairs, &tokens[0], &why);

        if (st == ST_OK)
            st = count_tokens(x, n_words[1], 2 * n_pairs + 1, &tokens[1], &why);
        if (st && (!n_pairs || st == ST_INTERRUPTED)) {
            *err = why;
            return st;
        }
        if (st || tokens[0] < 0 || tokens[1] < 0)
            break; /* the levels count failures */
        n_pairs++;
        is_last = n_pairs * n_long >= LONG ||
                  (tokens[0] == before[0] && tokens[1] == before[1]);
        for (int i = 0; i < 2; i++) {
            sums[i] += tokens[i];
            before[i] = tokens[i];
        }
    }
    if (n_pairs)
        load_prompts_calibrate(&x->prompts, n_words[0], (double)sums[0] / n_pairs,
                               n_words[1], (double)sums[1] / n_pairs);
    return ST_OK;
}

/* ---- being there ----------------------------------------------------------------- */

/* Stored levels were taken without a request to the server, which may have another
 * model by now. */
static enum status check_model(const struct load_run *x, struct err *err)
{
    char now[sizeof x->done->model];

    text_harmless(now, sizeof now, x->model);
    for (size_t i = 0; i < x->n_done; i++)
        if (x->done[i].kind == ROW_LOAD && !strcmp(x->done[i].engine, x->s->name) &&
            strcmp(x->done[i].model, now) != 0)
            return err_set(err, ST_USAGE,
                           "%s has the model %.100s now, and rows of %.100s: name it "
                           "with --model, or another directory",
                           x->s->name, now, x->done[i].model);
    return ST_OK;
}

enum status load_connect(struct load_run *x, struct err *err)
{
    char text[80];
    enum status st = ST_OK;

    if (x->model)
        return ST_OK;
    if (x->own.start) {
        snprintf(text, sizeof text, "%s is started", x->s->name);
        progress_update(&x->progress, 0, text);
        st = x->own.start(x->own.start_arg, &x->own, err);
    }
    if (st == ST_OK)
        st = make_urls(x, err);
    if (st == ST_OK)
        st = find_model(x, err);
    if (st == ST_OK && x->own.start)
        st = check_model(x, err);
    x->prompts.model = x->model;
    if (st == ST_OK && x->s->roof)
        load_roof_begin(x->s->roof);
    return st ? st : calibrate(x, err);
}

/* ---- which ----------------------------------------------------------------------- */

static bool has_room(const struct load_run *x)
{
    return x->a->n_levels + 4 < LOAD_MAX_LEVELS;
}

static enum status ladder(struct load_run *x, struct err *err)
{
    double before = 0;
    enum status st = ST_OK;

    x->a->by_ladder = true;
    for (int n = 1; n <= x->s->max_users && st == ST_OK && has_room(x); n *= 2) {
        struct load_level *level;

        st = load_level_users(x, n, &level, err);
        if (st ||
            (!(level->row.tok_per_s > GAIN * before) && level->verdict == SLO_MISSES))
            break;
        before = fmax(before, level->row.tok_per_s);
    }
    return st;
}

static enum status find_capacity(struct load_run *x, struct err *err)
{
    struct load_answer *a = x->a;
    enum status st = ST_OK;

    load_answer_find(a);
    while (st == ST_OK && a->misses && load_answer_next(a) && has_room(x)) {
        struct load_level *level;

        st = load_level_users(x, load_answer_next(a), &level, err);
        load_answer_find(a);
    }
    return st;
}

static enum status open_loops(struct load_run *x, double capacity, struct err *err)
{
    static const double shares[] = {0.5, 0.7, 0.9};
    enum status st = ST_OK;

    for (size_t i = 0; i < sizeof shares / sizeof shares[0] && st == ST_OK; i++)
        st = load_level_open(x, capacity * shares[i], shares[i], err);
    return st;
}

static enum status run_all(struct load_run *x, struct err *err)
{
    const struct load_settings *s = x->s;
    struct load_level *level;
    enum status st = ST_OK;

    if (s->rate > 0)
        return load_level_open(x, s->rate, 0, err);
    if (s->capacity > 0)
        return open_loops(x, s->capacity, err);
    for (size_t i = 0; i < s->users.n && st == ST_OK; i++)
        st = load_level_users(x, s->users.v[i], &level, err);
    if (!s->users.n) {
        st = ladder(x, err);
        if (st == ST_OK)
            st = find_capacity(x, err);
    }
    load_answer_find(x->a);
    if (st == ST_OK && s->open_loop && x->a->rate > 0)
        st = open_loops(x, x->a->rate, err);
    return st;
}

enum status load_run(struct load_answer *a, const struct load_settings *s,
                     const struct row *done, size_t n_done, load_row_fn *fn, void *arg,
                     struct err *err)
{
    struct load_run *x = calloc(1, sizeof *x);
    struct load_texts *texts = NULL;
    json_t *fields = NULL;
    enum status st;

    memset(a, 0, sizeof *a);
    a->best = -1;
    if (!x)
        return err_set(err, ST_NO_MEMORY, "no memory");
    *x = (struct load_run){.a = a,
                           .own = *s,
                           .s = &x->own,
                           .done = done,
                           .n_done = n_done,
                           .fn = fn,
                           .arg = arg};
    st = load_client_check(err);
    if (st == ST_OK && s->fields)
        st = json_read(&fields, "--body", s->fields, strlen(s->fields),
                       (struct json_limit){1 << 20, 10000}, JSON_UNIQUE, err);
    if (st == ST_OK && fields && !json_is_object(fields))
        st = err_set(err, ST_USAGE, "--body: %.60s is no JSON object", s->fields);
    if (st == ST_OK && s->file)
        st = load_texts_read(&texts, s->file, err);
    if (st == ST_OK && s->speed > 0)
        x->own.rate = s->speed * load_texts_rate(texts);
    if (st == ST_OK && x->own.rate > 0 &&
        !(x->own.rate >= LOAD_MIN_RATE && x->own.rate <= LOAD_MAX_RATE))
        st = err_set(err, ST_USAGE,
                     "--rate: %.3g requests a second are not 0.0001 to 10000",
                     x->own.rate);
    if (st == ST_OK && s->speed > 0 && !(x->own.rate > 0))
        st = err_set(err, ST_USAGE, "--rate x%g: %s has no times", s->speed,
                     s->file ? s->file : "without --prompts FILE there");
    x->prompts = (struct load_prompts){.prompt = s->prompt,
                                       .output = s->output,
                                       .n_prefix = s->n_prefix,
                                       .api = s->embeddings    ? LOAD_EMBEDDINGS
                                              : s->completions ? LOAD_COMPLETIONS
                                                               : LOAD_CHAT,
                                       .ignore_eos = s->ignore_eos,
                                       .fields = fields,
                                       .seed = s->seed,
                                       .salt = s->salt,
                                       .tokens_per_word = 1,
                                       .texts = texts};
    progress_begin(&x->progress, "load");
    if (st == ST_OK && !s->start)
        st = load_connect(x, err);
    if (st == ST_OK)
        st = run_all(x, err);
    progress_end(&x->progress);
    load_texts_free(texts);
    json_decref(fields);
    free(x->cells);
    free(x->model);
    free(x);
    return st;
}
