/* SPDX-License-Identifier: MIT
 *
 * test_vecops.c - every vector operation against double precision
 *
 * One test per operation, over all its rows that this machine can run. Buffers
 * end at guard pages, outputs have gaps that must stay as they were, lengths are
 * odd. Bounds are stated where they are used; EPS is half a unit in the last
 * place of 1.
 */
#include "tests/test.h"

#include <math.h>

#include "kernels/activations/activations.h"
#include "kernels/half.h"
#include "kernels/kernels.h"

#define EPS 0x1p-24

/* Lengths around every register width and unrolling. */
static const size_t lengths[] = {1,  2,  3,  5,  7,  8,  9,   15,  16,  17,
                                 23, 31, 32, 33, 63, 65, 100, 127, 129, 1000};
enum { N_LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

/* The rows of op that can run here, one after another; *at starts at 0. */
static const struct kern_row *next_row(enum kern_op op, size_t *at)
{
    size_t n;
    const struct kern_row *rows = kern_rows(&n);

    while (*at < n) {
        const struct kern_row *row = &rows[(*at)++];

        if (row->op == op && isa_usable() >> row->isa & 1)
            return row;
    }
    return NULL;
}

/* The tests below walk rows, and would pass if there were none. */
static void every_operation_has_rows(void **state)
{
    (void)state;
    for (int op = KERN_OP_rmsnorm; op < KERN_N_OP; op++) {
        size_t at = 0;

        assert_non_null(next_row((enum kern_op)op, &at));
    }
}

static float *floats(size_t n)
{
    return guard_alloc(n * sizeof(float));
}

static void free_floats(float *p, size_t n)
{
    guard_free(p, n * sizeof(float));
}

static void fill(float *p, size_t n, float size, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = size * test_random_float(seed);
}

static void check(const char *name, size_t i, double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound))
        fail_msg("%s: element %zu is %.9g, expected %.9g within %.3g", name, i, got,
                 want, bound);
}

/* ---- rmsnorm ------------------------------------------------------------------- */

/* n additions, the root and the products: n/8 + 8 roundings on the way of a term
 * at worst in a variant that keeps eight sums or more. */
static void rmsnorm_once(const struct kern_row *row, size_t n, float size, float eps,
                         bool in_place, uint64_t *seed)
{
    float *x = floats(n), *w = floats(n), *y = in_place ? x : floats(n);
    double *want = malloc(n * sizeof(*want)), sum = 0;

    assert_non_null(want);
    fill(x, n, size, seed);
    fill(w, n, 2, seed);
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    for (size_t i = 0; i < n; i++)
        want[i] = x[i] * (double)w[i] / sqrt(sum / (double)n + eps);
    row->fn.rmsnorm(y, x, w, n, eps);
    for (size_t i = 0; i < n; i++)
        check(row->name, i, y[i], want[i], fabs(want[i]) * EPS * ((double)n / 8 + 8));
    free(want);
    if (!in_place)
        free_floats(y, n);
    free_floats(x, n);
    free_floats(w, n);
}

static void rmsnorm(void **state)
{
    uint64_t seed = 1;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_rmsnorm, &at));) {
        for (size_t l = 0; l < N_LENGTHS; l++) {
            rmsnorm_once(row, lengths[l], 1, 1e-5f, false, &seed);
            rmsnorm_once(row, lengths[l], 1000, 1e-6f, true, &seed);
            rmsnorm_once(row, lengths[l], 1e-4f, 1e-5f, true, &seed);
            rmsnorm_once(row, lengths[l], 0, 1e-5f, false, &seed); /* zeros stay zero */
        }
        rmsnorm_once(row, 4096, 30, 1e-5f, false, &seed);
    }
}

/* ---- rope, add ------------------------------------------------------------------ */

