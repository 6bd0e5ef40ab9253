/* SPDX-License-Identifier: MIT
 *
 * units.c - units for products that a CPU has and no kernel here uses
 */
#include "kernels/units.h"

#include <stdio.h>
#include <string.h>

#ifdef SLM_HAVE_LIBCPUID
#include <libcpuid/libcpuid.h>
#endif

/* XCR0 (Intel SDM vol. 1, 13.3): 1 SSE, 2 AVX, 5-7 AVX-512, 17 and 18 tiles. */
#define XCR0_YMM  0x06u
#define XCR0_ZMM  0xe6u
#define XCR0_TILE 0x60000u

/* flags: words that cpuinfo has all of; NULL: none that Linux knows. An Arm unit has no
 * register. */
static const struct unit {
    const char *name, *flags;
    enum unit_register reg; /* bits 0: Arm */
    uint32_t bits, xcr0;
} units[] = {
    {"AMX-FP16", "amx_tile amx_fp16", UNIT_LEAF7_1_EAX, 1u << 21, XCR0_TILE},
    {"AVX512-FP16", "avx512_fp16", UNIT_LEAF7_EDX, 1u << 23, XCR0_ZMM},
    {"AVX-VNNI-INT8", NULL, UNIT_LEAF7_1_EDX, 1u << 4, XCR0_YMM},
    {"AVX-VNNI-INT16", NULL, UNIT_LEAF7_1_EDX, 1u << 10, XCR0_YMM},
    /* the last two in 512 bits; AVX10.1 has no products beyond those of AVX-512 */
    {"AVX10.2", NULL, UNIT_AVX10, 1u << 2, XCR0_ZMM},
    {"SVE", "sve", UNIT_LEAF7_EDX, 0, 0},
    {"SVE2", "sve2", UNIT_LEAF7_EDX, 0, 0},
    {"SME", "sme", UNIT_LEAF7_EDX, 0, 0},
    {"SME2", "sme2", UNIT_LEAF7_EDX, 0, 0},
    {"BF16", "asimd bf16", UNIT_LEAF7_EDX, 0, 0},
};

#define N_UNITS (sizeof units / sizeof units[0])

_Static_assert(N_UNITS <= 32, "a bit for each unit");

static bool has_all(uint32_t value, uint32_t bits)
{
    return (value & bits) == bits;
}

uint32_t units_of_registers(const struct unit_registers *r)
{
    uint32_t found = 0;

    for (size_t i = 0; i < N_UNITS; i++)
        if (units[i].bits && has_all(r->value[units[i].reg], units[i].bits) &&
            has_all(r->xcr0, units[i].xcr0))
            found |= 1u << i;
    return found;
}

/* Is the word of len letters at `word` one of the blank-separated words of list? */
static bool has_word(const char *list, const char *word, size_t len)
{
    for (const char *at = list; *at;) {
        const size_t n = strcspn(at, " ");

        if (n == len && !memcmp(at, word, len))
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

static bool has_words(const char *list, const char *words)
{
    for (const char *at = words; *at;) {
        const size_t n = strcspn(at, " ");

        if (!has_word(list, at, n))
            return false;
        at += n + (at[n] == ' ');
    }
    return true;
}

uint32_t units_of_flags(const char *flags)
{
    uint32_t found = 0;

    for (size_t i = 0; i < N_UNITS; i++)
        if (units[i].flags && has_words(flags, units[i].flags))
            found |= 1u << i;
    return found;
}

uint32_t units_avx10(uint32_t leaf7_1_edx, uint32_t leaf24_ebx)
{
    const uint32_t version = leaf24_ebx & 0xff;

    return !(leaf7_1_edx >> 19 & 1) ? 0 : version < 31 ? (2u << version) - 2 : ~1u;
}

#ifdef SLM_HAVE_LIBCPUID
/* libcpuid has names for few of these; its raw leaves lack subleaf 1. */
uint32_t units_detect(const char *flags)
{
    uint32_t leaf0[4] = {0}, leaf1[4] = {1}, leaf7[4] = {7}, leaf7_1[4] = {7, 0, 1};
    uint32_t leaf24[4] = {0x24};
    struct unit_registers r = {0};

    (void)flags;
    if (!cpuid_present())
        return 0;
    cpu_exec_cpuid_ext(leaf0);
    cpu_exec_cpuid_ext(leaf1);
    if (leaf0[0] < 7 || !(leaf1[2] >> 27 & 1)) /* OSXSAVE: XGETBV exists */
        return 0;
    __asm__ volatile("xgetbv" : "=a"(r.xcr0) : "c"(0) : "edx");
    cpu_exec_cpuid_ext(leaf7);
    r.value[UNIT_LEAF7_EDX] = leaf7[3];
    if (leaf7[0] >= 1) {
        cpu_exec_cpuid_ext(leaf7_1);
        r.value[UNIT_LEAF7_1_EAX] = leaf7_1[0];
        r.value[UNIT_LEAF7_1_EDX] = leaf7_1[3];
        if (leaf0[0] >= 0x24)
            cpu_exec_cpuid_ext(leaf24);
        r.value[UNIT_AVX10] = units_avx10(leaf7_1[3], leaf24[1]);
    }
    return units_of_registers(&r);
}
#else
uint32_t units_detect(const char *flags)
{
    return units_of_flags(flags);
}
#endif

const char *unit_name(int i)
{
    return i >= 0 && i < (int)N_UNITS ? units[i].name : NULL;
}

const char *units_text(uint32_t mask, char *buf, size_t cap)
{
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < N_UNITS && used < cap; i++)
        if (mask >> i & 1)
            used += (size_t)snprintf(buf + used, cap - used, "%s%s", used ? " " : "",
                                     units[i].name);
    return buf;
}
