/* SPDX-License-Identifier: MIT
 *
 * test_registry.c - kernels.def is complete, consistent and chosen from correctly
 */
#include "tests/support/test.h"

#include "kernels/activations/activations.h"
#include "kernels/kernels.h"

#define SCALAR (1u << KERN_ISA_scalar)

static bool is_per_format(int op)
{
    return op == KERN_OP_quantize || op == KERN_OP_dequantize || op == KERN_OP_gemv ||
           op == KERN_OP_gemm || op == KERN_OP_pack || op == KERN_OP_unpack ||
           op == KERN_OP_gemv_x16 || op == KERN_OP_gemm_x16 ||
           op == KERN_OP_gemm_int8 || op == KERN_OP_gemm_x16_int8;
}

/* Panels are made at vector levels only, int8 sums at some of them. */
static bool is_of_vectors(int op)
{
    return op == KERN_OP_pack || op == KERN_OP_unpack || op == KERN_OP_gemv_x16 ||
           op == KERN_OP_gemm_x16 || op == KERN_OP_gemm_int8 ||
           op == KERN_OP_gemm_x16_int8;
}

static bool is_per_kv(int op)
{
    return op == KERN_OP_attn_dot || op == KERN_OP_attn_mix ||
           op == KERN_OP_attn_mix_keys || op == KERN_OP_to_kv;
}

static const char *what_name(const struct kern_row *row)
{
    if (is_per_kv((int)row->op))
        return kern_format_info(kern_kv_format((enum kern_kv)row->what))->name;
    return is_per_format((int)row->op)
               ? kern_format_info((enum kern_format)row->what)->name
               : kern_act_name((enum kern_act)row->what);
}

/* The number of things an operation exists for, and the first of them. */
static void span_of(int op, int *first, int *end)
{
    *first = is_per_format(op) || is_per_kv(op) || op == KERN_OP_quantize_act ? 0 : -1;
    *end = is_per_format(op)            ? KERN_N_FMT
           : is_per_kv(op)              ? KERN_N_KV
           : op == KERN_OP_quantize_act ? KERN_N_ACT
                                        : 0;
}

static void every_operation_has_a_scalar_row(void **state)
{
    (void)state;
    for (int op = 0; op < KERN_N_OP; op++) {
        int what, end;

        if (is_of_vectors(op))
            continue;
        for (span_of(op, &what, &end); what < end; what++)
            if (kern_best((enum kern_op)op, what, SCALAR) == NULL)
                fail_msg("%s has no scalar row for %d", kern_op_name((enum kern_op)op),
                         what);
    }
}

static void rows_are_named_after_what_they_are(void **state)
{
    size_t n;
    const struct kern_row *rows = kern_rows(&n);

    (void)state;
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        const struct kern_row *row = &rows[i];
        char name[64];

        if (row->what < 0)
            snprintf(name, sizeof(name), "%s/%s", kern_op_name(row->op),
                     isa_name(row->isa));
        else
            snprintf(name, sizeof(name), "%s/%s/%s", kern_op_name(row->op),
                     what_name(row), isa_name(row->isa));
        assert_string_equal(row->name, name);
        assert_non_null(row->fn.gemv); /* any member: all are pointers */
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(rows[j].name, name);
    }
}

static void rows_belong_to_this_architecture(void **state)
{
    const uint32_t x86 = 1u << KERN_ISA_avx2 | 1u << KERN_ISA_avxvnni |
                         1u << KERN_ISA_avx512 | 1u << KERN_ISA_avx512vnni |
                         1u << KERN_ISA_avx512vbmi | 1u << KERN_ISA_avx512bf16 |
                         1u << KERN_ISA_amx_int8 | 1u << KERN_ISA_amx_bf16;
    const uint32_t arm = 1u << KERN_ISA_neon | 1u << KERN_ISA_neon_i8mm;
    uint32_t seen = 0;
    size_t n;
    const struct kern_row *rows = kern_rows(&n);

    (void)state;
    for (size_t i = 0; i < n; i++)
        seen |= 1u << rows[i].isa;
#if defined(__x86_64__)
    assert_int_equal(seen & arm, 0);
    assert_true(seen & x86);
#elif defined(__aarch64__)
    assert_int_equal(seen & x86, 0);
    (void)arm;
#else
    assert_int_equal(seen & (x86 | arm), 0);
#endif
}

