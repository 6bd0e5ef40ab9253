/* SPDX-License-Identifier: MIT
 *
 * test_isa.c - names, parsing and switching off of instruction-set levels
 *
 * isa_disable() cannot be undone, so each test of it runs in a child.
 */
#include "tests/support/test.h"

#include <sys/wait.h>

#include "kernels/isa.h"
#include "kernels/isa_registers.h"

static void names_are_what_files_use(void **state)
{
    (void)state;
    assert_string_equal(isa_name(KERN_ISA_scalar), "scalar");
    assert_string_equal(isa_name(KERN_ISA_avx512vnni), "avx512vnni");
    assert_string_equal(isa_name(KERN_ISA_neon_i8mm), "neon_i8mm");
    for (int isa = 0; isa < KERN_N_ISA; isa++) {
        assert_non_null(isa_name((enum kern_isa)isa));
        assert_true(strlen(isa_extensions((enum kern_isa)isa)) > 2);
    }
}

static void parses_lists(void **state)
{
    uint32_t mask = 99;
    const char *bad = NULL;
    int bad_len = 0;

    (void)state;
    assert_int_equal(isa_parse_list("avx2", &mask, &bad, &bad_len), 0);
    assert_int_equal(mask, 1u << KERN_ISA_avx2);
    assert_int_equal(isa_parse_list("avx512vnni,neon,avx512", &mask, &bad, &bad_len),
                     0);
    assert_int_equal(mask, 1u << KERN_ISA_avx512vnni | 1u << KERN_ISA_neon |
                               1u << KERN_ISA_avx512);
    assert_int_equal(isa_parse_list("avx2,amx", &mask, &bad, &bad_len), 0);
    assert_int_equal(mask, 1u << KERN_ISA_avx2 | 1u << KERN_ISA_amx_int8 |
                               1u << KERN_ISA_amx_bf16);
    assert_null(bad);
}

