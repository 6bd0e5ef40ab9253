/* SPDX-License-Identifier: MIT
 *
 * kernel_operation.c - conversions and vector operations, which are no products
 *
 * Operations in place start from the same values at the first call only; their time
 * does not depend on the values.
 */
#include "harness/measure/kernels/kernel_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCALAR   (1u << KERN_ISA_scalar)
#define HEAD_DIM 128
#define N_HEADS  8
#define N_TAPS   4 /* of a convolution */
#define CHECK_N  256

/* Lengths may be 0. */
static bool alloc_all(struct operation_call *o, size_t out_bytes, size_t n_a,
                      size_t n_b)
{
    o->out_bytes = out_bytes;
    o->out = parts_alloc(out_bytes);
    o->a = parts_alloc(n_a * sizeof(float));
    o->b = parts_alloc(n_b * sizeof(float));
    if (!o->out || !o->a || !o->b)
        return false;
    parts_fill_random(o->a, n_a, 1);
    parts_fill_random(o->b, n_b, 1);
    return true;
}

static bool open_conversion(struct operation_call *o)
{
    const enum kern_format format = (enum kern_format)o->row->what;
    const size_t n = o->n, plain = n * sizeof(float);
    size_t bytes;

    switch (o->row->op) {
    case KERN_OP_quantize_act:
        bytes = kern_act_bytes((enum kern_act)o->row->what, n);
        o->cost = (struct kernel_cost){(double)(plain + bytes), (double)n, 0};
        return alloc_all(o, bytes, n, 0);
    case KERN_OP_quantize:
        bytes = kern_format_bytes(format, n);
        o->cost = (struct kernel_cost){(double)(plain + bytes), (double)n, (double)n};
        return alloc_all(o, bytes, n, 0);
    case KERN_OP_to_kv:
        bytes = kern_format_bytes(kern_kv_format((enum kern_kv)o->row->what), n);
        o->cost = (struct kernel_cost){(double)(plain + bytes), (double)n, (double)n};
        return alloc_all(o, bytes, n, 0);
    case KERN_OP_pack:
        bytes = KERN_PANEL_ROWS * kern_format_bytes(format, n);
        o->cost =
            (struct kernel_cost){2.0 * (double)bytes, 0, (double)(KERN_PANEL_ROWS * n)};
        o->blocks = parts_weights(format, KERN_PANEL_ROWS * n);
        return o->blocks && alloc_all(o, bytes, 0, 0);
    case KERN_OP_unpack: /* of a panel, 16 rows of it */
        bytes = kern_format_bytes(format, n);
        o->cost = (struct kernel_cost){2.0 * (double)bytes, 0, (double)n};
        o->blocks = parts_weights(format, KERN_PANEL_ROWS * n);
        return o->blocks && alloc_all(o, bytes, 0, 0);
    default: /* dequantize */
        bytes = kern_format_bytes(format, n);
        o->cost = (struct kernel_cost){(double)(plain + bytes), (double)n, (double)n};
        o->out_is_floats = true;
        o->blocks = parts_weights(format, n);
        return o->blocks && alloc_all(o, plain, 0, 0);
    }
}

/* Blocks as a file has them, each a scale and its quants, to panels as attention has
 * them: quants and scales of 16 positions apart. Which quants go together does not
 * matter here. */
static bool spread_scales(void *blocks, enum kern_format format, size_t n)
{
    const size_t block = kern_format_info(format)->block_bytes;
    const size_t body = block - sizeof(uint16_t), panel = KERN_PANEL_ROWS * HEAD_DIM;
    const size_t n_blocks = HEAD_DIM / kern_format_info(format)->block_elems;
    const size_t bodies = KERN_PANEL_ROWS * body;
    const size_t scales = KERN_PANEL_ROWS * sizeof(uint16_t);
    const size_t panel_bytes = kern_format_bytes(format, panel);
    char *copy = malloc(panel_bytes);

    for (size_t p = 0; copy && p < n / panel; p++) {
        char *to = (char *)blocks + p * panel_bytes;

        memcpy(copy, to, panel_bytes);
        for (size_t i = 0; i < n_blocks * KERN_PANEL_ROWS; i++) {
            const size_t b = i / KERN_PANEL_ROWS, row = i % KERN_PANEL_ROWS;
            const char *from = copy + i * block;

            memcpy(to + kern_panel_body_at(bodies, scales, n_blocks, b) + row * body,
                   from + sizeof(uint16_t), body);
            memcpy(to + kern_panel_scales_at(bodies, scales, b) +
                       row * sizeof(uint16_t),
                   from, sizeof(uint16_t));
        }
    }
    const bool ok = copy != NULL;

    free(copy);
    return ok;
}

