/* SPDX-License-Identifier: MIT
 *
 * prompts.c - distributions, words, bodies of requests
 */
#include "harness/serve/load/prompts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "harness/base/parse.h"
#include "harness/serve/load/texts.h"

/* 64 of them: six bits of a number. */
static const char *const words[64] = {
    "the",  "of",   "and",  "to",   "in",   "is",   "for", "on",   "that", "by",
    "this", "with", "you",  "it",   "not",  "or",   "be",  "are",  "from", "at",
    "as",   "your", "all",  "have", "new",  "more", "an",  "was",  "we",   "will",
    "home", "can",  "us",   "if",   "page", "my",   "has", "free", "but",  "our",
    "one",  "do",   "no",   "time", "they", "site", "he",  "up",   "may",  "what",
    "news", "out",  "use",  "any",  "see",  "only", "so",  "his",  "when", "here",
    "who",  "web",  "also", "now",
};

#define MAX_SECONDS 86400.0
#define GOLDEN      UINT64_C(0x9e3779b97f4a7c15)

#define WORD_BYTES 3.984 /* of one of them, on average, and the blank behind it */

/* ---- distributions --------------------------------------------------------------- */

/* False: no distribution of numbers from least to most. */
static bool parse(struct load_dist *d, const char *text, double least, double most)
{
    char *end;
    double a = 0, b = 0;
    enum load_dist_kind kind = LOAD_FIXED;

    if (!strncmp(text, "lognormal:", 10)) {
        kind = LOAD_LOGNORMAL;
        a = strtod(text + 10, &end);
        b = *end == ':' ? strtod(end + 1, &end) : -1;
    } else {
        a = b = strtod(text, &end);
        if (end > text && *end == '-') {
            kind = LOAD_UNIFORM;
            b = strtod(end + 1, &end);
        }
    }
    if (end == text || *end || !(a >= least && a <= most) ||
        (kind == LOAD_LOGNORMAL && !(b >= 0 && b <= 4)) ||
        (kind != LOAD_LOGNORMAL && !(b >= a && b <= most)))
        return false;
    *d = (struct load_dist){kind, a, b};
    return true;
}

enum status load_dist_parse(struct load_dist *d, const char *text, const char *what,
                            struct err *err)
{
    if (parse(d, text, 1, LOAD_MAX_TOKENS))
        return ST_OK;
    return err_set(err, ST_USAGE,
                   "%s: '%s' is no number from 1 on: 512, 100-900 (any of them), or "
                   "lognormal:MEDIAN:SIGMA, up to %d",
                   what, text, LOAD_MAX_TOKENS);
}

enum status load_dist_parse_s(struct load_dist *d, const char *text, const char *what,
                              struct err *err)
{
    if (parse(d, text, 0, MAX_SECONDS))
        return ST_OK;
    return err_set(err, ST_USAGE,
                   "%s: '%s' is no number of seconds: 10, 5-20 (any of them), or "
                   "lognormal:MEDIAN:SIGMA, up to %g",
                   what, text, MAX_SECONDS);
}

const char *load_dist_text(const struct load_dist *d, char *buf, size_t cap)
{
    if (d->kind == LOAD_LOGNORMAL)
        snprintf(buf, cap, "lognormal:%g:%g", d->a, d->b);
    else if (d->kind == LOAD_UNIFORM)
        snprintf(buf, cap, "%g-%g", d->a, d->b);
    else
        snprintf(buf, cap, "%g", d->a);
    return buf;
}

/* In (0, 1). */
static double uniform(uint64_t *state)
{
    return ((double)(random_bits(state) >> 11) + 0.5) * 0x1p-53;
}

static double lognormal(const struct load_dist *d, uint64_t *state)
{
    return d->a *
           exp(d->b * sqrt(-2 * log(uniform(state))) * cos(2 * M_PI * uniform(state)));
}

double load_dist_mean(const struct load_dist *d)
{
    return d->kind == LOAD_LOGNORMAL ? d->a * exp(d->b * d->b / 2) : (d->a + d->b) / 2;
}

