/* SPDX-License-Identifier: MIT
 *
 * row_summary.c - a row in one sentence, and in groups of lines
 */
#include "harness/rows/row.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"

#define LINE_WIDTH  79
#define LABEL_WIDTH 14 /* of the labels below; their texts begin two columns later */
#define TEXT_COLUMN (LABEL_WIDTH + 4)

/* ---- figures --------------------------------------------------------------------- */

static double half_of(double lo, double hi)
{
    return (hi - lo) / 2;
}

/* A figure in the digits that [lo, hi] supports; three where there is no interval. */
static void append_figure(char *buf, size_t cap, double v, double lo, double hi)
{
    const double half = half_of(lo, hi);
    char figure[40];

    text_append(
        buf, cap, "%s",
        format_measured(figure, sizeof figure, v, half > 0 ? half : fabs(v) / 10, 4));
}

/* ", 95 % interval 23.5 to 25.8", with other words before it; nothing without one. */
static void append_interval(char *buf, size_t cap, const char *before, double lo,
                            double hi)
{
    if (!isfinite(lo) || !isfinite(hi))
        return;
    text_append(buf, cap, "%s", before);
    append_figure(buf, cap, lo, lo, hi);
    text_append(buf, cap, " to ");
    append_figure(buf, cap, hi, lo, hi);
}

/* Bytes next to a bandwidth: in its powers of ten, three digits. */
static void append_decimal_bytes(char *buf, size_t cap, double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int u = 0;

    for (; bytes >= 1000 && u < 4; u++)
        bytes /= 1000;
    append_figure(buf, cap, bytes, NAN, NAN);
    text_append(buf, cap, " %s", units[u]);
}

static void append_bytes(char *buf, size_t cap, int64_t bytes)
{
    char size[24];

    text_append(buf, cap, "%s", format_bytes(size, sizeof size, (uint64_t)bytes));
}

static bool has_figure(const struct row *r)
{
    return r->tok_per_s > 0 &&
           (r->status == ROW_STATUS_OK || r->status == ROW_STATUS_PARTIAL);
}

/* ---- the headline ---------------------------------------------------------------- */

/* The memory that a row is judged by and what it is called; 0: not known. */
static int64_t memory_of(const struct row *r, const char **what)
{
    *what = r->mem_resident_bytes > 0 ? "resident" : "charged";
    return r->mem_resident_bytes > 0 ? r->mem_resident_bytes
           : r->mem_peak_bytes > 0   ? r->mem_peak_bytes
                                     : 0;
}

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
    append_figure(buf, cap, r->ttft_warm_s, r->ttft_s_lo, r->ttft_s_hi);
    text_append(buf, cap, " s to the first token");
    if (r->ttft_s > 0) {
        text_append(buf, cap, " (");
        append_figure(buf, cap, r->ttft_s, NAN, NAN);
        text_append(buf, cap, " s with loading the model)");
    }
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
    const char *what;
    const int64_t memory = memory_of(r, &what);

    buf[0] = '\0';
    if (!has_figure(r)) {
        text_append(buf, cap, "No figure: %s", why_no_figure(r));
        return buf;
    }
    append_figure(buf, cap, r->tok_per_s, r->tok_per_s_lo, r->tok_per_s_hi);
    text_append(buf, cap, " tok/s");
    append_interval(buf, cap, " (", r->tok_per_s_lo, r->tok_per_s_hi);
    text_append(buf, cap, "%s", isfinite(r->tok_per_s_lo) ? ")" : "");
    if (r->ttft_warm_s > 0) {
        text_append(buf, cap, ", ");
        append_first_token(r, buf, cap);
    }
    if (r->spec_speedup > 0) {
        text_append(buf, cap, ", ");
        append_figure(buf, cap, r->spec_speedup, r->spec_speedup_lo,
                      r->spec_speedup_hi);
        text_append(buf, cap, " times plain decoding");
        append_interval(buf, cap, " (", r->spec_speedup_lo, r->spec_speedup_hi);
        text_append(buf, cap, "%s", isfinite(r->spec_speedup_lo) ? ")" : "");
    }
    append_share(r, buf, cap);
    if (memory) {
        text_append(buf, cap, ", ");
        append_bytes(buf, cap, memory);
        text_append(buf, cap, " %s", what);
    }
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
};

static void begin_group(struct lines *l, const char *group)
{
    l->group = group;
}

/* One line of the group; nothing where there is no text. */
static void put(struct lines *l, const char *label, const char *text)
{
    if (!*text)
        return;
    if (l->group)
        fprintf(l->f, "\n%s\n", l->group);
    l->group = NULL;
    fprintf(l->f, "  %-*s  ", LABEL_WIDTH, label);
    text_wrap(l->f, text, TEXT_COLUMN, TEXT_COLUMN, LINE_WIDTH, false);
}