/* One KV head of o->n positions, random, and the weights of a flat softmax. Keys and
 * values of a type take the same bytes, so that one cache stands for either. */
static bool open_attention(struct operation_call *o)
{
    const enum kern_format format = kern_kv_format((enum kern_kv)o->row->what);
    const size_t n_cache = o->n * HEAD_DIM;
    const bool is_dot = o->row->op == KERN_OP_attn_dot;
    const bool is_float = kern_format_info(format)->act == KERN_ACT_f32;
    const size_t n_query = N_HEADS * HEAD_DIM, n_score = N_HEADS * o->n;
    float *plain;

    o->out_is_floats = true;
    o->cost = (struct kernel_cost){(double)kern_format_bytes(format, n_cache),
                                   2.0 * N_HEADS * (double)n_cache, 0};
    if (!alloc_all(o, (is_dot ? n_score : n_query) * sizeof(float),
                   is_dot ? n_query : n_score, 0) ||
        !(o->blocks = parts_weights(format, n_cache)))
        return false;
    if (!is_float && !spread_scales(o->blocks, format, n_cache))
        return false;
    if (is_dot && !is_float) {
        plain = o->a;
        o->a = parts_alloc(N_HEADS * kern_act_bytes(KERN_ACT_q8_32, HEAD_DIM));
        for (size_t q = 0; o->a && q < N_HEADS; q++)
            kern_best(KERN_OP_quantize_act, KERN_ACT_q8_32, SCALAR)
                ->fn.quantize_act(plain + q * HEAD_DIM,
                                  (char *)o->a +
                                      q * kern_act_bytes(KERN_ACT_q8_32, HEAD_DIM),
                                  HEAD_DIM);
        free(plain);
        return o->a != NULL;
    }
    for (size_t i = 0; !is_dot && i < n_score; i++)
        o->a[i] = 1.0f / (float)o->n;
    return true;
}

/* Columns of n floats that are read or written, and operations on each element. */
static void vector_work(enum kern_op op, double *columns, double *ops)
{
    *columns = 3;
    *ops = 4;
    if (op == KERN_OP_attn_weigh || op == KERN_OP_gelu || op == KERN_OP_softcap ||
        op == KERN_OP_l2norm || op == KERN_OP_relu_squared || op == KERN_OP_xielu ||
        op == KERN_OP_hadamard)
        *columns = 2;
    else if (op == KERN_OP_layernorm)
        *columns = 4;
    if (op == KERN_OP_rope || op == KERN_OP_rope_neox)
        *ops = 3;
    else if (op == KERN_OP_hadamard)
        *ops = 8; /* log2 of a head's length, and the scale */
    else if (op == KERN_OP_add)
        *ops = 1;
    else if (op == KERN_OP_add_scaled)
        *ops = 2;
}

/* Element i of a column of cosines and sines, laid out as op wants them. */
static float turn_at(enum kern_op op, size_t i, size_t n)
{
    const size_t half = n / 2;
    const size_t pair = op == KERN_OP_rope ? i / 2 : i % half;
    const bool is_sine = op == KERN_OP_rope ? i % 2 : i >= half;

    return (float)(is_sine ? sin((double)pair) : cos((double)pair));
}

