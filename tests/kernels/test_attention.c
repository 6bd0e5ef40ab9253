/* SPDX-License-Identifier: MIT
 *
 * test_attention.c - scores, weights and mixes of cached positions against double
 *                    precision
 *
 * One test per operation, over all its rows that this machine can run and all types of
 * cache. Buffers end at guard pages, outputs have gaps that must stay as they were.
 *
 * SLM_TEST_TRAP: see tests/support/traps/traps.h.
 */
#include "tests/support/vecops.h"

#include "kernels/activations/activations.h"

enum { PANEL = KERN_PANEL_ROWS, BLOCK = 32 };

/* Keys or values as rows of floats, rounded to a type, and as panels of it. */
struct cache {
    enum kern_kv type;
    size_t n, d, bytes; /* positions as asked for; bytes of whole panels */
    double *rows;       /* [n rounded up to panels][d] */
    uint8_t *panels;    /* up to a guard page */
};

/* Position t's element i of block b in a body: of keys dwords of 16 positions lie side
 * by side, of values whole bodies. */
static size_t body_at(bool keys, size_t body_bytes, size_t t, size_t byte)
{
    return keys ? byte / 4 * 4 * PANEL + t * 4 + byte % 4 : t * body_bytes + byte;
}

static void put_quantised(struct cache *c, bool keys, size_t t, const float *row)
{
    const enum kern_format fmt = kern_kv_format(c->type);
    const size_t body = kern_format_bytes(fmt, BLOCK) - 2, n_blocks = c->d / BLOCK;
    uint8_t *panel = c->panels + t / PANEL * PANEL * kern_format_bytes(fmt, c->d);
    uint8_t block[64];
    float back[BLOCK];

    for (size_t b = 0; b < n_blocks; b++) {
        kern_best(KERN_OP_quantize, (int)fmt, 1)
            ->fn.quantize(row + b * BLOCK, NULL, block, BLOCK);
        kern_best(KERN_OP_dequantize, (int)fmt, 1)->fn.dequantize(block, back, BLOCK);
        for (size_t i = 0; i < BLOCK; i++)
            c->rows[t * c->d + b * BLOCK + i] = (double)back[i];
        for (size_t i = 0; i < body; i++)
            panel[kern_panel_body_at(PANEL * body, 2 * PANEL, n_blocks, b) +
                  body_at(keys, body, t % PANEL, i)] = block[2 + i];
        memcpy(panel + kern_panel_scales_at(PANEL * body, 2 * PANEL, b) + t % PANEL * 2,
               block, 2);
    }
}

/* Where element i of position t is among 16-bit floats; bf16 lie in pairs. */
static size_t float_at(enum kern_kv type, bool keys, size_t d, size_t t, size_t i)
{
    const size_t panel = t / PANEL * PANEL * d, in = t % PANEL;

    if (type == KERN_KV_bf16)
        return panel + (keys ? (i / 2 * PANEL + in) * 2 + i % 2
                             : (in / 2 * d + i) * 2 + in % 2);
    return panel + (keys ? i * PANEL + in : in * d + i);
}

static void put_floats(struct cache *c, bool keys, size_t t, const float *row)
{
    uint16_t *floats = (uint16_t *)(void *)c->panels;

    for (size_t i = 0; i < c->d; i++) {
        uint16_t *at = &floats[float_at(c->type, keys, c->d, t, i)];

        *at = c->type == KERN_KV_bf16 ? bf16_from_f32(row[i]) : half_from_f32(row[i]);
        c->rows[t * c->d + i] =
            (double)(c->type == KERN_KV_bf16 ? bf16_to_f32(*at) : half_to_f32(*at));
    }
}

