/* SPDX-License-Identifier: MIT
 *
 * test_kernels.c - every gemv and gemm row against exact arithmetic
 *
 * One test per row of the registry; panels are made by the `pack` row of the same
 * level, which is thereby tested too. The oracle multiplies dequantised weights by
 * dequantised activations in double precision. Every buffer ends at a guard page;
 * weights start at odd addresses, rows, columns and results have gaps.
 *
 * The bound. A kernel may add up in any order and may work on the quants before
 * their offset is taken off, so its terms are as large as the block's largest
 * weight M. With n float operations on the way of a term, rounding moves the
 * result by at most n * 2^-24 * A, A = sum over blocks of M * sum |x|; n is k for
 * formats that are added up value by value and k / 32 plus a few otherwise.
 *
 * SLM_TEST_TRAP=avxvnni: the rows of that level only, on a CPU without it, whose
 * missing instructions tests/avxvnni_trap.h stands in for.
 */
#include "tests/acts.h"

#include <float.h>
#include <math.h>

#include "kernels/kernels.h"
#if defined(__x86_64__)
#include "tests/avxvnni_trap.h"
#endif

enum weight_kind {
    WEIGHTS_RANDOM,      /* quantised random floats, one block in eight large */
    WEIGHTS_BYTES,       /* any bytes that give finite weights */
    WEIGHTS_MAXIMAL,     /* all bits set, as far as weights stay finite */
    WEIGHTS_ALTERNATING, /* +a -a +a ... */
    WEIGHTS_LARGE,       /* near the largest f16 */
    WEIGHTS_TINY,        /* scales that are subnormal as f16 */
    WEIGHTS_ZERO,
    N_WEIGHT_KINDS
};

/* ---- weights ------------------------------------------------------------------ */

struct format {
    enum kern_format id;
    const struct kern_format_info *info;
    kern_quantize_fn *quantize;
    kern_dequantize_fn *dequantize;
};

static struct format format_of(int id)
{
    const uint32_t scalar = 1u << KERN_ISA_scalar;

    return (struct format){
        .id = (enum kern_format)id,
        .info = kern_format_info((enum kern_format)id),
        .quantize = kern_best(KERN_OP_quantize, id, scalar)->fn.quantize,
        .dequantize = kern_best(KERN_OP_dequantize, id, scalar)->fn.dequantize,
    };
}

/* Whether the block gives weights that products with activations keep finite. */
static bool block_is_sane(const struct format *f, const void *block)
{
    float w[256];

    assert_true(f->info->block_elems <= 256);
    f->dequantize(block, w, f->info->block_elems);
    for (size_t i = 0; i < f->info->block_elems; i++)
        if (!(fabsf(w[i]) < 1e20f))
            return false;
    return true;
}

static void random_block(const struct format *f, uint8_t *block, uint64_t *seed)
{
    do
        for (size_t i = 0; i < f->info->block_bytes; i++)
            block[i] = (uint8_t)test_random(seed);
    while (!block_is_sane(f, block));
}

/* Each byte becomes 0xff, or 0x7b (the upper byte of the largest f16), if the
 * weights stay finite with it. */
static void maximal_block(const struct format *f, uint8_t *block)
{
    static const uint8_t wanted[] = {0xff, 0x7b, 0};

    memset(block, 0, f->info->block_bytes);
    for (size_t i = 0; i < f->info->block_bytes; i++)
        for (size_t v = 0; v < sizeof(wanted); v++) {
            block[i] = wanted[v];
            if (block_is_sane(f, block))
                break;
        }
}

static float source_weight(enum weight_kind kind, size_t i, uint64_t *seed)
{
    const float r = test_random_float(seed);

    switch (kind) {
    case WEIGHTS_ALTERNATING:
        return i % 2 == 0 ? 1.5f : -1.5f;
    case WEIGHTS_LARGE:
        return r * 6e4f;
    case WEIGHTS_TINY:
        return r * 4e-6f;
    default:
        return i / 32 % 8 == 5 ? r * 100 : r;
    }
}