typedef char text_buf[1024];

static void put_model(struct lines *l, const struct row *r)
{
    text_buf t = "";

    text_append(t, sizeof t, "%s%s%s", r->model, *r->quant ? " " : "", r->quant);
    if (r->n_params > 0)
        text_append(t, sizeof t, ", %.3g %s parameters",
                    (double)r->n_params * (r->n_params >= 1000000000 ? 1e-9 : 1e-6),
                    r->n_params >= 1000000000 ? "billion" : "million");
    if (r->file_bytes > 0) {
        text_append(t, sizeof t, ", ");
        append_bytes(t, sizeof t, r->file_bytes);
    }
    put(l, "model", t);
}

static void put_threads(struct lines *l, const struct row *r)
{
    text_buf t = "";

    if (r->n_threads > 0)
        text_append(t, sizeof t, "%lld", (long long)r->n_threads);
    if (*row_placement_text(r))
        text_append(t, sizeof t, ", placement %s", row_placement_text(r));
    if (*r->cpus)
        text_append(t, sizeof t, ", CPU%s %s", strpbrk(r->cpus, ",-") ? "s" : "",
                    r->cpus);
    if (r->n_threads_prefill > 0)
        text_append(t, sizeof t, "; %lld for prefill", (long long)r->n_threads_prefill);
    put(l, "threads", t);
}

static void put_context(struct lines *l, const struct row *r)
{
    text_buf t = "";

    if (r->kind == POINT_PREFILL && r->n_prompt > 0)
        text_append(t, sizeof t, "prompt of %lld token%s", (long long)r->n_prompt,
                    plural(r->n_prompt, "s"));
    else if (r->ctx != FIELD_NO_INT)
        text_append(t, sizeof t, "depth %lld%s%s", (long long)r->ctx,
                    r->ctx > 0 && *row_ctx_fill_text(r) ? ", filled: " : "",
                    r->ctx > 0 ? row_ctx_fill_text(r) : "");
    if (*row_kv_type_text(r))
        text_append(t, sizeof t, "%sKV cache %s", *t ? "; " : "", row_kv_type_text(r));
    if (r->kv_window > 0)
        text_append(t, sizeof t, ", of the last %lld positions",
                    (long long)r->kv_window);
    if (r->prefill_sums == SLM_SUMS_INT8)
        text_append(t, sizeof t, "; int8 sums in prefill");
    if (r->n_sequences > 1)
        text_append(t, sizeof t, "; %lld sequences", (long long)r->n_sequences);
    if (r->n_shared > 0)
        text_append(t, sizeof t, ", the first %lld positions in common",
                    (long long)r->n_shared);
    if (r->n_chunk > 0)
        text_append(t, sizeof t,
                    "; at the same time a prompt in chunks of %lld token%s",
                    (long long)r->n_chunk, plural(r->n_chunk, "s"));
    put(l, "context", t);
}

static void print_setting(struct lines *l, const struct row *r)
{
    const char *pages = row_pages_text(r), *tuning = row_tuning_text(r);
    text_buf t = "";

    begin_group(l, "Setting");
    if (*r->engine)
        text_append(t, sizeof t, "%s%s%s", r->engine, *r->engine_version ? ", " : "",
                    r->engine_version);
    put(l, "engine", t);
    t[0] = '\0';
    put_model(l, r);
    put_threads(l, r);
    put_context(l, r);
    put(l, "text", r->spec_text);
    text_append(t, sizeof t, "%s", row_residency_text(r));
    if (r->n_streamed > 0)
        text_append(t, sizeof t, " of %lld layers from disk", (long long)r->n_streamed);
    if (*pages)
        text_append(t, sizeof t, ", pages of %s",
                    !strcmp(pages, "2m")   ? "2 MiB"
                    : !strcmp(pages, "4k") ? "4 KiB"
                                           : pages);
    put(l, "weights", t);
    put(l, "kernels", row_isa_text(r));
    put(l, "profile", strcmp(tuning, "default") ? tuning : "");
}

static void put_speed(struct lines *l, const struct row *r)
{
    text_buf t = "";

    append_figure(t, sizeof t, r->tok_per_s, r->tok_per_s_lo, r->tok_per_s_hi);
    text_append(t, sizeof t, " tok/s");
    append_interval(t, sizeof t, ", 95 % interval ", r->tok_per_s_lo, r->tok_per_s_hi);
    if (r->n_samples > 0)
        text_append(t, sizeof t, ", %lld sample%s", (long long)r->n_samples,
                    plural(r->n_samples, "s"));
    if (r->n_sequences > 1) {
        const double n = (double)r->n_sequences;

        text_append(t, sizeof t, "; ");
        append_figure(t, sizeof t, r->tok_per_s / n, r->tok_per_s_lo / n,
                      r->tok_per_s_hi / n);
        text_append(t, sizeof t, " for each sequence");
    }
    put(l, *row_kind_text(r) ? row_kind_text(r) : "speed", t);
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
    text_buf t = "";

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].ms > 0) {
            text_append(t, sizeof t, "%s", parts[i].before);
            append_figure(t, sizeof t, parts[i].ms, 0, 2 * half * parts[i].ms);
            text_append(t, sizeof t, " ms");
        }
    put(l,
        r->kind == POINT_PREFILL               ? "per pass"
        : r->kind == POINT_SPECULATE           ? "per run"
        : r->n_sequences > 1 || r->n_chunk > 0 ? "per step"
                                               : "per token",
        t);
}

