/* SPDX-License-Identifier: MIT
 *
 * tune_report.c - what tuning found: a few lines, a table, JSON
 */
#include "harness/measure/tune/tune.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/json_number.h"
#include "harness/measure/tune/prefetch.h"

const struct tune_outcome *tune_find(const struct tune_result *r,
                                     enum tune_setting setting, enum kern_format fmt)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->outcome[i].setting == setting && r->outcome[i].fmt == fmt)
            return &r->outcome[i];
    return NULL;
}

/* Chosen in its sequential comparison, and given up at the end, alone or with its whole
 * phase? */
static bool was_given_up(const struct tune_result *r, const struct tune_outcome *o)
{
    return o->choice && tune_get(&r->chosen, o->setting, o->fmt) != o->value[o->choice];
}

const char *tune_worth(const struct tune_result *r, const struct tune_outcome *o,
                       char *buf, size_t cap)
{
    char ratio[64], value[32];

    if (o->state == SEQUENTIAL_ALONE) {
        snprintf(buf, cap, "%s", *o->note ? o->note : "nothing to choose from");
    } else if (o->state == SEQUENTIAL_CUT) {
        snprintf(buf, cap, "%s", o->note);
    } else if (was_given_up(r, o)) {
        rank_ratio_text(&o->ratio[o->choice], ratio, sizeof ratio);
        snprintf(buf, cap, "%s: %s, but %s",
                 tune_value_text(o->setting, o->value[o->choice], value, sizeof value),
                 ratio,
                 o->taken_back ? "taken back: the others were faster without it"
                               : "all choices together were no faster");
    } else if (o->choice) {
        rank_ratio_text(&o->ratio[o->choice], ratio, sizeof ratio);
        snprintf(buf, cap, "%s of %s, the default", ratio,
                 tune_value_text(o->setting, o->value[0], value, sizeof value));
    } else if (o->best) {
        rank_ratio_text(&o->ratio[o->best], ratio, sizeof ratio);
        snprintf(buf, cap, "%s: %s is %s",
                 o->ratio[o->best].hi < 1 ? "faster than others" : "tie",
                 tune_value_text(o->setting, o->value[o->best], value, sizeof value),
                 ratio);
    } else {
        snprintf(buf, cap, "no other was faster");
    }
    return buf;
}

static const char *verdict(const struct tune_result *r, const struct tune_outcome *o,
                           size_t i)
{
    if (i == o->choice)
        return i == 0 ? "default, stays" : was_given_up(r, o) ? "given up" : "chosen";
    if (i == 0)
        return was_given_up(r, o) ? "default, stays" : "default";
    if (o->out[i])
        return "dropped";
    if (!o->n_rounds[i])
        return "not tried";
    return o->state == SEQUENTIAL_CUT ? "undecided"
           : o->ratio[i].hi < 1       ? "slower"
           : i == o->best             ? "tie"
                                      : "dropped";
}

static const char *format_name(const struct tune_outcome *o)
{
    return o->fmt == KERN_N_FMT ? "" : kern_format_info(o->fmt)->name;
}

static void print_table(FILE *f, const struct tune_result *r)
{
    fprintf(f, "\n%-17s %-8s %-17s %-22s %7s  %s\n", "setting", "weights", "value",
            "speed over default", "samples", "verdict");
    for (size_t i = 0; i < r->n; i++) {
        const struct tune_outcome *o = &r->outcome[i];

        for (size_t k = 0; k < o->n; k++) {
            char value[32], ratio[64] = "";

            if (k && o->n_rounds[k])
                rank_ratio_text(&o->ratio[k], ratio, sizeof ratio);
            fprintf(f, "%-17s %-8s %-17s %-22s %7zu  %s\n",
                    tune_setting_info(o->setting)->name, format_name(o),
                    tune_value_text(o->setting, o->value[k], value, sizeof value),
                    ratio, o->n_rounds[k], verdict(r, o, k));
        }
        if (*o->note)
            fprintf(f, "%-17s %s\n", "", o->note);
    }
}

static void print_choices(FILE *f, const struct tune_result *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct tune_outcome *o = &r->outcome[i];
        char value[32], worth[256];

        if (o->state == SEQUENTIAL_ALONE && !*o->note)
            continue;
        fprintf(f, "  %-17s %-8s %-17s %s\n", tune_setting_info(o->setting)->name,
                format_name(o),
                tune_value_text(o->setting, tune_get(&r->chosen, o->setting, o->fmt),
                                value, sizeof value),
                tune_worth(r, o, worth, sizeof worth));
    }
}

static void print_final(FILE *f, const char *phase, const struct tune_final *final)
{
    char ratio[64];

    if (!final->changed) {
        fprintf(f, "%s: the default; nothing was faster\n", phase);
        return;
    }
    fprintf(
        f, "%s: %s of the default's speed, %zu round%s%s\n", phase,
        rank_ratio_text(&final->ratio, ratio, sizeof ratio), final->n_rounds,
        plural(final->n_rounds, "s"),
        final->by_choice
            ? ": no difference beyond chance, but each choice was confirmed by itself"
        : final->kept ? ""
        : final->own  ? ": a tie or worse, so its choices are undone"
                      : ", with the choices for decoding alone");
    if (final->n_taken_back)
        fprintf(f, "%*s choices that were taken back before: %zu\n",
                (int)strlen(phase) + 1, "", final->n_taken_back);
}

