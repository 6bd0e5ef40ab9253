/* SPDX-License-Identifier: MIT
 *
 * test_stream_reader.c - parts read ahead into places: the bytes of the file, in order,
 * whatever the reads do; and every failure is an error
 */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "engine/base/random.h"
#include "engine/weights/stream_reader.h"

#define BLOCK        4096
#define N_PARTS      6
#define N_EXTENTS    2
#define EXTENT_BYTES (5 * BLOCK)
#define PLACE_BYTES  (N_EXTENTS * EXTENT_BYTES)
/* A last block that is not whole. */
#define FILE_BYTES ((size_t)N_PARTS * PLACE_BYTES + 3 * BLOCK - 100)

/* ---- reads that go wrong --------------------------------------------------------- */

/* Over the threads that call pread(): results of later reads come first, reads are
 * short or have to be made again, and one fails. */
static struct {
    struct stream_io io;
    uint64_t random;
    int fail_after, fail_with; /* -1: never; -errno, or 0: the file's end */
    int submit_fails_after;    /* -1: never */
    bool whole_blocks;
    atomic_int n_open;
    struct stream_read reads[16];
} bad;

static int bad_submit(void *state, const struct stream_read *r)
{
    struct stream_read shorter = *r;

    (void)state;
    if (bad.submit_fails_after >= 0 && bad.submit_fails_after-- == 0)
        return -EBADF;
    if (random_below(&bad.random, 3) == 0) {
        shorter.bytes = 1 + (uint32_t)random_below(&bad.random, r->bytes);
        if (bad.whole_blocks)
            shorter.bytes = (shorter.bytes + BLOCK - 1) / BLOCK * BLOCK;
    }
    bad.reads[r->tag] = *r;
    return bad.io.class->submit(bad.io.state, &shorter);
}

static int bad_wait(void *state, struct stream_result *results, int most)
{
    const int n = bad.io.class->wait(bad.io.state, results, most);

    (void)state;
    for (int i = 0; i < n / 2; i++) {
        const struct stream_result other = results[i];

        results[i] = results[n - 1 - i];
        results[n - 1 - i] = other;
    }
    for (int i = 0; i < n; i++) {
        if (random_below(&bad.random, 8) == 0)
            results[i].result = random_below(&bad.random, 2) ? -EINTR : -EAGAIN;
        if (bad.fail_after >= 0 && bad.fail_after-- == 0)
            results[i].result = bad.fail_with;
    }
    return n;
}

static void bad_close(void *state)
{
    (void)state;
    bad.n_open--;
    stream_io_close(&bad.io);
}

static const struct stream_io_class class_bad = {"bad", bad_submit, bad_wait,
                                                 bad_close};

/* ---- a file, and a reader of it -------------------------------------------------- */

enum way { BY_URING, BY_RING, BY_PREAD, BADLY, N_WAYS };

struct fixture {
    char path[32];
    int fd;
    unsigned char *content, *places;
    struct read_extent extents[N_PARTS][N_EXTENTS];
    struct stream_part parts[N_PARTS];
    struct stream_reader *r;
};

/* That BY_RING has; one for all files, one after another. NULL: it is as BY_URING. */
static struct stream_ring *ring;