static void rope(void **state)
{
    uint64_t seed = 2;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_rope, &at));)
        for (size_t n = 2; n <= 130; n += n < 40 ? 2 : 18) {
            float *v = floats(n), *cs = floats(n), old[256];

            fill(v, n, 10, &seed);
            memcpy(old, v, n * sizeof(float));
            for (size_t i = 0; i < n; i += 2) {
                const double angle = 7.0 * (double)test_random_float(&seed);

                cs[i] = (float)cos(angle);
                cs[i + 1] = (float)sin(angle);
            }
            row->fn.rope(v, cs, n);
            for (size_t i = 0; i < n; i += 2) {
                const double a = old[i], b = old[i + 1], c = cs[i], s = cs[i + 1];
                const double bound = 2 * EPS * (fabs(a) + fabs(b));

                check(row->name, i, v[i], a * c - b * s, bound);
                check(row->name, i + 1, v[i + 1], a * s + b * c, bound);
            }
            free_floats(v, n);
            free_floats(cs, n);
        }
}

static void add(void **state)
{
    uint64_t seed = 3;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_add, &at));)
        for (size_t l = 0; l < N_LENGTHS; l++) {
            const size_t n = lengths[l];
            float *y = floats(n), *x = floats(n), old[1000];

            fill(x, n, 3, &seed);
            fill(y, n, 5, &seed);
            memcpy(old, y, n * sizeof(float));
            row->fn.add(y, x, n);
            for (size_t i = 0; i < n; i++) /* one addition: no freedom in rounding */
                assert_true(y[i] == old[i] + x[i]);
            free_floats(y, n);
            free_floats(x, n);
        }
}

/* ---- softmax --------------------------------------------------------------------- */

/* Relative bound: exp within 2 units, x - max rounded once (which counts times
 * |x - max|), the sum n/8 + 8 roundings; absolute: subnormal results are exact to
 * one subnormal step. */
static void softmax_check(const struct kern_row *row, const float *values, size_t n)
{
    float *x = floats(n);
    double sum = 0, top = -INFINITY;

    memcpy(x, values, n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        top = fmax(top, values[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp(values[i] - top);
    row->fn.softmax(x, n);
    for (size_t i = 0; i < n; i++) {
        const double want = exp(values[i] - top) / sum;
        const double spread = fmin(top - values[i], 110);

        check(row->name, i, x[i], want,
              want * EPS * (12 + spread + (double)n / 8) + 0x1p-148);
    }
    free_floats(x, n);
}

static void softmax(void **state)
{
    static const float sizes[] = {0, 1, 30, 200, 1e4f};
    static const float edge[] = {-INFINITY, 5,   -INFINITY, -1e38f, 5,
                                 4,         -80, -99.5f,    3e-42f};
    static const float huge[] = {3e38f, -3e38f, 3e38f};
    uint64_t seed = 4;
    size_t at = 0;
    float values[1000];

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_softmax, &at));) {
        for (size_t l = 0; l < N_LENGTHS; l++)
            for (size_t s = 0; s < 5; s++) {
                fill(values, lengths[l], sizes[s], &seed);
                softmax_check(row, values, lengths[l]);
                for (size_t i = 0; i < lengths[l]; i++)
                    values[i] -= 1e3f; /* all far below zero, also in the last piece */
                softmax_check(row, values, lengths[l]);
            }
        softmax_check(row, edge, 9);
        softmax_check(row, huge, 3);
    }
}

/* exp itself, seen through a softmax of (0, x): result[1] / result[0] = exp(x) to
 * two roundings. Walks the range in small steps. */
static void exp_accuracy(void **state)
{
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_softmax, &at));) {
        double worst = 0;

        for (double v = 0; v > -87; v -= 0.00137) {
            float pair[2] = {0, (float)v};
            double error;

            row->fn.softmax(pair, 2);
            error = (double)pair[1] / (double)pair[0] / exp((double)(float)v) - 1;
            worst = fmax(worst, fabs(error));
        }
        /* 2 units of exp, 1 each of the two products. */
        if (worst > 6 * EPS)
            fail_msg("%s: exp is off by %.3g", row->name, worst);
    }
}

