/* SPDX-License-Identifier: MIT
 *
 * kernel_plan.c - the cases of a request
 */
#include "harness/measure/kernels/kernel_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/parse.h"
#include "kernels/probe/probe.h"

#define USUAL_COLUMNS 512

/* The words of a request as bits: formats, operations (the last one: all), levels, hot
 * and cold, ways of reading (the first one: all). And the levels of the machine. */
struct words {
    uint64_t formats, ops, isa, weights, prefetch;
    uint32_t usable;
};

_Static_assert(KERN_N_FMT <= 64 && KERN_N_OP < 64 && KERN_N_ISA <= 64,
               "a set of words is a mask of 64 bits");

static bool has(uint64_t words, unsigned which)
{
    return words >> which & 1;
}

static enum status check_columns(const struct int_list *list, struct err *err)
{
    size_t n;
    const int *columns = kernel_columns(&n);
    char known[100] = "";

    for (size_t i = 0; i < list->n; i++) {
        size_t k = 0;

        while (k < n && columns[k] != list->v[i])
            k++;
        if (k < n)
            continue;
        for (k = 0; k < n; k++)
            text_append(known, sizeof known, "%s%d", k ? ", " : "", columns[k]);
        return err_set(err, ST_USAGE,
                       "--columns: %d is not one of the timed numbers: %s", list->v[i],
                       known);
    }
    return ST_OK;
}

/* Whether every word of --prefetch is "all" or a way of reading that is timed, and no
 * number of --panels is another. */
static enum status read_prefetch(uint64_t *bits, const struct kernel_wish *w,
                                 struct err *err)
{
    size_t n;
    const struct kern_prefetch *known = kernel_prefetches(&n);
    const char *words[64] = {"all"};
    struct kernel_name name[64];
    size_t n_words = 1;

    if (w->panels.n && !w->prefetch)
        return err_set(err, ST_USAGE,
                       "--panels requires --prefetch, as in --prefetch all");
    for (size_t i = 0; i < w->panels.n; i++)
        if (w->panels.v[i] == 3)
            return err_set(err, ST_USAGE,
                           "--panels: 3 is not one of the timed numbers: 1, 2, 4");
    for (size_t i = 0; i < n && known[i].n_panels == known[0].n_panels; i++) {
        name[n_words] = kernel_prefetch_name(known[i]);
        words[n_words] = name[n_words].text;
        n_words++;
    }
    return parse_words(w->prefetch, "--prefetch", words, (int)n_words, bits, err);
}

static enum status read_wish(struct words *words, const struct kernel_wish *w,
                             struct err *err)
{
    static const char *const weights[] = {"hot", "cold"};
    const char *formats[KERN_N_FMT], *ops[KERN_N_OP + 1], *levels[KERN_N_ISA];
    enum status st = ST_OK;

    for (int i = 0; i < KERN_N_FMT; i++)
        formats[i] = kern_format_info((enum kern_format)i)->name;
    for (int i = 0; i < KERN_N_OP; i++)
        ops[i] = kern_op_name((enum kern_op)i);
    ops[KERN_N_OP] = "all";
    for (int i = 0; i < KERN_N_ISA; i++)
        levels[i] = isa_name((enum kern_isa)i);
    if (parse_words(w->formats, "--formats", formats, KERN_N_FMT, &words->formats,
                    err) ||
        parse_words(w->ops, "--ops", ops, KERN_N_OP + 1, &words->ops, err) ||
        parse_words(w->isa, "--isa", levels, KERN_N_ISA, &words->isa, err) ||
        check_columns(&w->columns, err) || read_prefetch(&words->prefetch, w, err))
        st = err->code;
    return st ? st
              : parse_words(w->weights, "--weights", weights, 2, &words->weights, err);
}

/* ---- the request ----------------------------------------------------------------- */

static bool has_int(const struct int_list *list, int value, int usual)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i] == value)
            return true;
    return list->n == 0 && value == usual;
}

static bool wants_op(const struct kernel_wish *w, const struct words *words,
                     const struct kern_entry *e)
{
    if (!w->ops)
        return kernel_product(e->op) != NULL;
    return has(words->ops, KERN_N_OP) || has(words->ops, e->op);
}

