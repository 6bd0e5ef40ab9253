/* SPDX-License-Identifier: MIT
 *
 * gate_markdown.c - a gate's result as a page of GitHub's Markdown
 */
#include <string.h>

#include "engine/base/utf8.h"
#include "harness/base/format.h"
#include "harness/decide/gate/gate_report.h"

static const char *const signs[] = {"\xe2\x9d\x94", "\xe2\x9c\x85", "\xe2\x9d\x8c",
                                    "\xe2\x9d\x94"}; /* by enum gate_verdict */

static void put_metric(FILE *f, const struct gate_metric *m)
{
    const enum gate_verdict verdict = gate_metric_verdict(m);
    const struct gate_text interval = gate_interval_text(&m->effect);

    fputs("| ", f);
    markdown_put(f, m->name);
    fputs(" | ", f);
    markdown_put(f, gate_value_text(m->a, m->unit).text);
    fputs(" | ", f);
    markdown_put(f, gate_value_text(m->b, m->unit).text);
    fprintf(f, " | **%s**%s%s | %s | %s | %s %s |\n",
            gate_change_text(m->effect.ratio).text, *interval.text ? "<br>" : "",
            interval.text, gate_change_text(1 - m->margin).text, gate_p_text(m).text,
            signs[verdict], gate_verdict_word(verdict));
}

static void put_table(FILE *f, const struct gate_result *r)
{
    if (!r->n_metrics) {
        fputs("Nothing was measured.\n\n", f);
        return;
    }
    fputs("| metric | A | B | change, 95 % interval | margin | p | verdict |\n"
          "|:--|--:|--:|--:|--:|--:|:--|\n",
          f);
    for (size_t i = 0; i < r->n_metrics; i++)
        put_metric(f, &r->metric[i]);
    fputs("\n<sub>Change: below 0 B is worse, also where less is better. p: the "
          "probability of so bad (fail) or so good (pass) a B if it lost exactly the "
          "margin; both where undecided.</sub>\n\n",
          f);
}

static void put_fact(FILE *f, const char *what, const char *text)
{
    if (!text[0])
        return;
    fprintf(f, "| %s | ", what);
    markdown_put(f, text);
    fputs(" |\n", f);
}

static void put_side(FILE *f, const char *what, const struct gate_side *s)
{
    char text[900];

    snprintf(text, sizeof text, "%s%s%s%s%s%s%s", s->name,
             s->version[0] ? ", version " : "", s->version,
             s->commit[0] ? ", commit " : "", s->commit,
             s->compiler[0] ? ", built with " : "", s->compiler);
    put_fact(f, what, text);
}

static void put_facts(FILE *f, const struct gate_result *r)
{
    char text[600];

    fputs("| | |\n|:--|:--|\n", f);
    put_fact(f, "machine", r->cpu);
    put_fact(f, "model", r->model);
    put_fact(f, "settings", r->settings);
    put_side(f, "A", &r->side[0]);
    put_side(f, "B", &r->side[1]);
    if (r->injected > 0) {
        snprintf(text, sizeof text, "B was slowed by %.3g %% on purpose",
                 100 * r->injected);
        put_fact(f, "injected", text);
    }
    if (r->mode == GATE_MODE_BASELINE)
        snprintf(text, sizeof text, "%zu new run%s", r->n_launches,
                 r->n_launches == 1 ? "" : "s");
    else
        snprintf(text, sizeof text,
                 "%zu round%s of %zu launch%s, %zu interim analys%s, in %s",
                 r->n_rounds, plural(r->n_rounds, "s"), r->n_launches,
                 plural(r->n_launches, "es"), r->n_interim,
                 r->n_interim == 1 ? "is" : "es", duration_text(r->seconds).text);
    if (r->budget_s > 0)
        text_append(text, sizeof text, " of %s", duration_text(r->budget_s).text);
    put_fact(f, "measured", text);
    if (r->n_disturbed)
        snprintf(text, sizeof text, "%zu round%s left out: %s", r->n_disturbed,
                 plural(r->n_disturbed, "s"), r->disturbed);
    else
        snprintf(text, sizeof text, "no round");
    if (r->n_again)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "; %zu turn%s played again", r->n_again, plural(r->n_again, "s"));
    put_fact(f, "disturbed", text);
    put_fact(f, "begun", r->when);
    if (*r->notes)
        put_fact(f, "not covered", r->notes);
    fputc('\n', f);
}

/* HTML, where nothing of Markdown counts until a blank line. */
static void put_command(FILE *f, const char *command)
{
    char line[2048];

    utf8_printable(line, sizeof line, command, strlen(command));
    fputs("<pre>", f);
    for (const char *c = line; *c; c++)
        if (*c == '<' || *c == '>' || *c == '&')
            fputs(*c == '<' ? "&lt;" : *c == '>' ? "&gt;" : "&amp;", f);
        else
            fputc(*c, f);
    fputs("</pre>\n\n", f);
}

static void add_option(char *command, size_t cap, const char *option, const char *text)
{
    if (!*text)
        return;
    shell_word_append(command, cap, option);
    shell_word_append(command, cap, text);
}

/* Details that the sentence at the top leaves out. */
static void put_advice(FILE *f, const struct gate_result *r, enum gate_verdict verdict)
{
    char command[4096] = "bench gate", text[32];

    if (verdict == GATE_PASS || r->mode != GATE_MODE_AB)
        return;
    if (*r->sides) {
        text_append(command, sizeof command, "%s", r->sides);
    } else {
        add_option(command, sizeof command, "--a", r->side[0].name);
        add_option(command, sizeof command, "--b", r->side[1].name);
        add_option(command, sizeof command, "-m", r->model);
    }
    add_option(command, sizeof command, "-c", r->given.config);
    add_option(command, sizeof command, "-t", r->given.threads);
    add_option(command, sizeof command, "--prefill", r->given.prefill);
    add_option(command, sizeof command, "--ctx", r->given.ctx);
    add_option(command, sizeof command, "--weights", r->given.weights);
    add_option(command, sizeof command, "--mem", r->given.mem);
    snprintf(text, sizeof text, "%.4g%%", 100 * r->rule.margin);
    add_option(command, sizeof command, "--margin", text);
    snprintf(text, sizeof text, "%.4g%%", 100 * r->injected);
    add_option(command, sizeof command, "--inject-slowdown",
               r->injected > 0 ? text : "");
    snprintf(text, sizeof text, "%.0fs",
             r->budget_s * (verdict == GATE_UNCLEAR ? 2 : 1));
    add_option(command, sizeof command, "--budget", text);
    fputs(verdict == GATE_UNCLEAR ? "To decide it, double the budget:\n\n"
                                  : "To repeat it on a quiet machine:\n\n",
          f);
    put_command(f, command);
}

void gate_markdown_write(FILE *f, const struct gate_result *r)
{
    const enum gate_verdict verdict =
        r->verdict == GATE_OPEN ? GATE_UNCLEAR : r->verdict;
    char sentence[1024];

    fprintf(f, "### %s bench gate: %s\n\n", signs[verdict], gate_verdict_word(verdict));
    markdown_put(f, gate_sentence(r, sentence, sizeof sentence));
    fputs("\n\n", f);
    put_table(f, r);
    put_facts(f, r);
    put_advice(f, r, verdict);
}