int load_dist_draw(const struct load_dist *d, uint64_t *state)
{
    double v = d->a;

    if (d->kind == LOAD_UNIFORM)
        v = floor(d->a + uniform(state) * (d->b - d->a + 1));
    else if (d->kind == LOAD_LOGNORMAL)
        v = round(lognormal(d, state));
    return v < 1 ? 1 : v > LOAD_MAX_TOKENS ? LOAD_MAX_TOKENS : (int)v;
}

double load_dist_draw_s(const struct load_dist *d, uint64_t *state)
{
    const double v = d->kind == LOAD_LOGNORMAL ? lognormal(d, state)
                     : d->kind == LOAD_UNIFORM ? d->a + uniform(state) * (d->b - d->a)
                                               : d->a;

    return fmin(v, MAX_SECONDS);
}

/* ---- texts ----------------------------------------------------------------------- */

static void add_words(char **at, int n, uint64_t *state)
{
    for (int i = 0; i < n; i++)
        *at += sprintf(*at, "%s ", words[random_bits(state) >> 58]);
}

static void add_unique(char **at, uint64_t number)
{
    for (int i = 0; i < LOAD_UNIQUE_WORDS; i++)
        *at += sprintf(*at, "%s ", words[number >> (6 * i) & 63]);
}

static int words_of(const struct load_prompts *p, double n_tokens)
{
    const double n = round(n_tokens / p->tokens_per_word);

    return n < 0 ? 0 : (int)n;
}

/* Tokens of a text that no server has counted: as many per byte as our words have. It
 * is an estimate, off by a tenth for English and by more for other alphabets. */
static int tokens_of_bytes(const struct load_prompts *p, size_t n_bytes)
{
    const double n = round((double)n_bytes / WORD_BYTES * p->tokens_per_word);

    return n < 1 ? 1 : n > LOAD_MAX_TOKENS ? LOAD_MAX_TOKENS : (int)n;
}

/* The prompt of a request whose numbers come from state; text: from a file, or NULL. */
static char *make_prompt(const struct load_prompts *p, const char *text, int n_tokens,
                         uint64_t *state)
{
    const int n_prefix = p->n_prefix ? words_of(p, p->n_prefix) : 0;
    int n = words_of(p, n_tokens - p->n_overhead) - n_prefix - LOAD_UNIQUE_WORDS;
    uint64_t shared = p->seed ^ p->salt;
    char *prompt, *at;

    n = text || n < 0 ? 0 : n;
    prompt = malloc(8 * ((size_t)n_prefix + (size_t)n + LOAD_UNIQUE_WORDS + 1) +
                    (text ? strlen(text) : 0));
    if (!prompt)
        return NULL;
    at = prompt;
    add_words(&at, n_prefix, &shared);
    add_unique(&at, random_bits(state) ^ p->salt);
    add_words(&at, n, state);
    if (text)
        strcpy(at, text);
    else
        at[-1] = '\0';
    return prompt;
}

/* A prompt of n_tokens whose blocks, but for the last that may be cut, are those of any
 * other prompt of this level with the same identities. */
static char *make_of_blocks(const struct load_prompts *p, const struct load_text *text,
                            size_t lap)
{
    const int n = (int)fmax(1, words_of(p, text->n_prompt - p->n_overhead));
    const int n_each = (int)fmax(1, words_of(p, TRACE_BLOCK));
    char *prompt = malloc(8 * (size_t)n), *at = prompt;

    for (int i = 0; prompt && i < n; i += n_each) {
        const size_t k = (size_t)(i / n_each);
        const uint64_t block = text->block[k < text->n_blocks ? k : text->n_blocks - 1];
        uint64_t state = p->seed ^ p->salt ^ (p->n_skip + lap + 1) * GOLDEN;

        state = random_bits(&state) ^ block * UINT64_C(0xd1342543de82ef95);
        add_words(&at, n - i < n_each ? n - i : n_each, &state);
    }
    if (prompt)
        at[-1] = '\0';
    return prompt;
}

