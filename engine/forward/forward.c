/* SPDX-License-Identifier: MIT
 *
 * forward.c - one pass through the model: stages, their inputs and their rows
 */
#include "engine/forward/forward_impl.h"

#include <assert.h>
#include <string.h>

#include "engine/base/subnormals.h"

/* What a stage multiplies with is in the part that it waits for. */
static void check_part(const struct matrix *w, enum residency_part part)
{
    for (size_t s = 0; w->n_rows && s < w->n_slices; s++)
        assert(residency_part(w->slices ? w->slices[s].name : w->name) == part);
}

static void check_parts(const struct layer *y)
{
    const struct matrix *const attention[] = {
        &y->wq,       &y->wk,       &y->wv,        &y->wo,        &y->rec.in,
        &y->rec.gate, &y->rec.beta, &y->rec.alpha, &y->rec.out,   &y->lat.q_a,
        &y->lat.k_b,  &y->lat.v_b,  &y->lat.kv_b,  &y->altup.low, &y->altup.high};
    const struct matrix *const down[] = {&y->down, &y->shared_down, &y->per_layer.gate,
                                         &y->per_layer.out};
    const struct matrix *const gate_up[] = {&y->router,      &y->gate,
                                            &y->up,          &y->shared_router,
                                            &y->shared_gate, &y->shared_up};

    for (size_t i = 0; i < sizeof attention / sizeof *attention; i++)
        check_part(attention[i], RESIDENCY_ATTENTION);
    for (size_t i = 0; i < sizeof gate_up / sizeof *gate_up; i++)
        check_part(gate_up[i], RESIDENCY_GATE_UP);
    for (size_t i = 0; i < sizeof down / sizeof *down; i++)
        check_part(down[i], RESIDENCY_DOWN);
}

void forward_set_weights(struct forward *f, struct weights *w)
{
    for (int i = 0; i < f->m->n_layers; i++)
        check_parts(&f->m->layers[i]);
    f->weights = w;
}

void fwd_wait_streamed(struct forward *f, struct fwd_thread *me, const struct layer *y,
                       enum residency_part part)
{
    weights_wait(f->weights, (int)(y - f->m->layers), part, (int)(me - f->threads));
    if (me->laps)
        fwd_lap_take(me->laps, SLM_OP_READ, KERN_N_FMT, true);
}

void fwd_wait_expert(struct forward *f, struct fwd_thread *me, const struct layer *y,
                     int expert)
{
    if (!y->up.places)
        return;
    fwd_lap(me, SLM_OP_GATE_UP, y->up.fmt);
    weights_wait_expert(f->weights, (int)(y - f->m->layers), expert,
                        (int)(me - f->threads));
    if (me->laps)
        fwd_lap_take(me->laps, SLM_OP_READ, KERN_N_FMT, true);
}

void fwd_done_streamed(struct forward *f, const struct fwd_thread *me,
                       const struct layer *y, enum residency_part part)
{
    if (me == f->threads)
        weights_done(f->weights, (int)(y - f->m->layers), part);
}

/* ---- stages ---------------------------------------------------------------------- */

void fwd_look_up(struct forward *f, struct fwd_thread *me, const struct matrix *w,
                 size_t i, float *x)
{
    const void *row = me->embd_row;

    if (i < w->panel_rows)
        f->kern.unpack[w->fmt](w->k,
                               matrix_row(w, 0, i / KERN_PANEL_ROWS * KERN_PANEL_ROWS),
                               i % KERN_PANEL_ROWS, me->embd_row);
    else
        row = matrix_row(w, 0, i);
    f->kern.dequantize[w->fmt](row, x, w->k);
    for (size_t k = 0; w->scale && k < w->k; k++)
        x[k] *= w->scale[0];
    fwd_count(me, SLM_OP_EMBED, w->fmt, w->row_bytes, 0);
}

