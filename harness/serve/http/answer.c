/* SPDX-License-Identifier: MIT
 *
 * answer.c - completions of a request, read as they come
 */
#include "harness/serve/http/answer_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "harness/base/format.h"

/* Pieces that are read of a completion before others have their turn. */
#define MAX_PIECES 64

/* ---- beginning ------------------------------------------------------------------- */

static enum status make_calls(const struct answer *a, struct grammar **g,
                              struct err *err)
{
    const struct api_request *r = &a->request;
    const struct api_tools *t = &r->tools;
    const bool follows = t->choice == GRAMMAR_AUTO && r->format != API_TEXT;
    const char *schema = !follows ? NULL : r->format == API_SCHEMA ? r->schema : "";
    const struct grammar_calls c = {
        .form = &a->calls->form,
        .tools = t->v,
        .n_tools = t->n_allowed,
        .choice = t->choice,
        .parallel = t->parallel,
        .think_begin = a->thinking ? a->calls->thinking.begin : NULL,
        .think_end = a->thinking ? a->calls->thinking.end : NULL,
        .thinks = a->thinks,
        .schema = schema,
        .n_schema = schema ? strlen(schema) : 0,
    };

    return grammar_from_calls(g, &c, err);
}

static bool make_grammar(const struct answer *a, struct grammar **g,
                         struct refusal *refusal)
{
    const struct api_request *r = &a->request;
    struct err err = ERR_INIT;
    enum status st = ST_OK;

    if (r->format == API_JSON)
        st = grammar_json(g, &err);
    if (r->format == API_SCHEMA)
        st = grammar_from_schema(g, r->schema, strlen(r->schema), &err);
    if (st)
        return refuse_err(refusal, &err, "response_format");
    if (!a->calls)
        return true;
    grammar_unref(*g); /* the schema is valid, and part of the next one */
    *g = NULL;
    return !make_calls(a, g, &err) || refuse_err(refusal, &err, "tools");
}

/* A schema of some KiB may become a grammar of 20 MiB, which a request keeps while it
waits. All of them together are a small part of the memory plan. */
static bool keep_schema(struct answer *a, const struct grammar *g,
                        struct refusal *refusal)
{
    const uint64_t bytes = g ? grammar_bytes(g) : 0;

    if (__atomic_add_fetch(a->model->schema_bytes, bytes, __ATOMIC_RELAXED) >
        a->model->memory->schemas) {
        __atomic_sub_fetch(a->model->schema_bytes, bytes, __ATOMIC_RELAXED);
        refusal->retry_after_s = 1;
        return refuse(refusal, 503, "overloaded", "response_format",
                      "the schemas of all requests take too much memory at this "
                      "moment; try again, or send a smaller one");
    }
    a->schema_bytes = bytes;
    return true;
}

/* Whole seconds, at least one. */
static int retry_seconds(double s)
{
    return s > 3600 ? 3600 : s > 1 ? (int)(s + 0.999) : 1;
}

bool answer_submit(struct answer *a, int i, struct completion_params *params,
                   struct refusal *refusal)
{
    struct err err = ERR_INIT;
    double retry_s = 0;
    bool full = false;

    params->client = a->client;
    params->wake = a->wake;
    params->arg = a->arg;
    if (!scheduler_submit(a->model->scheduler, params, &a->choices[i].c, &full,
                          &retry_s, &err)) {
        a->n_open++;
        return true;
    }
    if (!full)
        return refuse_err(refusal, &err, NULL);
    if (!(retry_s > 0))
        return refuse(refusal, 503, "stopping", NULL, "the server is stopping");
    refusal->retry_after_s = retry_seconds(retry_s);
    return refuse(refusal, 429, "queue_full", NULL, "%s", err.msg);
}

static bool submit_all(struct answer *a, struct grammar *grammar,
                       struct refusal *refusal)
{
    const struct api_request *r = &a->request;
    const uint64_t seed = r->has_seed ? r->sampling.seed : random_number();
    struct completion_params params = {
        .max_tokens = r->max_tokens,
        .sampling = r->sampling,
        .presence_penalty = r->presence_penalty,
        .frequency_penalty = r->frequency_penalty,
        .biases = r->biases,
        .n_biases = r->n_biases,
        .n_logprobs = r->n_logprobs,
        .stops = r->stops,
        .n_stops = r->n_stops,
        .ignore_end = r->ignore_end,
        .computes_all = !r->uses_prefixes,
        .thinking = a->thinking && a->calls ? &a->calls->thinking : a->thinking,
        .thinks = a->thinks,
        .max_thought = r->max_thought,
        .calls = a->calls ? &a->calls->form : NULL,
        .grammar = grammar,
    };

