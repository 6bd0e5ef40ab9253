/* SPDX-License-Identifier: MIT
 *
 * answer.c - completions of a request, read as they come
 */
#include "harness/serve/http/answer_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "engine/base/clock.h"

/* Pieces that are read of a completion before others have their turn. */
#define MAX_PIECES 64

static uint64_t random_number(void)
{
    uint64_t v = 0;

    if (getrandom(&v, sizeof v, 0) != sizeof v)
        v = clock_ns();
    return v;
}

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
        .think_begin = a->thinking ? a->calls->think_begin : NULL,
        .think_end = a->thinking ? a->calls->think_end : NULL,
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
        ANSWERS_MAX_SCHEMA_BYTES) {
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

bool answer_refuse_submit(struct refusal *refusal, const struct err *err, bool full,
                          double retry_s)
{
    if (!full)
        return refuse_err(refusal, err, NULL);
    if (!(retry_s > 0))
        return refuse(refusal, 503, "stopping", NULL, "the server is stopping");
    refusal->retry_after_s = retry_seconds(retry_s);
    return refuse(refusal, 429, "queue_full", NULL, "%s", err->msg);
}

static bool submit_all(struct answer *a, const struct answer_request *req,
                       struct grammar *grammar, struct refusal *refusal)
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
        .thinking = a->thinking,
        .thinks = a->thinks,
        .max_thought = r->max_thought,
        .calls = a->calls ? &a->calls->form : NULL,
        .grammar = grammar,
        .client = req->client,
        .wake = req->wake,
        .arg = req->arg,
    };

    for (int i = 0; i < a->n; i++) {
        const struct api_prompt *p = &r->prompts[i / r->n];
        struct err err = ERR_INIT;
        double retry_s = 0;
        bool full = false;

        a->choices[i].prompt = i / r->n;
        a->choices[i].logprobs.wanted = r->n_logprobs >= 0;
        a->choices[i].calls.seed = random_number();
        params.prompt = p->ids;
        params.n_prompt = p->n_ids;
        params.begins_text = r->kind == API_CHAT || (p->text && !p->len);
        /* Choices differ, and each is repeatable with its seed. */
        params.sampling.seed = seed + (uint64_t)i;
        if (scheduler_submit(a->model->scheduler, &params, &a->choices[i].c, &full,
                             &retry_s, &err))
            return answer_refuse_submit(refusal, &err, full, retry_s);
        a->n_open++;
    }
    return true;
}

static const char *id_prefix(const struct api_request *r)
{
    return r->form == &reply_messages    ? "msg"
           : r->form == &reply_responses ? "resp"
           : r->kind == API_CHAT         ? "chatcmpl"
                                         : "cmpl";
}