/* Whether op on `what` is arithmetic on floats, or rounding them: the rule in
 * kernels.def wants rows where registers become wider, and only there. */
static bool is_float_work(int op, int what)
{
    if (op == KERN_OP_gemv || op == KERN_OP_gemm)
        return kern_format_info((enum kern_format)what)->act == KERN_ACT_f32;
    if (op == KERN_OP_quantize_act)
        return what != KERN_ACT_f32; /* that one is memcpy */
    if (op == KERN_OP_attn_dot)      /* of quantised keys it is a gemm_x16 */
        return !kern_kv_is_quantised((enum kern_kv)what);
    if (op == KERN_OP_to_kv) /* a block is 32 elements: wider registers gain nothing */
        return false;
    return op >= KERN_OP_rmsnorm;
}

static void float_work_has_a_row_per_register_width(void **state)
{
#if defined(__x86_64__)
    const uint32_t wanted = SCALAR | 1u << KERN_ISA_avx2 | 1u << KERN_ISA_avx512;
#elif defined(__aarch64__)
    const uint32_t wanted = SCALAR | 1u << KERN_ISA_neon;
#else
    const uint32_t wanted = SCALAR;
#endif

    (void)state;
#ifdef SLM_FLOATS_OFF
    skip(); /* this build leaves levels out */
#endif
    for (int op = 0; op < KERN_N_OP; op++) {
        int what, end;

        for (span_of(op, &what, &end); what < end; what++) {
            uint32_t found = 0;

            for (int isa = 0; is_float_work(op, what) && isa < KERN_N_ISA; isa++)
                if (kern_best((enum kern_op)op, what, 1u << isa) != NULL)
                    found |= 1u << isa;
            /* and rows of levels with products of bytes or bf16, where these are used
             */
            if (op == KERN_OP_attn_mix && kern_kv_is_quantised((enum kern_kv)what))
                found &= ~(1u << KERN_ISA_avx512vnni);
            else if (op >= KERN_OP_attn_dot && what == KERN_KV_bf16)
                found &= ~(1u << KERN_ISA_avx512bf16 | 1u << KERN_ISA_amx_bf16);
            else if (op >= KERN_OP_attn_dot && what == KERN_KV_f16)
                found &= ~(1u << KERN_ISA_amx_bf16);
            if (is_float_work(op, what) && found != wanted)
                fail_msg("%s for %d has rows at levels %#x, not %#x",
                         kern_op_name((enum kern_op)op), what, found, wanted);
        }
    }
}

/* Every row is an entry, and an entry without a row is of another architecture. */
static void entries_are_the_whole_list(void **state)
{
    size_t n_entries, n_rows, n_found = 0;
    const struct kern_entry *entries = kern_entries(&n_entries);
    uint32_t built = 0;

    (void)state;
#ifdef SLM_LEVELS_OFF
    skip(); /* this build leaves levels out */
#endif
    for (size_t i = 0; i < n_entries; i++) {
        const struct kern_entry *e = &entries[i];
        const struct kern_row *row = kern_best(e->op, e->what, 1u << e->isa);

        if (row == NULL)
            continue;
        assert_string_equal(row->name, e->name);
        built |= 1u << e->isa;
        n_found++;
    }
    kern_rows(&n_rows);
    assert_int_equal(n_found, n_rows);
    for (size_t i = 0; i < n_entries; i++)
        if (kern_best(entries[i].op, entries[i].what, 1u << entries[i].isa) == NULL)
            assert_int_equal(built >> entries[i].isa & 1, 0);
}

/* Every quantised format has these rows, also those that this build's architecture
 * cannot compile. */
