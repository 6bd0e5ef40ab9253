/* SPDX-License-Identifier: MIT
 *
 * choose_tasks.c - tasks answered by a model, the likeliest token each time
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/grammar/grammar.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/decide/choose/choose.h"
#include "harness/decide/choose/choose_impl.h"
#include "harness/decide/choose/tasks.h"
#include "harness/measure/session/textmodel.h"
#include "harness/stats/stats.h"

struct answering {
    const struct tasks *tasks;
    struct textmodel model;
    struct sampler *sampler;
    struct grammar_vocab *vocab; /* NULL until a schema needs it */
};

/* ---- one answer ------------------------------------------------------------------ */

/* The prompt as a user's message, where the model has a chat template. */
static enum status encode(const struct answering *a, const struct task *t,
                          int32_t **ids, size_t *n, struct err *err)
{
    const struct chat_message m = {CHAT_USER, t->prompt};
    json_t *conversation;
    enum status st;

    if (!a->model.chat)
        return tokenizer_encode(a->model.tok, t->prompt, strlen(t->prompt),
                                tokenizer_adds_bos(a->model.tok), false, ids, n, err);
    conversation = chat_conversation(&m, 1);
    if (!conversation)
        return err_set(err, ST_NO_MEMORY, "no memory for a message");
    st = chat_encode(a->model.chat, a->model.tok, conversation, ids, n, err);
    json_decref(conversation);
    return st;
}

static bool is_end(const struct answering *a, int32_t id)
{
    return a->model.chat ? chat_is_end(a->model.chat, a->model.tok, id)
                         : tokenizer_is_end(a->model.tok, id);
}

/* What is known of an answer so far: its text, or its place in the schema's. */
struct answer {
    struct grammar *grammar;
    struct grammar_state *state; /* NULL: text counts */
    char text[4096];
    size_t len;
    bool is_decided, is_right;
};

static enum status begin_schema(struct answering *a, struct answer *to,
                                const struct task *t, struct err *err)
{
    enum status st = ST_OK;

    if (!a->vocab)
        st = grammar_vocab_open(&a->vocab, a->model.tok, err);
    if (!st)
        st = grammar_from_schema(&to->grammar, t->schema, strlen(t->schema), err);
    return st ? st : grammar_state_open(&to->state, to->grammar, a->vocab, err);
}

/* Whether the schema's text may end here. */
static bool may_end(const struct answering *a, const struct answer *to, int32_t id)
{
    const size_t n = GRAMMAR_MASK_WORDS(tokenizer_n_vocab(a->model.tok));
    uint32_t *mask = calloc(n, sizeof *mask);
    bool may;

    if (!mask)
        return false;
    grammar_state_mask(to->state, mask);
    may = mask[id / 32] >> (id % 32) & 1;
    free(mask);
    return may;
}

static void take_token(const struct answering *a, struct answer *to, int32_t id)
{
    if (is_end(a, id)) {
        to->is_decided = true;
        to->is_right = to->state && may_end(a, to, id);
    } else if (to->state) {
        to->is_decided = !grammar_state_accept(to->state, id);
        to->is_right = !to->is_decided && grammar_state_ended(to->state);
        to->is_decided |= to->is_right;
    } else {
        const size_t left = sizeof to->text - 1 - to->len;
        const size_t n = tokenizer_piece(a->model.tok, id, to->text + to->len, left);

        to->is_decided = n > left;
        to->len += n > left ? 0 : n;
        to->text[to->len] = '\0';
    }
}

/* Tokens of the prompt in batches, then the likeliest ones. */
static enum status generate(struct answering *a, struct answer *to,
                            const struct task *t, const int32_t *ids, size_t n,
                            struct err *err)
{
    const size_t most = (size_t)slm_info(a->model.m)->n_batch;
    enum status st = ST_OK;
    int32_t id;

    slm_truncate(a->model.m, 0);
    for (size_t at = 0; at < n && !st; at += most) {
        const size_t part = n - at < most ? n - at : most;

        st = slm_eval(a->model.m, ids + at, part,
                      at + part == n ? SLM_LOGITS_LAST : SLM_LOGITS_NONE, err);
        if (!st && interrupted())
            st = err_set(err, ST_INTERRUPTED, "interrupted");
    }
    for (int i = 0; i < t->max_tokens && !st; i++) {
        id = sampler_next(a->sampler, slm_logits(a->model.m, 0));
        take_token(a, to, id);
        if (to->is_decided || i + 1 == t->max_tokens || !slm_n_free(a->model.m))
            break;
        st = interrupted() ? err_set(err, ST_INTERRUPTED, "interrupted")
                           : slm_eval(a->model.m, &id, 1, SLM_LOGITS_LAST, err);
    }
    return st;
}