/* ---- silu_mul ---------------------------------------------------------------------
 */

static void silu_check(const struct kern_row *row, const float *g, const float *u,
                       size_t n, int alias)
{
    float *gate = floats(n), *up = floats(n);
    float *y = alias == 1 ? gate : alias == 2 ? up : floats(n);

    memcpy(gate, g, n * sizeof(float));
    memcpy(up, u, n * sizeof(float));
    row->fn.silu_mul(y, gate, up, n);
    for (size_t i = 0; i < n; i++) {
        const double want = (double)g[i] / (1 + exp(-(double)g[i])) * (double)u[i];

        /* exp, sum, quotient, product. exp(-gate) overflows below -88.7: there
         * the result is 0 instead of less than |gate| * 1e-38. */
        check(row->name, i, y[i], want,
              fabs(want) * EPS * 12 + (fabs((double)u[i]) + 1) * 4e-37);
    }
    if (alias == 0)
        free_floats(y, n);
    free_floats(gate, n);
    free_floats(up, n);
}

static void silu_mul(void **state)
{
    static const float edge_gate[] = {0,      -0.0f, 100,    -100,   88.8f,
                                      -88.8f, -87,   1e-30f, -1e30f, 1e30f};
    static const float edge_up[] = {1, 1, 1, 1, -2, -2, 3, 1, 1, 1};
    uint64_t seed = 5;
    size_t at = 0;
    float gate[1000], up[1000];

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_silu_mul, &at));) {
        for (size_t l = 0; l < N_LENGTHS; l++)
            for (int alias = 0; alias < 3; alias++) {
                fill(gate, lengths[l], alias == 1 ? 100 : 8, &seed);
                fill(up, lengths[l], 3, &seed);
                silu_check(row, gate, up, lengths[l], alias);
            }
        silu_check(row, edge_gate, edge_up, 10, 0);
    }
}

/* ---- attention ---------------------------------------------------------------------
 */

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
            ->fn.quantize(row + b * BLOCK, block, BLOCK);
        kern_best(KERN_OP_dequantize, (int)fmt, 1)->fn.dequantize(block, back, BLOCK);
        for (size_t i = 0; i < BLOCK; i++)
            c->rows[t * c->d + b * BLOCK + i] = (double)back[i];
        for (size_t i = 0; i < body; i++)
            panel[b * PANEL * body + body_at(keys, body, t % PANEL, i)] = block[2 + i];
        memcpy(panel + n_blocks * PANEL * body + (b * PANEL + t % PANEL) * 2, block, 2);
    }
}

