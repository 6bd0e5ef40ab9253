/* SPDX-License-Identifier: MIT
 *
 * delta_simd.c - the gated delta rule, every vector level
 *
 * A lane is a column of the state, an element of the values, and columns do
 * not depend on each other. A block of columns goes through all tokens while it lies in
 * the first-level cache, in chunks of CHUNK tokens, which read and write the state once
 * (Yang et al. 2024, arXiv 2406.06484; with the decay, arXiv 2412.06464). With S the
 * state before the chunk, g_j the product of keep up to token j, g_ji that of keep
 * after token i up to token j, and u_i what token i learns:
 *
 *     u_j   = rate_j (v_j - g_j S'k_j - sum over i < j of g_ji (k_j'k_i) u_i)
 *     out_j = g_j S'q_j + sum over i <= j of g_ji (q_j'k_i) u_i
 *     S    <- g S + sum over i of g_.i k_i u_i'       (g, g_.i: up to the last token)
 *
 * S'k_j and S'q_j of all tokens are one pass over the state, its update another one.
 * Factors are products of keep and never quotients, so none overflows.
 */
#include "kernels/kernels.h"
#include "kernels/vecops/vec_float.h"

/* COLS vectors of columns are a block; S'k and S'q of READ tokens are summed at a time.
 * A single token reads ONE vectors: there are fewer sums to keep the multipliers busy.
 */
enum {
    SEGMENT = 32, /* tokens whose factors are computed at a time */
#if defined(KERN_LEVEL_avx512)
    CHUNK = 8,
    READ = 4,
    COLS = 2,
    ONE = 8,
#elif defined(KERN_LEVEL_avx2)
    CHUNK = 4,
    READ = 2,
    COLS = 2,
    ONE = 4,
#else
    CHUNK = 4,
    READ = 2,
    COLS = 1,
    ONE = 2,
#endif
    MOST_COLS = ONE,
};

/* The tokens of one call. */
struct run {
    size_t d;
    float *s;
    const float *q, *k, *v;
    size_t stride;
    const float *keep, *rate;
    float *out;
    size_t out_stride;
};

/* Factors of a chunk of n tokens, see above. */
struct chunk {
    size_t first, n;            /* tokens */
    float g[CHUNK];             /* g_j */
    float left[CHUNK];          /* g_.i */
    float learnt[CHUNK][CHUNK]; /* [j][i] g_ji (k_j'k_i), i < j */
    float read[CHUNK][CHUNK];   /* [j][i] g_ji (q_j'k_i), i <= j */
};

static void set_factors(struct chunk *c, const struct run *r, size_t first, size_t n)
{
    float g = 1.0f;

    c->first = first;
    c->n = n;
    for (size_t j = 0; j < n; j++) {
        const float *k = r->k + (first + j) * r->stride;
        const float *q = r->q + (first + j) * r->stride;
        float between = 1.0f;

        g *= r->keep[first + j];
        c->g[j] = g;
        for (size_t i = j + 1; i-- > 0;) {
            const float *other = r->k + (first + i) * r->stride;

            c->read[j][i] = between * v_dot(q, other, r->d);
            c->learnt[j][i] = i < j ? between * v_dot(k, other, r->d) : 0.0f;
            if (j + 1 == n)
                c->left[i] = between;
            between *= r->keep[first + i];
        }
    }
}

/* key[j][b], query[j][b]: S'k and S'q of n_t tokens in the columns from e on. */
SIMD_INLINE void read_state(const int n_vecs, const int n_t, const struct run *r,
                            size_t token, size_t e, vf key[][MOST_COLS],
                            vf query[][MOST_COLS])
{
    const float *k = r->k + token * r->stride, *q = r->q + token * r->stride;
    vf of_k[READ][MOST_COLS], of_q[READ][MOST_COLS];

    SIMD_UNROLL
    for (int t = 0; t < n_t; t++)
        SIMD_UNROLL
    for (int b = 0; b < n_vecs; b++)
        of_k[t][b] = of_q[t][b] = v_zero_f();
    for (size_t i = 0; i < r->d; i++) {
        const float *row = r->s + i * r->d + e;
        vf s[MOST_COLS];

        SIMD_UNROLL
        for (int b = 0; b < n_vecs; b++)
            s[b] = v_load_f(row + b * V_LANES);
        SIMD_UNROLL
        for (int t = 0; t < n_t; t++) {
            const vf ki = v_set1_f(k[(size_t)t * r->stride + i]);
            const vf qi = v_set1_f(q[(size_t)t * r->stride + i]);

            SIMD_UNROLL
            for (int b = 0; b < n_vecs; b++) {
                of_k[t][b] = v_fma(ki, s[b], of_k[t][b]);
                of_q[t][b] = v_fma(qi, s[b], of_q[t][b]);
            }
        }
    }
    SIMD_UNROLL
    for (int t = 0; t < n_t; t++)
        SIMD_UNROLL
    for (int b = 0; b < n_vecs; b++) {
        key[t][b] = of_k[t][b];
        query[t][b] = of_q[t][b];
    }
}