static enum status answer_task(struct answering *a, size_t i, bool *right,
                               struct err *err)
{
    const struct task *t = &a->tasks->v[i];
    struct answer *to = calloc(1, sizeof *to);
    int32_t *ids = NULL;
    size_t n = 0;
    enum status st = to ? encode(a, t, &ids, &n, err)
                        : err_set(err, ST_NO_MEMORY, "no memory for an answer");

    if (!st && t->schema)
        st = begin_schema(a, to, t, err);
    if (!st && (n == 0 || n >= (size_t)slm_info(a->model.m)->n_ctx))
        st = err_set(err, ST_INPUT,
                     "task %zu has %zu tokens, and the model's context %d positions",
                     i + 1, n, slm_info(a->model.m)->n_ctx);
    if (!st)
        st = generate(a, to, t, ids, n, err);
    if (!st)
        *right = to->is_right || (t->n_answers && task_accepts(t, to->text));
    if (to) {
        grammar_state_close(to->state);
        grammar_unref(to->grammar);
    }
    free(to);
    free(ids);
    return st;
}

/* ---- all of them ----------------------------------------------------------------- */

/* The longest prompt and its answer. */
static enum status context_of(struct answering *a, int *ctx, struct err *err)
{
    const size_t most = (size_t)a->model.planned.n_ctx_train;
    size_t need = 16;
    enum status st = ST_OK;

    for (size_t i = 0; i < a->tasks->n && !st; i++) {
        int32_t *ids = NULL;
        size_t n = 0;

        st = encode(a, &a->tasks->v[i], &ids, &n, err);
        n += (size_t)a->tasks->v[i].max_tokens;
        need = n > need ? n : need;
        free(ids);
    }
    *ctx = (int)(need < most || !most ? need : most);
    return st;
}

static enum status open_model(struct answering *a, struct session_params *params,
                              struct err *err)
{
    const struct sampler_params greedy = {.top_p = 1, .repeat_penalty = 1};
    enum status st = textmodel_look(&a->model, params, NULL, err);

    if (!st)
        st = context_of(a, &params->n_ctx, err);
    if (!st)
        st = textmodel_open(&a->model, params, err);
    return st ? st
              : sampler_open(&a->sampler, &greedy, tokenizer_n_vocab(a->model.tok),
                             err);
}

/* Those that are not answered yet; the model is opened for the first of them. */
static enum status answer_all(struct choose_score *score, struct choose_state *state,
                              struct answering *a, struct session_params *params,
                              const char *name, struct err *err)
{
    struct progress bar;
    bool is_open = false;
    enum status st = ST_OK;

    progress_begin(&bar, "tasks");
    for (size_t i = 0; i < a->tasks->n && !st; i++) {
        char step[400];
        bool right;

        snprintf(step, sizeof step, "%.300s, task %zu", name, i + 1);
        if (!choose_state_get(state, step)) {
            if (!is_open) {
                progress_end(&bar);
                is_open = true;
                st = open_model(a, params, err);
            }
            if (!st)
                st = answer_task(a, i, &right, err);
            if (!st)
                st = choose_state_put(state, step, json_boolean(right), err);
        }
        score->n_right += !st && json_is_true(choose_state_get(state, step));
        progress_update(&bar, (double)(i + 1) / (double)a->tasks->n, step);
    }
    progress_end(&bar);
    sampler_close(a->sampler);
    grammar_vocab_close(a->vocab);
    textmodel_close(&a->model);
    score->n = a->tasks->n;
    return st;
}

enum status choose_answer(struct choose_score *score, const struct choose_file *f,
                          const struct choose_settings *s, struct err *err)
{
    struct tasks tasks;
    struct answering a = {.tasks = &tasks};
    struct choose_state state = {.lock = -1};
    struct session_params params = s->session;
    char dir[3100], name[300], key[20];
    enum status st = tasks_read(&tasks, s->tasks, err);

    snprintf(key, sizeof key, "%016llx", (unsigned long long)tasks.key);
    snprintf(dir, sizeof dir, "%.3000s/tasks-%s", s->out, key);
    /* the file as it is now */
    snprintf(name, sizeof name, "%.200s of %llu bytes, KL %.9f",
             format_path(basename(f->path)).text, (unsigned long long)f->bytes, f->kl);
    params.model = f->path;
    params.n_logits = 1;
    if (!st)
        st = choose_state_open(&state, dir, json_pack("{s:s}", "tasks", key), err);
    if (!st)
        st = answer_all(score, &state, &a, &params, name, err);
    if (!st) {
        score->lo = 1 - stats_binomial_upper(score->n - score->n_right, score->n);
        score->hi = stats_binomial_upper(score->n_right, score->n);
    }
    choose_state_close(&state);
    tasks_free(&tasks);
    return st;
}