char *load_prompts_first(const struct load_prompts *p, size_t index,
                         struct load_record *r)
{
    uint64_t state = p->seed ^ (p->n_before + index + 1) * UINT64_C(0xd1342543de82ef95);
    const int n_prompt = load_dist_draw(&p->prompt, &state);
    const size_t line = p->n_before - p->n_skip + index;
    const struct load_text text =
        p->texts ? load_text_at(p->texts, line) : (struct load_text){.prompt = NULL};

    r->n_requested = load_dist_draw(&p->output, &state);
    if (text.n_output)
        r->n_requested = text.n_output;
    else if (text.answer_bytes)
        r->n_requested = tokens_of_bytes(p, text.answer_bytes);
    if (text.n_blocks) {
        r->n_known = (int64_t)fmin((double)text.n_known * TRACE_BLOCK, text.n_prompt);
        return make_of_blocks(p, &text, line / load_texts_count(p->texts));
    }
    if (p->n_prefix)
        r->n_known = p->n_prefix + p->n_known;
    return make_prompt(p, text.prompt, text.n_prompt ? text.n_prompt : n_prompt,
                       &state);
}

char *load_prompts_words(const struct load_prompts *p, int n_tokens, uint64_t *state)
{
    const int n = (int)fmax(1, words_of(p, n_tokens));
    char *text = malloc(8 * (size_t)n), *at = text;

    if (!text)
        return NULL;
    add_words(&at, n, state);
    at[-1] = '\0';
    return text;
}

json_t *load_prompts_request(const struct load_prompts *p, json_t *prompt,
                             int n_requested)
{
    static const char *const keys[] = {"messages", "prompt", "input"};
    json_t *o = json_pack("{s:s?, s:o}", "model", p->model, keys[p->api], prompt);

    if (p->api == LOAD_EMBEDDINGS && o &&
        (!p->fields || !json_object_update(o, p->fields)))
        return o;
    if (!o || json_object_set_new(o, "max_tokens", json_integer(n_requested)) ||
        json_object_set_new(o, "stream", json_true()) ||
        json_object_set_new(o, "stream_options",
                            json_pack("{s:b}", "include_usage", 1)) ||
        json_object_set_new(o, "temperature", json_real(1)) ||
        (p->ignore_eos && json_object_set_new(o, "ignore_eos", json_true())) ||
        (p->fields && json_object_update(o, p->fields))) {
        json_decref(o);
        return NULL;
    }
    return o;
}

enum status load_prompts_body(void *prompts, size_t user, struct load_record *r,
                              char **body, struct err *err)
{
    const struct load_prompts *p = prompts;
    char *prompt = load_prompts_first(p, r->index, r);
    json_t *text = !prompt ? NULL
                   : p->api == LOAD_CHAT
                       ? json_pack("[{s:s, s:s}]", "role", "user", "content", prompt)
                       : json_string(prompt);
    json_t *o = load_prompts_request(p, text, r->n_requested);

    (void)user;
    if (p->api == LOAD_EMBEDDINGS)
        r->n_requested = LOAD_MAX_TOKENS; /* its tokens are those of the prompt */
    *body = o ? json_dumps(o, JSON_COMPACT) : NULL;
    free(prompt);
    json_decref(o);
    return *body ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for a prompt");
}

bool load_prompts_calibrate(struct load_prompts *p, int words_a, double tokens_a,
                            int words_b, double tokens_b)
{
    double slope = (tokens_b - tokens_a) / (words_b - words_a);
    double rest = tokens_a - slope * words_a;

    if (!(slope >= 0.2 && slope <= 10))
        return false;
    if (rest < 0) { /* a server takes no token away: the line through zero */
        slope = (tokens_a + tokens_b) / (words_a + words_b);
        rest = 0;
    }
    p->tokens_per_word = slope;
    p->n_overhead = rest;
    return true;
}

double load_prompts_cold(const struct load_prompts *p)
{
    const double known = fmax(p->n_overhead, (double)p->n_known);

    return known +
           (p->n_prefix ? p->n_prefix / 2.0 : LOAD_UNIQUE_WORDS * p->tokens_per_word);
}
