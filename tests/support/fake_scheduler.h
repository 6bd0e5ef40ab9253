/* SPDX-License-Identifier: MIT
 *
 * fake_scheduler.h - a scheduler whose tokens come as the test wants them, and grammars
 * that take any text: to test what serves them without a model
 *
 * Include it once in a test: it defines what scheduler.h and grammar.h declare, so that
 * the linker takes neither from the libraries. Token i of a completion is "w<i> ", or
 * fake.fill times "x"; it has log-probability -i, and alternatives i + 1, i + 2...
 */
#ifndef SLM_TESTS_FAKE_SCHEDULER_H
#define SLM_TESTS_FAKE_SCHEDULER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/serve/scheduler/scheduler.h"

static struct {
    atomic_int pace_us;  /* between tokens of all */
    atomic_int most;     /* completions at once; more are refused */
    atomic_int fill;     /* bytes of a token's text; 0: "w<i> " */
    atomic_int letter;   /* which; 0: "x" */
    atomic_int fails_at; /* this token ends its completion by an error; 0: none */
    atomic_int n_alive;  /* completions that are not closed */
    atomic_int n_submitted;
    atomic_bool holds;             /* no tokens for the time being */
    atomic_int may_make;           /* tokens of each, for the time being; 0: any */
    atomic_int may_submit;         /* who comes after so many waits; */
    atomic_int n_requested;        /* who has come, */
    uint64_t askers[64];           /* and of which client */
    struct completion_params last; /* of the last one that was submitted */
    int32_t last_prompt[64];
} fake;

struct completion {
    struct completion *next;
    pthread_mutex_t mutex;
    void (*wake)(void *arg);
    void *arg;
    int n_prompt, most, n_logprobs;
    int n_made, n_read; /* tokens */
    enum completion_end end;
    char *text;
    size_t n_chars; /* of the text that was read */
};

struct scheduler {
    pthread_mutex_t mutex;
    struct completion *all;
    bool stops, finishes;
};

static struct scheduler fake_one = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static inline void fake_reset(void)
{
    fake_one.stops = fake_one.finishes = false;
    fake.pace_us = 200;
    fake.most = 16;
    fake.fill = fake.fails_at = 0;
    fake.n_requested = 0;
    fake.holds = false;
    fake.may_make = 0;
    fake.may_submit = 1000000;
}

static bool fake_step(struct completion *c)
{
    bool news = false;

    pthread_mutex_lock(&c->mutex);
    if (c->end == COMPLETION_RUNS && (!fake.may_make || c->n_made < fake.may_make)) {
        news = true;
        c->n_made++;
        if (fake.fails_at && c->n_made == fake.fails_at)
            c->end = COMPLETION_FAILED;
        else if (c->n_made >= c->most)
            c->end = COMPLETION_LENGTH;
    }
    pthread_mutex_unlock(&c->mutex);
    if (news)
        c->wake(c->arg);
    return news;
}

/* Tokens that were made of a completion that runs: of the first that was submitted. */
static inline int fake_n_made(void)
{
    int n = 0;

    pthread_mutex_lock(&fake_one.mutex);
    for (struct completion *c = fake_one.all; c; c = c->next) {
        pthread_mutex_lock(&c->mutex);
        n = c->n_made;
        pthread_mutex_unlock(&c->mutex);
    }
    pthread_mutex_unlock(&fake_one.mutex);
    return n;
}

/* Whether all that completions may make was made and read. */
static inline bool fake_is_read(void)
{
    bool is = true;

    pthread_mutex_lock(&fake_one.mutex);
    for (struct completion *c = fake_one.all; c; c = c->next) {
        pthread_mutex_lock(&c->mutex);
        is &= c->end != COMPLETION_RUNS || c->n_read >= fake.may_make;
        pthread_mutex_unlock(&c->mutex);
    }
    pthread_mutex_unlock(&fake_one.mutex);
    return is;
}

static void fake_abort(struct completion *c)
{
    bool news;

    pthread_mutex_lock(&c->mutex);
    news = c->end == COMPLETION_RUNS;
    if (news)
        c->end = COMPLETION_ABORTED;
    pthread_mutex_unlock(&c->mutex);
    if (news)
        c->wake(c->arg);
}

enum status scheduler_run(struct scheduler *s, struct err *err)
{
    (void)err;
    for (bool over = false; !over;) {
        bool busy = false;

        pthread_mutex_lock(&s->mutex);
        for (struct completion *c = s->all; c; c = c->next) {
            if (s->stops && !s->finishes)
                fake_abort(c);
            else if (!fake.holds)
                busy |= fake_step(c);
        }
        over = s->stops && !busy;
        pthread_mutex_unlock(&s->mutex);
        usleep((useconds_t)fake.pace_us);
    }
    return ST_OK;
}

void scheduler_stop(struct scheduler *s, bool finish)
{
    pthread_mutex_lock(&s->mutex);
    s->stops = true;
    s->finishes = finish;
    pthread_mutex_unlock(&s->mutex);
}

enum status scheduler_submit(struct scheduler *s,
                             const struct completion_params *params,
                             struct completion **c, bool *full, double *retry_after_s,
                             struct err *err)
{
    struct completion *new;

