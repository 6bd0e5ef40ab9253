/* SPDX-License-Identifier: MIT
 *
 * row_summary.c - a row in one sentence, and in groups of lines
 */
#include "harness/rows/row.h"

#include <string.h>

#include "harness/base/format.h"

#define LINE_WIDTH  79
#define LABEL_WIDTH 14 /* of the labels below; their texts begin two columns later */
#define TEXT_COLUMN (LABEL_WIDTH + 4)

/* ---- figures --------------------------------------------------------------------- */

/* A part of a sentence, by value. */
struct part {
    char text[80];
};

static double half_of(double lo, double hi)
{
    return (hi - lo) / 2;
}

/* A figure in the digits that [lo, hi] supports; three where there is no interval. */
static struct shown_figure figure_in(double v, double lo, double hi)
{
    const double half = half_of(lo, hi);
    struct shown_figure p;

    format_measured(p.text, sizeof p.text, v, half > 0 ? half : fabs(v) / 10, 4);
    return p;
}

/* ", 95 % interval 23.5 to 25.8", with other words around it; "" without one. */
static struct part interval(const char *before, double lo, double hi, const char *after)
{
    struct part p = {""};

    if (isfinite(lo) && isfinite(hi))
        snprintf(p.text, sizeof p.text, "%s%s to %s%s", before,
                 figure_in(lo, lo, hi).text, figure_in(hi, lo, hi).text, after);
    return p;
}

/* Bytes next to a bandwidth: in its powers of ten, three digits. */
static struct part decimal_bytes(double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    struct part p;
    int u = 0;

    for (; bytes >= 1000 && u < 4; u++)
        bytes /= 1000;
    snprintf(p.text, sizeof p.text, "%s %s", number_text(bytes).text, units[u]);
    return p;
}

static bool has_figure(const struct row *r)
{
    return r->tok_per_s > 0 &&
           (r->status == ROW_STATUS_OK || r->status == ROW_STATUS_PARTIAL);
}

/* ---- the headline ---------------------------------------------------------------- */

static const char *why_no_figure(const struct row *r)
{
    switch (r->status) {
    case ROW_STATUS_NO_FIT:
        return "it does not fit the memory";
    case ROW_STATUS_OOM:
        return "killed for memory";
    case ROW_STATUS_INTERRUPTED:
        return "interrupted";
    default:
        return "it failed";
    }
}

static void append_first_token(const struct row *r, char *buf, size_t cap)
{
    text_append(buf, cap, "%s s to the first token",
                figure_in(r->ttft_warm_s, r->ttft_s_lo, r->ttft_s_hi).text);
    if (r->ttft_s > 0)
        text_append(buf, cap, " (%s s with loading the model)",
                    number_text(r->ttft_s).text);
}

static void append_share(const struct row *r, char *buf, size_t cap)
{
    if (r->mbu > 0)
        text_append(buf, cap, ", %.0f %% of the roof", 100 * r->mbu);
    else if (r->gops > 0 && r->roof_gops > 0)
        text_append(buf, cap, ", %.0f %% of the %s peak", 100 * r->gops / r->roof_gops,
                    r->roof_vectors_gops > 0 ? "AMX-INT8" : "arithmetic");
}

const char *row_headline(const struct row *r, char *buf, size_t cap)
{
    buf[0] = '\0';
    if (!has_figure(r)) {
        text_append(buf, cap, "No figure: %s", why_no_figure(r));
        return buf;
    }
    text_append(buf, cap, "%s tok/s%s",
                figure_in(r->tok_per_s, r->tok_per_s_lo, r->tok_per_s_hi).text,
                interval(" (", r->tok_per_s_lo, r->tok_per_s_hi, ")").text);
    if (r->ttft_warm_s > 0) {
        text_append(buf, cap, ", ");
        append_first_token(r, buf, cap);
    }
    if (r->spec_speedup > 0)
        text_append(
            buf, cap, ", %s times plain decoding%s",
            figure_in(r->spec_speedup, r->spec_speedup_lo, r->spec_speedup_hi).text,
            interval(" (", r->spec_speedup_lo, r->spec_speedup_hi, ")").text);
    append_share(r, buf, cap);
    if (r->mem_resident_bytes > 0)
        text_append(buf, cap, ", %s resident",
                    bytes_text((uint64_t)r->mem_resident_bytes).text);
    else if (r->mem_peak_bytes > 0)
        text_append(buf, cap, ", %s charged",
                    bytes_text((uint64_t)r->mem_peak_bytes).text);
    if (r->status == ROW_STATUS_PARTIAL)
        text_append(buf, cap, ", partial: %lld sample%s", (long long)r->n_samples,
                    plural(r->n_samples, "s"));
    if (!strcmp(r->validity, "valid"))
        text_append(buf, cap, ", undisturbed");
    else if (*r->validity)
        text_append(buf, cap, ", %s", r->validity);
    return buf;
}

