/* SPDX-License-Identifier: MIT
 *
 * plan_print.c - a plan as a sentence, as tables and as JSON
 */
#include "harness/measure/plan/plan.h"

#include <math.h>
#include <stdarg.h>

#include "harness/base/choice.h"
#include "harness/base/format.h"
#include "harness/machine/memory_reserve.h"

#define LINE_WIDTH  79
#define LABEL_WIDTH 10
#define VALUE_WIDTH 10
#define TEXT_COLUMN (2 + LABEL_WIDTH + 1 + VALUE_WIDTH + 2)

const char *const plan_verdict_names[] = {[PLAN_FITS] = "fits",
                                          [PLAN_STREAMS] = "streams",
                                          [PLAN_PAGES] = "pages",
                                          [PLAN_NO_FIT] = "does not fit"};

static bool is_predicted(const struct plan *plan)
{
    return plan->time.token_s > 0;
}

/* ---- the sentence ---------------------------------------------------------------- */

static void append_speed(char *buf, size_t cap, const struct plan *plan)
{
    if (is_predicted(plan))
        text_append(buf, cap, ": about %s tok/s (%s to %s)",
                    number_text(1 / plan->time.token_s).text,
                    number_text(plan->tok_per_s_lo).text,
                    number_text(plan->tok_per_s_hi).text);
    text_append(buf, cap, " at context depth %d", plan->point.ctx);
}

/* Beyond what fits: the longest context without streaming. */
static void append_context(char *buf, size_t cap, const struct plan *plan)
{
    const struct point_need *need = &plan->need;

    if (need->residency == WEIGHTS_MEMORY)
        return;
    if (need->packed_ctx > 0)
        text_append(buf, cap, "; without streaming a context of up to %d tokens fits",
                    need->packed_ctx);
    else
        text_append(buf, cap, "; without streaming no context fits");
}

const char *plan_sentence(const struct plan *plan, char *buf, size_t cap)
{
    const struct point_need *need = &plan->need;
    const struct shown_figure room = bytes_text(plan->room);

    *buf = '\0';
    text_append(buf, cap, "%s ", format_path(plan->point.setup.model.text).text);
    switch (plan->verdict) {
    case PLAN_FITS:
        text_append(buf, cap, "fits into %s", room.text);
        append_speed(buf, cap, plan);
        break;
    case PLAN_STREAMS:
        text_append(buf, cap, "%s%s per token within %s",
                    need->cache_bytes ? "reads up to " : "streams ",
                    bytes_text(need->streamed_bytes).text, room.text);
        append_speed(buf, cap, plan);
        append_context(buf, cap, plan);
        break;
    case PLAN_PAGES:
        text_append(buf, cap,
                    "does not fit into %s as a mapped file: most of it is read again "
                    "for every token",
                    room.text);
        break;
    case PLAN_NO_FIT:
        text_append(
            buf, cap, "does not fit into %s: it needs %s%s at context depth %d",
            room.text,
            bytes_text(need->anon_bytes + point_need_reserve(need->residency)).text,
            need->residency == WEIGHTS_STREAM ? " with all layers streamed" : "",
            plan->point.ctx);
        break;
    }
    return buf;
}

/* ---- tables ---------------------------------------------------------------------- */

