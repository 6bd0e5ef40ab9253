/* SPDX-License-Identifier: MIT
 *
 * quick_text.c - the answer of `bench quick` in plain sentences, and as JSON
 */
#include "harness/decide/quick/quick_answer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/json_number.h"
#include "harness/rows/roofs.h"

/* Below these a disturbance is not worth a sentence of its own; noise.c decides what is
 * one. */
#define MIN_PCT       3.0
#define MIN_THROTTLED 0.02

/* CPU time of others that more than halves the speed of a pool whose threads wait for
 * each other, on a few CPUs. */
#define FAR_PCT 25.0

struct list {
    struct quick_sentence *out;
    int n;
};

__attribute__((format(printf, 2, 3))) static void add_line(struct list *l,
                                                           const char *fmt, ...)
{
    va_list ap;

    if (l->n == QUICK_MAX_SENTENCES)
        return;
    va_start(ap, fmt);
    vsnprintf(l->out[l->n].text, sizeof l->out[l->n].text, fmt, ap);
    va_end(ap);
    l->n++;
}

/* ---- round figures --------------------------------------------------------------- */

struct shown_figure quick_round(double v)
{
    static const double steps[] = {1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.2, 2.5,
                                   3, 3.5, 4,   4.5, 5,   5.5, 6,   7,   8, 9,   10};
    const size_t n = sizeof steps / sizeof steps[0];
    struct shown_figure shown = {"0"};
    double power, best = steps[0];

    if (!(v > 0) || !isfinite(v))
        return shown;
    power = pow(10, floor(log10(v)));
    for (size_t i = 1; i < n; i++)
        if (fabs(steps[i] - v / power) < fabs(best - v / power))
            best = steps[i];
    snprintf(shown.text, sizeof shown.text, best * power >= 99.5 ? "%.0f" : "%.2g",
             best * power);
    return shown;
}

struct figure {
    char text[32];
};

/* "40 ms", "9 s", "2.5 min" */
static struct figure seconds(double s)
{
    const double in_unit = s < 0.2 ? s * 1e3 : s < 100 ? s : s / 60;
    struct figure f;

    snprintf(f.text, sizeof f.text, "%s %s", quick_round(in_unit).text,
             s < 0.2   ? "ms"
             : s < 100 ? "s"
                       : "min");
    return f;
}

/* "9B", "1.1B", "270M" */
static struct figure size_of(const struct quick_model *m)
{
    const double n = (double)m->n_params;
    struct figure f;

    if (n < 0.95e9)
        snprintf(f.text, sizeof f.text, n < 9.5e6 ? "%.1fM" : "%.0fM", n * 1e-6);
    else if (n < 2.95e9)
        snprintf(f.text, sizeof f.text, "%.2gB", n * 1e-9);
    else
        snprintf(f.text, sizeof f.text, "%.0fB", n * 1e-9);
    return f;
}

/* "a 9B", "an 8B" */
static struct figure article_and_size(const struct quick_model *m)
{
    const struct figure size = size_of(m);
    const bool vowel =
        size.text[0] == '8' || !strcmp(size.text, "11B") || !strcmp(size.text, "18B");
    struct figure f;

    snprintf(f.text, sizeof f.text, "%s %.20s", vowel ? "an" : "a", size.text);
    return f;
}

/* "A 9B model in Q4_K_M", "An 8B model ..", or the name of a file. */
static const char *subject(const struct quick_answer *a, const struct quick_model *m,
                           char *buf, size_t cap)
{
    if (m->is_shape)
        snprintf(buf, cap, "%s model in %s", article_and_size(m).text, a->quant);
    else
        snprintf(buf, cap, "%.100s", m->name);
    if (m->is_shape)
        buf[0] = 'A';
    return buf;
}

/* ---- the answer ------------------------------------------------------------------ */

static const char *about(const struct quick_model *m)
{
    return m->is_bound ? "at least" : "about";
}

static void add_measured(struct list *l, const struct quick_answer *a,
                         const struct quick_model *m)
{
    char who[160];

    add_line(l,
             "%s fits with %d tokens of context and decodes %s %s tok/s with %d "
             "thread%s; a %d-token prompt takes %s%s.",
             subject(a, m, who, sizeof who), m->ctx, about(m),
             quick_round(m->tok_per_s).text, a->n_threads, plural(a->n_threads, "s"),
             a->n_prompt, m->prompt_is_bound ? "at most " : "",
             seconds(m->prompt_s).text);
}

static bool is_fast(const struct quick_answer *a, const struct quick_model *m)
{
    return m->tok_per_s >= a->want_tok_per_s;
}

/* The largest model that is fast enough, where the smallest that is not is larger: a
 * model that the last-level cache holds is no evidence about others. */