static void put_chunk(struct lines *l, const struct row *r)
{
    text_buf t = "";

    if (r->step_plain_ms > 0) {
        append_figure(t, sizeof t, r->step_plain_ms, NAN, NAN);
        text_append(t, sizeof t,
                    " ms per step, so that the chunk makes it %.3g times as long",
                    r->lat_p50_ms / r->step_plain_ms);
    }
    put(l, "without it", t);
    t[0] = '\0';
    if (r->chunk_tok_per_s > 0) {
        append_figure(t, sizeof t, r->chunk_tok_per_s, NAN, NAN);
        text_append(t, sizeof t, " tok/s of the prompt at the same time");
    }
    put(l, "chunks", t);
}

static void put_speculation(struct lines *l, const struct row *r)
{
    text_buf t = "";

    if (!(r->spec_speedup > 0))
        return;
    text_append(t, sizeof t, "the same text at ");
    append_figure(t, sizeof t, r->spec_plain_tok_per_s, NAN, NAN);
    text_append(t, sizeof t, " tok/s");
    put(l, "plain", t);
    t[0] = '\0';
    if (isfinite(r->spec_accept))
        text_append(t, sizeof t, "%.0f %% of the draft tokens accepted, ",
                    100 * r->spec_accept);
    text_append(t, sizeof t, "%.2f tokens per pass", r->spec_tokens_per_pass);
    put(l, "drafts", t);
}

static void print_speed(struct lines *l, const struct row *r)
{
    text_buf t = "";

    begin_group(l, "Speed");
    put_speed(l, r);
    put_latency(l, r);
    put_chunk(l, r);
    put_speculation(l, r);
    if (r->ttft_warm_s > 0)
        append_first_token(r, t, sizeof t);
    put(l, "first token", t);
    t[0] = '\0';
    if (r->load_s > 0) {
        append_figure(t, sizeof t, r->load_s, NAN, NAN);
        text_append(t, sizeof t, " s");
    }
    put(l, "loading", t);
    t[0] = '\0';
    if (r->joules_per_token > 0)
        text_append(t, sizeof t, "%.3g J per token, of the whole package",
                    r->joules_per_token);
    put(l, "energy", t);
}

static void put_bandwidth(struct lines *l, const struct row *r)
{
    text_buf t = "";

    if (!(r->roof_gbps > 0))
        return;
    append_figure(t, sizeof t, r->roof_gbps, r->roof_gbps_lo, r->roof_gbps_hi);
    text_append(t, sizeof t, " GB/s");
    append_interval(t, sizeof t, " (", r->roof_gbps_lo, r->roof_gbps_hi);
    text_append(t, sizeof t, "%s, probed in this run",
                isfinite(r->roof_gbps_lo) ? ")" : "");
    put(l, "bandwidth", t);
    t[0] = '\0';
    if (r->roof_tok_per_s > 0 && r->bytes_per_token > 0) {
        text_append(t, sizeof t, "at most ");
        append_figure(t, sizeof t, r->roof_tok_per_s, NAN, NAN);
        text_append(t, sizeof t, " tok/s%s a token reads ",
                    row_arithmetic_is_roof(r) ? " by arithmetic;" : ", as");
        append_decimal_bytes(t, sizeof t, (double)r->bytes_per_token);
    }
    if (*t && r->disk_bytes_per_token > 0) {
        text_append(t, sizeof t, ", ");
        append_decimal_bytes(t, sizeof t, (double)r->disk_bytes_per_token);
        text_append(t, sizeof t, " of it from disk");
    }
    put(l, "roof", t);
}

static void put_disk(struct lines *l, const struct row *r)
{
    text_buf t = "";

    if (r->roof_disk_gbps > 0)
        text_append(t, sizeof t, "%.2f GB/s", r->roof_disk_gbps);
    if (r->disk_share > 0)
        text_append(t, sizeof t, ", of which %.0f %% were read", 100 * r->disk_share);
    if (*r->disk_way)
        text_append(t, sizeof t, "%s%s", *t ? " by " : "read by ", r->disk_way);
    put(l, "disk", t);
    t[0] = '\0';
    if (isfinite(r->expert_hit_rate))
        text_append(t, sizeof t, "%.0f %% of those that were chosen were in memory",
                    100 * r->expert_hit_rate);
    put(l, "experts", t);
}

