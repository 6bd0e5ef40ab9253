/* SPDX-License-Identifier: MIT
 *
 * kvcache.c - layout, allocation, writing and synthetic filling of the KV cache
 */
#include "engine/kv/kvcache.h"

#include <assert.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/kv/checkpoint.h"
#include "kernels/half.h"

enum {
    CHUNK = 32, /* elements converted at a time: a block of the quantised types */
    POOL_POSITIONS = 1024,
};

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* ---- sizes ----------------------------------------------------------------------- */

size_t kvcache_key_dim(enum kern_kv type, int head_dim)
{
    const size_t unit =
        type == KERN_KV_bf16 ? 2 : kern_format_info(kern_kv_format(type))->block_elems;

    return round_up((size_t)head_dim, unit);
}

size_t kvcache_value_dim(enum kern_kv type, int head_dim)
{
    return round_up(kvcache_key_dim(type, head_dim), 16);
}

/* The heads of a layer, with a window or without. */
static struct kvcache_heads heads_of(const struct kvcache_shape *shape, bool window)
{
    const enum kern_format fmt = kern_kv_format(shape->type);
    const bool own = window && shape->window_dim;
    struct kvcache_heads h = {
        .n = own ? shape->n_window_heads : shape->n_kv_heads,
        .dim = own ? shape->window_dim : shape->head_dim,
    };

    h.key_dim = kvcache_key_dim(shape->type, h.dim);
    h.value_dim = kvcache_value_dim(shape->type, h.dim);
    h.key_bytes = KVCACHE_PANEL * kern_format_bytes(fmt, h.key_dim);
    h.value_bytes = KVCACHE_PANEL * kern_format_bytes(fmt, h.value_dim);
    if (shape->n_latent) {
        h.value_dim = (size_t)shape->n_latent;
        h.value_bytes = 0;
    }
    return h;
}

uint64_t kvcache_state_bytes(const struct kvcache_shape *shape)
{
    /* arch_*.c bound each factor; the largest product is below 2^60. */
    return (uint64_t)shape->n_states * shape->state_floats * sizeof(float);
}

/* One panel more than window and n_spare fill: however they lie, a position being
 * written has no panel in common with the window before it. Therefore threads that read
 * the window need not wait for it. */
static size_t ring(int window, int n_spare)
{
    return round_up((size_t)window + (size_t)n_spare, KVCACHE_PANEL) + KVCACHE_PANEL;
}

/* Positions in front of the ring of a layer without a window of its own. */
static size_t n_kept(const struct kvcache_shape *shape)
{
    return shape->n_recent ? round_up((size_t)shape->n_sinks, KVCACHE_PANEL) : 0;
}

/* Positions that such a layer has room for. */
static size_t whole_slots(const struct kvcache_shape *shape, int n_ctx)
{
    return shape->n_recent ? n_kept(shape) + ring(shape->n_recent, shape->n_spare)
                           : round_up((size_t)n_ctx, KVCACHE_PANEL);
}

/* Positions that a layer with a window has room for; at least n_ctx: all there are. */
static size_t window_slots(const struct kvcache_shape *shape, int n_ctx)
{
    const size_t n_slots = round_up((size_t)n_ctx, KVCACHE_PANEL);
    const size_t n_ring = ring(shape->window, shape->n_spare);

    return n_ring < n_slots || shape->n_recent ? n_ring : n_slots;
}

/* Bytes of K and V of one position in one layer. */
static uint64_t layer_bytes(const struct kvcache_shape *shape, bool window)
{
    const struct kvcache_heads h = heads_of(shape, window);

    return (uint64_t)h.n * (h.key_bytes + h.value_bytes) / KVCACHE_PANEL;
}

static uint64_t sequences(const struct kvcache_shape *shape)
{
    return shape->n_sequences ? (uint64_t)shape->n_sequences : 1;
}

