/* SPDX-License-Identifier: MIT
 *
 * quick_print.c - the answer of `bench quick` for a person
 */
#include "harness/decide/quick/quick.h"

#include <math.h>

#include "harness/base/format.h"

#define LINE_WIDTH 79

void quick_print_machine(FILE *f, const struct topology *topo)
{
    char text[600] = "";

    text_append(text, sizeof text, "%s, %d core%s, %d CPU%s allowed",
                *topo->cpu_model ? topo->cpu_model : "This machine",
                topo->n_allowed_cores, plural(topo->n_allowed_cores, "s"),
                topo->n_allowed, plural(topo->n_allowed, "s"));
    if (topo->quota_cpus > 0)
        text_append(text, sizeof text, " with a quota of %.4g", topo->quota_cpus);
    text_append(text, sizeof text, ", %s of memory available",
                bytes_text(topology_usable_bytes(topo, 0)).text);
    if (topology_is_limited(topo))
        text_append(text, sizeof text, " within a limit of %s",
                    bytes_text(topo->mem_limit).text);
    text_append(text, sizeof text, ".");
    if (*topo->smt_measured)
        text_append(text, sizeof text, " %s", topo->smt_measured);
    text_wrap(f, text, 0, 0, LINE_WIDTH, true);
}

static struct shown_figure cell(double v)
{
    return isfinite(v) ? number_text(v) : (struct shown_figure){"-"};
}

static void print_table(FILE *f, const struct quick_answer *a)
{
    char share[24];

    fprintf(f, "\n%-22s %9s %8s %10s %6s  %s\n", "model", "needs", "tok/s", "prompt, s",
            "roof", "figures");
    for (size_t i = 0; i < a->n_models; i++) {
        const struct quick_model *m = &a->models[i];

        if (!m->is_measured && m->fits && !isfinite(m->tok_per_s))
            continue;
        snprintf(share, sizeof share, "%.0f %%", 100 * m->share);
        fprintf(f, "%-22.22s %9s %8s %10s %6s  %s\n", m->name,
                bytes_text(m->needed_bytes).text, cell(m->tok_per_s).text,
                cell(m->prompt_s).text, isfinite(m->share) ? share : "-",
                !m->fits                            ? "does not fit"
                : m->is_bound || m->prompt_is_bound ? "at least that fast"
                : m->is_measured                    ? "measured"
                                                    : "expected");
    }
}

/* The answer is last: on a terminal of 24 lines the table scrolls away. */
void quick_print(FILE *f, const struct quick_answer *a)
{
    struct quick_sentence text[QUICK_MAX_SENTENCES];
    const int n = quick_sentences(a, text);
    char legend[400] = "";

    print_table(f, a);
    text_append(legend, sizeof legend,
                "needs: memory; tok/s: decoding, at the depth of the context; prompt: "
                "time to read %d tokens, not predicted for models with experts; roof: "
                "the share of the memory bandwidth that decoding uses",
                a->n_prompt);
    if (isfinite(a->roof_gbps))
        text_append(legend, sizeof legend, ", of %.3g GB/s", a->roof_gbps);
    text_append(legend, sizeof legend, ". Measured %d time%s in %s.", a->n_rounds,
                plural(a->n_rounds, "s"), duration_text(a->measured_s).text);
    putc('\n', f);
    text_wrap(f, legend, 0, 0, LINE_WIDTH, false);
    for (int i = 0; i < n; i++) {
        putc('\n', f);
        text_wrap(f, text[i].text, 0, 0, LINE_WIDTH, false);
    }
    fputs("\nNext, for all settings of a model: bench sweep -m MODEL\n", f);
}
