/* SPDX-License-Identifier: MIT
 *
 * acts.h - activation columns as kernel tests make and read them
 */
#ifndef SLM_TESTS_ACTS_H
#define SLM_TESTS_ACTS_H

#include "tests/support/test.h"

#include "kernels/activations/activations.h"
#include "kernels/kernels.h"

enum act_kind {
    ACTS_RANDOM,
    ACTS_ALTERNATING, /* largest quants, signs in turn */
    ACTS_CONSTANT,    /* largest quants, one sign */
    ACTS_OUTLIER,     /* one value far above the others */
    ACTS_TINY,        /* partly below what the layouts keep */
    ACTS_ZERO,
    N_ACT_KINDS
};

/* ---- buffers --------------------------------------------------------------------- */

struct buffer {
    void *p;
    size_t bytes;
};

static inline struct buffer buffer_new(size_t bytes)
{
    return (struct buffer){guard_alloc(bytes), bytes};
}

static inline void buffer_free(struct buffer b)
{
    guard_free(b.p, b.bytes);
}

static inline float *floats_new(size_t n)
{
    float *p = calloc(n + 1, sizeof(*p));

    assert_non_null(p);
    return p;
}

/* ---- activations ----------------------------------------------------------------- */

static inline void fill_column(enum act_kind kind, float *x, size_t k, uint64_t *seed)
{
    for (size_t i = 0; i < k; i++) {
        const float r = test_random_float(seed);

        switch (kind) {
        case ACTS_RANDOM:
            x[i] = r * 3;
            break;
        case ACTS_ALTERNATING:
            x[i] = i % 2 == 0 ? 127.0f : -127.0f;
            break;
        case ACTS_CONSTANT:
            x[i] = -1e4f;
            break;
        case ACTS_OUTLIER:
            x[i] = i % 97 == 5 ? 3e8f : r;
            break;
        case ACTS_TINY:
            x[i] = r * (i / 32 % 2 == 0 ? 0x1p-98f : 0x1p-140f);
            break;
        case ACTS_ZERO:
        case N_ACT_KINDS:
            x[i] = 0;
            break;
        }
    }
}

static inline size_t act_block(int act)
{
    switch (act) {
    case KERN_ACT_f32:
        return 1;
    case KERN_ACT_q8_32:
        return 32;
    case KERN_ACT_q8_256:
        return 256;
    default:
        fail_msg("the test does not know activation layout %s",
                 kern_act_name((enum kern_act)act));
        return 0;
    }
}

/* Value i of a column, exactly. */
static inline double act_value(int act, const void *column, size_t k, size_t i)
{
    if (act == KERN_ACT_f32)
        return (double)((const float *)column)[i];
    if (act == KERN_ACT_q8_32)
        return (double)act_q8_32_d(column, k)[i / 32] * act_q(column)[i];
    return (double)act_q8_256_d(column, k)[i / 256] * act_q(column)[i];
}

/* Whether this CPU cannot run the row. */
static inline bool unusable(const struct kern_row *row)
{
    return (isa_usable() >> row->isa & 1) == 0;
}

#endif
