/* SPDX-License-Identifier: MIT
 *
 * recommend_speculation.c - a recommendation of speculative decoding, in words
 */
#include "harness/judge/recommend/recommend_choice.h"

#include "harness/base/format.h"

/* What the row shows of its text: a factor is one where its interval leaves out 1. */
static void add_text(const struct row *r, char *buf, size_t cap)
{
    const bool has_interval = r->spec_speedup_lo > 0;

    if (!(r->spec_accept > 0) && r->spec_guessed != FIELD_NO_INT)
        text_append(buf, cap, "%s on the text %s",
                    r->spec_guessed > 0 ? "has no draft token accepted"
                                        : "finds no drafts",
                    r->spec_text);
    else if (!has_interval || (r->spec_speedup_lo <= 1 && r->spec_speedup_hi >= 1))
        text_append(buf, cap, "shows no difference in speed on the text %s",
                    r->spec_text);
    else
        text_append(buf, cap, "makes this setting %.2f times as fast on the text %s",
                    r->spec_speedup, r->spec_text);
    if (has_interval)
        text_append(buf, cap, " (95 %% interval %.2f to %.2f)", r->spec_speedup_lo,
                    r->spec_speedup_hi);
    else
        text_append(buf, cap, " (x %.2f, no interval)", r->spec_speedup);
}

void recommend_add_speculation(const struct report_rows *p, const struct row *setting,
                               char *buf, size_t cap)
{
    const char *lead = " Speculative decoding (prompt lookup) ";

    for (size_t i = 0; i < p->n; i++) {
        const struct row *r = p->v[i];

        if (r->kind != POINT_SPECULATE || !r->spec_text[0] ||
            row_trust(r) != ROW_GOOD || !(r->spec_speedup > 0) ||
            !report_same_setting(r, setting) || r->n_threads != setting->n_threads)
            continue;
        text_append(buf, cap, "%s", lead);
        add_text(r, buf, cap);
        lead = ", and ";
    }
    if (*lead == ',')
        text_append(buf, cap, ".");
}
