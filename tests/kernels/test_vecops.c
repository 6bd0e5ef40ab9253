/* SPDX-License-Identifier: MIT
 *
 * test_vecops.c - every vector operation against double precision
 *
 * One test per operation, over all its rows that this machine can run. Buffers
 * end at guard pages, outputs have gaps that must stay as they were, lengths are
 * odd. Bounds are stated where they are used. Attention is in test_attention.c.
 */
#include "tests/support/vecops.h"

/* Lengths around every register width and unrolling. */
static const size_t lengths[] = {1,  2,  3,  5,  7,  8,  9,   15,  16,  17,
                                 23, 31, 32, 33, 63, 65, 100, 127, 129, 1000};
enum { N_LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

/* The tests below walk rows, and would pass if there were none. */
static void every_operation_has_rows(void **state)
{
    (void)state;
    for (int op = KERN_OP_rmsnorm; op < KERN_N_OP; op++) {
        size_t at = 0;

        assert_non_null(next_row((enum kern_op)op, &at));
    }
}

/* ---- rmsnorm --------------------------------------------------------------------- */

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

/* ---- layernorm ------------------------------------------------------------------- */

/* A mean that is far from zero costs digits: the bound counts the largest |x|. */
static void layernorm_once(const struct kern_row *row, size_t n, float size, float mean,
                           bool in_place, bool has_bias, uint64_t *seed)
{
    const double eps = (double)1e-5f;
    float *x = floats(n), *w = floats(n), *b = floats(n), *y = in_place ? x : floats(n);
    double *want = malloc(n * sizeof(*want)), sum = 0, squares = 0, top = 0;

    assert_non_null(want);
    fill(x, n, size, seed);
    fill(w, n, 2, seed);
    fill(b, n, 1, seed);
    for (size_t i = 0; i < n; i++) {
        x[i] += mean;
        sum += x[i];
        top = fmax(top, fabs((double)x[i]));
    }
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);

    const double scale = 1 / sqrt(squares / (double)n + eps);

    for (size_t i = 0; i < n; i++)
        want[i] = (x[i] - sum / (double)n) * scale * w[i] + (has_bias ? b[i] : 0.0);
    row->fn.layernorm(y, x, w, has_bias ? b : NULL, n, (float)eps);
    for (size_t i = 0; i < n; i++)
        check(row->name, i, y[i], want[i],
              EPS * ((double)n / 8 + 8) *
                  (fabs(want[i]) + top * scale * fabs((double)w[i]) + 1));
    free(want);
    if (!in_place)
        free_floats(y, n);
    free_floats(x, n);
    free_floats(w, n);
    free_floats(b, n);
}

static void layernorm(void **state)
{
    uint64_t seed = 11;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_layernorm, &at));) {
        for (size_t l = 0; l < N_LENGTHS; l++) {
            layernorm_once(row, lengths[l], 1, 0, false, true, &seed);
            layernorm_once(row, lengths[l], 30, 3, true, true, &seed);
            layernorm_once(row, lengths[l], 3, -10, true, false, &seed);
            layernorm_once(row, lengths[l], 0, 0, false, false, &seed);
        }
        layernorm_once(row, 4096, 30, 1, false, true, &seed);
    }
}

/* ---- rope, add ------------------------------------------------------------------- */

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

static void rope_neox(void **state)
{
    uint64_t seed = 12;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_rope_neox, &at));)
        for (size_t n = 2; n <= 130; n += n < 80 ? 2 : 10) {
            float *v = floats(n), *cs = floats(n), old[256];
            const size_t half = n / 2;

            fill(v, n, 10, &seed);
            memcpy(old, v, n * sizeof(float));
            for (size_t i = 0; i < half; i++) {
                const double angle = 7.0 * (double)test_random_float(&seed);

                cs[i] = (float)cos(angle);
                cs[half + i] = (float)sin(angle);
            }
            row->fn.rope_neox(v, cs, n);
            for (size_t i = 0; i < half; i++) {
                const double a = old[i], b = old[half + i], c = cs[i], s = cs[half + i];
                const double bound = 2 * EPS * (fabs(a) + fabs(b));

                check(row->name, i, v[i], a * c - b * s, bound);
                check(row->name, half + i, v[half + i], a * s + b * c, bound);
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

static void add_scaled(void **state)
{
    uint64_t seed = 33;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_add_scaled, &at));)
        for (size_t l = 0; l < N_LENGTHS; l++) {
            const size_t n = lengths[l];
            const float a = l % 5 ? 3 * test_random_float(&seed) : 0;
            float *y = floats(n), *x = floats(n), old[1000];

            fill(x, n, 3, &seed);
            fill(y, n, 5, &seed);
            memcpy(old, y, n * sizeof(float));
            row->fn.add_scaled(y, x, a, n);
            for (size_t i = 0; i < n; i++) {
                const double term = (double)a * x[i];

                check(row->name, i, y[i], old[i] + term,
                      EPS * (fabs(term) + fabs(old[i] + term)));
            }
            free_floats(y, n);
            free_floats(x, n);
        }
}