    for (int i = 0; i < a->n; i++) {
        const struct api_prompt *p = &r->prompts[i / r->n];

        a->choices[i].reply.logprobs.wanted = r->n_logprobs >= 0;
        a->choices[i].reply.calls.seed = random_number();
        params.prompt = p->ids;
        params.n_prompt = p->n_ids;
        params.begins_text = r->kind == API_CHAT || (p->text && !p->len);
        /* Choices differ, and each is repeatable with its seed. */
        params.sampling.seed = seed + (uint64_t)i;
        if (!answer_submit(a, i, &params, refusal))
            return false;
    }
    return true;
}

static void make_head(struct answer *a)
{
    struct api_request *r = &a->request;

    a->head = (struct reply_head){.kind = r->kind,
                                  .stream = r->stream,
                                  .usage_follows = r->stream && r->include_usage,
                                  .created = (long long)time(NULL),
                                  .model = a->model->name,
                                  .form = r->form,
                                  .echo = r->echo,
                                  .n_prompt =
                                      r->n_prompts ? (long long)r->prompts->n_ids : 0};
    r->echo = NULL;
    snprintf(a->head.id, sizeof a->head.id, "%s%c%016llx",
             r->form               ? r->form->prefix
             : r->kind == API_CHAT ? "chatcmpl"
                                   : "cmpl",
             r->form ? '_' : '-', (unsigned long long)random_number());
}

/* What no time to wait would change. */
static bool check_possible(const struct answer *a, struct refusal *refusal)
{
    const struct api_request *r = &a->request;
    const size_t n = (r->kind == API_COMPLETION ? r->n_prompts : 1) * (size_t)r->n;
    const int most = scheduler_max_running(a->model->scheduler);

    if (!answer_check_model(a->model, r, refusal))
        return false;
    if (n > (size_t)most)
        return refuse(refusal, 400, NULL, "n",
                      "%zu completions: this server has room for %d of a client", n,
                      most);
    return true;
}

static bool check_kind(const struct answer_model *m, enum api_kind kind,
                       struct refusal *refusal)
{
    if (m->embeds == (kind == API_EMBEDDING))
        return true;
    return refuse(refusal, 404, "unsupported", NULL,
                  m->embeds ? "%s makes vectors of texts: use /v1/embeddings"
                            : "%s generates text and makes no vectors: use "
                              "/v1/chat/completions or /v1/completions",
                  m->name);
}

static bool begin(struct answer *a, const struct answer_request *req,
                  struct refusal *refusal)
{
    struct api_request *r = &a->request;
    struct grammar *grammar = NULL;
    bool ok;

    if (answer_is_text(req->kind))
        return answer_make_text(a, req, refusal);
    if (!check_kind(a->model, req->kind, refusal) ||
        !api_request_read(r, req->kind, req->body, req->len, a->model->n_vocab,
                          refusal))
        return false;
    if (!check_possible(a, refusal))
        return false;
    if (r->kind == API_EMBEDDING) {
        make_head(a);
        ok = answer_begin_vectors(a, refusal);
        api_request_free(r);
        return ok;
    }
    if (!answer_encode(a, refusal) || !make_grammar(a, &grammar, refusal))
        return false;
    if (!keep_schema(a, grammar, refusal)) {
        grammar_unref(grammar);
        return false;
    }
    make_head(a);
    a->n_each = r->n;
    a->choices = calloc(r->n_prompts * (size_t)r->n, sizeof *a->choices);
    if (a->choices) {
        a->n = (int)r->n_prompts * r->n;
        ok = submit_all(a, grammar, refusal);
    } else {
        ok = refuse(refusal, 503, NULL, NULL, "no memory for %d choices", r->n);
    }
    grammar_unref(grammar);
    api_request_free(r); /* which may be far larger than what was made of it */
    return ok;
}

bool answer_begin(struct answer **a, const struct answer_model *model,
                  const struct answer_request *req, struct refusal *refusal)
{
    struct answer *new = calloc(1, sizeof *new);

    if (!new)
        return refuse(refusal, 503, NULL, NULL, "no memory for an answer");
    new->model = model;
    new->begin_ns = req->begin_ns;
    new->client = req->client;
    new->wake = req->wake;
    new->arg = req->arg;
    if (!begin(new, req, refusal)) {
        answer_close(new);
        return false;
    }
    *a = new;
    return true;
}

