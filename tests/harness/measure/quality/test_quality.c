/* SPDX-License-Identifier: MIT
 *
 * test_quality.c - scores against values worked out by hand, records that outlive
 * their writer, chunks of text, and rows that find each other
 */
#include "tests/support/test.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "harness/base/interrupt.h"
#include "harness/measure/quality/quality_score.h"
#include "harness/measure/quality/quality_job.h"
#include "harness/measure/quality/quality_text.h"
#include "harness/rows/quality_rows.h"

#define SHAKESPEARE TEST_DATA "models/shakespeare3M-f16.gguf"
#define OTHER       TEST_DATA "models/llama.gguf"

static char dir[] = "quality-test-XXXXXX";

static const char *in_dir(const char *name)
{
    static char path[200];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static struct quality_row *new_row(size_t n_vocab)
{
    struct quality_row *row = calloc(1, quality_row_bytes(n_vocab));

    assert_non_null(row);
    return row;
}

/* ---- scores ---------------------------------------------------------------------- */

/* softmax(c, c + ln 2, c + ln 4) = (1, 2, 4) / 7 */
static const float sevenths[3] = {-3.0f, -3.0f + 0.69314718f, -3.0f + 1.38629436f};

static void likelihood_is_that_of_the_next_token(void **state)
{
    struct quality_score s;

    (void)state;
    assert_true(quality_score_alone(&s, sevenths, 3, 1));
    assert_true(fabs(s.nll - log(7.0 / 2)) < 1e-6);
    assert_true(s.kl == 0 && s.extra == 0 && s.same == 1);
    assert_true(quality_score_alone(&s, sevenths, 3, 0));
    assert_true(fabs(s.nll - log(7.0)) < 1e-6);
}

static void divergence_is_as_worked_out(void **state)
{
    /* p = (1/2, 1/4, 1/4) against q = (1, 2, 4) / 7 */
    const float p[3] = {0.69314718f, 0.0f, 0.0f};
    const double kl =
        1.0 / 7 * log(2.0 / 7) + 2.0 / 7 * log(8.0 / 7) + 4.0 / 7 * log(16.0 / 7);
    struct quality_row *row = new_row(3);
    struct quality_score s;

    (void)state;
    assert_true(quality_row_make(row, sevenths, 3, 2));
    assert_int_equal(row->top, 2);
    assert_true(fabs(row->nll - log(7.0 / 4)) < 1e-6);
    assert_true(quality_score_against(&s, row, p, 3, 2));
    assert_true(fabs(s.kl - kl) < 1e-5); /* steps of ln 4 / 65535 */
    assert_true(fabs(s.nll - log(4.0)) < 1e-6);
    assert_true(fabs(s.extra - log(16.0 / 7)) < 1e-6);
    assert_int_equal(s.same, 0);
    assert_true(quality_score_against(&s, row, sevenths, 3, 2));
    assert_true(s.kl < 1e-9 && s.kl >= 0);
    assert_int_equal(s.same, 1);
    free(row);
}

static void extreme_rows_are_kept(void **state)
{
    const float equal[4] = {5, 5, 5, 5}, far[3] = {0, -1000, 0}, bad[2] = {0, NAN},
                endless[2] = {0, INFINITY};
    struct quality_row *row = new_row(4);
    struct quality_score s;

    (void)state;
    assert_true(quality_row_make(row, equal, 4, 0));
    assert_true(row->step == 0 && row->top == 0);
    assert_true(quality_score_against(&s, row, equal, 4, 3));
    assert_true(s.kl == 0 && fabs(s.nll - log(4.0)) < 1e-12);
    /* ln q of the middle one is -32 there, and it weighs nothing */
    assert_true(quality_row_make(row, far, 3, 0));
    assert_true(quality_score_against(&s, row, far, 3, 0));
    assert_true(s.kl < 2e-11);
    assert_true(isfinite(s.kl));
    assert_false(quality_row_make(row, bad, 2, 0));
    assert_false(quality_score_alone(&s, endless, 2, 0));
    assert_false(quality_score_against(&s, row, bad, 2, 0));
    free(row);
}

static double exact_kl(const float *q, const float *p, size_t n)
{
    double sum_q = 0, sum_p = 0, kl = 0;

    for (size_t i = 0; i < n; i++) {
        sum_q += exp((double)q[i]);
        sum_p += exp((double)p[i]);
    }
    for (size_t i = 0; i < n; i++)
        kl += exp((double)q[i]) / sum_q *
              ((double)q[i] - log(sum_q) - (double)p[i] + log(sum_p));
    return kl;
}

/* The claim of quality_score.h: the error of 16 bits is far below the divergence. */
static void sixteen_bits_are_enough(void **state)
{
    enum { N = 5000 };
    struct quality_row *row = new_row(N);
    float *q = calloc(N, sizeof *q), *p = calloc(N, sizeof *p);
    uint64_t seed = 1;

    (void)state;
    for (int round = 0; round < 20; round++) {
        const float noise = 0.01f * (float)(round % 5);
        struct quality_score s;

        for (int i = 0; i < N; i++) {
            q[i] = 12 * test_random_float(&seed);
            p[i] = q[i] + noise * test_random_float(&seed);
        }
        assert_true(quality_row_make(row, q, N, 0));
        assert_true(quality_score_against(&s, row, p, N, 0));
        const double kl = exact_kl(q, p, N);
        assert_true(fabs(s.kl - kl) < 2e-8 + 1e-2 * kl);
    }
    free(q);
    free(p);
    free(row);
}

static void summaries_are_as_worked_out(void **state)
{
    const struct quality_score v[4] = {
        {1, 0.1, 0.0, 1}, {2, 0.1, 0.1, 1}, {3, 0.1, 0.2, 0}, {2, 0.1, 0.7, 1}};
    struct quality_summary s;
    double scratch[4];

    (void)state;
    quality_summarise(&s, v, 4, scratch);
    assert_int_equal(s.n, 4);
    assert_true(fabs(s.perplexity - exp(2)) < 1e-12);
    /* sd of 1, 2, 3, 2 is sqrt(2/3); its error of the mean half of that */
    assert_true(fabs(s.perplexity_se - exp(2) * sqrt(2.0 / 3) / 2) < 1e-12);
    assert_true(fabs(s.ratio - exp(0.1)) < 1e-12 && s.ratio_se < 1e-12);
    assert_true(fabs(s.kl_mean - 0.25) < 1e-12);
    /* squares of -.25 -.15 -.05 .45 are .29 */
    assert_true(fabs(s.kl_se - sqrt(0.29 / 3) / 2) < 1e-12);
    assert_true(fabs(s.kl_median - 0.15) < 1e-12);
    assert_true(fabs(s.kl_p99 - (0.2 + 0.97 * 0.5)) < 1e-12);
    assert_true(fabs(s.same - 0.75) < 1e-12);
    assert_true(fabs(s.same_se - sqrt(0.75 * 0.25 / 3)) < 1e-12);
}

/* ---- records --------------------------------------------------------------------- */

static void damage(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");

    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    fputc('!', f);
    fclose(f);
}

static void records_outlive_their_writer(void **state)
{
    const char *path = in_dir("records");
    struct quality_store *s = NULL, *second = NULL;
    struct err err = ERR_INIT;
    uint64_t v[3] = {1, 2, 3};
    struct stat st;

    (void)state;
    assert_int_equal(quality_store_open(&s, path, 7, sizeof v, &err), ST_OK);
    assert_int_equal(quality_store_n(s), 0);
    for (v[0] = 0; v[0] < 5; v[0]++)
        assert_int_equal(quality_store_append(s, v, &err), ST_OK);
    assert_int_equal(quality_store_open(&second, path, 7, sizeof v, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "another"));
    err_clear(&err);
    quality_store_close(s);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, quality_store_bytes(sizeof v, 5));

    /* the last record is torn: four are left, and a new one takes its place */
    assert_int_equal(truncate(path, st.st_size - 1), 0);
    assert_int_equal(quality_store_open(&s, path, 7, sizeof v, &err), ST_OK);
    assert_int_equal(quality_store_n(s), 4);
    v[0] = 40;
    assert_int_equal(quality_store_append(s, v, &err), ST_OK);
    assert_int_equal(quality_store_read(s, 4, v, &err), ST_OK);
    assert_int_equal(v[0], 40);
    assert_int_equal(quality_store_read(s, 3, v, &err), ST_OK);
    assert_int_equal(v[0], 3);
    assert_int_equal(quality_store_cut(s, 2, &err), ST_OK);
    assert_int_equal(quality_store_n(s), 2);
    quality_store_close(s);

    /* a changed byte is found */
    damage(path, (long)quality_store_bytes(sizeof v, 1) + 3);
    assert_int_equal(quality_store_open(&s, path, 7, sizeof v, &err), ST_OK);
    assert_int_equal(quality_store_read(s, 0, v, &err), ST_OK);
    assert_int_equal(quality_store_read(s, 1, v, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "damaged"));
    err_clear(&err);
    quality_store_close(s);

    /* of something else: begun anew */
    assert_int_equal(quality_store_open(&s, path, 8, sizeof v, &err), ST_OK);
    assert_int_equal(quality_store_n(s), 0);
    quality_store_close(s);
    assert_int_equal(quality_store_open(&s, "no/such/place", 1, 8, &err), ST_IO);
    unlink(path);
}

