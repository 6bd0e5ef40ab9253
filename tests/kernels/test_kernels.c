/* SPDX-License-Identifier: MIT
 *
 * test_kernels.c - every gemv and gemm row against exact arithmetic
 *
 * One test per row of the registry; panels are made by the `pack` row of the same
 * level or of the next below that has one, which is thereby tested too. The oracle
 * multiplies dequantised weights by dequantised activations in double precision. Every
 * buffer ends at a guard page; weights start at odd addresses, rows, columns and
 * results have gaps. All levels' rows of an operation and format are given the same
 * products in the test of the first of them, since to make one and its oracle takes
 * longer than any row.
 *
 * The bound. A kernel may add up in any order and may work on the quants before
 * their offset is taken off, so its terms are as large as the block's largest
 * weight M. With n float operations on the way of a term, rounding moves the
 * result by at most n * 2^-24 * A, A = sum over blocks of M * sum |x|; n is k for
 * formats that are added up value by value and k / 32 plus a few otherwise.
 *
 * Which rows multiply may be a question of time: tiles must give what other rows give,
 * bit for bit (check_tiles()).
 *
 * SLM_TEST_TRAP: see tests/support/traps/traps.h.
 */
#include "tests/support/blocks.h"

#include <fenv.h>
#include <float.h>

#include "tests/support/traps/traps.h"

/* ---- products -------------------------------------------------------------------- */

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
    double *want;   /* exact results, [n_cols][n_rows] */
    double *bound;  /* how far off each may be */
};

#define UNTOUCHED 12345.678f

enum { TEXT_BYTES = 256 }; /* of what is said of a wrong result */

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
    free(source);
    return p;
}

static void product_free(struct product *p)
{
    buffer_free(p->w);
    buffer_free(p->x);
    buffer_free(p->y);
    free(p->weights);
    free(p->want);
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

/* Fills in p->want and p->bound. */
static void find_wanted(struct product *p)
{
    const size_t k = p->s.k, n_rows = p->s.n_rows, n_results = n_rows * p->s.n_cols;
    const size_t block = p->f.info->block_elems, n_blocks = k / block;
    const double n = block == 1 ? (double)k + 4 : (double)k / 32 + 16;
    double *x = malloc((k + n_blocks) * sizeof(*x)), *sums = x + k;
    float *largest = floats_new(n_rows * n_blocks);

    p->want = malloc(2 * n_results * sizeof(*p->want));
    assert_true(x != NULL && p->want != NULL);
    p->bound = p->want + n_results;
    block_largest(p->weights, n_rows * k, block, largest);
    for (size_t j = 0; j < p->s.n_cols; j++) {
        const char *column = (const char *)p->x.p + j * p->x_stride;

        for (size_t e = 0; e < k; e++)
            x[e] = act_value((int)p->f.info->act, column, k, e);
        block_sums(x, k, block, sums);
        for (size_t i = 0; i < n_rows; i++) {
            p->want[j * n_rows + i] = dot(p->weights + i * k, x, k);
            /* 4: an offset can exceed the largest weight; FLT_MIN: products that
             * underflow */
            p->bound[j * n_rows + i] =
                4 * n * 0x1p-24 * dot(largest + i * n_blocks, sums, n_blocks) +
                (double)k * (double)FLT_MIN;
        }
    }
    free(x);
    free(largest);
}

/* Says in text what is wrong, if anything is. */
static void check_product(const struct kern_row *row, const struct product *p,
                          const char *what, char text[TEXT_BYTES])
{
    const size_t n_rows = p->s.n_rows;

    for (size_t j = 0; j < p->s.n_cols; j++) {
        const float *y = (const float *)p->y.p + j * p->y_stride;

        for (size_t i = 0; i < (j + 1 < p->s.n_cols ? p->y_stride : n_rows); i++) {
            const bool is_gap = i >= n_rows;
            const double want = is_gap ? (double)UNTOUCHED : p->want[j * n_rows + i];
            const double bound = is_gap ? 0 : p->bound[j * n_rows + i];

            if (!(fabs((double)y[i] - want) <= bound)) {
                snprintf(text, TEXT_BYTES,
                         "%s, %s, %zu rows of %zu, %zu columns: y[%zu][%zu] is %.9g, "
                         "should be %.9g within %.3g",
                         row->name, what, n_rows, p->s.k, p->s.n_cols, j, i,
                         (double)y[i], want, bound);
                return;
            }
        }
    }
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
    const struct kern_row *pack =
        kern_best(KERN_OP_pack, row->what, isa_included(row->isa));
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
        const struct kern_prefetch prefetch = {
            mix % 3 * 1000, (enum kern_prefetch_hint)(mix / 3 % KERN_N_PREFETCH),
            mix % 5 < 3 ? 1u << mix % 5 : 0};
        const size_t n_panels = s->n_rows / KERN_PANEL_ROWS;
        const struct buffer w = panels_new(row, p);

        if (is_gemv(row))
            row->fn.gemv_x16(n_panels, s->k, w.p, p->x.p, p->y.p, prefetch);
        else
            row->fn.gemm_x16(n_panels, s->k, w.p, s->n_cols, p->x.p, p->x_stride,
                             p->y.p, p->y_stride, prefetch);
        buffer_free(w);
    } else if (is_gemv(row)) {
        row->fn.gemv(s->n_rows, s->k, p->w.p, p->w_stride, p->x.p, p->y.p);
    } else {
        row->fn.gemm(s->n_rows, s->k, p->w.p, p->w_stride, s->n_cols, p->x.p,
                     p->x_stride, p->y.p, p->y_stride);
    }
}