/* Embeddings, and the rotations of each position. */
static void embed(struct forward *f, struct fwd_thread *me)
{
    const struct model *m = f->m;
    const size_t n_embd = (size_t)m->n_embd;

    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;) {
        float *x = f->eh ? f->eh + j * pad16(2 * n_embd) : f->x + j * pad16(n_embd);

        if (m->per_layer_embd.mapped)
            fwd_read_ahead(f, j);
        fwd_look_up(f, me, &m->embd, (size_t)f->tokens[j], x);
        for (size_t i = 0; m->embd_scale != 1.0f && i < n_embd; i++)
            x[i] *= m->embd_scale;
        if (m->pos_embd.n_rows) {
            fwd_look_up(f, me, &m->pos_embd, (size_t)f->pos[j], me->row);
            f->kern.add(x, me->row, n_embd);
        }
        if (m->type_embd.n_rows) {
            fwd_look_up(f, me, &m->type_embd, 0, me->row);
            f->kern.add(x, me->row, n_embd);
        }
        if (m->embd_norm.w)
            fwd_norm(f, x, x, &m->embd_norm, n_embd);
        for (int r = 0; r < m->n_ropes; r++)
            rope_turns(&m->ropes[r], m->arch->pairs, fwd_rope_ctx(f), f->pos[j],
                       fwd_turn(f, r, j));
        if (f->eh) {
            fwd_norm(f, x, x, &m->enorm, n_embd);
            fwd_norm(f, x + n_embd, f->hidden + j * pad16(n_embd), &m->hnorm, n_embd);
        }
    }
    fwd_lap(me, SLM_OP_EMBED, m->embd.fmt);
    fwd_barrier(f, me, SLM_OP_EMBED, m->embd.fmt);
}

/* The stream of a model that predicts the token after the next. */
static void join_hidden(struct forward *f, struct fwd_thread *me)
{
    const struct matrix *w = &f->m->eh_proj;
    const struct columns c = fwd_prepare_few(f, me, f->eh, pad16(w->k), (size_t)f->n,
                                             w->k, NULL, act_bit(f, w));
    struct fwd_rows rows = fwd_rows_of(f, w->n_rows);

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);)
        fwd_biased_product(f, me, SLM_OP_QKV, w, NULL, begin, end, &c, f->x,
                           pad16(w->n_rows));
    fwd_lap(me, SLM_OP_QKV, w->fmt);
    fwd_barrier(f, me, SLM_OP_QKV, w->fmt);
}

void fwd_project(struct forward *f, struct fwd_thread *me, const float *src,
                 const struct fwd_target *target, size_t n_targets,
                 const struct norm *norm)
{
    const size_t k = target[0].w->k;
    uint32_t act_mask = 0;
    size_t total = 0;

    for (size_t i = 0; i < n_targets; i++) {
        act_mask |= act_bit(f, target[i].w);
        total += pad_rows(target[i].w->n_rows);
        /* A fused tensor counts once. */
        if (f->hook && target[i].w->n_rows &&
            (i == 0 || target[i].w->name != target[i - 1].w->name))
            fwd_hook_rows(f, me, target[i].w, src, pad16(k), (size_t)f->n, norm);
    }
    const struct columns c =
        fwd_prepare_few(f, me, src, pad16(k), (size_t)f->n, k, norm, act_mask);

    /* Rows of all matrices are handed out as one range. */
    struct fwd_rows rows = fwd_rows_of(f, total);

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);) {
        size_t base = 0; /* of matrix i among all rows */

        for (size_t i = 0; i < n_targets; i++) {
            const struct matrix *w = target[i].w;
            const size_t from = begin > base ? begin - base : 0;
            const size_t last = end > base ? end - base : 0;
            const size_t to = last < w->n_rows ? last : w->n_rows;

            base += pad_rows(w->n_rows);
            if (from >= to)
                continue;
            fwd_biased_product(f, me, SLM_OP_QKV, w, target[i].bias, from, to, &c,
                               target[i].out, pad16(w->n_rows));
            fwd_lap(me, SLM_OP_QKV, w->fmt);
        }
    }
    fwd_barrier(f, me, SLM_OP_QKV, target[0].w->fmt);
}

