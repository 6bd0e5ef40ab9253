/* SPDX-License-Identifier: MIT
 *
 * test_child.c - what a child writes to its standard error: the end is kept, in little
 * memory, and writing never waits for its parent
 */
#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "harness/machine/child.h"

#define PATIENCE_NS 60000000000u

static void start(struct child *c, const char *script)
{
    struct err err = ERR_INIT;
    char name[] = "sh", option[] = "-c";
    char *argv[] = {name, option, (char *)(uintptr_t)script, NULL};
    const struct child_params p = {.program = "/bin/sh", .argv = argv, .talk = true};

    *c = (struct child)CHILD_INIT;
    assert_int_equal(child_start(c, &p, &err), ST_OK);
}

static void count_line(void *arg, const char *line, size_t len)
{
    (void)line;
    (void)len;
    ++*(int *)arg;
}

/* A process id, and the one CPU that it may run on. */
struct said {
    pid_t pid;
    int cpu;
};

static void hear(void *arg, const char *line, size_t len)
{
    static const char key[] = "Cpus_allowed_list:";
    struct said *said = arg;

    if (len > sizeof key && !memcmp(line, key, sizeof key - 1))
        said->cpu = atoi(line + sizeof key - 1);
    else
        said->pid = atoi(line);
}

/* Waits for the end of its output, and hears nothing of its standard error meanwhile.
 */
static int wait_for_end(struct child *c, int *n_lines)
{
    struct pollfd pfd = {.fd = c->out, .events = POLLIN};

    do
        assert_int_equal(poll(&pfd, 1, 60000), 1);
    while (child_read_lines(c, count_line, n_lines));
    return child_reap(c, PATIENCE_NS, NULL, NULL);
}

/* Bytes of this process's files in memory. */
static size_t memory_files_bytes(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t sum = 0;

    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) {
        char path[300], to[300];
        struct stat st;

        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        const ssize_t n = readlink(path, to, sizeof to - 1);

        if (n > 0 && !strncmp(to, "/memfd:", 7) && !stat(path, &st))
            sum += (size_t)st.st_size;
    }
    closedir(dir);
    return sum;
}

static void keeps_the_end(void **state)
{
    char words[64];
    struct child c;
    int n_lines = 0;

    (void)state;
    start(&c, "head -c 20000000 /dev/zero | tr '\\0' x >&2; echo >&2;"
              "echo 'its last\twords' >&2; echo done");
    assert_int_equal(wait_for_end(&c, &n_lines), 0);
    assert_int_equal(n_lines, 1);
    assert_true(memory_files_bytes() < 1 << 20);
    child_stderr_tail(&c, words, 21);
    assert_string_equal(words, "xxxx its last words");
    child_close(&c);
}

static void says_nothing_or_little(void **state)
{
    char words[64];
    struct child c;
    int n_lines = 0;

    (void)state;
    start(&c, "exit 3");
    assert_int_equal(WEXITSTATUS(wait_for_end(&c, &n_lines)), 3);
    assert_string_equal(child_stderr_tail(&c, words, sizeof words), "");
    child_close(&c);
    assert_string_equal(child_stderr_tail(&c, words, sizeof words), "");
    start(&c, "echo why >&2; kill -KILL $$");
    assert_int_equal(WTERMSIG(wait_for_end(&c, &n_lines)), SIGKILL);
    assert_string_equal(child_stderr_tail(&c, words, sizeof words), "why");
    child_close(&c);
}

/* A process that it leaves behind keeps its standard error open, and may write on. */
static void left_behind(void **state)
{
    char words[64];
    struct child c;
    int n_lines = 0;

    (void)state;
    start(&c, "(while echo on >&2; do :; done) >/dev/null & exit 0");
    assert_int_equal(wait_for_end(&c, &n_lines), 0);
    child_stderr_tail(&c, words, sizeof words);
    child_close(&c); /* which ends that process: its output is closed */
}

/* A program of others ends with all that it has started, which may hold its output
 * open, and runs on its CPUs alone. */
