/* SPDX-License-Identifier: MIT
 *
 * forward_mem.c - the buffers of the forward pass: one description that measures them
 * for the plan and allocates them for the run
 */
#include "engine/forward/forward_impl.h"

#include <stdlib.h>

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Cuts cache-line aligned pieces off a block; base NULL only measures. Sizes
 * cannot overflow 64 bits: arch_*.c bound every dimension, FORWARD_MAX_BATCH and
 * THREAD_POOL_MAX the rest. */
struct carver {
    unsigned char *base;
    uint64_t used;
};

static void *carve(struct carver *c, uint64_t bytes)
{
    void *piece = c->base ? c->base + c->used : NULL;

    c->used += (bytes + 63) & ~(uint64_t)63;
    return piece;
}

static float *carve_floats(struct carver *c, size_t n_rows, size_t n)
{
    return carve(c, (uint64_t)n_rows * pad16(n) * sizeof(float));
}

static void count_columns(struct forward *f, const struct matrix *w, size_t n_cols)
{
    const uint32_t layouts = fwd_layouts(f, w, n_cols);

    for (int a = 0; a < KERN_N_ACT; a++)
        if (layouts & 1u << a) {
            const size_t bytes = n_cols * kern_act_bytes((enum kern_act)a, w->k);

            f->act_k[a] = max_size(f->act_k[a], w->k);
            f->act_bytes[a] = max_size(f->act_bytes[a], bytes);
        }
}

/* Experts' inputs are copied in sorted order, except for a single token. */
static void count_routed(struct forward *f, const struct matrix *w, size_t n_cols)
{
    const uint32_t layouts = f->n_batch > 1 ? fwd_layouts(f, w, n_cols) : 0;

    for (int a = 0; a < KERN_N_ACT; a++)
        if (layouts & 1u << a)
            f->routed_bytes[a] = max_size(
                f->routed_bytes[a], n_cols * kern_act_bytes((enum kern_act)a, w->k));
}

static int fewest_kv_heads(const struct model *m)
{
    int least = m->n_kv_heads;

    for (int i = 0; i < m->n_layers; i++)
        if (m->layers[i].n_kv_heads < least)
            least = m->layers[i].n_kv_heads;
    return least;
}

/* Everything determined by the model, the batch and the pool. */
static void measure(struct forward *f, const struct model *m, enum slm_sums sums,
                    enum kern_kv kv_type, int n_batch, int n_sequences, int n_threads)
{
    const int group = m->n_heads / fewest_kv_heads(m);
    const size_t n = (size_t)n_batch;
    const size_t n_used = m->n_experts ? (size_t)m->n_experts_used : 1;

    f->m = m;
    f->prefill_sums = sums;
    f->kv_type = kv_type;
    f->spreads = kern_kv_is_quantised(kv_type) && !m->latent.kv_rank;
    f->n_batch = n_batch;
    f->n_threads = n_threads;
    f->n_queries = group > ATTN_QUERIES ? group : ATTN_QUERIES;
    f->n_splits_max = n_threads;
    f->n_parts_max = n_sequences < n_batch ? n_sequences : n_batch;
    for (int i = 0; i < m->n_layers; i++) {
        const struct layer *y = &m->layers[i];

        count_columns(f, &y->wq, n);
        count_columns(f, &y->wk, n);
        count_columns(f, &y->wv, n);
        count_columns(f, &y->wo, n);
        count_columns(f, &y->lat.q_a, n);
        count_columns(f, &y->router, n);
        if (y->routed) {
            if (y->gate.n_rows)
                count_routed(f, &y->gate, n * n_used);
            count_routed(f, &y->up, n * n_used);
        }
        count_columns(f, &y->rec.in, n);
        count_columns(f, &y->rec.gate, n);
        count_columns(f, &y->rec.beta, n);
        count_columns(f, &y->rec.alpha, n);
        count_columns(f, &y->rec.out, n);
        count_columns(f, &y->shared_router, n);
        count_columns(f, &y->shared_gate, n);
        count_columns(f, &y->shared_up, n);
        count_columns(f, &y->shared_down, n);
        count_columns(f, &y->gate, n);
        count_columns(f, &y->up, n);
        count_columns(f, &y->down, y->routed ? n * n_used : n);
        count_columns(f, &y->altup.low, n);
        count_columns(f, &y->altup.high, n);
        count_columns(f, &y->per_layer.gate, n);
        count_columns(f, &y->per_layer.out, n);
    }
    count_columns(f, &m->per_layer_proj, n);
    count_columns(f, &m->stream_in, n);
    count_columns(f, &m->stream_out, n);
    count_columns(f, &m->output, n);
    for (int i = 0; i < MODEL_MAX_DENSE; i++)
        count_columns(f, &m->dense[i], (size_t)f->n_parts_max);
    count_columns(f, &m->eh_proj, n);
}