/* Blocks of every kind, made once per format: rows are put together from them,
 * since some quantisers are slow. */
struct pool {
    struct format f;
    size_t n;                        /* blocks of a kind */
    uint8_t *blocks[N_WEIGHT_KINDS]; /* n each */
};

static void fill_pool(const struct pool *pool, enum weight_kind kind, uint8_t *blocks,
                      uint64_t *seed)
{
    const struct format *f = &pool->f;
    const size_t block_bytes = f->info->block_bytes;
    const size_t n = pool->n * (size_t)f->info->block_elems;

    if (kind == WEIGHTS_ZERO) {
        memset(blocks, 0, pool->n * block_bytes);
    } else if (kind == WEIGHTS_BYTES) {
        for (size_t b = 0; b < pool->n; b++)
            random_block(f, blocks + b * block_bytes, seed);
    } else if (kind == WEIGHTS_MAXIMAL) {
        maximal_block(f, blocks);
        for (size_t b = 1; b < pool->n; b++)
            memcpy(blocks + b * block_bytes, blocks, block_bytes);
    } else {
        float *source = floats_new(n);

        for (size_t i = 0; i < n; i++)
            source[i] = source_weight(kind, i, seed);
        f->quantize(source, NULL, blocks, n);
        free(source);
    }
}

static struct pool pools[KERN_N_FMT];

static const struct pool *pool_of(int format)
{
    struct pool *pool = &pools[format];
    uint64_t seed = 1;

    if (pool->f.info != NULL)
        return pool;
    pool->f = format_of(format);
    pool->n = test_thin() > 1 ? 16 : 64;
    for (int kind = 0; kind < N_WEIGHT_KINDS; kind++) {
        pool->blocks[kind] = malloc(pool->n * (size_t)pool->f.info->block_bytes);
        assert_non_null(pool->blocks[kind]);
        fill_pool(pool, (enum weight_kind)kind, pool->blocks[kind], &seed);
    }
    return pool;
}

static void free_pools(void)
{
    for (int format = 0; format < KERN_N_FMT; format++)
        for (int kind = 0; kind < N_WEIGHT_KINDS; kind++)
            free(pools[format].blocks[kind]);
}

/* A row of blocks drawn from the pool. A single value's neighbours matter where
 * signs alternate, so there the order is kept. */
static void fill_row(const struct pool *pool, enum weight_kind kind, uint8_t *row,
                     size_t k, uint64_t *seed)
{
    const size_t bytes = pool->f.info->block_bytes;

    for (size_t b = 0; b < k / pool->f.info->block_elems; b++) {
        const size_t from = kind == WEIGHTS_ALTERNATING ? b : test_random(seed);

        memcpy(row + b * bytes, pool->blocks[kind] + from % pool->n * bytes, bytes);
    }
}

/* ---- products ----------------------------------------------------------------- */

struct shape {
    size_t n_rows, k, n_cols;
    size_t w_pad, x_pad, y_pad; /* gaps: bytes, bytes, floats */
};

struct product {
    struct format f;
    struct shape s;
    struct buffer w, x, y;
    size_t w_stride, x_stride, y_stride;
    float *weights; /* dequantised, [n_rows][k] */
};

#define UNTOUCHED 12345.678f