static void set_up(struct fixture *f, int n_places)
{
    uint64_t random = 7;

    *f = (struct fixture){.path = "/tmp/test_reader.XXXXXX"};
    f->fd = mkstemp(f->path);
    f->content = malloc(FILE_BYTES);
    f->places = aligned_alloc(BLOCK, (size_t)n_places * PLACE_BYTES);
    assert_true(f->fd >= 0 && f->content && f->places);
    for (size_t i = 0; i < FILE_BYTES; i++)
        f->content[i] = (unsigned char)random_bits(&random);
    assert_int_equal(write(f->fd, f->content, FILE_BYTES), FILE_BYTES);
    /* an old file, so that writing to it moves its time whatever the clock's steps */
    assert_int_equal(futimens(f->fd, (struct timespec[]){{1000000, 0}, {1000000, 0}}),
                     0);
    for (int i = 0; i < N_PARTS; i++) {
        unsigned char *place = f->places + (size_t)(i % n_places) * PLACE_BYTES;
        /* from back to front: the first part's second extent ends the file */
        const uint64_t at = (uint64_t)(N_PARTS - 1 - i) * PLACE_BYTES;
        const uint64_t second =
            i ? at + EXTENT_BYTES + BLOCK : FILE_BYTES / BLOCK * BLOCK;

        f->extents[i][0] = (struct read_extent){at, at + EXTENT_BYTES - BLOCK, place};
        f->extents[i][1] = (struct read_extent){
            second, second + (i ? EXTENT_BYTES : BLOCK), place + EXTENT_BYTES};
        f->parts[i] = (struct stream_part){f->extents[i], N_EXTENTS, i % n_places};
    }
}

static void open_reader(struct fixture *f, enum way way, int n_places, int depth,
                        uint32_t request_bytes, bool start)
{
    const struct extent_reader_params params = {.fd = f->fd,
                                                .path = f->path,
                                                .file_bytes = FILE_BYTES,
                                                .direct =
                                                    way == BADLY && bad.whole_blocks,
                                                .depth = depth,
                                                .request_bytes = request_bytes};
    struct stream_io io;
    struct err err = ERR_INIT;
    enum status st;

    if (way == BY_URING || way == BY_RING)
        st =
            stream_io_open_uring(&io, f->fd, depth, way == BY_RING ? ring : NULL, &err);
    else
        st = stream_io_open_pread(way == BADLY ? &bad.io : &io, f->fd, depth, &err);
    if (st == ST_UNSUPPORTED)
        st = stream_io_open_pread(&io, f->fd, depth, &err);
    if (way == BADLY) {
        bad.n_open++;
        io = (struct stream_io){&class_bad, NULL};
    }
    if (st ||
        stream_reader_open(&f->r, &params, f->parts, N_PARTS, n_places, &io, &err))
        fail_msg("%s", err.msg);
    assert_null(io.class);
    if (start)
        stream_reader_start(f->r);
}

static void make_bad(uint64_t seed)
{
    bad.random = seed;
    bad.fail_after = bad.submit_fails_after = -1;
    bad.whole_blocks = seed & 1;
}

static void tear_down(struct fixture *f)
{
    stream_reader_close(f->r);
    assert_int_equal(bad.n_open, 0);
    close(f->fd);
    unlink(f->path);
    free(f->content);
    free(f->places);
}

static bool is_whole(const struct fixture *f, int i)
{
    for (int k = 0; k < N_EXTENTS; k++) {
        const struct read_extent *p = &f->extents[i][k];
        const uint64_t end = p->end < FILE_BYTES ? p->end : FILE_BYTES;

        if (memcmp(p->dst, f->content + p->begin, end - p->begin))
            return false;
    }
    return true;
}

/* Two threads use each part and meet before it is given back. */
struct user {
    struct fixture *f;
    pthread_barrier_t *meet;
    int n_rounds, n_wrong;
    bool gives_back;
};

static void *use_parts(void *arg)
{
    struct user *u = arg;

    for (int k = 0; k < u->n_rounds * N_PARTS; k++) {
        stream_reader_wait(u->f->r, k % N_PARTS);
        u->n_wrong += !is_whole(u->f, k % N_PARTS);
        pthread_barrier_wait(u->meet);
        if (u->gives_back)
            stream_reader_done(u->f->r, k % N_PARTS);
    }
    return NULL;
}

