/* SPDX-License-Identifier: MIT
 *
 * traps.h - the rows of a level that this CPU lacks, with a stand-in for what is
 * missing
 *
 * SLM_TEST_TRAP=avxvnni, amx_int8 or amx_bf16: the rows of that level only, whose
 * missing instructions avxvnni_trap.h or amx_trap.h stands in for.
 */
#ifndef SLM_TESTS_TRAPS_H
#define SLM_TESTS_TRAPS_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/isa.h"
#include "kernels/kernels.h"
#if defined(__x86_64__)
#include "tests/support/traps/amx_trap.h"
#endif

static inline bool trapping(void)
{
    return getenv("SLM_TEST_TRAP") != NULL;
}

#if defined(__x86_64__)
/* Levels whose instructions can be stood in for, on CPUs that have `needs`. */
struct trap {
    enum kern_isa isa, needs;
    void (*set)(void);
};

/* The one that SLM_TEST_TRAP names, or NULL. */
static inline const struct trap *trap_named(void)
{
    static const struct trap traps[] = {
        {KERN_ISA_avxvnni, KERN_ISA_avx2, avxvnni_trap},
        {KERN_ISA_amx_int8, KERN_ISA_avx512vbmi, amx_trap},
        {KERN_ISA_amx_bf16, KERN_ISA_avx512bf16, amx_trap},
    };

    for (size_t i = 0; i < sizeof(traps) / sizeof(traps[0]); i++)
        if (strcmp(getenv("SLM_TEST_TRAP"), isa_name(traps[i].isa)) == 0)
            return &traps[i];
    return NULL;
}
#endif

/* Why SLM_TEST_TRAP is of no use here, or NULL. */
static inline const char *trap_refused(void)
{
#if defined(__x86_64__)
    const struct trap *t = trap_named();

    if (t == NULL)
        return "the only traps are avxvnni, amx_int8 and amx_bf16";
    if ((isa_usable() >> t->needs & 1) == 0)
        return "this CPU lacks what the level builds on";
    if ((isa_usable() >> t->isa & 1) != 0)
        return "this CPU has the level, the test without a trap runs its rows";
    return NULL;
#else
    return "the only traps are for x86";
#endif
}

/* Sets the trap, if there is to be one: in each test, since cmocka sets handlers of its
 * own before. */
static inline void trap_set(void)
{
#if defined(__x86_64__)
    if (trapping())
        trap_named()->set();
#endif
}

/* Whether a row that has returned left tiles configured: a thread that sleeps would
 * keep its core from sleeping deeply. */
static inline bool trap_holds_tiles(void)
{
#if defined(__x86_64__)
    return amx_state.is_configured;
#else
    return false;
#endif
}

/* Whether rows of this level are left out, because those of a trap's level are wanted.
 */
static inline bool trap_leaves_out(enum kern_isa isa)
{
#if defined(__x86_64__)
    return trapping() && isa != trap_named()->isa;
#else
    return false;
#endif
}

#endif