/* Queries and keys of all heads together, normalised. */
static void normalise_whole(struct forward *f, struct fwd_thread *me,
                            const struct layer *y)
{
    const size_t n_q = y->wq.n_rows, n_k = y->wk.n_rows;

    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;) {
        float *q = f->q + j * pad16(n_q), *k = f->k + j * pad16(n_k);

        fwd_norm(f, q, q, &y->q_norm, n_q);
        fwd_norm(f, k, k, &y->k_norm, n_k);
    }
    fwd_lap(me, SLM_OP_PREPARE, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_PREPARE, KERN_N_FMT);
}

/* Queries, keys, values; and attention. */
static void attend(struct forward *f, struct fwd_thread *me, int layer)
{
    const struct layer *y = &f->m->layers[layer];
    const struct fwd_target targets[] = {{&y->wq, y->bq, f->q},
                                         {&y->wk, y->bk, f->k},
                                         {&y->wv, y->bv, f->v},
                                         {&y->altup.low, NULL, f->low}};

    if (f->m->latent.kv_rank) {
        fwd_latent_in(f, me, y);
        if (f->unfolded) {
            fwd_attention_unfolded(f, me, layer);
            return;
        }
        fwd_attention(f, me, layer);
        fwd_latent_out(f, me, y);
        return;
    }
    fwd_project(f, me, f->x, targets, sizeof targets / sizeof targets[0],
                fwd_norm_of(&y->attn_norm));
    if (f->m->head_norms == HEAD_NORMS_WHOLE)
        normalise_whole(f, me, y);
    fwd_attention(f, me, layer);
}

/* The attention's output matrix, added to x. */
static void project_back(struct forward *f, struct fwd_thread *me,
                         const struct layer *y)
{
    const struct matrix *w = &y->wo;
    const struct norm *norm = fwd_norm_of(&y->attn_sub_norm);
    const size_t d = (size_t)y->head_dim;
    const float *src = f->attn;

    if (f->n == 1 && fwd_splits(f, y) > 1 && !f->m->latent.kv_rank) {
        fwd_join_splits(f, y, 0, me->row);
        for (size_t q = 0; q < (size_t)f->m->n_heads; q++)
            fwd_gate_head(f, y, q, 0, me->row + q * d);
        src = me->row;
    }
    if (f->hook)
        fwd_hook_rows(f, me, w, src, pad16(w->k), (size_t)f->n, norm);

    const struct columns c = fwd_prepare_few(f, me, src, pad16(w->k), (size_t)f->n,
                                             w->k, norm, act_bit(f, w));

    fwd_add_product(f, me, SLM_OP_ATTN_OUT, w, y->bo, &y->attn_post_norm, NULL, &c);
}

/* The rows of x that have logits, one after another: copied to y, unless they are. */
static const float *logit_rows(struct forward *f, struct fwd_thread *me)
{
    const size_t stride = pad16((size_t)f->m->n_embd), n = (size_t)f->n_logits;
    const size_t first = (size_t)f->logit_rows[0];

    if ((size_t)f->logit_rows[n - 1] == first + n - 1)
        return f->x + first * stride;
    for (size_t i; (i = thread_pool_next(f->pool, 1)) < n;)
        memcpy(f->y + i * stride, f->x + (size_t)f->logit_rows[i] * stride,
               stride * sizeof *f->y);
    fwd_lap(me, SLM_OP_PREPARE, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_PREPARE, KERN_N_FMT);
    return f->y;
}

/* The largest exponent of x[n], whose values are numbers if it is not the last. */
bool fwd_is_finite(const float *x, size_t n)
{
    uint32_t top = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7f800000u;
        top = bits > top ? bits : top;
    }
    return top != 0x7f800000u;
}