/* Compares y, made by tiles, with what vectors make: blocks of 32 for the same columns,
 * super-blocks for each column alone, in panels. A difference is a sentence in text. */
static void check_tiles(const struct kern_row *row, const struct product *p,
                        unsigned mix, char text[TEXT_BYTES])
{
    const bool alone = p->f.info->act == KERN_ACT_q8_256;
    const uint32_t mask = isa_included(KERN_ISA_avx512vbmi);
    const struct kern_row *vectors =
        kern_best(!alone ? row->op : KERN_OP_gemv_x16, row->what, mask);
    const struct shape *s = &p->s;
    struct product one = *p;

    if (row->isa != KERN_ISA_amx_int8 || vectors == NULL ||
        (!is_x16(row) && (alone || s->n_cols == 1)))
        return;
    one.y = buffer_new(p->y.bytes);
    for (size_t i = 0; i < p->y.bytes / sizeof(float); i++)
        ((float *)one.y.p)[i] = UNTOUCHED;
    if (alone) {
        const struct buffer w = panels_new(vectors, p);

        for (size_t j = 0; j < s->n_cols; j++)
            vectors->fn.gemv_x16(s->n_rows / KERN_PANEL_ROWS, s->k, w.p,
                                 (const char *)p->x.p + j * p->x_stride,
                                 (float *)one.y.p + j * p->y_stride,
                                 (struct kern_prefetch){0});
        buffer_free(w);
    } else {
        run_row(vectors, &one, mix);
    }
    if (memcmp(one.y.p, p->y.p, p->y.bytes) != 0)
        snprintf(text, TEXT_BYTES,
                 "%s, %zu rows of %zu, %zu columns: not what %s gives", row->name,
                 s->n_rows, s->k, s->n_cols, vectors->name);
    buffer_free(one.y);
}

/* Fills the stack that a row will use with signalling NaNs. */
__attribute__((noinline)) static void spoil_stack(void)
{
    volatile uint32_t below[(1 << 20) / sizeof(uint32_t)];

    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++)
        below[i] = 0x7fa00000;
}

/* A row by tiles must not add floats that nobody wrote, even where it stores no sum of
 * them: what is left on the stack can be any number. */
static void check_stack(const struct kern_row *row, const struct product *p,
                        unsigned mix, char text[TEXT_BYTES])
{
    if (row->isa != KERN_ISA_amx_int8)
        return;
    spoil_stack();
    feclearexcept(FE_INVALID);
    run_row(row, p, mix);
    if (fetestexcept(FE_INVALID))
        snprintf(text, TEXT_BYTES,
                 "%s, %zu rows of %zu, %zu columns: adds what was not set", row->name,
                 p->s.n_rows, p->s.k, p->s.n_cols);
}

/* The rows of one operation and format. */
struct group {
    int op, what;
    const struct kern_row *rows[KERN_N_ISA]; /* [n_rows]: those that are run */
    size_t n_rows;
    bool begun, spoils_stack;
    const struct kern_row *running;     /* where a run ended, if not at its end */
    char wrong[KERN_N_ISA][TEXT_BYTES]; /* what is wrong with rows[i]; empty: nothing */
};

