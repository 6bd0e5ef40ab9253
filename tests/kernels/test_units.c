/* SPDX-License-Identifier: MIT
 *
 * test_units.c - units that no kernel uses, of recorded CPUs
 */
#include "tests/support/test.h"

#include <string.h>

#include "kernels/units.h"
#include "kernels/isa.h"

#define XCR0_AVX512 0xe7u
#define XCR0_TILES  0x60000u

static void found(const struct unit_registers *r, const char *expected)
{
    char text[UNITS_TEXT_MAX];

    assert_string_equal(units_text(units_of_registers(r), text, sizeof text), expected);
}

/* Registers of a Zen 5 machine as recorded, and of others by what Intel's reference
 * says their bits are. */
static void registers_of_cpus(void **state)
{
    struct unit_registers zen5 = {{0x00000110, 0x00000030, 0x00000000}, XCR0_AVX512};
    struct unit_registers sapphire_rapids = {
        {1u << 22 | 1u << 23 | 1u << 24 | 1u << 25, 1u << 4 | 1u << 5, 0},
        XCR0_AVX512 | XCR0_TILES};
    const struct unit_registers sierra_forest = {
        {0, 1u << 4 | 1u << 23, 1u << 4 | 1u << 5}, 0x7};
    const struct unit_registers lunar_lake = {
        {0, 1u << 4 | 1u << 23, 1u << 4 | 1u << 5 | 1u << 10}, 0x7};

    (void)state;
    found(&zen5, "");
    found(&sapphire_rapids, "AVX512-FP16");
    found(&sierra_forest, "AVX-VNNI-INT8");
    found(&lunar_lake, "AVX-VNNI-INT8 AVX-VNNI-INT16");

    /* An OS that does not save the tiles, and one that saves no wide registers. */
    sapphire_rapids.xcr0 = XCR0_AVX512;
    found(&sapphire_rapids, "AVX512-FP16");
    sapphire_rapids.xcr0 = XCR0_AVX512 | XCR0_TILES;
    sapphire_rapids.value[UNIT_LEAF7_1_EAX] |= 1u << 21; /* Granite Rapids */
    found(&sapphire_rapids, "AMX-FP16 AVX512-FP16");
    zen5.xcr0 = 0x7;
    found(&zen5, "");

    /* AVX10.1 is AVX-512 by another name; 10.2 has more products */
    assert_int_equal(units_avx10(0, 0x70002), 0);
    assert_int_equal(units_avx10(1u << 19, 0), 0);
    assert_int_equal(units_avx10(1u << 19, 0xff), ~1u);
    sapphire_rapids.value[UNIT_AVX10] = units_avx10(1u << 19, 0x70001);
    found(&sapphire_rapids, "AMX-FP16 AVX512-FP16");
    sapphire_rapids.value[UNIT_AVX10] = units_avx10(1u << 19, 0x70002);
    found(&sapphire_rapids, "AMX-FP16 AVX512-FP16 AVX10.2");
    sapphire_rapids.value[UNIT_AVX10] = units_avx10(1u << 19, 0x70003);
    found(&sapphire_rapids, "AMX-FP16 AVX512-FP16 AVX10.2");
}

static void flags_of_cpus(void **state)
{
    static const struct {
        const char *flags, *expected;
    } cpus[] = {
        {"fpu avx2 avx512f avx512_vnni avx512_bf16 avx_vnni amx_bf16 avx512_fp16 "
         "amx_tile amx_int8 flush_l1d",
         "AVX512-FP16"},
        {"fpu avx2 avx_vnni", ""},
        {"amx_fp16", ""}, /* a hypervisor that hides the tiles */
        /* Graviton 2, 3, 4 */
        {"fp asimd evtstrm fphp asimdhp asimdrdm lrcpc dcpop asimddp ssbs", ""},
        {"fp asimd fphp asimdhp asimddp sve asimdfhm svei8mm svebf16 i8mm bf16 dgh rng",
         "SVE BF16"},
        {"fp asimd fphp asimdhp asimddp sve asimdfhm sve2 svebf16 i8mm bf16 dgh",
         "SVE SVE2 BF16"},
        {"fp asimd asimddp sme smei8i32 sme2 i8mm bf16", "SME SME2 BF16"},
        {"", ""},
    };
    char text[UNITS_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cpus / sizeof cpus[0]; i++)
        assert_string_equal(
            units_text(units_of_flags(cpus[i].flags), text, sizeof text),
            cpus[i].expected);
}

/* The column of rows and the line of `bench topo` hold every name. */
static void names_fit(void **state)
{
    char text[UNITS_TEXT_MAX];
    int n = 0;

    (void)state;
    while (unit_name(n))
        n++;
    units_text(UINT32_MAX, text, sizeof text);
    assert_string_equal(text + strlen(text) - strlen(unit_name(n - 1)),
                        unit_name(n - 1));
    assert_null(unit_name(-1));
}

/* No unit of 512 bits without the registers that the kernels' AVX-512 needs. */
static void this_machine(void **state)
{
    char text[UNITS_TEXT_MAX];

    (void)state;
    units_text(units_detect(""), text, sizeof text);
    if (!(isa_detected() >> KERN_ISA_avx512 & 1))
        assert_null(strstr(text, "AVX512"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers_of_cpus),
        cmocka_unit_test(flags_of_cpus),
        cmocka_unit_test(names_fit),
        cmocka_unit_test(this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
