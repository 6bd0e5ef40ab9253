/* SPDX-License-Identifier: MIT
 *
 * test_fence.c - what a fenced process can still do, each tried in a child of its own
 *
 * Whose capabilities and user are dropped is seen as root only; Landlock's part where
 * the kernel has it.
 */
#include "tests/support/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <liburing.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "engine/weights/stream_ring.h"
#include "harness/machine/fence/fence.h"
#include "harness/machine/fence/fence_rules.h"

static char root[64];

static int setup(void **state)
{
    (void)state;
    tree_new(root);
    tree_put(root, "/model.gguf", "model");
    tree_put(root, "/other.txt", "secret");
    tree_put(root, "/before.txt", "before");
    tree_put(root, "/folder/config.json", "{}");
    tree_put(root, "/blobs/weights", "weights");
    chmod(root, 0755);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tree_remove(root);
    unsetenv("SUDO_UID");
    unsetenv("SUDO_GID");
    return 0;
}

static const char *in_root(const char *path)
{
    static char full[16][128];
    static int i;

    i = (i + 1) % 16;
    snprintf(full[i], sizeof full[i], "%s%s", root, path);
    return full[i];
}

/* What a fenced child found. */
struct found {
    struct fence_state state;
    enum status status;
    uid_t uid;
    gid_t gid;
    unsigned long long cap_prm, cap_eff, cap_bnd;
    int no_new_privs, seccomp;
    int model, other, folder, linked, writes, makes, removes; /* 0, or errno */
    int socket, execve, uring, own_maps;
    int thread_other; /* the same from a thread */
};

static int try_open(const char *path, int flags)
{
    const int fd = open(path, flags, 0600);
    const int error = fd < 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    return error;
}

static unsigned long long status_field(const char *name, int base)
{
    char line[256];
    unsigned long long value = 99;
    FILE *f = fopen("/proc/self/status", "re");

    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
            value = strtoull(line + strlen(name) + 1, NULL, base);
    if (f)
        fclose(f);
    return value;
}

static void *from_thread(void *arg)
{
    struct found *found = arg;

    found->thread_other = try_open(in_root("/other.txt"), O_RDONLY);
    return NULL;
}

static void look_around(struct found *f)
{
    char *const argv[] = {(char *)"true", NULL};
    pthread_t thread;

    f->uid = getuid();
    f->gid = getgid();
    f->cap_prm = status_field("CapPrm", 16);
    f->cap_eff = status_field("CapEff", 16);
    f->cap_bnd = status_field("CapBnd", 16);
    f->no_new_privs = (int)status_field("NoNewPrivs", 10);
    f->seccomp = (int)status_field("Seccomp", 10);
    f->model = try_open(in_root("/model.gguf"), O_RDONLY);
    f->other = try_open(in_root("/other.txt"), O_RDONLY);
    f->folder = try_open(in_root("/folder/config.json"), O_RDONLY);
    f->linked = try_open(in_root("/folder/linked"), O_RDONLY);
    f->writes = try_open(in_root("/model.gguf"), O_WRONLY);
    f->makes = try_open(in_root("/folder/new"), O_WRONLY | O_CREAT);
    f->removes = unlink(in_root("/folder/config.json")) ? errno : 0;
    f->socket = socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0;
    f->uring = syscall(425 /* io_uring_setup */, 1, NULL) < 0 ? errno : 0;
    f->own_maps = try_open("/proc/self/smaps", O_RDONLY);
    pthread_create(&thread, NULL, from_thread, f);
    pthread_join(thread, NULL);
    execv("/bin/true", argv);
    f->execve = errno;
}

/* In a child, since nothing of it can be taken back. */
static struct found fenced(struct fence fence)
{
    const char *const reads[] = {in_root("/model.gguf"), in_root("/folder"),
                                 in_root("/not-there"), in_root("/blobs/weights")};
    struct found found = {.status = ST_IO};
    int pipe_fd[2];
    pid_t child;