static void names_the_unknown_one(void **state)
{
    static const struct {
        const char *list, *bad;
    } cases[] = {
        {"avx1024", "avx1024"}, {"avx2,sse9,neon", "sse9"}, {"", ""},
        {"avx2,", ""},          {"AVX2", "AVX2"},           {"avx", "avx"},
        {"avx2 ", "avx2 "},     {"scalar", "scalar"},       {"avx2,scalar", "scalar"},
        {"amx,am", "am"},       {"amx_", "amx_"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t mask = 12345;
        const char *bad = NULL;
        int bad_len = -1;

        assert_int_equal(isa_parse_list(cases[i].list, &mask, &bad, &bad_len), -1);
        assert_int_equal(mask, 12345);
        assert_int_equal(bad_len, strlen(cases[i].bad));
        assert_memory_equal(bad, cases[i].bad, (size_t)bad_len);
        assert_true(bad >= cases[i].list);
    }
}

static void detection_is_stable_and_layered(void **state)
{
    const uint32_t mask = isa_detected();

    (void)state;
    assert_int_equal(isa_detected(), mask);
    assert_int_equal(isa_usable(), mask);
    assert_true(mask & 1u << KERN_ISA_scalar);
    if (mask & (1u << KERN_ISA_avx512 | 1u << KERN_ISA_avxvnni))
        assert_true(mask & 1u << KERN_ISA_avx2);
    if (mask & 1u << KERN_ISA_avx512bf16)
        assert_true(mask & 1u << KERN_ISA_avx512);
    if (mask & 1u << KERN_ISA_avx512vbmi)
        assert_true(mask & 1u << KERN_ISA_avx512vnni);
    if (mask & 1u << KERN_ISA_avx512vnni)
        assert_true(mask & 1u << KERN_ISA_avx512);
    if (mask & 1u << KERN_ISA_amx_int8)
        assert_true(mask & 1u << KERN_ISA_avx512vbmi);
    if (mask & 1u << KERN_ISA_amx_bf16)
        assert_true(mask & 1u << KERN_ISA_avx512bf16);
    if (mask & 1u << KERN_ISA_neon_i8mm)
        assert_true(mask & 1u << KERN_ISA_neon);
}

/* On an emulated CPU it is known which levels there are: SLM_TEST_ISA lists them. */
static void finds_the_levels_of_a_known_cpu(void **state)
{
    const char *list = getenv("SLM_TEST_ISA"), *bad;
    uint32_t mask = 0;
    int bad_len;

    (void)state;
    if (list == NULL)
        skip();
    if (strcmp(list, "none") != 0)
        assert_int_equal(isa_parse_list(list, &mask, &bad, &bad_len), 0);
    assert_int_equal(isa_detected(), mask | 1u << KERN_ISA_scalar);
}

#if defined(__x86_64__)
/* What the compiler's own detection says of the same CPU: it looks at CPUID and
 * XCR0 too, by other code. */
static void agrees_with_the_compiler(void **state)
{
    const uint32_t mask = isa_detected();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const int avx512 =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");

    (void)state;
    if (mask == 1u << KERN_ISA_scalar && avx2)
        skip(); /* built without libcpuid */
    assert_int_equal(mask >> KERN_ISA_avx2 & 1, avx2 != 0);
    assert_int_equal(mask >> KERN_ISA_avx512 & 1, avx512 != 0);
    assert_int_equal(mask >> KERN_ISA_avx512bf16 & 1,
                     avx512 && __builtin_cpu_supports("avx512bf16"));
    assert_int_equal(mask >> KERN_ISA_avx512vnni & 1,
                     avx512 && __builtin_cpu_supports("avx512vnni"));
    assert_int_equal(mask >> KERN_ISA_avx512vbmi & 1,
                     avx512 && __builtin_cpu_supports("avx512vnni") &&
                         __builtin_cpu_supports("avx512vbmi"));
}
#endif

/* ---- registers of other CPUs ----------------------------------------------------- */

static int n_requests;

static bool granted(void)
{
    n_requests++;
    return true;
}

static bool denied(void)
{
    n_requests++;
    return false;
}

/* Every level of x86, as a Sapphire Rapids has them. */
static const struct isa_registers all_levels = {
    .leaf1_ecx = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29,
    .leaf7_ebx = 1u << 5 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31,
    .leaf7_ecx = 1u << 1 | 1u << 11,
    .leaf7_edx = 1u << 22 | 1u << 24 | 1u << 25,
    .leaf7_1_eax = 1u << 4 | 1u << 5,
    .xcr0 = 0x600e7,
};

#define LEVEL(isa) (1u << KERN_ISA_##isa)
#define NARROW     (LEVEL(scalar) | LEVEL(avx2) | LEVEL(avxvnni))
#define WIDE \
    (NARROW | LEVEL(avx512) | LEVEL(avx512bf16) | LEVEL(avx512vnni) | LEVEL(avx512vbmi))

/* Tiles are requested once for both of their levels, and not without them. */
static void levels_follow_from_registers(void **state)
{
    static const struct isa_registers none = {0};
    struct isa_registers r = all_levels;

    (void)state;
    n_requests = 0;
    assert_int_equal(isa_of_registers(&r, granted), WIDE | ISA_TILE_LEVELS);
    assert_int_equal(n_requests, 1);
    assert_int_equal(isa_of_registers(&r, denied), WIDE);
    assert_int_equal(n_requests, 2);
    assert_int_equal(isa_of_registers(&none, granted), LEVEL(scalar));
    r.leaf7_edx = 0x00000110; /* a Zen 5 */
    assert_int_equal(isa_of_registers(&r, granted), WIDE);
    r.leaf7_edx = all_levels.leaf7_edx;
    r.xcr0 = 0x7; /* a hypervisor or an OS that saves no wide registers */
    assert_int_equal(isa_of_registers(&r, granted), NARROW);
    assert_int_equal(n_requests, 2);
}

/* A bit that is missing takes the levels that need it, and no others. */
static void each_bit_counts(void **state)
{
    static const struct {
        struct isa_registers without;
        uint32_t lost;
    } bits[] = {
        {{.leaf1_ecx = 1u << 12}, ~LEVEL(scalar)},
        {{.leaf1_ecx = 1u << 27}, ~LEVEL(scalar)},
        {{.leaf1_ecx = 1u << 28}, ~LEVEL(scalar)},
        {{.leaf1_ecx = 1u << 29}, ~LEVEL(scalar)},
        {{.leaf7_ebx = 1u << 5}, ~LEVEL(scalar)},
        {{.leaf7_ebx = 1u << 16}, ~NARROW},
        {{.leaf7_ebx = 1u << 17}, ~NARROW},
        {{.leaf7_ebx = 1u << 30}, ~NARROW},
        {{.leaf7_ebx = 1u << 31}, ~NARROW},
        {{.leaf7_ecx = 1u << 1}, LEVEL(avx512vbmi) | LEVEL(amx_int8)},
        {{.leaf7_ecx = 1u << 11},
         LEVEL(avx512vnni) | LEVEL(avx512vbmi) | LEVEL(amx_int8)},
        {{.leaf7_edx = 1u << 22}, LEVEL(amx_bf16)},
        {{.leaf7_edx = 1u << 24}, ISA_TILE_LEVELS},
        {{.leaf7_edx = 1u << 25}, LEVEL(amx_int8)},
        {{.leaf7_1_eax = 1u << 4}, LEVEL(avxvnni)},
        {{.leaf7_1_eax = 1u << 5}, LEVEL(avx512bf16) | LEVEL(amx_bf16)},
        {{.xcr0 = 1u << 1}, ~LEVEL(scalar)},
        {{.xcr0 = 1u << 2}, ~LEVEL(scalar)},
        {{.xcr0 = 1u << 5}, ~NARROW},
        {{.xcr0 = 1u << 6}, ~NARROW},
        {{.xcr0 = 1u << 7}, ~NARROW},
        {{.xcr0 = 1u << 17}, ISA_TILE_LEVELS},
        {{.xcr0 = 1u << 18}, ISA_TILE_LEVELS},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        const struct isa_registers *w = &bits[i].without;
        struct isa_registers r = all_levels;

        r.leaf1_ecx &= ~w->leaf1_ecx;
        r.leaf7_ebx &= ~w->leaf7_ebx;
        r.leaf7_ecx &= ~w->leaf7_ecx;
        r.leaf7_edx &= ~w->leaf7_edx;
        r.leaf7_1_eax &= ~w->leaf7_1_eax;
        r.xcr0 &= ~w->xcr0;
        assert_int_equal(isa_of_registers(&r, granted),
                         (WIDE | ISA_TILE_LEVELS) & ~bits[i].lost);
    }
}

/* ---- switching off --------------------------------------------------------------- */

/* What isa_usable() is after isa_disable(off), asked in a child. */
static uint32_t usable_after(uint32_t off)
{
    int answer[2], status = 0;
    uint32_t mask = 0;

    assert_int_equal(pipe(answer), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        isa_disable(off);
        mask = isa_usable();
        _exit(write(answer[1], &mask, sizeof mask) != sizeof mask);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(read(answer[0], &mask, sizeof mask), sizeof mask);
    close(answer[0]);
    close(answer[1]);
    return mask;
}

static void disabling_takes_what_builds_on_it(void **state)
{
    const uint32_t all = isa_detected();
    const uint32_t x86 = 1u << KERN_ISA_avx2 | 1u << KERN_ISA_avxvnni |
                         1u << KERN_ISA_avx512 | 1u << KERN_ISA_avx512vnni |
                         1u << KERN_ISA_avx512vbmi | 1u << KERN_ISA_avx512bf16 |
                         1u << KERN_ISA_amx_int8 | 1u << KERN_ISA_amx_bf16;
    const uint32_t bf16 = 1u << KERN_ISA_avx512bf16 | 1u << KERN_ISA_amx_bf16;
    const uint32_t vbmi = 1u << KERN_ISA_avx512vbmi | 1u << KERN_ISA_amx_int8;
    const uint32_t vnni = 1u << KERN_ISA_avx512vnni | vbmi;
    const uint32_t wide = 1u << KERN_ISA_avx512 | bf16 | vnni;

    (void)state;
    assert_int_equal(usable_after(0), all);
    assert_int_equal(usable_after(1u << KERN_ISA_scalar), all);
    assert_int_equal(usable_after(1u << KERN_ISA_avx2), all & ~x86);
    assert_int_equal(usable_after(1u << KERN_ISA_avx512), all & ~wide);
    assert_int_equal(usable_after(1u << KERN_ISA_avx512vnni), all & ~vnni);
    assert_int_equal(usable_after(1u << KERN_ISA_avx512bf16), all & ~bf16);
    assert_int_equal(usable_after(1u << KERN_ISA_avx512vbmi), all & ~vbmi);
    assert_int_equal(usable_after(1u << KERN_ISA_amx_int8),
                     all & ~(1u << KERN_ISA_amx_int8));
    assert_int_equal(usable_after(1u << KERN_ISA_amx_bf16),
                     all & ~(1u << KERN_ISA_amx_bf16));
    assert_int_equal(usable_after(ISA_TILE_LEVELS),
                     all & ~(1u << KERN_ISA_amx_int8) & ~(1u << KERN_ISA_amx_bf16));
    assert_int_equal(usable_after(~0u), 1u << KERN_ISA_scalar);
}

static void levels_include_what_they_build_on(void **state)
{
    (void)state;
    for (int isa = 0; isa < KERN_N_ISA; isa++) {
        const uint32_t included = isa_included((enum kern_isa)isa);

        assert_true(included >> isa & 1);
        assert_true(included < 2u << isa); /* nothing above itself */
    }
    assert_int_equal(isa_included(KERN_ISA_scalar), 1u << KERN_ISA_scalar);
    assert_int_equal(isa_included(KERN_ISA_avx512vnni), 1u << KERN_ISA_avx2 |
                                                            1u << KERN_ISA_avx512 |
                                                            1u << KERN_ISA_avx512vnni);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_include_what_they_build_on),
        cmocka_unit_test(names_are_what_files_use),
        cmocka_unit_test(parses_lists),
        cmocka_unit_test(names_the_unknown_one),
        cmocka_unit_test(detection_is_stable_and_layered),
        cmocka_unit_test(finds_the_levels_of_a_known_cpu),
#if defined(__x86_64__)
        cmocka_unit_test(agrees_with_the_compiler),
#endif
        cmocka_unit_test(levels_follow_from_registers),
        cmocka_unit_test(each_bit_counts),
        cmocka_unit_test(disabling_takes_what_builds_on_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
