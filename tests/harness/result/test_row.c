/* SPDX-License-Identifier: MIT
 *
 * test_row.c - result rows: columns, CSV there and back, torn files, JSON
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/result/row.h"

static char path[] = "/tmp/slmbench_test_row_XXXXXX";

static void put(const char *text, size_t len)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* Columns are a contract with everyone who has old files: they are only added,
 * each at the end of its group. */
static void header_is_golden(void **state)
{
    static const char golden[] =
        "utc,point,attempt,kind,model,quant,n_params,file_bytes,n_threads,placement,"
        "cpus,"
        "ctx,ctx_fill,n_prompt,kv_type,residency,pages,isa,n_threads_prefill,tuning,"
        "prefetch,"
        "n_wanted,n_batch,budget_s,build,kv_window,n_sequences,n_shared,weights_asked,"
        "cpus_quota,"
        "engine,engine_version,n_chunk,"
        "status,n_samples,tok_per_s,tok_per_s_lo,tok_per_s_hi,lat_p50_ms,lat_p95_ms,"
        "lat_p99_ms,load_s,ttft_s,ttft_s_lo,ttft_s_hi,ttft_warm_s,joules_per_token,"
        "step_plain_ms,chunk_tok_per_s,"
        "bytes_per_token,roof_gbps,roof_tok_per_s,mbu,gops,roof_gops,limiter,"
        "roof_gbps_lo,roof_gbps_hi,roof_gops_lo,roof_gops_hi,mbu_lo,mbu_hi,"
        "limiter_why,roof_disk_gbps,unused_units,"
        "disk_bytes_per_token,disk_share,disk_wait_pct,disk_way,expert_hit_rate,"
        "mem_limit_bytes,mem_enforced_bytes,mem_peak_bytes,mem_planned_bytes,"
        "cached_bytes,kv_bytes_per_token,model_ctx,mem_resident_bytes,"
        "n_streamed,streamed_bytes,reclaimed_bytes,kv_bytes,"
        "validity,major_faults_per_token,refaults_per_token,steal_pct,others_pct,"
        "involuntary,throttled_ms,drift_pct,detail,command,throttled_pct,"
        "text,chunk_tokens,n_scored,perplexity,perplexity_se,reference,"
        "reference_bytes,ppl_ratio,ppl_ratio_se,kl_mean,kl_se,kl_median,kl_p99,"
        "top1_pct,top1_se_pct,"
        "spec_mode,spec_text,spec_answer,spec_tokens,spec_guessed,spec_accept,"
        "spec_tokens_per_pass,spec_plain_tok_per_s,spec_speedup,spec_speedup_lo,spec_"
        "speedup_hi\n";
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    (void)state;
    row_csv_header(f);
    fclose(f);
    assert_string_equal(text, golden);
    free(text);
}

static void fields_are_sound(void **state)
{
    size_t n;
    const struct field *f = row_fields(&n);

    (void)state;
    assert_true(n > 40);
    for (size_t i = 0; i < n; i++) {
        assert_true(*f[i].doc && *f[i].group);
        assert_ptr_equal(row_field(f[i].name), &f[i]);
        assert_true(f[i].cap <= 400);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(f[i].name, f[j].name);
    }
    assert_null(row_field("no such column"));
}

static void sample_row(struct row *r)
{
    row_init(r);
    strcpy(r->point, "yi:Q4_K_M/decode/t2");
    strcpy(r->model, "a \"quoted\", comma'd name");
    strcpy(r->detail, "two\nlines\r and a\ttab");
    r->attempt = 1;
    r->n_params = 8830000000;
    r->drift_pct = -1.25;
    r->tok_per_s = 3.14159;
}