static void print_roof(struct lines *l, const struct row *r)
{
    text_buf t = "";

    begin_group(l, "The roof");
    put_bandwidth(l, r);
    if (r->mbu > 0) {
        text_append(t, sizeof t, "%.0f %%", 100 * r->mbu);
        append_interval(t, sizeof t, ", 95 % interval ", 100 * r->mbu_lo,
                        100 * r->mbu_hi);
        text_append(t, sizeof t, "%s", isfinite(r->mbu_lo) ? " %" : "");
    }
    put(l, "reached", t);
    t[0] = '\0';
    if (r->gops > 0) {
        append_figure(t, sizeof t, r->gops, NAN, NAN);
        if (r->roof_gops > 0) {
            text_append(t, sizeof t, " of ");
            append_figure(t, sizeof t, r->roof_gops, r->roof_gops_lo, r->roof_gops_hi);
        }
        text_append(t, sizeof t, " GOPS");
    }
    put(l, "arithmetic", t);
    t[0] = '\0';
    if (r->roof_gops > 0 && r->unused_units[0])
        text_append(t, sizeof t, "%s: no kernel here uses them", r->unused_units);
    put(l, "other units", t);
    t[0] = '\0';
    put_disk(l, r);
    if (*row_limiter_text(r)) /* rows of older versions have evidence for no name */
        text_append(t, sizeof t, "%s%s%s", row_limiter_text(r),
                    *r->limiter_why ? ": " : "", r->limiter_why);
    put(l, "limited by", t);
}

static void print_memory(struct lines *l, const struct row *r)
{
    text_buf t = "";

    begin_group(l, "Memory");
    if (r->mem_resident_bytes > 0) {
        append_bytes(t, sizeof t, r->mem_resident_bytes);
        text_append(t, sizeof t, " must stay in memory");
    }
    put(l, "resident", t);
    t[0] = '\0';
    if (r->mem_peak_bytes > 0) {
        append_bytes(t, sizeof t, r->mem_peak_bytes);
        text_append(t, sizeof t, " at most, page cache included");
    }
    if (r->mem_enforced_bytes > 0) {
        text_append(t, sizeof t, "%sa limit of ", t[0] ? ", of " : "");
        append_bytes(t, sizeof t, r->mem_enforced_bytes);
    }
    put(l, "charged", t);
    t[0] = '\0';
    if (r->mem_planned_bytes > 0)
        append_bytes(t, sizeof t, r->mem_planned_bytes);
    put(l, "planned", t);
    t[0] = '\0';
    if (r->kv_bytes_per_token > 0) {
        append_bytes(t, sizeof t, r->kv_bytes_per_token);
        text_append(t, sizeof t, " per position");
        if (r->n_sequences > 1 && r->kv_bytes > 0) {
            text_append(t, sizeof t, ", ");
            append_bytes(t, sizeof t, r->kv_bytes);
            text_append(t, sizeof t, " for all sequences");
        }
        if (r->model_ctx > 0)
            text_append(t, sizeof t, "; the model was made for %lld",
                        (long long)r->model_ctx);
    }
    put(l, "KV cache", t);
}

static void print_disturbances(struct lines *l, const struct row *r)
{
    text_buf t = "";

    begin_group(l, "Disturbances");
    put(l, "verdict", strcmp(r->validity, "valid") ? r->validity : "none that counts");
    if (isfinite(r->others_pct))
        text_append(t, sizeof t, "%.1f %% of it took other processes", r->others_pct);
    if (isfinite(r->steal_pct))
        text_append(t, sizeof t, "%s%.1f %% the hypervisor", *t ? ", " : "",
                    r->steal_pct);
    put(l, "CPU time", t);
    t[0] = '\0';
    if (r->involuntary != FIELD_NO_INT)
        text_append(t, sizeof t, "%lld time%s", (long long)r->involuntary,
                    plural(r->involuntary, "s"));
    if (r->throttled_ms > 0)
        text_append(t, sizeof t, "; %.1f ms stopped by the CPU quota", r->throttled_ms);
    put(l, "switched out", t);
    t[0] = '\0';
    if (r->major_faults_per_token > 0 || r->refaults_per_token > 0)
        text_append(t, sizeof t, "per token %.3g page faults and %.3g pages read again",
                    r->major_faults_per_token, r->refaults_per_token);
    put(l, "paging", t);
    t[0] = '\0';
    if (isfinite(r->drift_pct))
        text_append(t, sizeof t, "%+.1f %% over the run", r->drift_pct);
    put(l, "drift", t);
}

void row_print_summary(FILE *f, const struct row *r)
{
    struct lines l = {.f = f};
    text_buf headline;

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
