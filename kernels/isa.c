/* SPDX-License-Identifier: MIT
 *
 * isa.c - detection of instruction-set levels and the mask that switches them off
 *
 * x86: CPUID leaves come from libcpuid, the register state that the OS saves
 * from XGETBV. A hypervisor may hide either, so both count. An x86 build
 * without libcpuid has the scalar level only. Arm: the kernel's hwcaps.
 */
#include "kernels/isa.h"
#include "kernels/isa_registers.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#ifdef SLM_HAVE_LIBCPUID
#include <libcpuid/libcpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#include <asm/hwcap.h>
#endif

#define BIT(isa) (1u << KERN_ISA_##isa)

static const struct level {
    const char *name;
    const char *extensions;
    uint32_t builds_on; /* levels whose instructions this one's kernels use too */
} levels[KERN_N_ISA] = {
    [KERN_ISA_scalar] = {"scalar", "C11", 0},
    [KERN_ISA_avx2] = {"avx2", "AVX2 FMA F16C", 0},
    [KERN_ISA_avxvnni] = {"avxvnni", "AVX2 FMA F16C AVX-VNNI", BIT(avx2)},
    [KERN_ISA_avx512] = {"avx512", "AVX2 FMA F16C AVX-512 F BW DQ VL", BIT(avx2)},
    [KERN_ISA_avx512bf16] = {"avx512bf16", "AVX2 FMA F16C AVX-512 F BW DQ VL BF16",
                             BIT(avx2) | BIT(avx512)},
    [KERN_ISA_avx512vnni] = {"avx512vnni", "AVX2 FMA F16C AVX-512 F BW DQ VL VNNI",
                             BIT(avx2) | BIT(avx512)},
    [KERN_ISA_avx512vbmi] = {"avx512vbmi", "AVX2 FMA F16C AVX-512 F BW DQ VL VNNI VBMI",
                             BIT(avx2) | BIT(avx512) | BIT(avx512vnni)},
    [KERN_ISA_amx_int8] = {"amx_int8",
                           "AVX2 FMA F16C AVX-512 F BW DQ VL VNNI VBMI AMX-INT8",
                           BIT(avx2) | BIT(avx512) | BIT(avx512vnni) | BIT(avx512vbmi)},
    [KERN_ISA_amx_bf16] = {"amx_bf16", "AVX2 FMA F16C AVX-512 F BW DQ VL BF16 AMX-BF16",
                           BIT(avx2) | BIT(avx512) | BIT(avx512bf16)},
    [KERN_ISA_neon] = {"neon", "Armv8.2 dot product, half precision", 0},
    [KERN_ISA_neon_i8mm] = {"neon_i8mm", "Armv8.2 dot product, half precision, I8MM",
                            BIT(neon)},
};

/* 0: not asked yet (the scalar bit is always set afterwards). Two threads that
 * race here compute the same value. */
static _Atomic uint32_t detected_mask;
static _Atomic uint32_t disabled_mask;

const char *isa_name(enum kern_isa isa)
{
    return levels[isa].name;
}

const char *isa_extensions(enum kern_isa isa)
{
    return levels[isa].extensions;
}

uint32_t isa_included(enum kern_isa isa)
{
    return levels[isa].builds_on | 1u << isa;
}

/* ---- x86 ------------------------------------------------------------------------- */

/* XCR0 bits: 1 SSE, 2 AVX, 5 mask registers, 6 upper halves of zmm0-15,
 * 7 zmm16-31, 17 the configuration of tiles, 18 their data. */
#define XCR0_YMM   0x06u
#define XCR0_ZMM   0xe6u
#define XCR0_TILES 0x60000u

static bool has_bits(uint32_t value, uint32_t bits)
{
    return (value & bits) == bits;
}

/* Those of AVX-512. VNNI is leaf 7 ECX 11, VBMI ECX 1; BF16 is subleaf 1 EAX 5. */
static uint32_t wide_levels(const struct isa_registers *r)
{
    uint32_t mask = BIT(avx512);

    if (has_bits(r->leaf7_1_eax, 1u << 5))
        mask |= BIT(avx512bf16);
    if (has_bits(r->leaf7_ecx, 1u << 11))
        mask |= BIT(avx512vnni);
    if (has_bits(r->leaf7_ecx, 1u << 11 | 1u << 1))
        mask |= BIT(avx512vbmi);
    return mask;
}

/* AMX-TILE is leaf 7 EDX 24, AMX-INT8 25, AMX-BF16 22. */
static uint32_t tile_levels(const struct isa_registers *r, uint32_t wide)
{
    uint32_t mask = 0;

    if (!has_bits(r->leaf7_edx, 1u << 24) || !has_bits(r->xcr0, XCR0_TILES))
        return 0;
    if (has_bits(r->leaf7_edx, 1u << 25) && has_bits(wide, BIT(avx512vbmi)))
        mask |= BIT(amx_int8);
    if (has_bits(r->leaf7_edx, 1u << 22) && has_bits(wide, BIT(avx512bf16)))
        mask |= BIT(amx_bf16);
    return mask;
}

