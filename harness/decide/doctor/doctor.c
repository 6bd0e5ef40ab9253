/* SPDX-License-Identifier: MIT
 *
 * doctor.c - the checks in their order, as text and as JSON
 */
#include "harness/decide/doctor/doctor_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/json_number.h"

#define NAME_WIDTH 14
#define LINE_WIDTH 79

static const char *const states[] = {
    [DOCTOR_FINE] = "fine", [DOCTOR_NOTE] = "note", [DOCTOR_PARTLY] = "partly"};

struct doctor_check *doctor_add(struct doctor *d, const char *name,
                                enum doctor_state state, const char *found, ...)
{
    va_list ap;

    if (d->n == DOCTOR_MAX)
        return &d->check[d->n - 1];

    struct doctor_check *c = &d->check[d->n++];
    snprintf(c->name, sizeof c->name, "%s", name);
    c->state = state;
    c->mend[0] = '\0';
    va_start(ap, found);
    vsnprintf(c->found, sizeof c->found, found, ap);
    va_end(ap);
    return c;
}

void doctor_set_mend(struct doctor_check *c, const char *command)
{
    snprintf(c->mend, sizeof c->mend, "%s", command);
}

/* "Huge pages: 'always' is fine, ...": the subject and what is found. */
static void add_advice(struct doctor *d, const struct topology *t)
{
    struct topo_advice advice[TOPO_MAX_ADVICE];
    const int n = topology_advice(t, advice);

    for (int i = 0; i < n; i++) {
        const char *text = advice[i].text, *colon = strchr(text, ':');
        char name[sizeof d->check[0].name];

        if (!colon || colon[1] != ' ')
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(colon - text), text);
        struct doctor_check *c =
            doctor_add(d, name, advice[i].is_drawback ? DOCTOR_PARTLY : DOCTOR_FINE,
                       "%s", colon + 2);
        if (advice[i].mend)
            doctor_set_mend(c, advice[i].mend);
    }
}

void doctor_examine(struct doctor *d, const struct topology *topo, const char *root,
                    const char *dir)
{
    d->n = 0;
    d->has_fence = false;
    add_advice(d, topo);
    doctor_check_isa(d, topo);
    doctor_check_governor(d, topo, root);
    doctor_check_container(d, root);
    doctor_check_limits(d, topo, root);
    doctor_check_energy(d, root);
    if (*root)
        return;
    doctor_check_fence(d, dir);
    doctor_check_disk(d, dir);
    doctor_check_programs(d);
    doctor_check_quiet(d);
}

int doctor_n_partly(const struct doctor *d)
{
    int n = 0;

    for (int i = 0; i < d->n; i++)
        n += d->check[i].state == DOCTOR_PARTLY;
    return n;
}

static void print_check(const struct doctor_check *c)
{
    const int indent = 8 + NAME_WIDTH + 1;

    printf("%-6s  %-*s ", states[c->state], NAME_WIDTH, c->name);
    text_wrap(stdout, c->found, indent, indent, LINE_WIDTH, false);
    if (!c->mend[0] || strstr(c->found, c->mend))
        return;
    printf("%*sto mend it: ", indent, "");
    text_wrap(stdout, c->mend, indent + 12, indent, LINE_WIDTH, false);
}

void doctor_print(const struct doctor *d)
{
    const int n = doctor_n_partly(d);

    for (int i = 0; i < d->n; i++)
        print_check(&d->check[i]);
    if (n)
        printf("\n%d of %d checks found something that does not work here, or that "
               "makes\nmeasurements slower or less certain.\n",
               n, d->n);
    else
        printf("\nAll %d checks are fine.\n", d->n);
}

/* A figure that is known. */
static json_t *known(int n, bool is_known)
{
    return is_known ? json_integer(n) : json_null();
}

static json_t *fence_json(const struct doctor_fence *f)
{
    const int *n = f->n_allowed;
    json_t *calls =
        json_pack("{s:o, s:o, s:o, s:o}", "kernel", known(f->n_calls, f->n_calls),
                  "reader", known(n[DOCTOR_READER], n[DOCTOR_READER]), "server",
                  known(n[DOCTOR_SERVER], n[DOCTOR_SERVER]), "command",
                  known(n[DOCTOR_COMMAND], n[DOCTOR_COMMAND]));

    return json_pack("{s:o, s:i, s:b, s:b, s:b, s:b, s:b, s:s, s:o}", "system_calls",
                     calls, "landlock", f->landlock, "seccomp", f->filtered,
                     "other_files", f->other_files, "no_new_privs", f->no_new_privs,
                     "capabilities", f->capabilities, "terminal", f->terminal,
                     "io_uring",
                     f->other_rings ? "any"
                     : f->ring      ? "reads"
                                    : "none",
                     "uid", known(f->uid, f->uid >= 0));
}

json_t *doctor_json(const struct doctor *d)
{
    json_t *checks = json_array();

    for (int i = 0; i < d->n; i++) {
        const struct doctor_check *c = &d->check[i];

        json_array_append_new(checks, json_pack("{s:s,s:s,s:o,s:o}", "name", c->name,
                                                "state", states[c->state], "found",
                                                json_text_or_null(c->found), "mend",
                                                json_text_or_null(c->mend)));
    }
    return json_pack("{s:s,s:o,s:o}", "verdict", doctor_n_partly(d) ? "partly" : "fine",
                     "checks", checks, "fence",
                     d->has_fence ? fence_json(&d->fence) : json_null());
}