/* ---- l2norm ---------------------------------------------------------------------- */

static void l2norm_once(const struct kern_row *row, size_t n, float size, float length,
                        float eps, uint64_t *seed)
{
    float *x = floats(n), old[1000];
    double sum = 0;

    fill(x, n, size, seed);
    memcpy(old, x, n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    row->fn.l2norm(x, n, length, eps);
    for (size_t i = 0; i < n; i++) {
        const double want = old[i] * (double)length / fmax(sqrt(sum), eps);

        check(row->name, i, x[i], want, fabs(want) * EPS * ((double)n / 8 + 8));
    }
    free_floats(x, n);
}

static void l2norm(void **state)
{
    uint64_t seed = 34;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_l2norm, &at));)
        for (size_t l = 0; l < N_LENGTHS; l++) {
            l2norm_once(row, lengths[l], 1, 1, 1e-6f, &seed);
            l2norm_once(row, lengths[l], 300, 0.1f, 1e-6f, &seed);
            l2norm_once(row, lengths[l], 1e-6f, 1, 1e-2f, &seed); /* eps is larger */
            l2norm_once(row, lengths[l], 0, 1, 1e-6f, &seed);     /* zeros stay zero */
        }
}

/* ---- silu_mul -------------------------------------------------------------------- */

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

/* ---- gelu, softcap --------------------------------------------------------------- */

static double gelu_of(double x)
{
    return x / 2 * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

/* An error of a unit of the exponent 2u is one of |2u| units of exp(2u), which counts
 * where the sum with 1 is exp's: on the left. Below 2u = -88 the result is 0. */
static double gelu_bound(double x)
{
    const double u2 = 1.6 * fabs(x) * (1 + 0.045 * x * x);

    return fabs(gelu_of(x)) * EPS * (12 + (x < 0 ? 3 * u2 : 2)) + 1e-35;
}

static void gelu_once(const struct kern_row *row, const float *values, size_t n,
                      bool in_place)
{
    float *x = floats(n), *up = floats(n), *y = in_place ? x : floats(n);

    for (size_t i = 0; i < n; i++) {
        x[i] = values[i];
        up[i] = row->op == KERN_OP_gelu ? 1 : (float)(i % 7) - 3;
    }
    if (row->op == KERN_OP_gelu)
        row->fn.gelu(y, x, n);
    else
        row->fn.gelu_mul(y, x, up, n);
    for (size_t i = 0; i < n; i++)
        check(row->name, i, y[i], gelu_of(values[i]) * up[i],
              gelu_bound(values[i]) * (fabs((double)up[i]) + 0.01));
    if (!in_place)
        free_floats(y, n);
    free_floats(x, n);
    free_floats(up, n);
}

static void gelu(void **state)
{
    static const float edge[] = {0,  -0.0f, 1e-30f, -1e-30f, 1e10f, -1e10f,
                                 20, -20,   -3,     3,       -5.5f, 1e30f};
    static const enum kern_op ops[] = {KERN_OP_gelu, KERN_OP_gelu_mul};
    uint64_t seed = 13;
    float values[1000];

    (void)state;
    for (size_t o = 0; o < 2; o++) {
        size_t at = 0;

        for (const struct kern_row *row; (row = next_row(ops[o], &at));) {
            for (size_t l = 0; l < N_LENGTHS; l++) {
                fill(values, lengths[l], 6, &seed);
                gelu_once(row, values, lengths[l], l % 2);
            }
            gelu_once(row, edge, sizeof edge / sizeof edge[0], false);
        }
    }
}

/* ---- relu_squared, xielu --------------------------------------------------------- */

static void relu_squared_once(const struct kern_row *row, const float *values, size_t n)
{
    float *x = floats(n);

    memcpy(x, values, n * sizeof *x);
    row->fn.relu_squared(x, n);
    for (size_t i = 0; i < n; i++) {
        const double a = fmax((double)values[i], 0);

        check(row->name, i, x[i], a * a, EPS * a * a + 1e-44);
    }
    free_floats(x, n);
}

static void xielu_once(const struct kern_row *row, const float *values, size_t n)
{
    const double pos = 0.75, neg = 1.5, beta = 0.5;
    float *x = floats(n);

    memcpy(x, values, n * sizeof *x);
    row->fn.xielu(x, n, (float)pos, (float)neg, (float)beta);
    for (size_t i = 0; i < n; i++) {
        const double v = (double)values[i], a = fmax(v, 0), b = fmin(v, 0);
        const double terms =
            fmax(fmax(pos * a * a, beta * fabs(v)), neg * fmax(1, fabs(b)));

        check(row->name, i, x[i], pos * a * a + neg * (expm1(b) - b) + beta * v,
              4 * EPS * terms);
    }
    free_floats(x, n);
}

static void relu_squared_and_xielu(void **state)
{
    static const float edge[] = {0,   -0.0f, 1e-30f, -1e-30f, 1e15f, -1e30f, 88,
                                 -88, -3,    3,      -120,    120,   -1e-7f};
    static const enum kern_op ops[] = {KERN_OP_relu_squared, KERN_OP_xielu};
    uint64_t seed = 15;
    float values[1000];

    (void)state;
    for (size_t o = 0; o < 2; o++) {
        size_t at = 0;

        for (const struct kern_row *row; (row = next_row(ops[o], &at));) {
            for (size_t l = 0; l <= N_LENGTHS; l++) {
                const bool ends = l == N_LENGTHS;
                const size_t n = ends ? sizeof edge / sizeof edge[0] : lengths[l];

                fill(values, ends ? 1 : n, 6, &seed);
                if (ends)
                    memcpy(values, edge, sizeof edge);
                if (o == 0)
                    relu_squared_once(row, values, n);
                else
                    xielu_once(row, values, n);
            }
        }
    }
}

static void softcap_once(const struct kern_row *row, const float *values, size_t n,
                         float cap)
{
    float *x = floats(n);

    memcpy(x, values, n * sizeof *x);
    row->fn.softcap(x, n, cap);
    for (size_t i = 0; i < n; i++)
        check(row->name, i, x[i], cap * tanh((double)values[i] / (double)cap),
              4 * EPS * (double)cap);
    free_floats(x, n);
}

static void softcap(void **state)
{
    static const float edge[] = {0, -0.0f, 1e30f, -1e30f, INFINITY, -INFINITY, 3000};
    uint64_t seed = 14;
    size_t at = 0;
    float values[1000];

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_softcap, &at));) {
        for (size_t l = 0; l < N_LENGTHS; l++) {
            fill(values, lengths[l], 100, &seed);
            softcap_once(row, values, lengths[l], 50);
            softcap_once(row, values, lengths[l], 30);
            softcap_once(row, values, lengths[l], 0.5f);
        }
        softcap_once(row, edge, sizeof edge / sizeof edge[0], 30);
    }
}