static void free_choice(struct choice *c)
{
    if (c->c)
        completion_close(c->c);
    c->c = NULL;
    free(c->vectors);
    c->vectors = NULL;
    reply_choice_free(&c->reply);
}

/* Nothing of it runs or is kept. */
static void free_choices(struct answer *a)
{
    for (int i = 0; i < a->n; i++)
        free_choice(&a->choices[i]);
    a->n_open = 0;
    textbuf_free(&a->text);
    if (a->whole_bytes) /* the server's thread */
        *a->model->whole_bytes -= a->whole_bytes;
    a->whole_bytes = 0;
}

void answer_close(struct answer *a)
{
    if (!a)
        return;
    free_choices(a);
    __atomic_sub_fetch(a->model->schema_bytes, a->schema_bytes, __ATOMIC_RELAXED);
    free(a->choices);
    textbuf_free(&a->events);
    reply_head_free(&a->head);
    api_request_free(&a->request);
    free(a);
}

/* ---- reading --------------------------------------------------------------------- */

/* When text came: to the request's first, and between a choice's own. */
static void note_text(struct answer *a, struct choice *c, struct metrics *m)
{
    const uint64_t now = clock_ns();

    if (!a->has_text)
        histogram_add(&m->first, (double)(now - a->begin_ns) * 1e-9);
    a->has_text = true;
    if (c->last_ns)
        histogram_add(&m->gap, (double)(now - c->last_ns) * 1e-9);
    c->last_ns = now;
}

bool answer_fits(const struct answer_model *m, uint64_t n_bytes,
                 struct refusal *refusal)
{
    return n_bytes <= m->memory->answer ||
           refuse(refusal, 400, "answer_too_large", NULL,
                  "the answer has become larger than %s; send a smaller request",
                  bytes_text(m->memory->answer).text);
}

/* An answer that does not stream is kept until its last choice has ended. */
static void check_whole(struct answer *a)
{
    const bool is_text = a->text.cap > 0; /* which was compared with its limit */
    const struct request_memory *memory = a->model->memory;
    const bool own = !is_text && a->whole_bytes > memory->answer;

    if (!own && *a->model->whole_bytes <= memory->answers)
        return;
    free_choices(a);
    if (own) {
        refuse(&a->failure, 400, "answer_too_large", NULL,
               "the answer has become larger than %s; request fewer choices, "
               "tokens or log-probabilities, or with stream true",
               bytes_text(memory->answer).text);
        return;
    }
    a->failure.retry_after_s = 1;
    refuse(&a->failure, 503, "overloaded", NULL,
           "the answers to all requests take too much memory at this moment; try "
           "again%s",
           a->n_texts || is_text ? "" : ", or with stream true");
}

static void count_whole(struct answer *a, uint64_t bytes)
{
    a->whole_bytes += bytes;
    *a->model->whole_bytes += bytes;
    check_whole(a);
}

static void put_event(struct answer *a, struct choice *c,
                      const struct completion_piece *piece)
{
    reply_event(&a->events, &a->head, (int)(c - a->choices), &c->reply, piece);
}

static void take_piece(struct answer *a, struct choice *c,
                       const struct completion_piece *piece, struct metrics *m)
{
    const size_t before = reply_choice_bytes(&c->reply);
    const bool has_text = piece->len || piece->n_thought || piece->n_call;

    if (has_text)
        note_text(a, c, m);
    if (c->reply.logprobs.wanted)
        reply_logprobs_add(&c->reply.logprobs, a->head.kind, piece, a->model->tok);
    if (!a->head.stream) {
        reply_choice_keep(&c->reply, piece);
        count_whole(a, reply_choice_bytes(&c->reply) - before);
    } else if (has_text || c->reply.logprobs.wanted) {
        put_event(a, c, piece);
    }
}

static void end_choice(struct answer *a, struct choice *c, enum completion_end end)
{
    c->reply.end = end;
    completion_read_usage(c->c, &c->usage);
    if (a->head.form && completion_stop(c->c))
        c->reply.stop = strdup(completion_stop(c->c));
    if (end == COMPLETION_FAILED)
        refuse(&a->failure, 500, "failed", NULL, "%s", completion_error(c->c));
    else if (end == COMPLETION_ABORTED)
        refuse(&a->failure, 503, "stopping", NULL,
               "the server has stopped before the answer's end");
    else if (a->head.stream)
        put_event(a, c, &(struct completion_piece){.text = ""});
    if (a->n_texts)
        c->vectors = completion_take_vectors(c->c);
    completion_close(c->c);
    c->c = NULL;
    a->n_open--;
    if (c->vectors)
        count_whole(a, answer_vector_bytes(a));
}