    if (symlink(in_root("/blobs/weights"), in_root("/folder/linked")))
        assert_int_equal(errno, EEXIST);
    fence.reads = reads;
    fence.n_reads = fence.n_reads ? fence.n_reads : 3;
    assert_int_equal(pipe(pipe_fd), 0);
    child = fork();
    if (!child) {
        struct err err = ERR_INIT;

        found.status = fence_enter(&fence, &found.state, &err);
        if (found.status == ST_OK)
            look_around(&found);
        _exit(write(pipe_fd[1], &found, sizeof found) != sizeof found);
    }
    close(pipe_fd[1]);
    assert_int_equal(read(pipe_fd[0], &found, sizeof found), sizeof found);
    close(pipe_fd[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(found.status, ST_OK);
    return found;
}

static void only_what_it_reads(void **state)
{
    const struct found f = fenced((struct fence){0});

    (void)state;
    assert_int_equal(f.model, 0);
    assert_int_equal(f.folder, 0);
    assert_int_equal(f.own_maps, 0);
    assert_int_not_equal(f.writes, 0);
    if (f.state.seccomp)
        assert_int_equal(f.removes, EPERM);
    if (!f.state.landlock && getuid())
        skip();
    assert_int_equal(f.makes, f.state.seccomp ? EPERM : EACCES);
    if (!f.state.landlock)
        skip();
    assert_int_equal(f.other, EACCES);
    assert_int_equal(f.linked, EACCES);
    assert_int_equal(f.thread_other, EACCES);
}

static void no_network_and_no_other_program(void **state)
{
    const struct found f = fenced((struct fence){0});

    (void)state;
    assert_int_equal(f.no_new_privs, 1);
    assert_true(f.state.no_new_privs);
    if (!f.state.seccomp)
        skip();
    assert_int_equal(f.seccomp, 2);
    assert_int_equal(f.socket, EPERM);
    assert_int_equal(f.execve, EPERM);
    assert_int_equal(f.uring, EPERM);
}

static void the_user_is_kept_where_that_is_requested(void **state)
{
    const struct found f = fenced((struct fence){.keeps_user = true});

    (void)state;
    assert_int_equal(f.uid, getuid());
    assert_int_equal(f.cap_eff, 0);
}

static void no_capability_is_left(void **state)
{
    const struct found f = fenced((struct fence){0});

    (void)state;
    assert_false(f.state.capabilities);
    assert_int_equal(f.cap_prm, 0);
    assert_int_equal(f.cap_eff, 0);
    if (!getuid())
        assert_int_equal(f.cap_bnd, 0);
    assert_int_equal(f.state.uid, f.uid);
}

static void root_becomes_who_called_sudo(void **state)
{
    static const char *const bad[] = {"",    "0",          "-1",         "x",
                                      "12x", "4294967295", "99999999999"};

    (void)state;
    if (getuid())
        skip();
    assert_int_equal(fenced((struct fence){0}).uid, 65534);
    setenv("SUDO_UID", "1234", 1);
    assert_int_equal(fenced((struct fence){0}).uid, 65534); /* without its group */
    setenv("SUDO_GID", "2345", 1);
    assert_int_equal(fenced((struct fence){0}).uid, 1234);
    assert_int_equal(fenced((struct fence){0}).gid, 2345);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("SUDO_UID", bad[i], 1);
        assert_int_equal(fenced((struct fence){0}).uid, 65534);
    }
}

static void root_stays_where_nobody_may_read(void **state)
{
    struct found f;

    (void)state;
    if (getuid())
        skip();
    setenv("SUDO_UID", "1234", 1);
    setenv("SUDO_GID", "1234", 1);
    chmod(in_root("/model.gguf"), 0600);
    f = fenced((struct fence){0});
    assert_int_equal(f.uid, 0);
    assert_int_equal(f.cap_eff, 0);
    assert_int_equal(f.model, 0);
    chmod(in_root("/model.gguf"), 0644);
    chmod(in_root("/blobs/weights"), 0600); /* behind a link */
    assert_int_equal(fenced((struct fence){0}).uid, 1234);
    assert_int_equal(fenced((struct fence){.n_reads = 4}).uid, 0);
    assert_int_equal(chown(in_root("/blobs/weights"), 1234, 1234), 0);
    f = fenced((struct fence){.n_reads = 4});
    assert_int_equal(f.uid, 1234);
    assert_int_equal(f.linked, 0);
}

/* ---- connections of a socket that listens ---------------------------------------- */

struct found_server {
    enum status status;
    bool seccomp;
    int accepted, received; /* errno; bytes of an echo, or -errno */
    int other, plain, socket, listens, connects; /* errno */
    int sends[2]; /* of a socket that was shut down, to one that listens */
};

/* A socket that listens, and a connection to it that waits; both are the caller's. */
static void make_listener(int *listener, int *client)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;

