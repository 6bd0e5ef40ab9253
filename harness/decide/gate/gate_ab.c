/* SPDX-License-Identifier: MIT
 *
 * gate_ab.c - `bench gate --a PROGRAM --b PROGRAM`: two builds, side by side
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/decide/gate/gate_quality.h"
#include "harness/decide/gate/gate_session.h"
#include "harness/machine/measuring.h"

/* The verdict at the launches there are, and which metrics have failed. */
static enum status analyse(struct gate_result *r, bool failed[GATE_MAX_METRICS],
                           struct err *err)
{
    const struct gate_series *series[GATE_MAX_METRICS];
    double margin[GATE_MAX_METRICS];

    for (size_t i = 0; i < r->n_metrics; i++) {
        series[i] = &r->metric[i].series;
        margin[i] = r->metric[i].margin;
    }
    r->n_interim++;
    return gate_judge(&r->verdict, &r->rule, margin, series, r->n_metrics, failed, err);
}

/* Launches until an interim analysis is clear, or the budget or the analyses are at
 * their end. The plan has their number; where the budget ends between two of them, the
 * next one is made early: the end does not depend on which side is faster. */
static enum status play(struct gate_run *run, bool failed[GATE_MAX_METRICS],
                        struct err *err)
{
    struct gate_result *r = run->r;
    const size_t n_interim = gate_n_interim(run->plan.max_launches);
    size_t n_analysed = 0;

    r->rule.n_interim = n_interim;
    for (size_t k = 0; k < n_interim; k++) {
        bool room = true;
        enum status st = ST_OK;

        while (st == ST_OK && r->n_launches < gate_interim_at(k, n_interim) && room) {
            st = gate_run_launch(run, err);
            room = gate_run_has_time(run);
        }
        if (st == ST_OK && r->n_launches > n_analysed)
            st = analyse(r, failed, err);
        n_analysed = r->n_launches;
        if (st)
            return st;
        r->end = r->verdict != GATE_OPEN ? GATE_END_CLEAR
                 : room                  ? GATE_END_INTERIM
                                         : GATE_END_BUDGET;
        if (r->verdict != GATE_OPEN || !room)
            break;
    }
    return ST_OK;
}

/* Effects of all metrics that have rounds, and each one's verdict. */
static enum status judge(struct gate_result *r, const bool *failed, struct err *err)
{
    const double pass = r->rule.alpha_pass / (double)r->rule.n_interim;

    for (size_t i = 0; i < r->n_metrics; i++) {
        struct gate_metric *m = &r->metric[i];
        struct gate_rule rule = r->rule;
        enum status st;

        m->effect = (struct gate_effect){NAN, NAN, NAN, NAN, NAN};
        m->verdict = GATE_UNCLEAR;
        if (!m->n_rounds)
            continue;
        rule.margin = m->margin;
        st = gate_effect(&m->effect, &m->series, &rule, err);
        if (st == ST_OK)
            st = gate_check_effect(m, err);
        if (st)
            return st;
        if (r->end != GATE_END_INTERRUPTED)
            m->verdict = failed[i]                  ? GATE_FAIL
                         : m->effect.p_pass <= pass ? GATE_PASS
                                                    : GATE_UNCLEAR;
    }
    if (r->verdict == GATE_OPEN)
        r->verdict = GATE_UNCLEAR;
    return ST_OK;
}

static void copy(char *buf, size_t cap, const char *text)
{
    snprintf(buf, cap, "%s", text ? text : "");
}

static void name_machine(struct gate_result *r, const struct topology *topo)
{
    json_t *object = topology_json(topo);

    r->has_machine = machine_key_read(&r->machine, object);
    json_decref(object);
    gethostname(r->host, sizeof r->host - 1);
}

static void note(struct gate_result *r, const char *text)
{
    text_append(r->notes, sizeof r->notes, "%s%s", *r->notes ? "; " : "", text);
}

static bool same_bytes(FILE *a, FILE *b)
{
    static char piece[2][1 << 16];
    size_t n[2];

    do {
        n[0] = fread(piece[0], 1, sizeof piece[0], a);
        n[1] = fread(piece[1], 1, sizeof piece[1], b);
        if (n[0] != n[1] || memcmp(piece[0], piece[1], n[0]) != 0)
            return false;
    } while (n[0]);
    return true;
}

/* Commands whose words after the program are the same, and whose programs are files of
 * equal bytes. */
static bool same_program(const char *a, const char *b)
{
    const size_t len[2] = {strcspn(a, " "), strcspn(b, " ")};
    char path[2][4096];
    bool same = false;

    if (!strcmp(a, b))
        return true;
    if (strcmp(a + len[0], b + len[1]) != 0 || len[0] >= sizeof path[0] ||
        len[1] >= sizeof path[1])
        return false;
    snprintf(path[0], sizeof path[0], "%.*s", (int)len[0], a);
    snprintf(path[1], sizeof path[1], "%.*s", (int)len[1], b);
    FILE *f[2] = {fopen(path[0], "re"), fopen(path[1], "re")};
    if (f[0] && f[1])
        same = same_bytes(f[0], f[1]);
    for (int i = 0; i < 2; i++)
        if (f[i])
            fclose(f[i]);
    return same;
}

/* A gate of equal sides is a test of the gate: what is compared by mistake is noticed.
 */
static void note_same(struct gate_result *r, const struct gate_options *o,
                      const char *const program[2])
{
    if (!o->b_model && !(r->injected > 0) && same_program(program[0], program[1]))
        note(r, "a difference of A and B: they are the same program, to the byte");
    else if (o->b_model && o->model && !strcmp(o->model, o->b_model))
        note(r, "a difference of A and B: they are the same model");
}

