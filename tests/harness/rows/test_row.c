/* SPDX-License-Identifier: MIT
 *
 * test_row.c - result rows: columns, CSV and JSON there and back, printing
 */
#include "tests/support/row_file.h"

#include <math.h>

#include "harness/rows/row.h"

/* Columns are a contract with everyone who has old files: they are only added,
 * each at the end of its group. */
static void header_is_golden(void **state)
{
    static const char golden[] =
        "utc,point,attempt,kind,model,quant,n_params,file_bytes,n_threads,"
        "placement,cpus,ctx,ctx_fill,n_prompt,kv_type,residency,pages,isa,"
        "n_threads_prefill,tuning,prefetch,n_wanted,n_batch,budget_s,build,"
        "kv_window,n_sequences,n_shared,weights_asked,cpus_quota,engine,"
        "engine_version,n_chunk,model_label,built_by,model_id,prefill_sums,status,"
        "n_samples,tok_per_s,tok_per_s_lo,tok_per_s_hi,lat_p50_ms,lat_p95_ms,"
        "lat_p99_ms,load_s,ttft_s,ttft_s_lo,ttft_s_hi,ttft_warm_s,joules_per_token,"
        "step_plain_ms,chunk_tok_per_s,bytes_per_token,roof_gbps,roof_tok_per_s,"
        "mbu,gops,roof_gops,limiter,roof_gbps_lo,roof_gbps_hi,roof_gops_lo,"
        "roof_gops_hi,mbu_lo,mbu_hi,limiter_why,roof_disk_gbps,unused_units,"
        "disk_bytes_per_token,disk_share,disk_wait_pct,disk_way,expert_hit_rate,"
        "roof_vectors_gops,mem_limit_bytes,mem_enforced_bytes,mem_peak_bytes,"
        "mem_planned_bytes,cached_bytes,kv_bytes_per_token,model_ctx,"
        "mem_resident_bytes,n_streamed,streamed_bytes,reclaimed_bytes,kv_bytes,"
        "mem_nodes,validity,major_faults_per_token,refaults_per_token,steal_pct,"
        "others_pct,involuntary,throttled_ms,drift_pct,detail,command,"
        "throttled_pct,text,chunk_tokens,n_scored,perplexity,perplexity_se,"
        "reference,reference_bytes,ppl_ratio,ppl_ratio_se,kl_mean,kl_se,kl_median,"
        "kl_p99,top1_pct,top1_se_pct,spec_mode,spec_text,spec_answer,spec_tokens,"
        "spec_guessed,spec_accept,spec_tokens_per_pass,spec_plain_tok_per_s,"
        "spec_speedup,spec_speedup_lo,spec_speedup_hi,spec_accept_at,"
        "spec_accept_set,load_mode,server_url,n_users,rate_asked,capacity_pct,"
        "prompt_lengths,output_lengths,prefix_tokens,slo,n_requests,n_failed,"
        "n_warm_up,window_s,req_per_s,ttft_p50_s,ttft_p90_s,ttft_p90_s_lo,"
        "ttft_p90_s_hi,ttft_p99_s,tpot_p50_ms,tpot_p90_ms,tpot_p90_ms_lo,"
        "tpot_p90_ms_hi,tpot_p99_ms,itl_p50_ms,itl_p90_ms,itl_p99_ms,e2e_p50_s,"
        "e2e_p90_s,e2e_p99_s,ttft_uncached_s,ttft_cached_s,n_cached_requests,"
        "prompt_tokens,output_tokens,output_pieces,slo_met_pct,n_ttft_met,"
        "n_tpot_met,slo_verdict,in_flight,little,client_cpu_pct,client_cpus,"
        "client_late_p99_ms,client_late_max_ms,round,ttft_visible_p50_s,"
        "ttft_visible_p90_s,ttft_visible_p90_s_lo,ttft_visible_p90_s_hi,"
        "ttft_visible_p99_s,n_invisible,reasoning_tokens,sessions,request_fields,"
        "ttft_turn1_p50_s,ttft_turn1_p90_s,ttft_turn1_p90_s_lo,ttft_turn1_p90_s_hi,"
        "ttft_later_p50_s,ttft_later_p90_s,ttft_later_p90_s_lo,ttft_later_p90_s_hi,"
        "prefix_hit_pct,prefix_known_pct,api,n_tool_calls,arrivals,goodput_per_s,"
        "goodput_per_s_lo,goodput_per_s_hi,backlog_pct,server_prompt_tokens,"
        "server_cached_tokens,server_output_tokens,server_preemptions,"
        "server_ttft_s\n";
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
        assert_true(f[i].cap < ROW_CELL_MAX);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(f[i].name, f[j].name);
    }
    assert_null(row_field("no such column"));
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
 * back; an empty cell's meaning as an empty cell. Returns the value. */
static int enum_round_trip(const struct field *f, const char *text)
{
    const char *back = f->empty && !strcmp(text, f->empty) ? "" : text;
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
    assert_string_equal(row_text(&csv[0], f), back);
    assert_int_equal(row_compare_cell(&csv[0], &in, f), 0);

    json_t *object = row_json(&in), *cell = json_object_get(object, f->name);
    assert_true(*back ? !strcmp(json_string_value(cell), back) : json_is_null(cell));
    row_init(&json);
    row_from_json(&json, object);
    json_decref(object);
    assert_string_equal(row_text(&json, f), back);

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
            const char *text = f[i].choices->name(v);
            const bool is_usual = f[i].empty && !strcmp(text, f[i].empty);

            assert_true(strlen(text) < ROW_ENUM_CAP);
            assert_int_equal(enum_round_trip(&f[i], text),
                             is_usual ? FIELD_NO_ENUM : v);
        }
        assert_int_equal(enum_round_trip(&f[i], ""), FIELD_NO_ENUM);
    }
    assert_int_equal(n_enums, 16);
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
        cmocka_unit_test(json_there_and_back),
        cmocka_unit_test(closed_sets_are_numbers_inside_and_texts_outside),
        cmocka_unit_test(unknown_texts_are_kept_as_they_are),
        cmocka_unit_test(columns_say_what_they_are_for),
        cmocka_unit_test(print_leaves_out_empty),
        cmocka_unit_test(print_has_the_digits_that_intervals_support),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