/* "  label    1.23 GiB  text", the text wrapped. */
__attribute__((format(printf, 4, 5))) static void
line(FILE *f, const char *label, const char *value, const char *fmt, ...)
{
    char text[600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(f, "  %-*s %*s%s", LABEL_WIDTH, label, VALUE_WIDTH, value,
            *text ? "  " : "");
    if (*text)
        text_wrap(f, text, TEXT_COLUMN, TEXT_COLUMN, LINE_WIDTH, false);
    else
        putc('\n', f);
}

static void print_weights(FILE *f, const struct plan *plan)
{
    const struct point_need *need = &plan->need;
    const uint64_t slots = (uint64_t)need->n_slots * need->slot_bytes;

    if (need->residency == WEIGHTS_MMAP) {
        line(f, "weights", bytes_text(need->weight_bytes).text,
             "mapped: page cache, which can be given back");
        return;
    }
    if (need->cache_bytes) {
        line(f, "resident",
             bytes_text(need->weights_memory_bytes - need->cache_bytes).text,
             "weights that all tokens need");
        line(f, "experts", bytes_text(need->cache_bytes).text,
             "those that are used most; the others are read when they are chosen");
        return;
    }
    if (!need->n_streamed) {
        line(f, "weights", bytes_text(need->weights_memory_bytes).text,
             plan->verdict == PLAN_NO_FIT && need->residency == WEIGHTS_STREAM
                 ? "with all of %d layers streamed"
                 : "resident: all of %d layers",
             need->n_layers);
        if (need->residency == WEIGHTS_STREAM &&
            need->weight_bytes > need->weights_memory_bytes)
            line(f, "on disk",
                 bytes_text(need->weight_bytes - need->weights_memory_bytes).text,
                 "embeddings, a token reads one row of them");
        return;
    }
    line(f, "resident", bytes_text(need->weights_memory_bytes - slots).text,
         "weights: %d of %d layers, and what is in no layer",
         need->n_layers - need->n_streamed, need->n_layers);
    line(f, "buffer", bytes_text(slots).text,
         "into which %d layers are streamed, one after another", need->n_streamed);
}

static void print_memory(FILE *f, const struct plan *plan)
{
    const struct point_need *need = &plan->need;
    const uint64_t reserve = RESERVE_OWN_BYTES + RESERVE_SPARE_BYTES;
    const uint64_t used = need->anon_bytes + reserve;

    fprintf(f, "\nMemory\n");
    print_weights(f, plan);
    line(f, "KV cache", bytes_text(need->kv_bytes).text, "%d position%s, %s",
         need->n_ctx, plural(need->n_ctx, "s"),
         choices_kv.name((int)plan->point.setup.kv_type));
    line(f, "scratch", bytes_text(need->scratch_bytes).text,
         "activations, logits and norms");
    line(f, "reserve", bytes_text(reserve).text, "the process, page tables, readahead");
    line(f, "limit", bytes_text(plan->room).text, "%s", plan->room_from);
    if (used <= plan->room)
        line(f, "left", bytes_text(plan->room - used).text, "%s", "");
}

static void print_disk(FILE *f, const struct plan *plan)
{
    const struct point_need *need = &plan->need;

    if (plan->verdict != PLAN_STREAMS)
        return;
    fprintf(f, "\nDisk\n");
    line(f, "streamed", bytes_text(need->streamed_bytes).text,
         need->cache_bytes
             ? "of experts for a token, if all are equally popular: less "
               "where some are not"
             : "read again for every token, or for every pass of a prompt");
    if (need->disk_bytes)
        line(f, "left there", bytes_text(need->disk_bytes).text,
             "embeddings, a token needs one row of them");
}

/* "412 ms" */
static struct shown_figure time_text(double s)
{
    struct shown_figure shown;

    snprintf(shown.text, sizeof shown.text, "%.20s %s",
             number_text(s < 1 ? s * 1e3 : s).text, s < 1 ? "ms" : "s");
    return shown;
}

static void print_time(FILE *f, const struct plan *plan)
{
    const struct point_need *need = &plan->need;
    const struct plan_roofs *r = &plan->roofs;
    const struct token_time *t = &plan->time;
    const struct shown_figure size = bytes_text(plan->cache.bytes);

    if (!(r->gbps.read_gbps > 0))
        return;
    fprintf(f, "\nTime of a token\n");
    line(f, "computing", time_text(t->compute_s).text,
         "%s GB at %s GB/s, at the usual %.0f %% of that bandwidth (%d thread%s), and "
         "%s between the products of %d layers",
         number_text((double)need->token_bytes * 1e-9).text,
         number_text(r->gbps.read_gbps).text, 100 * TOKEN_TIME_USUAL_SHARE,
         r->n_threads, plural(r->n_threads, "s"), time_text(t->own_s).text,
         need->n_layers);
    if (t->disk_s > 0) {
        line(f, "reading", time_text(t->disk_s).text, "%s GB at %s GB/s, %s",
             number_text((double)need->streamed_bytes * 1e-9).text,
             number_text(r->gbps.disk_gbps).text,
             need->cache_bytes ? "once it is known which experts" : "while computing");
        if (!need->cache_bytes && t->alone_s > 0.01 * t->token_s)
            line(f, "waiting", time_text(t->alone_s).text,
                 "in which the two do not overlap");
    } else if (*r->disk_why_not) {
        line(f, "reading", "unknown", "%s", r->disk_why_not);
    }
    line(f, "roofs", "", "%s", r->from);
    if (plan_cached(plan) == TOPO_CACHED)
        line(f, "but", "",
             "the last-level cache (%s) holds half or more of what a token reads, and "
             "is faster than memory: no speed is predicted",
             size.text);
    else if (plan_cached(plan) == TOPO_CACHED_PARTLY)
        line(f, "but", "",
             "the last-level cache (%s) holds a part of what a token reads: it can be "
             "faster",
             size.text);
}

/* "1.32, 1.61 or 1.94 times as fast", or that it is not faster. */
static void append_gains(char *buf, size_t cap, struct speculate_costs costs,
                         double guess)
{
    double gain[PLAN_N_RATES];

    costs.guess = guess;
    for (int i = 0; i < PLAN_N_RATES; i++)
        gain[i] = speculate_gain(&costs, plan_rates[i]);
    if (gain[PLAN_N_RATES - 1] > 1)
        text_append(buf, cap, "%.2f, %.2f or %.2f times as fast", gain[0], gain[1],
                    gain[2]);
    else
        text_append(buf, cap, "not faster");
}

/* What each source of drafts would gain, before there is one. */
static void print_drafts(FILE *f, const struct plan *plan)
{
    const struct point_need *need = &plan->need;
    struct speculate_costs costs;
    char text[400] = "";

    if (!plan_draft_costs(plan, &costs))
        return;
    fprintf(f, "\nDrafts, where %.0f, %.0f or %.0f %% of guesses are right\n",
            100 * plan_rates[0], 100 * plan_rates[1], 100 * plan_rates[2]);
    append_gains(text, sizeof text, costs, 0);
    line(f, "lookup", "",
         "%s (--speculate lookup): passes of 2, 4 and 8 tokens take %.2f, %.2f and "
         "%.2f times the time of one%s",
         text, costs.pass[2], costs.pass[4], costs.pass[8],
         plan->columns[1] > 0 || need->n_experts ? "" : ", which is not measured");
    *text = '\0';
    append_gains(text, sizeof text, costs, plan_draft_guess(plan));
    if (plan->has_draft)
        line(f, "draft", bytes_text(plan->draft.anon_bytes).text,
             "%s by the draft model (--draft), whose tokens take %.0f %% of the time%s",
             text, 100 * plan_draft_guess(plan),
             need->anon_bytes + plan->draft.anon_bytes +
                         point_need_reserve(need->residency) >
                     plan->room
                 ? "; memory does not hold both models"
                 : "");
    else
        line(f, "draft", "",
             "%s by a draft model (--draft) whose tokens take %.0f %% of the time",
             text, 100 * SPECULATE_DRAFT_SHARE);
    if (!need->nextn_bytes)
        return;
    *text = '\0';
    append_gains(text, sizeof text, costs, plan_own_guess(plan));
    line(f, "own layer", bytes_text(need->nextn_bytes).text,
         "%s by the model's own layer (--speculate mtp), which reads this for a guess",
         text);
}

void plan_print(FILE *f, const struct plan *plan)
{
    const struct point_need *need = &plan->need;
    char sentence[1000];

    text_wrap(f, plan_sentence(plan, sentence, sizeof sentence), 0, 0, LINE_WIDTH,
              true);
    if (need->model_ctx > 0 && plan->point.ctx > need->model_ctx &&
        !plan->point.setup.kv_window)
        fprintf(f,
                "The model was made for contexts of %d tokens: beyond that it is as "
                "fast, and its\nanswers are worth nothing.\n",
                need->model_ctx);
    print_memory(f, plan);
    print_disk(f, plan);
    print_time(f, plan);
    print_drafts(f, plan);
    if (plan->need.residency == WEIGHTS_MEMORY)
        return;
    fprintf(f, "\nLargest context without streaming: ");
    if (!need->packed_ctx)
        fprintf(f, "none, the weights alone are larger\n");
    else
        fprintf(f, "%d tokens%s\n", need->packed_ctx,
                need->packed_ctx == need->model_ctx ? ", the model's own limit" : "");
}

/* ---- JSON ------------------------------------------------------------------------ */

static json_t *number_json(double v)
{
    return isfinite(v) && v > 0 ? json_real(v) : json_null();
}

static json_t *size_json(uint64_t bytes)
{
    return json_integer((json_int_t)bytes);
}

static json_t *prediction_json(const struct plan *plan)
{
    const double speed = is_predicted(plan) ? 1 / plan->time.token_s : NAN;

    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:s}", "tok_per_s",
        number_json(speed), "tok_per_s_lo",
        number_json(isnan(speed) ? NAN : plan->tok_per_s_lo), "tok_per_s_hi",
        number_json(isnan(speed) ? NAN : plan->tok_per_s_hi), "compute_s",
        number_json(plan->time.compute_s), "disk_s", number_json(plan->time.disk_s),
        "roof_gbps", number_json(plan->roofs.gbps.read_gbps), "roof_disk_gbps",
        number_json(plan->roofs.gbps.disk_gbps), "roof_threads", plan->roofs.n_threads,
        "roofs", plan->roofs.from);
}