static void expect_rows(const enum kern_op *ops, size_t n_ops,
                        const enum kern_isa *levels, size_t n_levels)
{
    size_t n;
    const struct kern_entry *entries = kern_entries(&n);

    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        if (kern_format_info((enum kern_format)fmt)->block_elems == 1)
            continue; /* floats: float_work_has_a_row_per_register_width() */
        for (size_t o = 0; o < n_ops; o++)
            for (size_t l = 0; l < n_levels; l++) {
                size_t i = 0;

                while (i < n && (entries[i].op != ops[o] || entries[i].what != fmt ||
                                 entries[i].isa != levels[l]))
                    i++;
                if (i == n)
                    fail_msg("%s/%s/%s is not in kernels.def", kern_op_name(ops[o]),
                             kern_format_info((enum kern_format)fmt)->name,
                             isa_name(levels[l]));
            }
    }
}

/* Every vector level has every row of a quantised format's products; for int8 sums it
 * has those that KERN_SIMD_ROWS() gives. */
static void no_format_lacks_a_level(void **state)
{
    static const enum kern_op ops[] = {KERN_OP_gemv,     KERN_OP_gemm,
                                       KERN_OP_pack,     KERN_OP_unpack,
                                       KERN_OP_gemv_x16, KERN_OP_gemm_x16};
    static const enum kern_isa levels[] = {KERN_ISA_avx2,   KERN_ISA_avxvnni,
                                           KERN_ISA_avx512, KERN_ISA_avx512vnni,
                                           KERN_ISA_neon,   KERN_ISA_neon_i8mm};
    static const enum kern_op int8_ops[] = {KERN_OP_gemm_int8, KERN_OP_gemm_x16_int8};
    static const enum kern_isa int8_levels[] = {KERN_ISA_avxvnni, KERN_ISA_avx512vnni};

    (void)state;
    expect_rows(ops, sizeof(ops) / sizeof(ops[0]), levels,
                sizeof(levels) / sizeof(levels[0]));
    expect_rows(int8_ops, 2, int8_levels, 2);
}

static void best_is_the_highest_level_of_the_mask(void **state)
{
    size_t n;
    const struct kern_row *rows = kern_rows(&n);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        const struct kern_row *row = &rows[i];
        const uint32_t up_to = (2u << row->isa) - 1;

        assert_ptr_equal(kern_best(row->op, row->what, up_to), row);
        assert_ptr_equal(kern_best(row->op, row->what, 1u << row->isa), row);
        assert_null(kern_best(row->op, row->what, 0));
    }
    assert_null(kern_best(KERN_OP_gemv, KERN_N_FMT, ~0u));
}

/* One pointer after another: struct kern_set is a mask and function pointers. Those
 * of panels are set all three or not at all, and so are both of int8 sums. */
static void assert_complete(const struct kern_set *set)
{
    const char *panels = (const char *)set->pack,
               *after = (const char *)(set->gemm_x16_int8 + KERN_N_FMT);
    const size_t n =
        (sizeof(*set) - offsetof(struct kern_set, quantize)) / sizeof(kern_gemv_fn *);
    const char *at = (const char *)set->quantize;

    for (size_t i = 0; i < n; i++) {
        kern_gemv_fn *fn;

        memcpy(&fn, at + i * sizeof(fn), sizeof(fn));
        if (at + i * sizeof(fn) < panels || at + i * sizeof(fn) >= after)
            assert_non_null(fn);
    }
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        assert_true((set->pack[fmt] == NULL) == (set->gemv_x16[fmt] == NULL));
        assert_true((set->pack[fmt] == NULL) == (set->gemm_x16[fmt] == NULL));
        assert_true((set->gemm_int8[fmt] == NULL) == (set->gemm_x16_int8[fmt] == NULL));
    }
}

