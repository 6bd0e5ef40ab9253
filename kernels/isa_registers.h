/* SPDX-License-Identifier: MIT
 *
 * isa_registers.h - ISA levels by what an x86 CPU and its OS report: for isa.c, and for
 * tests with the registers of other CPUs
 *
 * Threading: pure, but for what it is given to call.
 * Source: Intel SDM vol. 2, CPUID; vol. 1, 13.3 (XCR0).
 */
#ifndef SLM_KERNELS_ISA_REGISTERS_H
#define SLM_KERNELS_ISA_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

/* CPUID leaves 1, 7 and 7 subleaf 1, and XCR0: the registers that the OS saves. A leaf
 * that the CPU lacks is 0, and so is XCR0 without OSXSAVE. */
struct isa_registers {
    uint32_t leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_edx, leaf7_1_eax;
    uint32_t xcr0; /* lower half */
};

/* Mask of the levels, scalar included. Tiles count only where get_tiles() is true,
 * which asks the kernel for them; it is called once, where a level lacks nothing else,
 * or not at all. */
uint32_t isa_of_registers(const struct isa_registers *r, bool (*get_tiles)(void));

#endif
