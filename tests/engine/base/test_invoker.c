/* SPDX-License-Identifier: MIT
 *
 * test_invoker.c - files written in place: never elsewhere, and whose they are
 */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/invoker.h"

static char dir[] = "/tmp/slm_invoker_XXXXXX";

static const char *at(const char *name)
{
    static char path[2][sizeof dir + 32];
    static int turn;

    turn = !turn;
    snprintf(path[turn], sizeof path[0], "%s/%s", dir, name);
    return path[turn];
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void holds(const char *name, const char *text)
{
    char got[64] = "";
    FILE *f = fopen(at(name), "r");

    assert_non_null(f);
    got[fread(got, 1, sizeof got - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(got, text);
}

static uid_t owner(const char *name)
{
    struct stat st;

    assert_int_equal(stat(at(name), &st), 0);
    return st.st_uid;
}

static int make_dir(void **state)
{
    (void)state;
    unsetenv("SUDO_UID");
    unsetenv("SUDO_GID");
    memcpy(strrchr(dir, '_') + 1, "XXXXXX", 6);
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    static const char *const names[] = {"new", "old", "other", "link", "pipe", "none"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(at(names[i]));
    return rmdir(dir);
}

static void is_refused(const char *name, int flags, int error)
{
    errno = 0;
    assert_int_equal(invoker_open(at(name), flags), -1);
    assert_int_equal(errno, error);
}

static void what_is_elsewhere_stays(void **state)
{
    (void)state;
    setenv("SUDO_UID", "1234", 1);
    setenv("SUDO_GID", "1234", 1);
    put("other", "precious");
    assert_int_equal(link(at("other"), at("old")), 0);
    assert_int_equal(symlink(at("other"), at("link")), 0);
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);

    is_refused("old", O_RDWR | O_TRUNC, EMLINK);
    is_refused("link", O_RDWR | O_TRUNC, ELOOP);
    is_refused("pipe", O_RDWR, ENODEV);
    holds("other", "precious");
    assert_int_equal(owner("other"), getuid());
    for (int error = 1; error < 200; error++)
        assert_int_equal(invoker_open_advice(error) != NULL,
                         error == ELOOP || error == EMLINK || error == ENODEV ||
                             error == EUSERS);

    /* a link that leads nowhere makes nothing there */
    unlink(at("link"));
    assert_int_equal(symlink(at("none"), at("link")), 0);
    is_refused("link", O_RDWR, ELOOP);
    assert_int_not_equal(access(at("none"), F_OK), 0);

    is_refused("none/file", O_RDWR, ENOENT);
    unlink(at("old"));
    is_refused("other", O_RDWR | O_EXCL, EEXIST);
}

/* Only what was made is the invoker's; a file that was there keeps its owner. */
static void what_is_made_is_the_invokers(void **state)
{
    int fd;

    (void)state;
    put("old", "text");
    setenv("SUDO_UID", "1234", 1);
    setenv("SUDO_GID", "1234", 1);
    fd = invoker_open(at("old"), O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "+", 1), 1);
    close(fd);
    holds("old", "text+");
    assert_int_equal(owner("old"), getuid());

    fd = invoker_open(at("new"), O_RDWR | O_EXCL);
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
    assert_int_equal(owner("new"), getuid() ? getuid() : 1234);

    fd = invoker_open(at("old"), O_RDWR | O_TRUNC);
    assert_true(fd >= 0);
    close(fd);
    holds("old", "");
}

/* ---- files of other users -------------------------------------------------------- */

#define THEM   4321
#define OTHERS 4322

static int write_to(const char *name)
{
    const int fd = invoker_open(at(name), O_RDWR);
    const int why = fd < 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    assert_int_equal(invoker_check(at(name)), why);
    return why;
}

/* As that user, since root cannot become root again. */
static int write_as(uid_t uid, const char *name)
{
    const pid_t child = fork();
    int status = 0;

    if (!child)
        _exit(setresuid(uid, uid, uid) ? 255 : write_to(name));
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void make_folder(uid_t uid, mode_t mode)
{
    assert_int_equal(chown(dir, uid, uid), 0);
    assert_int_equal(chmod(dir, mode), 0);
}

/* What another user has put where others may put files, for root to write to, is
 * refused and stays as it is; a user's file in the user's own folder is not. */
static void files_of_others(void **state)
{
    (void)state;
    if (geteuid())
        skip();
    put("old", "theirs");
    assert_int_equal(chown(at("old"), THEM, THEM), 0);
    assert_int_equal(chmod(at("old"), 0666), 0);
    make_folder(0, 01777);
    is_refused("old", O_RDWR | O_TRUNC, EUSERS);
    is_refused("old", O_WRONLY | O_APPEND, EUSERS);
    holds("old", "theirs");
    assert_int_equal(write_to("old"), EUSERS);
    assert_non_null(strstr(invoker_open_advice(EUSERS), "another user"));

    make_folder(0, 0777);
    assert_int_equal(write_to("old"), EUSERS);
    make_folder(OTHERS, 0775);
    assert_int_equal(write_to("old"), EUSERS);
    make_folder(OTHERS, 0755); /* only root or that user has put it there */
    assert_int_equal(write_to("old"), 0);
    make_folder(THEM, 01777);
    assert_int_equal(write_to("old"), 0);
    make_folder(0, 01777);
    setenv("SUDO_UID", "4321", 1);
    setenv("SUDO_GID", "4321", 1);
    assert_int_equal(write_to("old"), 0); /* who called sudo */
    setenv("SUDO_UID", "4322", 1);
    assert_int_equal(write_to("old"), EUSERS);

    /* as fs.protected_regular has it where a file could be made */
    assert_int_equal(write_as(OTHERS, "old"), EUSERS);
    assert_int_equal(write_as(THEM, "old"), 0);
    make_folder(0, 0777);
    assert_int_equal(write_as(OTHERS, "old"), 0);

    /* a name without a folder, a link by its own owner, and nothing */
    make_folder(0, 01777);
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(invoker_check("old"), EUSERS);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(symlink(at("none"), at("link")), 0);
    assert_int_equal(invoker_check(at("link")), 0);
    assert_int_equal(lchown(at("link"), THEM, THEM), 0);
    assert_int_equal(invoker_check(at("link")), EUSERS);
    assert_int_equal(invoker_check(at("none")), 0);
    assert_int_equal(invoker_check(at("old/none")), ENOTDIR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_elsewhere_stays, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(what_is_made_is_the_invokers, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(files_of_others, make_dir, remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