/* Positions of all sequences for which a layer without a window has room. */
static uint64_t pool_slots(const struct kvcache_shape *shape, int n_ctx)
{
    const size_t n_slots = whole_slots(shape, n_ctx);
    const uint64_t most = sequences(shape) * round_up(n_slots, KVCACHE_PAGE);

    if (shape->n_sequences == 0)
        return n_slots;
    return shape->n_pool && shape->n_pool < most ? round_up(shape->n_pool, KVCACHE_PAGE)
                                                 : most;
}

static bool panels_bytes(uint64_t *bytes, const struct kvcache_shape *shape, int n_ctx)
{
    const uint64_t n_whole = (uint64_t)(shape->n_layers - shape->n_window_layers);
    const uint64_t n_rings = (uint64_t)shape->n_window_layers * sequences(shape);
    uint64_t whole, rings;

    return !__builtin_mul_overflow(layer_bytes(shape, false),
                                   n_whole * pool_slots(shape, n_ctx), &whole) &&
           !__builtin_mul_overflow(layer_bytes(shape, true),
                                   n_rings * window_slots(shape, n_ctx), &rings) &&
           !__builtin_add_overflow(whole, rings, bytes) && *bytes <= SIZE_MAX / 4;
}

int kvcache_bytes(uint64_t *bytes, const struct kvcache_shape *shape, int n_ctx)
{
    uint64_t panels, kept;

    if (!panels_bytes(&panels, shape, n_ctx) ||
        kvcache_state_bytes(shape) > SIZE_MAX / 8 / sequences(shape) ||
        __builtin_mul_overflow((uint64_t)shape->n_checkpoints,
                               checkpoint_bytes(shape, n_ctx), &kept) ||
        kept > SIZE_MAX / 4)
        return 0;
    *bytes = panels + 2 * sequences(shape) * kvcache_state_bytes(shape) + kept;
    return 1;
}

uint64_t kvcache_pos_bytes(const struct kvcache_shape *shape)
{
    const int n_whole = shape->n_layers - shape->n_window_layers;

    /* arch_*.c keep these at 2^12 at most each: no overflow. */
    return (uint64_t)n_whole * layer_bytes(shape, false) + kvcache_window_bytes(shape);
}

uint64_t kvcache_window_bytes(const struct kvcache_shape *shape)
{
    return (uint64_t)shape->n_window_layers * layer_bytes(shape, true);
}

uint64_t kvcache_more_bytes(const struct kvcache_shape *shape, int n_ctx)
{
    const bool has_ring = window_slots(shape, n_ctx) < (size_t)n_ctx;

    if (shape->n_recent)
        return 0;
    return kvcache_pos_bytes(shape) - (has_ring ? kvcache_window_bytes(shape) : 0);
}

size_t kvcache_sequence_pages(const struct kvcache_shape *shape, int n_ctx)
{
    return shape->n_sequences > 0 && shape->n_layers > shape->n_window_layers
               ? round_up(whole_slots(shape, n_ctx), KVCACHE_PAGE) / KVCACHE_PAGE
               : 0;
}

enum status kvcache_open(struct kvcache *kv, const struct kvcache_shape *shape,
                         int n_ctx, struct err *err)
{
    struct kvcache new = {
        .shape = *shape,
        .n_ctx = n_ctx,
        .n_slots = whole_slots(shape, n_ctx),
        .n_ring = window_slots(shape, n_ctx),
        .n_kept = n_kept(shape),
        .n_pool = pool_slots(shape, n_ctx),
        .heads = {heads_of(shape, false), heads_of(shape, true)},
    };
    uint64_t bytes;
    enum status st;

    if (!panels_bytes(&bytes, shape, n_ctx))
        return err_set(err, ST_NO_MEMORY,
                       "a KV cache of %d positions is larger than an address space",
                       n_ctx);
    st = mem_alloc(&new.mem, (size_t)bytes, MEM_PAGES_2M, "KV cache", err);
    if (!st && shape->n_states)
        st = mem_alloc(&new.states,
                       (size_t)(2 * sequences(shape) * kvcache_state_bytes(shape)),
                       MEM_PAGES_2M, "states of recurrent layers", err);
    if (!st && shape->n_checkpoints)
        st = mem_alloc(&new.kept,
                       (size_t)shape->n_checkpoints * checkpoint_bytes(shape, n_ctx),
                       MEM_PAGES_2M, "checkpoints of sequences", err);
    if (!st && kvcache_sequence_pages(shape, n_ctx) > 0)
        st = kvpages_open(&new.pages, new.n_pool / KVCACHE_PAGE, shape->n_sequences,
                          new.n_slots, err);
    if (st)
        kvcache_close(&new);
    else
        *kv = new;
    return st;
}