uint32_t isa_of_registers(const struct isa_registers *r, bool (*get_tiles)(void))
{
    uint32_t mask = BIT(scalar), wide, tiles;

    /* FMA 12, OSXSAVE 27, AVX 28, F16C 29; AVX2 is leaf 7 EBX 5. */
    if (!has_bits(r->leaf1_ecx, 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29) ||
        !has_bits(r->leaf7_ebx, 1u << 5) || !has_bits(r->xcr0, XCR0_YMM))
        return mask;
    mask |= BIT(avx2);
    if (has_bits(r->leaf7_1_eax, 1u << 4))
        mask |= BIT(avxvnni);

    /* F 16, DQ 17, BW 30, VL 31 */
    if (!has_bits(r->xcr0, XCR0_ZMM) ||
        !has_bits(r->leaf7_ebx, 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31))
        return mask;
    wide = wide_levels(r);
    tiles = tile_levels(r, wide);
    return mask | wide | (tiles != 0 && get_tiles() ? tiles : 0);
}

/* ---- this machine ---------------------------------------------------------------- */

#ifdef SLM_HAVE_LIBCPUID

#define STATE_TILES  18     /* number of the state to ask for */
#define REQUEST_PERM 0x1023 /* ARCH_REQ_XCOMP_PERM of Linux 5.16 */

static uint32_t read_xcr0(void)
{
    uint32_t low, high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* Whether the kernel lets this process use tiles, and the threads and processes that it
 * starts. */
static bool request_tiles(void)
{
    return syscall(SYS_arch_prctl, REQUEST_PERM, STATE_TILES) == 0;
}

static uint32_t detect(void)
{
    struct cpu_raw_data_t raw;
    uint32_t leaf7_1[4] = {7, 0, 1, 0}; /* in: eax, -, ecx; out: all four */
    struct isa_registers r = {0};

    if (!cpuid_present() || cpuid_get_raw_data(&raw) != 0 || raw.basic_cpuid[0][0] < 7)
        return BIT(scalar);
    r.leaf1_ecx = raw.basic_cpuid[1][2];
    r.leaf7_ebx = raw.basic_cpuid[7][1];
    r.leaf7_ecx = raw.basic_cpuid[7][2];
    r.leaf7_edx = raw.basic_cpuid[7][3];
    if (raw.basic_cpuid[7][0] >= 1) {
        cpu_exec_cpuid_ext(leaf7_1);
        r.leaf7_1_eax = leaf7_1[0];
    }
    if (has_bits(r.leaf1_ecx, 1u << 27)) /* OSXSAVE: XGETBV exists */
        r.xcr0 = read_xcr0();
    return isa_of_registers(&r, request_tiles);
}

#elif defined(__aarch64__)

static uint32_t detect(void)
{
    const unsigned long caps = getauxval(AT_HWCAP);
    const unsigned long caps2 = getauxval(AT_HWCAP2);
    uint32_t mask = BIT(scalar);

    if ((caps & HWCAP_ASIMDDP) != 0 && (caps & HWCAP_ASIMDHP) != 0) {
        mask |= BIT(neon);
#ifdef HWCAP2_I8MM
        if ((caps2 & HWCAP2_I8MM) != 0)
            mask |= BIT(neon_i8mm);
#endif
    }
    (void)caps2;
    return mask;
}

#else

static uint32_t detect(void)
{
    return BIT(scalar);
}

#endif

uint32_t isa_detected(void)
{
    uint32_t mask = atomic_load(&detected_mask);

    if (mask == 0) {
        mask = detect();
        atomic_store(&detected_mask, mask);
    }
    return mask;
}

uint32_t isa_usable(void)
{
    return isa_detected() & ~atomic_load(&disabled_mask);
}

void isa_disable(uint32_t mask)
{
    uint32_t off = mask;

    for (int isa = 0; isa < KERN_N_ISA; isa++)
        if ((levels[isa].builds_on & mask) != 0)
            off |= 1u << isa;
    atomic_fetch_or(&disabled_mask, off & ~BIT(scalar));
}

static bool is_name(const char *wanted, const char *name, size_t len)
{
    return strlen(wanted) == len && memcmp(wanted, name, len) == 0;
}

/* The levels of that name, 0: none. */
static uint32_t find_levels(const char *name, size_t len)
{
    if (is_name("amx", name, len))
        return ISA_TILE_LEVELS;
    for (int isa = KERN_ISA_scalar + 1; isa < KERN_N_ISA; isa++)
        if (is_name(levels[isa].name, name, len))
            return 1u << isa;
    return 0;
}

int isa_parse_list(const char *list, uint32_t *mask, const char **bad, int *bad_len)
{
    uint32_t found = 0;
    const char *name = list;

    for (;;) {
        const size_t len = strcspn(name, ",");
        const uint32_t named = find_levels(name, len);

        if (named == 0) {
            *bad = name;
            *bad_len = (int)len;
            return -1;
        }
        found |= named;
        if (name[len] == '\0')
            break;
        name += len + 1;
    }
    *mask = found;
    return 0;
}
