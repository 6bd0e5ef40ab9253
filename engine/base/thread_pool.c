/* SPDX-License-Identifier: MIT
 *
 * thread_pool.c - threads that wait on two words: their own "new work" and the thread
 * pool's "barrier generation"
 *
 * Both words only count up. A run signals each of its threads separately, so threads
 * that it does not use stay asleep. A waiter remembers the value it saw, spins while it
 * is unchanged, then registers as a sleeper and lets the kernel compare once more
 * (FUTEX_WAIT). The thread that changes the word checks for sleepers afterwards. Both
 * sides use sequentially consistent operations, so either the waker sees the sleeper or
 * the sleeper's comparison sees the new value: no thread sleeps through a change, and
 * no thread makes a system call while all are awake.
 *
 * A waiter spins only while those that it waits for can run. Every thread notes the CPU
 * that it is on when it arrives; where one that has not arrived was last on the
 * waiter's own CPU, it cannot run before the waiter has gone to sleep, so the waiter
 * does at once. That happens where threads are not pinned and other programs take the
 * CPUs: spinning would cost SPIN_NS at every barrier.
 *
 * A thread that a run wakes wakes others in turn, so that the last of many does not
 * wait for as many system calls of the first. Arrivals at a barrier are counted in
 * groups, whose last members are counted once more, so that many threads do not queue
 * for one cache line.
 *
 * Words that different threads write are on separate cache lines.
 */
#include "engine/base/thread_pool.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/base/clock.h"

/* Longer than the usual spread of arrival at a barrier, shorter than a time
 * slice by a factor of a hundred. */
#define SPIN_NS 50000

/* Pauses between two looks at where the others are. */
#define LOOK_SPINS 32

#define CACHE_LINE 64

/* Threads that a thread wakes; threads that count their arrivals on one line. */
#define WAKES 4
#define GROUP 16

/* A counter to wait on, and the number of threads asleep on it. */
struct signal_word {
    _Alignas(CACHE_LINE) atomic_uint value;
    _Alignas(CACHE_LINE) atomic_uint n_sleepers;
};

struct thread {
    struct signal_word work; /* runs that this thread takes part in */
    pthread_t thread;
    struct thread_pool *pool;
    int index;
    /* Written by the thread, at each arrival: its CPU, and the generation that it waits
     * for the end of. */
    _Alignas(CACHE_LINE) atomic_int cpu;
    atomic_uint arrived;
};

struct arrivals {
    _Alignas(CACHE_LINE) atomic_int n;
};

/* The calling thread, within a run. */
static _Thread_local struct thread *self;

struct thread_pool {
    int n_threads;
    int n_used;    /* threads 0..n_used-1 take part in a run */
    int n_started; /* threads to join */
    int n_alone;   /* threads 0..n_alone-1 have a CPU each */
    int n_spins;   /* of threads with their own CPU; the others sleep at once */
    struct thread *threads;
    bool is_pinned;
    int *cpus;              /* of the threads; NULL when not pinned */
    cpu_set_t *caller_mask; /* to restore; NULL when not pinned */
    cpu_set_t *caller_cpu;  /* where it is pinned; likewise */
    size_t mask_bytes;
    thread_pool_fn *fn; /* of the current run; NULL: threads end */
    void *arg;
    struct signal_word generation;
    struct arrivals groups; /* that have arrived */
    struct arrivals group[(THREAD_POOL_MAX + GROUP - 1) / GROUP];
    _Alignas(CACHE_LINE) atomic_size_t next;
};

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

/* ---- waiting --------------------------------------------------------------------- */

/* Whether one of the first n threads that has not arrived in this generation was last
 * on this CPU, so that it cannot be running. Not asked of pinned ones, which have CPUs
 * of their own if they spin at all. */
static bool others_lack_cpu(const struct thread_pool *t, int n, unsigned generation)
{
    const int cpu = t->is_pinned ? -1 : sched_getcpu();

    for (int i = 0; cpu >= 0 && i < n; i++) {
        const struct thread *other = &t->threads[i];

        if (other != self &&
            atomic_load_explicit(&other->cpu, memory_order_relaxed) == cpu &&
            atomic_load_explicit(&other->arrived, memory_order_relaxed) != generation)
            return true;
    }
    return false;
}

