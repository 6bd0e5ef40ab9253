/* SPDX-License-Identifier: MIT
 *
 * gate_page.c - a gate's result as one HTML file; a badge
 */
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/decide/gate/gate_report.h"
#include "harness/show/page/html.h"

void gate_page_write(FILE *f, const struct gate_result *r)
{
    char title[80], sentence[1024], *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);

    snprintf(title, sizeof title, "bench gate: %s", gate_verdict_word(r->verdict));
    html_begin(f, title);
    if (to) {
        gate_print(to, r);
        fclose(to);
    }
    html_put_in(f, "<p>", gate_sentence(r, sentence, sizeof sentence),
                "</p>\n<div><pre>");
    if (text)
        html_put_lines(f, text);
    fputs("</pre></div>\n", f);
    free(text);
    if (gate_forest_has_any(r))
        html_put_plot(f, gate_forest_plot(r));
    html_end(f, "bench gate");
}

/* ---- the verdict as a small picture, for the top of a README --------------------- */

#define LABEL     "speed"
#define CHARACTER 6.6 /* width of one, of 11 pixels' Verdana or DejaVu Sans */
#define PADDING   10

/* "pass, -0.3 %": digits, points and signs only, besides the word. */
void gate_badge_write(FILE *f, const struct gate_result *r)
{
    const struct gate_metric *worst = gate_worst(r);
    const double left = CHARACTER * strlen(LABEL) + PADDING;
    char text[64];

    snprintf(text, sizeof text, "%s", gate_verdict_word(r->verdict));
    if (worst && worst->effect.ratio > 0)
        text_append(text, sizeof text, ", %s",
                    gate_change_text(worst->effect.ratio).text);
    const double right = CHARACTER * (double)strlen(text) + PADDING;

    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"20\" "
            "role=\"img\" aria-label=\"%s: %s\">\n"
            "<rect width=\"%.0f\" height=\"20\" rx=\"3\" fill=\"#555\"/>\n"
            "<rect x=\"%.0f\" width=\"%.0f\" height=\"20\" rx=\"3\" fill=\"%s\"/>\n"
            "<g fill=\"#fff\" text-anchor=\"middle\" font-size=\"11\" "
            "font-family=\"Verdana,DejaVu Sans,sans-serif\">\n"
            "<text x=\"%.1f\" y=\"14\">%s</text>\n"
            "<text x=\"%.1f\" y=\"14\">%s</text>\n</g>\n</svg>\n",
            left + right, LABEL, text, left + right, left, right,
            r->verdict == GATE_FAIL   ? "#b00020"
            : r->verdict == GATE_PASS ? "#2a7d2e"
                                      : "#8a6d00",
            left / 2, LABEL, left + right / 2, text);
}