/* Logits of the tokens that have any. */
static void output(struct forward *f, struct fwd_thread *me)
{
    const struct model *m = f->m;
    const size_t n_embd = (size_t)m->n_embd, stride = pad16(n_embd);
    const size_t n_vocab = pad16((size_t)m->n_vocab);

    if (f->n_logits == 0)
        return;
    const float *x = logit_rows(f, me);

    if (f->hook)
        fwd_hook_rows(f, me, &m->output, x, stride, (size_t)f->n_logits,
                      &m->output_norm);

    const struct columns c =
        fwd_prepare_few(f, me, x, stride, (size_t)f->n_logits, n_embd, &m->output_norm,
                        act_bit(f, &m->output));
    struct fwd_rows rows = fwd_rows_of(f, m->output.n_rows);

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);) {
        fwd_biased_product(f, me, SLM_OP_OUTPUT, &m->output, m->b_output, begin, end,
                           &c, f->logits, n_vocab);
        for (size_t j = 0; j < c.n; j++)
            me->no_number |=
                !fwd_is_finite(f->logits + j * n_vocab + begin, end - begin);
        for (size_t j = 0; m->logit_scale != 1.0f && j < c.n; j++)
            for (size_t i = begin; i < end; i++)
                f->logits[j * n_vocab + i] *= m->logit_scale;
        for (size_t j = 0; m->logit_softcap > 0.0f && j < c.n; j++)
            f->kern.softcap(f->logits + j * n_vocab + begin, end - begin,
                            m->logit_softcap);
    }
    fwd_lap(me, SLM_OP_OUTPUT, m->output.fmt);
}

/* The rest of a layer, after attention or what takes its place. */
static void feed_forward(struct forward *f, struct fwd_thread *me,
                         const struct layer *y)
{
    if (!f->m->parallel)
        fwd_wait(f, me, y, RESIDENCY_GATE_UP);
    if (y->routed) {
        fwd_experts(f, me, y);
    } else {
        if (!f->m->parallel) {
            fwd_expand(f, me, y);
            fwd_done(f, me, y, RESIDENCY_GATE_UP);
        }
        fwd_wait(f, me, y, RESIDENCY_DOWN);
        fwd_contract(f, me, y);
    }
    if (f->m->n_streams)
        fwd_streams_correct(f, me, y);
    if (y->per_layer.out.n_rows)
        fwd_per_layer(f, me, y);
    fwd_done(f, me, y, RESIDENCY_DOWN);
}

/* One layer. If attention and feed-forward part have the same input, the feed-forward
 * part reads it before attention's result is added to the stream; so does a router that
 * reads the layer's input. Each stage ends in a barrier, after which no thread uses its
 * weights; a layer that is only a feed-forward part has none before that. */
static void run_layer(struct forward *f, struct fwd_thread *me, int i)
{
    const struct layer *y = &f->m->layers[i];
    const bool mixes = y->attends || y->recurrent;

    fwd_wait(f, me, y, RESIDENCY_ATTENTION);
    if (f->m->n_streams)
        fwd_streams_predict(f, me, y);
    if (y->routed && f->m->routes_early) {
        fwd_wait(f, me, y, RESIDENCY_GATE_UP);
        fwd_route_early(f, me, y);
    }
    if (y->recurrent)
        fwd_recurrent(f, me, y);
    if (y->attends)
        attend(f, me, i);
    if (f->m->parallel) {
        fwd_wait(f, me, y, RESIDENCY_GATE_UP);
        fwd_expand(f, me, y);
        fwd_done(f, me, y, RESIDENCY_GATE_UP);
    }
    if (y->attends)
        project_back(f, me, y);
    if (y->recurrent)
        fwd_recurrent_out(f, me, y);
    if (f->m->n_streams)
        fwd_streams_low(f, me, y);
    if (mixes)
        fwd_done(f, me, y, RESIDENCY_ATTENTION);
    if (y->up.n_rows)
        feed_forward(f, me, y);
    if (!mixes)
        fwd_done(f, me, y, RESIDENCY_ATTENTION);
}

/* After the barrier that ends a layer. The others write to x only after the next one,
 * which this thread reaches later. */