/* Positions behind n hold what would show: large numbers, and of values NaNs. */
static struct cache make_cache(enum kern_kv type, bool keys, size_t n, size_t d,
                               uint64_t *seed)
{
    const size_t n_whole = (n + PANEL - 1) / PANEL * PANEL;
    struct cache c = {.type = type, .n = n, .d = d};
    float row[KERN_MAX_HEAD_DIM];

    c.bytes = n_whole * kern_format_bytes(kern_kv_format(type), d);
    c.rows = calloc(n_whole * d + 1, sizeof(*c.rows));
    c.panels = guard_alloc(c.bytes);
    assert_non_null(c.rows);
    for (size_t t = 0; t < n_whole; t++) {
        fill(row, d, t < n ? 3 : 30000, seed);
        if (kern_kv_is_quantised(type)) {
            put_quantised(&c, keys, t, row);
            continue;
        }
        for (size_t i = t % 3; t >= n && !keys && i < d; i += 3)
            row[i] = NAN;
        put_floats(&c, keys, t, row);
    }
    return c;
}

static void free_cache(struct cache *c)
{
    free(c->rows);
    guard_free(c->panels, c->bytes);
}

/* n_q columns of d floats that end at a guard page, or the same quantised, with gaps
 * between columns; want gets what they stand for. */
static void *make_queries(bool quantised, size_t n_q, size_t d, size_t *stride,
                          size_t *bytes, double *want, uint64_t *seed)
{
    const size_t act = kern_act_bytes(KERN_ACT_q8_32, d);
    float column[KERN_MAX_HEAD_DIM];
    uint8_t *out;

    *stride = quantised ? act + 64 : (d + 3) * sizeof(float);
    *bytes = (n_q - 1) * *stride + (quantised ? act : d * sizeof(float));
    out = guard_alloc(*bytes);
    for (size_t q = 0; q < n_q; q++) {
        uint8_t *at = out + q * *stride;

        fill(column, d, 2, seed);
        if (quantised)
            kern_best(KERN_OP_quantize_act, KERN_ACT_q8_32, 1)
                ->fn.quantize_act(column, at, d);
        else
            memcpy(at, column, d * sizeof(float));
        for (size_t i = 0; i < d; i++)
            want[q * d + i] = quantised ? (double)act_q((char *)at)[i] *
                                              (double)act_q8_32_d((char *)at, d)[i / 32]
                                        : (double)column[i];
    }
    return out;
}

/* Whether queries and weights become bf16. */
static bool rounds(const struct kern_row *row)
{
    return row->isa == KERN_ISA_avx512bf16 ||
           (row->isa == KERN_ISA_amx_bf16 && row->what == KERN_KV_bf16);
}

/* x as a row multiplies it: where it becomes bf16 it is rounded to nearest even, and
 * zero where denormal. */
static double multiplied(const struct kern_row *row, double x)
{
    const float bf16 = bf16_to_f32(bf16_from_f32((float)x));

    return !rounds(row) ? x : fabsf(bf16) < 0x1p-126f ? 0 : (double)bf16;
}

/* The bound of levels with bf16 besides: every product and sum below 2^-126 is zero. */
static double flushed(const struct kern_row *row, size_t n)
{
    const bool flushes =
        row->isa == KERN_ISA_avx512bf16 || row->isa == KERN_ISA_amx_bf16;

    return flushes ? 6 * (double)n * 0x1p-126 : 0;
}

/* The share of |query key| or |weight value| that tiles of bf16 may leave out of f16.
 */
static double left_out(const struct kern_row *row)
{
    return row->isa == KERN_ISA_amx_bf16 && !rounds(row) ? 3 * 0x1p-16 : 0;
}

/* got is within `bound` of want, which is of factors as they are multiplied, and by no
 * more than the 2^-8 of `size` that kernels.h promises from that of exact ones. */
static void check_bf16(const struct kern_row *row, size_t i, double got, double want,
                       double exact, double size, double bound)
{
    bound += left_out(row) * size;
    check(row->name, i, got, want, bound);
    check(row->name, i, got, exact, bound + (rounds(row) ? 0x1p-8 * size : 0));
}