static struct product product_new(const struct pool *pool, const struct shape *s,
                                  enum weight_kind weights, enum act_kind acts,
                                  uint64_t *seed)
{
    const struct format *f = &pool->f;
    const size_t row_bytes = kern_format_bytes(f->id, s->k);
    const size_t column_bytes = kern_act_bytes(f->info->act, s->k);
    const struct kern_row *quantize =
        kern_best(KERN_OP_quantize_act, (int)f->info->act, 1u << KERN_ISA_scalar);
    struct product p = {.f = *f, .s = *s};
    float *source = floats_new(s->k);

    p.w_stride = row_bytes + s->w_pad;
    p.x_stride = column_bytes + s->x_pad;
    p.y_stride = s->n_rows + s->y_pad;
    p.w = buffer_new((s->n_rows - 1) * p.w_stride + row_bytes);
    p.x = buffer_new((s->n_cols - 1) * p.x_stride + column_bytes);
    p.y = buffer_new(((s->n_cols - 1) * p.y_stride + s->n_rows) * sizeof(float));
    p.weights = floats_new(s->n_rows * s->k);

    memset(p.w.p, 0xff, p.w.bytes);
    memset(p.x.p, 0xff, p.x.bytes); /* padding and gaps: not numbers */
    for (size_t i = 0; i < s->n_rows; i++) {
        uint8_t *row = (uint8_t *)p.w.p + i * p.w_stride;

        fill_row(pool, weights, row, s->k, seed);
        f->dequantize(row, p.weights + i * s->k, s->k);
    }
    for (size_t j = 0; j < s->n_cols; j++) {
        fill_column(acts, source, s->k, seed);
        quantize->fn.quantize_act(source, (char *)p.x.p + j * p.x_stride, s->k);
    }
    for (size_t i = 0; i < p.y.bytes / sizeof(float); i++)
        ((float *)p.y.p)[i] = UNTOUCHED;
    free(source);
    return p;
}

static void product_free(struct product *p)
{
    buffer_free(p->w);
    buffer_free(p->x);
    buffer_free(p->y);
    free(p->weights);
}

/* Four sums at a time: double precision is exact enough in any order. */
static double dot(const float *w, const double *x, size_t k)
{
    double sum[4] = {0};
    size_t e = 0;

    for (; e + 4 <= k; e += 4)
        for (size_t i = 0; i < 4; i++)
            sum[i] += (double)w[e + i] * x[e + i];
    for (; e < k; e++)
        sum[0] += (double)w[e] * x[e];
    return sum[0] + sum[1] + sum[2] + sum[3];
}

/* The sums of magnitudes, or the largest magnitudes, of blocks of v. */
static void block_sums(const double *v, size_t k, size_t block, double *out)
{
    for (size_t b = 0; b < k; b += block) {
        double sum = 0;

        for (size_t e = b; e < b + block; e++)
            sum += fabs(v[e]);
        out[b / block] = sum;
    }
}

static void block_largest(const float *v, size_t k, size_t block, float *out)
{
    for (size_t b = 0; b < k; b += block) {
        float largest = 0;

        for (size_t e = b; e < b + block; e++)
            largest = fabsf(v[e]) > largest ? fabsf(v[e]) : largest;
        out[b / block] = largest;
    }
}

static void check_product(const struct kern_row *row, const struct product *p,
                          const char *what)
{
    const size_t k = p->s.k, block = p->f.info->block_elems, n_blocks = k / block;
    const double n = block == 1 ? (double)k + 4 : (double)k / 32 + 16;
    const float *y = p->y.p;
    double *x = malloc((k + n_blocks) * sizeof(*x)), *sums = x + k;
    float *largest = floats_new(p->s.n_rows * n_blocks);

    assert_non_null(x);
    block_largest(p->weights, p->s.n_rows * k, block, largest);
    for (size_t j = 0; j < p->s.n_cols; j++) {
        const char *column = (const char *)p->x.p + j * p->x_stride;

        for (size_t e = 0; e < k; e++)
            x[e] = act_value((int)p->f.info->act, column, k, e);
        block_sums(x, k, block, sums);
        for (size_t i = 0; i < p->y_stride; i++) {
            double bound, want, got;

            if (i >= p->s.n_rows) {
                if (j + 1 < p->s.n_cols)
                    assert_true(y[j * p->y_stride + i] == UNTOUCHED);
                continue;
            }
            got = (double)y[j * p->y_stride + i];
            want = dot(p->weights + i * k, x, k);
            /* 4: an offset can exceed the largest weight; FLT_MIN: products that
             * underflow */
            bound = 4 * n * 0x1p-24 * dot(largest + i * n_blocks, sums, n_blocks) +
                    (double)k * (double)FLT_MIN;
            if (!(fabs(got - want) <= bound))
                fail_msg("%s, %s, %zu rows of %zu, %zu columns: y[%zu][%zu] is %.9g, "
                         "should be %.9g within %.3g",
                         row->name, what, p->s.n_rows, k, p->s.n_cols, j, i, got, want,
                         bound);
        }
    }
    free(x);
    free(largest);
}

