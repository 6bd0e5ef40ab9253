/* SPDX-License-Identifier: MIT
 *
 * units.h - units for products that a CPU has and no kernel here uses
 *
 * Model of the world: ISA levels (isa.h) are what kernels are written for, and
 * the arithmetic peak is probed with them. A CPU may have further units whose peak is
 * higher, as AMX-FP16 is 16 times AVX-512. This is the list of them, so that a share of
 * the probed peak is not taken for a share of what the CPU could do. A unit leaves the
 * list with the first kernel that uses it.
 *
 * Threading: pure functions, but for units_detect(), which reads CPUID.
 * Source: Intel's Architecture Instruction Set Extensions Programming Reference
 * (319433), chapter 1; names of flags: Linux, cpufeatures.h and arm64's hwcap names.
 */
#ifndef SLM_KERNELS_UNITS_H
#define SLM_KERNELS_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNITS_TEXT_MAX 128 /* of units_text() */

enum unit_register {
    UNIT_LEAF7_EDX,
    UNIT_LEAF7_1_EAX,
    UNIT_LEAF7_1_EDX,
    UNIT_AVX10, /* no register: a bit for each version that the CPU has */
    UNIT_N_REGISTERS
};

/* What CPUID and XGETBV say: leaf 7 subleaf 0, leaf 7 subleaf 1, leaf 0x24, XCR0. */
struct unit_registers {
    uint32_t value[UNIT_N_REGISTERS];
    uint32_t xcr0; /* low half: registers that the OS saves */
};

/* A bit for each unit, by CPUID and XCR0: x86 only. */
uint32_t units_of_registers(const struct unit_registers *r);

/* UNIT_AVX10 by leaf 7 subleaf 1 EDX, which has AVX10 or not, and leaf 0x24 EBX, which
 * has the version. */
uint32_t units_avx10(uint32_t leaf7_1_edx, uint32_t leaf24_ebx);

/* The same by the flags of /proc/cpuinfo ("flags" of x86, "Features" of Arm), which the
 * kernel lists where the OS saves the registers. Linux has no flags for AVX-VNNI-INT8,
 * AVX-VNNI-INT16 and AVX10. */
uint32_t units_of_flags(const char *flags);

/* This machine's: by CPUID on x86, else by flags. */
uint32_t units_detect(const char *flags);

/* Name of the unit of bit i, NULL beyond the last one. */
const char *unit_name(int i);

/* "AMX-FP16 AVX512-FP16" into buf; "" for none. Returns buf. */
const char *units_text(uint32_t units, char *buf, size_t cap);

#endif
