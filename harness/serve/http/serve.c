/* SPDX-License-Identifier: MIT
 *
 * serve.c - listens, fences itself, loads the model, serves it, ends
 */
#include "harness/serve/http/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/serve/http/pool_plan.h"
#include "harness/measure/session/embed.h"
#include "harness/measure/session/textmodel.h"

/* Positions, unless the user sets them or the model has fewer. */
#define DEFAULT_CTX 4096

/* Descriptors in addition to those of connections. */
#define OTHER_FILES 128

struct serving {
    const struct serve_settings *set;
    struct session_params session, draft_session;
    struct listening at;
    struct apikeys *keys;
    struct textmodel model, draft;
    struct pool_plan plan;
    struct pool_draft draft_plan;
    uint64_t request_bytes; /* memory that is kept for requests */
    struct server *server;
    struct scheduler *scheduler;
    bool embeds; /* the model makes vectors, by: */
    enum slm_pooling pooling;
};

/* ---- before the model ------------------------------------------------------------ */

/* As many descriptors as connections may need, where the system lets it. */
static void raise_files(int n_connections)
{
    const rlim_t wanted = (rlim_t)n_connections + OTHER_FILES;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Without a usable template of the model's own, completions remain; a template that was
 * named must work. */
static enum status check_chat(const struct serving *v, struct err *err)
{
    const struct err *why = &v->model.why_no_chat;

    return v->model.chat || !v->set->chat_template
               ? ST_OK
               : err_set(err, why->code, "%s", why->msg);
}

static enum status choose_ctx(struct serving *v, struct err *err)
{
    const int trained = v->model.planned.n_ctx_train;

    if (!v->session.n_ctx)
        v->session.n_ctx = trained < DEFAULT_CTX ? trained : DEFAULT_CTX;
    if (v->session.n_ctx <= trained)
        return ST_OK;
    return err_set(err, ST_USAGE, "--ctx %d: %s was made for contexts of %d positions",
                   v->session.n_ctx, v->model.ref.text, trained);
}

/* A model that was made for vectors makes nothing else. A pass takes texts of up to a
 * whole context, in any mixture: each has pages of its own. */
static enum status choose_vectors(struct serving *v, struct err *err)
{
    struct session_params *s = &v->session;
    const struct slm_info *info = &v->model.planned;
    enum status st;

    v->embeds =
        info->is_encoder || (info->has_pooling && info->pooling != SLM_POOLING_NONE);
    if (!v->embeds)
        return ST_OK;
    if (v->session.drafts != DRAFTS_OFF)
        return err_set(err, ST_USAGE,
                       "%s makes vectors, and no text that could be drafted",
                       v->model.ref.text);
    st = embed_pooling(&v->pooling, info, v->model.ref.text, NULL, err);
    if (!st && v->pooling == SLM_POOLING_NONE)
        st = err_set(err, ST_UNSUPPORTED,
                     "%s has one vector per token (pooling_type 0), which is not "
                     "served",
                     v->model.ref.text);
    if (st)
        return st;
    if (s->setup.n_batch < s->n_ctx)
        s->setup.n_batch = s->n_ctx > SLM_DEFAULT_BATCH ? s->n_ctx : SLM_DEFAULT_BATCH;
    s->n_pool = (size_t)s->n_sequences * SLM_PAGE + (size_t)s->setup.n_batch;
    return ST_OK;
}

/* Before the fence: what the draft model is. */
static enum status name_draft(struct serving *v, struct err *err)
{
    struct modelref *ref = &v->draft_session.setup.model;
    enum status st = modelref_parse(ref, v->set->draft, NULL, err);

    if (!st)
        st = modelref_make_file(ref, NULL, err);
    v->session.draft = ref;
    return st;
}

/* Its sequences have the length of the model's. */
static enum status look_at_draft(struct serving *v, struct err *err)
{
    struct session_params *s = &v->draft_session;
    const struct modelref ref = s->setup.model;
    int32_t n_shared;
    enum status st;

    *s = v->session;
    s->model = s->quant = NULL;
    s->setup.model = ref;
    s->n_logits = s->n_sequences;
    s->n_checkpoints = s->paged ? POOL_MIN_CHECKPOINTS : 0;
    st = textmodel_look(&v->draft, s, NULL, err);
    return st ? st
              : speculate_check_draft(&v->model.planned, v->model.tok,
                                      &v->draft.planned, v->draft.tok, &n_shared, err);
}

static enum status plan_with(struct serving *v, struct model_setup *setup,
                             uint64_t memory_bytes, struct err *err)
{
    struct model_setup draft = *setup;
    struct slm_params params;
    struct gguf *g = NULL, *own = NULL;
    struct pool_draft *d = v->set->draft ? &v->draft_plan : NULL;
    enum status st = modelref_open(&v->model.ref, &g, err);

    setup->model = v->model.ref;
    params = session_model_params(&v->session, setup, memory_bytes);
    params.n_checkpoints = !v->set->no_prefixes; /* how many is planned */
    if (!st && d) {
        draft.model = v->draft.ref;
        st = modelref_open(&draft.model, &own, err);
        d->g = own;
        d->params = session_model_params(&v->draft_session, &draft, memory_bytes);
    }
    if (!st)
        st = pool_plan_make(&v->plan, g, &params, v->set->kv_bytes, d, err);
    gguf_close(own);
    gguf_close(g);
    return st;
}

/* The memory of requests, and in the rest the KV cache. A model of vectors has that of
 * a pass (choose_vectors()). */
static enum status plan(struct serving *v, struct err *err)
{
    const struct request_memory wanted =
        request_memory_within(v->set->server.max_body, 0);
    struct model_setup setup = v->session.setup;
    struct topology *topo;
    uint64_t given, bytes;
    enum status st = topology_open(&topo, "", err);

    if (st)
        return st;
    if (!setup.n_threads)
        setup.n_threads = topo->threads_default;
    given = topology_model_bytes(topo, 0);
    bytes = pool_plan_memory(given, request_memory_bytes(&wanted));
    v->request_bytes = v->session.reserved_bytes = given - bytes;
    if (!v->embeds)
        st = plan_with(v, &setup, bytes, err);
    free(topo);
    if (st || v->embeds)
        return st;
    v->session.n_pool = v->draft_session.n_pool = v->plan.n_pool;
    v->session.n_checkpoints = v->plan.n_checkpoints;
    v->session.reserved_bytes +=
        v->draft_plan.weights_bytes + v->draft_plan.other_bytes;
    return ST_OK;
}

/* ---- the server ------------------------------------------------------------------ */

static const char *model_name(const struct serving *v)
{
    return v->set->server.name ? v->set->server.name : v->model.ref.name;
}

static enum status start_server(struct serving *v, struct err *err)
{
    struct server_params params = v->set->server;

    params.at = &v->at;
    params.name = model_name(v);
    params.keys = v->keys;
    params.request_bytes = v->request_bytes;
    server_block_signals();
    return server_open(&v->server, &params, err);
}

static enum status start_scheduler(struct serving *v, struct err *err)
{
    const struct scheduler_params params = {
        .m = v->model.m,
        .tok = v->model.tok,
        .chat = v->model.chat,
        .n_queue = v->set->n_queue,
        .max_itl_s = v->set->max_itl_ms * 1e-3,
        .drafts = v->session.drafts,
        .draft = v->draft.m,
        .draft_tok = v->draft.tok,
        .keep_prefixes = !v->set->no_prefixes && !v->embeds,
        .embeds = v->embeds,
        .pooling = v->pooling,
    };

    return scheduler_open(&v->scheduler, &params, err);
}

static void print_ready(const struct serving *v)
{
    const struct slm_info *info = slm_info(v->model.m);
    static const char *const drafts[] = {
        [DRAFTS_LOOKUP] = "lookup", [DRAFTS_MTP] = "the model's own layer"};

    printf("Serves %s on http://%s, %d sequence%s of %d positions, KV cache %s",
           model_name(v), v->at.text, info->n_sequences, plural(info->n_sequences, "s"),
           info->n_ctx, bytes_text(info->kv_bytes).text);
    if (!v->embeds && v->plan.n_pool < v->plan.n_max)
        printf(" for %zu positions together (for all, it would take %s)",
               v->plan.n_pool, bytes_text(v->plan.max_bytes).text);
    if (info->n_checkpoints)
        printf(", %s of it for %d checkpoints",
               bytes_text((uint64_t)info->n_checkpoints * info->checkpoint_bytes).text,
               info->n_checkpoints);
    if (v->embeds)
        printf(", vectors of %d numbers", info->n_vector);
    if (v->session.drafts == DRAFTS_MODEL)
        printf(", drafts by %s (weights %s, KV cache and scratch memory %s)",
               v->draft.ref.name, bytes_text(v->draft_plan.weights_bytes).text,
               bytes_text(v->draft_plan.other_bytes).text);
    else if (v->session.drafts != DRAFTS_OFF)
        printf(", drafts by %s", drafts[v->session.drafts]);
    printf(", %d thread%s, %s\n", v->model.n_threads, plural(v->model.n_threads, "s"),
           v->keys ? "with keys" : "without a key");
    fflush(stdout);
    if (!v->at.loopback && !v->keys)
        fprintf(
            stderr,
            "bench: anybody who reaches %s may use it; --api-key-file requires a key\n",
            v->at.text);
    if (!v->model.chat && !v->embeds)
        fprintf(stderr, "bench: completions are served, chats are refused: %s\n",
                v->model.why_no_chat.msg);
}

/* Bytes of the longest token, as text or as it is spelled. */
static size_t longest_token(const struct tokenizer *tok)
{
    size_t longest = 1;

    for (int32_t id = 0; id < tokenizer_n_vocab(tok); id++) {
        size_t spelled = 0;
        const size_t n = tokenizer_piece(tok, id, NULL, 0);

        tokenizer_text(tok, id, &spelled);
        longest = n > longest ? n : longest;
        longest = spelled > longest ? spelled : longest;
    }
    return longest;
}

static enum status run(struct serving *v, struct err *err)
{
    const struct slm_info *info = slm_info(v->model.m);
    const struct answer_model model = {.scheduler = v->scheduler,
                                       .tok = v->model.tok,
                                       .chat = v->model.chat,
                                       .why_no_chat = v->model.why_no_chat.msg,
                                       .name = model_name(v),
                                       .any_model = v->set->any_model,
                                       .n_ctx = info->n_ctx,
                                       .n_vocab = tokenizer_n_vocab(v->model.tok),
                                       .embeds = v->embeds,
                                       .n_vector = info->n_vector,
                                       .longest_token = longest_token(v->model.tok)};

    server_ready(v->server, &model);
    print_ready(v);
    return scheduler_run(v->scheduler, err);
}

static enum status serve_all(struct serving *v, struct err *err)
{
    enum status st = textmodel_look(&v->model, &v->session, v->set->chat_template, err);

    if (!st)
        st = check_chat(v, err);
    if (!st)
        st = choose_ctx(v, err);
    if (!st)
        st = choose_vectors(v, err);
    if (!st && v->set->draft)
        st = look_at_draft(v, err);
    if (!st)
        st = plan(v, err);
    if (!st)
        st = start_server(v, err);
    if (!st)
        st = textmodel_open(&v->model, &v->session, err);
    if (!st && v->set->draft)
        st = textmodel_open(&v->draft, &v->draft_session, err);
    if (!st)
        st = start_scheduler(v, err);
    if (!st && interrupted())
        st = err_set(err, ST_INTERRUPTED, "interrupted");
    return st ? st : run(v, err);
}

enum status serve(const struct serve_settings *settings, bool *cancelled,
                  struct err *err)
{
    struct serving v = {
        .set = settings, .session = settings->session, .at = {.fd = -1}};
    enum status st = ST_OK;

    *cancelled = false;
    raise_files(settings->server.n_connections);
    if (settings->key_file)
        st = apikeys_read(&v.keys, settings->key_file, err);
    if (!st)
        st = listen_open(&v.at, settings->listen, settings->port, err);
    v.session.serves = true;
    v.session.listener = v.at.fd;
    if (settings->chat_template && !access(settings->chat_template, R_OK))
        v.session.also = settings->chat_template; /* else it is a name */
    v.session.n_logits = v.session.n_sequences;
    if (settings->session.drafts != DRAFTS_OFF)
        v.session.n_logits += SCHEDULER_MAX_DRAFTED;
    if (v.session.n_logits > SLM_DEFAULT_BATCH) /* a step has a token of each */
        v.session.setup.n_batch = v.session.n_logits;
    v.session.paged = !settings->no_prefixes;
    if (!st && settings->draft)
        st = name_draft(&v, err);
    if (!st)
        st = serve_all(&v, err);
    server_close(v.server, cancelled);
    if (v.scheduler)
        scheduler_close(v.scheduler);
    textmodel_close(&v.draft);
    textmodel_close(&v.model);
    apikeys_free(v.keys);
    listen_close(&v.at);
    return st;
}
