/* SPDX-License-Identifier: MIT
 *
 * choose_print.c - divergence against bytes as a table
 */
#include <math.h>
#include <stdio.h>

#include "harness/base/format.h"
#include "harness/decide/choose/choose.h"

#define LINE_WIDTH 79

static void print_file(const struct choose_file *f, const char *kind)
{
    printf("%-10s %11llu  %8.6f  %8.6f  ", f->name, (unsigned long long)f->bytes, f->kl,
           f->kl_se);
    if (isnan(f->promised))
        printf("%8s", "");
    else
        printf("%8.6f", f->promised);
    printf("  %6.2f  %s\n", f->top1_pct, kind);
}

const struct choose_file *choose_rival(const struct choose_result *r,
                                       const struct choose_file *mix)
{
    const struct choose_file *best = NULL;

    for (size_t i = 0; i < r->n_usual; i++)
        if (r->usual[i].bytes <= mix->bytes + mix->bytes / 200 &&
            (!best || r->usual[i].kl < best->kl))
            best = &r->usual[i];
    return best;
}

void choose_print_files(const struct choose_result *r)
{
    char legend[400];

    printf("\n%-10s %11s  %8s  %8s  %8s  %6s\n", "file", "bytes", "KL", "+-",
           "expected", "same %");
    for (size_t i = 0, u = 0; i < r->n_mixes || u < r->n_usual;) {
        if (i < r->n_mixes &&
            (u == r->n_usual || r->mixes[i].bytes >= r->usual[u].bytes ||
             r->mixes[i].bytes + r->mixes[i].bytes / 200 >= r->usual[u].bytes)) {
            const struct choose_file *mix = &r->mixes[i++],
                                     *rival = choose_rival(r, mix);
            char kind[240] = "searched";

            if (rival && rival->kl > 0 && mix->kl > 0)
                snprintf(kind, sizeof kind, "%.0f %% %s %s",
                         100 * fabs(mix->kl / rival->kl - 1),
                         mix->kl > rival->kl ? "above" : "below", rival->name);
            print_file(mix, kind);
        } else {
            print_file(&r->usual[u++], "usual");
        }
    }
    snprintf(legend, sizeof legend,
             "KL: divergence from the %s model in nats, %zu positions, its standard "
             "error, and what the search expected; same: positions with the same most "
             "likely token; usual: a mix of types that others use; below, above: KL "
             "against the usual mix of that size. Measured in %s.",
             r->quant, r->n_scored, duration_text(r->seconds).text);
    putchar('\n');
    text_wrap(stdout, legend, 0, 0, LINE_WIDTH, false);
}