static bool is_per_format(const struct kern_entry *e)
{
    return e->what >= 0 && e->op != KERN_OP_quantize_act;
}

static enum kern_format format_of(const struct kern_entry *e)
{
    return e->op == KERN_OP_attn_dot || e->op == KERN_OP_attn_mix ||
                   e->op == KERN_OP_attn_mix_keys || e->op == KERN_OP_to_kv
               ? kern_kv_format((enum kern_kv)e->what)
               : (enum kern_format)e->what;
}

static bool wants_isa(const struct kernel_wish *w, const struct words *words,
                      const struct kern_entry *e)
{
    if (w->all_isa)
        return true;
    if (w->isa)
        return has(words->isa, e->isa);
    const struct kern_row *best = kern_best(e->op, e->what, words->usable);
    return best && best->isa == e->isa;
}

static bool wants_prefetch(const struct kernel_wish *w, const struct words *words,
                           const struct kernel_case *c)
{
    size_t n, way = 0;
    const struct kern_prefetch *known = kernel_prefetches(&n);

    if (!c->prefetch.n_panels)
        return !w->prefetch;
    while (known[way].distance != c->prefetch.distance ||
           known[way].hint != c->prefetch.hint)
        way++;
    return w->prefetch && (words->prefetch & (1 | UINT64_C(2) << way)) &&
           (!w->panels.n || has_int(&w->panels, (int)c->prefetch.n_panels, 0));
}

static bool wants_product(const struct kernel_wish *w, const struct words *words,
                          const struct kernel_case *c, const struct kernel_product *p)
{
    if (!has(words->weights, c->cache == KERNEL_HOT ? 0 : 1) ||
        !wants_prefetch(w, words, c) ||
        (c->cache == KERNEL_COLD && !has_int(&w->threads, c->n_threads, c->n_threads)))
        return false;
    if (!p->has_columns)
        return true;
    return has_int(&w->columns, c->n_x, USUAL_COLUMNS) &&
           (w->threads.n || c->n_threads == 1);
}

static bool wants(const struct kernel_wish *w, const struct words *words,
                  const struct kernel_case *c, const struct kern_entry *e)
{
    const struct kernel_product *p = kernel_product(e->op);

    if (!wants_op(w, words, e) || !wants_isa(w, words, e))
        return false;
    if (is_per_format(e) && !has(words->formats, format_of(e)))
        return false;
    return !p || wants_product(w, words, c, p);
}

/* ---- the plan -------------------------------------------------------------------- */

static bool is_planned(const struct kernel_plan *plan, const struct kernel_case *c)
{
    const struct kernel_name name = kernel_case_name(c);

    for (size_t i = 0; i < plan->n_run; i++)
        if (!strcmp(kernel_case_name(&plan->run[i]).text, name.text))
            return true;
    return false;
}

static void add_roof(struct kernel_plan *plan, const struct kernel_case *roof)
{
    if (is_planned(plan, roof))
        return;
    plan->run[plan->n_run++] = *roof;
    plan->n_roofs++;
}

/* Where the CPU has tiles, a run with one peak of bytes has that of vectors and that of
 * tiles, so that the shares of both are known. */
static void add_peaks(struct kernel_plan *plan, struct kernel_case roof,
                      uint32_t usable)
{
    const uint32_t levels[] = {usable & ~ISA_TILE_LEVELS, usable};
    const bool both = usable >> KERN_ISA_amx_int8 & 1 && !strcmp(roof.what, "int8");

    add_roof(plan, &roof);
    for (int i = 0; both && i < 2; i++) {
        snprintf(roof.isa, sizeof roof.isa, "%s",
                 isa_name(probe_kernel_best(PROBE_OP_peak_int8, levels[i])->isa));
        add_roof(plan, &roof);
    }
}

