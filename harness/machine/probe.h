/* SPDX-License-Identifier: MIT
 *
 * probe.h - the machine's roofs
 *
 * Every figure is the median over passes, with its spread, of the best the
 * machine gives to a loop that does nothing else: read-only streaming from
 * memory, multiply-add in registers, sequential reading past the page cache.
 * Threads are pinned as the engine pins them (engine/base/thread_pool.h); each reads a
 * contiguous share in chunks and then chunks that slower threads have left, as the
 * engine hands out rows. What is read was taken out of every cache before
 * (kernels/probe/evict.h), so that it comes from memory however large caches are.
 *
 * Threading: one probe at a time; it uses the pool it is given.
 */
#ifndef SLM_HARNESS_MACHINE_PROBE_H
#define SLM_HARNESS_MACHINE_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "engine/base/mem.h"
#include "engine/base/status.h"
#include "engine/base/thread_pool.h"
#include "harness/stats/stats.h"
#include "harness/machine/topology.h"
#include "kernels/probe/probe.h"

/* Memory to read, kept between passes. */
struct probe_buffer {
    const char *base;
    size_t bytes; /* a multiple of 4 KiB */
    uint64_t sum; /* of all 64-bit words, modulo 2^64 */
    enum mem_pages pages;
    struct mem mem;      /* empty where the memory is borrowed */
    uint64_t huge_bytes; /* of our own backed by 2 MiB pages */
};

/* SLMBENCH_PROBE=rough, for tests of what is not about roofs: passes read a sixteenth
 * and compute a tenth of the time, and no way to read is looked for. */
bool probe_is_rough(void);

/* Bytes that one pass reads with n_threads: enough to make its start and end a small
 * part of it. */
uint64_t probe_pass_bytes(int n_threads);

/* bytes 0: probe_pass_bytes() of the pool's threads, within a quarter of the memory
 * that is available and of the limit; other sizes are rounded up to 4 KiB. The pool's
 * threads first touch their own shares. Errors: ST_NO_MEMORY. */
enum status probe_buffer_open(struct probe_buffer *b, struct thread_pool *pool,
                              uint64_t bytes, enum mem_pages pages,
                              const struct topology *topo, struct err *err);
void probe_buffer_close(struct probe_buffer *b);

/* Existing memory in such pages: the weights of a model, so that the roof has the same
 * pages and mapping as the model. It is read once, for its sum. That a mapped file
 * changes, or ends, meanwhile is for the model's owner to find.
 * base is 64-byte aligned; bytes is rounded down to 4 KiB and must leave some. */
void probe_buffer_borrow(struct probe_buffer *b, struct thread_pool *pool,
                         const void *base, size_t bytes, enum mem_pages pages);

/* Take it out of every cache, with all threads in use. */
void probe_buffer_evict(const struct probe_buffer *b, struct thread_pool *pool);

/* A way to read: loop, number of streams, prefetch distance. The fastest way differs by
 * machine; the roof is that of the fastest. */
struct probe_read_way {
    const struct probe_kernel *kernel;
    int n_streams;
    size_t prefetch_bytes;
};

/* Read the buffer once, with all threads in use, from wherever it is; GB/s (1e9
 * bytes). */
double probe_read(const struct probe_buffer *b, struct thread_pool *pool,
                  const struct probe_read_way *way);

/* The same from memory: it is evicted first, which takes about as long and is not in
 * the figure. */
double probe_read_pass(const struct probe_buffer *b, struct thread_pool *pool,
                       const struct probe_read_way *way);

/* Reads at most share_bytes of each thread's share. */
double probe_read_part(const struct probe_buffer *b, struct thread_pool *pool,
                       const struct probe_read_way *way, size_t share_bytes);

/* Compare every way that isa_mask allows over parts of the buffer, in rounds that leave
 * the faster ones. Ends early when interrupted(). */
struct probe_read_way probe_read_tune(const struct probe_buffer *b,
                                      struct thread_pool *pool, uint32_t isa_mask);

/* The fastest way for these threads on these CPUs in such pages at this ISA level:
 * tuned the first time, and then kept for as long as the process lives, unless the
 * buffer is tiny. */
