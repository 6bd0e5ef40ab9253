/* SPDX-License-Identifier: MIT
 *
 * print_recommendation.c - recommendations for a person, and as JSON
 */
#include "harness/judge/recommend/recommend.h"

#include <string.h>

#include "harness/base/format.h"
#include "harness/base/json_number.h"
#include "harness/rows/report_rows.h"

#define WIDTH 78 /* of a text for a terminal */

static void print_indented(FILE *f, const char *text)
{
    fputs("  ", f);
    text_wrap(f, text, 2, 2, WIDTH, false);
}

struct recommend_choice recommend_choice(const struct row *r)
{
    struct recommend_choice shown = {""};
    char *buf = shown.text, computed[REPORT_NAME_MAX] = "";
    const size_t cap = sizeof shown.text;
    const bool named = *r->quant && strcasestr(r->model, r->quant);

    text_append(buf, cap, "%s%s%s, %lld thread%s", r->model, named ? "" : " ",
                named ? "" : r->quant, (long long)r->n_threads,
                plural(r->n_threads, "s"));
    if (*r->engine)
        text_append(buf, cap, " of %s", r->engine);
    if (r->placement != FIELD_NO_ENUM && r->placement != PLACEMENT_SPREAD)
        text_append(buf, cap, ", placement %s", row_placement_text(r));
    if (r->residency != FIELD_NO_ENUM)
        text_append(buf, cap, ", weights %s", row_residency_text(r));
    if (r->cpus_quota > 0)
        text_append(buf, cap, ", CPU quota %g", r->cpus_quota);
    row_append_unusual(r, FIELD_COMPUTED, computed, sizeof computed);
    text_append(buf, cap, "%s", computed);
    return shown;
}

static void print_runner_up(FILE *f, const struct recommendation *rec)
{
    char text[1000] = "Runner-up";

    if (rec->n_disturbed)
        text_append(text, sizeof text, " (without %d disturbed point%s)",
                    rec->n_disturbed, plural(rec->n_disturbed, "s"));
    text_append(text, sizeof text, ": %s: %s%s tok/s",
                recommend_choice(&rec->runner_up).text,
                rec->runner_up_from_ctx >= 0 ? "about " : "",
                report_figure(rec->runner_up_tok_per_s).text);
    text_wrap(f, text, 0, 0, WIDTH, false);
}

/* For a person. */
static void print_recommendation(FILE *f, const struct recommendation *rec)
{
    const struct row *b = &rec->best;

    fprintf(f, "Recommended: %s", recommend_choice(b).text);
    if (b->ctx > 0)
        fprintf(f, ", context up to %lld", (long long)row_context(b));
    fputc('\n', f);
    if (rec->instead[0]) {
        char text[sizeof rec->instead + 8];

        snprintf(text, sizeof text, "or: %s", rec->instead);
        print_indented(f, text);
    }
    print_indented(f, rec->answer);
    if (rec->n_steps)
        fputs("Quality against speed:\n", f);
    for (int i = 0; i < rec->n_steps; i++)
        print_indented(f, rec->steps[i].text);
    fputs("Evidence:\n", f);
    print_indented(f, rec->why);
    if (rec->has_runner_up)
        print_runner_up(f, rec);
    if (rec->excluded[0]) {
        char text[sizeof rec->excluded + 32];

        snprintf(text, sizeof text, "Left out: %s.", rec->excluded);
        text_wrap(f, text, 0, 0, WIDTH, false);
    }
    if (b->command[0])
        fprintf(f, "Measure it again:\n  %s\n", b->command);
    else if (rec->no_command[0])
        fprintf(f, "No command measures it again: %s.\n", rec->no_command);
}

void recommend_print_each(FILE *f, const struct recommend_answers *answers)
{
    if (answers->n > 1)
        fprintf(f,
                "%zu models, each with its own recommendation: which one suffices is "
                "no\nquestion of speed.\n\n",
                answers->n);
    for (size_t i = 0; i < answers->n; i++) {
        const struct recommend_answer *a = &answers->v[i];

        if (i)
            fputc('\n', f);
        if (a->none.code)
            fprintf(f, "No recommendation for %s: %s\n", a->model, a->none.msg);
        else
            print_recommendation(f, &a->rec);
    }
}