static bool is_gemv(const struct kern_row *row)
{
    return row->op == KERN_OP_gemv || row->op == KERN_OP_gemv_x16;
}

static bool is_x16(const struct kern_row *row)
{
    return row->op == KERN_OP_gemv_x16 || row->op == KERN_OP_gemm_x16;
}

/* The rows of p, a multiple of 16, as panels. */
static struct buffer panels_new(const struct kern_row *row, const struct product *p)
{
    const struct kern_row *pack = kern_best(KERN_OP_pack, row->what, 1u << row->isa);
    const size_t row_bytes = kern_format_bytes(p->f.id, p->s.k);
    struct buffer panels = buffer_new(p->s.n_rows * row_bytes);

    assert_non_null(pack);
    for (size_t i = 0; i < p->s.n_rows; i += KERN_PANEL_ROWS)
        pack->fn.pack(p->s.k, (const char *)p->w.p + i * p->w_stride, p->w_stride,
                      (char *)panels.p + i * row_bytes);
    return panels;
}

static void run_row(const struct kern_row *row, const struct product *p, unsigned mix)
{
    const struct shape *s = &p->s;

    if (is_x16(row)) {
        const size_t ahead = mix % 3 * 1000, n_panels = s->n_rows / KERN_PANEL_ROWS;
        const struct buffer w = panels_new(row, p);

        if (is_gemv(row))
            row->fn.gemv_x16(n_panels, s->k, w.p, p->x.p, p->y.p, ahead);
        else
            row->fn.gemm_x16(n_panels, s->k, w.p, s->n_cols, p->x.p, p->x_stride,
                             p->y.p, p->y_stride, ahead);
        buffer_free(w);
    } else if (is_gemv(row)) {
        row->fn.gemv(s->n_rows, s->k, p->w.p, p->w_stride, p->x.p, p->y.p);
    } else {
        row->fn.gemm(s->n_rows, s->k, p->w.p, p->w_stride, s->n_cols, p->x.p,
                     p->x_stride, p->y.p, p->y_stride);
    }
}

static void run_product(const struct kern_row *row, const struct pool *pool,
                        const struct shape *s, unsigned mix, uint64_t *seed)
{
    const enum weight_kind weights = (enum weight_kind)(mix % N_WEIGHT_KINDS);
    const enum act_kind acts = (enum act_kind)(mix / N_WEIGHT_KINDS % N_ACT_KINDS);
    struct product p = product_new(pool, s, weights, acts, seed);
    char what[64];

    snprintf(what, sizeof(what), "weights %d, activations %d", (int)weights, (int)acts);
    run_row(row, &p, mix);
    check_product(row, &p, what);
    product_free(&p);
}

static bool trapping(void)
{
    return getenv("SLM_TEST_TRAP") != NULL;
}

/* See tests/CMakeLists.txt. */
static bool emulator_is_wrong(const struct kern_row *row)
{
    const char *arch = getenv("SLM_TEST_EMULATED_AVX2");

    if (arch == NULL || strcmp(arch, "x86") != 0 || row->isa != KERN_ISA_avx2 ||
        (strstr(row->name, "/iq3_") == NULL && strstr(row->name, "/iq1_") == NULL))
        return false;
    print_message("%s: left out, the emulator gives wrong sums\n", row->name);
    return true;
}

/* Shapes around the edges of tiles (4, 8, 16 rows; 4, 8 columns) and panels (512
 * weights); every combination of data is met many times as shapes go by. */