static bool reads_fail;
static int n_interrupts;

/* In place of the C library's. */
ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    if (!reads_fail)
        return syscall(SYS_pread64, fd, to, n, at);
    errno = EIO;
    return -1;
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
    if (n_interrupts-- <= 0)
        return syscall(SYS_pwrite64, fd, from, n, at);
    errno = EINTR;
    return -1;
}

/* A disk that reports an error for a moment costs no records, nor does a signal. */
static void records_that_cannot_be_read_are_kept(void **state)
{
    const char *path = in_dir("unread");
    struct quality_store *s = NULL;
    struct err err = ERR_INIT;
    uint64_t v = 5;

    (void)state;
    assert_int_equal(quality_store_open(&s, path, 7, sizeof v, &err), ST_OK);
    n_interrupts = 2;
    assert_int_equal(quality_store_append(s, &v, &err), ST_OK);
    assert_int_equal(quality_store_n(s), 1);
    reads_fail = true;
    assert_int_equal(quality_store_read(s, 0, &v, &err), ST_IO);
    assert_non_null(strstr(err.msg, "cannot read"));
    quality_store_close(s);
    err_clear(&err);
    s = NULL;
    assert_int_equal(quality_store_open(&s, path, 7, sizeof v, &err), ST_IO);
    assert_non_null(strstr(err.msg, "cannot read"));
    assert_null(s);
    reads_fail = false;
    err_clear(&err);
    assert_int_equal(quality_store_open(&s, path, 7, sizeof v, &err), ST_OK);
    assert_int_equal(quality_store_n(s), 1);
    assert_int_equal(quality_store_read(s, 0, &v, &err), ST_OK);
    assert_int_equal(v, 5);
    quality_store_close(s);
    unlink(path);
}