static bool open_vector(struct operation_call *o)
{
    const size_t n = o->n, column = n * sizeof(float);
    const enum kern_op op = o->row->op;
    double columns, ops;

    vector_work(op, &columns, &ops);
    o->out_is_floats = true;
    o->cost = (struct kernel_cost){columns * (double)column, ops * (double)n, 0};
    if (!alloc_all(o, column, n, n))
        return false;
    parts_fill_random(o->out, n, 1);
    if (op == KERN_OP_rope || op == KERN_OP_rope_neox)
        for (size_t i = 0; i < n / 2 * 2; i++)
            o->a[i] = turn_at(op, i, n);
    return true;
}

/* One head with a state and o->n tokens: a has queries, keys and values, b what each
 * token keeps and how fast it learns. The state reaches a size that it keeps. */
static bool open_scan(struct operation_call *o)
{
    const double per_element = o->row->op == KERN_OP_delta_rule ? 6.0 : 4.0;
    const size_t n = o->n, d = HEAD_DIM, state = d * d;

    o->out_is_floats = true;
    o->cost = (struct kernel_cost){(double)(2 * state + 4 * n * d) * sizeof(float),
                                   per_element * (double)(state * n), 0};
    if (!alloc_all(o, n * d * sizeof(float), 3 * n * d, 2 * n) ||
        !(o->blocks = parts_alloc(state * sizeof(float))))
        return false;
    parts_fill_random(o->blocks, state, 2);
    for (size_t i = 0; i < 2 * n * d; i++)
        o->a[i] /= sqrtf((float)d);
    for (size_t j = 0; j < n; j++) {
        o->b[j] = 0.9f;
        o->b[n + j] = 0.5f;
    }
    return true;
}

/* One token, n channels: a has the inputs of N_TAPS tokens, blocks their addresses. The
 * products of a short convolution are their first factors again: b ends with ones. */
static bool open_convolution(struct operation_call *o)
{
    const size_t n = o->n, n_ones = o->row->op == KERN_OP_short_conv ? n : 0;
    const float **rows;

    o->out_is_floats = true;
    o->cost = (struct kernel_cost){(double)((2 * N_TAPS + 1) * n + 3 * n_ones) *
                                       sizeof(float),
                                   2.0 * N_TAPS * (double)n + 2.0 * (double)n_ones, 0};
    if (!alloc_all(o, n * sizeof(float), N_TAPS * n, N_TAPS * n + n_ones) ||
        !(o->blocks = parts_alloc(N_TAPS * sizeof *rows)))
        return false;
    rows = o->blocks;
    for (size_t t = 0; t < N_TAPS; t++)
        rows[t] = o->a + t * n;
    for (size_t i = 0; i < n_ones; i++)
        o->b[N_TAPS * n + i] = 1.0f;
    return true;
}

bool parts_other_open(struct operation_call *o, const struct kern_row *row, size_t n)
{
    bool ok;

    *o = (struct operation_call){.row = row, .n = n};
    switch (row->op) {
    case KERN_OP_quantize:
    case KERN_OP_dequantize:
    case KERN_OP_quantize_act:
    case KERN_OP_pack:
    case KERN_OP_unpack:
    case KERN_OP_to_kv:
        ok = open_conversion(o);
        break;
    case KERN_OP_attn_dot:
    case KERN_OP_attn_mix:
    case KERN_OP_attn_mix_keys:
        ok = open_attention(o);
        break;
    case KERN_OP_conv_silu:
    case KERN_OP_short_conv:
        ok = open_convolution(o);
        break;
    case KERN_OP_delta_rule:
    case KERN_OP_ssm_scan:
        ok = open_scan(o);
        break;
    default:
        ok = open_vector(o);
    }
    if (!ok)
        parts_other_close(o);
    return ok;
}