static void csv_there_and_back(void **state)
{
    struct row in, *out = NULL;
    size_t n = 0;
    struct err err = ERR_INIT;
    FILE *f = fopen(path, "w");

    (void)state;
    sample_row(&in);
    row_csv_header(f);
    row_csv_write(f, &in);
    row_csv_write(f, &in);
    fclose(f);
    assert_int_equal(row_csv_read(path, &out, &n, &err), ST_OK);
    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(out[i].model, in.model);
        assert_string_equal(out[i].detail, "two lines  and a tab");
        assert_int_equal(out[i].attempt, 1);
        assert_int_equal(out[i].n_params, 8830000000);
        assert_true(out[i].n_samples == FIELD_NO_INT);
        assert_true(fabs(out[i].tok_per_s - 3.1416) < 1e-9);
        assert_true(fabs(out[i].drift_pct + 1.25) < 1e-9);
        assert_true(isnan(out[i].mbu));
        assert_int_equal(out[i].status, FIELD_NO_ENUM);
    }
    free(out);
}

static void quotes_are_rfc_4180(void **state)
{
    struct row r;
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    (void)state;
    row_init(&r);
    strcpy(r.utc, "a,b");
    strcpy(r.point, "say \"x\"");
    row_csv_write(f, &r);
    fclose(f);
    assert_memory_equal(text, "\"a,b\",\"say \"\"x\"\"\",,", 19);
    assert_int_equal(strcspn(text, "\n"), len - 1);
    free(text);
}

static void reads_foreign_order_and_crlf(void **state)
{
    static const char csv[] = "mbu,unknown,model,ctx\r\n"
                              "0.5,\"x\ny\",\"a,b\",\r\n"
                              "\r\n"
                              ",,plain,1024\r\n";
    struct row *rows = NULL;
    size_t n = 0;
    struct err err = ERR_INIT;

    (void)state;
    put(csv, strlen(csv));
    assert_int_equal(row_csv_read(path, &rows, &n, &err), ST_OK);
    assert_int_equal(n, 2);
    assert_true(rows[0].mbu == 0.5);
    assert_string_equal(rows[0].model, "a,b");
    assert_true(rows[0].ctx == FIELD_NO_INT);
    assert_true(isnan(rows[1].mbu));
    assert_string_equal(rows[1].model, "plain");
    assert_int_equal(rows[1].ctx, 1024);
    free(rows);
}

/* Cut a file of three rows at every byte: whole rows stay, nothing is invented. */
static void torn_at_every_byte(void **state)
{
    struct row r;
    char *text = NULL;
    size_t len = 0, header_end, expect;
    FILE *f = open_memstream(&text, &len);

    (void)state;
    sample_row(&r);
    row_csv_header(f);
    for (int i = 0; i < 3; i++)
        row_csv_write(f, &r);
    fclose(f);
    header_end = strcspn(text, "\n") + 1;
    for (size_t cut = 0; cut <= len; cut++) {
        struct row *rows = NULL;
        size_t n = 99;
        uint64_t dropped = 0;
        struct err err = ERR_INIT;

        put(text, cut);
        expect = 0;
        for (size_t i = header_end; i < cut; i++)
            expect += text[i] == '\n';
        if (cut < header_end) {
            assert_int_equal(row_csv_read(path, &rows, &n, &err), ST_INPUT);
            assert_int_equal(n, 99);
            continue;
        }
        assert_int_equal(row_csv_read(path, &rows, &n, &err), ST_OK);
        assert_int_equal(n, expect);
        free(rows);
        f = fopen(path, "r+");
        assert_non_null(f);
        assert_int_equal(row_csv_repair(fileno(f), path, &dropped, &err), ST_OK);
        fseek(f, 0, SEEK_END);
        assert_int_equal((size_t)ftell(f) + dropped, cut);
        fclose(f);
        assert_true(cut - dropped == 0 || text[cut - dropped - 1] == '\n');
    }
    free(text);
}

/* What nobody has begun to write as a row is not cut off. */
static void no_table_is_cut(void **state)
{
    static char text[80 << 10];
    struct err err = ERR_INIT;

    (void)state;
    memset(text, 'x', sizeof text);
    text[9] = '\n';
    put(text, sizeof text);
    FILE *f = fopen(path, "r+");

    assert_non_null(f);
    assert_int_equal(row_csv_repair(fileno(f), path, NULL, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "no table of a sweep"));
    fseek(f, 0, SEEK_END);
    assert_int_equal(ftell(f), sizeof text);
    err_clear(&err);
    assert_int_equal(ftruncate(fileno(f), (off_t)1 << 40), 0);
    assert_int_equal(row_csv_repair(fileno(f), path, NULL, &err), ST_INPUT);
    assert_int_equal(ftruncate(fileno(f), 0), 0);
    fclose(f);
}

