/* SPDX-License-Identifier: MIT
 *
 * engine_command.c - commands of other programs
 */
#include "harness/measure/engines/engine_command.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"

#define DECODE_REPS   8 /* samples, each the mean of some tokens */
#define DEPTH_REPS    4 /* the context is kept between these */
#define REFILL_REPS   2 /* it is filled before each of these */
#define PAGING_TOKENS 2
#define BUDGET_SHARE  0.7 /* of it, at the ceiling, which no program reaches */

static bool contains(const char *text, size_t len, const char *word)
{
    return memmem(text, len, word, strlen(word)) != NULL;
}

enum status engine_read_help(enum engine_depth *depth, const struct engine *e,
                             const char *text, size_t len, struct err *err)
{
    if (!contains(text, len, "--n-gen") || !contains(text, len, "--output"))
        return err_set(
            err, ST_INPUT,
            "%s: %s prints no help of a llama-bench or llama-server; a command "
            "of another program has {model} in it and ' =~ REGEX' after it",
            e->name, format_path(engine_word(e, 0)).text);
    *depth = contains(text, len, "--n-depth") ? ENGINE_DEPTH_D
             : contains(text, len, "-gp ")    ? ENGINE_DEPTH_GP
                                              : ENGINE_DEPTH_NONE;
    return ST_OK;
}

bool engine_read_server_help(struct engine_serving *s, const char *text, size_t len)
{
    const char *flash = memmem(text, len, "--flash-attn", 12);
    const char *end = flash ? memchr(flash, '\n', (size_t)(text + len - flash)) : NULL;

    if (!contains(text, len, "--port") || !contains(text, len, "--ctx-size"))
        return false;
    s->flash_has_value =
        flash && contains(flash, (size_t)((end ? end : text + len) - flash), "on|off");
    s->has_prompt_cache = contains(text, len, "--cache-ram");
    return true;
}

static int at_least(double v, int least)
{
    return v > least ? (int)v : least;
}

static struct engine_effort decode_effort(const struct point *p,
                                          enum engine_depth depth,
                                          double roof_tok_per_s, bool fits)
{
    const int most = !p->ctx                   ? DECODE_REPS
                     : depth == ENGINE_DEPTH_D ? DEPTH_REPS
                                               : REFILL_REPS;
    double n = p->n_tokens;
    int reps;

    if (roof_tok_per_s > 0)
        n = fmin(n, BUDGET_SHARE * p->budget_s * roof_tok_per_s);
    if (!fits)
        n = fmin(n, PAGING_TOKENS);
    reps = n < most ? at_least(n, 1) : most;
    return (struct engine_effort){at_least(n / reps, 1), reps};
}

/* A pass over a prompt takes no less time than a token. */
static struct engine_effort prefill_effort(const struct point *p, double roof_tok_per_s,
                                           bool fits)
{
    double n = p->n_tokens;

    if (roof_tok_per_s > 0)
        n = fmin(n, BUDGET_SHARE * p->budget_s * roof_tok_per_s);
    return (struct engine_effort){p->n_prompt, fits ? at_least(n, 1) : 1};
}

struct engine_effort engine_effort(const struct engine *e, const struct point *p,
                                   enum engine_depth depth, double roof_tok_per_s,
                                   bool fits)
{
    struct engine_effort effort = p->kind == POINT_PREFILL
                                      ? prefill_effort(p, roof_tok_per_s, fits)
                                      : decode_effort(p, depth, roof_tok_per_s, fits);

    if (engine_is_server(e) && p->kind != POINT_PREFILL) {
        const int n = effort.n_tokens * effort.n_reps;

        return (struct engine_effort){1,
                                      n < ENGINE_MAX_SAMPLES ? n : ENGINE_MAX_SAMPLES};
    }
    if (!engine_prints(e))
        return effort;
    return (struct engine_effort){effort.n_tokens * effort.n_reps, 1};
}

/* ---- words ----------------------------------------------------------------------- */

struct writing {
    struct engine_command *c;
    size_t n, used;
    bool is_full;
};