static void run_product(struct group *g, const struct pool *pool, const struct shape *s,
                        unsigned mix, uint64_t *seed)
{
    const enum weight_kind weights = (enum weight_kind)(mix % N_WEIGHT_KINDS);
    const enum act_kind acts = (enum act_kind)(mix / N_WEIGHT_KINDS % N_ACT_KINDS);
    struct product p = product_new(pool, s, weights, acts, seed);
    char what[64];

    snprintf(what, sizeof(what), "weights %d, activations %d", (int)weights, (int)acts);
    find_wanted(&p);
    for (size_t r = 0; r < g->n_rows; r++) {
        if (g->wrong[r][0] != '\0')
            continue;
        for (size_t i = 0; i < p.y.bytes / sizeof(float); i++)
            ((float *)p.y.p)[i] = UNTOUCHED;
        g->running = g->rows[r];
        run_row(g->rows[r], &p, mix);
        check_product(g->rows[r], &p, what, g->wrong[r]);
        if (trap_holds_tiles())
            snprintf(g->wrong[r], TEXT_BYTES, "%s leaves tiles configured",
                     g->rows[r]->name);
        if (g->wrong[r][0] == '\0')
            check_tiles(g->rows[r], &p, mix, g->wrong[r]);
        if (g->wrong[r][0] == '\0' && g->spoils_stack)
            check_stack(g->rows[r], &p, mix, g->wrong[r]);
    }
    product_free(&p);
}

static bool has_tiles(const struct group *g)
{
    for (size_t r = 0; r < g->n_rows; r++)
        if (g->rows[r]->isa == KERN_ISA_amx_int8)
            return true;
    return false;
}

/* See tests/CMakeLists.txt. */
static bool emulator_is_wrong(const struct kern_row *row)
{
    const char *arch = getenv("SLM_TEST_EMULATED_AVX2");

    return arch != NULL && strcmp(arch, "x86") == 0 && row->isa == KERN_ISA_avx2 &&
           (strstr(row->name, "/iq3_") != NULL || strstr(row->name, "/iq1_") != NULL);
}

static bool can_run(const struct kern_row *row)
{
    return (!unusable(row) || trapping()) && !emulator_is_wrong(row);
}

/* Shapes around the edges of tiles (4, 8, 16 rows; 4, 8 columns), of panels (512
 * weights) and of the four panels that are interleaved; every combination of data is
 * met many times as shapes go by. */
