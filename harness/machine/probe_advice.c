/* SPDX-License-Identifier: MIT
 *
 * probe_advice.c - what the machine's roofs mean for a model
 */
#include "harness/machine/probe.h"

#include <string.h>

#include "harness/base/format.h"
#include "kernels/units.h"

/* The model that examples are of: nine billion parameters, as Q4_K_M has them. */
#define EXAMPLE_PARAMS 9e9
#define EXAMPLE_BYTES  5.3e9
#define EXAMPLE_PROMPT 512

#define AS_FAST 0.97 /* of the best: reads as fast */

struct list {
    struct topo_advice *item;
    int n;
};

static char *next(struct list *l)
{
    struct topo_advice *advice = &l->item[l->n++];
    char *text = advice->text;

    advice->is_drawback = false;
    advice->mend = NULL;
    text[0] = '\0';
    return text;
}

#define TEXT_CAP sizeof((struct topo_advice *)0)->text

static const struct probe_read_row *fastest(const struct probe_report *r)
{
    const struct probe_read_row *best = &r->read[0];

    for (int i = 1; i < r->n_read_rows; i++)
        if (r->read[i].gbps.median > best->gbps.median)
            best = &r->read[i];
    return best;
}

/* The row of the fewest threads that read as fast. */
static const struct probe_read_row *cheapest(const struct probe_report *r,
                                             const struct probe_read_row *best)
{
    const struct probe_read_row *found = best;

    for (int i = 0; i < r->n_read_rows; i++)
        if (r->read[i].n_threads < found->n_threads &&
            r->read[i].gbps.median >= AS_FAST * best->gbps.median)
            found = &r->read[i];
    return found;
}

static void advise_decode(struct list *l, const struct probe_report *r,
                          const struct topology *topo)
{
    const struct probe_read_row *best = fastest(r), *few = cheapest(r, best);
    const uint64_t room = topology_model_bytes(topo, 0);
    char *text = next(l);

    text_append(text, TEXT_CAP,
                "Decode: a model of 5.3 GB (9 billion parameters as Q4_K_M) decodes at "
                "most %s tok/s with %d thread%s, as each token reads all of it, at %s "
                "GB/s from memory.",
                number_text(best->gbps.median * 1e9 / EXAMPLE_BYTES).text,
                best->n_threads, plural(best->n_threads, "s"),
                number_text(best->gbps.median).text);
    if (few != best)
        text_append(text, TEXT_CAP, " %d thread%s read%s as fast.", few->n_threads,
                    plural(few->n_threads, "s"), few->n_threads == 1 ? "s" : "");
    if (room && (double)room < EXAMPLE_BYTES)
        text_append(text, TEXT_CAP, " Here it does not fit: there is room for %s.",
                    bytes_text(room).text);
}

static void advise_prefill(struct list *l, const struct probe_report *r)
{
    const double gops = r->int8_gops[r->n_peak_threads > 1].median;

    text_append(next(l), TEXT_CAP,
                "Prefill: a prompt of %d tokens of a model of 9 billion parameters "
                "takes at least %s s: two operations per parameter and token, at %s "
                "GOPS in int8 with %d thread%s.",
                EXAMPLE_PROMPT,
                number_text(2 * EXAMPLE_PARAMS * EXAMPLE_PROMPT / (gops * 1e9)).text,
                number_text(gops).text, r->n_peak_threads,
                plural(r->n_peak_threads, "s"));
}

/* The peak above is that of the kernels' levels. */
static void advise_units(struct list *l, const struct topology *topo)
{
    char units[UNITS_TEXT_MAX];

    text_append(
        next(l), TEXT_CAP,
        "Arithmetic: no kernel here uses %s of this CPU, and the peak is without "
        "%s; programs that use such units can be faster in prefill.",
        units_text(topo->unused_units, units, sizeof units),
        strchr(units, ' ') ? "them" : "it");
}

static void advise_disk(struct list *l, const struct probe_report *r)
{
    text_append(
        next(l), TEXT_CAP,
        "Disk: reading 5.3 GB takes at least %s s, at %s GB/s: once when such a model "
        "is loaded, and up to once per token where it does not fit memory.",
        number_text(EXAMPLE_BYTES / (r->disk_gbps.median * 1e9)).text,
        number_text(r->disk_gbps.median).text);
}

int probe_advice(const struct probe_report *r, const struct topology *topo,
                 struct topo_advice *out)
{
    struct list l = {.item = out};

    if (r->n_read_rows)
        advise_decode(&l, r, topo);
    if (r->int8_gops[r->n_peak_threads > 1].median > 0)
        advise_prefill(&l, r);
    if (r->int8_gops[0].median > 0 && topo->unused_units)
        advise_units(&l, topo);
    if (r->has_disk && r->disk_gbps.median > 0)
        advise_disk(&l, r);
    if (*r->validity && strcmp(r->validity, "valid"))
        text_append(next(&l), TEXT_CAP,
                    "The bandwidth was measured on a busy machine (%s), so it may give "
                    "more.",
                    r->validity);
    return l.n;
}