/* The widest feed-forward part, and what a token needs of it, of all experts taken. */
static size_t widest(const struct model *m)
{
    size_t most = 0;

    for (int i = 0; i < m->n_layers; i++)
        most = max_size(most, (size_t)m->layers[i].n_ff);
    return most;
}

/* The longest keys, or values, of all heads. */
static size_t widest_kv(const struct model *m)
{
    size_t most = 0;

    for (int i = 0; i < m->n_layers; i++)
        most = max_size(most, (size_t)m->layers[i].n_kv_heads *
                                  (size_t)m->layers[i].head_dim);
    return most;
}

static size_t activations(const struct model *m)
{
    size_t most = 0;

    for (int i = 0; i < m->n_layers; i++) {
        const struct layer *y = &m->layers[i];

        most = max_size(most, pad16((size_t)y->n_ff) *
                                  (y->routed ? (size_t)m->n_experts_used : 1));
        most = max_size(most, y->per_layer.gate.n_rows);
    }
    return most;
}

/* The longest of what a head of a token has: query, folded query, result. */
static size_t head_floats(const struct model *m)
{
    const struct latent_sizes *s = &m->latent;
    const size_t each = max_size((size_t)m->head_dim, (size_t)s->value_dim);

    return s->kv_rank ? max_size(each, (size_t)(s->key_dim + m->n_rot)) : each;
}

/* A block of positions, unfolded. */
static void carve_unfolding(const struct model *m, struct fwd_thread *own,
                            struct carver *c)
{
    const size_t key = (size_t)m->latent.key_dim, value = (size_t)m->latent.value_dim;
    const size_t d = key + (size_t)m->n_rot;
    size_t bytes = 0;

    for (int i = 0; i < m->n_layers; i++) {
        const struct latent *lat = &m->layers[i].lat;
        const struct matrix *w = lat->kv_b.n_rows ? &lat->kv_b : &lat->v_b;

        bytes = max_size(bytes, kern_act_bytes(w->act, w->k));
    }
    own->latents = carve_floats(c, ATTN_BLOCK, (size_t)m->head_dim);
    own->latent_columns = carve(c, ATTN_BLOCK * bytes);
    own->unfolded = carve_floats(c, ATTN_BLOCK, key + value);
    own->keys = carve(c, ATTN_BLOCK * d * sizeof *own->keys);
    own->values = carve(c, ATTN_BLOCK * value * sizeof *own->values);
    own->halves = carve(c, d * sizeof *own->halves);
}

/* Columns of a head, what the one of a pair leaves to the other, and products. */
static void carve_latent(const struct model *m, struct fwd_thread *own,
                         struct carver *c)
{
    const size_t n = FWD_LATENT_TERMS * ALONE_COLUMNS;
    size_t bytes = 0, k = 0, n_rows = 0;