struct probe_read_way probe_way_find(const struct probe_buffer *b,
                                     struct thread_pool *pool, uint32_t isa_mask);

/* All that are kept, for another process of the same session, and those of another one,
 * which may be anything. */
json_t *probe_ways_json(void);
void probe_ways_take(const json_t *object);

/* PROBE_PEAK_VECTORS: bytes, too, by vectors, where PROBE_PEAK_INT8 is by tiles if
 * there are any; products of few columns are not made by tiles (tile_rule.h). */
enum probe_peak { PROBE_PEAK_INT8, PROBE_PEAK_VECTORS, PROBE_PEAK_F32 };

/* Multiply-adds in registers with the widest usable ISA level in isa_mask;
 * giga-operations per second (one multiply-add = 2) of n_passes passes of about
 * 10 ms each, fewer when interrupted(). Returns the level used. */
enum kern_isa probe_compute(enum probe_peak what, uint32_t isa_mask,
                            struct thread_pool *pool, int n_passes, double *gops);

/* How a disk is read: the size of requests (a multiple of 4 KiB, below 2 GiB), and
 * the number in flight. */
struct probe_disk_way {
    uint64_t request_bytes;
    int depth;
};
extern const struct probe_disk_way probe_disk_usual; /* 16 of 1 MiB */

/* As the engine streams weights (engine/weights/weights_stream.c), where it has not
 * reported yet how it does. */
extern const struct probe_disk_way probe_disk_streaming; /* 8 of 2 MiB */

/* Sequential read of path with O_DIRECT through io_uring, in this way (NULL: the usual
 * one), GB/s per pass of at most max_bytes and about two seconds. With path a
 * directory, a temporary file of at most max_bytes is written there first; it has
 * no name, so it never stays behind. Errors: ST_IO, ST_INPUT (a file that is smaller
 * than a request), ST_NO_MEMORY (no room), ST_UNSUPPORTED (no O_DIRECT or no
 * io_uring there), ST_INTERRUPTED. */
enum status probe_disk(const char *path, uint64_t max_bytes,
                       const struct probe_disk_way *way, int n_passes, double *gbps,
                       struct err *err);

struct probe_read_row {
    int n_threads;
    enum mem_pages pages;
    uint64_t bytes, huge_bytes;
    struct stats gbps;
};

struct probe_report {
    int n_read_rows;
    struct probe_read_row *read; /* malloc'ed */
    char validity[96];           /* of the read rows, as noise_verdict() has it */
    int n_peak_threads;          /* peaks were taken with 1 and this many threads */
    enum kern_isa int8_isa, vectors_isa, f32_isa;
    /* [0] one thread, [1] all */
    struct stats int8_gops[2], vectors_gops[2], f32_gops[2];
    bool has_disk;
    struct stats disk_gbps;
    char disk_path[256];
    char disk_why_not[256];
};

struct probe_params {
    const struct topology *topo;
    enum placement placement;
    int max_threads;      /* 1..8, then doubling, then max_threads are measured */
    uint64_t bytes;       /* 0: automatic */
    int n_passes;         /* e.g. 7 */
    const char *disk_dir; /* NULL: no disk probe */
    uint64_t disk_bytes;  /* 0: 512 MiB */
    uint32_t isa_mask;
    void (*progress)(void *arg, double fraction, const char *what);
    void *progress_arg;
};

/* Everything `bench probe` shows. Read passes of different thread counts and page
 * sizes are interleaved, so that drift does not favour one of them (with several
 * NUMA nodes only the page sizes are: each thread count touches its own buffers).
 * A disk that cannot be probed is a sentence in disk_why_not and no error. Errors:
 * ST_NO_MEMORY, ST_USAGE (threads or placement), ST_INTERRUPTED. */
enum status probe_all(struct probe_report *r, const struct probe_params *p,
                      struct err *err);
void probe_report_free(struct probe_report *r);

/* What follows from the roofs for a model (probe_advice.c): out[PROBE_MAX_ADVICE]
 * receives the sentences; returns how many. Each names the roof it rests on. */
#define PROBE_MAX_ADVICE 5
int probe_advice(const struct probe_report *r, const struct topology *topo,
                 struct topo_advice *out);

json_t *probe_report_json(const struct probe_report *r);

#endif