static void limit_files(rlim_t bytes)
{
    const struct rlimit limit = {bytes, RLIM_INFINITY};

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A disk that is full in the middle of a record, or of a header. */
static void records_without_space_are_cut_off(void **state)
{
    const char *path = in_dir("full");
    struct quality_store *s = NULL;
    struct err err = ERR_INIT;
    uint64_t v[3] = {1, 2, 3};
    struct stat st;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(quality_store_open(&s, path, 7, sizeof v, &err), ST_OK);
    assert_int_equal(quality_store_append(s, v, &err), ST_OK);
    limit_files(quality_store_bytes(sizeof v, 1) + 10);
    const enum status appended = quality_store_append(s, v, &err);

    limit_files(RLIM_INFINITY);
    assert_int_equal(appended, ST_IO);
    assert_non_null(strstr(err.msg, "(what is there is whole)"));
    assert_int_equal(quality_store_n(s), 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, quality_store_bytes(sizeof v, 1));
    quality_store_close(s);
    unlink(path);

    err_clear(&err);
    limit_files(4);
    const enum status opened = quality_store_open(&s, path, 7, sizeof v, &err);

    limit_files(RLIM_INFINITY);
    assert_int_equal(opened, ST_IO);
    assert_non_null(strstr(err.msg, "cannot write"));
    unlink(path);
}

static void records_are_in_regular_files(void **state)
{
    const char *path = in_dir("pipe");
    struct quality_store *s = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(quality_store_open(&s, path, 7, 8, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "is not a regular file; remove it"));
    assert_null(s);
    unlink(path);
}

/* ---- text ------------------------------------------------------------------------ */

static void text_is_cut_into_chunks(void **state)
{
    struct quality_model m, other;
    struct quality_text t, shorter;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(quality_model_read(&m, SHAKESPEARE, NULL, &err), ST_OK);
    assert_string_equal(m.name, "shakespeare3M-f16");
    assert_true(quality_model_is_float(&m));
    assert_int_equal(m.n_vocab, 512);
    assert_int_equal(quality_text_read(&t, &m, NULL, 256, 0, &err), ST_OK);
    assert_int_equal(t.n_chunks, 137);
    assert_int_equal(quality_per_chunk(256), 127);
    assert_int_equal(quality_per_chunk(9), 4);
    for (size_t i = 0; i < t.n_chunks; i++)
        assert_int_equal(t.ids[i * 256], 1);
    assert_int_not_equal(t.ids[1], 1);
    assert_string_equal(t.name, "shakespeare-heldout");

    /* fewer chunks are the beginning of all; other chunks are another text */
    assert_int_equal(quality_text_read(&shorter, &m, NULL, 256, 5, &err), ST_OK);
    assert_int_equal(shorter.n_chunks, 5);
    assert_true(shorter.key == t.key);
    assert_memory_equal(shorter.ids, t.ids, 5 * 256 * sizeof(int32_t));
    quality_text_free(&shorter);
    assert_int_equal(quality_text_read(&shorter, &m, NULL, 128, 5, &err), ST_OK);
    assert_true(shorter.key != t.key);
    quality_text_free(&shorter);

    assert_int_equal(quality_text_check(&t, &m, &m, &err), ST_OK);
    assert_int_equal(quality_model_read(&other, OTHER, NULL, &err), ST_OK);
    assert_false(quality_model_is_float(&other));
    assert_int_equal(quality_text_check(&t, &m, &other, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "vocabulary"));
    quality_text_free(&t);
}

/* A long text is tokenised for seconds. */
static void an_interrupt_ends_tokenising(void **state)
{
    struct quality_model m;
    struct quality_text t = {.ids = NULL};
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(quality_model_read(&m, SHAKESPEARE, NULL, &err), ST_OK);
    interrupt_catch();
    raise(SIGINT);
    assert_int_equal(quality_text_read(&t, &m, NULL, 256, 0, &err), ST_INTERRUPTED);
    assert_null(t.ids);
    interrupt_forget();
}

static void refuse_text(const char *text, size_t len, int ctx, enum status st,
                        const char *word)
{
    const char *path = in_dir("text");
    struct quality_model m;
    struct quality_text t;
    struct err err = ERR_INIT;
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    fwrite(text, 1, len, f);
    fclose(f);
    assert_int_equal(quality_model_read(&m, SHAKESPEARE, NULL, &err), ST_OK);
    assert_int_equal(quality_text_read(&t, &m, path, ctx, 0, &err), st);
    assert_non_null(strstr(err.msg, word));
    unlink(path);
}

static void texts_that_cannot_serve_are_refused(void **state)
{
    struct quality_model m;
    struct err err = ERR_INIT;

    (void)state;
    refuse_text("too short", 9, 64, ST_USAGE, "one chunk needs 64");
    refuse_text("", 0, 64, ST_USAGE, "one chunk needs 64");
    refuse_text("bro\377ken", 7, 64, ST_INPUT, "byte 3");
    refuse_text("cut \303", 5, 64, ST_INPUT, "byte 4");
    refuse_text("long enough", 11, 257, ST_USAGE, "256");
    refuse_text("long enough", 11, 7, ST_USAGE, "--ctx 7");
    assert_int_equal(quality_model_read(&m, "nano:Q4_0", NULL, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "synthetic"));
}

/* ---- rows ------------------------------------------------------------------------ */

static struct row quality_of(const char *model, const char *kv, double kl)
{
    struct row r;

    row_init(&r);
    snprintf(r.utc, sizeof r.utc, "2025-01-01T00:00:00Z");
    r.kind = ROW_QUALITY;
    snprintf(r.model, sizeof r.model, "%s", model);
    snprintf(r.quant, sizeof r.quant, "Q4_0");
    r.kv_type = row_enum_value(&choices_kv, kv);
    snprintf(r.text, sizeof r.text, "text");
    r.file_bytes = 1000;
    r.n_scored = 10;
    r.perplexity = 5;
    r.kl_mean = kl;
    return r;
}

static void rows_are_replaced_and_joined(void **state)
{
    struct row two[2] = {quality_of("a", "f16", 0.1), quality_of("a", "q8_0", 0.2)};
    struct row *read = NULL, points[3];
    struct err err = ERR_INIT;
    size_t n = 0;

    (void)state;
    assert_int_equal(quality_rows_read(dir, &read, &n, &err), ST_OK);
    assert_true(n == 0 && !read);
    assert_int_equal(quality_rows_write(dir, two, 2, &err), ST_OK);
    two[0].kl_mean = 0.3;
    assert_int_equal(quality_rows_write(dir, two, 1, &err), ST_OK);
    assert_int_equal(quality_rows_read(dir, &read, &n, &err), ST_OK);
    assert_int_equal(n, 2);
    assert_true(fabs(read[0].kl_mean - 0.3) < 1e-9);
    free(read);

    /* a row of a sweep keeps its own cells and takes the group */
    for (int i = 0; i < 3; i++) {
        points[i] = quality_of("a", i == 1 ? "q8_0" : "f16", NAN);
        points[i].kind = POINT_DECODE;
        points[i].perplexity = NAN;
        points[i].text[0] = '\0';
        points[i].tok_per_s = 7;
    }
    points[2].file_bytes = 1001; /* another file */
    /* of two texts the later measurement counts */
    two[1] = quality_of("a", "q8_0", 0.25);
    snprintf(two[1].text, sizeof two[1].text, "other");
    snprintf(two[1].utc, sizeof two[1].utc, "2025-01-02T00:00:00Z");
    assert_int_equal(quality_rows_write(dir, &two[1], 1, &err), ST_OK);
    assert_int_equal(quality_rows_join_dir(points, 3, dir, &err), ST_OK);
    assert_true(fabs(points[0].kl_mean - 0.3) < 1e-9 && points[0].tok_per_s == 7);
    assert_true(fabs(points[1].kl_mean - 0.25) < 1e-9);
    assert_string_equal(points[1].text, "other");
    assert_int_equal(points[0].kind, POINT_DECODE);
    assert_true(isnan(points[2].kl_mean) && !*points[2].text);

    /* copied into another directory, alone or by its directory; a table without a
     * figure is none */
    assert_int_equal(mkdir(in_dir("sweep"), 0755), 0);
    char to[200];
    snprintf(to, sizeof to, "%s", in_dir("sweep"));
    assert_int_equal(quality_rows_copy(dir, to, &err), ST_OK);
    assert_int_equal(quality_rows_copy(in_dir(QUALITY_CSV), to, &err), ST_OK);
    assert_int_equal(quality_rows_read(to, &read, &n, &err), ST_OK);
    assert_int_equal(n, 3);
    free(read);
    assert_int_equal(quality_rows_copy(TEST_DATA "sweeps/yi-9b-6g/sweep.csv", to, &err),
                     ST_INPUT);
    assert_non_null(strstr(err.msg, "no perplexity"));
    unlink(in_dir("sweep/" QUALITY_CSV));
    rmdir(in_dir("sweep"));
    unlink(in_dir(QUALITY_CSV));
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(likelihood_is_that_of_the_next_token),
        cmocka_unit_test(divergence_is_as_worked_out),
        cmocka_unit_test(extreme_rows_are_kept),
        cmocka_unit_test(sixteen_bits_are_enough),
        cmocka_unit_test(summaries_are_as_worked_out),
        cmocka_unit_test(records_outlive_their_writer),
        cmocka_unit_test(records_that_cannot_be_read_are_kept),
        cmocka_unit_test(records_without_space_are_cut_off),
        cmocka_unit_test(records_are_in_regular_files),
        cmocka_unit_test(text_is_cut_into_chunks),
        cmocka_unit_test(an_interrupt_ends_tokenising),
        cmocka_unit_test(texts_that_cannot_serve_are_refused),
        cmocka_unit_test(rows_are_replaced_and_joined),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