static void attn_dot_once(const struct kern_row *row, size_t n_q, size_t n, size_t d,
                          uint64_t *seed)
{
    const enum kern_kv type = (enum kern_kv)row->what;
    struct cache c = make_cache(type, true, n, d, seed);
    const size_t n_whole = (n + PANEL - 1) / PANEL * PANEL, s_stride = n_whole + 5;
    const size_t n_scores = (n_q - 1) * s_stride + n_whole;
    double *query = malloc(n_q * d * sizeof(*query));
    float *s = floats(n_scores);
    size_t stride, bytes;

    assert_non_null(query);
    void *x =
        make_queries(kern_kv_is_quantised(type), n_q, d, &stride, &bytes, query, seed);
    for (size_t i = 0; i < n_scores; i++)
        s[i] = 777;
    row->fn.attn_dot(n_whole / PANEL, d, c.panels, n_q, x, stride, s, s_stride);
    for (size_t i = 0; i < n_scores; i++) {
        const size_t q = i / s_stride, t = i % s_stride;
        double want = 0, exact = 0, size = 0;

        if (t >= n_whole) {
            assert_true(s[i] == 777); /* the gap between two rows of scores */
            continue;
        }
        for (size_t e = 0; e < d; e++) {
            const double key = c.rows[t * d + e];

            want += multiplied(row, query[q * d + e]) * key;
            exact += query[q * d + e] * key;
            size += fabs(query[q * d + e] * key);
        }
        /* one chain of additions; of quantised keys one per block */
        check_bf16(row, i, s[i], want, exact, size,
                   size * EPS * ((double)d + 4) + flushed(row, d));
    }
    free(query);
    guard_free(x, bytes);
    free_floats(s, n_scores);
    free_cache(&c);
}

/* The bound of rounded weights: half a step (and the rounding of floats before it) for
 * each position of 64, at most 128 times the scale. */
static double rounding_of(const struct kern_row *row, const struct cache *c,
                          const float *p, size_t b)
{
    const size_t block_bytes = kern_format_bytes(kern_kv_format(c->type), BLOCK);
    const size_t body = block_bytes - 2, n_blocks = c->d / BLOCK;
    double sum = 0;

    if (row->isa != KERN_ISA_avx512vnni)
        return 0;
    for (size_t from = 0; from < c->n; from += 64) {
        const size_t end = from + 64 < c->n ? from + 64 : c->n;
        double weight = 0, scale = 0;

        for (size_t t = from; t < end; t++) {
            const uint8_t *panel =
                c->panels + t / PANEL * PANEL * n_blocks * block_bytes;
            uint16_t half;

            memcpy(&half,
                   panel + kern_panel_scales_at(PANEL * body, 2 * PANEL, b) +
                       t % PANEL * 2,
                   2);
            weight = fmax(weight, fabs((double)p[t]));
            scale = fmax(scale, fabs((double)half_to_f32(half)));
        }
        sum += (double)(end - from) * weight * scale / KERN_MIX_STEPS / 2 * 1.01 *
               (c->type == KERN_KV_q8_0 ? 128 : 8);
    }
    return sum;
}

static void attn_mix_once(const struct kern_row *row, size_t n_q, size_t n, size_t d,
                          uint64_t *seed)
{
    struct cache c = make_cache((enum kern_kv)row->what, false, n, d, seed);
    const size_t n_whole = (n + PANEL - 1) / PANEL * PANEL;
    const size_t p_stride = n_whole + 3, o_stride = d + 5;
    const size_t n_p = (n_q - 1) * p_stride + n_whole, n_out = (n_q - 1) * o_stride + d;
    float *p = floats(n_p), *out = floats(n_out);
    float *old = malloc(n_out * sizeof(*old));

    assert_non_null(old);
    fill(p, n_p, 1, seed);
    fill(out, n_out, 4, seed); /* adds to what is there */
    memcpy(old, out, n_out * sizeof(*old));
    row->fn.attn_mix(n, d, c.panels, n_q, p, p_stride, out, o_stride);
    for (size_t i = 0; i < n_out; i++) {
        const size_t q = i / o_stride, e = i % o_stride;
        double want = old[i], exact = want, size = fabs(want);

        if (e >= d) {
            assert_true(out[i] == old[i]); /* the gap between two outputs */
            continue;
        }
        for (size_t t = 0; t < n; t++) {
            const double weight = (double)p[q * p_stride + t];
            const double value = c.rows[t * d + e];

            want += multiplied(row, weight) * value;
            exact += weight * value;
            size += fabs(weight * value);
        }
        check_bf16(row, i, out[i], want, exact, size,
                   size * EPS * ((double)n + 6) + flushed(row, n) +
                       rounding_of(row, &c, p + q * p_stride, e / BLOCK));
    }
    free(old);
    free_floats(p, n_p);
    free_floats(out, n_out);
    free_cache(&c);
}

