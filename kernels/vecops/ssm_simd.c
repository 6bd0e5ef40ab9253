/* SPDX-License-Identifier: MIT
 *
 * ssm_simd.c - the scan of Mamba-2, every vector level
 *
 * A lane is a column of the state, an element of the values, and columns do not depend
 * on each other. A block of columns goes through all tokens while it lies in the
 * first-level cache, in chunks of CHUNK tokens, which read and write the state once
 * (Dao and Gu 2024, arXiv 2405.21060). With S the state before the chunk, g_j the
 * product of keep up to token j, g_ji that of keep after token i up to token j, and
 * v_i = rate_i x_i:
 *
 *     out_j = g_j S'c_j + sum over i <= j of g_ji (c_j'b_i) v_i + skip x_j
 *     S    <- g S + sum over i of g_.i b_i v_i'       (g, g_.i: up to the last token)
 *
 * Factors are products of keep and never quotients, so none overflows.
 *
 * A single token's states are read from memory and written back, and the state of the
 * next head follows in memory: each row prefetches what is AHEAD of it, across the end
 * of the state, so that memory is read also while other things are computed.
 */
#include "kernels/kernels.h"
#include "kernels/vecops/vec_float.h"

/* COLS vectors of columns are a block, ONE those of a single token: as many as leave
 * registers for the sums and the values of CHUNK tokens. */
enum {
    SEGMENT = 32, /* tokens whose factors are computed at a time */
    AHEAD = 2048, /* floats */
    LINE = 16,    /* floats of a cache line */
#if defined(KERN_LEVEL_avx512)
    CHUNK = 4,
    COLS = 2,
    ONE = 4,
#elif defined(KERN_LEVEL_avx2)
    CHUNK = 4,
    COLS = 1,
    ONE = 4,
#else
    CHUNK = 2,
    COLS = 1,
    ONE = 2,
#endif
    MOST_COLS = ONE,
};

/* The tokens of one call. */
struct run {
    size_t d_key, d_value;
    float *s;
    const float *b, *c;
    size_t key_stride;
    const float *x;
    size_t x_stride;
    const float *keep, *rate;
    float skip;
    float *out;
    size_t out_stride;
};

/* Factors of a chunk of n tokens, see above. */
struct chunk {
    size_t first, n;          /* tokens */
    float g[CHUNK];           /* g_j */
    float left[CHUNK];        /* g_.i rate_i */
    float read[CHUNK][CHUNK]; /* [j][i] g_ji (c_j'b_i) rate_i, i <= j */
};

static void set_factors(struct chunk *c, const struct run *r, size_t first, size_t n)
{
    float g = 1.0f;

    c->first = first;
    c->n = n;
    for (size_t j = 0; j < n; j++) {
        const float *query = r->c + (first + j) * r->key_stride;
        float between = 1.0f;

        g *= r->keep[first + j];
        c->g[j] = g;
        for (size_t i = j + 1; i-- > 0;) {
            const float rate = r->rate[first + i];

            c->read[j][i] = between * rate *
                            v_dot(query, r->b + (first + i) * r->key_stride, r->d_key);
            if (j + 1 == n)
                c->left[i] = between * rate;
            between *= r->keep[first + i];
        }
    }
}

/* What is AHEAD of n floats of a state. */
SIMD_INLINE void prefetch_ahead(const float *s, const size_t n)
{
    SIMD_UNROLL
    for (size_t i = 0; i < n; i += LINE)
        __builtin_prefetch((const void *)((uintptr_t)(s + i) + AHEAD * sizeof(*s)));
}

/* sum[t][b] = S'c of n_t tokens in the columns from e on, and S after them. */
SIMD_INLINE void pass_state(const int n_vecs, const int n_t, const struct run *r,
                            const struct chunk *c, size_t e, vf sum[][MOST_COLS])
{
    const float *key = r->b + c->first * r->key_stride;
    const float *query = r->c + c->first * r->key_stride;
    const vf g = v_set1_f(c->g[n_t - 1]);
    vf v[CHUNK][MOST_COLS], of[CHUNK][MOST_COLS];

    SIMD_UNROLL
    for (int t = 0; t < n_t; t++)
        SIMD_UNROLL
    for (int b = 0; b < n_vecs; b++) {
        const float *x = r->x + (c->first + (size_t)t) * r->x_stride + e;

        of[t][b] = v_zero_f();
        v[t][b] = v_mul(v_set1_f(c->left[t]), v_load_f(x + b * V_LANES));
    }
    for (size_t i = 0; i < r->d_key; i++) {
        float *row = r->s + i * r->d_value + e;
        vf s[MOST_COLS];

        if (n_t == 1)
            prefetch_ahead(row, (size_t)n_vecs * V_LANES);
        SIMD_UNROLL
        for (int b = 0; b < n_vecs; b++)
            s[b] = v_load_f(row + b * V_LANES);
        SIMD_UNROLL
        for (int t = 0; t < n_t; t++) {
            const vf qi = v_set1_f(query[(size_t)t * r->key_stride + i]);

            SIMD_UNROLL
            for (int b = 0; b < n_vecs; b++)
                of[t][b] = v_fma(qi, s[b], of[t][b]);
        }
        SIMD_UNROLL
        for (int b = 0; b < n_vecs; b++)
            s[b] = v_mul(g, s[b]);
        SIMD_UNROLL
        for (int t = 0; t < n_t; t++) {
            const vf ki = v_set1_f(key[(size_t)t * r->key_stride + i]);

            SIMD_UNROLL
            for (int b = 0; b < n_vecs; b++)
                s[b] = v_fma(ki, v[t][b], s[b]);
        }
        SIMD_UNROLL
        for (int b = 0; b < n_vecs; b++)
            v_store_f(row + b * V_LANES, s[b]);
    }
    SIMD_UNROLL
    for (int t = 0; t < n_t; t++)
        SIMD_UNROLL
    for (int b = 0; b < n_vecs; b++)
        sum[t][b] = of[t][b];
}