static void bad_cells_are_named(void **state)
{
    static const struct {
        const char *csv, *says;
    } bad[] = {
        {"ctx,model\n1,a\n1x,b\n", ":3: column ctx: '1x'"},
        {"mbu\nnan\n", ":2: column mbu"},
        {"mbu\ninf\n", ":2: column mbu"},
        {"ctx\n99999999999999999999\n", "column ctx"},
        {"ctx,model\n1\n", ":2: 1 cells, the header has 2"},
        {"ctx,model\n1,\"a\n\n", NULL}, /* open quote: a torn line */
        {"this,that\n1,2\n", "no table of results"},
        {"", "no header"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct row *rows = NULL;
        size_t n = 0;
        struct err err = ERR_INIT;

        put(bad[i].csv, strlen(bad[i].csv));
        if (!bad[i].says) {
            assert_int_equal(row_csv_read(path, &rows, &n, &err), ST_OK);
            assert_int_equal(n, 0);
            continue;
        }
        assert_int_equal(row_csv_read(path, &rows, &n, &err), ST_INPUT);
        assert_non_null(strstr(err.msg, bad[i].says));
        assert_non_null(strstr(err.msg, path));
    }
    struct row *rows;
    size_t n;
    struct err err = ERR_INIT;
    assert_int_equal(row_csv_read("/nowhere/x.csv", &rows, &n, &err), ST_IO);
}

/* A cell of somebody else's table is printed later: it must not control a terminal, nor
 * be a workflow command of GitHub, nor reorder the text around it. */
static void texts_of_others_are_made_harmless(void **state)
{
    static const char csv[] =
        "model,detail,command\n"
        "\"evil\x1b[31m\n::error::x\",a\xe2\x80\xae"
        "b\xff ::add-mask::x,"
        "##[error]y\xc2\x9b\n"
        "Qwen2.5::7B \xc3\xa9\xe4\xb8\xad,\xc2\xa0::error::z,::error::w\n";
    struct row *rows = NULL, json;
    struct err err = ERR_INIT;
    size_t n = 0;

    (void)state;
    put(csv, strlen(csv));
    assert_int_equal(row_csv_read(path, &rows, &n, &err), ST_OK);
    assert_int_equal(n, 2);
    assert_string_equal(rows[0].model, "evil\\x1b[31m\\x0a::error::x");
    assert_string_equal(rows[0].detail, "a\\xe2\\x80\\xaeb\\xff .:add-mask::x");
    assert_string_equal(rows[0].command, ".#[error]y\\xc2\\x9b");
    assert_string_equal(rows[1].model, "Qwen2.5::7B \xc3\xa9\xe4\xb8\xad");
    assert_string_equal(rows[1].detail, "\xc2\xa0.:error::z");
    assert_string_equal(rows[1].command, ".:error::w");
    free(rows);

    json_t *object = json_pack("{s:s, s:s}", "model", "m\x1b]0;x\x07", "detail",
                               "::error::\xe2\x80\xa8");
    row_init(&json);
    row_from_json(&json, object);
    json_decref(object);
    assert_string_equal(json.model, "m\\x1b]0;x\\x07");
    assert_string_equal(json.detail, ".:error::\\xe2\\x80\\xa8");
}

/* A cut is made between characters. */
static void a_long_text_is_cut_between_characters(void **state)
{
    struct row r;
    char text[64] = "";

    (void)state;
    for (int i = 0; i < 20; i++)
        strcat(text, "\xe4\xb8\xad");
    row_init(&r);
    row_set_text(&r, row_field("quant"), text);
    assert_int_equal(strlen(r.quant), 6 * 3 + 3);
    assert_string_equal(r.quant + 18, "...");
}

/* A spreadsheet takes a cell that begins so for a formula, and runs it. */
static void formulas_are_disarmed_and_come_back(void **state)
{
    static const char *const texts[] = {
        "=cmd|' /C calc'!A0", "+1+1", "-2",  "@SUM(A1)", "'=x", "''-y",
        "'quoted'",           "'",    "a=b",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct row in, *out = NULL;
        struct err err = ERR_INIT;
        size_t n = 0, len = 0;
        char *text = NULL;
        FILE *f = open_memstream(&text, &len);

        row_init(&in);
        snprintf(in.model, sizeof in.model, "%s", texts[i]);
        in.drift_pct = -1.5;
        row_csv_header(f);
        row_csv_write(f, &in);
        fclose(f);
        assert_true(strchr(",=+-@", strstr(text, "\n,,,,")[5]) == NULL);
        assert_non_null(strstr(text, ",-1.5"));
        put(text, len);
        assert_int_equal(row_csv_read(path, &out, &n, &err), ST_OK);
        assert_int_equal(n, 1);
        assert_string_equal(out[0].model, in.model);
        assert_true(out[0].drift_pct == -1.5);
        free(out);
        free(text);
    }
}

/* A table of n_lines rows, each of so many bytes with its line end. */
static enum status read_rows_of(size_t n_lines, size_t bytes, size_t *n,
                                struct err *err)
{
    char *text = malloc(6 + bytes * n_lines);
    struct row *rows = NULL;
    enum status st;

    assert_non_null(text);
    memcpy(text, "model\n", 6);
    memset(text + 6, 'x', bytes * n_lines);
    for (size_t i = 1; i <= n_lines; i++)
        text[5 + bytes * i] = '\n';
    put(text, 6 + bytes * n_lines);
    free(text);
    err_clear(err);
    st = row_csv_read(path, &rows, n, err);
    assert_true(st == ST_OK || !rows);
    free(rows);
    return st;
}

/* Two bytes of a table become a row of thousands. */
static void what_a_table_becomes_is_limited(void **state)
{
    struct err err = ERR_INIT;
    size_t n = 0;

    (void)state;
    assert_int_equal(read_rows_of(1000, 2, &n, &err), ST_OK);
    assert_int_equal(n, 1000);
    assert_int_equal(read_rows_of(1100, 2, &n, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, ":1070: more than 1068 rows"));
    assert_int_equal(read_rows_of(20000, 32, &n, &err), ST_OK);
    assert_int_equal(n, 20000);
    assert_int_equal(read_rows_of(ROW_CSV_MAX_ROWS + 1, 32, &n, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "more than 200000 rows"));
}

static void json_there_and_back(void **state)
{
    struct row in, out;
    json_t *object;

    (void)state;
    sample_row(&in);
    strcpy(in.model, "latin1 \xe9t\xe9");
    object = row_json(&in);
    assert_non_null(object);
    size_t n;
    row_fields(&n);
    assert_int_equal(json_object_size(object), n);
    assert_true(json_is_null(json_object_get(object, "mbu")));
    row_init(&out);
    row_from_json(&out, object);
    assert_string_equal(out.model, "latin1 ?t?");
    assert_int_equal(out.n_params, in.n_params);
    assert_true(out.tok_per_s == in.tok_per_s);
    assert_true(isnan(out.mbu));
    json_decref(object);

    /* wrong types and overlong strings are not trusted */
    object =
        json_pack("{s:s, s:i, s:s, s:s, s:i}", "ctx", "many", "model", 3, "quant",
                  "a quantisation much longer than the column", "mbu", "x", "kind", 0);
    row_init(&out);
    row_from_json(&out, object);
    assert_true(out.ctx == FIELD_NO_INT);
    assert_string_equal(out.model, "");
    assert_int_equal(out.kind, FIELD_NO_ENUM);
    assert_int_equal(strlen(out.quant), sizeof out.quant - 1);
    json_decref(object);
}

/* A row whose column f has this text, through CSV and JSON: the text and the value come
 * back. Returns the value. */
static int enum_round_trip(const struct field *f, const char *text)
{
    struct row in, *csv = NULL, json;
    struct err err = ERR_INIT;
    size_t n = 0;
    FILE *file = fopen(path, "w");

    row_init(&in);
    in.ctx = 1;
    row_set_text(&in, f, text);
    row_csv_header(file);
    row_csv_write(file, &in);
    fclose(file);
    assert_int_equal(row_csv_read(path, &csv, &n, &err), ST_OK);
    assert_int_equal(n, 1);
    assert_string_equal(row_text(&csv[0], f), text);
    assert_int_equal(row_compare_cell(&csv[0], &in, f), 0);

    json_t *object = row_json(&in), *cell = json_object_get(object, f->name);
    assert_true(*text ? !strcmp(json_string_value(cell), text) : json_is_null(cell));
    row_init(&json);
    row_from_json(&json, object);
    json_decref(object);
    assert_string_equal(row_text(&json, f), text);

    const int value = *(const int *)(const void *)((const char *)&in + f->offset);
    assert_int_equal(*(const int *)(const void *)((const char *)&json + f->offset),
                     value);
    assert_int_equal(*(const int *)(const void *)((const char *)csv + f->offset),
                     value);
    free(csv);
    return value;
}

static void closed_sets_are_numbers_inside_and_texts_outside(void **state)
{
    size_t n, n_enums = 0;
    const struct field *f = row_fields(&n);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        if (f[i].kind != FIELD_KIND_ENUM)
            continue;
        n_enums++;
        for (int v = 0; v < f[i].choices->n; v++) {
            assert_true(strlen(f[i].choices->name(v)) < ROW_ENUM_CAP);
            assert_int_equal(enum_round_trip(&f[i], f[i].choices->name(v)), v);
        }
        assert_int_equal(enum_round_trip(&f[i], ""), FIELD_NO_ENUM);
    }
    assert_int_equal(n_enums, 13);
}

