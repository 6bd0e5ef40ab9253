/* SPDX-License-Identifier: MIT
 *
 * kernel_plan.c - the cases of a request
 */
#include "harness/kernelbench/kernel_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "harness/base/format.h"
#include "harness/base/suggest.h"

#define USUAL_COLUMNS 512
#define MAX_NAMES     64

/* ---- lists of words -------------------------------------------------------------- */

/* Whether name is one of the comma-separated words; a NULL list has every name. */
static bool has_word(const char *list, const char *name)
{
    const size_t len = strlen(name);

    for (const char *at = list; at;) {
        if (!strncasecmp(at, name, len) && (at[len] == ',' || !at[len]))
            return true;
        at = strchr(at, ',');
        at += at != NULL;
    }
    return !list;
}

static enum status check_words(const char *list, const char *option,
                               const char *const *names, int n_names, struct err *err)
{
    char known[300] = "";

    for (const char *at = list; at && *at;) {
        const size_t len = strcspn(at, ",");
        char word[64];
        int i = 0;

        snprintf(word, sizeof word, "%.*s", (int)len, at);
        while (i < n_names && strcasecmp(names[i], word) != 0)
            i++;
        if (i == n_names) {
            const char *near = suggest(word, names, n_names);

            if (near)
                return err_set(err, ST_USAGE, "%s: there is no '%s'; did you mean %s?",
                               option, word, near);
            for (i = 0; i < n_names; i++)
                text_append(known, sizeof known, "%s%s", i ? ", " : "", names[i]);
            return err_set(err, ST_USAGE, "%s: there is no '%s'; there are: %s", option,
                           word, known);
        }
        at += len + (at[len] == ',');
    }
    return list && !*list ? err_set(err, ST_USAGE, "%s needs a value", option) : ST_OK;
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
        return err_set(err, ST_USAGE, "--columns: %d is not among what is timed: %s",
                       list->v[i], known);
    }
    return ST_OK;
}

static enum status check_wish(const struct kernel_wish *w, struct err *err)
{
    const char *names[MAX_NAMES];
    static const char *const weights[] = {"hot", "cold"};
    int n = 0;

    for (int i = 0; i < KERN_N_FMT && n < MAX_NAMES; i++)
        names[n++] = kern_format_info((enum kern_format)i)->name;
    if (check_words(w->formats, "--formats", names, n, err))
        return err->code;
    n = 0;
    for (int i = 0; i < KERN_N_OP && n < MAX_NAMES - 1; i++)
        names[n++] = kern_op_name((enum kern_op)i);
    names[n++] = "all";
    if (check_words(w->ops, "--ops", names, n, err))
        return err->code;
    n = 0;
    for (int i = 0; i < KERN_N_ISA; i++)
        names[n++] = isa_name((enum kern_isa)i);
    if (check_words(w->isa, "--isa", names, n, err))
        return err->code;
    if (check_columns(&w->columns, err))
        return err->code;
    return check_words(w->weights, "--weights", weights, 2, err);
}

/* ---- the request ----------------------------------------------------------------- */

static bool has_int(const struct int_list *list, int value, int usual)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i] == value)
            return true;
    return list->n == 0 && value == usual;
}

static bool wants_op(const struct kernel_wish *w, const struct kern_entry *e)
{
    if (!w->ops)
        return kernel_product(e->op) != NULL;
    return has_word(w->ops, "all") || has_word(w->ops, kern_op_name(e->op));
}

static bool is_per_format(const struct kern_entry *e)
{
    return e->what >= 0 && e->op != KERN_OP_quantize_act;
}

static enum kern_format format_of(const struct kern_entry *e)
{
    return e->op == KERN_OP_attn_dot || e->op == KERN_OP_attn_mix
               ? kern_kv_format((enum kern_kv)e->what)
               : (enum kern_format)e->what;
}

static bool wants_isa(const struct kernel_wish *w, const struct kern_entry *e)
{
    if (w->all_isa)
        return true;
    if (w->isa)
        return has_word(w->isa, isa_name(e->isa));
    const struct kern_row *best = kern_best(e->op, e->what, isa_usable());
    return best && best->isa == e->isa;
}

static bool wants_product(const struct kernel_wish *w, const struct kernel_case *c,
                          const struct kernel_product *p)
{
    if (w->weights && !has_word(w->weights, c->cache == KERNEL_HOT ? "hot" : "cold"))
        return false;
    if (w->threads.n && c->cache == KERNEL_COLD &&
        !has_int(&w->threads, c->n_threads, 0))
        return false;
    if (!p->has_columns)
        return true;
    return has_int(&w->columns, c->n_x, USUAL_COLUMNS) &&
           (w->threads.n || c->n_threads == 1);
}

static bool wants(const struct kernel_wish *w, const struct kernel_case *c,
                  const struct kern_entry *e)
{
    const struct kernel_product *p = kernel_product(e->op);

    if (!wants_op(w, e) || !wants_isa(w, e))
        return false;
    if (is_per_format(e) && !has_word(w->formats, kern_format_info(format_of(e))->name))
        return false;
    return !p || wants_product(w, c, p);
}

/* ---- the plan -------------------------------------------------------------------- */

static bool is_planned(const struct kernel_plan *plan, const struct kernel_case *c)
{
    char name[KERNEL_NAME_MAX], other[KERNEL_NAME_MAX];

    kernel_case_name(c, name);
    for (size_t i = 0; i < plan->n_run; i++)
        if (!strcmp(kernel_case_name(&plan->run[i], other), name))
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
            !is_planned(plan, &all[i]))
            plan->run[plan->n_run++] = all[i];
}

/* run and skip have room for all n_all cases each, which include the roofs. */
static void choose(struct kernel_plan *plan, const struct kernel_case *all,
                   size_t n_all, const struct kernel_wish *wish,
                   const struct topology *topo)
{
    for (size_t i = 0; i < n_all; i++) {
        const struct kern_entry *e = kernel_case_entry(&all[i]);

        if (!e || !wants(wish, &all[i], e))
            continue;
        if (isa_usable() >> e->isa & 1) {
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
            add_roof(plan, &roof);
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
    char name[KERNEL_NAME_MAX];

    if (plan->n_skip)
        return err_set(err, ST_UNSUPPORTED,
                       "nothing of this can run here; level of %s: %s",
                       kernel_case_name(&plan->skip[0].c, name), plan->skip[0].reason);
    return err_set(
        err, ST_USAGE,
        "there is no such row: the formats, operations, levels and columns asked for "
        "have none in common; `bench kernels --list` shows what there is");
}

enum status kernel_plan_make(struct kernel_plan *plan, const struct kernel_wish *wish,
                             const struct topology *topo, struct err *err)
{
    struct kernel_plan new = {.n_run = 0};
    struct kernel_case *all = NULL;
    size_t n_all = 0;
    enum status st = check_wish(wish, err);

    if (st)
        return st;
    set_threads(&new, wish, topo);
    st = kernel_cases_all(&all, &n_all, new.threads, (size_t) new.n_threads, err);
    if (st)
        return st;
    new.run = calloc(n_all + 1, sizeof *new.run);
    new.skip = calloc(n_all + 1, sizeof *new.skip);
    if (new.run &&new.skip)
        choose(&new, all, n_all, wish, topo);
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