static void run_group(struct group *g)
{
    static const size_t in_file[] = {1, 2, 3, 4, 5, 7, 17};
    static const size_t in_panels[] = {16, 32, 48, 80};
    static const size_t blocks[] = {1, 2, 3, 7, 8, 16, 17, 31, 33, 128, 345};
    static const size_t singles[] = {1, 3, 8, 31, 32, 64, 100, 257, 513, 1024, 2049};
    static const size_t cols[] = {1, 2, 3, 4, 5, 6, 7, 8, 13, 18};
    static const size_t tile_cols[] = {3, 9, 10, 11, 12, 14, 15, 16, 17, 31, 32, 33};
    const struct kern_row *row = g->rows[0]; /* what is asked here holds for all */
    const size_t n_cols = is_gemv(row) ? 1 : sizeof(cols) / sizeof(cols[0]);
    const size_t *rows = is_x16(row) ? in_panels : in_file;
    const size_t n_rows = is_x16(row) ? sizeof(in_panels) / sizeof(in_panels[0])
                                      : sizeof(in_file) / sizeof(in_file[0]);
    uint64_t seed = 2;
    const struct pool *pool;
    const unsigned thin = test_thin();
    unsigned mix = 0, shape = 0;

    g->running = row;
    pool = pool_of(row->what);
    for (size_t r = 0; r < n_rows; r++)
        for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++)
            for (size_t c = 0; c < n_cols; c++) {
                const size_t block = pool->f.info->block_elems;
                const struct shape s = {
                    .n_rows = rows[r],
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
                for (int i = 0; i < n_mixes; i++)
                    run_product(g, pool, &s, mix++, &seed);
            }
    /* every pair of data kinds at shapes that touch every tile; of floats, also more
     * rows, a longer row and more columns than are turned into panels at once */
    for (mix = 0; mix < N_WEIGHT_KINDS * N_ACT_KINDS; mix += thin) {
        const bool floats = pool->f.info->block_elems == 1;
        const struct shape s = {
            .n_rows = is_x16(row) ? 80
                      : floats    ? 128 + 32 + 16 + 5
                                  : 17,
            .k = floats ? 128 + 75 : 3 * (size_t)pool->f.info->block_elems,
            .n_cols = is_gemv(row) ? 1
                      : !floats    ? 13
                      : mix % 2    ? 98
                                   : 101,
        };

        run_product(g, pool, &s, mix, &seed);
    }
    /* of quantised formats, more columns than are prepared together, and longer ones;
     * where shapes are thinned fewer rows, which the shapes above have, and one kind of
     * data */
    if (pool->f.info->block_elems > 1 && !is_gemv(row) && thin < THIN_SMALL) {
        const struct shape s = {
            .n_rows = is_x16(row) ? (thin > 1 ? 16 : 48) : (thin > 1 ? 5 : 19),
            .k = pool->f.info->block_elems == 32 ? 75 * 32 : 2304,
            .n_cols = thin > 1 ? 133 : 530,
            .y_pad = 3,
        };

        run_product(g, pool, &s, 0, &seed);
        if (thin == 1)
            run_product(g, pool, &s, N_WEIGHT_KINDS, &seed);
    }
    /* by tiles: columns around the edges of one group and of two; for less than half a
     * group only half of its sums are added up */
    for (size_t c = 0; c < sizeof(tile_cols) / sizeof(tile_cols[0]) && has_tiles(g);
         c++) {
        const size_t block = pool->f.info->block_elems;
        const size_t k = block == 256 ? 256 * (1 + (thin == 1)) : 288;
        const struct shape s = {.n_rows = is_x16(row) ? 32 : 5,
                                .k = (k + block - 1) / block * block,
                                .n_cols = tile_cols[c],
                                .y_pad = 2};

        g->spoils_stack = c == 0;
        run_product(g, pool, &s, mix++, &seed);
    }
    g->spoils_stack = false;
    /* super-blocks by tiles: rows that are too long to be taken as a whole */
    if (has_tiles(g) && pool->f.info->act == KERN_ACT_q8_256) {
        const struct shape s = {
            .n_rows = is_x16(row) ? 16 : 3, .k = 34 * 256, .n_cols = 130, .y_pad = 1};

        run_product(g, pool, &s, 0, &seed);
    }
    g->running = NULL;
}

static struct group *groups;
static size_t n_groups;

static struct group *group_of(const struct kern_row *row)
{
    size_t i = 0;

    while (i < n_groups &&
           (groups[i].op != (int)row->op || groups[i].what != row->what))
        i++;
    return &groups[i];
}

static void product_row(void **state)
{
    const struct kern_row *row = *state;
    struct group *g = group_of(row);

    if (emulator_is_wrong(row))
        print_message("%s: left out, the emulator gives wrong sums\n", row->name);
    if (!can_run(row))
        skip();
    trap_set();
    if (!g->begun) {
        g->begun = true;
        run_group(g);
    }
    if (g->running != NULL)
        fail_msg("%s: the products have not been checked, %s broke off", row->name,
                 g->running->name);
    for (size_t r = 0; r < g->n_rows; r++)
        if (g->rows[r] == row && g->wrong[r][0] != '\0')
            fail_msg("%s", g->wrong[r]);
}

/* ---- one test per row ------------------------------------------------------------ */

static bool is_tested(const struct kern_row *row)
{
    if (trap_leaves_out(row->isa))
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
    groups = calloc(n_rows, sizeof(*groups));
    if (tests == NULL || groups == NULL)
        return 1;
    for (size_t i = 0; i < n_rows; i++)
        if (is_tested(&rows[i])) {
            struct group *g = group_of(&rows[i]);

            if (g == &groups[n_groups]) {
                g->op = (int)rows[i].op;
                g->what = rows[i].what;
                n_groups++;
            }
            if (can_run(&rows[i]))
                g->rows[g->n_rows++] = &rows[i];
            tests[n++] = (struct CMUnitTest){.name = rows[i].name,
                                             .test_func = product_row,
                                             .initial_state = (void *)&rows[i]};
        }
    failed = _cmocka_run_group_tests("kernels", tests, n, NULL, NULL);
    free(tests);
    free(groups);
    free_pools();
    return failed;
}