/* A newer program's, or a foreign one's: no error, no known value, and not lost. */
static void unknown_texts_are_kept_as_they_are(void **state)
{
    size_t n;
    const struct field *f = row_fields(&n), *status = row_field("status");
    struct row a, b;
    char text[40];

    (void)state;
    for (size_t i = 0; i < n; i++)
        if (f[i].kind == FIELD_KIND_ENUM) {
            const int v = enum_round_trip(&f[i], "from 2031");

            assert_true(v >= f[i].choices->n);
            assert_int_equal(enum_round_trip(&f[i], "from 2031"), v);
            assert_int_not_equal(enum_round_trip(&f[i], "from 2032"), v);
        }
    row_init(&a);
    row_init(&b);
    row_set_text(&a, status, "a status much longer than the column");
    assert_int_equal(strlen(row_text(&a, status)), ROW_ENUM_CAP - 1);
    row_set_text(&b, status, row_text(&a, status));
    assert_int_equal(a.status, b.status);
    row_set_text(&b, status, "O,\"k\"");
    assert_int_equal(enum_round_trip(status, "O,\"k\""), b.status);
    assert_true(row_compare_cell(&a, &b, status) > 0);

    /* printed later, as every text of somebody else's table */
    row_set_text(&a, status, "\x1b[2J");
    assert_string_equal(row_text(&a, status), "\\x1b[2J");
    row_set_text(&a, status, "\n::error::x");
    assert_string_equal(row_text(&a, status), "\\x0a::error::x");
    row_set_text(&a, status, "::error::x");
    assert_string_equal(row_text(&a, status), ".:error::x");

    /* more of them than are kept apart: still no error, and no known value */
    for (int i = 0; i < 2 * ROW_ENUM_MAX_UNKNOWN; i++) {
        snprintf(text, sizeof text, "odd %d", i);
        row_set_text(&a, status, text);
        assert_true(a.status >= choices_row_status.n);
    }
    assert_string_equal(row_text(&a, status), "unknown");
    a.status = 12345; /* no value at all */
    assert_string_equal(row_text(&a, status), "");
}

