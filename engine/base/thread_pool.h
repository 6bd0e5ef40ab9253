/* SPDX-License-Identifier: MIT
 *
 * thread_pool.h - a fixed number of threads with a low-latency barrier
 *
 * A thread pool of n has n-1 threads of its own; the thread that calls
 * thread_pool_run() is thread 0. All threads may be pinned, one CPU each. A run uses
 * all threads or, after thread_pool_use(), the first few; the others stay asleep and
 * cost nothing. Waiting (for work, or in a barrier) spins briefly and then sleeps on a
 * futex; where threads share a CPU it sleeps at once, so oversubscription costs context
 * switches and not whole time slices of spinning. The same holds where threads that are
 * not pinned have come to share one, because other programs run. It never yields: a
 * yield leaves the CPU to any other program for a whole time slice.
 *
 * Threading: only the thread that started a thread pool may run and stop it.
 */
#ifndef SLM_ENGINE_BASE_THREAD_POOL_H
#define SLM_ENGINE_BASE_THREAD_POOL_H

#include <stddef.h>

#include "engine/base/status.h"

/* A larger number is a typing error. */
#define THREAD_POOL_MAX 1024

struct thread_pool;

typedef void thread_pool_fn(void *arg, int thread, int n_threads);

/* Start a thread pool of n_threads, 1..THREAD_POOL_MAX. cpus[n_threads] pins thread i
 * to CPU cpus[i] (thread 0, the caller, too, until thread_pool_stop() restores its
 * mask); NULL leaves placement to the OS. Errors: ST_USAGE (n_threads, or a CPU
 * outside the affinity mask; the message names it), ST_NO_MEMORY (the system starts no
 * more threads). */
enum status thread_pool_start(struct thread_pool **pool, int n_threads, const int *cpus,
                              struct err *err);

/* Run fn(arg, i, n) on every thread in use; return when all are done. */
void thread_pool_run(struct thread_pool *pool, thread_pool_fn *fn, void *arg);

/* Inside fn: wait until every thread in use has arrived. Writes before it are
 * visible to all threads after it. */
void thread_pool_barrier(struct thread_pool *pool);

/* Inside fn: hand out work in chunks, so that a preempted thread does not delay the
 * others. Returns the next index of a shared counter and
 * advances it by chunk. The counter is 0 when fn starts and after each
 * thread_pool_barrier(). */
size_t thread_pool_next(struct thread_pool *pool, size_t chunk);

/* Between runs: later runs use threads 0..n-1 only, 1 <= n <= thread_pool_capacity().
 */
void thread_pool_use(struct thread_pool *pool, int n);

/* Threads in use: all until thread_pool_use(). */
int thread_pool_size(const struct thread_pool *pool);

/* Threads started. */
int thread_pool_capacity(const struct thread_pool *pool);

/* The CPUs that the threads started are pinned to, thread i to the i-th; NULL: they are
 * not pinned. */
const int *thread_pool_cpus(const struct thread_pool *pool);

/* Between runs: the caller may run wherever it might before it was pinned, so that
 * threads which it starts now may, too; and back on its CPU. Nothing where threads are
 * not pinned, or pool is NULL. */
void thread_pool_unpin_caller(struct thread_pool *pool);
void thread_pool_pin_caller(struct thread_pool *pool);

/* End the threads and free the thread pool, which may be NULL. */
void thread_pool_stop(struct thread_pool *pool);

/* Contiguous share of n items in multiples of unit for one thread. The shares of all
 * threads cover n exactly and differ by at most one unit. */
void thread_pool_share(size_t n, size_t unit, int thread, int n_threads, size_t *begin,
                       size_t *end);

#endif
