/* SPDX-License-Identifier: MIT
 *
 * predict_print.c - predictions as a table, as CSV and as JSON
 */
#include "harness/decide/predict/predict.h"

#include <math.h>
#include <string.h>

#include "harness/base/choice.h"
#include "harness/base/format.h"
#include "harness/base/json_number.h"
#include "harness/rows/report_rows.h"

#define LINE_WIDTH 79

static const char *verdict_text(const struct prediction *one)
{
    return one->too_deep ? "beyond the model's context"
                         : plan_verdict_names[one->verdict];
}

/* A range supports two digits. */
static int decimals(double v)
{
    return v >= 10 ? 0 : v >= 1 ? 1 : 2;
}

/* ---- table ----------------------------------------------------------------------- */

/* "8.34 (7.1-9.9) c", or why there is no figure. */
static const char *cell(const struct prediction *one, char *buf, size_t cap)
{
    static const char marks[] = {[PREDICT_NONE] = ' ',
                                 [PREDICT_MEASURED] = 'm',
                                 [PREDICT_CALIBRATED] = 'c',
                                 [PREDICT_ESTIMATED] = 'e'};

    *buf = '\0';
    if (one->too_deep)
        text_append(buf, cap, "-");
    else if (one->verdict == PLAN_NO_FIT)
        text_append(buf, cap, "no fit");
    else if (one->in_cache)
        text_append(buf, cap, "in cache");
    else if (!isfinite(one->decode.mid))
        text_append(buf, cap, "%s", one->verdict == PLAN_PAGES ? "pages" : "disk?");
    if (*buf)
        return buf;
    text_append(buf, cap, "%.*f (%.*f-%.*f)%s%c",
                one->decode.mid < 1 ? 2 : report_decimals(one->decode.mid),
                one->decode.mid, decimals(one->decode.lo), one->decode.lo,
                decimals(one->decode.hi), one->decode.hi,
                one->verdict == PLAN_STREAMS ? "s" : "", marks[one->decode_label]);
    return buf;
}

static bool same_line(const struct prediction *a, const struct prediction *b)
{
    return !strcmp(a->quant, b->quant) && !strcmp(a->model, b->model) &&
           a->kv_type == b->kv_type && a->need.weight_bytes == b->need.weight_bytes;
}

/* Depths of one line, [begin, end). */
static size_t line_end(const struct predictions *p, size_t begin)
{
    size_t end = begin + 1;

    while (end < p->n && same_line(&p->v[begin], &p->v[end]))
        end++;
    return end;
}

#define CELL_WIDTH 18

static void print_head(FILE *f, const struct predictions *p)
{
    const size_t end = line_end(p, 0);

    fprintf(f, "\n%-7s %9s %-4s %8s %8s", "", "", "", "largest", "prompt");
    fprintf(f, "  tok/s at a depth of\n%-7s %9s %-4s %8s %8d", "quant", "file", "KV",
            "context", p->n_prompt);
    for (size_t i = 0; i < end; i++)
        fprintf(f, " %*d", CELL_WIDTH, p->v[i].ctx);
    putc('\n', f);
}

static void print_line(FILE *f, const struct predictions *p, size_t begin, size_t end)
{
    const struct prediction *one = &p->v[begin];
    char text[64], context[24] = "none", prompt[32] = "-";

    if (one->need.packed_ctx > 0) /* the largest that memory holds without streaming */
        snprintf(context, sizeof context, "%d", one->need.packed_ctx);
    if (isfinite(one->ttft_s.mid))
        snprintf(prompt, sizeof prompt, "%s s", report_figure(one->ttft_s.mid).text);
    fprintf(f, "%-7s %9s %-4s %8s %8s", one->quant,
            bytes_text(one->need.weight_bytes).text, choices_kv.name((int)one->kv_type),
            context, prompt);
    for (size_t i = begin; i < end; i++)
        fprintf(f, " %*s", CELL_WIDTH, cell(&p->v[i], text, sizeof text));
    putc('\n', f);
}