static int use(struct fixture *f, int n_rounds)
{
    pthread_barrier_t meet;
    struct user users[2] = {{f, &meet, n_rounds, 0, true}, {f, &meet, n_rounds, 0, 0}};
    pthread_t other;

    pthread_barrier_init(&meet, NULL, 2);
    assert_int_equal(pthread_create(&other, NULL, use_parts, &users[1]), 0);
    use_parts(&users[0]);
    pthread_join(other, NULL);
    pthread_barrier_destroy(&meet);
    return users[0].n_wrong + users[1].n_wrong;
}

/* ---- tests ----------------------------------------------------------------------- */

static uint64_t bytes_of_round(const struct fixture *f)
{
    uint64_t bytes = 0;

    for (int i = 0; i < N_PARTS; i++)
        for (int k = 0; k < N_EXTENTS; k++) {
            const struct read_extent *p = &f->extents[i][k];

            bytes += (p->end < FILE_BYTES ? p->end : FILE_BYTES) - p->begin;
        }
    return bytes;
}

static void parts_come_whole_and_in_order(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++)
        for (int n_places = 1; n_places <= 4; n_places++)
            for (int depth = 1; depth <= 9; depth += 4)
                for (uint32_t blocks = 1; blocks <= 9; blocks += 4) {
                    struct extent_reader_stats stats;
                    struct err err = ERR_INIT;
                    struct fixture f;

                    set_up(&f, n_places);
                    make_bad((uint64_t)depth + blocks / 4);
                    open_reader(&f, (enum way)way, n_places, depth, blocks * BLOCK,
                                true);
                    assert_int_equal(use(&f, 5), 0);
                    assert_int_equal(stream_reader_check(f.r, &err), ST_OK);
                    stream_reader_stats(f.r, &stats);
                    assert_true(stats.bytes_read >= 5 * bytes_of_round(&f));
                    assert_true(way == BADLY ||
                                stats.bytes_read <= 6 * bytes_of_round(&f));
                    assert_true(stats.n_reads >= 5 * N_PARTS * N_EXTENTS);
                    tear_down(&f);
                }
}

/* In the middle of whatever it is doing: idle, reading, or with all places full. */
static void closing_ends_it(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++)
        for (int i = 0; i < 12; i++) {
            struct fixture f;

            set_up(&f, 2);
            make_bad((uint64_t)i);
            open_reader(&f, (enum way)way, 2, 4, BLOCK, i > 0);
            if (i > 6)
                assert_int_equal(use(&f, 1), 0);
            else if (i > 3)
                stream_reader_wait(f.r, 1);
            tear_down(&f);
        }
    stream_reader_close(NULL);
}

static void check_failed(struct fixture *f, const char *what)
{
    struct err err = ERR_INIT, again = ERR_INIT;

    (void)use(f, 3);
    assert_int_equal(stream_reader_check(f->r, &err), ST_IO);
    if (!strstr(err.msg, what) || !strstr(err.msg, f->path))
        fail_msg("not about %s: %s", what, err.msg);
    assert_int_equal(stream_reader_wait(f->r, 0), 0);
    assert_int_equal(stream_reader_check(f->r, &again), ST_IO);
    assert_string_equal(err.msg, again.msg);
    tear_down(f);
}

static void failed_reads_are_errors(void **state)
{
    static const struct {
        int error;
        const char *what;
    } ways[] = {{-EIO, "Input/output error"}, {-ESTALE, "Stale"}, {0, "shorter"}};

    (void)state;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
        for (int after = 0; after < 40; after += 3) {
            struct fixture f;

            set_up(&f, 2);
            make_bad((uint64_t)after);
            bad.fail_after = after;
            bad.fail_with = ways[way].error;
            open_reader(&f, BADLY, 2, 4, 2 * BLOCK, true);
            check_failed(&f, ways[way].what);
        }
    for (int after = 0; after < 10; after++) {
        struct fixture f;

        set_up(&f, 2);
        make_bad(3);
        bad.submit_fails_after = after;
        open_reader(&f, BADLY, 2, 4, 2 * BLOCK, true);
        check_failed(&f, "Bad file descriptor");
    }
}