/* key becomes u; the outputs are stored. */
SIMD_INLINE void solve(const int n_vecs, const struct run *r, const struct chunk *c,
                       size_t e, vf key[][MOST_COLS], vf query[][MOST_COLS])
{
    for (size_t j = 0; j < c->n; j++) {
        const size_t token = c->first + j;
        const vf g = v_set1_f(c->g[j]), rate = v_set1_f(r->rate[token]);

        SIMD_UNROLL
        for (int b = 0; b < n_vecs; b++) {
            const size_t at = e + (size_t)b * V_LANES;
            vf u = v_fnma(g, key[j][b], v_load_f(r->v + token * r->stride + at));
            vf out = v_mul(g, query[j][b]);

            for (size_t i = 0; i < j; i++) {
                u = v_fnma(v_set1_f(c->learnt[j][i]), key[i][b], u);
                out = v_fma(v_set1_f(c->read[j][i]), key[i][b], out);
            }
            key[j][b] = v_mul(u, rate);
            out = v_fma(v_set1_f(c->read[j][j]), key[j][b], out);
            v_store_f(r->out + token * r->out_stride + at, out);
        }
    }
}

/* S <- g S + k u' of n_t tokens. */
SIMD_INLINE void learn(const int n_vecs, const int n_t, const struct run *r,
                       const struct chunk *c, size_t t0, float factor, size_t e,
                       vf u[][MOST_COLS])
{
    const float *k = r->k + (c->first + t0) * r->stride;
    const vf g = v_set1_f(factor);
    vf left[CHUNK][MOST_COLS];

    SIMD_UNROLL
    for (int t = 0; t < n_t; t++)
        SIMD_UNROLL
    for (int b = 0; b < n_vecs; b++)
        left[t][b] = v_mul(v_set1_f(c->left[t0 + (size_t)t]), u[t0 + (size_t)t][b]);
    for (size_t i = 0; i < r->d; i++) {
        float *row = r->s + i * r->d + e;
        vf s[MOST_COLS];

        SIMD_UNROLL
        for (int b = 0; b < n_vecs; b++)
            s[b] = v_mul(g, v_load_f(row + b * V_LANES));
        SIMD_UNROLL
        for (int t = 0; t < n_t; t++) {
            const vf ki = v_set1_f(k[(size_t)t * r->stride + i]);

            SIMD_UNROLL
            for (int b = 0; b < n_vecs; b++)
                s[b] = v_fma(ki, left[t][b], s[b]);
        }
        SIMD_UNROLL
        for (int b = 0; b < n_vecs; b++)
            v_store_f(row + b * V_LANES, s[b]);
    }
}

/* One chunk in n_vecs vectors of columns. */
SIMD_INLINE void run_chunk(const int n_vecs, const struct run *r, const struct chunk *c,
                           size_t e)
{
    vf key[CHUNK][MOST_COLS], query[CHUNK][MOST_COLS];
    float factor = c->g[c->n - 1];
    size_t t = 0;

    for (; t + READ <= c->n; t += READ)
        read_state(n_vecs, READ, r, c->first + t, e, key + t, query + t);
    for (; t < c->n; t++)
        read_state(n_vecs, 1, r, c->first + t, e, key + t, query + t);
    solve(n_vecs, r, c, e, key, query);
    if (c->n == CHUNK) {
        learn(n_vecs, CHUNK, r, c, 0, factor, e, key);
        return;
    }
    for (t = 0; t + READ <= c->n; t += READ, factor = 1.0f)
        learn(n_vecs, READ, r, c, t, factor, e, key);
    for (; t < c->n; t++, factor = 1.0f)
        learn(n_vecs, 1, r, c, t, factor, e, key);
}

/* The only token. */
SIMD_INLINE void run_one(const int n_vecs, const struct run *r, const struct chunk *c,
                         size_t e)
{
    vf key[1][MOST_COLS], query[1][MOST_COLS];

    read_state(n_vecs, 1, r, c->first, e, key, query);
    solve(n_vecs, r, c, e, key, query);
    learn(n_vecs, 1, r, c, 0, c->g[0], e, key);
}

/* Column e, which is left over. */
static void run_column(const struct run *r, const struct chunk *c, size_t e)
{
    for (size_t token = c->first; token < c->first + c->n; token++) {
        const float *k = r->k + token * r->stride, *q = r->q + token * r->stride;
        const float keep = r->keep[token];
        float key = 0.0f, out = 0.0f;

        for (size_t i = 0; i < r->d; i++)
            key += k[i] * r->s[i * r->d + e];

        const float u = r->rate[token] * (r->v[token * r->stride + e] - keep * key);

        for (size_t i = 0; i < r->d; i++) {
            float *s = &r->s[i * r->d + e];

            *s = keep * *s + k[i] * u;
            out += q[i] * *s;
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
    for (; n == 1 && e + ONE * V_LANES <= r->d; e += ONE * V_LANES)
        run_one(ONE, r, &chunks[0], e);
    for (; e + COLS * V_LANES <= r->d; e += COLS * V_LANES)
        for (size_t i = 0; i < n_chunks; i++)
            run_chunk(COLS, r, &chunks[i], e);
    for (; COLS > 1 && e + V_LANES <= r->d; e += V_LANES)
        for (size_t i = 0; i < n_chunks; i++)
            run_chunk(1, r, &chunks[i], e);
    for (; e < r->d; e++)
        for (size_t i = 0; i < n_chunks; i++)
            run_column(r, &chunks[i], e);
}

void KERN_LEVEL_NAME(delta_rule)(size_t d, size_t n, float *s, const float *q,
                                 const float *k, const float *v, size_t stride,
                                 const float *keep, const float *rate, float *out,
                                 size_t out_stride)
{
    const struct run r = {d, s, q, k, v, stride, keep, rate, out, out_stride};

    for (size_t j = 0; j < n; j += SEGMENT)
        run_segment(&r, j, n - j < SEGMENT ? n - j : SEGMENT);
}
