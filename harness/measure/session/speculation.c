/* SPDX-License-Identifier: MIT
 *
 * speculation.c - acceptance and gain in words
 */
#include "harness/measure/session/conversation.h"

#include <stdio.h>

void speculation_print(const struct speculate_stats *s)
{
    if (!s->n_drafted)
        return;
    fprintf(stderr, "acceptance by position: ");
    for (int i = 0; i < SPECULATE_MAX && s->drafted_at[i]; i++)
        fprintf(stderr, "%s%.0f %%", i ? ", " : "",
                100.0 * (double)s->accepted_at[i] / (double)s->drafted_at[i]);
    if (s->gain > 0)
        fprintf(stderr, "; %.2f times the speed of plain decoding, by the passes' cost",
                s->gain);
    fputc('\n', stderr);
}
