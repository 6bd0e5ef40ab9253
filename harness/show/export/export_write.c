/* SPDX-License-Identifier: MIT
 *
 * export_write.c - rows as a Markdown table, CSV and JSON Lines
 */
#include "harness/show/export/export.h"

#include <string.h>

#include "harness/base/format.h"
#include "harness/base/parse.h"
#include "harness/base/textfile.h"
#include "harness/rows/point/point_row.h"
#include "harness/rows/report_rows.h"

static const char *format_name(int format)
{
    static const char *const names[] = {"markdown", "csv", "jsonl", "llama-bench-jsonl",
                                        "openmetrics"};

    return names[format];
}

const struct choices choices_export = {
    .noun = "formats are", .name = format_name, .n = EXPORT_OPENMETRICS + 1};

/* One row that is written, and what names it. */
struct item {
    const struct row *row;
    const struct report_rows *points; /* of its source */
    const char *source;               /* NULL: there is only one */
};

/* ---- Markdown -------------------------------------------------------------------- */

static const char markdown_head[] = " model | setting | point | threads | tok/s | 95 % "
                                    "interval | of roof | first token "
                                    "| memory | limited by | remark |\n";
static const char markdown_line[] = ":--|:--|:--|--:|--:|--:|--:|--:|--:|:--|:--|\n";

static void put_cell(FILE *f, const char *text)
{
    fputc(' ', f);
    markdown_put(f, text);
    fputs(" |", f);
}

static void put_figures(FILE *f, const struct row *r)
{
    const bool has_figure = row_trust(r) != ROW_FAILED;
    const int digits = report_decimals(r->tok_per_s);
    char text[64] = "";

    put_cell(f, has_figure ? report_figure(r->tok_per_s).text : "");
    if (has_figure && r->tok_per_s_lo > 0 && r->tok_per_s_hi > 0)
        snprintf(text, sizeof text, "%.*f to %.*f", digits, r->tok_per_s_lo, digits,
                 r->tok_per_s_hi);
    put_cell(f, text);
    text[0] = '\0';
    if (has_figure && r->mbu > 0)
        snprintf(text, sizeof text, "%.0f %%", 100 * r->mbu);
    put_cell(f, text);
    text[0] = '\0';
    if (has_figure && row_ttft_warm_s(r) > 0)
        snprintf(text, sizeof text, "%s s", report_figure(row_ttft_warm_s(r)).text);
    put_cell(f, text);
}

/* A line for a person. */
static void put_markdown(FILE *f, const struct item *item)
{
    const struct row *r = item->row;
    char text[ROW_CELL_MAX];

    put_cell(f, report_model_name(r).text);
    put_cell(f, report_setting_label(item->points, r, text, sizeof text));
    row_point_text(text, sizeof text, r);
    put_cell(f, text);
    put_cell(f, row_cell(r, row_field("n_threads"), text, sizeof text));
    put_figures(f, r);
    text[0] = '\0';
    if (row_needed_bytes(r) > 0)
        format_bytes(text, sizeof text, (uint64_t)row_needed_bytes(r));
    put_cell(f, text);
    put_cell(f, row_trust(r) == ROW_FAILED ? "" : row_limiter_text(r));
    put_cell(f, row_doubt(r));
    fputc('\n', f);
}

static void put_markdown_head(FILE *f, const struct export_params *p, bool sources)
{
    fprintf(f, "|%s", sources ? " source |" : "");
    for (size_t i = 0; i < p->n_columns; i++)
        fprintf(f, " %s |", p->column[i]->name);
    fprintf(f, "%s|%s", p->n_columns ? "\n" : markdown_head, sources ? ":--|" : "");
    for (size_t i = 0; i < p->n_columns; i++)
        fputs(field_is_text(p->column[i]) ? ":--|" : "--:|", f);
    fputs(p->n_columns ? "\n" : markdown_line, f);
}

static void put_markdown_item(FILE *f, const struct export_params *p,
                              const struct item *item)
{
    char text[ROW_CELL_MAX];

    fputc('|', f);
    if (item->source)
        put_cell(f, item->source);
    if (!p->n_columns) {
        put_markdown(f, item);
        return;
    }
    for (size_t i = 0; i < p->n_columns; i++)
        put_cell(f, row_cell(item->row, p->column[i], text, sizeof text));
    fputc('\n', f);
}

/* ---- CSV ------------------------------------------------------------------------- */

static void put_csv_head(FILE *f, const struct export_params *p, bool sources)
{
    if (sources)
        fputs("source,", f);
    if (!p->n_columns)
        row_csv_header(f);
    for (size_t i = 0; i < p->n_columns; i++)
        fprintf(f, "%s%s", p->column[i]->name, i + 1 < p->n_columns ? "," : "\n");
}