void parts_other_run(const struct operation_call *o)
{
    const struct kern_row *row = o->row;
    float *out = o->out;

    switch (row->op) {
    case KERN_OP_quantize:
        row->fn.quantize(o->a, NULL, o->out, o->n);
        break;
    case KERN_OP_dequantize:
        row->fn.dequantize(o->blocks, out, o->n);
        break;
    case KERN_OP_quantize_act:
        row->fn.quantize_act(o->a, o->out, o->n);
        break;
    case KERN_OP_rmsnorm:
        row->fn.rmsnorm(out, o->a, o->b, o->n, 1e-5f);
        break;
    case KERN_OP_layernorm:
        row->fn.layernorm(out, o->a, o->b, o->b, o->n, 1e-5f);
        break;
    case KERN_OP_rope:
        row->fn.rope(out, o->a, o->n);
        break;
    case KERN_OP_rope_neox:
        row->fn.rope_neox(out, o->a, o->n);
        break;
    case KERN_OP_silu_mul:
        row->fn.silu_mul(out, o->a, o->b, o->n);
        break;
    case KERN_OP_gelu_mul:
        row->fn.gelu_mul(out, o->a, o->b, o->n);
        break;
    case KERN_OP_gelu:
        row->fn.gelu(out, o->a, o->n);
        break;
    case KERN_OP_relu_squared:
        row->fn.relu_squared(out, o->n);
        break;
    case KERN_OP_xielu:
        row->fn.xielu(out, o->n, 0.8f, 0.8f, 0.5f);
        break;
    case KERN_OP_softcap:
        row->fn.softcap(out, o->n, 50.0f);
        break;
    case KERN_OP_hadamard:
        row->fn.hadamard(out, o->n);
        break;
    case KERN_OP_add:
        row->fn.add(out, o->a, o->n);
        break;
    case KERN_OP_add_scaled:
        row->fn.add_scaled(out, o->a, 0.5f, o->n);
        break;
    case KERN_OP_l2norm:
        row->fn.l2norm(out, o->n, 1.0f, 1e-5f);
        break;
    case KERN_OP_conv_silu:
        row->fn.conv_silu(o->n, N_TAPS, o->b, NULL, 1, o->blocks, out, o->n);
        break;
    case KERN_OP_short_conv:
        row->fn.short_conv(o->n, N_TAPS, o->b, 1, o->blocks, o->b + N_TAPS * o->n,
                           o->b + N_TAPS * o->n, o->n, out, o->n);
        break;
    case KERN_OP_ssm_scan:
        row->fn.ssm_scan(HEAD_DIM, HEAD_DIM, o->n, o->blocks, o->a,
                         o->a + o->n * HEAD_DIM, HEAD_DIM, o->a + 2 * o->n * HEAD_DIM,
                         HEAD_DIM, o->b, o->b + o->n, 1.0f, out, HEAD_DIM);
        break;
    case KERN_OP_delta_rule:
        row->fn.delta_rule(HEAD_DIM, o->n, o->blocks, o->a, o->a + o->n * HEAD_DIM,
                           o->a + 2 * o->n * HEAD_DIM, HEAD_DIM, o->b, o->b + o->n, out,
                           HEAD_DIM);
        break;
    case KERN_OP_attn_weigh: {
        float max = -INFINITY, sum = 0;

        row->fn.attn_weigh(out, o->n, o->n, &max, &sum);
        break;
    }
    case KERN_OP_attn_dot:
        row->fn.attn_dot(o->n / KERN_PANEL_ROWS, HEAD_DIM, o->blocks, N_HEADS, o->a,
                         kern_kv_is_quantised((enum kern_kv)row->what)
                             ? kern_act_bytes(KERN_ACT_q8_32, HEAD_DIM)
                             : HEAD_DIM * sizeof(float),
                         out, o->n);
        break;
    case KERN_OP_attn_mix:
        row->fn.attn_mix(o->n, HEAD_DIM, o->blocks, N_HEADS, o->a, o->n, out, HEAD_DIM);
        break;
    case KERN_OP_attn_mix_keys:
        row->fn.attn_mix_keys(o->n, HEAD_DIM, HEAD_DIM, o->blocks, N_HEADS, o->a, o->n,
                              out, HEAD_DIM);
        break;
    case KERN_OP_to_kv:
        row->fn.to_kv(o->out, o->a, o->n);
        break;
    case KERN_OP_pack:
        row->fn.pack(o->n, o->blocks,
                     kern_format_bytes((enum kern_format)row->what, o->n), o->out);
        break;
    case KERN_OP_unpack:
        row->fn.unpack(o->n, o->blocks, 5, o->out);
        break;
    case KERN_OP_gemv:
    case KERN_OP_gemm:
    case KERN_OP_gemv_x16:
    case KERN_OP_gemm_x16:
    case KERN_OP_gemm_int8:
    case KERN_OP_gemm_x16_int8:
    case KERN_N_OP:
        break; /* products are not opened here */
    }
}