static void read_choice(struct answer *a, struct choice *c, struct metrics *m)
{
    struct completion_piece piece;
    enum completion_end end;

    for (int n = 0; completion_read(c->c, &piece); n++) {
        take_piece(a, c, &piece, m);
        if (!c->c)
            return;
        if (n == MAX_PIECES) {
            a->wake(a->arg);
            return;
        }
    }
    end = completion_end(c->c);
    if (end != COMPLETION_RUNS)
        end_choice(a, c, end);
}

/* A prompt counts once, however many choices it has. */
static struct reply_usage sum_usage(const struct answer *a)
{
    struct reply_usage u = {0};

    for (int i = 0; i < a->n; i++) {
        const struct completion_usage *c = &a->choices[i].usage;

        if (i % a->n_each == 0) {
            u.n_prompt += c->n_prompt;
            u.n_cached += c->n_cached;
        }
        u.n_generated += c->n_generated;
        u.n_thought += c->n_thought;
        u.n_drafted += c->n_drafted;
        u.n_accepted += c->n_accepted;
    }
    if (a->n == 1) {
        u.prefill_s = a->choices->usage.prefill_s;
        u.decode_s = a->choices->usage.decode_s;
    }
    return u;
}

static void end_stream(struct answer *a)
{
    const struct reply_usage usage = sum_usage(a);

    if (a->failure.http)
        reply_fail_stream(&a->events, &a->head, &a->failure);
    else
        reply_end_stream(&a->events, &a->head, &a->choices->reply, &usage);
}

void answer_advance(struct answer *a, struct metrics *m)
{
    if (a->text.cap && !a->whole_bytes)
        count_whole(a, a->text.cap);
    if (!a->n_open)
        return;
    for (int i = 0; i < a->n; i++)
        if (a->choices[i].c)
            read_choice(a, &a->choices[i], m);
    if (a->n_open)
        return;
    histogram_add(&m->whole, (double)(clock_ns() - a->begin_ns) * 1e-9);
    if (a->head.stream)
        end_stream(a);
}

bool answer_streams(const struct answer *a)
{
    return a->head.stream;
}

bool answer_ended(const struct answer *a)
{
    return !a->n_open;
}

struct textbuf *answer_events(struct answer *a)
{
    return &a->events;
}

uint64_t answer_stream_bytes(const struct answer *a)
{
    return a->head.stream
               ? a->events.cap + a->head.blocks.text.cap + a->head.blocks.done.cap
               : 0;
}

static bool put_choices(struct answer *a, struct textbuf *out,
                        const struct reply_usage *usage, struct refusal *refusal)
{
    reply_begin(out, &a->head);
    for (int i = 0; i < a->n; i++) {
        reply_choice(out, &a->head, i, &a->choices[i].reply, usage);
        free_choice(&a->choices[i]);
    }
    reply_end(out, &a->head, usage);
    return !out->failed || refuse(refusal, 503, NULL, NULL, "no memory for the answer");
}

bool answer_whole(struct answer *a, struct textbuf *out, struct refusal *refusal)
{
    const struct reply_usage usage = sum_usage(a);
    bool ok;

    if (a->failure.http) {
        *refusal = a->failure;
        return false;
    }
    if (a->text.cap) {
        *out = a->text;
        a->text = (struct textbuf){.text = NULL};
        ok = true;
    } else {
        ok = a->n_texts ? answer_put_vectors(a, out, &usage, refusal)
                        : put_choices(a, out, &usage, refusal);
    }
    free_choices(a); /* *out is counted from here on */
    return ok;
}

bool answer_read_facts(const struct answer *a, struct answer_facts *out)
{
    const struct reply_usage u = sum_usage(a);

    if (!a->n)
        return false;
    *out =
        (struct answer_facts){.n_prompt = u.n_prompt,
                              .n_cached = u.n_cached,
                              .n_generated = u.n_generated,
                              .reason = a->failure.http ? "failed"
                                        : a->n_open     ? "left"
                                                    : reply_reason(&a->choices->reply)};
    for (int i = 0; i < a->n; i++)
        if (a->choices[i].usage.queue_s > out->queue_s)
            out->queue_s = a->choices[i].usage.queue_s;
    return true;
}
