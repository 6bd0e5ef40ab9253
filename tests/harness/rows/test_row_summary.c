/* SPDX-License-Identifier: MIT
 *
 * test_row_summary.c - what a person reads of a row: the headline, the groups of lines,
 * and that README.md shows what the program prints
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/rows/row.h"

#define EXAMPLE SLM_SOURCE_DIR "/results/examples/granite-rapids-2vcpu/sweep.csv"

static char headline[512];
static char *text;

static void decode_row(struct row *r)
{
    row_init(r);
    strcpy(r->model, "tinyllama-1.1b");
    strcpy(r->quant, "Q4_K_M");
    r->kind = POINT_DECODE;
    r->status = ROW_STATUS_OK;
    r->n_params = 1100048384;
    r->file_bytes = 667815936;
    r->n_threads = 2;
    r->placement = PLACEMENT_SPREAD;
    strcpy(r->cpus, "0-1");
    r->ctx = 1024;
    r->n_samples = 64;
    r->tok_per_s = 24.5123;
    r->tok_per_s_lo = 23.4567;
    r->tok_per_s_hi = 25.7891;
    r->lat_p50_ms = 40.796;
    r->lat_p95_ms = 44.001;
    r->bytes_per_token = 690000000;
    r->roof_gbps = 30.123;
    r->roof_gbps_lo = 29.9;
    r->roof_gbps_hi = 30.3;
    r->roof_tok_per_s = 43.657;
    r->mbu = 0.5615;
    r->limiter = LIMITER_NOISE;
    strcpy(r->limiter_why, "others took 55 % of the CPU time");
    r->mem_limit_bytes = r->mem_enforced_bytes = INT64_C(1) << 30;
    r->mem_peak_bytes = 851619277;
    r->mem_resident_bytes = 751619277;
    strcpy(r->validity, "disturbed: others 55 %");
    r->steal_pct = 0.1234;
    r->others_pct = 55.4321;
    r->involuntary = 1;
    r->drift_pct = -1.25;
    strcpy(r->command, "bench decode -m tinyllama-1.1b:Q4_K_M -t 2");
}

static const char *say(const struct row *r)
{
    return row_headline(r, headline, sizeof headline);
}

static void print(const struct row *r)
{
    size_t len = 0;
    FILE *f;

    free(text);
    f = open_memstream(&text, &len);
    assert_non_null(f);
    row_print_summary(f, r);
    fclose(f);
}

static void streamed_rows_name_the_disk(void **state)
{
    struct row r;

    (void)state;
    decode_row(&r);
    r.residency = WEIGHTS_STREAM;
    r.n_streamed = 12;
    r.disk_bytes_per_token = 170000000;
    r.roof_disk_gbps = 1.25;
    r.disk_share = 0.96;
    strcpy(r.disk_way, "pread, direct, 8 of 2.00 MiB");
    r.expert_hit_rate = 0.914;
    print(&r);
    assert_non_null(strstr(text, "91 % of those that were chosen were in memory\n"));
    assert_non_null(strstr(text, "stream of 12 layers from disk\n"));
    assert_non_null(strstr(text, "reads 690 MB, 170 MB of it\n"));
    assert_non_null(
        strstr(text, "1.25 GB/s, of which 96 % were read by pread, direct, 8 of\n"));
}

static void one_sentence_says_what_counts(void **state)
{
    struct row r;

    (void)state;
    decode_row(&r);
    assert_string_equal(say(&r), "24.5 tok/s (23.5 to 25.8), 56 % of the roof, "
                                 "717 MiB resident, disturbed: others 55 %");
    strcpy(r.validity, "valid");
    r.mem_limit_bytes = FIELD_NO_INT;
    r.tok_per_s = 16871.23;
    r.tok_per_s_lo = 16789.4;
    r.tok_per_s_hi = 16999.9;
    assert_string_equal(say(&r), "16870 tok/s (16790 to 17000), 56 % of the roof, "
                                 "717 MiB resident, undisturbed");
    /* Too few samples for an interval: three digits, and it is said. */
    r.tok_per_s_lo = r.tok_per_s_hi = NAN;
    r.status = ROW_STATUS_PARTIAL;
    r.n_samples = 1;
    assert_string_equal(say(&r), "16900 tok/s, 56 % of the roof, 717 MiB resident, "
                                 "partial: 1 sample, undisturbed");
    /* of an older version */
    r.mem_resident_bytes = FIELD_NO_INT;
    assert_string_equal(say(&r), "16900 tok/s, 56 % of the roof, 812 MiB charged, "
                                 "partial: 1 sample, undisturbed");
}