/* ---- groups of lines ------------------------------------------------------------- */

struct lines {
    FILE *f;
    const char *group; /* not printed yet; NULL: it is */
    char text[1024];   /* of the next line */
};

/* Adds to the text of the next line. */
#define ADD(l, ...) text_append((l)->text, sizeof(l)->text, __VA_ARGS__)

/* Prints the text that was added as a line of the group; without text nothing. */
static void put(struct lines *l, const char *label)
{
    if (!*l->text)
        return;
    if (l->group)
        fprintf(l->f, "\n%s\n", l->group);
    l->group = NULL;
    fprintf(l->f, "  %-*s  ", LABEL_WIDTH, label);
    text_wrap(l->f, l->text, TEXT_COLUMN, TEXT_COLUMN, LINE_WIDTH, false);
    l->text[0] = '\0';
}

static void put_text(struct lines *l, const char *label, const char *text)
{
    ADD(l, "%s", text);
    put(l, label);
}

static void put_model(struct lines *l, const struct row *r)
{
    const bool is_billion = r->n_params >= 1000000000;

    ADD(l, "%s%s%s", r->model, *r->quant ? " " : "", r->quant);
    if (r->n_params > 0)
        ADD(l, ", %.3g %s parameters", (double)r->n_params * (is_billion ? 1e-9 : 1e-6),
            is_billion ? "billion" : "million");
    if (r->file_bytes > 0)
        ADD(l, ", %s", bytes_text((uint64_t)r->file_bytes).text);
    put(l, "model");
}

static void put_threads(struct lines *l, const struct row *r)
{
    if (r->n_threads > 0)
        ADD(l, "%lld", (long long)r->n_threads);
    if (*row_placement_text(r))
        ADD(l, ", placement %s", row_placement_text(r));
    if (*r->cpus)
        ADD(l, ", CPU%s %s", strpbrk(r->cpus, ",-") ? "s" : "", r->cpus);
    if (r->n_threads_prefill > 0)
        ADD(l, "; %lld for prefill", (long long)r->n_threads_prefill);
    put(l, "threads");
}

static void put_context(struct lines *l, const struct row *r)
{
    if (r->kind == POINT_PREFILL && r->n_prompt > 0)
        ADD(l, "prompt of %lld token%s", (long long)r->n_prompt,
            plural(r->n_prompt, "s"));
    else if (r->ctx != FIELD_NO_INT)
        ADD(l, "depth %lld%s%s", (long long)r->ctx,
            r->ctx > 0 && *row_ctx_fill_text(r) ? ", filled: " : "",
            r->ctx > 0 ? row_ctx_fill_text(r) : "");
    if (*row_kv_type_text(r))
        ADD(l, "%sKV cache %s", *l->text ? "; " : "", row_kv_type_text(r));
    if (r->kv_window > 0)
        ADD(l, ", of the last %lld positions", (long long)r->kv_window);
    if (r->prefill_sums == SLM_SUMS_INT8)
        ADD(l, "; int8 sums in prefill");
    if (r->n_sequences > 1)
        ADD(l, "; %lld sequences", (long long)r->n_sequences);
    if (r->n_shared > 0)
        ADD(l, ", the first %lld positions in common", (long long)r->n_shared);
    if (r->n_chunk > 0)
        ADD(l, "; at the same time a prompt in chunks of %lld token%s",
            (long long)r->n_chunk, plural(r->n_chunk, "s"));
    put(l, "context");
}

static void print_setting(struct lines *l, const struct row *r)
{
    const char *pages = row_pages_text(r), *tuning = row_tuning_text(r);

    l->group = "Setting";
    if (*r->engine)
        ADD(l, "%s%s%s", r->engine, *r->engine_version ? ", " : "", r->engine_version);
    put(l, "engine");
    put_model(l, r);
    put_threads(l, r);
    put_context(l, r);
    put_text(l, "text", r->spec_text);
    ADD(l, "%s", row_residency_text(r));
    if (r->n_streamed > 0)
        ADD(l, " of %lld layers from disk", (long long)r->n_streamed);
    if (*pages)
        ADD(l, ", pages of %s",
            !strcmp(pages, "2m")   ? "2 MiB"
            : !strcmp(pages, "4k") ? "4 KiB"
                                   : pages);
    put(l, "weights");
    put_text(l, "kernels", row_isa_text(r));
    put_text(l, "profile", strcmp(tuning, "default") ? tuning : "");
}