void kvcache_close(struct kvcache *kv)
{
    mem_free(&kv->mem);
    mem_free(&kv->states);
    mem_free(&kv->kept);
    kvpages_close(kv->pages);
    kv->pages = NULL;
}

/* ---- room of several sequences --------------------------------------------------- */

/* Call visit(.., entry) once for each page of positions begin .. end-1, in this order.
 * A ring that goes round comes back to the page where it began. False: a visit was. */
static bool each_page(struct kvcache *kv, int seq, size_t begin, size_t end,
                      bool (*visit)(struct kvcache *, int, size_t, size_t *), size_t *n)
{
    const size_t from = begin < kv->n_kept ? kv->n_kept : begin;
    const size_t round = from + kv->n_slots - kv->n_kept;
    const size_t first = kvcache_slot(kv, 0, begin) / KVCACHE_PAGE;

    end = end < round ? end : round;
    for (size_t pos = begin; pos < end;) {
        const size_t slot = kvcache_slot(kv, 0, pos), entry = slot / KVCACHE_PAGE;
        size_t left = kv->n_slots - slot;

        if (KVCACHE_PAGE - slot % KVCACHE_PAGE < left)
            left = KVCACHE_PAGE - slot % KVCACHE_PAGE;
        if ((pos == begin || entry != first) && !visit(kv, seq, entry, n))
            return false;
        pos += left;
    }
    return true;
}

static bool count_page(struct kvcache *kv, int seq, size_t entry, size_t *n)
{
    (void)n;
    kvpages_count(kv->pages, seq, entry);
    return true;
}

static bool sum_page(struct kvcache *kv, int seq, size_t entry, size_t *n)
{
    *n += kvpages_sum(kv->pages, seq, entry);
    return true;
}

/* The same panels of all heads of all layers. */
static void copy_page(struct kvcache *kv, size_t from, size_t to)
{
    const struct kvcache_heads *h = &kv->heads[0];
    const size_t panels = KVCACHE_PAGE / KVCACHE_PANEL;
    const size_t keys = panels * h->key_bytes, values = panels * h->value_bytes;

    for (int layer = 0; layer < kvcache_n_whole(kv); layer++)
        for (int head = 0; head < h->n; head++) {
            unsigned char *base = kvcache_head(kv, layer, head);

            memcpy(base + to * keys, base + from * keys, keys);
            base += kv->n_pool / KVCACHE_PANEL * h->key_bytes;
            memcpy(base + to * values, base + from * values, values);
        }
}

static bool own_page(struct kvcache *kv, int seq, size_t entry, size_t *n)
{
    uint32_t from;

    (void)n;
    if (!kvpages_own(kv->pages, seq, entry, &from))
        return false;
    if (from != KVPAGES_NONE && from != *kvpages_entry(kv->pages, seq, entry))
        copy_page(kv, from, *kvpages_entry(kv->pages, seq, entry));
    return true;
}

size_t kvcache_reserve_pages(const struct kvcache *kv, const struct kvcache_span *spans,
                             int n)
{
    size_t n_pages = 0;

    for (int sum = 0; kv->pages && sum < 2; sum++)
        for (int i = 0; i < n; i++)
            each_page((struct kvcache *)kv, spans[i].seq, spans[i].begin, spans[i].end,
                      sum ? sum_page : count_page, &n_pages);
    return n_pages;
}