static void prefill_has_a_first_token(void **state)
{
    struct row r;

    (void)state;
    decode_row(&r);
    r.kind = POINT_PREFILL;
    r.mbu = NAN;
    r.n_prompt = 512;
    r.gops = 1200;
    r.roof_gops = 2000;
    r.ttft_warm_s = 0.27634;
    r.ttft_s = 4.5123;
    strcpy(r.validity, "valid");
    assert_string_equal(say(&r),
                        "24.5 tok/s (23.5 to 25.8), 0.276 s to the first token (4.51 s "
                        "with loading the model), 60 % of the arithmetic peak, 717 MiB "
                        "resident, undisturbed");
    print(&r);
    assert_non_null(strstr(text, "  context         prompt of 512 tokens\n"));
    assert_null(strstr(text, "energy"));
    r.joules_per_token = 0.31;
    print(&r);
    assert_non_null(
        strstr(text, "  energy          0.31 J per token, of the whole package\n"));
    assert_non_null(strstr(text, "  prefill         24.5 tok/s, 95 % interval"));
    assert_non_null(
        strstr(text, "  per pass        40.8 ms; 95 of 100 within 44.0 ms"));
    assert_non_null(strstr(text, "  arithmetic      1200 of 2000 GOPS\n"));
    assert_null(strstr(text, "other units"));
    strcpy(r.unused_units, "AMX-FP16 AVX512-FP16");
    print(&r);
    assert_non_null(strstr(
        text, "  other units     AMX-FP16 AVX512-FP16: no product here uses them\n"));
    strcpy(r.unused_units, "AMX-INT8");
    strcpy(r.engine, "llama");
    print(&r);
    assert_non_null(
        strstr(text, "  other units     AMX-INT8: nothing shows that llama uses it\n"));
}

static void speculation_is_a_factor(void **state)
{
    struct row r;

    (void)state;
    decode_row(&r);
    r.kind = POINT_SPECULATE;
    r.mbu = NAN;
    r.spec_speedup = 1.2346;
    r.spec_speedup_lo = 1.2;
    r.spec_speedup_hi = 1.3;
    r.spec_plain_tok_per_s = 19.87;
    r.spec_accept = 0.62;
    r.spec_tokens_per_pass = 2.1;
    assert_non_null(strstr(say(&r), "1.235 times plain decoding (1.200 to 1.300)"));
    print(&r);
    assert_non_null(
        strstr(text, "62 % of the draft tokens accepted, 2.10 tokens per "));
}

static void no_figure_says_why(void **state)
{
    struct row r;

    (void)state;
    decode_row(&r);
    r.status = ROW_STATUS_NO_FIT;
    r.tok_per_s = NAN;
    strcpy(r.detail, "does not fit: needs 7 GiB");
    assert_string_equal(say(&r), "No figure: it does not fit the memory");
    print(&r);
    assert_int_equal(
        strncmp(text, "No figure: it does not fit the memory\ndoes not fit: ", 52), 0);
    assert_non_null(strstr(text, "\nMemory\n"));
    assert_null(strstr(text, "\nSpeed\n"));
    assert_non_null(strstr(text, "\nRepeat\n  bench decode -m tinyllama"));
    r.status = ROW_STATUS_OOM;
    assert_string_equal(say(&r), "No figure: killed for memory");
    r.status = ROW_STATUS_INTERRUPTED;
    assert_string_equal(say(&r), "No figure: interrupted");
    r.status = ROW_STATUS_ERROR;
    assert_string_equal(say(&r), "No figure: it failed");
}

/* Lines of a terminal, in groups, with units; what is not known is left out. */
static void groups_fit_a_terminal(void **state)
{
    static const char *const lines[] = {
        ("\nSetting\n  model           tinyllama-1.1b Q4_K_M, 1.1 billion parameters, "
         "637 MiB\n"),
        "  threads         2, placement spread, CPUs 0-1\n",
        "  per token       40.8 ms; 95 of 100 within 44.0 ms\n",
        "  bandwidth       30.12 GB/s (29.90 to 30.30), probed in this run\n",
        "  roof            at most 43.7 tok/s, as a token reads 690 MB\n",
        "  limited by      noise: others took 55 % of the CPU time\n",
        "  resident        717 MiB must stay in memory\n",
        ("  charged         812 MiB at most, page cache included, of a limit of 1.00 "
         "GiB\n"),
        "  CPU time        55.4 % of it took other processes, 0.1 % the hypervisor\n",
        "  switched out    1 time\n",
    };
    struct row r;

    (void)state;
    decode_row(&r);
    memset(r.detail, 'x', 100);
    r.detail[50] = ' ';
    print(&r);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (!strstr(text, lines[i]))
            fail_msg("no '%s' in:\n%s", lines[i], text);
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1)
        assert_true(strcspn(at, "\n") <= 79);
    row_init(&r);
    print(&r);
    assert_string_equal(text, "No figure: it failed\n");
}

