/* SPDX-License-Identifier: MIT
 *
 * kernel_product.c - weights, activations, and whether a product of them is right
 *
 * The oracle multiplies dequantised weights with dequantised activations in double
 * precision, so its tolerance covers only the rounding of the float sums, and of
 * weights where they are requantised.
 */
#include "harness/measure/kernels/kernel_parts.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "kernels/activations/activations.h"

#define SCALAR     (1u << KERN_ISA_scalar)
#define CHECK_K    768
#define CHECK_ROWS 19 /* not a multiple of any kernel's rows per step */

void *parts_alloc(size_t bytes)
{
    const size_t whole = KERN_ALIGN64(bytes ? bytes : 1);
    void *p = aligned_alloc(64, whole);

    if (p)
        memset(p, 0, whole);
    return p;
}

/* The sum of four uniform values of 16 bits: its standard deviation is
 * sqrt(4 / 12) * 65536 = 37837. */
void parts_fill_random(float *v, size_t n, float deviation)
{
    uint64_t state = 1;

    for (size_t i = 0; i < n; i++) {
        const uint64_t r = random_bits(&state);
        const int sum = (int)(r & 0xffff) + (int)(r >> 16 & 0xffff) +
                        (int)(r >> 32 & 0xffff) + (int)(r >> 48);

        v[i] = (float)(sum - 2 * 65535) * (deviation / 37837);
    }
}

void *parts_weights(enum kern_format format, size_t n)
{
    void *blocks = parts_alloc(kern_format_bytes(format, n));
    float *plain = parts_alloc(n * sizeof *plain);

    if (blocks && plain) {
        parts_fill_random(plain, n, 0.05f);
        kern_best(KERN_OP_quantize, format, SCALAR)
            ->fn.quantize(plain, NULL, blocks, n);
    } else {
        free(blocks);
        blocks = NULL;
    }
    free(plain);
    return blocks;
}

void *parts_panels(enum kern_format format, uint32_t isa_mask, const void *rows,
                   size_t n_rows, size_t k)
{
    const size_t stride = kern_format_bytes(format, k);
    const struct kern_row *row = kern_best(KERN_OP_pack, format, isa_mask);
    char *panels = parts_alloc(n_rows * stride);

    assert(row && n_rows % KERN_PANEL_ROWS == 0);
    for (size_t i = 0; panels && i < n_rows; i += KERN_PANEL_ROWS)
        row->fn.pack(k, (const char *)rows + i * stride, stride, panels + i * stride);
    return panels;
}

bool parts_columns(struct columns *x, enum kern_act act, size_t k, size_t n)
{
    float *plain = parts_alloc(k * n * sizeof *plain);

    x->stride = kern_act_bytes(act, k);
    x->data = parts_alloc(x->stride * n);
    if (plain && x->data) {
        parts_fill_random(plain, k * n, 1);
        for (size_t j = 0; j < n; j++)
            kern_best(KERN_OP_quantize_act, act, SCALAR)
                ->fn.quantize_act(plain + j * k, x->data + j * x->stride, k);
    } else {
        free(x->data);
        x->data = NULL;
    }
    free(plain);
    return x->data != NULL;
}

void parts_product(const struct product_call *p, const void *w, size_t begin,
                   size_t end)
{
    const char *first = (const char *)w + begin * p->w_stride;

    switch (p->row->op) {
    case KERN_OP_gemv:
        p->row->fn.gemv(end - begin, p->k, first, p->w_stride, p->x->data,
                        p->y + begin);
        break;
    case KERN_OP_gemm:
        p->row->fn.gemm(end - begin, p->k, first, p->w_stride, p->n_x, p->x->data,
                        p->x->stride, p->y + begin, p->y_stride);
        break;
    case KERN_OP_gemv_x16:
        p->row->fn.gemv_x16((end - begin) / KERN_PANEL_ROWS, p->k, first, p->x->data,
                            p->y + begin, p->prefetch);
        break;
    case KERN_OP_gemm_x16:
        p->row->fn.gemm_x16((end - begin) / KERN_PANEL_ROWS, p->k, first, p->n_x,
                            p->x->data, p->x->stride, p->y + begin, p->y_stride,
                            p->prefetch);
        break;
    case KERN_OP_gemm_int8:
        p->row->fn.gemm_int8(end - begin, p->k, first, p->w_stride, p->n_x, p->x->data,
                             p->x->stride, p->y + begin, p->y_stride);
        break;
    case KERN_OP_gemm_x16_int8:
        p->row->fn.gemm_x16_int8((end - begin) / KERN_PANEL_ROWS, p->k, first, p->n_x,
                                 p->x->data, p->x->stride, p->y + begin, p->y_stride,
                                 p->prefetch);
        break;
    default:
        assert(!"an operation that kernel_product() has must be called here");
    }
}

