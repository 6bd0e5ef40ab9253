/* SPDX-License-Identifier: MIT
 *
 * fuzz_csv.c - tables of results, with and without extra columns
 *
 * What is read is written again; read from there, it is written as the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "harness/rows/row.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

static char *write_rows(const struct row *rows, size_t n)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (!f)
        fuzz_fail("no memory to write");
    row_csv_header(f);
    for (size_t i = 0; i < n; i++)
        row_csv_write(f, &rows[i]);
    fclose(f);
    return text;
}

static void write_again(const struct row *rows, size_t n)
{
    char *text = write_rows(rows, n), *second;
    struct err err = ERR_INIT;
    struct row *again;
    size_t n_again;

    if (!fuzz_accepted(row_csv_read(fuzz_file("again.csv", text, strlen(text)), &again,
                                    &n_again, &err),
                       &err))
        fuzz_fail("our own writing is refused");
    if (n_again != n)
        fuzz_fail("%zu rows written, %zu read", n, n_again);
    second = write_rows(again, n);
    if (strcmp(text, second) != 0)
        fuzz_fail("rows are written as\n%sand read from there as\n%s", text, second);
    free(second);
    free(text);
    free(again);
}

static void read_table(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"run", "machine", "commit_id"};
    struct row_extra extra = {.names = names, .n = 3};
    const char *path = fuzz_file("t.csv", data, size);
    struct err err = ERR_INIT;
    struct row *rows;
    size_t n;

    if (fuzz_accepted(row_csv_read_extra(path, &rows, &n, &extra, &err), &err)) {
        row_extra_free(&extra, n);
        free(rows);
    }
    if (fuzz_accepted(row_csv_read(path, &rows, &n, &err), &err)) {
        if (n <= 64)
            write_again(rows, n);
        free(rows);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_table, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {
        "run",   "machine", "commit_id", "utc", "point",  "kind",    "status",  "model",
        "quant", "tok_s",   "threads",   "ok",  "decode", "prefill", "attempt", NULL};

    return mutate_text(data, size, max_size, seed, words);
}