static void foreign_ends_whole(void **state)
{
    char name[] = "sh", option[] = "-c", words[64];
    char script[] = "sleep 1000 & echo $!; echo why >&2; grep -m 1 Cpus_allowed_list "
                    "/proc/self/status; printf rest";
    char *argv[] = {name, option, script, NULL};
    const int cpu = sched_getcpu();
    const struct child_params p = {
        .program = "/bin/sh", .argv = argv, .foreign = true, .cpus = &cpu, .n_cpus = 1};
    struct child c = CHILD_INIT;
    struct err err = ERR_INIT;
    struct pollfd pfd;
    struct said said = {0, 0};
    size_t n;

    (void)state;
    assert_int_equal(child_start(&c, &p, &err), ST_OK);
    while (!child_has_ended(&c))
        usleep(1000);
    assert_int_equal(child_reap(&c, PATIENCE_NS, NULL, NULL), 0);
    assert_true(child_has_ended(&c));
    pfd = (struct pollfd){.fd = c.out, .events = POLLIN};
    do
        assert_int_equal(poll(&pfd, 1, 60000), 1);
    while (child_read_lines(&c, hear, &said));
    assert_true(said.pid > 0);
    assert_int_equal(said.cpu, cpu);
    assert_memory_equal(child_rest(&c, &n), "rest", 4);
    assert_int_equal(n, 4);
    assert_string_equal(child_stderr_tail(&c, words, sizeof words), "why");
    for (int i = 0; kill(said.pid, 0) == 0; i++) {
        assert_true(i < 60000); /* it is dead, and may wait for init */
        usleep(1000);
    }
    child_close(&c);
}

static void add_line(void *arg, const char *line, size_t len)
{
    char *text = arg;

    strncat(text, line, len);
    strcat(text, ";");
}

/* One of ours whose standard error is ours: what it writes comes to our terminal, and
 * cannot control it; it has none itself, by whatever descriptor. */
static void no_terminal(void **state)
{
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY), before = dup(STDERR_FILENO);
    char name[] = "sh", option[] = "-c";
    char script[] = "test -t 2 || echo no; test -t 9 || echo none;"
                    "printf 'a\\033[2Jb\\nc' >&2";
    char *argv[] = {name, option, script, NULL};
    const struct child_params p = {
        .program = "/bin/sh", .argv = argv, .talk = true, .pass_errors = true};
    char lines[64] = "", text[64] = "", words[64];
    struct child c = CHILD_INIT;
    struct err err = ERR_INIT;
    struct pollfd pfd = {.events = POLLIN};
    int end;

    (void)state;
    if (terminal < 0) /* as in a container without /dev/pts */
        skip();
    assert_int_equal(grantpt(terminal) || unlockpt(terminal), 0);
    end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(end >= 0);
    dup2(end, STDERR_FILENO);
    dup2(end, 9);
    assert_int_equal(child_start(&c, &p, &err), ST_OK);
    pfd.fd = c.out;
    do
        assert_int_equal(poll(&pfd, 1, 60000), 1);
    while (child_read_lines(&c, add_line, lines));
    assert_int_equal(child_reap(&c, PATIENCE_NS, NULL, NULL), 0);
    child_stderr_tail(&c, words, sizeof words);
    child_close(&c);
    dup2(before, STDERR_FILENO);
    assert_true(read(terminal, text, sizeof text - 1) > 0);
    assert_string_equal(lines, "no;none;");
    assert_string_equal(text, "a\\x1b[2Jb\r\nc");
    assert_string_equal(words, "");
    close(9);
    close(end);
    close(before);
    close(terminal);
}

/* Nor a file of whoever started us, which it could write to behind the fence. */
static void no_other_file(void **state)
{
    const int file = open("/dev/null", O_WRONLY);
    const int low = fcntl(file, F_DUPFD, 11), high = fcntl(file, F_DUPFD, 300);
    char script[200], lines[64] = "";
    struct child c;
    struct pollfd pfd = {.events = POLLIN};

    (void)state;
    assert_true(low >= 0 && high >= 0);
    snprintf(script, sizeof script,
             "test -e /proc/$$/fd/%d && echo low; test -e /proc/$$/fd/%d && echo high; "
             "echo none",
             low, high);
    start(&c, script);
    pfd.fd = c.out;
    do
        assert_int_equal(poll(&pfd, 1, 60000), 1);
    while (child_read_lines(&c, add_line, lines));
    assert_int_equal(child_reap(&c, PATIENCE_NS, NULL, NULL), 0);
    child_close(&c);
    close(low);
    close(high);
    close(file);
    assert_string_equal(lines, "none;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_end), cmocka_unit_test(says_nothing_or_little),
        cmocka_unit_test(left_behind),   cmocka_unit_test(foreign_ends_whole),
        cmocka_unit_test(no_terminal),   cmocka_unit_test(no_other_file)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