/* Keys have more elements than those that are mixed, d of them. */
static void attn_mix_keys_once(const struct kern_row *row, size_t n_q, size_t n,
                               size_t d, uint64_t *seed)
{
    const enum kern_kv type = (enum kern_kv)row->what;
    const size_t unit = kern_kv_is_quantised(type) ? BLOCK : 2;
    const size_t more = d / 8 + 2, whole = (d + more + unit - 1) / unit * unit;
    const size_t key_dim = whole < KERN_MAX_HEAD_DIM ? whole : KERN_MAX_HEAD_DIM;
    struct cache c = make_cache(type, true, n, key_dim, seed);
    const size_t n_whole = (n + PANEL - 1) / PANEL * PANEL;
    const size_t p_stride = n_whole + 3, o_stride = d + 5;
    const size_t n_p = (n_q - 1) * p_stride + n_whole, n_out = (n_q - 1) * o_stride + d;
    float *p = floats(n_p), *out = floats(n_out);
    float *old = malloc(n_out * sizeof(*old));

    assert_non_null(old);
    if (n % PANEL && !kern_kv_is_quantised(type)) /* behind the last position */
        ((uint16_t *)(void *)c.panels)[c.bytes / 2 - 1 - (key_dim - d) * PANEL] =
            0x7fff;
    fill(p, n_p, 1, seed);
    for (size_t i = 0; i < n_p; i++)
        p[i] = i % p_stride < n || i % p_stride >= n_whole ? p[i] : 0.0f;
    fill(out, n_out, 4, seed); /* adds to what is there */
    memcpy(old, out, n_out * sizeof(*old));
    row->fn.attn_mix_keys(n, d, key_dim, c.panels, n_q, p, p_stride, out, o_stride);
    for (size_t i = 0; i < n_out; i++) {
        const size_t q = i / o_stride, e = i % o_stride;
        double want = old[i], size = fabs(want);

        if (e >= d) {
            assert_true(out[i] == old[i]); /* the gap between two outputs */
            continue;
        }
        for (size_t t = 0; t < n; t++) {
            const double weight = (double)p[q * p_stride + t];

            want += weight * c.rows[t * key_dim + e];
            size += fabs(weight * c.rows[t * key_dim + e]);
        }
        check(row->name, i, out[i], want,
              size * (EPS * ((double)n + 6) + left_out(row)) + flushed(row, n));
    }
    free(old);
    free_floats(p, n_p);
    free_floats(out, n_out);
    free_cache(&c);
}

typedef void attention_fn(const struct kern_row *row, size_t n_q, size_t n, size_t d,
                          uint64_t *seed);

/* Groups of 1 to 9 queries and some more, depths around a panel and the tiles of
 * panels, head sizes; widths of values and of quantised types are padded. */
static void for_attention_shapes(enum kern_op op, attention_fn *once)
{
    static const size_t depths[] = {1, 15, 16, 17, 40, 64, 75, 100, 150};
    static const size_t heads[] = {1, 8, 16, 24, 40, 64, 80, 96, 112, 128, 256};
    const unsigned thin = test_thin();
    unsigned shape = 0;
    uint64_t seed = 6;
    size_t at = 0;

    trap_set();
    for (const struct kern_row *row; (row = next_row(op, &at));) {
        const size_t unit = op == KERN_OP_attn_mix_keys                     ? 16
                            : kern_kv_is_quantised((enum kern_kv)row->what) ? BLOCK
                            : op == KERN_OP_attn_mix                        ? 16
                            : row->what == KERN_KV_bf16                     ? 2
                                                                            : 1;

        for (size_t n_q = 1; n_q <= 9; n_q++)
            for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
                for (size_t j = i % 2; j < sizeof(depths) / sizeof(depths[0]); j += 2)
                    if (shape++ % thin == 0)
                        once(row, n_q, depths[j], (heads[i] + unit - 1) / unit * unit,
                             &seed);
        if (thin >= THIN_SMALL)
            continue;
        /* the loops over panels are the same, however often they go round */
        once(row, 32, thin > 1 ? 80 : 256, 128, &seed);
        once(row, 13, thin > 1 ? 65 : 241, 64, &seed);
        /* more than tiles hold at a time, of queries and of positions */
        once(row, 50, 40, 64, &seed);
        once(row, 40, thin > 1 ? 700 : 1100, 32, &seed);
        if (!kern_kv_is_quantised((enum kern_kv)row->what))
            once(row, 11, 17,
                 op == KERN_OP_attn_mix_keys ? KERN_MAX_HEAD_DIM - 16
                                             : KERN_MAX_HEAD_DIM,
                 &seed);
        assert_false(trap_holds_tiles());
    }
}