static void add_size_for_speed(struct list *l, const struct quick_answer *a)
{
    const struct quick_model *fast = NULL, *slow = NULL;
    const struct shown_figure want = quick_round(a->want_tok_per_s);

    for (size_t i = 0; i < a->n_models; i++) {
        const struct quick_model *m = &a->models[i];

        if (!m->fits || m->has_experts || !m->is_shape || !(m->tok_per_s > 0) ||
            m->work.memory_bytes <= (double)a->llc_bytes)
            continue;
        if (is_fast(a, m))
            fast = m;
        else if (!slow)
            slow = m;
    }
    if (fast && slow)
        add_line(l,
                 "To decode %s tok/s (--min-tps) take %s model: %s %s are %s (shape of "
                 "%s).%s",
                 want.text, article_and_size(fast).text, about(fast),
                 quick_round(fast->tok_per_s).text,
                 fast->is_measured ? "measured" : "expected", fast->name,
                 slow->is_bound ? " A larger one may reach that on a quiet machine."
                                : "");
    else if (fast)
        add_line(l,
                 "%s tok/s are reached by all sizes that are known and fit, up to %s.",
                 want.text, size_of(fast).text);
    else if (slow && slow->is_bound)
        add_line(l,
                 "Which size reaches %s tok/s is not known: %s model decodes at least "
                 "%s.",
                 want.text, article_and_size(slow).text,
                 quick_round(slow->tok_per_s).text);
    else if (slow)
        add_line(
            l,
            "No size that is known reaches %s tok/s here: %s model decodes about %s.",
            want.text, article_and_size(slow).text, quick_round(slow->tok_per_s).text);
}

static void add_what_does_not_fit(struct list *l, const struct quick_answer *a)
{
    for (size_t i = 0; i < a->n_models; i++) {
        const struct quick_model *m = &a->models[i];

        if (m->fits || m->has_experts || !m->is_shape)
            continue;
        add_line(l, "%s model does not fit: it needs %s of the %s that there are.",
                 article_and_size(m).text, bytes_text(m->needed_bytes).text,
                 bytes_text(a->room).text);
        l->out[l->n - 1].text[0] = 'A';
        return;
    }
}

/* ---- what disturbed it ----------------------------------------------------------- */

/* Sums over launches, of all measured models. */
struct disturbance {
    int n, n_disturbed, n_without;           /* points with disturbed launches only */
    double others_pct, steal_pct, throttled; /* means over disturbed launches if some
                                                figure rests on those, else of all */
    double roof_lo, roof_hi;
};

static void add_point(struct disturbance *d, const struct quick_point *p)
{
    d->n_without += quick_figures_of(p).is_disturbed;
    for (int i = 0; i < p->n; i++) {
        d->n++;
        d->n_disturbed += !p->launch[i].is_valid;
    }
}

static void add_means(struct disturbance *d, const struct quick_point *p, int n)
{
    for (int i = 0; i < p->n; i++) {
        const struct quick_launch *x = &p->launch[i];

        d->throttled += x->throttled / d->n;
        if (n && x->is_valid)
            continue;
        d->others_pct += x->others_pct / (n ? n : d->n);
        d->steal_pct += x->steal_pct / (n ? n : d->n);
    }
}

/* The roofs of the largest model: the others' may be those of a cache. */
static void add_roofs(struct disturbance *d, const struct quick_answer *a)
{
    for (size_t i = a->n_models; i-- > 0;) {
        const struct quick_point *p = &a->models[i].decode;

        if (!a->models[i].is_measured)
            continue;
        for (int k = 0; k < p->n; k++) {
            d->roof_lo = fmin(d->roof_lo, p->launch[k].roof_gbps);
            d->roof_hi = fmax(d->roof_hi, p->launch[k].roof_gbps);
        }
        return;
    }
}

static struct disturbance disturbance_of(const struct quick_answer *a)
{
    struct disturbance d = {.roof_lo = INFINITY, .roof_hi = 0};

    for (size_t i = 0; i < a->n_models; i++) {
        add_point(&d, &a->models[i].decode);
        add_point(&d, &a->models[i].prefill);
    }
    for (size_t i = 0; i < a->n_models; i++) {
        add_means(&d, &a->models[i].decode, d.n_disturbed);
        add_means(&d, &a->models[i].prefill, d.n_disturbed);
    }
    add_roofs(&d, a);
    return d;
}

static void append_who(char *buf, size_t cap, const struct disturbance *d)
{
    *buf = '\0';
    if (d->others_pct >= MIN_PCT)
        text_append(buf, cap, "somebody else took %.0f %% of the CPU", d->others_pct);
    if (d->steal_pct >= MIN_PCT)
        text_append(buf, cap, "%sthe hypervisor took %.0f %% of the CPU",
                    *buf ? " and " : "", d->steal_pct);
    if (!*buf)
        text_append(buf, cap, "something disturbed the measurement");
    buf[0] = (char)(buf[0] == 's' ? 'S' : 'T');
}