/* ---- JSON ------------------------------------------------------------------------ */

/* A count; negative is unknown. */
static json_t *count(int64_t n)
{
    return n >= 0 ? json_integer(n) : json_null();
}

static json_t *prompt_json(const struct recommend_prompt *p)
{
    if (!p->n_prompt)
        return json_null();
    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:b}", "n_prompt",
                     (json_int_t)p->n_prompt, "n_measured", (json_int_t)p->n_measured,
                     "n_threads", (json_int_t)p->n_threads, "tok_per_s",
                     json_number(p->tok_per_s), "ttft_warm_s", json_number(p->warm_s),
                     "ttft_warm_max_s", json_number(p->warm_max_s), "ttft_cold_s",
                     json_number(p->cold_s), "disturbed", p->disturbed);
}

static json_t *memory_json(const struct recommend_memory *m)
{
    return json_pack("{s:o, s:o, s:b, s:o, s:b}", "limit_bytes",
                     count(m->limit_bytes > 0 ? m->limit_bytes : -1), "left_bytes",
                     count(m->left_bytes), "left_is_least", m->is_lower_bound,
                     "max_ctx", count(m->max_ctx), "max_ctx_by_model", m->by_model);
}

static json_t *steps_json(const struct recommendation *rec)
{
    json_t *list = json_array();

    for (int i = 0; i < rec->n_steps; i++) {
        const struct recommend_step *s = &rec->steps[i];

        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:s}", "model", s->row.model,
                      "quant", s->row.quant, "kv_type", row_kv_type_text(&s->row),
                      "n_threads", (json_int_t)s->row.n_threads, "tok_per_s",
                      json_number(s->tok_per_s), "from_ctx", count(s->from_ctx),
                      "kl_mean", json_number(s->row.kl_mean), "text", s->text));
    }
    return list;
}

json_t *recommend_json(const struct recommendation *rec)
{
    const bool second = rec->has_runner_up;

    return json_pack(
        "{s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:f, s:o, s:b, s:b, s:o, s:o, s:o, s:s, "
        "s:s, s:s, s:i, s:s}",
        "best", row_json(&rec->best), "runner_up",
        second ? row_json(&rec->runner_up) : json_null(), "best_tok_per_s",
        rec->best_tok_per_s, "runner_up_tok_per_s",
        second ? json_real(rec->runner_up_tok_per_s) : json_null(), "best_from_ctx",
        count(rec->best_from_ctx), "runner_up_from_ctx",
        count(second ? rec->runner_up_from_ctx : -1), "p_best",
        json_number(rec->p_best), "regret", rec->regret, "p_floor",
        json_number(rec->p_floor), "by_quality", rec->by_quality, "tie", rec->tie,
        "prefill", prompt_json(&rec->prompt), "memory", memory_json(&rec->memory),
        "steps", steps_json(rec), "instead", rec->instead, "answer", rec->answer, "why",
        rec->why, "n_excluded", rec->n_excluded, "excluded", rec->excluded);
}

static json_t *answer_json(const struct recommend_answer *a)
{
    char none[sizeof a->none.msg]; /* a name may have been cut within a character */

    if (!a->none.code)
        return recommend_json(&a->rec);
    return json_pack("{s:s, s:s}", "model", a->model, "none",
                     text_harmless(none, sizeof none, a->none.msg));
}

json_t *recommend_json_each(const struct recommend_answers *answers)
{
    json_t *list;

    if (answers->n == 1)
        return answer_json(&answers->v[0]);
    list = json_array();
    for (size_t i = 0; i < answers->n; i++)
        if (json_array_append_new(list, answer_json(&answers->v[i]))) {
            json_decref(list);
            return NULL;
        }
    return json_pack("{s:o}", "models", list);
}