/* n, generation: as others_lack_cpu() takes them, of those that are waited for. */
static void word_wait(const struct thread_pool *t, struct signal_word *w, unsigned seen,
                      int n_spins, int n, unsigned generation)
{
    for (int i = 1; i <= n_spins; i++) {
        if (atomic_load_explicit(&w->value, memory_order_acquire) != seen)
            return;
        if (i % LOOK_SPINS == 0 && others_lack_cpu(t, n, generation))
            break;
        cpu_relax();
    }
    while (atomic_load(&w->value) == seen) {
        atomic_fetch_add(&w->n_sleepers, 1);
        syscall(SYS_futex, &w->value, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        atomic_fetch_sub(&w->n_sleepers, 1);
    }
}

static void word_advance(struct signal_word *w)
{
    atomic_fetch_add(&w->value, 1);
    if (atomic_load(&w->n_sleepers) > 0)
        syscall(SYS_futex, &w->value, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* How many pauses fill SPIN_NS: a pause takes 10 to 150 cycles depending on the
 * CPU. The fastest of a few tries is the one without interruption. */
static int calibrate_spins(void)
{
    const int n_pauses = 256;
    uint64_t best_ns = UINT64_MAX;

    for (int try = 0; try < 4; try++) {
        const uint64_t start_ns = clock_ns();
        for (int i = 0; i < n_pauses; i++)
            cpu_relax();
        const uint64_t took_ns = clock_ns() - start_ns;
        if (took_ns < best_ns)
            best_ns = took_ns;
    }
    const uint64_t spins = (uint64_t)SPIN_NS * (uint64_t)n_pauses / (best_ns + 1);
    return spins < 100 ? 100 : spins > 50000 ? 50000 : (int)spins;
}

/* ---- running --------------------------------------------------------------------- */

static void note_arrival(const struct thread_pool *t, unsigned generation)
{
    if (t->is_pinned)
        return;
    atomic_store_explicit(&self->cpu, sched_getcpu(), memory_order_relaxed);
    atomic_store_explicit(&self->arrived, generation, memory_order_relaxed);
}

/* Threads that share a CPU must not spin: the thread they wait for could not run. */
static int spins(const struct thread_pool *t)
{
    return t->n_used <= t->n_alone ? t->n_spins : 0;
}

/* Whether this is the last of n arrivals; the count is 0 again then. */
static bool is_last(struct arrivals *a, int n)
{
    if (atomic_fetch_add(&a->n, 1) + 1 < n)
        return false;
    atomic_store_explicit(&a->n, 0, memory_order_relaxed);
    return true;
}

/* Whether all n_used threads have arrived with the calling one. */
static bool is_last_of_all(struct thread_pool *t, int n_used)
{
    const int i = self->index / GROUP, first = i * GROUP;
    const int n = n_used - first < GROUP ? n_used - first : GROUP;

    return is_last(&t->group[i], n) &&
           (n_used <= GROUP || is_last(&t->groups, (n_used + GROUP - 1) / GROUP));
}

void thread_pool_barrier(struct thread_pool *t)
{
    /* Read before arriving: after the last arrival they may change at any moment. */
    const unsigned seen = atomic_load(&t->generation.value);
    const int n_used = t->n_used, n_spins = spins(t);

    if (n_used == 1) {
        atomic_store_explicit(&t->next, 0, memory_order_relaxed);
        return;
    }
    note_arrival(t, seen);
    if (!is_last_of_all(t, n_used)) {
        word_wait(t, &t->generation, seen, n_spins, n_used, seen);
        return;
    }
    atomic_store_explicit(&t->next, 0, memory_order_relaxed);
    word_advance(&t->generation);
}

/* The threads that thread i wakes: together all but the first. */
static void wake_others(struct thread_pool *t, int i)
{
    const int first = i * WAKES + 1;

    for (int k = first; k < first + WAKES && k < t->n_used; k++)
        word_advance(&t->threads[k].work);
}

static void *thread_main(void *arg)
{
    struct thread *me = arg;
    struct thread_pool *t = me->pool;
    int n_spins = 0;

    self = me;
    for (unsigned seen = 0;; seen++) {
        /* the first thread ends the wait, the last generation is the one it is in */
        word_wait(t, &me->work, seen, n_spins, 1, atomic_load(&t->generation.value));
        if (!t->fn)
            return NULL;
        wake_others(t, me->index);
        n_spins = spins(t);
        t->fn(t->arg, me->index, t->n_used);
        thread_pool_barrier(t);
    }
}

/* The fields that threads read do not change until all threads have arrived at the
 * barrier that ends the run. */
void thread_pool_run(struct thread_pool *t, thread_pool_fn *fn, void *arg)
{
    assert(fn);
    self = &t->threads[0];
    t->fn = fn;
    t->arg = arg;
    atomic_store_explicit(&t->next, 0, memory_order_relaxed);
    wake_others(t, 0);
    fn(arg, 0, t->n_used);
    thread_pool_barrier(t);
}

void thread_pool_use(struct thread_pool *t, int n)
{
    assert(n >= 1 && n <= t->n_threads);
    t->n_used = n;
}

size_t thread_pool_next(struct thread_pool *t, size_t chunk)
{
    return atomic_fetch_add_explicit(&t->next, chunk, memory_order_relaxed);
}

int thread_pool_size(const struct thread_pool *t)
{
    return t->n_used;
}

int thread_pool_capacity(const struct thread_pool *t)
{
    return t->n_threads;
}

void thread_pool_share(size_t n, size_t unit, int thread, int n_threads, size_t *begin,
                       size_t *end)
{
    const size_t units = n / unit + (n % unit != 0);
    const size_t each = units / (size_t)n_threads, rest = units % (size_t)n_threads;
    const size_t i = (size_t)thread;
    const size_t first = i * each + (i < rest ? i : rest);
    const size_t last = first + each + (i < rest);

    *begin = first * unit < n ? first * unit : n;
    *end = last * unit < n ? last * unit : n;
}

/* ---- starting and stopping ------------------------------------------------------- */

/* The calling thread's affinity mask, however many CPUs the kernel knows. */
static cpu_set_t *current_mask(size_t *bytes)
{
    for (int n_cpus = 1024; n_cpus <= 1 << 20; n_cpus *= 4) {
        cpu_set_t *mask = CPU_ALLOC(n_cpus);

        *bytes = CPU_ALLOC_SIZE(n_cpus);
        if (!mask)
            return NULL;
        CPU_ZERO_S(*bytes, mask);
        if (sched_getaffinity(0, *bytes, mask) == 0)
            return mask;
        CPU_FREE(mask);
        if (errno != EINVAL)
            return NULL;
    }
    return NULL;
}

static bool has_cpu(const cpu_set_t *mask, size_t bytes, int cpu)
{
    return cpu >= 0 && (size_t)cpu < bytes * 8 && CPU_ISSET_S((size_t)cpu, bytes, mask);
}

/* Number of leading threads that have a CPU of their own. */
static int count_alone(const int *cpus, int n, int n_allowed)
{
    if (n > n_allowed)
        n = n_allowed;
    for (int i = 0; cpus && i < n; i++)
        for (int k = 0; k < i; k++)
            if (cpus[i] == cpus[k])
                return i;
    return n;
}

static enum status check_cpus(const int *cpus, int n, const cpu_set_t *mask,
                              size_t bytes, struct err *err)
{
    for (int i = 0; cpus && i < n; i++)
        if (!has_cpu(mask, bytes, cpus[i]))
            return err_set(err, ST_USAGE,
                           "thread %d cannot be placed on CPU %d: this process may not "
                           "run there (see `taskset -p` and the cpuset cgroup)",
                           i, cpus[i]);
    return ST_OK;
}

/* Start thread i. It inherits the CPU of the caller, which goes there for that, and so
 * is on its own from its first instruction: behind a fence no thread may place another
 * one. mask is scratch. */
static int start_thread(struct thread_pool *t, int i, const int *cpus, cpu_set_t *mask)
{
    struct thread *m = &t->threads[i];
    char name[16];
    int rc = 0;

    if (cpus) {
        CPU_ZERO_S(t->mask_bytes, mask);
        CPU_SET_S((size_t)cpus[i], t->mask_bytes, mask);
        rc = sched_setaffinity(0, t->mask_bytes, mask) ? errno : 0;
    }
    m->pool = t;
    m->index = i;
    if (!rc)
        rc = pthread_create(&m->thread, NULL, thread_main, m);
    if (rc)
        return rc;
    snprintf(name, sizeof name, "slm-%d", i);
    pthread_setname_np(m->thread, name);
    return 0;
}

/* All threads but the caller, which may run on own, with signals blocked: the program
 * handles those. */
static enum status start_threads(struct thread_pool *t, const int *cpus,
                                 const cpu_set_t *own, cpu_set_t *mask, struct err *err)
{
    sigset_t all, before;
    int rc = 0;

    /* Signals are the first thread's, but what an access raises belongs to the thread
     * that made it: blocked, it would end the process in spite of a handler. */
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 1; i < t->n_threads && !rc; i++) {
        rc = start_thread(t, i, cpus, mask);
        if (!rc)
            t->n_started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (cpus)
        sched_setaffinity(0, t->mask_bytes, own);
    if (rc)
        return err_set(err, ST_NO_MEMORY,
                       "the system starts only %d of %d threads (%s); use fewer",
                       t->n_started + 1, t->n_threads, strerror(rc));
    return ST_OK;
}

/* Pin the caller to cpu, with that as the mask *its, and keep both masks, of which it
 * may run on *before now. */
static enum status pin_caller(struct thread_pool *t, int cpu, cpu_set_t **before,
                              cpu_set_t **its, struct err *err)
{
    CPU_ZERO_S(t->mask_bytes, *its);
    CPU_SET_S((size_t)cpu, t->mask_bytes, *its);
    if (sched_setaffinity(0, t->mask_bytes, *its) != 0)
        return err_set_errno(err, ST_USAGE, "thread 0 cannot be placed on CPU %d", cpu);
    t->caller_mask = *before;
    t->caller_cpu = *its;
    *before = *its = NULL;
    return ST_OK;
}

enum status thread_pool_start(struct thread_pool **pool, int n_threads, const int *cpus,
                              struct err *err)
{
    struct thread_pool *t = NULL;
    cpu_set_t *mask = NULL, *scratch = NULL;
    size_t mask_bytes = 0;
    enum status st;

    if (n_threads < 1 || n_threads > THREAD_POOL_MAX)
        return err_set(err, ST_USAGE, "%d threads: between 1 and %d are possible",
                       n_threads, THREAD_POOL_MAX);
    mask = current_mask(&mask_bytes);
    if (!mask)
        return err_set_errno(err, errno == ENOMEM ? ST_NO_MEMORY : ST_IO,
                             "cannot read the affinity mask");
    st = check_cpus(cpus, n_threads, mask, mask_bytes, err);
    if (st)
        goto out;

    st = ST_NO_MEMORY;
    t = aligned_alloc(CACHE_LINE, sizeof *t);
    if (!t)
        goto no_memory;
    memset(t, 0, sizeof *t);
    t->n_threads = t->n_used = n_threads;
    t->mask_bytes = mask_bytes;
    t->threads = aligned_alloc(CACHE_LINE, (size_t)n_threads * sizeof *t->threads);
    scratch = CPU_ALLOC(mask_bytes * 8);
    t->cpus = cpus ? malloc((size_t)n_threads * sizeof *cpus) : NULL;
    if (!t->threads || !scratch || (cpus && !t->cpus))
        goto no_memory;
    if (cpus)
        memcpy(t->cpus, cpus, (size_t)n_threads * sizeof *cpus);
    memset(t->threads, 0, (size_t)n_threads * sizeof *t->threads);
    for (int i = 0; i < n_threads; i++) {
        atomic_store(&t->threads[i].cpu, -1);
        atomic_store(&t->threads[i].arrived, UINT_MAX);
    }
    t->is_pinned = cpus != NULL;
    t->n_alone = count_alone(cpus, n_threads, CPU_COUNT_S(mask_bytes, mask));
    t->n_spins = calibrate_spins();

    st = start_threads(t, cpus, mask, scratch, err);
    if (!st && cpus)
        st = pin_caller(t, cpus[0], &mask, &scratch, err);
    if (!st) {
        *pool = t;
        t = NULL;
    }
    goto out;
no_memory:
    err_set(err, ST_NO_MEMORY, "no memory for a thread pool of %d threads", n_threads);
out:
    thread_pool_stop(t);
    CPU_FREE(scratch);
    CPU_FREE(mask);
    return st;
}

const int *thread_pool_cpus(const struct thread_pool *t)
{
    return t->cpus;
}

void thread_pool_unpin_caller(struct thread_pool *t)
{
    if (t && t->caller_mask)
        sched_setaffinity(0, t->mask_bytes, t->caller_mask);
}

void thread_pool_pin_caller(struct thread_pool *t)
{
    if (t && t->caller_cpu)
        sched_setaffinity(0, t->mask_bytes, t->caller_cpu);
}

void thread_pool_stop(struct thread_pool *t)
{
    if (!t)
        return;
    t->fn = NULL;
    for (int i = 1; i <= t->n_started; i++)
        word_advance(&t->threads[i].work);
    for (int i = 1; i <= t->n_started; i++)
        pthread_join(t->threads[i].thread, NULL);
    thread_pool_unpin_caller(t);
    CPU_FREE(t->caller_mask);
    CPU_FREE(t->caller_cpu);
    free(t->cpus);
    free(t->threads);
    free(t);
}