static void look_for_fault(struct forward *f, const struct fwd_thread *me, int layer)
{
    const size_t n_embd = (size_t)f->m->n_embd;

    if (!f->seeks_fault || me != f->threads || f->fault < f->m->n_layers)
        return;
    for (size_t i = 0; i < (size_t)f->n; i++)
        if (!fwd_is_finite(f->x + i * pad16(n_embd), n_embd))
            f->fault = layer;
}

static void pass(void *arg, int thread, int n_threads)
{
    struct forward *f = arg;
    struct fwd_thread *me = &f->threads[thread];
    const uint64_t mode = subnormals_off();

    (void)n_threads;
    me->no_number = false;
    embed(f, me);
    if (f->m->n_per_layer)
        fwd_per_layer_inputs(f, me);
    if (f->m->n_streams)
        fwd_streams_begin(f, me);
    if (f->eh)
        join_hidden(f, me);
    look_for_fault(f, me, -1);
    for (int i = 0; i < f->m->n_layers; i++) {
        run_layer(f, me, i);
        look_for_fault(f, me, i);
    }
    if (f->m->n_streams && f->n_logits)
        fwd_streams_end(f, me);
    if (f->pools)
        fwd_pool(f, me);
    else
        output(f, me);
    subnormals_set_mode(mode);
}

/* Tokens with their positions, those that have logits, and the part, which is put in
 * front of those at earlier positions: attention takes longest for it. */
static void take_part(struct forward *f, const struct forward_part *part)
{
    const size_t first = (size_t)f->n;
    int at = f->n_parts++;

    for (int j = 0; j < part->n; j++) {
        f->tokens[first + (size_t)j] = part->tokens[j];
        f->pos[first + (size_t)j] = part->n_past + j;
        if (j >= part->n - part->n_logits)
            f->logit_rows[f->n_logits++] = (int)first + j;
    }
    for (; at > 0 && f->parts[at - 1].pos < (size_t)part->n_past; at--)
        f->parts[at] = f->parts[at - 1];
    f->parts[at] = (struct fwd_part){.seq = part->seq,
                                     .first = first,
                                     .n = (size_t)part->n,
                                     .part = *part,
                                     .pos = (size_t)part->n_past};
    f->n += part->n;
}

static void run_pass(struct forward *f)
{
    if (f->laps)
        fwd_profile_begin(f);
    if (f->weights)
        weights_begin(f->weights, f->n);
    thread_pool_run(f->pool, pass, f);
    if (f->laps)
        fwd_profile_end(f);
}

void forward_run(struct forward *f, const struct forward_part *parts, int n_parts)
{
    assert(n_parts > 0 && n_parts <= f->n_parts_max);
    f->n = f->n_parts = f->n_logits = 0;
    for (int i = 0; i < n_parts; i++)
        take_part(f, &parts[i]);
    assert(f->n <= f->n_batch);
    fwd_plan_attention(f);
    run_pass(f);
}

bool forward_is_finite(const struct forward *f)
{
    for (int i = 0; i < thread_pool_size(f->pool); i++)
        if (f->threads[i].no_number)
            return false;
    return true;
}

int forward_find_fault(struct forward *f)
{
    f->fault = f->m->n_layers;
    f->seeks_fault = true;
    run_pass(f);
    f->seeks_fault = false;
    return f->fault;
}

void forward_set_hidden(struct forward *f, const float *rows)
{
    f->hidden = rows;
}

size_t forward_stride(const struct forward *f)
{
    return pad16((size_t)f->m->n_embd);
}

void forward_hidden(const struct forward *f, size_t j, bool normalised, float *out)
{
    const size_t n = (size_t)f->m->n_embd;
    const float *x = f->x + j * pad16(n);

    if (normalised)
        fwd_norm(f, out, x, &f->m->output_norm, n);
    else
        memcpy(out, x, n * sizeof *out);
}

const float *forward_logits(const struct forward *f, size_t i)
{
    return f->logits + i * pad16((size_t)f->m->n_vocab);
}