static void select_fills_every_pointer(void **state)
{
    struct kern_set set;

    (void)state;
    memset(&set, 0, sizeof(set));
    kern_select(&set, SCALAR);
    assert_complete(&set);
    assert_int_equal(set.isa_mask, SCALAR);
    assert_ptr_equal(set.gemv[KERN_FMT_q4_0], kern_gemv_q4_0__scalar);
    assert_ptr_equal(set.quantize_act[KERN_ACT_q8_32], kern_quantize_act_q8_32__scalar);

    memset(&set, 0, sizeof(set));
    kern_select(&set, isa_usable());
    assert_complete(&set);
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        assert_ptr_equal(set.gemm[fmt],
                         kern_best(KERN_OP_gemm, fmt, isa_usable())->fn.gemm);
}

static void formats_are_found(void **state)
{
    (void)state;
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        const struct kern_format_info *info = kern_format_info((enum kern_format)fmt);

        assert_int_equal(kern_format_by_name(info->name), fmt);
        assert_int_equal(kern_format_by_ggml_id(info->ggml_id), fmt);
        assert_true(info->block_elems > 0 && info->block_bytes > 0);
        assert_int_equal(kern_format_bytes((enum kern_format)fmt, 0), 0);
        assert_int_equal(
            kern_format_bytes((enum kern_format)fmt, 3 * (size_t)info->block_elems),
            3 * (size_t)info->block_bytes);
    }
    assert_int_equal(kern_format_by_name("Q4_k"), KERN_FMT_q4_K);
    assert_int_equal(kern_format_by_name("BF16"), KERN_FMT_bf16);
    assert_int_equal(kern_format_by_name("q4"), KERN_N_FMT);
    assert_int_equal(kern_format_by_name(""), KERN_N_FMT);
    assert_int_equal(kern_format_by_ggml_id(4), KERN_N_FMT); /* withdrawn type */
    assert_int_equal(kern_format_by_ggml_id(UINT32_MAX), KERN_N_FMT);
    /* no overflow in 32 bits */
    assert_true(kern_format_bytes(KERN_FMT_f32, (size_t)1 << 33) == (size_t)1 << 35);
}

static void activation_columns_have_the_size_of_their_arrays(void **state)
{
    (void)state;
    assert_string_equal(kern_act_name(KERN_ACT_q8_256), "q8_256");
    assert_int_equal(kern_act_bytes(KERN_ACT_f32, 1), 64);
    assert_int_equal(kern_act_bytes(KERN_ACT_f32, 4096), 16384);
    assert_int_equal(kern_act_bytes(KERN_ACT_q8_32, 32), 4 * 64 + 64);
    assert_int_equal(kern_act_bytes(KERN_ACT_q8_32, 4096), 4096 + 3 * 512 + 64);
    assert_int_equal(kern_act_bytes(KERN_ACT_q8_256, 4096), 4096 + 64 + 512);
    for (size_t k = 256; k <= 256 * 40; k += 256) {
        const char *end32 = (const char *)(act_q8_32_sums((void *)64, k) + k / 16);
        const char *end256 = (const char *)(act_q8_256_sums((void *)64, k) + k / 16);

        assert_true((uintptr_t)end32 - 64 <= kern_act_bytes(KERN_ACT_q8_32, k));
        assert_true((uintptr_t)end256 - 64 <= kern_act_bytes(KERN_ACT_q8_256, k));
        assert_int_equal(kern_act_bytes(KERN_ACT_q8_256, k) % 128, 64);
        assert_int_equal(kern_act_bytes(KERN_ACT_q8_32, k) % 128, 64);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_has_a_scalar_row),
        cmocka_unit_test(rows_are_named_after_what_they_are),
        cmocka_unit_test(rows_belong_to_this_architecture),
        cmocka_unit_test(float_work_has_a_row_per_register_width),
        cmocka_unit_test(entries_are_the_whole_list),
        cmocka_unit_test(no_format_lacks_a_level),
        cmocka_unit_test(best_is_the_highest_level_of_the_mask),
        cmocka_unit_test(select_fills_every_pointer),
        cmocka_unit_test(formats_are_found),
        cmocka_unit_test(activation_columns_have_the_size_of_their_arrays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