static void print_machine(FILE *f, const struct predictions *p,
                          const struct candidate *c)
{
    char text[1200] = "";

    text_append(text, sizeof text, "%s on %s: %s of memory", p->v[0].model, c->name,
                bytes_text(p->v[0].room).text);
    if (c->n_threads)
        text_append(text, sizeof text, ", %d thread%s", c->n_threads,
                    plural(c->n_threads, "s"));
    if (c->roofs.read_gbps > 0)
        text_append(text, sizeof text, ", %.1f GB/s%s", c->roofs.read_gbps,
                    c->by_data_sheet ? " expected" : "");
    if (c->peak_gops > 0)
        text_append(text, sizeof text, ", %.0f GOPS", c->peak_gops);
    if (c->roofs.disk_gbps > 0)
        text_append(text, sizeof text, ", a disk of %.2f GB/s", c->roofs.disk_gbps);
    text_append(text, sizeof text, " (%s)", c->from);
    text_wrap(f, text, 0, 0, LINE_WIDTH, false);
}

/* What the marks that occur mean. */
static void print_legend(FILE *f, const struct predictions *p)
{
    static const struct {
        enum predict_label label;
        const char *text;
    } meanings[] = {
        {PREDICT_MEASURED, "m: measured on this machine, with its 95 % interval."},
        {PREDICT_CALIBRATED,
         "c: calibrated, measured roofs times the shares of them that this format "
         "reached elsewhere; nine of ten launches are expected within the range."},
        {PREDICT_ESTIMATED, "e: estimated, from a data sheet, or for a format or size "
                            "of which nothing was measured; likewise."},
    };
    bool disk = false, streams = false;

    putc('\n', f);
    for (size_t k = 0; k < sizeof meanings / sizeof meanings[0]; k++)
        for (size_t i = 0; i < p->n; i++)
            if (p->v[i].decode_label == meanings[k].label) {
                text_wrap(f, meanings[k].text, 0, 3, LINE_WIDTH, false);
                break;
            }
    for (size_t i = 0; i < p->n; i++) {
        const struct prediction *one = &p->v[i];
        const bool reads = one->verdict == PLAN_STREAMS && !one->too_deep;

        streams |= reads && isfinite(one->decode.mid);
        disk |= reads && !isfinite(one->decode.mid);
    }
    if (streams)
        fputs("s: weights are streamed from disk.\n", f);
    if (disk)
        fputs("disk?: weights are streamed; --disk-gbps gives the disk's speed.\n", f);
}

static bool is_in_memory(const struct prediction *one)
{
    return one->verdict == PLAN_FITS && !one->too_deep && isfinite(one->decode.mid);
}

static void append_speed(char *buf, size_t cap, const struct prediction *one,
                         int n_prompt)
{
    text_append(buf, cap, "%s decodes about %.*f tok/s at depth %d", one->quant,
                one->decode.mid < 1 ? 2 : report_decimals(one->decode.mid),
                one->decode.mid, one->ctx);
    if (isfinite(one->ttft_s.mid))
        text_append(buf, cap, " and reads a prompt of %d tokens in %s s", n_prompt,
                    report_figure(one->ttft_s.mid).text);
    text_append(buf, cap, ".");
}

/* The largest file that memory holds, and the one that most people take. */
static void print_answer(FILE *f, const struct predictions *p)
{
    const struct prediction *usual = NULL, *largest = NULL;
    char text[500] = "";
    int deepest = 0;

    for (size_t i = 0; i < p->n; i++)
        if (!p->v[i].too_deep && p->v[i].ctx > deepest)
            deepest = p->v[i].ctx;
    for (size_t i = 0; i < p->n; i++) {
        const struct prediction *one = &p->v[i];

        if (!is_in_memory(one) || one->ctx != deepest)
            continue;
        if (!usual && !strcmp(one->quant, "Q4_K_M"))
            usual = one;
        if (!largest || one->need.weight_bytes > largest->need.weight_bytes)
            largest = one;
    }
    if (!largest)
        text_append(text, sizeof text,
                    "None of these fits into memory with a context of %d.", deepest);
    else if (p->n > 1)
        text_append(text, sizeof text,
                    "%s is the largest of these that fits into memory with a context "
                    "of %d. ",
                    largest->quant, deepest);
    if (largest)
        append_speed(text, sizeof text, usual ? usual : largest, p->n_prompt);
    text_wrap(f, text, 0, 0, LINE_WIDTH, false);
}

void predict_print(FILE *f, const struct predictions *p, const struct candidate *c)
{
    if (!p->n)
        return;
    print_machine(f, p, c);
    print_answer(f, p);
    print_head(f, p);
    for (size_t begin = 0, end; begin < p->n; begin = end) {
        end = line_end(p, begin);
        print_line(f, p, begin, end);
    }
    print_legend(f, p);
}