    if (fake.n_requested < 64)
        fake.askers[fake.n_requested] = params->client;
    fake.n_requested++;
    while (fake.n_requested > fake.may_submit)
        usleep(1000);
    pthread_mutex_lock(&s->mutex);
    *full = s->stops || fake.n_alive >= fake.most;
    *retry_after_s = s->stops ? 0 : 2.5;
    pthread_mutex_unlock(&s->mutex);
    if (*full)
        return err_set(err, ST_UNSUPPORTED, "the queue is full");
    new = calloc(1, sizeof *new);
    pthread_mutex_init(&new->mutex, NULL);
    new->wake = params->wake;
    new->arg = params->arg;
    new->n_prompt = (int)params->n_prompt;
    new->most = params->max_tokens ? params->max_tokens : 100;
    new->n_logprobs = params->n_logprobs;
    new->text = malloc(64 + (size_t)fake.fill);
    fake.n_alive++;
    fake.n_submitted++;
    pthread_mutex_lock(&s->mutex);
    fake.last = *params;
    for (size_t i = 0; i < params->n_prompt && i < 64; i++)
        fake.last_prompt[i] = params->prompt[i];
    new->next = s->all;
    s->all = new;
    pthread_mutex_unlock(&s->mutex);
    *c = new;
    return ST_OK;
}

int scheduler_max_running(const struct scheduler *s)
{
    (void)s;
    return fake.most;
}

void scheduler_read_stats(struct scheduler *s, struct scheduler_stats *out)
{
    *out = (struct scheduler_stats){.n_requests = (uint64_t)fake.n_submitted,
                                    .n_sequences = fake.most};
    pthread_mutex_lock(&s->mutex);
    for (struct completion *c = s->all; c; c = c->next) {
        pthread_mutex_lock(&c->mutex);
        out->n_running += c->end == COMPLETION_RUNS;
        pthread_mutex_unlock(&c->mutex);
    }
    pthread_mutex_unlock(&s->mutex);
}

bool completion_read(struct completion *c, struct completion_piece *out)
{
    bool is;

    pthread_mutex_lock(&c->mutex);
    is = c->n_read < c->n_made - (c->end == COMPLETION_FAILED);
    if (is) {
        *out =
            (struct completion_piece){.text = c->text,
                                      .token = c->n_read,
                                      .logprob = -(float)c->n_read,
                                      .n_top = c->n_logprobs > 0 ? c->n_logprobs : 0};
        for (int i = 0; i < out->n_top; i++)
            out->top[i] =
                (struct completion_top){c->n_read + i, -(float)(c->n_read + i)};
        if (fake.fill) {
            memset(c->text, fake.letter ? fake.letter : 'x', (size_t)fake.fill);
            c->text[fake.fill] = '\0';
        } else {
            snprintf(c->text, 64, "w%d ", c->n_read);
        }
        out->len = strlen(c->text);
        out->begins = c->n_chars;
        c->n_chars += out->len;
        c->n_read++;
    }
    pthread_mutex_unlock(&c->mutex);
    return is;
}

enum completion_end completion_end(struct completion *c)
{
    enum completion_end end;

    pthread_mutex_lock(&c->mutex);
    end = c->n_read < c->n_made - (c->end == COMPLETION_FAILED) ? COMPLETION_RUNS
                                                                : c->end;
    pthread_mutex_unlock(&c->mutex);
    return end;
}

/* It makes no vectors. */
float *completion_take_vectors(struct completion *c)
{
    (void)c;
    return NULL;
}

const char *completion_stop(const struct completion *c)
{
    (void)c;
    return NULL;
}

const char *completion_error(struct completion *c)
{
    (void)c;
    return "the engine has failed, as it should";
}

void completion_read_usage(struct completion *c, struct completion_usage *out)
{
    pthread_mutex_lock(&c->mutex);
    *out = (struct completion_usage){
        .n_prompt = c->n_prompt, .n_cached = c->n_prompt / 2, .n_generated = c->n_made};
    pthread_mutex_unlock(&c->mutex);
}

void completion_close(struct completion *c)
{
    pthread_mutex_lock(&fake_one.mutex);
    for (struct completion **at = &fake_one.all; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    pthread_mutex_unlock(&fake_one.mutex);
    pthread_mutex_destroy(&c->mutex);
    free(c->text);
    free(c);
    fake.n_alive--;
}

/* ---- grammars -------------------------------------------------------------------- */

struct grammar {
    int ignored;
};

static struct grammar fake_grammar;

enum status grammar_json(struct grammar **g, struct err *err)
{
    (void)err;
    *g = &fake_grammar;
    return ST_OK;
}

enum status grammar_from_schema(struct grammar **g, const char *text, size_t len,
                                struct err *err)
{
    if (len && strstr(text, "unsupported"))
        return err_set(err, ST_INPUT, "the schema has an unsupported keyword");
    *g = &fake_grammar;
    return ST_OK;
}

enum status grammar_from_calls(struct grammar **g, const struct grammar_calls *c,
                               struct err *err)
{
    (void)c;
    (void)err;
    *g = &fake_grammar;
    return ST_OK;
}

void grammar_unref(struct grammar *g)
{
    (void)g;
}

/* Three fit into what all may take, four do not. */
size_t grammar_bytes(const struct grammar *g)
{
    (void)g;
    return (size_t)40 << 20;
}

#endif