static void put_csv_item(FILE *f, const struct export_params *p,
                         const struct item *item)
{
    char text[ROW_CELL_MAX];

    if (item->source) {
        row_csv_cell(f, item->source, true);
        fputc(',', f);
    }
    if (!p->n_columns)
        row_csv_write(f, item->row);
    for (size_t i = 0; i < p->n_columns; i++) {
        row_csv_cell(f, row_cell(item->row, p->column[i], text, sizeof text),
                     field_is_text(p->column[i]));
        fputc(i + 1 < p->n_columns ? ',' : '\n', f);
    }
}

/* ---- JSON Lines ------------------------------------------------------------------ */

static enum status put_json_item(FILE *f, const struct export_params *p,
                                 const struct item *item, struct err *err)
{
    json_t *all = row_json(item->row), *line = json_object();
    bool failed = !all || !line;

    if (item->source)
        failed |= json_object_set_new(line, "source", json_string(item->source)) != 0;
    for (size_t i = 0; i < p->n_columns && !failed; i++)
        failed |= json_object_set(line, p->column[i]->name,
                                  json_object_get(all, p->column[i]->name)) != 0;
    if (!failed && !p->n_columns)
        failed |= json_object_update(line, all) != 0;
    if (!failed) {
        textfile_put_json(f, line, JSON_COMPACT | JSON_REAL_PRECISION(9));
        fputc('\n', f);
    }
    json_decref(all);
    json_decref(line);
    return failed ? err_set(err, ST_NO_MEMORY, "no memory for a row as JSON") : ST_OK;
}

/* ---- all ------------------------------------------------------------------------- */

static enum status put_item(FILE *f, const struct export_params *p,
                            const struct item *item, struct err *err)
{
    if (p->format == EXPORT_JSONL)
        return put_json_item(f, p, item, err);
    if (p->format == EXPORT_CSV)
        put_csv_item(f, p, item);
    else
        put_markdown_item(f, p, item);
    return ST_OK;
}

static enum status put_part(FILE *f, const struct result_part *part, bool named,
                            const struct export_params *p, struct err *err)
{
    struct report_rows points;
    enum status st = report_rows_pick(&points, part->rows, part->n, err);

    if (st)
        return st;
    for (size_t i = 0; i < (p->launches ? part->n : points.n) && st == ST_OK; i++) {
        const struct item item = {.row = p->launches ? &part->rows[i] : points.v[i],
                                  .points = &points,
                                  .source = named ? part->name : NULL};

        st = put_item(f, p, &item, err);
    }
    report_rows_free(&points);
    return st;
}

enum status export_write(FILE *f, const struct result_set *sets, size_t n_sets,
                         const struct export_params *p, size_t *n_left_out,
                         struct err *err)
{
    size_t n_parts = 0;
    enum status st = ST_OK;

    *n_left_out = 0;
    if (p->format == EXPORT_OPENMETRICS)
        return export_openmetrics(f, sets, n_sets, err);
    for (size_t i = 0; i < n_sets; i++)
        n_parts += sets[i].n_parts;
    if (p->format == EXPORT_MARKDOWN)
        put_markdown_head(f, p, n_parts > 1);
    else if (p->format == EXPORT_CSV)
        put_csv_head(f, p, n_parts > 1);
    for (size_t i = 0; i < n_sets; i++)
        for (size_t k = 0; k < sets[i].n_parts && st == ST_OK; k++) {
            const struct result_part *part = &sets[i].parts[k];

            for (size_t r = 0; r < part->n; r++)
                point_row_remake_command(&part->rows[r]);
            st = p->format == EXPORT_LLAMA_BENCH_JSONL
                     ? export_llama_bench(f, part, n_left_out, err)
                     : put_part(f, part, n_parts > 1, p, err);
        }
    return st;
}

/* ---- columns --------------------------------------------------------------------- */

enum status export_columns_parse(struct export_params *p, const char *text,
                                 struct err *err)
{
    struct parse_list names = {.what = "--columns", .text = text};
    enum status st = ST_OK;

    p->n_columns = 0;
    while (parse_item(&names, &st, err)) {
        const struct field *f;

        if (row_field_find(&f, names.item, "--columns: ", err))
            return err->code;
        if (p->n_columns == EXPORT_MAX_COLUMNS)
            return err_set(err, ST_USAGE, "--columns: more than %d are too many",
                           EXPORT_MAX_COLUMNS);
        p->column[p->n_columns++] = f;
    }
    return st;
}