static void put(struct writing *w, const char *word)
{
    const size_t len = strlen(word) + 1;

    w->is_full |= w->n == ENGINE_MAX_ARGS || len > sizeof w->c->text - w->used;
    if (w->is_full)
        return;
    w->c->argv[w->n++] = memcpy(w->c->text + w->used, word, len);
    w->c->argv[w->n] = NULL;
    w->used += len;
}

static void put_option(struct writing *w, const char *option, const char *value)
{
    put(w, option);
    put(w, value);
}

static void put_count(struct writing *w, const char *option, int n)
{
    char text[16];

    snprintf(text, sizeof text, "%d", n);
    put_option(w, option, text);
}

/* A word of a template with its placeholders filled in. serving: NULL where it is no
 * server. */
static void put_filled(struct writing *w, const char *word, const struct point *p,
                       int n_tokens, const struct engine_serving *serving)
{
    char count[5][16], out[4096] = "";
    const struct {
        const char *name, *value;
    } known[] = {{"{model}", p->setup.model.path},
                 {"{threads}", count[0]},
                 {"{ctx}", count[1]},
                 {"{n}", count[2]},
                 {"{port}", count[3]},
                 {"{window}", count[4]}};
    const size_t n_known = serving ? 6 : 4;
    size_t len = 0;

    snprintf(count[0], sizeof count[0], "%d", p->setup.n_threads);
    snprintf(count[1], sizeof count[1], "%d", p->ctx);
    snprintf(count[2], sizeof count[2], "%d", n_tokens);
    snprintf(count[3], sizeof count[3], "%d", serving ? serving->port : 0);
    snprintf(count[4], sizeof count[4], "%d", serving ? serving->n_window : 0);
    while (*word && len + 1 < sizeof out) {
        size_t i = 0;

        while (i < n_known && strncmp(word, known[i].name, strlen(known[i].name)) != 0)
            i++;
        if (i < n_known) {
            snprintf(out + len, sizeof out - len, "%s", known[i].value);
            word += strlen(known[i].name);
        } else {
            snprintf(out + len, sizeof out - len, "%c", *word++);
        }
        len += strlen(out + len);
    }
    w->is_full |= *word != '\0';
    put(w, out);
}

static enum status put_depth(struct writing *w, const struct engine *e,
                             const struct point *p, enum engine_depth depth,
                             const struct engine_effort *effort, struct err *err)
{
    char pair[40];

    if (depth == ENGINE_DEPTH_NONE)
        return err_set(err, ST_INPUT,
                       "%s: this llama-bench has no option for a context of %d tokens; "
                       "newer ones have --n-depth",
                       e->name, p->ctx);
    if (depth == ENGINE_DEPTH_D) {
        put_count(w, "-n", effort->n_tokens);
        put_count(w, "-d", p->ctx);
        return ST_OK;
    }
    snprintf(pair, sizeof pair, "%d,%d", p->ctx, effort->n_tokens);
    put_option(w, "-n", "0");
    put_option(w, "-gp", pair);
    return ST_OK;
}

static enum status put_llama_bench(struct writing *w, const struct engine *e,
                                   const struct point *p, enum engine_depth depth,
                                   const struct engine_effort *effort, struct err *err)
{
    char kv[16];
    const bool is_prefill = p->kind == POINT_PREFILL;
    enum status st = ST_OK;

    if (strchr(p->setup.model.path, ','))
        return err_set(err, ST_INPUT,
                       "%s: llama-bench takes %s for several models, as it has a comma",
                       e->name, format_path(p->setup.model.path).text);
    for (int i = 0; i < e->n_words; i++)
        put(w, engine_word(e, i));
    put_option(w, "-m", p->setup.model.path);
    put_count(w, "-p", is_prefill ? p->n_prompt : 0);
    if (is_prefill)
        put_option(w, "-n", "0");
    else if (p->ctx)
        st = put_depth(w, e, p, depth, effort, err);
    else
        put_count(w, "-n", effort->n_tokens);
    put_count(w, "-r", effort->n_reps);
    put_count(w, "-t", p->setup.n_threads);
    put_count(w, "-ub", p->setup.n_batch);
    if (p->setup.kv_type != KERN_KV_f16) {
        setting_text(SETTING_kv_type, &p->setup.kv_type, kv, sizeof kv);
        put_option(w, "-ctk", kv);
        put_option(w, "-ctv", kv);
        put_option(w, "-fa", "1");
    }
    put_option(w, "-o", "json");
    return st;
}

