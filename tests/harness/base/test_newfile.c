/* SPDX-License-Identifier: MIT
 *
 * test_newfile.c - files that appear when they are complete, whatever lies there
 */
#include "tests/support/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/invoker.h"
#include "harness/base/hash.h"
#include "harness/base/newfile.h"

static char root[64];

static int setup(void **state)
{
    (void)state;
    tree_new(root);
    tree_put(root, "/precious", "precious");
    tree_mkdir(root, "/out");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unsetenv("SUDO_UID");
    unsetenv("SUDO_GID");
    tree_remove(root);
    return 0;
}

static const char *at(const char *path)
{
    static char full[8][160];
    static int i;

    i = (i + 1) % 8;
    snprintf(full[i], sizeof full[i], "%s%s", root, path);
    return full[i];
}

static enum status put(const char *path, const char *text, struct err *err)
{
    struct newfile n;
    enum status st = newfile_open(&n, path, err);

    if (st)
        return st;
    fputs(text, n.f);
    return newfile_commit(&n, path, err);
}

static int files_in(const char *path)
{
    DIR *dir = opendir(path);
    int n = -2;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void holds(const char *path, const char *text)
{
    char have[64] = "";
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    assert_true(fread(have, 1, sizeof have - 1, f) < sizeof have);
    fclose(f);
    assert_string_equal(have, text);
}

static bool has_tmpfile(const char *folder)
{
    const int fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0644);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void it_appears_when_complete(void **state)
{
    struct err err = ERR_INIT;
    struct newfile n;

    (void)state;
    tree_put(root, "/out/a", "old");
    assert_int_equal(newfile_open(&n, at("/out/a"), &err), ST_OK);
    fputs("new", n.f);
    fflush(n.f);
    holds(at("/out/a"), "old");
    assert_int_equal(newfile_commit(&n, at("/out/a"), &err), ST_OK);
    holds(at("/out/a"), "new");
    assert_int_equal(newfile_open(&n, at("/out/b"), &err), ST_OK);
    newfile_abort(&n);
    assert_int_equal(files_in(at("/out")), 1);
}

/* A process that is killed while it writes leaves nothing, and what one has left that
 * was killed before its last step is replaced. */
static void a_killed_writer_leaves_nothing(void **state)
{
    struct err err = ERR_INIT;
    char part[64] = "";

    (void)state;
    tree_put(root, "/out/a", "old");
    for (int i = 0; i < 2; i++) {
        const pid_t pid = test_fork();
        int status;

        if (!pid) {
            struct newfile n;

            if (newfile_open(&n, at("/out/a"), &err) || fputs("new", n.f) < 0 ||
                fflush(n.f))
                _exit(1);
            kill(getpid(), SIGKILL);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
    }
    if (!has_tmpfile(at("/out")))
        skip();
    assert_int_equal(files_in(at("/out")), 1);
    holds(at("/out/a"), "old");

    snprintf(part, sizeof part, "/out/.%llx",
             (unsigned long long)hash_add(HASH_BEGIN, "a", 1));
    tree_put(root, part, "left");
    assert_int_equal(put(at("/out/a"), "new", &err), ST_OK);
    assert_int_equal(files_in(at("/out")), 1);
    holds(at("/out/a"), "new");
}

static void links_are_replaced(void **state)
{
    struct err err = ERR_INIT;
    struct stat st;

    (void)state;
    assert_int_equal(symlink(at("/precious"), at("/out/link")), 0);
    assert_int_equal(symlink(at("/nowhere"), at("/out/dangling")), 0);
    assert_int_equal(link(at("/precious"), at("/out/hard")), 0);
    assert_int_equal(put(at("/out/link"), "results", &err), ST_OK);
    assert_int_equal(put(at("/out/dangling"), "results", &err), ST_OK);
    assert_int_equal(put(at("/out/hard"), "results", &err), ST_OK);
    holds(at("/precious"), "precious");
    holds(at("/out/link"), "results");
    holds(at("/out/hard"), "results");
    assert_int_equal(lstat(at("/out/link"), &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_not_equal(access(at("/nowhere"), F_OK), 0);
}

static void no_file_is_no_place(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(put(at("/out"), "x", &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "is a folder"));
    err = (struct err)ERR_INIT;
    assert_int_equal(put(at("/out/"), "x", &err), ST_USAGE);
    err = (struct err)ERR_INIT;
    assert_int_equal(put(at("/none/x"), "x", &err), ST_IO);
    assert_non_null(strstr(err.msg, "/none/x cannot be written: No such file"));
    assert_int_equal(files_in(at("/out")), 0);
}

static void pipes_and_devices_are_written_to(void **state)
{
    struct err err = ERR_INIT;
    char have[8] = "";
    int fd;

    (void)state;
    assert_int_equal(mkfifo(at("/out/pipe"), 0600), 0);
    fd = open(at("/out/pipe"), O_RDWR);
    assert_int_equal(put(at("/out/pipe"), "text", &err), ST_OK);
    assert_int_equal(read(fd, have, sizeof have), 4);
    close(fd);
    assert_int_equal(put("/dev/null", "text", &err), ST_OK);
    assert_int_equal(files_in(at("/out")), 1);
}

/* What another user has put into a folder of all: a pipe that only they read, a link
 * to a device. */
static void pipes_and_links_of_others_are_refused(void **state)
{
    enum { THEM = 65534 };
    static const char *const names[] = {"/out/pipe", "/out/link"};

    (void)state;
    if (geteuid())
        skip();
    assert_int_equal(mkfifo(at(names[0]), 0666), 0);
    assert_int_equal(symlink("/dev/null", at(names[1])), 0);
    const int reader = open(at(names[0]), O_RDWR);
    for (size_t i = 0; i < 2; i++) {
        struct err err = ERR_INIT;

        assert_int_equal(chmod(at("/out"), 0755), 0);
        assert_int_equal(lchown(at(names[i]), THEM, THEM), 0);
        assert_int_equal(put(at(names[i]), "x", &err), ST_OK);
        assert_int_equal(chmod(at("/out"), 0777), 0);
        assert_int_equal(put(at(names[i]), "text", &err), ST_USAGE);
        assert_non_null(strstr(err.msg, "belongs to another user"));
        assert_int_equal(lchown(at(names[i]), 0, 0), 0);
        assert_int_equal(put(at(names[i]), "x", &err), ST_OK);
    }
    close(reader);
}

static void a_full_disk_leaves_the_old_file(void **state)
{
    struct err err = ERR_INIT;
    struct newfile n;

    (void)state;
    tree_put(root, "/out/a", "old");
    assert_int_equal(newfile_open(&n, at("/out/a"), &err), ST_OK);
    /* Its descriptor becomes one that always says that the disk is full. */
    const int full = open("/dev/full", O_WRONLY);
    assert_true(full >= 0);
    assert_true(dup2(full, fileno(n.f)) >= 0);
    close(full);
    fputs("new", n.f);
    assert_int_equal(newfile_commit(&n, at("/out/a"), &err), ST_IO);
    assert_non_null(strstr(err.msg, "No space left"));
    holds(at("/out/a"), "old");
    assert_int_equal(files_in(at("/out")), 1);
}

static void it_belongs_to_who_called_sudo(void **state)
{
    static const char *const bad[] = {"", "0", "-1", "x", "12x", "4294967295"};
    struct err err = ERR_INIT;
    struct stat st;
    uid_t uid;
    gid_t gid;

    (void)state;
    assert_false(invoker_get(&uid, &gid));
    setenv("SUDO_UID", "1234", 1);
    assert_false(invoker_get(&uid, &gid)); /* without its group */
    setenv("SUDO_GID", "2345", 1);
    assert_int_equal(put(at("/out/a"), "x", &err), ST_OK);
    assert_int_equal(stat(at("/out/a"), &st), 0);
    if (getuid()) {
        assert_false(invoker_get(&uid, &gid));
        assert_int_equal(st.st_uid, getuid());
        return;
    }
    assert_int_equal(st.st_uid, 1234);
    assert_int_equal(st.st_gid, 2345);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("SUDO_UID", bad[i], 1);
        assert_false(invoker_get(&uid, &gid));
    }
}

/* What a folder of results holds under the name is replaced, whatever it is; nobody
 * reads from the pipe. */
static void pipes_in_results_are_replaced(void **state)
{
    struct err err = ERR_INIT;
    struct newfile n;

    (void)state;
    assert_int_equal(mkfifo(at("/out/pipe"), 0600), 0);
    assert_int_equal(newfile_replace(&n, at("/out/pipe"), &err), ST_OK);
    fputs("results", n.f);
    assert_int_equal(newfile_commit(&n, at("/out/pipe"), &err), ST_OK);
    holds(at("/out/pipe"), "results");
    assert_int_equal(mkfifo(at("/out/other"), 0600), 0);
    assert_int_equal(symlink(at("/precious"), at("/out/link")), 0);
    newfile_clear(at("/out/other"));
    newfile_clear(at("/out/link"));
    newfile_clear(at("/out/pipe"));
    newfile_clear(at("/out"));
    assert_int_equal(files_in(at("/out")), 1);
    holds(at("/precious"), "precious");
}

/* Standard output is no file to be replaced, also where it leads to one. */
static void standard_output_is_written_to(void **state)
{
    static const char *const names[] = {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    struct err err = ERR_INIT;
    const int kept = dup(STDOUT_FILENO);

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int fd = open(at("/out/shown"), O_RDWR | O_CREAT | O_TRUNC, 0644);

        fflush(stdout);
        dup2(fd, STDOUT_FILENO);
        close(fd);
        const enum status st = put(names[i], "shown", &err);
        dup2(kept, STDOUT_FILENO);
        assert_int_equal(st, ST_OK);
        holds(at("/out/shown"), "shown");
    }
    close(kept);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_appears_when_complete),
        TEST(a_killed_writer_leaves_nothing),
        TEST(links_are_replaced),
        TEST(no_file_is_no_place),
        TEST(pipes_and_devices_are_written_to),
        TEST(pipes_and_links_of_others_are_refused),
        TEST(a_full_disk_leaves_the_old_file),
        TEST(it_belongs_to_who_called_sudo),
        TEST(pipes_in_results_are_replaced),
        TEST(standard_output_is_written_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
