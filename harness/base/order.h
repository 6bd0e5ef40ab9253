/* SPDX-License-Identifier: MIT
 *
 * order.h - things ordered by one property after another
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_BASE_ORDER_H
#define SLM_HARNESS_BASE_ORDER_H

#include <stdint.h>

/* In a function that compares: the first comparison that is not 0 decides. */
#define ORDER_BY(comparison)             \
    do {                                 \
        const int order_ = (comparison); \
        if (order_)                      \
            return order_;               \
    } while (0)

static inline int order_ints(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

#endif