/* Queries and weights of sizes at which a product of bf16 is flushed to zero, beside
 * others. */
static void tiny_factors(void **state)
{
    static const float sizes[] = {0x1p-149f, 0x1p-130f, 0x1.7p-127f, 0x1p-126f,
                                  0x1p-124f};
    float query[2 * PANEL], s[PANEL], p[PANEL], out[PANEL];
    uint16_t cache[PANEL * 2 * PANEL];
    const struct kern_row *row;
    size_t at = 0;

    (void)state;
    trap_set();
    for (size_t i = 0; i < PANEL * 2 * PANEL; i++)
        cache[i] = bf16_from_f32(1.5f);
    for (size_t i = 0; i < 2 * PANEL; i++)
        query[i] = sizes[i % 5];
    memcpy(p, query, sizeof p);
    while ((row = next_row(KERN_OP_attn_dot, &at)) != NULL) {
        double want = 0;

        if (row->what != KERN_KV_bf16)
            continue;
        for (size_t i = 0; i < 2 * PANEL; i++)
            want += 1.5 * (double)query[i];
        row->fn.attn_dot(1, 2 * PANEL, cache, 1, query, sizeof query, s, PANEL);
        for (size_t t = 0; t < PANEL; t++)
            check(row->name, t, s[t], want,
                  want * 0x1p-8 + flushed(row, 2 * PANEL) * 2);
    }
    at = 0;
    while ((row = next_row(KERN_OP_attn_mix, &at)) != NULL) {
        double want = 0;

        if (row->what != KERN_KV_bf16)
            continue;
        for (size_t t = 0; t < PANEL; t++)
            want += 1.5 * (double)p[t];
        memset(out, 0, sizeof out);
        row->fn.attn_mix(PANEL, PANEL, cache, 1, p, PANEL, out, PANEL);
        for (size_t i = 0; i < PANEL; i++)
            check(row->name, i, out[i], want, want * 0x1p-8 + flushed(row, PANEL) * 2);
    }
}

static void attn_dot(void **state)
{
    (void)state;
    for_attention_shapes(KERN_OP_attn_dot, attn_dot_once);
}

static void attn_mix(void **state)
{
    (void)state;
    for_attention_shapes(KERN_OP_attn_mix, attn_mix_once);
}

static void attn_mix_keys(void **state)
{
    (void)state;
    for_attention_shapes(KERN_OP_attn_mix_keys, attn_mix_keys_once);
}

/* A row of scores in runs of 16 to 64, some cut short; weights and their sum against
 * those of the whole row. */
