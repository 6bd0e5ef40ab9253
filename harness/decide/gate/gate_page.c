/* SPDX-License-Identifier: MIT
 *
 * gate_page.c - a gate's result as one HTML file
 */
#include <stdlib.h>

#include "harness/decide/gate/gate_report.h"
#include "harness/show/page/html.h"

void gate_page_write(FILE *f, const struct gate_result *r)
{
    char title[80], *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);

    snprintf(title, sizeof title, "bench gate: %s", gate_verdict_word(r->verdict));
    html_begin(f, title);
    if (to) {
        gate_print(to, r);
        fclose(to);
    }
    fputs("<div><pre>", f);
    if (text)
        html_put_lines(f, text);
    fputs("</pre></div>\n", f);
    free(text);
    if (gate_forest_has_any(r))
        html_put_plot(f, gate_forest_plot(r));
    html_end(f, "bench gate");
}