static json_t *gains_json(const struct speculate_costs *costs, double guess)
{
    struct speculate_costs c = *costs;
    json_t *gains = json_array();

    c.guess = guess;
    for (int i = 0; i < PLAN_N_RATES; i++)
        json_array_append_new(gains, json_real(speculate_gain(&c, plan_rates[i])));
    return gains;
}

/* null: no time of a token is predicted; a member: there is no such source. */
static json_t *drafts_json(const struct plan *plan)
{
    struct speculate_costs costs;
    json_t *rates = json_array(), *passes = json_array();

    if (!plan_draft_costs(plan, &costs)) {
        json_decref(rates);
        json_decref(passes);
        return json_null();
    }
    for (int i = 0; i < PLAN_N_RATES; i++)
        json_array_append_new(rates, json_real(plan_rates[i]));
    for (int w = 1; w <= SPECULATE_MAX + 1; w++)
        json_array_append_new(passes, json_real(costs.pass[w]));
    return json_pack("{s:o, s:o, s:b, s:o, s:f, s:o, s:o}", "acceptance", rates,
                     "passes", passes, "measured", plan->columns[1] > 0, "lookup",
                     gains_json(&costs, 0), "draft_guess", plan_draft_guess(plan),
                     "draft", gains_json(&costs, plan_draft_guess(plan)), "mtp",
                     plan->need.nextn_bytes ? gains_json(&costs, plan_own_guess(plan))
                                            : json_null());
}