static void put_speed(struct lines *l, const struct row *r)
{
    const double n = (double)r->n_sequences;

    ADD(l, "%s tok/s%s", figure_in(r->tok_per_s, r->tok_per_s_lo, r->tok_per_s_hi).text,
        interval(", 95 % interval ", r->tok_per_s_lo, r->tok_per_s_hi, "").text);
    if (r->n_samples > 0)
        ADD(l, ", %lld sample%s", (long long)r->n_samples, plural(r->n_samples, "s"));
    if (r->n_sequences > 1)
        ADD(l, "; %s for each sequence",
            figure_in(r->tok_per_s / n, r->tok_per_s_lo / n, r->tok_per_s_hi / n).text);
    put(l, *row_kind_text(r) ? row_kind_text(r) : "speed");
}

static void put_latency(struct lines *l, const struct row *r)
{
    const double half = half_of(r->tok_per_s_lo, r->tok_per_s_hi) / r->tok_per_s;
    const struct {
        const char *before;
        double ms;
    } parts[] = {{"", r->lat_p50_ms},
                 {"; 95 of 100 within ", r->lat_p95_ms},
                 {", 99 of 100 within ", r->lat_p99_ms}};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].ms > 0)
            ADD(l, "%s%s ms", parts[i].before,
                figure_in(parts[i].ms, 0, 2 * half * parts[i].ms).text);
    put(l, r->kind == POINT_PREFILL               ? "per pass"
           : r->kind == POINT_SPECULATE           ? "per run"
           : r->n_sequences > 1 || r->n_chunk > 0 ? "per step"
                                                  : "per token");
}

static void put_chunk(struct lines *l, const struct row *r)
{
    if (r->step_plain_ms > 0)
        ADD(l, "%s ms per step, so that the chunk makes it %.3g times as long",
            number_text(r->step_plain_ms).text, r->lat_p50_ms / r->step_plain_ms);
    put(l, "without it");
    if (r->chunk_tok_per_s > 0)
        ADD(l, "%s tok/s of the prompt at the same time",
            number_text(r->chunk_tok_per_s).text);
    put(l, "chunks");
}

static void put_speculation(struct lines *l, const struct row *r)
{
    if (!(r->spec_speedup > 0))
        return;
    ADD(l, "the same text at %s tok/s", number_text(r->spec_plain_tok_per_s).text);
    put(l, "plain");
    if (isfinite(r->spec_accept))
        ADD(l, "%.0f %% of the draft tokens accepted, ", 100 * r->spec_accept);
    ADD(l, "%.2f tokens per pass", r->spec_tokens_per_pass);
    put(l, "drafts");
}

static void print_speed(struct lines *l, const struct row *r)
{
    l->group = "Speed";
    put_speed(l, r);
    put_latency(l, r);
    put_chunk(l, r);
    put_speculation(l, r);
    if (r->ttft_warm_s > 0)
        append_first_token(r, l->text, sizeof l->text);
    put(l, "first token");
    if (r->load_s > 0)
        ADD(l, "%s s", number_text(r->load_s).text);
    put(l, "loading");
    if (r->joules_per_token > 0)
        ADD(l, "%.3g J per token, of the whole package", r->joules_per_token);
    put(l, "energy");
}

static void put_bandwidth(struct lines *l, const struct row *r)
{
    if (!(r->roof_gbps > 0))
        return;
    ADD(l, "%s GB/s%s, probed in this run",
        figure_in(r->roof_gbps, r->roof_gbps_lo, r->roof_gbps_hi).text,
        interval(" (", r->roof_gbps_lo, r->roof_gbps_hi, ")").text);
    put(l, "bandwidth");
    if (r->roof_tok_per_s > 0 && r->bytes_per_token > 0) {
        ADD(l, "at most %s tok/s%s a token reads %s",
            number_text(r->roof_tok_per_s).text,
            row_arithmetic_is_roof(r) ? " by arithmetic;" : ", as",
            decimal_bytes((double)r->bytes_per_token).text);
        if (r->disk_bytes_per_token > 0)
            ADD(l, ", %s of it from disk",
                decimal_bytes((double)r->disk_bytes_per_token).text);
    }
    put(l, "roof");
}

static void put_disk(struct lines *l, const struct row *r)
{
    if (r->roof_disk_gbps > 0)
        ADD(l, "%.2f GB/s", r->roof_disk_gbps);
    if (r->disk_share > 0)
        ADD(l, ", of which %.0f %% were read", 100 * r->disk_share);
    if (*r->disk_way)
        ADD(l, "%s%s", *l->text ? " by " : "read by ", r->disk_way);
    put(l, "disk");
    if (isfinite(r->expert_hit_rate))
        ADD(l, "%.0f %% of those that were chosen were in memory",
            100 * r->expert_hit_rate);
    put(l, "experts");
}