static void print_disturbances(FILE *f, const struct tune_result *r)
{
    char text[256];

    if (r->disturbances.n_rounds)
        fprintf(f, "%zu of %zu rounds were disturbed and run again: %s\n",
                r->disturbances.n_rounds, r->n_rounds,
                disturbances_text(&r->disturbances, text, sizeof text));
}

static void print_exhaustive(FILE *f, const struct tune_result *r)
{
    const struct tune_exhaustive *e = &r->exhaustive;
    char best[64], value[32], text[24];

    if (!e->n_combinations)
        return;
    fprintf(f, "\nOf %zu combinations the best (%d thread%s, %d chunk%s",
            e->n_combinations, e->best.n_threads, plural(e->best.n_threads, "s"),
            e->best.tuning.chunks_decode, plural(e->best.tuning.chunks_decode, "s"));
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        if (tune_find(r, TUNE_PREFETCH, (enum kern_format)fmt)) {
            fprintf(f, ", prefetch %s, level %s",
                    prefetch_text(e->best.tuning.prefetch[fmt], text, sizeof text),
                    tune_value_text(TUNE_LEVEL,
                                    tune_mask_level(e->best.tuning.isa_mask[fmt]),
                                    value, sizeof value));
            break;
        }
    fprintf(
        f,
        ") has %s of the tuned choice's speed in %zu\nrounds: the tuned choice is %s\n",
        rank_ratio_text(&e->ratio, best, sizeof best), e->n_rounds,
        e->ratio.hi < 1.02   ? "within 2 % of the best"
        : e->ratio.lo > 1.02 ? "more than 2 % below the best"
                             : "perhaps within 2 % of the best");
}

void tune_print(FILE *f, const struct tune_result *r, bool explain)
{
    fprintf(f, "Chosen in %.0f s (a token took %.3g ms, a prompt of %d %.3g ms):\n",
            r->spent_s, r->token_s * 1e3, r->n_prompt, r->prompt_s * 1e3);
    print_choices(f, r);
    print_final(f, "decode", &r->decode);
    print_final(f, "prefill", &r->prefill);
    print_disturbances(f, r);
    print_exhaustive(f, r);
    if (explain)
        print_table(f, r);
}

/* ---- JSON --------------------------------------------------------------------- */

static json_t *ratio_json(const struct rank_ratio *r)
{
    return json_pack("{s:f, s:o, s:o}", "ratio", r->ratio, "lo",
                     r->lo > 0 ? json_real(r->lo) : json_null(), "hi",
                     json_number(r->hi));
}

static json_t *outcome_json(const struct tune_result *r, const struct tune_outcome *o)
{
    json_t *candidates = json_array();
    char value[32], worth[256];

    for (size_t k = 0; k < o->n; k++) {
        json_t *c = ratio_json(&o->ratio[k]);

        json_object_set_new(
            c, "value",
            json_string(tune_value_text(o->setting, o->value[k], value, sizeof value)));
        json_object_set_new(c, "rounds", json_integer((json_int_t)o->n_rounds[k]));
        json_object_set_new(c, "verdict", json_string(verdict(r, o, k)));
        json_array_append_new(candidates, c);
    }
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:o}", "knob", tune_setting_info(o->setting)->name,
        "weights", format_name(o), "chosen",
        tune_value_text(o->setting, tune_get(&r->chosen, o->setting, o->fmt), value,
                        sizeof value),
        "worth", tune_worth(r, o, worth, sizeof worth), "candidates", candidates);
}

static json_t *final_json(const struct tune_final *final)
{
    json_t *object = ratio_json(&final->ratio);

    json_object_set_new(object, "changed", json_boolean(final->changed));
    json_object_set_new(object, "kept", json_boolean(final->kept));
    json_object_set_new(object, "taken_back",
                        json_integer((json_int_t) final->n_taken_back));
    json_object_set_new(object, "rounds", json_integer((json_int_t) final->n_rounds));
    return object;
}

json_t *tune_json(const struct tune_result *r)
{
    json_t *settings = json_array();
    json_t *object;

    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(settings, outcome_json(r, &r->outcome[i]));
    object =
        json_pack("{s:f, s:f, s:f, s:i, s:I, s:I, s:o, s:o, s:o}", "spent_s",
                  r->spent_s, "token_s", r->token_s, "prompt_s", r->prompt_s,
                  "n_prompt", r->n_prompt, "rounds", (json_int_t)r->n_rounds,
                  "disturbed", (json_int_t)r->disturbances.n_rounds, "knobs", settings,
                  "decode", final_json(&r->decode), "prefill", final_json(&r->prefill));
    if (r->exhaustive.n_combinations)
        json_object_set_new(object, "exhaustive",
                            json_pack("{s:I, s:I, s:o}", "combinations",
                                      (json_int_t)r->exhaustive.n_combinations,
                                      "rounds", (json_int_t)r->exhaustive.n_rounds,
                                      "best_over_tuned",
                                      ratio_json(&r->exhaustive.ratio)));
    return object;
}
