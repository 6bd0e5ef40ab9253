/* SPDX-License-Identifier: MIT
 *
 * isa.h - instruction-set levels: what this CPU and this OS may run
 *
 * A level is a bundle of extensions that kernels are compiled for, not a single
 * CPUID bit. Levels are ordered: where several variants of a kernel are usable
 * the one with the highest level is taken. A level counts as usable when CPUID
 * (read through libcpuid) has every extension of the bundle, and, for the
 * wide registers, when the OS saves them (XCR0). Tiles must be asked for, too: that is
 * done once, when levels are detected first, for this process and what it starts.
 *
 * Threading: isa_usable() may be called from any thread; isa_disable() only
 * before the first kernel is selected.
 */
#ifndef SLM_KERNELS_ISA_H
#define SLM_KERNELS_ISA_H

#include <stdbool.h>
#include <stdint.h>

enum kern_isa {
    KERN_ISA_scalar,     /* C11, any CPU; the reference */
    KERN_ISA_avx2,       /* AVX2 + FMA + F16C */
    KERN_ISA_avxvnni,    /* avx2 + AVX-VNNI (256 bit) */
    KERN_ISA_avx512,     /* AVX-512 F BW DQ VL, no VNNI */
    KERN_ISA_avx512bf16, /* avx512 + AVX512-BF16: products of pairs of bf16 */
    KERN_ISA_avx512vnni, /* avx512 + AVX512-VNNI */
    KERN_ISA_avx512vbmi, /* avx512vnni + AVX512-VBMI: bytes looked up in registers */
    KERN_ISA_amx_int8,   /* avx512vbmi + AMX-INT8: products of tiles of bytes */
    KERN_ISA_amx_bf16,   /* avx512bf16 + AMX-BF16: products of tiles of bf16 */
    KERN_ISA_neon,       /* Armv8.2 with dot product */
    KERN_ISA_neon_i8mm,  /* neon + I8MM */
    KERN_N_ISA
};

/* Lower-case name of a level, as in file names and options ("avx512vnni"). */
const char *isa_name(enum kern_isa isa);

/* One-line list of the extensions a level stands for ("AVX2 FMA F16C"). */
const char *isa_extensions(enum kern_isa isa);

/* The level itself and those whose instructions it includes (avx512vnni: avx2,
 * avx512, avx512vnni); scalar is a part of none but itself. */
uint32_t isa_included(enum kern_isa isa);

/* Bit mask (1u << isa) of what this machine offers, before isa_disable(). */
uint32_t isa_detected(void);

/* isa_detected() less what was disabled. Bit KERN_ISA_scalar is always set. */
uint32_t isa_usable(void);

/* Switch levels off; a level that builds on a disabled one goes off with it
 * (disabling avx2 disables every x86 level above it). scalar cannot be
 * disabled: its bit is ignored. */
void isa_disable(uint32_t mask);

/* Parse a comma-separated list of level names ("avx512vnni,avx2"), or "amx".
 * Returns 0 and sets *mask, or returns -1, leaves *mask alone and points *bad
 * at the first unknown name (length *bad_len). scalar is an unknown name. */
int isa_parse_list(const char *list, uint32_t *mask, const char **bad, int *bad_len);

/* Levels whose kernels multiply tiles. In lists of names "amx" stands for them. */
#define ISA_TILE_LEVELS (1u << KERN_ISA_amx_int8 | 1u << KERN_ISA_amx_bf16)

#endif