/* Positions behind n hold what would show: large numbers. */
static struct cache make_cache(enum kern_kv type, bool keys, size_t n, size_t d,
                               uint64_t *seed)
{
    const size_t n_whole = (n + PANEL - 1) / PANEL * PANEL;
    struct cache c = {.type = type, .n = n, .d = d};
    float row[512];

    c.bytes = n_whole * kern_format_bytes(kern_kv_format(type), d);
    c.rows = calloc(n_whole * d + 1, sizeof(*c.rows));
    c.panels = guard_alloc(c.bytes);
    assert_non_null(c.rows);
    for (size_t t = 0; t < n_whole; t++) {
        uint16_t *halves = (uint16_t *)(void *)c.panels;

        fill(row, d, t < n ? 3 : 30000, seed);
        if (type != KERN_KV_f16) {
            put_quantised(&c, keys, t, row);
            continue;
        }
        for (size_t i = 0; i < d; i++) {
            const uint16_t h = half_from_f32(row[i]);

            halves[keys ? (t / PANEL * d + i) * PANEL + t % PANEL : t * d + i] = h;
            c.rows[t * d + i] = (double)half_to_f32(h);
        }
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
    float column[512];
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
    void *x = make_queries(type != KERN_KV_f16, n_q, d, &stride, &bytes, query, seed);
    for (size_t i = 0; i < n_scores; i++)
        s[i] = 777;
    row->fn.attn_dot(n_whole / PANEL, d, c.panels, n_q, x, stride, s, s_stride);
    for (size_t i = 0; i < n_scores; i++) {
        const size_t q = i / s_stride, t = i % s_stride;
        double want = 0, size = 0;

        if (t >= n_whole) {
            assert_true(s[i] == 777); /* the gap between two rows of scores */
            continue;
        }
        for (size_t e = 0; e < d; e++) {
            want += query[q * d + e] * c.rows[t * d + e];
            size += fabs(query[q * d + e] * c.rows[t * d + e]);
        }
        /* one chain of additions; of quantised keys one per block */
        check(row->name, i, s[i], want, size * EPS * ((double)d + 4));
    }
    free(query);
    guard_free(x, bytes);
    free_floats(s, n_scores);
    free_cache(&c);
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
        double want = old[i], size = fabs(want);

        if (e >= d) {
            assert_true(out[i] == old[i]); /* the gap between two outputs */
            continue;
        }
        for (size_t t = 0; t < n; t++) {
            const double term = (double)p[q * p_stride + t] * c.rows[t * d + e];

            want += term;
            size += fabs(term);
        }
        check(row->name, i, out[i], want, size * EPS * ((double)n + 6));
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
    uint64_t seed = 6;
    size_t at = 0;

    for (const struct kern_row *row; (row = next_row(op, &at));) {
        const size_t unit = row->what != KERN_KV_f16 ? BLOCK
                            : op == KERN_OP_attn_mix ? 16
                                                     : 1;

        for (size_t n_q = 1; n_q <= 9; n_q++)
            for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
                for (size_t j = i % 2; j < sizeof(depths) / sizeof(depths[0]); j += 2)
                    once(row, n_q, depths[j], (heads[i] + unit - 1) / unit * unit,
                         &seed);
        once(row, 32, 256, 128, &seed);
        once(row, 13, 241, 64, &seed);
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
            for (int turn = 0; turn < 20; turn++) {
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

/* ---- to_f16
 * -------------------------------------------------------------------------- */

/* All variants round alike: to nearest, ties to even, also at the edges. */
static void to_f16(void **state)
{
    static const float edge[] = {0,        -0.0f,    1,          65504,      65519.9f,
                                 65520,    -65520,   1e30f,      INFINITY,   -INFINITY,
                                 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1.002p0f, 0x1.006p0f,
                                 6e-8f,    -3e-5f};
    enum { N_EDGE = sizeof(edge) / sizeof(edge[0]) };
    uint64_t seed = 7;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_to_f16, &at));)
        for (size_t l = 0; l < N_LENGTHS; l++) {
            const size_t n = lengths[l];
            float *src = floats(n);
            uint16_t *dst = guard_alloc(n * sizeof(*dst));

            for (size_t i = 0; i < n; i++)
                src[i] = i % 2 ? edge[(i / 2 + l) % N_EDGE]
                               : ldexpf(test_random_float(&seed),
                                        (int)(test_random(&seed) % 48) - 28);
            row->fn.to_f16(dst, src, n);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(dst[i], half_from_f32(src[i]));
            free_floats(src, n);
            guard_free(dst, n * sizeof(*dst));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_has_rows),
        cmocka_unit_test(rmsnorm),
        cmocka_unit_test(rope),
        cmocka_unit_test(add),
        cmocka_unit_test(softmax),
        cmocka_unit_test(exp_accuracy),
        cmocka_unit_test(silu_mul),
        cmocka_unit_test(attn_dot),
        cmocka_unit_test(attn_mix),
        cmocka_unit_test(to_f16),
        cmocka_unit_test(attn_weigh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
