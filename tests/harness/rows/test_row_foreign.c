/* SPDX-License-Identifier: MIT
 *
 * test_row_foreign.c - tables that others have written: damaged, hostile, too large
 */
#include "tests/support/row_file.h"

#include "harness/rows/row.h"

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
        {"ctx\n \n", ":2: column ctx: ' ' is not a whole number"},
        {"ctx\n-\n", ":2: column ctx: '-'"},
        {"mbu\n \n", ":2: column mbu: ' ' is not a number"},
        {"mbu\n0.5x\n", ":2: column mbu: '0.5x'"},
        {"mbu\n1e999\n", ":2: column mbu: '1e999'"},
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

/* The number of columns has a limit, too. */
static void many_columns_are_refused(void **state)
{
    char commas[1025] = "", text[4096];
    struct row *rows = NULL;
    size_t n = 0;
    struct err err = ERR_INIT;

    (void)state;
    memset(commas, ',', 1024);
    snprintf(text, sizeof text, "ctx%s\n", commas);
    put(text, strlen(text));
    assert_int_equal(row_csv_read(path, &rows, &n, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "has 1025 columns; at most 1024"));
    err_clear(&err);
    snprintf(text, sizeof text, "ctx%s\n7%s\n", commas + 1, commas + 1);
    put(text, strlen(text));
    assert_int_equal(row_csv_read(path, &rows, &n, &err), ST_OK);
    assert_true(n == 1 && rows[0].ctx == 7);
    free(rows);
}

/* A table that may not be written is left as it is, with an error. */
static void what_cannot_be_cut(void **state)
{
    static const char text[] = "ctx\n1\n2";
    struct err err = ERR_INIT;

    (void)state;
    put(text, sizeof text - 1);
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    assert_int_equal(row_csv_repair(fileno(f), path, NULL, &err), ST_IO);
    assert_non_null(strstr(err.msg, "to its last whole line"));
    fseek(f, 0, SEEK_END);
    assert_int_equal(ftell(f), sizeof text - 1);
    fclose(f);
}

/* Zeros are what a disk leaves after a loss of power: a cell would end there. */
static void zeros_within_lines_are_refused(void **state)
{
    static const char within[] = "ctx,model\n12\0"
                                 "8,a\n",
                      after[] = "ctx\n12\n\0\0";
    struct row *rows = NULL;
    size_t n = 0;
    struct err err = ERR_INIT;

    (void)state;
    put(within, sizeof within - 1);
    assert_int_equal(row_csv_read(path, &rows, &n, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, ":2: a cell has a zero byte"));
    err_clear(&err);
    put(after, sizeof after - 1); /* behind the last whole line, as a torn one */
    assert_int_equal(row_csv_read(path, &rows, &n, &err), ST_OK);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].ctx, 12);
    free(rows);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torn_at_every_byte),
        cmocka_unit_test(no_table_is_cut),
        cmocka_unit_test(many_columns_are_refused),
        cmocka_unit_test(what_cannot_be_cut),
        cmocka_unit_test(bad_cells_are_named),
        cmocka_unit_test(zeros_within_lines_are_refused),
        cmocka_unit_test(texts_of_others_are_made_harmless),
        cmocka_unit_test(a_long_text_is_cut_between_characters),
        cmocka_unit_test(formulas_are_disarmed_and_come_back),
        cmocka_unit_test(what_a_table_becomes_is_limited),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