/* Signs of the matrix: the parity of the bits that row and column have in common. */
static double hadamard_at(const float *values, size_t block, size_t row)
{
    double sum = 0;

    for (size_t i = 0; i < block; i++)
        sum += __builtin_parityll(row & i) ? -(double)values[i] : (double)values[i];
    return sum / sqrt((double)block);
}

static void hadamard_once(const struct kern_row *row, const float *values, size_t n,
                          size_t block)
{
    float *x = floats(n), *scalar = floats(n);

    memcpy(x, values, n * sizeof *x);
    memcpy(scalar, values, n * sizeof *x);
    row->fn.hadamard(x, n);
    kern_best(KERN_OP_hadamard, -1, 1u << KERN_ISA_scalar)->fn.hadamard(scalar, n);
    assert_memory_equal(x, scalar, n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        check(row->name, i, x[i],
              hadamard_at(values + i / block * block, block, i % block),
              8 * EPS * 100 * sqrt((double)block));
    row->fn.hadamard(x, n);
    for (size_t i = 0; i < n; i++)
        check(row->name, i, x[i], (double)values[i], 16 * EPS * 100);
    free_floats(x, n);
    free_floats(scalar, n);
}

static void hadamard(void **state)
{
    static const struct {
        size_t n, block;
    } sizes[] = {{1, 1},     {2, 2},    {48, 16}, {64, 64},   {80, 16},   {96, 32},
                 {128, 128}, {192, 64}, {3, 1},   {256, 256}, {512, 256}, {576, 64}};
    uint64_t seed = 15;
    size_t at = 0;
    float values[1000];

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_hadamard, &at));)
        for (size_t l = 0; l < sizeof sizes / sizeof *sizes; l++) {
            fill(values, sizes[l].n, 100, &seed);
            hadamard_once(row, values, sizes[l].n, sizes[l].block);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_has_rows),
        cmocka_unit_test(rmsnorm),
        cmocka_unit_test(layernorm),
        cmocka_unit_test(rope),
        cmocka_unit_test(rope_neox),
        cmocka_unit_test(add),
        cmocka_unit_test(add_scaled),
        cmocka_unit_test(l2norm),
        cmocka_unit_test(silu_mul),
        cmocka_unit_test(gelu),
        cmocka_unit_test(relu_squared_and_xielu),
        cmocka_unit_test(softcap),
        cmocka_unit_test(hadamard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
