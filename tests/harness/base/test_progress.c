/* SPDX-License-Identifier: MIT
 *
 * test_progress.c - lines where stderr is no terminal: now and then, and how long it
 * will take, by a clock of our own
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "harness/base/progress.h"

#define SECOND UINT64_C(1000000000)

static uint64_t time_ns;

static uint64_t our_clock(void)
{
    return time_ns;
}

static void start(struct progress *p, const char *label)
{
    progress_begin(p, label);
    p->now_ns = our_clock;
    p->begin_ns = p->part_ns = time_ns;
}

static int own_stderr;
static FILE *file;

/* From here on stderr is a file. */
static void begin(void)
{
    file = tmpfile();
    assert_non_null(file);
    own_stderr = dup(STDERR_FILENO);
    assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
}

/* What was written, into buf; stderr is what it was. */
static const char *end(char *buf, size_t cap)
{
    fflush(stderr);
    dup2(own_stderr, STDERR_FILENO);
    close(own_stderr);
    rewind(file);
    buf[fread(buf, 1, cap - 1, file)] = '\0';
    fclose(file);
    return buf;
}

static int count_lines(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* A short job says nothing; a long one after 10 s, and then less and less often. */
static void lines_come_now_and_then(void **state)
{
    static const int at_s[] = {10, 30, 70, 150, 310, 610, 910};
    struct progress p;
    char text[4096];
    size_t n = 0;

    (void)state;
    setenv("SLMBENCH_PROGRESS", "10", 1);
    begin();
    start(&p, "probe");
    for (int s = 0; s <= 1000; s++, time_ns += SECOND)
        progress_update(&p, s / 2000.0, "read, 2 threads");
    progress_end(&p);
    end(text, sizeof text);
    assert_int_equal(count_lines(text), sizeof at_s / sizeof at_s[0]);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1, n++) {
        char percent[32];

        snprintf(percent, sizeof percent, " %d %% done", at_s[n] / 20);
        assert_int_equal(strncmp(line, "bench: probe:", 13), 0);
        if (strstr(line, percent) == NULL || strstr(line, percent) > strchr(line, '\n'))
            fail_msg("line %zu has no '%s': %s", n + 1, percent, text);
    }
    assert_non_null(strstr(text, "bench: probe: 0 % done; read, 2 threads\n"));
    assert_non_null(strstr(text, "bench: probe: 15 % done, 28:10 min left; read"));
    assert_null(strchr(text, '\r'));
    assert_null(strchr(text, '\033'));
}

static void lines_can_be_left_out(void **state)
{
    struct progress p;
    char text[256];

    (void)state;
    setenv("SLMBENCH_PROGRESS", "none", 1);
    begin();
    start(&p, "probe");
    time_ns += 1000 * SECOND;
    progress_update(&p, 0.5, NULL);
    progress_end(&p);
    assert_string_equal(end(text, sizeof text), "");
}

/* The next of several jobs begins anew. */
static void each_job_has_its_own_time(void **state)
{
    struct progress p;
    char text[256];

    (void)state;
    unsetenv("SLMBENCH_PROGRESS");
    begin();
    for (int job = 0; job < 2; job++) {
        start(&p, "gate");
        progress_update(&p, 0.1, NULL);
        time_ns += 11 * SECOND;
        progress_update(&p, 0.5, NULL);
        progress_update(&p, 0.5, NULL);
        progress_end(&p);
    }
    assert_int_equal(count_lines(end(text, sizeof text)), 2);
    assert_int_equal(strncmp(text, "bench: gate: 50 % done, 11 s left\n", 34), 0);
}

/* Loading took a minute; that measuring is half done after 3 s says that it takes 3 s
 * more. What is an upper bound is called one. */
static void a_part_has_its_own_estimate(void **state)
{
    struct progress p;
    char text[256];

    (void)state;
    setenv("SLMBENCH_PROGRESS", "62", 1);
    begin();
    start(&p, "decode");
    time_ns += 60 * SECOND;
    progress_part(&p);
    time_ns += 3 * SECOND;
    progress_update(&p, 0.5, "measure");
    assert_string_equal(end(text, sizeof text),
                        "bench: decode: 50 % done, 3.0 s left; measure\n");
    begin();
    start(&p, "gate");
    p.is_bound = true;
    time_ns += 100 * SECOND;
    progress_update(&p, 0.5, NULL);
    assert_string_equal(end(text, sizeof text),
                        "bench: gate: 50 % done, at most 1:40 min left\n");
}

/* ---- messages -------------------------------------------------------------------- */

#define LONG_LIST                                                            \
    "there is no quantisation 'Q9'; there are: F32, F16, BF16, Q8_0, Q6_K, " \
    "Q5_K_M, Q4_K_M and Q4_0; run `bench files of all that there is` for more"

static void a_message_is_one_line_in_a_log(void **state)
{
    char text[400];

    (void)state;
    begin();
    message_print(LONG_LIST);
    assert_string_equal(end(text, sizeof text), "bench: " LONG_LIST "\n");
}

static void a_message_is_wrapped_on_a_terminal(void **state)
{
    const struct winsize size = {.ws_row = 24, .ws_col = 50};
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    char text[600] = "";
    int lines = 0;

    (void)state;
    if (terminal < 0 || grantpt(terminal) || unlockpt(terminal))
        skip(); /* a container without /dev/pts */
    const int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);

    if (other < 0 || ioctl(other, TIOCSWINSZ, &size))
        skip();
    own_stderr = dup(STDERR_FILENO);
    dup2(other, STDERR_FILENO);
    message_print(LONG_LIST);
    fflush(stderr);
    dup2(own_stderr, STDERR_FILENO);
    close(own_stderr);
    close(
        other); /* a terminal hands over what it has so far; the rest, then an error */
    for (size_t n = 0; n < sizeof text - 1;) {
        const ssize_t got = read(terminal, text + n, sizeof text - 1 - n);

        if (got <= 0)
            break;
        n += (size_t)got;
    }
    close(terminal);
    assert_non_null(strstr(text, "`bench files of all that there is`"));
    for (char *save, *line = strtok_r(text, "\r\n", &save); line;
         line = strtok_r(NULL, "\r\n", &save), lines++) {
        assert_in_range(strlen(line), 8, 50);
        assert_int_equal(strncmp(line, lines ? "       " : "bench: ", 7), 0);
    }
    assert_in_range(lines, 4, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_one_line_in_a_log),
        cmocka_unit_test(a_message_is_wrapped_on_a_terminal),
        cmocka_unit_test(lines_come_now_and_then),
        cmocka_unit_test(lines_can_be_left_out),
        cmocka_unit_test(each_job_has_its_own_time),
        cmocka_unit_test(a_part_has_its_own_estimate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
