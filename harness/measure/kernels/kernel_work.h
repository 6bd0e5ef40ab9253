/* SPDX-License-Identifier: MIT
 *
 * kernel_work.h - the work of one case, ready to be timed
 *
 * Model of the world: a *fixture* holds the data shared by the cases of a process: the
 * buffer of cold weights, patterns of quantised weights, which rows have been checked,
 * the roofs. A *work* is one case with everything made and checked, so that running it
 * does nothing but call the kernel. A case with several threads, and every product
 * and roof with one, runs on pinned threads, each on its own part of the rows.
 *
 * Threading: one thread uses a fixture and its works; one is open at a time.
 */
#ifndef SLM_HARNESS_MEASURE_KERNELS_KERNEL_WORK_H
#define SLM_HARNESS_MEASURE_KERNELS_KERNEL_WORK_H

#include "harness/measure/kernels/kernel_case.h"
#include "harness/machine/topology.h"

struct kernel_fixture;

/* Allocates nothing large yet. topo outlives the fixture. Error: ST_NO_MEMORY. */
enum status kernel_fixture_open(struct kernel_fixture **fixture,
                                const struct topology *topo, enum placement placement,
                                struct err *err);
void kernel_fixture_close(struct kernel_fixture *fixture);

/* Bytes of the buffer of cold weights: probe_pass_bytes(), within a quarter of the
 * memory there is. */
size_t kernel_fixture_cold_bytes(const struct kernel_fixture *fixture);

/* Share of the buffer in 2 MiB pages, 0..1; 0 before anything cold was opened. */
double kernel_fixture_huge_share(const struct kernel_fixture *fixture);

/* Result of a roof case, in GB/s or GOPS: the median of a few passes, measured
 * at the first call; 0: it cannot be. For a quick estimate while a row is timed:
 * results are compared with roofs timed as rows, interleaved with the others. */
double kernel_fixture_roof(struct kernel_fixture *fixture,
                           const struct kernel_case *roof);

struct kernel_work;

/* Work of one call. */
struct kernel_cost {
    double bytes; /* of weights; without weights, bytes read and written */
    double ops;   /* a multiply-add counts as two */
    double n_weights;
};

/* The row is first checked on a small case: a product against dequantised weights
 * in double precision, anything else against its scalar row. Errors: ST_CHECK (a
 * wrong result: not to be timed), ST_UNSUPPORTED (this build or CPU lacks the row),
 * ST_NO_MEMORY, ST_USAGE (threads). */
enum status kernel_work_open(struct kernel_work **work, struct kernel_fixture *fixture,
                             const struct kernel_case *c, struct err *err);

/* How many calls to run at a time, so that waking the threads is lost in it. */
size_t kernel_work_batch(const struct kernel_work *work);
struct kernel_cost kernel_work_cost(const struct kernel_work *work);

/* Whether the case reads its weights from memory. */
bool kernel_work_is_cold(const struct kernel_work *work);

/* Evict the weights that the next n_calls calls read from every cache, with the work's
 * threads, and leave these awake; call it before each run of a cold case, outside the
 * timed part. */
void kernel_work_cool(struct kernel_work *work, size_t n_calls);

void kernel_work_run(struct kernel_work *work, size_t n_calls);
void kernel_work_close(struct kernel_work *work);

/* ---- how much of a CPU's arithmetic peak products of a format reach -------------- */

/* A prompt is read by products with many columns. How close they
 * come to the peak of arithmetic depends on what else a core has to do: units that
 * unpack weights are the ones that multiply in some CPUs, and others in others. That is
 * measured on the CPU itself, in a tenth of a second a format. */

/* share[format] of the int8 peak of vectors (probe.h) that its best product with
 * KERNEL_MANY_COLUMNS columns reaches with one thread, from weights in the second-level
 * cache; NAN: not wanted, or not usable here. Tiles may be far above 1. Errors:
 * ST_NO_MEMORY, thread_pool_start()'s. */
enum status kernel_product_shares(double share[KERN_N_FMT],
                                  const bool wanted[KERN_N_FMT],
                                  const struct topology *topo, struct err *err);

/* cost[i]: how long products of n_x[i] columns, 2 or more, take with weights from
 * memory as a multiple of one column's, with n_threads threads; packed: in panels.
 * Within a second. NAN: this format has no such product here. Errors: as above. */
enum status kernel_column_costs(double *cost, const int *n_x, size_t n,
                                enum kern_format format, bool packed, int n_threads,
                                enum placement placement, const struct topology *topo,
                                struct err *err);

#endif