static void make_head(struct answer *a)
{
    struct api_request *r = &a->request;

    a->echo = r->echo;
    r->echo = NULL;

    a->head = (struct reply_head){.kind = r->kind,
                                  .stream = r->stream,
                                  .usage_follows = r->stream && r->include_usage,
                                  .created = (long long)time(NULL),
                                  .model = a->model->name,
                                  .form = r->form,
                                  .echo = a->echo,
                                  .n_prompt =
                                      r->n_prompts ? (long long)r->prompts->n_ids : 0};
    snprintf(a->head.id, sizeof a->head.id, "%s%c%016llx", id_prefix(r),
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

    if (!check_kind(a->model, req->kind, refusal) ||
        !api_request_read(r, req->kind, req->body, req->len, a->model->n_vocab,
                          refusal))
        return false;
    if (!check_possible(a, refusal))
        return false;
    if (r->kind == API_EMBEDDING) {
        make_head(a);
        ok = answer_begin_vectors(a, req, refusal);
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
        ok = submit_all(a, req, grammar, refusal);
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
    free(c->stop);
    c->stop = NULL;
    textbuf_free(&c->text);
    textbuf_free(&c->thought);
    textbuf_free(&c->calls.list);
    reply_logprobs_free(&c->logprobs);
}

/* Nothing of it runs or is kept. */
static void free_choices(struct answer *a)
{
    for (int i = 0; i < a->n; i++)
        free_choice(&a->choices[i]);
    a->n_open = 0;
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
    reply_blocks_free(&a->blocks);
    free(a->echo);
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

/* Thoughts come before the answer, also of one token. */
static void put_event(struct answer *a, struct choice *c, const struct reply_part *part)
{
    if (a->head.form) {
        a->head.form->part(&a->events, &a->head, &a->blocks, part, &c->calls);
        return;
    }
    reply_event(&a->events, &a->head, (int)(c - a->choices), !c->has_spoken, part,
                &c->calls, &c->logprobs, c->end);
    c->has_spoken = true;
}

bool answer_fits(uint64_t n_bytes, struct refusal *refusal)
{
    return n_bytes <= ANSWER_MAX_BYTES ||
           refuse(refusal, 400, "answer_too_large", NULL,
                  "the answer has become larger than %d MiB; send a smaller request",
                  (int)(ANSWER_MAX_BYTES >> 20));
}

/* An answer that does not stream is kept until its last choice has ended. */
static void check_whole(struct answer *a)
{
    const bool own = a->whole_bytes > ANSWER_MAX_BYTES;

    if (!own && *a->model->whole_bytes <= ANSWERS_MAX_BYTES)
        return;
    free_choices(a);
    if (own) {
        refuse(&a->failure, 400, "answer_too_large", NULL,
               "the answer has become larger than %d MiB; request fewer choices, "
               "tokens or log-probabilities, or with stream true",
               (int)(ANSWER_MAX_BYTES >> 20));
        return;
    }
    a->failure.retry_after_s = 1;
    refuse(&a->failure, 503, "overloaded", NULL,
           "the answers to all requests take too much memory at this moment; try "
           "again%s",
           a->n_texts ? "" : ", or with stream true");
}

static size_t kept_bytes(const struct choice *c)
{
    return c->text.len + c->thought.len + c->calls.list.len +
           reply_logprobs_bytes(&c->logprobs);
}

static void take_piece(struct answer *a, struct choice *c,
                       const struct completion_piece *piece, struct metrics *m)
{
    const size_t before = kept_bytes(c);

    if (piece->len || piece->n_thought || piece->n_call)
        note_text(a, c, m);
    if (c->logprobs.wanted)
        reply_logprobs_add(&c->logprobs, a->head.kind, piece, a->model->tok);
    if (!a->head.stream) {
        textbuf_put(&c->text, piece->text, piece->len);
        textbuf_put(&c->thought, piece->thought, piece->n_thought);
        if (a->head.form)
            reply_calls_keep(&c->calls, piece->call, piece->n_call);
        else
            reply_calls_add(&c->calls, piece->call, piece->n_call);
        const size_t more = kept_bytes(c) - before;

        a->whole_bytes += more;
        *a->model->whole_bytes += more;
        check_whole(a);
    } else if (piece->len || piece->n_thought || piece->n_call || c->logprobs.wanted) {
        put_event(a, c,
                  &(struct reply_part){piece->text, piece->len, piece->thought,
                                       piece->n_thought, piece->call, piece->n_call});
    }
}

static void end_choice(struct answer *a, struct choice *c, enum completion_end end)
{
    c->end = end;
    completion_read_usage(c->c, &c->usage);
    if (a->head.form && completion_stop(c->c))
        c->stop = strdup(completion_stop(c->c));
    if (end == COMPLETION_FAILED)
        refuse(&a->failure, 500, "failed", NULL, "%s", completion_error(c->c));
    else if (end == COMPLETION_ABORTED)
        refuse(&a->failure, 503, "stopping", NULL,
               "the server has stopped before the answer's end");
    else if (a->head.stream)
        put_event(a, c, &(struct reply_part){.text = ""});
    if (a->n_texts)
        c->vectors = completion_take_vectors(c->c);
    completion_close(c->c);
    c->c = NULL;
    a->n_open--;
    if (c->vectors) {
        a->whole_bytes += answer_vector_bytes(a);
        *a->model->whole_bytes += answer_vector_bytes(a);
        check_whole(a);
    }
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

/* An answer with a form has one choice. */
static struct reply_ending ending(const struct answer *a)
{
    return (struct reply_ending){a->choices->end, a->choices->stop, &a->choices->calls,
                                 sum_usage(a)};
}

static void end_form(struct answer *a)
{
    const struct reply_ending e = ending(a);

    if (a->failure.http)
        a->head.form->fail(&a->events, &a->head, &a->blocks, &a->failure);
    else
        a->head.form->finish(&a->events, &a->head, &a->blocks, &e);
}

static void end_stream(struct answer *a)
{
    const struct reply_usage usage = sum_usage(a);

    if (a->head.form) {
        end_form(a);
        return;
    }
    if (a->failure.http) {
        reply_error_event(&a->events, &a->failure);
        return;
    }
    if (a->head.usage_follows)
        reply_usage_event(&a->events, &a->head, &usage);
    reply_done_event(&a->events);
}

void answer_advance(struct answer *a, struct metrics *m)
{
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

static bool put_choices(struct answer *a, struct textbuf *out,
                        const struct reply_usage *usage, struct refusal *refusal)
{
    if (a->head.form) {
        const struct reply_ending e = ending(a);

        a->head.form->whole(out, &a->head, &a->choices->text, &a->choices->thought, &e);
        free_choice(a->choices);
        return !out->failed ||
               refuse(refusal, 503, NULL, NULL, "no memory for the answer");
    }
    reply_begin(out, &a->head);
    for (int i = 0; i < a->n; i++) {
        reply_choice(out, &a->head, i, &a->choices[i].text, &a->choices[i].thought,
                     &a->choices[i].calls, &a->choices[i].logprobs, a->choices[i].end);
        free_choice(&a->choices[i]);
    }
    reply_end(out, usage);
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
    ok = a->n_texts ? answer_put_vectors(a, out, &usage, refusal)
                    : put_choices(a, out, &usage, refusal);
    free_choices(a); /* *out is counted from here on */
    return ok;
}

void answer_read_facts(const struct answer *a, struct answer_facts *out)
{
    const struct reply_usage u = sum_usage(a);

    *out = (struct answer_facts){
        .n_prompt = u.n_prompt,
        .n_cached = u.n_cached,
        .n_generated = u.n_generated,
        .reason = a->failure.http ? "failed"
                  : a->n_open     ? "left"
                              : reply_reason(&a->choices[0].calls, a->choices[0].end)};
    for (int i = 0; i < a->n; i++)
        if (a->choices[i].usage.queue_s > out->queue_s)
            out->queue_s = a->choices[i].usage.queue_s;
}
