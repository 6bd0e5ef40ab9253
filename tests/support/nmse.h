/* SPDX-License-Identifier: MIT
 *
 * nmse.h - how far values are off, as one figure
 */
#ifndef SLM_TESTS_NMSE_H
#define SLM_TESTS_NMSE_H

#include <stddef.h>

/* The mean squared difference of n values from those wanted, relative to the mean
 * square of the latter. Not a number where all are wanted to be zero and are: a bound
 * is written !(nmse(...) < bound), which that fails. */
static inline double nmse(const float *have, const float *want, size_t n)
{
    double error = 0, power = 0;

    for (size_t i = 0; i < n; i++) {
        const double d = (double)have[i] - (double)want[i];

        error += d * d;
        power += (double)want[i] * (double)want[i];
    }
    return error / power;
}

#endif