json_t *plan_json(const struct plan *plan)
{
    const struct point_need *need = &plan->need;
    json_t *memory =
        json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "experts_bytes",
                  size_json(need->cache_bytes), "limit_bytes", size_json(plan->room),
                  "limit_from", plan->room_from, "weights_bytes",
                  size_json(need->weights_memory_bytes), "slots_bytes",
                  size_json((uint64_t)need->n_slots * need->slot_bytes), "kv_bytes",
                  size_json(need->kv_bytes), "scratch_bytes",
                  size_json(need->scratch_bytes), "reserve_bytes",
                  size_json(RESERVE_OWN_BYTES + RESERVE_SPARE_BYTES), "needed_bytes",
                  size_json(need->anon_bytes + point_need_reserve(need->residency)));
    json_t *disk =
        json_pack("{s:o, s:o, s:o}", "file_bytes", size_json(need->weight_bytes),
                  "streamed_bytes", size_json(need->streamed_bytes), "left_bytes",
                  size_json(need->disk_bytes));
    char sentence[1000];

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, "
                     "s:o, s:o, s:o, s:o}",
                     "model", plan->point.setup.model.text, "quant", need->quant,
                     "verdict", plan_verdict_names[plan->verdict], "sentence",
                     plan_sentence(plan, sentence, sizeof sentence), "weights",
                     weights_residency_name((enum weights_residency)need->residency),
                     "weights_asked", weights_residency_name(plan->wanted), "n_layers",
                     need->n_layers, "n_streamed", need->n_streamed, "n_slots",
                     need->n_slots, "n_ctx", need->n_ctx, "packed_ctx",
                     need->packed_ctx, "model_ctx", need->model_ctx, "memory", memory,
                     "disk", disk, "prediction", prediction_json(plan), "drafts",
                     drafts_json(plan));
}