static void note_lock(struct gate_result *r)
{
    char why[80] = "", text[160];

    measuring_remark(why, sizeof why);
    snprintf(text, sizeof text, "measurements of others at the same time (%s)", why);
    if (*why)
        note(r, text);
}

/* What was given, and the commit of a program that does not know its own. */
static void name_commits(struct gate_result *r, const struct gate_commits *c,
                         const char *run)
{
    for (int side = 0; side < 2; side++) {
        const struct gate_commit *of = &c->side[side];
        struct gate_side *out = &r->side[side];

        snprintf(out->name, sizeof out->name, "%s of %s", run, of->name);
        if (!*out->commit || !strcmp(out->commit, "unknown"))
            snprintf(out->commit, sizeof out->commit, "%.12s", of->id);
    }
}

static bool is_launch(const struct gate_options *o)
{
    return o->a && strstr(o->a, "{port}") && !strstr(o->a, "{model}");
}

/* The options that name sides and models, where the result's own names do not repeat
 * it. */
static void name_sides(struct gate_result *r, const struct gate_options *o)
{
    const char *const given[][2] = {
        {"--a", o->a},           {"--b", o->b},
        {"-m", o->model},        {"--b-model", o->b_model},
        {"--max-kl", o->max_kl}, {"--build", o->build},
        {"--run", o->run},       {"--since", o->since},
    };

    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        const bool is_server = i < 2 && is_launch(o);
        char option[16];

        if (!given[i][1])
            continue;
        snprintf(option, sizeof option, "%s%s", given[i][0],
                 is_server ? "-launch" : "");
        shell_word_append(r->sides, sizeof r->sides, option);
        shell_word_append(r->sides, sizeof r->sides, given[i][1]);
    }
}

static void describe(struct gate_result *r, const struct gate_options *o,
                     const struct gate_settings *s, const struct topology *topo)
{
    struct gate_given *g = &r->given;

    r->mode = GATE_MODE_AB;
    r->rule = s->rule;
    r->budget_s = s->budget_s;
    r->injected = s->slower;
    if (strcmp(topo->cpu_model, "unknown") != 0)
        snprintf(r->cpu, sizeof r->cpu, "%s", topo->cpu_model);
    if (s->has_b_model)
        snprintf(r->model, sizeof r->model, "%.120s, B with %.120s",
                 s->setup.model.text, s->b_model.text);
    else
        snprintf(r->model, sizeof r->model, "%.255s", s->setup.model.text);
    gate_settings_text(s, r->settings, sizeof r->settings);
    name_machine(r, topo);
    if (o->b_model || gate_options_have_commits(o) || is_launch(o) ||
        (o->a && strstr(o->a, "://")))
        name_sides(r, o);
    copy(g->config, sizeof g->config, o->config);
    copy(g->threads, sizeof g->threads, o->threads);
    copy(g->prefill, sizeof g->prefill, o->prefill);
    copy(g->ctx, sizeof g->ctx, o->ctx);
    copy(g->weights, sizeof g->weights, o->weights);
    copy(g->mem, sizeof g->mem, o->mem);
    format_now(r->when, sizeof r->when);
}

static enum status make_dir(struct gate_run *run, struct err *err)
{
    const enum status st = dirs_make(run->r->dir, err);

    return st ? st : gate_rounds_open(&run->csv, run->r->dir, err);
}

static enum status compare(struct gate_session *x, struct gate_result *r,
                           struct err *err)
{
    const struct gate_options *o = x->o;
    const struct gate_settings *s = &x->s;
    struct gate_run *run = &x->run;
    bool failed[GATE_MAX_METRICS] = {false};
    struct err why = ERR_INIT;
    enum status st;

    describe(r, o, s, x->topo);
    /* checked before anything takes time; made when there is something to write */
    st = gate_session_dir(r->dir, o, "gate-", err);
    if (st == ST_OK)
        st = gate_session_begin(x, err);
    if (st == ST_OK && s->max_kl > 0)
        st = gate_quality(r, s, err);
    if (st == ST_OK)
        st = gate_run_open(run, s, x->topo, x->program, r, err);
    if (st == ST_OK && s->has_b_model && !(s->max_kl > 0))
        note(r, "whether the models answer alike: --max-kl judges how far they "
                "diverge, and `bench quality` measures it in full");
    if (st == ST_OK)
        note_same(r, o, x->program);
    if (st == ST_OK)
        note_lock(r);
    if (st == ST_OK)
        st = make_dir(run, err);
    if (st)
        return st;
    st = play(run, failed, &why);
    progress_end(&run->progress);
    if (st && st != ST_INTERRUPTED)
        return err_set(err, st, "%s", why.msg);
    if (st == ST_INTERRUPTED) {
        r->verdict = GATE_UNCLEAR;
        r->end = GATE_END_INTERRUPTED;
    }
    gate_run_sum_up(run);
    if (gate_options_have_commits(o))
        name_commits(r, &x->commits, o->run);
    st = judge(r, failed, err);
    if (st == ST_OK)
        gate_quality_judge(r);
    return st;
}

enum status gate_ab(const struct gate_options *o, struct gate_result *r,
                    struct err *err)
{
    struct gate_session *x;
    enum status st = gate_session_open(&x, o, err);

    if (st == ST_OK) {
        memcpy(o->codes, x->s.exit_code, sizeof x->s.exit_code);
        st = compare(x, r, err);
    }
    gate_session_close(x);
    return st;
}