static void put_units(struct lines *l, const struct row *r)
{
    const char *them = strchr(r->unused_units, ' ') ? "them" : "it";

    if (r->roof_gops > 0 && *r->unused_units && *r->engine)
        ADD(l, "%s: nothing shows that %s uses %s", r->unused_units, r->engine, them);
    else if (r->roof_gops > 0 && *r->unused_units)
        ADD(l, "%s: no product here uses %s", r->unused_units, them);
    put(l, "other units");
}

static void print_roof(struct lines *l, const struct row *r)
{
    l->group = "The roof";
    put_bandwidth(l, r);
    if (r->mbu > 0)
        ADD(l, "%.0f %%%s", 100 * r->mbu,
            interval(", 95 % interval ", 100 * r->mbu_lo, 100 * r->mbu_hi, " %").text);
    put(l, "reached");
    if (r->gops > 0 && r->roof_gops > 0)
        ADD(l, "%s of %s GOPS", number_text(r->gops).text,
            figure_in(r->roof_gops, r->roof_gops_lo, r->roof_gops_hi).text);
    else if (r->gops > 0)
        ADD(l, "%s GOPS", number_text(r->gops).text);
    put(l, "arithmetic");
    put_units(l, r);
    put_disk(l, r);
    if (*row_limiter_text(r)) /* rows of older versions have evidence for no name */
        ADD(l, "%s%s%s", row_limiter_text(r), *r->limiter_why ? ": " : "",
            r->limiter_why);
    put(l, "limited by");
}

static void print_memory(struct lines *l, const struct row *r)
{
    l->group = "Memory";
    if (r->mem_resident_bytes > 0)
        ADD(l, "%s must stay in memory",
            bytes_text((uint64_t)r->mem_resident_bytes).text);
    put(l, "resident");
    if (r->mem_peak_bytes > 0)
        ADD(l, "%s at most, page cache included",
            bytes_text((uint64_t)r->mem_peak_bytes).text);
    if (r->mem_enforced_bytes > 0)
        ADD(l, "%sa limit of %s", *l->text ? ", of " : "",
            bytes_text((uint64_t)r->mem_enforced_bytes).text);
    put(l, "charged");
    if (r->mem_planned_bytes > 0)
        ADD(l, "%s", bytes_text((uint64_t)r->mem_planned_bytes).text);
    put(l, "planned");
    if (r->kv_bytes_per_token > 0) {
        ADD(l, "%s per position", bytes_text((uint64_t)r->kv_bytes_per_token).text);
        if (r->n_sequences > 1 && r->kv_bytes > 0)
            ADD(l, ", %s for all sequences", bytes_text((uint64_t)r->kv_bytes).text);
        if (r->model_ctx > 0)
            ADD(l, "; the model was made for %lld", (long long)r->model_ctx);
    }
    put(l, "KV cache");
}

static void print_disturbances(struct lines *l, const struct row *r)
{
    l->group = "Disturbances";
    put_text(l, "verdict",
             strcmp(r->validity, "valid") ? r->validity : "none that counts");
    if (isfinite(r->others_pct))
        ADD(l, "%.1f %% of it took other processes", r->others_pct);
    if (isfinite(r->steal_pct))
        ADD(l, "%s%.1f %% the hypervisor", *l->text ? ", " : "", r->steal_pct);
    put(l, "CPU time");
    if (r->involuntary != FIELD_NO_INT)
        ADD(l, "%lld time%s", (long long)r->involuntary, plural(r->involuntary, "s"));
    if (r->throttled_ms > 0)
        ADD(l, "; %.1f ms stopped by the CPU quota", r->throttled_ms);
    put(l, "switched out");
    if (r->major_faults_per_token > 0 || r->refaults_per_token > 0)
        ADD(l, "per token %.3g page faults and %.3g pages read again",
            r->major_faults_per_token, r->refaults_per_token);
    put(l, "paging");
    if (isfinite(r->drift_pct))
        ADD(l, "%+.1f %% over the run", r->drift_pct);
    put(l, "drift");
}

void row_print_summary(FILE *f, const struct row *r)
{
    struct lines l = {.f = f};
    char headline[1024];

    row_headline(r, headline, sizeof headline);
    text_wrap(f, headline, 0, 2, LINE_WIDTH, false);
    if (*r->detail)
        text_wrap(f, r->detail, 0, 2, LINE_WIDTH, false);
    print_setting(&l, r);
    if (has_figure(r)) {
        print_speed(&l, r);
        print_roof(&l, r);
    }
    print_memory(&l, r);
    if (has_figure(r))
        print_disturbances(&l, r);
    if (*r->command)
        fprintf(f, "\nRepeat\n  %s\n", r->command);
}
