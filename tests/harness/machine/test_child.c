/* SPDX-License-Identifier: MIT
 *
 * test_child.c - what a child writes to its standard error: the end is kept, in little
 * memory, and writing never waits for its parent
 */
#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

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

static void prints_nothing_or_little(void **state)
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

/* poll() of n descriptors fails with EINVAL where a process may open fewer. */
static void its_errors_are_read_without_poll(void **state)
{
    struct rlimit before, few;
    struct child c;
    char words[64];
    int n_lines = 0;

    (void)state;
    start(&c, "read go; echo first >&2; sleep 0.1; head -c 1000000 /dev/zero >&2;"
              "echo last >&2; echo done");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){1, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(child_write(&c, "go\n", NULL), ST_OK);
    for (int i = 0; i < 2000 && !n_lines; i++) {
        usleep(5000);
        child_read_lines(&c, count_line, &n_lines);
    }
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(n_lines, 1);
    assert_int_equal(wait_for_end(&c, &n_lines), 0);
    child_stderr_tail(&c, words, 6);
    assert_string_equal(words, "last");
    child_close(&c);
}

/* Its end can be waited for, with its output closed long before. */
static void end_is_noticed(void **state)
{
    struct pollfd end = {.fd = -1};
    struct child c;

    (void)state;
    start(&c, "exec >&-; read end");
    end.fd = c.keeper_end;
    assert_int_equal(poll(&end, 1, 50), 0);
    assert_false(child_has_ended(&c));
    child_request_end(&c);
    assert_int_equal(poll(&end, 1, 60000), 1);
    assert_true(end.revents & POLLHUP);
    assert_int_equal(WTERMSIG(child_reap(&c, PATIENCE_NS, NULL, NULL)), SIGTERM);
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

#define N_DESCENDANTS 3

struct numbers {
    pid_t pid[N_DESCENDANTS];
    int n;
};

static void add_number(void *arg, const char *line, size_t len)
{
    struct numbers *all = arg;

    (void)len;
    assert_true(all->n < N_DESCENDANTS);
    all->pid[all->n++] = atoi(line);
}

/* Sessions of their own, one without a parent, one below another. */
static char leaving[] = "setsid sh -c 'echo $$; exec sleep 1000' & "
                        "(setsid sh -c 'echo $$; setsid sh -c "
                        "\"echo \\$\\$; exec sleep 1000\" & wait' &); "
                        "read line; exit 7";

static void start_leaving(struct child *c, bool foreign)
{
    char name[] = "sh", option[] = "-c";
    char *argv[] = {name, option, leaving, NULL};
    const struct child_params p = {
        .program = "/bin/sh", .argv = argv, .talk = true, .foreign = foreign};
    struct err err = ERR_INIT;

    *c = (struct child)CHILD_INIT;
    assert_int_equal(child_start(c, &p, &err), ST_OK);
}

static void read_numbers(struct child *c, struct numbers *all)
{
    struct pollfd pfd = {.fd = c->out, .events = POLLIN};

    all->n = 0;
    while (all->n < N_DESCENDANTS) {
        assert_int_equal(poll(&pfd, 1, 60000), 1);
        assert_true(child_read_lines(c, add_number, all));
    }
}

/* What has left its session and its parent ends with it, however it ends, and before
 * that is reported. */
static void descendants_end(void **state)
{
    struct err err = ERR_INIT;
    struct numbers all;
    struct child c;

    (void)state;
    for (int i = 0; i < 4; i++) {
        const bool is_killed = i / 2;
        bool killed = false;

        start_leaving(&c, i % 2);
        read_numbers(&c, &all);
        if (!is_killed)
            assert_int_equal(child_write(&c, "end\n", &err), ST_OK);
        const int status = child_reap(&c, is_killed ? 0 : PATIENCE_NS, NULL, &killed);

        if (is_killed)
            assert_int_equal(WTERMSIG(status), SIGKILL);
        else
            assert_int_equal(WEXITSTATUS(status), 7);
        assert_int_equal(killed, is_killed);
        for (int k = 0; k < all.n; k++)
            assert_int_equal(kill(all.pid[k], 0), -1);
        child_close(&c);
    }
}

/* Also where this process is killed, which can do nothing about it. */
static void descendants_end_with_us(void **state)
{
    struct numbers all = {.n = 0};
    int to_us[2];

    (void)state;
    assert_int_equal(pipe(to_us), 0);
    const pid_t pid = fork();

    if (!pid) {
        struct child c;

        start_leaving(&c, true);
        read_numbers(&c, &all);
        if (write(to_us[1], &all, sizeof all) == sizeof all)
            pause();
        _exit(1);
    }
    assert_int_equal(read(to_us[0], &all, sizeof all), sizeof all);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int k = 0; k < all.n; k++)
        for (int i = 0; kill(all.pid[k], 0) == 0; i++) {
            assert_true(i < 60000);
            usleep(1000);
        }
    close(to_us[0]);
    close(to_us[1]);
}