    for (int i = 0; i < m->n_layers; i++) {
        const struct matrix *const both[] = {&m->layers[i].lat.k_b,
                                             &m->layers[i].lat.v_b};

        for (int b = 0; b < 2; b++) {
            bytes = max_size(bytes, kern_act_bytes(both[b]->act, both[b]->k));
            k = max_size(k, both[b]->k);
            n_rows = max_size(n_rows, both[b]->n_rows);
        }
    }
    own->terms = carve(c, n * bytes);
    own->rest = carve_floats(c, 1, k);
    own->products = carve_floats(c, n, n_rows);
    if (fwd_can_unfold(m))
        carve_unfolding(m, own, c);
}

/* A token's per-layer input. */
static size_t per_layer(const struct model *m)
{
    return (size_t)m->n_layers * (size_t)m->n_per_layer;
}

static void carve_thread(const struct forward *f, struct fwd_thread *me,
                         struct carver *c)
{
    const struct model *m = f->m;
    const size_t n_q = (size_t)m->n_heads * head_floats(m);
    const size_t n_queries = (size_t)f->n_queries;
    const size_t key_dim = kvcache_key_dim(f->kv_type, m->head_dim);
    struct fwd_thread own = {0};

    own.row =
        carve_floats(c, 1,
                     max_size(max_size(max_size((size_t)m->n_embd, n_q), widest(m)),
                              max_size(max_size(recur_values(&m->recur), per_layer(m)),
                                       (size_t)m->latent.q_rank)));
    own.embd_row = carve(c, m->embd.row_bytes);
    if (m->n_recurrent && m->recur.kind != RECUR_SHORT_CONV)
        own.rec = carve(c, min_size((size_t)f->n_batch, RECUR_TOKENS) * sizeof(float) *
                               (2 * pad16((size_t)m->recur.key_dim) +
                                pad16((size_t)m->recur.value_dim)));
    for (int a = 0; a < KERN_N_ACT; a++)
        if (f->act_k[a])
            own.act[a] = carve(c, min_size((size_t)f->n_batch, ALONE_COLUMNS) *
                                      kern_act_bytes((enum kern_act)a, f->act_k[a]));
    own.query = carve_floats(c, n_queries, key_dim);
    if (kern_kv_is_quantised(f->kv_type))
        own.query_q8 = carve(c, n_queries * kern_act_bytes(KERN_ACT_q8_32, key_dim));
    own.mix =
        carve_floats(c, n_queries,
                     m->latent.kv_rank ? (size_t)m->latent.kv_rank
                                       : kvcache_value_dim(f->kv_type, m->head_dim));
    own.score = carve_floats(c, n_queries, ATTN_BLOCK);
    own.max = carve_floats(c, 1, n_queries);
    own.sum = carve_floats(c, 1, n_queries);
    if (m->latent.kv_rank)
        carve_latent(m, &own, c);
    if (m->n_experts) {
        own.pair =
            carve(c, sizeof(int) * (uint64_t)f->n_batch * (uint64_t)m->n_experts_used);
        own.first = carve(c, sizeof(int) * ((uint64_t)m->n_experts + 1));
        own.taken = carve(c, sizeof(int) * (uint64_t)m->n_experts);
        own.own_expert = carve(c, sizeof(int) * (uint64_t)m->n_experts_used);
        own.own_share = carve(c, sizeof(float) * (uint64_t)m->n_experts_used);
        own.choice = carve(c, sizeof(float) * (uint64_t)m->n_experts);
    }
    /* No two threads write to neighbouring lines, which prefetchers pair up. */
    carve(c, 128);
    if (me)
        *me = own;
}

/* The bytes of all heads' k_b as halves, where a layer has it. */
static uint64_t unfolding_bytes(const struct model *m)
{
    uint64_t most = 0;

    for (int i = 0; i < m->n_layers; i++) {
        const struct matrix *w = &m->layers[i].lat.k_b;

        if (w->n_slices * w->n_rows * w->k > most)
            most = w->n_slices * w->n_rows * w->k;
    }
    return most * sizeof(uint16_t);
}