bool kvcache_reserve(struct kvcache *kv, int seq, size_t begin, size_t end)
{
    const struct kvcache_span span = {seq, begin, end};

    if (!kv->pages)
        return true;
    return kvcache_reserve_pages(kv, &span, 1) <= kv->pages->n_free &&
           each_page(kv, seq, begin, end, own_page, NULL);
}

void kvcache_cut(struct kvcache *kv, int seq, size_t n_past)
{
    /* A ring has no positions that are given up for good. */
    if (kv->pages && (n_past == 0 || kv->shape.n_recent == 0))
        kvpages_cut(kv->pages, seq, (n_past + KVCACHE_PAGE - 1) / KVCACHE_PAGE);
}

/* ---- writing --------------------------------------------------------------------- */

/* Elements i .. i + CHUNK - 1 of the n at src, zeros behind them. */
static void take_chunk(float *chunk, const float *src, size_t i, size_t n)
{
    const size_t have = n - i < CHUNK ? n - i : CHUNK;

    memcpy(chunk, src + i, have * sizeof *chunk);
    memset(chunk + have, 0, (CHUNK - have) * sizeof *chunk);
}

/* Where element i of position `lane` of a panel is: kern_attn_dot_fn. */
static size_t key_at(bool pairs, size_t lane, size_t i)
{
    return pairs ? (i / 2 * KVCACHE_PANEL + lane) * 2 + i % 2
                 : i * KVCACHE_PANEL + lane;
}

static size_t value_at(bool pairs, size_t dim, size_t lane, size_t i)
{
    return pairs ? (lane / 2 * dim + i) * 2 + lane % 2 : lane * dim + i;
}

/* Floats of 16 bits: halves, or pairs of bf16. */
static void store_floats(const struct kvcache *kv, const struct kvcache_heads *h,
                         const struct kern_set *kern, uint16_t *key, uint16_t *value,
                         size_t lane, const float *k, const float *v)
{
    const size_t n = (size_t)h->dim;
    const bool pairs = kv->shape.type == KERN_KV_bf16;
    kern_to_kv_fn *to_kv = kern->to_kv[kv->shape.type];
    float chunk[CHUNK];
    uint16_t halves[CHUNK];

    for (size_t i = 0; i < n; i += CHUNK) {
        const size_t n_key = h->key_dim - i < CHUNK ? h->key_dim - i : CHUNK;
        const size_t n_value = h->value_dim - i < CHUNK ? h->value_dim - i : CHUNK;

        take_chunk(chunk, k, i, n);
        to_kv(halves, chunk, CHUNK);
        for (size_t e = 0; e < n_key; e++)
            key[key_at(pairs, lane, i + e)] = halves[e];
        if (kv->shape.n_latent)
            continue;
        take_chunk(chunk, v, i, n);
        to_kv(halves, chunk, CHUNK);
        for (size_t e = 0; e < n_value; e++)
            value[value_at(pairs, h->value_dim, lane, i + e)] = halves[e];
    }
}

/* A block is its scale, a half, and body_bytes of quants. */
static void store_quantised(const struct kvcache *kv, const struct kvcache_heads *h,
                            const struct kern_set *kern, unsigned char *key,
                            unsigned char *value, size_t lane, const float *k,
                            const float *v)
{
    const enum kern_format fmt = kern_kv_format(kv->shape.type);
    const size_t body_bytes = kern_format_bytes(fmt, CHUNK) - sizeof(uint16_t);
    const size_t n = (size_t)h->dim, n_blocks = h->key_dim / CHUNK;
    const size_t in_panel = KVCACHE_PANEL * body_bytes;
    const size_t scales = KVCACHE_PANEL * sizeof(uint16_t);
    kern_to_kv_fn *to_kv = kern->to_kv[kv->shape.type];
    unsigned char block[sizeof(uint16_t) + CHUNK], *quants = block + sizeof(uint16_t);
    float chunk[CHUNK];

    for (size_t b = 0; b < n_blocks; b++) {
        const size_t body = kern_panel_body_at(in_panel, scales, n_blocks, b);
        const size_t scale =
            kern_panel_scales_at(in_panel, scales, b) + lane * sizeof(uint16_t);

        take_chunk(chunk, k, b * CHUNK, n);
        to_kv(block, chunk, CHUNK);
        for (size_t i = 0; i < body_bytes; i += 4)
            memcpy(key + body + (i / 4 * KVCACHE_PANEL + lane) * 4, quants + i, 4);
        memcpy(key + scale, block, sizeof(uint16_t));
        if (kv->shape.n_latent)
            continue;
        take_chunk(chunk, v, b * CHUNK, n);
        to_kv(block, chunk, CHUNK);
        memcpy(value + body + lane * body_bytes, quants, body_bytes);
        memcpy(value + scale, block, sizeof(uint16_t));
    }
}