static void weigh_once(const struct kern_row *row, float size, float offset,
                       uint64_t *seed)
{
    static const size_t runs[][2] = {{16, 16}, {64, 50}, {32, 0}, {16, 1}, {48, 48}};
    double total = 0, top = -INFINITY;
    float max = -INFINITY, sum = 0;

    for (size_t r = 0; r < 5; r++) {
        const size_t n = runs[r][0], n_seen = runs[r][1];
        const double before = top;
        float *s = floats(n), scores[64];
        double want_sum = 0;

        fill(scores, n, size, seed);
        for (size_t i = 0; i < n; i++) {
            scores[i] += i < n_seen ? offset : 1e30f; /* what is not seen is large */
            top = i < n_seen ? fmax(top, scores[i]) : top;
        }
        memcpy(s, scores, n * sizeof(float));
        const double keep = (double)row->fn.attn_weigh(s, n_seen, n, &max, &sum);
        const double want_keep = isinf(before) ? 0 : exp(before - top);
        const double bound = EPS * (8 + fmin(top - before, 110));

        assert_true((double)max == top);
        if (r > 0)
            check(row->name, r, keep, want_keep, want_keep * bound + 0x1p-148);
        for (size_t i = 0; i < n; i++) {
            const double want = i < n_seen ? exp((double)scores[i] - top) : 0;
            const double spread = fmin(top - (double)scores[i], 110);

            want_sum += want;
            if (i >= n_seen)
                assert_true(s[i] == 0);
            else
                check(row->name, i, s[i], want, want * EPS * (8 + spread) + 0x1p-148);
        }
        total = total * want_keep + want_sum;
        check(row->name, r, sum, total, total * EPS * 300);
        free_floats(s, n);
    }
}

static void attn_weigh(void **state)
{
    static const float sizes[] = {0, 1, 30, 200, 1e4f};
    uint64_t seed = 9;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_attn_weigh, &at));) {
        float s[16], max = -INFINITY, sum = 0;

        for (size_t i = 0; i < 5; i++)
            for (int i_try = 0; i_try < 20; i_try++) {
                weigh_once(row, sizes[i], 0, &seed);
                weigh_once(row, sizes[i], -1e3f, &seed);
            }
        /* nothing seen yet: no weights, and no NaN */
        fill(s, 16, 5, &seed);
        assert_true(row->fn.attn_weigh(s, 0, 16, &max, &sum) == 1.0f);
        assert_true(isinf(max) && max < 0 && sum == 0);
        for (int i = 0; i < 16; i++)
            assert_true(s[i] == 0);
    }
}

/* Scores that no model should have, each beside others of a panel. */
static void attn_weigh_edges(void **state)
{
    static const float edges[][PANEL] = {
        {-INFINITY, 5, -INFINITY, -1e38f, 5, 4, -80, -99.5f, 3e-42f},
        {3e38f, -3e38f, 3e38f},
    };
    static const size_t n_seen[] = {9, 3};
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_attn_weigh, &at));)
        for (size_t e = 0; e < 2; e++) {
            float s[PANEL], max = -INFINITY, sum = 0;
            const float top = e ? 3e38f : 5;
            double want_sum = 0;

            memcpy(s, edges[e], sizeof s);
            row->fn.attn_weigh(s, n_seen[e], PANEL, &max, &sum);
            assert_true(max == top);
            for (size_t i = 0; i < n_seen[e]; i++) {
                const double apart = (double)top - (double)edges[e][i];
                const double want = exp(-apart);

                want_sum += want;
                check(row->name, i, s[i], want,
                      want * EPS * (8 + fmin(apart, 110)) + 0x1p-148);
            }
            check(row->name, n_seen[e], sum, want_sum, want_sum * EPS * PANEL);
        }
}

/* exp itself: the weight of x beside a score of 0. Walks the range in small steps. */
static void exp_accuracy(void **state)
{
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_attn_weigh, &at));) {
        double worst = 0;

        for (double v = 0; v > -87; v -= 0.00137 * test_thin()) {
            float pair[PANEL] = {0, (float)v}, max = -INFINITY, sum = 0;

            row->fn.attn_weigh(pair, 2, PANEL, &max, &sum);
            worst = fmax(worst, fabs((double)pair[1] / exp((double)(float)v) - 1));
        }
        /* 2 units of exp */
        if (worst > 4 * EPS)
            fail_msg("%s: exp is off by %.3g", row->name, worst);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attn_dot),      cmocka_unit_test(attn_mix),
        cmocka_unit_test(attn_mix_keys), cmocka_unit_test(tiny_factors),
        cmocka_unit_test(attn_weigh),    cmocka_unit_test(attn_weigh_edges),
        cmocka_unit_test(exp_accuracy),
    };
    const char *why = trapping() ? trap_refused() : NULL;

    if (why != NULL) {
        printf("skipped: %s\n", why);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