/* Figures that a disturbance made: first what to think of them. */
static void add_doubt(struct list *l, const struct quick_answer *a,
                      const struct disturbance *d)
{
    const double lost = d->others_pct + d->steal_pct;
    bool is_bound = false;
    char who[160];

    for (size_t i = 0; i < a->n_models; i++)
        is_bound |= a->models[i].is_bound || a->models[i].prompt_is_bound;
    append_who(who, sizeof who, d);
    if (!is_bound)
        add_line(l, "%s: figures may be a few per cent too low.", who);
    else
        add_line(l,
                 "%s: figures are lower bounds%s. Measure again when the machine is "
                 "quiet.",
                 who, lost >= FAR_PCT ? ", far below what this machine can do" : "");
}

static void add_disturbance(struct list *l, const struct disturbance *d)
{
    char who[160];

    if (d->throttled > MIN_THROTTLED)
        add_line(
            l,
            "The CPU quota stopped the threads for %.0f %% of the time, which is part "
            "of these figures.",
            100 * d->throttled);
    append_who(who, sizeof who, d);
    if (!d->n_without && d->n_disturbed)
        add_line(l, "%s in %d of %d measurements, which are left out.", who,
                 d->n_disturbed, d->n);
    if (d->roof_hi > 0 && d->roof_lo < ROOF_LOW_SHARE * d->roof_hi)
        add_line(l,
                 "Memory bandwidth was between %.3g and %.3g GB/s: others use the same "
                 "memory, or the machine changes its speed.",
                 d->roof_lo, d->roof_hi);
}

int quick_sentences(const struct quick_answer *a, struct quick_sentence *out)
{
    const struct disturbance d = disturbance_of(a);
    struct list l = {out, 0};

    if (d.n_without)
        add_doubt(&l, a, &d);
    for (size_t i = a->n_models; i-- > 0;)
        if (a->models[i].is_measured)
            add_measured(&l, a, &a->models[i]);
    add_size_for_speed(&l, a);
    add_what_does_not_fit(&l, a);
    add_disturbance(&l, &d);
    return l.n;
}

/* ---- JSON ------------------------------------------------------------------------ */

static json_t *launches(const struct quick_point *p)
{
    json_t *array = json_array();

    for (int i = 0; i < p->n; i++) {
        const struct quick_launch *x = &p->launch[i];

        json_array_append_new(
            array, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "tok_per_s",
                             json_number(x->tok_per_s), "roof_gbps",
                             json_number(x->roof_gbps), "mbu", json_number(x->mbu),
                             "others_pct", json_number(x->others_pct), "steal_pct",
                             json_number(x->steal_pct), "throttled",
                             json_number(x->throttled), "valid", x->is_valid,
                             "disturbed_pct", json_number(x->disturbed_pct)));
    }
    return array;
}

static json_t *model_json(const struct quick_model *m)
{
    json_t *o = json_pack(
        "{s:s, s:s, s:I, s:b, s:I, s:i, s:s, s:o, s:o, s:o, s:b, s:b}", "model",
        m->text, "name", m->name, "n_params", (json_int_t)m->n_params, "fits", m->fits,
        "needed_bytes", (json_int_t)m->needed_bytes, "ctx", m->ctx, "figures",
        m->is_measured ? "measured" : "predicted", "tok_per_s",
        json_number(m->tok_per_s), "prompt_s", json_number(m->prompt_s), "roof_share",
        json_number(m->share), "tok_per_s_is_lower_bound", m->is_bound,
        "prompt_s_is_upper_bound", m->prompt_is_bound);

    if (m->is_measured) {
        json_object_set_new(o, "decode", launches(&m->decode));
        json_object_set_new(o, "prefill", launches(&m->prefill));
    }
    return o;
}

json_t *quick_json(const struct quick_answer *a)
{
    struct quick_sentence text[QUICK_MAX_SENTENCES];
    const int n = quick_sentences(a, text);
    json_t *sentences = json_array(), *models = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(sentences, json_string(text[i].text));
    for (size_t i = 0; i < a->n_models; i++)
        json_array_append_new(models, model_json(&a->models[i]));
    return json_pack(
        "{s:o, s:i, s:i, s:s, s:o, s:o, s:I, s:i, s:o, s:o}", "sentences", sentences,
        "n_threads", a->n_threads, "n_prompt", a->n_prompt, "quant", a->quant,
        "want_tok_per_s", json_number(a->want_tok_per_s), "roof_gbps",
        json_number(a->roof_gbps), "room_bytes", (json_int_t)a->room, "n_rounds",
        a->n_rounds, "seconds", json_number(a->measured_s), "models", models);
}