void kvcache_store(struct kvcache *kv, const struct kern_set *kern, int seq, int layer,
                   int head, size_t pos, const float *k, const float *v)
{
    const struct kvcache_heads *h = kvcache_heads(kv, layer);
    unsigned char *key = kvcache_k(kv, seq, layer, head, pos);
    unsigned char *value = kvcache_v(kv, seq, layer, head, pos);
    const size_t lane = pos % KVCACHE_PANEL;

    if (kern_kv_is_quantised(kv->shape.type))
        store_quantised(kv, h, kern, key, value, lane, k, v);
    else
        store_floats(kv, h, kern, (uint16_t *)(void *)key, (uint16_t *)(void *)value,
                     lane, k, v);
}

/* ---- reading --------------------------------------------------------------------- */

static void read_quantised(const struct kvcache *kv, const struct kvcache_heads *h,
                           const struct kern_set *kern, const unsigned char *key,
                           size_t lane, float *k)
{
    const enum kern_format fmt = kern_kv_format(kv->shape.type);
    const size_t body_bytes = kern_format_bytes(fmt, CHUNK) - sizeof(uint16_t);
    const size_t n = (size_t)h->dim, n_blocks = h->key_dim / CHUNK;
    const size_t in_panel = KVCACHE_PANEL * body_bytes;
    const size_t scales = KVCACHE_PANEL * sizeof(uint16_t);
    unsigned char block[sizeof(uint16_t) + CHUNK];
    float chunk[CHUNK];

    for (size_t b = 0; b < n_blocks; b++) {
        const unsigned char *body =
            key + kern_panel_body_at(in_panel, scales, n_blocks, b);
        const size_t left = n - b * CHUNK < CHUNK ? n - b * CHUNK : CHUNK;

        memcpy(block,
               key + kern_panel_scales_at(in_panel, scales, b) +
                   lane * sizeof(uint16_t),
               sizeof(uint16_t));
        for (size_t i = 0; i < body_bytes; i += 4)
            memcpy(block + sizeof(uint16_t) + i,
                   body + (i / 4 * KVCACHE_PANEL + lane) * 4, 4);
        kern->dequantize[fmt](block, chunk, CHUNK);
        memcpy(k + b * CHUNK, chunk, left * sizeof *k);
    }
}

void kvcache_read(const struct kvcache *kv, const struct kern_set *kern, int seq,
                  int layer, int head, size_t pos, float *k)
{
    const struct kvcache_heads *h = kvcache_heads(kv, layer);
    const unsigned char *key = kvcache_k(kv, seq, layer, head, pos);
    const uint16_t *floats = (const uint16_t *)(const void *)key;
    const bool pairs = kv->shape.type == KERN_KV_bf16;
    const size_t lane = pos % KVCACHE_PANEL;

    if (kern_kv_is_quantised(kv->shape.type)) {
        read_quantised(kv, h, kern, key, lane, k);
        return;
    }
    for (size_t i = 0; i < (size_t)h->dim; i++) {
        const uint16_t v = floats[key_at(pairs, lane, i)];

        k[i] = pairs ? bf16_to_f32(v) : half_to_f32(v);
    }
}

/* ---- synthetic contents ---------------------------------------------------------- */