/* A request to end reaches its process group. */
static void is_requested_to_end(void **state)
{
    char script[] =
        "trap 'wait; exit 5' TERM; (trap 'echo inner; exit' TERM; echo 1; while :; "
        "do sleep 0.01; done) & echo 2; while :; do sleep 0.01; done";
    char name[] = "sh", option[] = "-c";
    char *argv[] = {name, option, script, NULL};
    const struct child_params p = {.program = "/bin/sh", .argv = argv, .foreign = true};
    struct child c = CHILD_INIT;
    struct err err = ERR_INIT;
    int n_lines = 0;

    (void)state;
    assert_int_equal(child_start(&c, &p, &err), ST_OK);
    while (n_lines < 2) {
        struct pollfd pfd = {.fd = c.out, .events = POLLIN};

        assert_int_equal(poll(&pfd, 1, 60000), 1);
        assert_true(child_read_lines(&c, count_line, &n_lines));
    }
    child_request_end(&c);
    assert_int_equal(WEXITSTATUS(wait_for_end(&c, &n_lines)), 5);
    assert_int_equal(n_lines, 3);
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
    ssize_t length = 0, n;
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
    close(9);
    close(end); /* now it reads what there is, and then nothing */
    while ((n = read(terminal, text + length, sizeof text - 1 - (size_t)length)) > 0)
        length += n;
    assert_string_equal(lines, "no;none;");
    assert_string_equal(text, "a\\x1b[2Jb\r\nc");
    assert_string_equal(words, "");
    close(before);
    close(terminal);
}

/* What it writes where no terminal is: a log of a CI system may act on it. */
static void no_commands(void **state)
{
    const int before = dup(STDERR_FILENO);
    char name[] = "sh", option[] = "-c";
    char script[] = "printf 'a\\033[2Jb\\n  ::error::c\\nd ##[add-mask]e\\rstd::f' >&2";
    char *argv[] = {name, option, script, NULL};
    const struct child_params p = {
        .program = "/bin/sh", .argv = argv, .talk = true, .pass_errors = true};
    struct child c = CHILD_INIT;
    struct err err = ERR_INIT;
    char text[128] = "";
    int log[2], n_lines = 0;

    (void)state;
    assert_int_equal(pipe(log), 0);
    dup2(log[1], STDERR_FILENO);
    assert_int_equal(child_start(&c, &p, &err), ST_OK);
    assert_int_equal(wait_for_end(&c, &n_lines), 0);
    child_close(&c);
    dup2(before, STDERR_FILENO);
    close(log[1]);
    assert_true(read(log[0], text, sizeof text - 1) > 0);
    assert_string_equal(text, "a\\x1b[2Jb\n  .:error::c\nd .#[add-mask]e\\x0dstd::f");
    close(log[0]);
    close(before);
}

/* Nor a file of whoever started us, which it could write to behind the fence. */
static void no_other_file(bool foreign)
{
    const int file = open("/dev/null", O_WRONLY);
    const int low = fcntl(file, F_DUPFD, 11), high = fcntl(file, F_DUPFD, 300);
    char script[200], lines[64] = "", name[] = "sh", option[] = "-c";
    char *argv[] = {name, option, script, NULL};
    const struct child_params p = {
        .program = "/bin/sh", .argv = argv, .talk = true, .foreign = foreign};
    struct child c = CHILD_INIT;
    struct err err = ERR_INIT;
    struct pollfd pfd = {.events = POLLIN};

    assert_true(low >= 0 && high >= 0);
    snprintf(script, sizeof script,
             "test -e /proc/$$/fd/%d && echo low; test -e /proc/$$/fd/%d && echo high; "
             "echo none",
             low, high);
    assert_int_equal(child_start(&c, &p, &err), ST_OK);
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

static void no_other_files(void **state)
{
    (void)state;
    no_other_file(false);
    no_other_file(true);
}

static void *use_the_cpu(void *cpu_s)
{
    struct timespec now;

    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((double)now.tv_sec + (double)now.tv_nsec * 1e-9 < *(double *)cpu_s);
    return NULL;
}

static void threads_that_ended_count(void **state)
{
    const struct child self = {.pid = getpid()};
    double used_s = 0.1, before_s, after_s;
    pthread_t thread;

    (void)state;
    child_wants_cpu(&self, &before_s);
    assert_int_equal(pthread_create(&thread, NULL, use_the_cpu, &used_s), 0);
    pthread_join(thread, NULL);
    assert_true(child_wants_cpu(&self, &after_s)); /* it runs: it looks */
    assert_true(after_s - before_s >= used_s - 0.03);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_end),
        cmocka_unit_test(prints_nothing_or_little),
        cmocka_unit_test(its_errors_are_read_without_poll),
        cmocka_unit_test(end_is_noticed),
        cmocka_unit_test(left_behind),
        cmocka_unit_test(foreign_ends_whole),
        cmocka_unit_test(no_terminal),
        cmocka_unit_test(no_other_files),
        cmocka_unit_test(no_commands),
        cmocka_unit_test(descendants_end),
        cmocka_unit_test(is_requested_to_end),
        cmocka_unit_test(threads_that_ended_count),
        cmocka_unit_test(descendants_end_with_us)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
