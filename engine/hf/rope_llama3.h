/* SPDX-License-Identifier: MIT
 *
 * rope_llama3.h - factor by which Llama 3.1 slows down the rotation of a pair
 *
 * A pair that turns `high` times or more within the original context keeps its speed,
 * one that turns `low` times or less is slowed down by `stretch`, those between partly.
 *
 * Source: Llama 3.1's published frequencies.
 *
 * Threading: pure functions.
 */
#ifndef SLM_ENGINE_HF_ROPE_LLAMA3_H
#define SLM_ENGINE_HF_ROPE_LLAMA3_H

/* The factor, 1 to stretch; low < high. */
static inline double rope_llama3_factor(double turns, double low, double high,
                                        double stretch)
{
    const double part = (turns - low) / (high - low);
    const double kept = part < 0.0 ? 0.0 : part > 1.0 ? 1.0 : part;

    return 1.0 / ((1.0 - kept) / stretch + kept);
}

#endif