void parts_other_close(struct operation_call *o)
{
    free(o->out);
    free(o->blocks);
    free(o->a);
    free(o->b);
    *o = (struct operation_call){.row = NULL};
}

/* By how much of the largest value of floats a row may differ: by the rounding of sums,
 * or also of weights (kern_attn_mix_fn), or of queries and weights to bf16. */
static float bound_of(const struct kern_row *row)
{
    if (row->isa == KERN_ISA_avx512bf16)
        return 0x1p-7f;
    if (row->isa == KERN_ISA_amx_bf16)
        return row->what == KERN_KV_bf16 ? 0x1p-7f : 0x1p-13f;
    if (row->op == KERN_OP_attn_mix && row->isa == KERN_ISA_avx512vnni)
        return 1e-3f;
    return 1e-5f;
}

/* The same bytes where the result is not an array of floats, else values that
 * differ by rounding. */
static bool same_result(const struct operation_call *got,
                        const struct operation_call *want)
{
    const float *g = got->out, *w = want->out, bound = bound_of(got->row);
    float largest = 0;

    if (!got->out_is_floats)
        return !memcmp(got->out, want->out, want->out_bytes);
    for (size_t i = 0; i < want->out_bytes / sizeof *w; i++)
        largest = fmaxf(largest, fabsf(w[i]));
    for (size_t i = 0; i < want->out_bytes / sizeof *w; i++)
        if (!(fabsf(g[i] - w[i]) <= bound * largest))
            return false;
    return true;
}

/* There is no scalar row: what the level packs comes out again. */
static enum status check_unpack(const struct kern_row *row, struct err *err)
{
    const enum kern_format format = (enum kern_format)row->what;
    const size_t bytes = kern_format_bytes(format, CHECK_N);
    char *rows = parts_weights(format, KERN_PANEL_ROWS * CHECK_N);
    char *panel = rows ? parts_panels(format, isa_included(row->isa), rows,
                                      KERN_PANEL_ROWS, CHECK_N)
                       : NULL;
    char *out = parts_alloc(bytes);
    enum status st = ST_OK;

    if (!panel || !out)
        st = err_set(err, ST_NO_MEMORY, "no memory to check %s", row->name);
    for (size_t r = 0; st == ST_OK && r < KERN_PANEL_ROWS; r++) {
        row->fn.unpack(CHECK_N, panel, r, out);
        if (memcmp(out, rows + r * bytes, bytes))
            st = err_set(err, ST_CHECK,
                         "row %zu differs from the packed weights, so it is not timed",
                         r);
    }
    free(rows);
    free(panel);
    free(out);
    return st;
}

enum status parts_check_other(const struct kern_row *row, struct err *err)
{
    struct operation_call got, want;
    enum status st = ST_OK;

    if (row->op == KERN_OP_pack) /* right if its level's product of the panels is */
        return parts_check_product(
            kern_best(KERN_OP_gemv_x16, row->what, 1u << row->isa), 1, NULL, err);
    if (row->op == KERN_OP_unpack)
        return check_unpack(row, err);
    if (!parts_other_open(&got, row, CHECK_N))
        return err_set(err, ST_NO_MEMORY, "no memory to check %s", row->name);
    if (!parts_other_open(&want, kern_best(row->op, row->what, SCALAR), CHECK_N)) {
        parts_other_close(&got);
        return err_set(err, ST_NO_MEMORY, "no memory to check %s", row->name);
    }
    parts_other_run(&got);
    parts_other_run(&want);
    if (!same_result(&got, &want))
        st = err_set(err, ST_CHECK, "differs from the scalar row, so it is not timed");
    parts_other_close(&got);
    parts_other_close(&want);
    return st;
}