/* Sign and mantissa at random, exponent 12..15 (2^-3 to below 2): uniform over
 * halves of that range, about 0.6 in the mean. Rotated keys and values of trained
 * models are of that size, so scores stay moderate and no product is denormal. */
static float random_element(uint64_t *state)
{
    const uint64_t r = random_bits(state);

    return half_to_f32(
        (uint16_t)((r & 0x8000u) | ((12 + (r >> 16 & 3)) << 10) | (r & 0x3ffu)));
}

/* row: the caller's buffer [2 * head_dim]. */
static void store_random(struct kvcache *kv, const struct kern_set *kern, int seq,
                         int layer, int head, size_t pos, float *row, uint64_t *state)
{
    const size_t n = (size_t)kvcache_heads(kv, layer)->dim;

    for (size_t i = 0; i < 2 * n; i++)
        row[i] = random_element(state);
    kvcache_store(kv, kern, seq, layer, head, pos, row, row + n);
}

enum status kvcache_make_pool(struct kvcache *pool, const struct kvcache *like,
                              const struct kern_set *kern, uint64_t seed,
                              struct err *err)
{
    const struct kvcache_shape shape = {.type = like->shape.type,
                                        .n_layers = 2,
                                        .n_kv_heads = 1,
                                        .head_dim = like->heads[0].dim,
                                        .n_latent = like->shape.n_latent,
                                        .n_window_layers = 1,
                                        .window = POOL_POSITIONS,
                                        .n_window_heads = 1,
                                        .window_dim = like->heads[1].dim};
    float row[2 * KVCACHE_MAX_HEAD_DIM];
    const enum status st = kvcache_open(pool, &shape, POOL_POSITIONS, err);

    for (int layer = 0; !st && layer < shape.n_layers; layer++)
        for (size_t pos = 0; pos < POOL_POSITIONS; pos++)
            store_random(pool, kern, 0, layer, 0, pos, row, &seed);
    return st;
}

/* Positions pos..end-1 of one head, all of which it holds at once. */
static void fill_run(struct kvcache *kv, const struct kern_set *kern, int seq,
                     int layer, int head, size_t pos, size_t end,
                     const struct kvcache *pool, uint64_t *state)
{
    const struct kvcache_heads *h = kvcache_heads(kv, layer);
    const int like = layer >= kvcache_n_whole(kv);
    float row[2 * KVCACHE_MAX_HEAD_DIM];

    for (; pos < end && pos % KVCACHE_PANEL; pos++)
        store_random(kv, kern, seq, layer, head, pos, row, state);
    for (; pos < end; pos += KVCACHE_PANEL) {
        const uint64_t r = random_bits(state);

        memcpy(kvcache_k(kv, seq, layer, head, pos),
               kvcache_k(pool, 0, like, 0, r % POOL_POSITIONS), h->key_bytes);
        memcpy(kvcache_v(kv, seq, layer, head, pos),
               kvcache_v(pool, 0, like, 0, (r >> 32) % POOL_POSITIONS), h->value_bytes);
    }
}

void kvcache_fill(struct kvcache *kv, const struct kern_set *kern, int seq, int layer,
                  int head, int begin, int end, const struct kvcache *pool,
                  uint64_t seed)
{
    const size_t kept = layer < kvcache_n_whole(kv) ? kv->n_kept : 0;
    const size_t n_ring = kvcache_slots(kv, layer) - kept;
    uint64_t state = seed ^ ((uint64_t)layer << 32 | (uint64_t)head);
    size_t pos = (size_t)begin, to = (size_t)end < kept ? (size_t)end : kept;

    assert(begin >= 0 && begin <= end && end <= kv->n_ctx);
    fill_run(kv, kern, seq, layer, head, pos, to, pool, &state);
    pos = pos < kept ? kept : pos;
    if ((size_t)end > pos + n_ring)
        pos = (size_t)end - n_ring;
    fill_run(kv, kern, seq, layer, head, pos, (size_t)end, pool, &state);
}
