/* SPDX-License-Identifier: MIT
 *
 * test_threads.c - threads that multiply, by tiles where there are any: what is left
 * when they have ended, and how much of their stacks they take
 */
#include "tests/support/test.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/auxv.h>

#include "engine/base/thread_pool.h"
#include "kernels/kernels.h"

/* Sanitizers map memory as they like, and their frames are larger. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

enum {
    N_THREADS = 50, /* of a pool, its starter among them */
    N_POOLS = 21,   /* that start 1,029 threads */
    N_COLS = 48,
    K = 1024,
    STACK = 1 << 20, /* the least that `bench` runs with: INHERITED_STACK_MIN */
};

struct product {
    const struct kern_row *row;
    void *panels, *x;
    size_t stride;
};

/* A panel of zeros times columns of zeros: what is taken of a stack and of the CPU's
 * state does not depend on values. */
static struct product product_new(enum kern_op op, enum kern_format fmt)
{
    struct product p = {.row = kern_best(op, (int)fmt, isa_usable())};

    if (p.row == NULL)
        return p;
    p.stride = kern_act_bytes(
        op == KERN_OP_gemm_x16_int8 ? KERN_ACT_q8_256 : kern_format_info(fmt)->act, K);
    p.panels = aligned_alloc(64, KERN_PANEL_ROWS * kern_format_bytes(fmt, K));
    p.x = aligned_alloc(64, N_COLS * p.stride);
    assert_true(p.panels != NULL && p.x != NULL);
    memset(p.panels, 0, KERN_PANEL_ROWS * kern_format_bytes(fmt, K));
    memset(p.x, 0, N_COLS * p.stride);
    return p;
}

static void product_free(struct product *p)
{
    free(p->panels);
    free(p->x);
}

static void multiply(const struct product *p, float y[N_COLS * KERN_PANEL_ROWS])
{
    kern_gemm_x16_fn *gemm = p->row->op == KERN_OP_gemm_x16_int8
                                 ? p->row->fn.gemm_x16_int8
                                 : p->row->fn.gemm_x16;

    gemm(1, K, p->panels, N_COLS, p->x, p->stride, y, KERN_PANEL_ROWS,
         (struct kern_prefetch){0});
}

static void multiply_in_pool(void *arg, int thread, int n_threads)
{
    float y[N_COLS * KERN_PANEL_ROWS];

    (void)thread, (void)n_threads;
    multiply(arg, y);
}

/* ---- what is left ---------------------------------------------------------------- */

static size_t entries(const char *path)
{
    DIR *dir = opendir(path);
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static size_t mapped_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    size_t pages = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%zu", &pages), 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void run_pool(struct product *p)
{
    struct err err = ERR_INIT;
    struct thread_pool *pool = NULL;

    assert_int_equal(thread_pool_start(&pool, N_THREADS, NULL, &err), ST_OK);
    thread_pool_run(pool, multiply_in_pool, p);
    thread_pool_stop(pool);
}

/* The kernel takes a thread that has been joined off its list a moment later. */
static void wait_for_tasks(size_t n)
{
    for (int i = 0; i < 60000 && entries("/proc/self/task") != n; i++)
        usleep(1000);
    assert_int_equal(entries("/proc/self/task"), n);
}

static void a_thousand_threads_leave_nothing(void **state)
{
    struct product p = product_new(KERN_OP_gemm_x16, KERN_FMT_q4_K);
    size_t tasks, files, bytes;

    (void)state;
    if (p.row == NULL)
        skip();
    tasks = entries("/proc/self/task");
    run_pool(&p); /* glibc keeps the stacks of threads for others */
    wait_for_tasks(tasks);
    files = entries("/proc/self/fd");
    bytes = mapped_bytes();
    for (int i = 0; i + 1 < N_POOLS; i++) {
        run_pool(&p);
        wait_for_tasks(tasks);
    }
    assert_int_equal(entries("/proc/self/fd"), files);
    assert_true(SANITIZED || mapped_bytes() <= bytes);
    product_free(&p);
}

/* ---- stacks ---------------------------------------------------------------------- */

static atomic_int n_signals;

static void count_signal(int signum)
{
    (void)signum;
    atomic_fetch_add(&n_signals, 1);
}

struct small {
    struct product p;
    float y[N_COLS * KERN_PANEL_ROWS];
};

/* As deep as a kernel goes, and a signal's frame with the state of all registers. */
static void *multiply_on_small_stack(void *arg)
{
    struct small *s = arg;

    multiply(&s->p, s->y);
    raise(SIGBUS);
    return NULL;
}

/* The stack is less by two frames of signals: one may come while a kernel is at its
 * deepest. With tiles in use a frame is 11 KiB and more. */
static void kernels_leave_room_for_a_signal(void **state)
{
    static const enum kern_op ops[] = {KERN_OP_gemm_x16, KERN_OP_gemm_x16_int8};
    const size_t frame =
        getauxval(AT_MINSIGSTKSZ) > 0 ? getauxval(AT_MINSIGSTKSZ) : (size_t)MINSIGSTKSZ;
    pthread_attr_t attr;
    int n = 0;

    (void)state;
    if (SANITIZED)
        skip();
    signal(SIGBUS, count_signal);
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_true(STACK > 16 * frame);
    assert_int_equal(pthread_attr_setstacksize(&attr, (STACK - 2 * frame) & ~4095ul),
                     0);
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
            struct small s = {.p = product_new(ops[i], (enum kern_format)fmt)};
            pthread_t thread;

            if (s.p.row == NULL)
                continue;
            assert_int_equal(
                pthread_create(&thread, &attr, multiply_on_small_stack, &s), 0);
            pthread_join(thread, NULL);
            product_free(&s.p);
            n++;
        }
    pthread_attr_destroy(&attr);
    assert_int_equal(atomic_load(&n_signals), n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_threads_leave_nothing),
        cmocka_unit_test(kernels_leave_room_for_a_signal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