    *listener = socket(AF_INET, SOCK_STREAM, 0);
    *client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(*listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(*listener, 4), 0);
    assert_int_equal(getsockname(*listener, (struct sockaddr *)&a, &len), 0);
    assert_int_equal(connect(*client, (struct sockaddr *)&a, sizeof a), 0);
}

static int error_of(int result)
{
    return result < 0 ? errno : 0;
}

/* A socket that no longer listens can be connected again: TCP Fast Open does so without
 * connect(). */
static void try_fast_open(struct found_server *f, int listener, int other)
{
    struct sockaddr_in a;
    socklen_t len = sizeof a;
    struct iovec text = {"out", 3};
    struct msghdr m = {
        .msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &text, .msg_iovlen = 1};

    getsockname(other, (struct sockaddr *)&a, &len);
    shutdown(listener, SHUT_RDWR);
    f->sends[0] = error_of(
        (int)sendto(listener, "out", 3, MSG_FASTOPEN, (struct sockaddr *)&a, sizeof a));
    f->sends[1] = error_of((int)sendmsg(listener, &m, MSG_FASTOPEN));
}

static void try_server(struct found_server *f, int listener, int client, int other)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    char text[8] = "";
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    f->accepted = error_of(fd);
    if (send(client, "echo", 4, 0) == 4 && recv(fd, text, sizeof text, 0) == 4 &&
        send(fd, text, 4, MSG_NOSIGNAL) == 4)
        f->received = (int)recv(client, text, sizeof text, 0);
    f->other = error_of(accept4(other, NULL, NULL, 0));
    f->plain = error_of(accept(listener, NULL, NULL));
    f->socket = error_of(socket(AF_INET, SOCK_STREAM, 0));
    f->listens = error_of(listen(other, 1));
    f->connects = error_of(connect(client, (struct sockaddr *)&a, sizeof a));
    try_fast_open(f, listener, other);
}

static void a_server_accepts_at_its_socket_alone(void **state)
{
    struct found_server f = {.status = ST_IO};
    int pipe_fd[2];

    (void)state;
    assert_int_equal(pipe(pipe_fd), 0);
    if (!fork()) {
        struct fence fence = {.serves = true};
        struct fence_state done;
        struct err err = ERR_INIT;
        int client, other, ignored;

        make_listener(&fence.listener, &client);
        make_listener(&other, &ignored);
        f.status = fence_enter(&fence, &done, &err);
        f.seccomp = done.seccomp;
        try_server(&f, fence.listener, client, other);
        _exit(write(pipe_fd[1], &f, sizeof f) != sizeof f);
    }
    close(pipe_fd[1]);
    assert_int_equal(read(pipe_fd[0], &f, sizeof f), sizeof f);
    close(pipe_fd[0]);
    assert_int_not_equal(wait(NULL), -1);
    assert_int_equal(f.status, ST_OK);
    assert_int_equal(f.accepted, 0);
    assert_int_equal(f.received, 4);
    if (!f.seccomp)
        skip();
    assert_int_equal(f.other, EPERM);
    assert_int_equal(f.plain, EPERM);
    assert_int_equal(f.socket, EPERM);
    assert_int_equal(f.listens, EPERM);
    assert_int_equal(f.connects, EPERM);
    assert_int_equal(f.sends[0], EPERM);
    assert_int_equal(f.sends[1], EPERM);
}