/* The outputs, of what the state gave and of the chunk's own tokens. */
SIMD_INLINE void put_out(const int n_vecs, const struct run *r, const struct chunk *c,
                         size_t e, vf sum[][MOST_COLS])
{
    for (size_t j = 0; j < c->n; j++) {
        const size_t token = c->first + j;

        SIMD_UNROLL
        for (int b = 0; b < n_vecs; b++) {
            const float *x = r->x + c->first * r->x_stride + e + (size_t)b * V_LANES;
            vf out = v_mul(v_set1_f(c->g[j]), sum[j][b]);

            for (size_t i = 0; i <= j; i++)
                out =
                    v_fma(v_set1_f(c->read[j][i]), v_load_f(x + i * r->x_stride), out);
            out = v_fma(v_set1_f(r->skip), v_load_f(x + j * r->x_stride), out);
            v_store_f(r->out + token * r->out_stride + e + (size_t)b * V_LANES, out);
        }
    }
}

/* One chunk in n_vecs vectors of columns; the last one may be shorter. */
SIMD_INLINE void run_chunk(const int n_vecs, const struct run *r, const struct chunk *c,
                           size_t e)
{
    vf sum[CHUNK][MOST_COLS];

    if (c->n == CHUNK)
        pass_state(n_vecs, CHUNK, r, c, e, sum);
    else if (c->n == 1)
        pass_state(n_vecs, 1, r, c, e, sum);
    else if (c->n == 2)
        pass_state(n_vecs, 2, r, c, e, sum);
    else
        pass_state(n_vecs, CHUNK - 1, r, c, e, sum);
    put_out(n_vecs, r, c, e, sum);
}

/* Column e, which is left over. */
static void run_column(const struct run *r, const struct chunk *c, size_t e)
{
    for (size_t token = c->first; token < c->first + c->n; token++) {
        const float *b = r->b + token * r->key_stride;
        const float *query = r->c + token * r->key_stride;
        const float x = r->x[token * r->x_stride + e], v = r->rate[token] * x;
        float out = r->skip * x;

        for (size_t i = 0; i < r->d_key; i++) {
            float *s = &r->s[i * r->d_value + e];

            *s = r->keep[token] * *s + b[i] * v;
            out += query[i] * *s;
        }
        r->out[token * r->out_stride + e] = out;
    }
}

/* At most SEGMENT tokens. */
static void run_segment(const struct run *r, size_t first, size_t n)
{
    struct chunk chunks[(SEGMENT + CHUNK - 1) / CHUNK];
    size_t n_chunks = 0, e = 0;

    for (size_t j = 0; j < n; j += CHUNK)
        set_factors(&chunks[n_chunks++], r, first + j, n - j < CHUNK ? n - j : CHUNK);
    for (; n == 1 && e + ONE * V_LANES <= r->d_value; e += ONE * V_LANES) {
        vf sum[1][MOST_COLS];

        pass_state(ONE, 1, r, &chunks[0], e, sum);
        put_out(ONE, r, &chunks[0], e, sum);
    }
    for (; e + COLS * V_LANES <= r->d_value; e += COLS * V_LANES)
        for (size_t i = 0; i < n_chunks; i++)
            run_chunk(COLS, r, &chunks[i], e);
    for (; COLS > 1 && e + V_LANES <= r->d_value; e += V_LANES)
        for (size_t i = 0; i < n_chunks; i++)
            run_chunk(1, r, &chunks[i], e);
    for (; e < r->d_value; e++)
        for (size_t i = 0; i < n_chunks; i++)
            run_column(r, &chunks[i], e);
}

void KERN_LEVEL_NAME(ssm_scan)(size_t d_key, size_t d_value, size_t n, float *s,
                               const float *b, const float *c, size_t key_stride,
                               const float *x, size_t x_stride, const float *keep,
                               const float *rate, float skip, float *out,
                               size_t out_stride)
{
    const struct run r = {d_key,    d_value, s,    b,    c,   key_stride, x,
                          x_stride, keep,    rate, skip, out, out_stride};

    for (size_t j = 0; j < n; j += SEGMENT)
        run_segment(&r, j, n - j < SEGMENT ? n - j : SEGMENT);
}