/* Speed of all and of each, what they share, the nearer roof, the KV cache of all. */
static void several_sequences(void **state)
{
    static const char *const lines[] = {
        "8 sequences, the first 256 positions in common",
        "23.5 to 25.8, 64 samples; 3.06 for\n                  each sequence\n",
        "  per step        40.8 ms",
        "  roof            at most 32.7 tok/s by arithmetic; a token reads 690 MB\n",
        "22.0 KiB per position, 44.0 MiB for all sequences; the model\n",
    };
    struct row r;

    (void)state;
    decode_row(&r);
    r.n_sequences = 8;
    r.n_shared = 256;
    r.kv_bytes_per_token = 22528;
    r.kv_bytes = 44 << 20;
    r.model_ctx = 2048;
    r.gops = 900;
    r.roof_gops = 1200;
    r.roof_tok_per_s = 32.683;
    print(&r);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (!strstr(text, lines[i]))
            fail_msg("no '%s' in:\n%s", lines[i], text);
    /* memory's is the nearer one */
    r.roof_gops = 4000;
    r.roof_tok_per_s = 43.657;
    print(&r);
    assert_non_null(strstr(text, "at most 43.7 tok/s, as a token reads 690 MB\n"));
}

/* How fast a prompt is read beside a sequence is known also where no plain steps are.
 */
static void chunks_of_a_prompt(void **state)
{
    struct row r;

    (void)state;
    decode_row(&r);
    r.n_chunk = 32;
    r.lat_p50_ms = 60;
    r.chunk_tok_per_s = 533;
    print(&r);
    assert_non_null(
        strstr(text, "  chunks          533 tok/s of the prompt at the same time\n"));
    assert_null(strstr(text, "without it"));
    r.step_plain_ms = 40;
    print(&r);
    assert_non_null(
        strstr(text, "  without it      40.0 ms per step, so that the chunk"));
    assert_non_null(
        strstr(text, "  chunks          533 tok/s of the prompt at the same time\n"));
}

/* README.md shows a row that is in the repository. */
static void readme_shows_what_is_printed(void **state)
{
    struct row *rows = NULL;
    struct err err = ERR_INIT;
    static char readme[1 << 16];
    FILE *f = fopen(SLM_SOURCE_DIR "/README.md", "r");
    const char *example;
    size_t n = 0, n_lines = 0, i = 0;

    (void)state;
    assert_non_null(f);
    readme[fread(readme, 1, sizeof readme - 1, f)] = '\0';
    fclose(f);
    example = strstr(readme, "\n$ bench decode -m yi-1.5-9b:Q4_0 -t 2 --ctx 4096");
    assert_non_null(example);
    assert_int_equal(row_csv_read(EXAMPLE, &rows, &n, &err), ST_OK);
    while (i < n && strcmp(rows[i].point, "yi-1.5-9b:Q4_0/decode/t2/spread/ctx4096/6G"))
        i++;
    assert_true(i < n);
    print(&rows[i]);
    free(rows);
    example = strchr(example + 1, '\n') + 1;
    for (; strncmp(example, "```", 3) != 0; example = strchr(example, '\n') + 1) {
        char line[200];

        snprintf(line, sizeof line, "%.*s", (int)strcspn(example, "\n") + 1, example);
        if (!strncmp(line, "[...]", 5))
            continue;
        if (!strstr(text, line))
            fail_msg("README.md shows '%s', and the program prints:\n%s", line, text);
        n_lines++;
    }
    assert_true(n_lines >= 3);
}

/* A row of an older version, or an edited one: evidence without a limiter. */
static void no_limiter_without_a_name(void **state)
{
    struct row r;

    (void)state;
    decode_row(&r);
    r.limiter = FIELD_NO_ENUM;
    strcpy(r.limiter_why, "3 % of the bandwidth ceiling of a cache");
    print(&r);
    assert_null(strstr(text, "limited by"));
    assert_null(strstr(text, "of a cache"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sentence_says_what_counts),
        cmocka_unit_test(streamed_rows_name_the_disk),
        cmocka_unit_test(prefill_has_a_first_token),
        cmocka_unit_test(speculation_is_a_factor),
        cmocka_unit_test(no_figure_says_why),
        cmocka_unit_test(groups_fit_a_terminal),
        cmocka_unit_test(no_limiter_without_a_name),
        cmocka_unit_test(several_sequences),
        cmocka_unit_test(chunks_of_a_prompt),
        cmocka_unit_test(readme_shows_what_is_printed),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);

    free(text);
    return failed;
}