static void changed_files_are_errors(void **state)
{
    (void)state;
    for (int way = 0; way < BADLY; way++)
        for (int i = 0; i < 4; i++) {
            const uint64_t shorter[] = {0, BLOCK / 2, FILE_BYTES / 2, FILE_BYTES - 1};
            struct fixture f;

            set_up(&f, 2);
            open_reader(&f, (enum way)way, 2, 4, 2 * BLOCK, true);
            assert_int_equal(use(&f, 1), 0);
            assert_int_equal(ftruncate(f.fd, (off_t)shorter[i]), 0);
            check_failed(&f, "shorter");

            set_up(&f, 2);
            open_reader(&f, (enum way)way, 2, 4, 2 * BLOCK, true);
            assert_int_equal(use(&f, 1), 0);
            assert_int_equal(pwrite(f.fd, "x", 1, (off_t)FILE_BYTES / 3), 1);
            check_failed(&f, "written to");
        }
}

static int make_ring(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    if (stream_ring_make(&ring, &err))
        ring = NULL;
    return 0;
}

static int close_ring(void **state)
{
    (void)state;
    stream_ring_close(ring);
    return 0;
}

/* Who comes second has a ring of its own, and the first one's is free again when it
 * has been closed with all its results taken. */
static void ring_has_one_user(void **state)
{
    struct stream_result result;
    struct stream_io a, b;
    struct err err = ERR_INIT;
    struct fixture f;

    (void)state;
    if (!ring)
        skip();
    set_up(&f, 1);
    for (int i = 0; i < 3; i++) {
        const struct stream_read read = {f.places, 100, 10, 3};

        assert_int_equal(stream_io_open_uring(&a, f.fd, 4, ring, &err), ST_OK);
        assert_int_equal(stream_io_open_uring(&b, f.fd, 4, ring, &err), ST_OK);
        assert_int_equal(a.class->submit(a.state, &read), 0);
        assert_int_equal(
            b.class->submit(b.state, &(struct stream_read){f.places + 10, 110, 20, 4}),
            0);
        assert_int_equal(b.class->wait(b.state, &result, 1), 1);
        assert_int_equal(result.tag, 4);
        assert_int_equal(result.result, 20);
        assert_int_equal(a.class->wait(a.state, &result, 1), 1);
        assert_int_equal(result.tag, 3);
        assert_int_equal(result.result, 10);
        assert_memory_equal(f.places, f.content + 100, 30);
        stream_io_close(&a);
        stream_io_close(&b);
    }
    tear_down(&f);
}

/* A result that nobody has taken is not the next user's. */
static void ring_with_a_result_is_not_used_again(void **state)
{
    struct stream_ring *own;
    struct stream_result result;
    struct stream_io io;
    struct err err = ERR_INIT;
    struct fixture f;

    (void)state;
    if (stream_ring_make(&own, &err))
        skip();
    set_up(&f, 1);
    for (uint32_t i = 0; i < 2; i++) {
        const struct stream_read read = {f.places, 0, 10, i};

        assert_int_equal(stream_io_open_uring(&io, f.fd, 4, own, &err), ST_OK);
        assert_int_equal(io.class->submit(io.state, &read), 0);
        if (i) {
            assert_int_equal(io.class->wait(io.state, &result, 1), 1);
            assert_int_equal(result.tag, i);
        }
        stream_io_close(&io);
    }
    stream_ring_close(own);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_come_whole_and_in_order),
        cmocka_unit_test(closing_ends_it),
        cmocka_unit_test(failed_reads_are_errors),
        cmocka_unit_test(changed_files_are_errors),
        cmocka_unit_test(ring_has_one_user),
        cmocka_unit_test(ring_with_a_result_is_not_used_again),
    };

    return cmocka_run_group_tests(tests, make_ring, close_ring);
}