/* What attention and recurrent parts leave. */
static void carve_mixers(struct forward *f, struct carver *c)
{
    const struct model *m = f->m;
    const size_t n = (size_t)f->n_batch, values = recur_values(&m->recur);
    const size_t n_q = (size_t)m->n_heads * head_floats(m);
    const bool both = m->n_attends + m->n_recurrent > m->n_layers;
    const struct recurrent *rec = NULL;

    f->attn = carve_floats(c, n, both ? n_q : max_size(n_q, values));
    f->heads = f->attn;
    f->mixed = both ? carve_floats(c, n, values) : f->attn;
    for (int i = 0; i < m->n_layers && !rec; i++)
        rec = m->layers[i].recurrent ? &m->layers[i].rec : NULL;
    if (!rec)
        return;
    f->rec_in = carve_floats(c, n, rec->in.n_rows);
    f->rec_z = carve_floats(c, n, rec->gate.n_rows);
    f->rec_beta = carve_floats(c, n, rec->beta.n_rows);
    f->rec_alpha = carve_floats(c, n, rec->alpha.n_rows);
}

static void carve_shared(struct forward *f, struct carver *c)
{
    const struct model *m = f->m;
    const size_t n = (size_t)f->n_batch, n_embd = (size_t)m->n_embd;
    const size_t n_q = (size_t)m->n_heads * head_floats(m);
    const size_t n_kv = widest_kv(m);
    const size_t n_used = m->n_experts ? (size_t)m->n_experts_used : 1;

    f->x = carve_floats(c, n, n_embd);
    f->y = carve_floats(c, n, n_embd);
    f->eh = m->eh_proj.n_rows ? carve_floats(c, n, 2 * n_embd) : NULL;
    f->q = carve_floats(c, n, m->gated_queries ? 2 * n_q : n_q);
    f->k = carve_floats(c, n, n_kv);
    f->v = carve_floats(c, m->latent.kv_rank ? 0 : n, n_kv);
    carve_mixers(f, c);
    if (m->latent.kv_rank) {
        f->q_a = carve_floats(c, n, (size_t)m->latent.q_rank);
        f->query = carve_floats(c, n, n_q);
        f->heads = carve_floats(c, n, (size_t)m->n_heads * (size_t)m->latent.kv_rank);
    }
    if (fwd_can_unfold(m)) {
        f->unfolding = carve(c, unfolding_bytes(m));
        f->tops = carve_floats(c, (size_t)m->n_heads, n);
        f->sums = carve_floats(c, (size_t)m->n_heads, n);
    }
    f->per_layer = carve_floats(c, n, per_layer(m));
    f->low = carve_floats(c, n, (size_t)m->n_low);
    for (int i = 0; i < m->n_streams; i++)
        f->streams[i] = carve_floats(c, n, n_embd);
    f->gate = carve_floats(c, n, activations(m));
    f->up = carve_floats(c, n, activations(m));
    for (int i = 0; i < m->n_ropes; i++)
        f->turn[i] = carve_floats(c, n + 1, (size_t)m->n_rot);
    if (f->n_splits_max > 1)
        f->partial = carve_floats(c, (size_t)m->n_heads * (size_t)f->n_splits_max,
                                  (size_t)m->head_dim + 2);
    f->tokens = carve(c, n * sizeof *f->tokens);
    f->pos = carve(c, n * sizeof *f->pos);
    f->logit_rows = carve(c, n * sizeof *f->logit_rows);
    f->parts = carve(c, (size_t)f->n_parts_max * sizeof *f->parts);
    if (m->n_experts) {
        f->route = carve_floats(c, n, (size_t)m->n_experts);
        f->expert = carve(c, n * n_used * sizeof(int));
        f->share = carve(c, n * n_used * sizeof(float));
        f->order = carve(c, sizeof(int) * (uint64_t)m->n_experts);
        f->n_uses = carve(c, sizeof(int) * (uint64_t)m->n_experts);
    }
    for (int a = 0; a < KERN_N_ACT; a++)
        if (f->act_k[a])
            f->act[a] = carve(c, f->act_bytes[a]);
    for (int i = 0; i < MODEL_MAX_DENSE; i++)
        f->dense[i] = carve_floats(c, (size_t)f->n_parts_max, m->dense[i].n_rows);
    if (m->n_ff_shared) {
        f->shared_share = carve_floats(c, 1, n);
        f->shared_gate = carve_floats(c, n, (size_t)m->n_ff_shared);
        f->shared_up = carve_floats(c, n, (size_t)m->n_ff_shared);
    }
    if (m->experts_apart)
        f->routed_sum = carve_floats(c, n, n_embd);
    for (int a = 0; a < KERN_N_ACT; a++)
        if (f->routed_bytes[a])
            f->routed[a] = carve(c, f->routed_bytes[a]);
    for (int i = 0; i < f->n_threads; i++)
        carve_thread(f, f->threads ? &f->threads[i] : NULL, c);
}