/* ---- a command's own files, and nobody's memory ---------------------------------- */

struct found_command {
    enum status status;
    int own, moved, named, memory; /* errno */
};

static void try_command(struct found_command *f, pid_t parent)
{
    const int unnamed = open(in_root("/folder"), O_TMPFILE | O_RDWR, 0600);
    char path[64];

    f->own = try_open(in_root("/made"), O_RDWR | O_CREAT);
    f->moved = error_of(rename(in_root("/made"), in_root("/folder/made")));
    if (unnamed >= 0) { /* not every file system has such files */
        snprintf(path, sizeof path, "/proc/self/fd/%d", unnamed);
        f->named = error_of(linkat(AT_FDCWD, path, AT_FDCWD, in_root("/folder/named"),
                                   AT_SYMLINK_FOLLOW));
    }
    snprintf(path, sizeof path, "/proc/%d/mem", (int)parent);
    f->memory = try_open(path, O_RDWR);
}

static void a_command_leaves_other_processes_alone(void **state)
{
    struct found_command f = {.status = ST_IO};
    struct err err = ERR_INIT;
    const pid_t parent = getpid();
    int pipe_fd[2];

    (void)state;
    assert_int_equal(pipe(pipe_fd), 0);
    if (!fork()) {
        f.status = fence_enter_calls(-1, &err);
        if (!f.status)
            try_command(&f, parent);
        _exit(write(pipe_fd[1], &f, sizeof f) != sizeof f);
    }
    close(pipe_fd[1]);
    assert_int_equal(read(pipe_fd[0], &f, sizeof f), sizeof f);
    close(pipe_fd[0]);
    assert_int_not_equal(wait(NULL), -1);
    assert_int_equal(f.status, ST_OK);
    assert_int_equal(f.own, 0);
    if (!fence_rules_version())
        skip();
    if (fence_rules_version() > 1)
        assert_int_equal(f.moved, 0);
    assert_int_equal(f.named, 0); /* an output that has no name until it is whole */
    assert_int_equal(f.memory, EACCES);
}

/* ---- a ring that was made before ------------------------------------------------- */

#define N_OPS 64

struct found_ring {
    enum status made;
    bool seccomp;
    int read, linked_read;    /* bytes, or -errno */
    int op[N_OPS];            /* of each other operation: the result */
    int other_ring, setup;    /* errno; 0 */
    int register_file, flags; /* the same */
    char text[8];
};

/* The result of one request. */
static int submit_and_wait(struct io_uring *ring, const struct io_uring_sqe *request)
{
    struct io_uring_cqe *cqe;
    int result;

    *io_uring_get_sqe(ring) = *request;
    if (io_uring_submit(ring) < 0 || io_uring_wait_cqe(ring, &cqe) < 0)
        return -ENOSYS;
    result = cqe->res;
    io_uring_cqe_seen(ring, cqe);
    return result;
}

static int enter(int fd, unsigned flags)
{
    return syscall(SYS_io_uring_enter, fd, 0, 0, flags, NULL, 0) < 0 ? errno : 0;
}

/* Each operation that there is, as far as possible a request that opens the secret. */
static void try_operations(struct io_uring *ring, struct found_ring *f)
{
    for (int op = 0; op < N_OPS; op++) {
        struct io_uring_sqe sqe = {0};

        io_uring_prep_openat(&sqe, AT_FDCWD, in_root("/before.txt"), O_RDONLY, 0);
        sqe.opcode = (__u8)op;
        f->op[op] = op == IORING_OP_READ ? 0 : submit_and_wait(ring, &sqe);
    }
}

