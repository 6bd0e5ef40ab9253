/* SPDX-License-Identifier: MIT
 *
 * row_file.h - a table of rows in a temporary file, and rows for it
 */
#ifndef SLM_TESTS_ROW_FILE_H
#define SLM_TESTS_ROW_FILE_H

#include "tests/support/test.h"

#include "harness/rows/row.h"

static char path[] = "/tmp/slmbench_test_row_XXXXXX";

/* For cmocka: before and after the tests of a program. */
static inline int make_file(void **state)
{
    const int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    return 0;
}

static inline int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static inline void put(const char *text, size_t len)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static inline void sample_row(struct row *r)
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

#endif