/* Flags of fields.def: what orders rows, and what names settings. */
static void columns_say_what_they_are_for(void **state)
{
    struct row a, b;
    char text[80] = "m";

    (void)state;
    row_init(&a);
    row_init(&b);
    assert_int_equal(row_compare(&a, &b, FIELD_COMPUTED), 0);
    a.kv_type = KERN_KV_q8_0;
    a.placement = PLACEMENT_COMPACT;
    b.n_threads = 3;
    assert_true(row_compare(&a, &b, FIELD_COMPUTED) != 0);
    b.kv_type = KERN_KV_q8_0;
    assert_int_equal(row_compare(&a, &b, FIELD_COMPUTED), 0);
    assert_int_equal(row_compare(&a, &b, FIELD_MODEL), 0);
    assert_true(row_compare(&a, &b, FIELD_SETTING) < 0);
    strcpy(a.quant, "Q4_0");
    assert_true(row_compare(&a, &b, FIELD_MODEL) > 0);
    assert_true(row_compare(&a, &b, FIELD_COMPUTED) > 0);
    assert_int_equal(row_compare(&a, &b, FIELD_COMPUTED | FIELD_SETTING), 0);

    row_append_unusual(&a, FIELD_NAMED, text, sizeof text);
    assert_string_equal(text, "m, compact, KV q8_0");
    text[0] = '\0';
    row_append_unusual(&a, FIELD_COMPUTED, text, sizeof text);
    assert_string_equal(text, ", KV q8_0");
    text[0] = '\0';
    a.kv_type = KERN_KV_f16;
    a.placement = FIELD_NO_ENUM;
    row_append_unusual(&a, FIELD_NAMED, text, sizeof text);
    assert_string_equal(text, "");
    a.kv_window = 512;
    row_append_unusual(&a, FIELD_NAMED, text, sizeof text);
    assert_string_equal(text, ", window 512");
    assert_true(row_compare(&a, &b, FIELD_COMPUTED) != 0);
    assert_ptr_equal(row_field_of(SETTING_weights), row_field("residency"));
    assert_null(row_field_of(SETTING_seed));
}