static void product_row(void **state)
{
    static const size_t rows[] = {1, 2, 3, 4, 5, 7, 17};
    static const size_t blocks[] = {1, 2, 3, 7, 8, 16, 17, 31, 33, 128, 345};
    static const size_t singles[] = {1, 3, 8, 31, 32, 64, 100, 257, 513, 1024, 2049};
    static const size_t cols[] = {1, 2, 3, 4, 5, 6, 7, 8, 13};
    const struct kern_row *row = *state;
    const size_t n_cols = is_gemv(row) ? 1 : sizeof(cols) / sizeof(cols[0]);
    const size_t multiple = is_x16(row) ? KERN_PANEL_ROWS : 1;
    uint64_t seed = 2;
    const struct pool *pool;
    const unsigned thin = test_thin();
    unsigned mix = 0, shape = 0;

    if ((unusable(row) && !trapping()) || emulator_is_wrong(row))
        skip();
#if defined(__x86_64__)
    if (trapping())
        avxvnni_trap(); /* here: cmocka sets handlers of its own before every test */
#endif
    pool = pool_of(row->what);
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
        for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++)
            for (size_t c = 0; c < n_cols; c++) {
                const size_t block = pool->f.info->block_elems;
                const struct shape s = {
                    .n_rows = (rows[r] + multiple - 1) / multiple * multiple,
                    .k = block == 1 ? singles[b] : blocks[b] * block,
                    .n_cols = cols[c],
                    .w_pad = mix % 4 * 3,
                    .x_pad = mix % 3 * 4,
                    .y_pad = mix % 2 * 5,
                };
                const int n_mixes = is_gemv(row) ? 8 : 1;

                if (shape++ % thin != 0)
                    continue;
                if (s.n_rows * s.k * s.n_cols > 200000 &&
                    (rows[r] < 17 || cols[c] != 5 || blocks[b] > 33))
                    continue;
                if (is_x16(row) && rows[r] != 1 && rows[r] != 17)
                    continue; /* one panel and two */
                for (int i = 0; i < n_mixes; i++)
                    run_product(row, pool, &s, mix++, &seed);
            }
    /* every pair of data kinds at one shape that touches every tile */
    for (mix = 0; mix < N_WEIGHT_KINDS * N_ACT_KINDS; mix += thin) {
        const struct shape s = {
            .n_rows = is_x16(row) ? 32 : 17,
            .k = pool->f.info->block_elems == 1 ? 75
                                                : 3 * (size_t)pool->f.info->block_elems,
            .n_cols = is_gemv(row) ? 1 : 13,
        };

        run_product(row, pool, &s, mix, &seed);
    }
}

/* ---- one test per row ------------------------------------------------------- */

/* Why SLM_TEST_TRAP is of no use here, or NULL. */
static const char *trap_refused(void)
{
#if defined(__x86_64__)
    if (strcmp(getenv("SLM_TEST_TRAP"), "avxvnni") != 0)
        return "the only trap is avxvnni";
    if ((isa_usable() >> KERN_ISA_avx2 & 1) == 0)
        return "this CPU lacks AVX2";
    if ((isa_usable() >> KERN_ISA_avxvnni & 1) != 0)
        return "this CPU has AVX-VNNI, test_kernels runs its rows";
    return NULL;
#else
    return "the only trap is for x86";
#endif
}

static bool is_tested(const struct kern_row *row)
{
    if (trapping() && row->isa != KERN_ISA_avxvnni)
        return false;
    return is_gemv(row) || row->op == KERN_OP_gemm || is_x16(row);
}

int main(void)
{
    const char *why = trapping() ? trap_refused() : NULL;
    size_t n_rows, n = 0;
    const struct kern_row *rows = kern_rows(&n_rows);
    struct CMUnitTest *tests;
    int failed;

    if (why != NULL) {
        printf("skipped: %s\n", why);
        return 0;
    }
    tests = calloc(n_rows, sizeof(*tests));
    if (tests == NULL)
        return 1;
    for (size_t i = 0; i < n_rows; i++)
        if (is_tested(&rows[i]))
            tests[n++] = (struct CMUnitTest){.name = rows[i].name,
                                             .test_func = product_row,
                                             .initial_state = (void *)&rows[i]};
    failed = _cmocka_run_group_tests("kernels", tests, n, NULL, NULL);
    free(tests);
    free_pools();
    return failed;
}