static enum status put_template(struct writing *w, const struct engine *e,
                                const struct point *p,
                                const struct engine_effort *effort, struct err *err)
{
    bool has_ctx = false;

    for (int i = 0; i < e->n_words; i++) {
        has_ctx |= strstr(engine_word(e, i), "{ctx}") != NULL;
        put_filled(w, engine_word(e, i), p, effort->n_tokens, NULL);
    }
    if (p->kind != POINT_DECODE)
        return err_set(err, ST_INPUT, "%s: a template measures decoding only", e->name);
    if (p->ctx && !has_ctx)
        return err_set(err, ST_INPUT,
                       "%s: the command has no {ctx} for a context of %d tokens",
                       e->name, p->ctx);
    if (p->setup.kv_type != KERN_KV_f16)
        return err_set(err, ST_INPUT, "%s: a template knows no KV cache but f16",
                       e->name);
    return ST_OK;
}

enum status engine_make_command(struct engine_command *c, const struct engine *e,
                                const struct point *p, enum engine_depth depth,
                                const struct engine_effort *effort, struct err *err)
{
    struct writing w = {.c = c};
    enum status st;

    c->requested = (struct engine_requested){
        .n_prompt = p->kind == POINT_PREFILL ? p->n_prompt : 0,
        .n_gen = p->kind == POINT_PREFILL ? 0 : effort->n_tokens,
        .n_threads = p->setup.n_threads,
    };
    st = engine_prints(e) ? put_template(&w, e, p, effort, err)
                          : put_llama_bench(&w, e, p, depth, effort, err);
    if (st == ST_OK && w.is_full)
        st = err_set(err, ST_INPUT, "%s: its command has too many characters", e->name);
    return st;
}

/* ---- servers --------------------------------------------------------------------- */

/* One sequence, and no prompts kept in addition, which no figure would account for. */
static void put_llama_server(struct writing *w, const struct engine *e,
                             const struct point *p, const struct engine_serving *s)
{
    char kv[16];

    for (int i = 0; i < e->n_words; i++)
        put(w, engine_word(e, i));
    put_option(w, "-m", p->setup.model.path);
    put_option(w, "--host", "127.0.0.1");
    put_count(w, "--port", s->port);
    put_count(w, "-c", s->n_window);
    put_count(w, "-np", 1);
    put_count(w, "-t", p->setup.n_threads);
    put_count(w, "-ub", p->setup.n_batch);
    if (s->has_prompt_cache)
        put_count(w, "--cache-ram", 0);
    if (p->setup.kv_type == KERN_KV_f16)
        return;
    setting_text(SETTING_kv_type, &p->setup.kv_type, kv, sizeof kv);
    put_option(w, "-ctk", kv);
    put_option(w, "-ctv", kv);
    put(w, "-fa");
    if (s->flash_has_value)
        put(w, "on");
}

enum status engine_make_server(struct engine_command *c, const struct engine *e,
                               const struct point *p,
                               const struct engine_effort *effort,
                               const struct engine_serving *serving, struct err *err)
{
    struct writing w = {.c = c};

    c->requested = (struct engine_requested){.n_threads = p->setup.n_threads};
    if (e->kind == ENGINE_LLAMA_SERVER)
        put_llama_server(&w, e, p, serving);
    else if (p->setup.kv_type != KERN_KV_f16)
        return err_set(err, ST_INPUT, "%s: a template knows no KV cache but f16",
                       e->name);
    for (int i = 0; i < e->n_words && e->kind == ENGINE_SERVER; i++)
        put_filled(&w, engine_word(e, i), p, effort->n_tokens * effort->n_reps,
                   serving);
    return w.is_full ? err_set(err, ST_INPUT, "%s: its command has too many characters",
                               e->name)
                     : ST_OK;
}