/* ---- the oracle ------------------------------------------------------------------ */

/* Value i of a column; layouts as in activations.h. */
static double act_value(enum kern_act act, const uint8_t *column, size_t k, size_t i)
{
    switch (act) {
    case KERN_ACT_q8_32:
        return (double)act_q8_32_d(column, k)[i / 32] * act_q(column)[i];
    case KERN_ACT_q8_256:
        return (double)act_q8_256_d(column, k)[i / 256] * act_q(column)[i];
    case KERN_ACT_f32:
        return ((const float *)(const void *)column)[i];
    case KERN_N_ACT:
        break;
    }
    return NAN; /* never right: a new layout needs its line above */
}

/* How far products of requantised weights may be off besides. */
static double requantised_off(const float *plain, const double *x, size_t k)
{
    double off = 0;

    for (size_t b = 0; b < k; b += 256) {
        double largest = 0, sum = 0;

        for (size_t e = b; e < b + 256; e++) {
            largest = fmax(largest, fabs((double)plain[e]));
            sum += fabs(x[e]);
        }
        off += KERN_INT8_OFF * largest / 127 * sum;
    }
    return off;
}

/* Row i against column j; k roundings of 2^-24 each at most. */
static bool is_right(const float *plain, const double *x, size_t k, float y, double off)
{
    double dot = 0, terms = 0;

    for (size_t e = 0; e < k; e++) {
        const double term = (double)plain[e] * x[e];

        dot += term;
        terms += fabs(term);
    }
    return fabs(y - dot) <= terms * (double)k * 0x1p-24 + off;
}

static bool all_right(const struct product_call *p, enum kern_act act, size_t n_rows,
                      const float *plain, size_t *bad_row, size_t *bad_column)
{
    double x[CHECK_K];

    for (size_t j = 0; j < p->n_x; j++) {
        for (size_t e = 0; e < p->k; e++)
            x[e] = act_value(act, p->x->data + j * p->x->stride, p->k, e);
        for (size_t i = 0; i < n_rows; i++) {
            const float *w = plain + i * p->k;
            const double off = kernel_product(p->row->op)->requantises
                                   ? requantised_off(w, x, p->k)
                                   : 0;

            if (!is_right(w, x, p->k, p->y[j * p->y_stride + i], off)) {
                *bad_row = i;
                *bad_column = j;
                return false;
            }
        }
    }
    return true;
}

enum status parts_check_product(const struct kern_row *row, size_t n_x,
                                double *weight_ns, struct err *err)
{
    const enum kern_format format = (enum kern_format)row->what;
    const enum kern_act act = kernel_product_act(kernel_product(row->op), format);
    const bool packed = kernel_product(row->op)->packed;
    const size_t n_rows = packed ? 3 * KERN_PANEL_ROWS : CHECK_ROWS;
    void *w = parts_weights(format, n_rows * CHECK_K);
    void *panels =
        packed && w ? parts_panels(format, isa_included(row->isa), w, n_rows, CHECK_K)
                    : NULL;
    float *plain = parts_alloc(n_rows * CHECK_K * sizeof *plain);
    struct columns x = {0, NULL};
    struct product_call p = {.row = row,
                             .k = CHECK_K,
                             .w_stride = kern_format_bytes(format, CHECK_K),
                             .n_x = n_x,
                             .y_stride = n_rows,
                             .x = &x,
                             .y = parts_alloc(n_rows * n_x * sizeof(float))};
    enum status st = ST_OK;
    size_t i = 0, j = 0;

    if (!w || !plain || !p.y || (packed && !panels) ||
        !parts_columns(&x, act, CHECK_K, n_x)) {
        st = err_set(err, ST_NO_MEMORY, "no memory to check %s", row->name);
    } else {
        kern_best(KERN_OP_dequantize, format, SCALAR)
            ->fn.dequantize(w, plain, n_rows * CHECK_K);
        const uint64_t begin = clock_ns();
        parts_product(&p, packed ? panels : w, 0, n_rows);
        if (weight_ns)
            *weight_ns = (double)(clock_ns() - begin) / (double)(n_rows * CHECK_K);
        if (!all_right(&p, act, n_rows, plain, &i, &j))
            st = err_set(
                err, ST_CHECK,
                "wrong result in row %zu of %zu, column %zu of %zu, so it is not timed",
                i, n_rows, j, n_x);
    }
    free(w);
    free(panels);
    free(plain);
    free(p.y);
    free(x.data);
    return st;
}