/* ---- CSV and JSON ---------------------------------------------------------------- */

static void print_figure(FILE *f, double v)
{
    putc(',', f);
    if (isfinite(v))
        fprintf(f, "%.6g", v);
}

static void print_range(FILE *f, struct range v)
{
    print_figure(f, v.mid);
    print_figure(f, v.lo);
    print_figure(f, v.hi);
}

void predict_print_text(FILE *f, const char *text)
{
    putc('"', f);
    if (row_csv_is_formula(text))
        putc('\'', f);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', f);
        putc(*text, f);
    }
    putc('"', f);
}

void predict_print_csv_header(FILE *f)
{
    fputs("model,quant,kv_type,ctx,file_bytes,needed_bytes,limit_bytes,verdict,max_ctx,"
          "bytes_per_token,streamed_bytes,tok_per_s,tok_per_s_lo,tok_per_s_hi,label,"
          "n_prompt,prefill_tok_per_s,prefill_tok_per_s_lo,prefill_tok_per_s_hi,"
          "prefill_label,ttft_s,ttft_s_lo,ttft_s_hi\n",
          f);
}

void predict_print_csv(FILE *f, const struct predictions *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct prediction *one = &p->v[i];
        const struct point_need *need = &one->need;

        predict_print_text(f, one->model);
        fprintf(f, ",%s,%s,%d,%llu,%llu,%llu,%s,%d,%llu,%llu", one->quant,
                choices_kv.name((int)one->kv_type), one->ctx,
                (unsigned long long)need->weight_bytes,
                (unsigned long long)(need->anon_bytes +
                                     point_need_reserve(need->residency)),
                (unsigned long long)one->room, verdict_text(one), need->packed_ctx,
                (unsigned long long)need->token_bytes,
                (unsigned long long)need->streamed_bytes);
        print_range(f, one->decode);
        fprintf(f, ",%s,%d", predict_label_name(one->decode_label), p->n_prompt);
        print_range(f, one->prefill);
        fprintf(f, ",%s", predict_label_name(one->prefill_label));
        print_range(f, one->ttft_s);
        putc('\n', f);
    }
}

static json_t *prediction_json(const struct prediction *one)
{
    const struct point_need *need = &one->need;

    return json_pack(
        "{s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:s, s:i, s:i, s:I, s:I, s:b, s:o, s:s, "
        "s:o, s:s, s:o}",
        "model", one->model, "quant", one->quant, "kv_type",
        choices_kv.name((int)one->kv_type), "ctx", one->ctx, "file_bytes",
        (json_int_t)need->weight_bytes, "needed_bytes",
        (json_int_t)(need->anon_bytes + point_need_reserve(need->residency)),
        "limit_bytes", (json_int_t)one->room, "verdict", verdict_text(one), "max_ctx",
        need->packed_ctx, "model_ctx", need->model_ctx, "bytes_per_token",
        (json_int_t)need->token_bytes, "streamed_bytes",
        (json_int_t)need->streamed_bytes, "in_cache", one->in_cache, "tok_per_s",
        json_range(one->decode.mid, one->decode.lo, one->decode.hi), "label",
        predict_label_name(one->decode_label), "prefill_tok_per_s",
        json_range(one->prefill.mid, one->prefill.lo, one->prefill.hi), "prefill_label",
        predict_label_name(one->prefill_label), "ttft_s",
        json_range(one->ttft_s.mid, one->ttft_s.lo, one->ttft_s.hi));
}

json_t *predict_json(const struct predictions *p, const struct candidate *c)
{
    json_t *list = json_array();

    for (size_t i = 0; i < p->n; i++)
        json_array_append_new(list, prediction_json(&p->v[i]));
    return json_pack(
        "{s:{s:s, s:s, s:i, s:o, s:o, s:o, s:b}, s:i, s:o}", "machine", "name", c->name,
        "from", c->from, "n_threads", c->n_threads, "read_gbps",
        json_number(c->roofs.read_gbps > 0 ? c->roofs.read_gbps : NAN), "peak_gops",
        json_number(c->peak_gops > 0 ? c->peak_gops : NAN), "disk_gbps",
        json_number(c->roofs.disk_gbps > 0 ? c->roofs.disk_gbps : NAN), "by_data_sheet",
        c->by_data_sheet, "n_prompt", p->n_prompt, "points", list);
}