static void print_leaves_out_empty(void **state)
{
    struct row r;
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    (void)state;
    row_init(&r);
    r.roof_gbps = 24.5;
    row_print(f, &r);
    fclose(f);
    assert_string_equal(text, "roof_gbps               24.500 GB/s\n");
    free(text);
}

/* Two digits of the uncertainty, its own or that of the figure it follows from. */
static void print_has_the_digits_that_intervals_support(void **state)
{
    struct row r;
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    (void)state;
    row_init(&r);
    r.tok_per_s = 16871.23;
    r.tok_per_s_lo = 16028.1;
    r.tok_per_s_hi = 17714.7;
    r.lat_p50_ms = 0.0592725;
    r.steal_pct = 1.234;
    row_print(f, &r);
    fclose(f);
    assert_string_equal(text, "tok_per_s               16870 tok/s\n"
                              "tok_per_s_lo            16030 tok/s\n"
                              "tok_per_s_hi            17710 tok/s\n"
                              "lat_p50_ms              0.059 ms\n"
                              "steal_pct               1.23 %\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_is_golden),
        cmocka_unit_test(fields_are_sound),
        cmocka_unit_test(csv_there_and_back),
        cmocka_unit_test(quotes_are_rfc_4180),
        cmocka_unit_test(reads_foreign_order_and_crlf),
        cmocka_unit_test(torn_at_every_byte),
        cmocka_unit_test(no_table_is_cut),
        cmocka_unit_test(bad_cells_are_named),
        cmocka_unit_test(texts_of_others_are_made_harmless),
        cmocka_unit_test(a_long_text_is_cut_between_characters),
        cmocka_unit_test(formulas_are_disarmed_and_come_back),
        cmocka_unit_test(what_a_table_becomes_is_limited),
        cmocka_unit_test(json_there_and_back),
        cmocka_unit_test(closed_sets_are_numbers_inside_and_texts_outside),
        cmocka_unit_test(unknown_texts_are_kept_as_they_are),
        cmocka_unit_test(columns_say_what_they_are_for),
        cmocka_unit_test(print_leaves_out_empty),
        cmocka_unit_test(print_has_the_digits_that_intervals_support),
    };
    const int fd = mkstemp(path);

    if (fd < 0)
        return 1;
    close(fd);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