static void try_ring(struct stream_ring *r, struct io_uring *other,
                     struct found_ring *f)
{
    struct io_uring *ring = stream_ring_uring(r);
    const int fd = open(in_root("/model.gguf"), O_RDONLY);
    struct io_uring_params params = {0};
    struct io_uring_sqe sqe = {0};

    io_uring_prep_read(&sqe, fd, f->text, sizeof f->text, 0);
    f->read = submit_and_wait(ring, &sqe);
    sqe.flags = IOSQE_IO_LINK;
    f->linked_read = submit_and_wait(ring, &sqe);
    try_operations(ring, f);
    f->other_ring = enter(other->ring_fd, 0);
    f->flags = enter(stream_ring_fd(r), IORING_ENTER_GETEVENTS | 1u << 4);
    f->setup = syscall(SYS_io_uring_setup, 1, &params) < 0 ? errno : 0;
    f->register_file = syscall(SYS_io_uring_register, stream_ring_fd(r),
                               IORING_REGISTER_FILES, &fd, 1) < 0
                           ? errno
                           : 0;
}

static void fence_with_ring(struct found_ring *f, bool writer)
{
    const char *const reads[] = {in_root("/model.gguf"), in_root("/before.txt")};
    struct stream_ring *ring;
    struct io_uring other;
    struct fence_state state;
    struct err err = ERR_INIT;

    f->made = stream_ring_make(&ring, &err);
    if (f->made || io_uring_queue_init(2, &other, 0))
        return;
    if (writer)
        f->made = fence_enter_calls(stream_ring_fd(ring), &err);
    else
        f->made = fence_enter(&(struct fence){.reads = reads,
                                              .n_reads = 2,
                                              .has_ring = true,
                                              .ring = stream_ring_fd(ring)},
                              &state, &err);
    f->seccomp = status_field("Seccomp", 10) == 2;
    if (!f->made)
        try_ring(ring, &other, f);
}

static void check_ring(bool writer)
{
    struct found_ring f = {.made = ST_IO};
    int pipe_fd[2];
    pid_t child;

    assert_int_equal(pipe(pipe_fd), 0);
    child = fork();
    if (!child) {
        fence_with_ring(&f, writer);
        _exit(write(pipe_fd[1], &f, sizeof f) != sizeof f);
    }
    close(pipe_fd[1]);
    assert_int_equal(read(pipe_fd[0], &f, sizeof f), sizeof f);
    close(pipe_fd[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    if (f.made == ST_UNSUPPORTED)
        skip();
    assert_int_equal(f.made, ST_OK);
    assert_int_equal(f.read, 5);
    assert_memory_equal(f.text, "model", 5);
    assert_int_equal(f.linked_read, -EACCES);
    for (int op = 0; op < N_OPS; op++)
        if (op != IORING_OP_READ && f.op[op] != -EINVAL) /* the kernel has none such */
            assert_int_equal(f.op[op], -EACCES);
    assert_int_equal(f.op[IORING_OP_OPENAT], -EACCES);
    assert_int_equal(f.op[IORING_OP_OPENAT2], -EACCES);
    assert_int_equal(f.op[IORING_OP_WRITE], -EACCES);
    if (!f.seccomp)
        skip();
    assert_int_equal(f.other_ring, EPERM);
    assert_int_equal(f.flags, EPERM);
    assert_int_equal(f.setup, EPERM);
    assert_int_equal(f.register_file, EPERM);
}

static void ring_only_reads(void **state)
{
    (void)state;
    check_ring(false);
}

static void ring_of_a_command_only_reads(void **state)
{
    (void)state;
    check_ring(true);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(only_what_it_reads),
        TEST(no_network_and_no_other_program),
        TEST(the_user_is_kept_where_that_is_requested),
        TEST(no_capability_is_left),
        TEST(root_becomes_who_called_sudo),
        TEST(root_stays_where_nobody_may_read),
        TEST(a_server_accepts_at_its_socket_alone),
        TEST(a_command_leaves_other_processes_alone),
        TEST(ring_only_reads),
        TEST(ring_of_a_command_only_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
