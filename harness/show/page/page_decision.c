/* SPDX-License-Identifier: MIT
 *
 * page_decision.c - what is recommended, and its reasons
 */
#include "harness/show/page/page_machine.h"

#include "harness/base/format.h"
#include "harness/show/page/html.h"

/* One large figure and what it is. */
static void put_figure(FILE *f, const char *figure, const char *unit, const char *what)
{
    html_put_in(f, "<li><b>", figure, " <small>");
    html_put(f, unit);
    html_put_in(f, "</small></b><span>", what, "</span></li>\n");
}

static void put_speed(FILE *f, const struct recommendation *rec)
{
    const struct row *b = &rec->best;
    const int digits = report_decimals(rec->best_tok_per_s);
    char figure[48], what[128];

    snprintf(figure, sizeof figure, "%s%.*f", rec->best_from_ctx >= 0 ? "about " : "",
             digits, rec->best_tok_per_s);
    if (rec->best_from_ctx < 0 && b->tok_per_s_lo > 0 && b->tok_per_s_hi > 0)
        snprintf(what, sizeof what, "decoding, %.*f to %.*f", digits, b->tok_per_s_lo,
                 digits, b->tok_per_s_hi);
    else
        snprintf(what, sizeof what, "decoding, context depth %lld", (long long)b->ctx);
    put_figure(f, figure, "tok/s", what);
}

void page_put_figures(FILE *f, const struct recommendation *rec)
{
    const struct row *b = &rec->best;
    char figure[48], what[128];

    fputs("<ul class=\"figures\">\n", f);
    put_speed(f, rec);
    if (rec->prompt.n_prompt) {
        snprintf(what, sizeof what, "to the first token of %lld",
                 (long long)rec->prompt.n_prompt);
        put_figure(f, report_figure(rec->prompt.warm_s).text, "s", what);
    }
    if (b->mbu > 0) {
        snprintf(figure, sizeof figure, "%.0f", 100 * b->mbu);
        put_figure(f, figure, "%", "of the roof");
    }
    if (rec->memory.left_bytes >= 0 && rec->memory.limit_bytes > 0) {
        snprintf(figure, sizeof figure, "%.2f",
                 (double)rec->memory.left_bytes / (1 << 30));
        snprintf(what, sizeof what, "%sleft of %s",
                 rec->memory.is_lower_bound ? "at least " : "",
                 bytes_text((uint64_t)rec->memory.limit_bytes).text);
        put_figure(f, figure, "GiB", what);
    }
    fputs("</ul>\n", f);
}

static void put_paragraph(FILE *f, const char *text)
{
    html_put_in(f, "<p>", text, "</p>\n");
}

static void put_reasons(FILE *f, const struct recommendation *rec)
{
    if (rec->n_steps) {
        fputs("<h3>Quality against speed</h3>\n<ul>\n", f);
        for (int i = 0; i < rec->n_steps; i++)
            html_put_in(f, "<li>", rec->steps[i].text, "</li>\n");
        fputs("</ul>\n", f);
    }
    fputs("<h3>Evidence</h3>\n", f);
    put_paragraph(f, rec->why);
    if (rec->has_runner_up) {
        fputs("<p>Runner-up: ", f);
        html_printf(f, "%s: %s%s tok/s.", recommend_choice(&rec->runner_up).text,
                    rec->runner_up_from_ctx >= 0 ? "about " : "",
                    report_figure(rec->runner_up_tok_per_s).text);
        fputs("</p>\n", f);
    }
    if (rec->excluded[0])
        html_put_in(f, "<p class=\"dim\">Left out: ", rec->excluded, ".</p>\n");
}

static void put_answer(FILE *f, const struct recommendation *rec)
{
    fputs("<div class=\"decision\">\n<p class=\"label\">Recommended</p>\n"
          "<p class=\"choice\">",
          f);
    html_put(f, recommend_choice(&rec->best).text);
    if (rec->best.ctx > 0)
        html_printf(f, ", context up to %lld", (long long)row_context(&rec->best));
    fputs("</p>\n", f);
    if (rec->instead[0])
        html_put_in(f, "<p class=\"sub\">or ", rec->instead, "</p>\n");
    page_put_figures(f, rec);
    put_paragraph(f, rec->answer);
    put_reasons(f, rec);
    if (rec->best.command[0]) {
        html_put_in(f, "<h3>Measure it again</h3>\n<code class=\"command\">",
                    rec->best.command, "</code>\n");
    } else if (rec->no_command[0]) {
        html_put_in(f,
                    "<p class=\"dim\">No command measures it again: ", rec->no_command,
                    ".</p>\n");
    }
    fputs("</div>\n", f);
}

static void put_none(FILE *f, const char *model, const char *why)
{
    fputs("<div class=\"decision\">\n<p class=\"label\">No recommendation</p>\n"
          "<p class=\"choice\">",
          f);
    html_put(f, model);
    fputs("</p>\n", f);
    put_paragraph(f, why);
    fputs("</div>\n", f);
}

void page_put_decision(FILE *f, const struct page_machine *m)
{
    if (m->no_answer.code && !m->answers.n)
        put_none(f, "", m->no_answer.msg);
    for (size_t i = 0; i < m->answers.n; i++) {
        const struct recommend_answer *a = &m->answers.v[i];

        if (a->none.code)
            put_none(f, a->model, a->none.msg);
        else
            put_answer(f, &a->rec);
    }
}