/* The cost of few columns is reported against one column of the same row. */
static void add_one_column(struct kernel_plan *plan, const struct kernel_case *all,
                           size_t n_all, const struct kernel_case *c)
{
    if (c->n_x == 1 || c->n_x >= KERNEL_MANY_COLUMNS)
        return;
    for (size_t i = 0; i < n_all; i++)
        if (!strncmp(all[i].op, "gemv", 4) && !strcmp(all[i].op + 4, c->op + 4) &&
            !strcmp(all[i].what, c->what) && !strcmp(all[i].isa, c->isa) &&
            all[i].cache == KERNEL_COLD && all[i].n_threads == c->n_threads &&
            !all[i].prefetch.n_panels && !is_planned(plan, &all[i]))
            plan->run[plan->n_run++] = all[i];
}

/* run and skip have room for all n_all cases each, which include the roofs. */
static void choose(struct kernel_plan *plan, const struct kernel_case *all,
                   size_t n_all, const struct kernel_wish *wish,
                   const struct words *words, const struct topology *topo)
{
    for (size_t i = 0; i < n_all; i++) {
        const struct kern_entry *e = kernel_case_entry(&all[i]);

        if (!e || !wants(wish, words, &all[i], e))
            continue;
        if (words->usable >> e->isa & 1) {
            plan->run[plan->n_run++] = all[i];
            continue;
        }
        struct kernel_skip *skip = &plan->skip[plan->n_skip++];
        skip->c = all[i];
        snprintf(skip->reason, sizeof skip->reason, "%s",
                 topo->isa_missing[e->isa][0] ? topo->isa_missing[e->isa]
                                              : "not in this build");
    }
    for (size_t i = 0, n = plan->n_run; i < n; i++)
        add_one_column(plan, all, n_all, &plan->run[i]);
    for (size_t i = 0, n = plan->n_run; i < n; i++) {
        struct kernel_case roof;

        if (kernel_case_read_roof(&roof, &plan->run[i]))
            add_roof(plan, &roof);
        if (kernel_case_roof(&roof, &plan->run[i]))
            add_peaks(plan, roof, words->usable);
    }
}

/* One thread is always included: hot cases run with one. */
static void set_threads(struct kernel_plan *plan, const struct kernel_wish *wish,
                        const struct topology *topo)
{
    plan->threads[plan->n_threads++] = 1;
    for (size_t i = 0; i < wish->threads.n && plan->n_threads < TOPO_MAX_CPUS; i++)
        if (wish->threads.v[i] != 1)
            plan->threads[plan->n_threads++] = wish->threads.v[i];
    if (!wish->threads.n && topo->threads_default > 1)
        plan->threads[plan->n_threads++] = topo->threads_default;
}

static enum status nothing_to_run(const struct kernel_plan *plan, struct err *err)
{
    if (plan->n_skip)
        return err_set(err, ST_UNSUPPORTED,
                       "nothing of this can run here; level of %s: %s",
                       kernel_case_name(&plan->skip[0].c).text, plan->skip[0].reason);
    return err_set(
        err, ST_USAGE,
        "there is no such row: the formats, operations, levels and columns requested "
        "have none in common; `bench kernels --list` shows what there is");
}

enum status kernel_plan_make(struct kernel_plan *plan, const struct kernel_wish *wish,
                             const struct topology *topo, struct err *err)
{
    struct kernel_plan new = {.n_run = 0};
    struct kernel_case *all = NULL;
    size_t n_all = 0;
    struct words words = {.usable = topo->isa_mask};
    enum status st = read_wish(&words, wish, err);

    if (st)
        return st;
    set_threads(&new, wish, topo);
    if (kernel_cases_all(&all, &n_all, new.threads, (size_t) new.n_threads, err))
        return err->code;
    new.run = calloc(n_all + 1, sizeof *new.run);
    new.skip = calloc(n_all + 1, sizeof *new.skip);
    if (new.run &&new.skip)
        choose(&new, all, n_all, wish, &words, topo);
    else
        st = err_set(err, ST_NO_MEMORY, "no memory for %zu cases", n_all);
    free(all);
    if (st == ST_OK && new.n_run == 0)
        st = nothing_to_run(&new, err);
    if (st)
        kernel_plan_free(&new);
    else
        *plan = new;
    return st;
}

void kernel_plan_free(struct kernel_plan *plan)
{
    free(plan->run);
    free(plan->skip);
    *plan = (struct kernel_plan){.n_run = 0};
}