static uint64_t logits_bytes(const struct model *m, int n_logits)
{
    return m->is_encoder
               ? pad16(1) * sizeof(float)
               : (uint64_t)n_logits * pad16((size_t)m->n_vocab) * sizeof(float);
}

uint64_t forward_bytes(const struct model *m, enum slm_sums sums, enum kern_kv kv_type,
                       int n_batch, int n_logits, int n_sequences, int n_threads)
{
    struct forward f = {0};
    struct carver c = {0};

    measure(&f, m, sums, kv_type, n_batch, n_sequences, n_threads);
    carve_shared(&f, &c);
    return c.used + logits_bytes(m, n_logits);
}

enum status forward_open(struct forward **f, const struct model *m, struct kvcache *kv,
                         struct thread_pool *pool, uint32_t isa_mask,
                         enum slm_sums sums, int n_batch, int n_logits, struct err *err)
{
    const int n_threads = thread_pool_capacity(pool);
    const struct slm_tuning tuning = slm_tuning_default();
    struct forward *new = calloc(1, sizeof *new);
    struct carver c = {0};
    enum status st;

    if (!new)
        return err_set(err, ST_NO_MEMORY, "no memory for a forward pass");
    measure(new, m, sums, kv->shape.type, n_batch, kvcache_n_sequences(kv), n_threads);
    carve_shared(new, &c);
    new->kv = kv;
    new->pool = pool;
    kern_select(&new->kern, isa_mask & ~ISA_TILE_LEVELS);
    new->isa_mask = isa_mask;
    fwd_measure_tiles(new);
    forward_tune(new, &tuning);
    /* 4 KiB pages for the logits: most are for the rare case of a whole batch and stay
     * untouched. */
    st = mem_alloc(&new->scratch, (size_t)c.used, MEM_PAGES_2M, "activations", err);
    if (!st)
        st = mem_alloc(&new->logits_mem, (size_t)logits_bytes(m, n_logits),
                       MEM_PAGES_4K, "logits", err);
    if (!st) {
        new->threads = calloc((size_t)n_threads, sizeof *new->threads);
        if (!new->threads)
            st = err_set(err, ST_NO_MEMORY, "no memory for %d threads' buffers",
                         n_threads);
    }
    if (st) {
        forward_close(new);
        return st;
    }
    c = (struct carver){.base = new->scratch.base};
    carve_shared(new, &c);
    new->logits = new->logits_mem.base;
    fwd_turn_sinks(new);
    *f = new;
    return ST_OK;
}

void forward_close(struct forward *f)
{
    if (!f)
        return;
    mem_free(&f->scratch);
    mem_free(&f->logits_mem);
    free(f->threads);
    free(f->laps);
    free(f);
}
