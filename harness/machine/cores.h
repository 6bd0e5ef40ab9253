/* SPDX-License-Identifier: MIT
 *
 * cores.h - which CPUs share a core, found out by running both
 *
 * A virtual machine may show every hyperthread as a core. Arithmetic shows it: a loop
 * that keeps the multipliers busy on CPU a alone, on b alone, and on both at once.
 * Two cores do twice the work of one; two hyperthreads have one set of multipliers
 * and do little more than one alone. The *ratio* is the sum of their speeds together,
 * each as a share of its speed alone: 2 for two cores, 1.0 to 1.3 for one. The answer
 * is of this moment: a hypervisor that does not pin its vCPUs may move them later.
 *
 * Rounds are short, their three parts in random order. A round is disturbed where a
 * thread had less than 95 % of its CPU while it was timed, the parts that belong
 * together did not overlap, or steal was counted; it is repeated, up to twice as many
 * times as rounds are wanted.
 *
 * Threading: as thread_pool_start(); cores_measure() pins its caller for the time
 * being.
 */
#ifndef SLM_HARNESS_MACHINE_CORES_H
#define SLM_HARNESS_MACHINE_CORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "harness/machine/topology.h"

#define CORES_ROUNDS     15  /* wanted of a test */
#define CORES_MIN_ROUNDS 6   /* fewer undisturbed ones decide nothing */
#define CORES_ONE_BELOW  1.4 /* the interval must be below it for one core, */
#define CORES_TWO_ABOVE  1.6 /* and above this for two */
#define CORES_MAX_PAIRS  256

enum cores_verdict { CORES_UNDECIDED, CORES_ONE, CORES_TWO };

/* Result of a test of two CPUs. */
struct cores_pair {
    int cpu[2];
    int n_rounds, n_disturbed;
    double ratio;  /* median over rounds */
    double lo, hi; /* its 95 % interval (percentile bootstrap) */
    double sure;   /* share of resampled medians that agree with the verdict; for an
                      undecided pair: with the likelier one */
    enum cores_verdict verdict;
};

/* Verdict of ratio[n], n <= CORES_ROUNDS; seed: for the resampling. Fills in all but
 * cpu and n_disturbed. */
void cores_judge(struct cores_pair *p, const double *ratio, int n, uint64_t seed);

/* How a test is run: share[r * n + i] is the speed of cpus[i] in round r together
 * with the other n - 1, as a share of its speed alone. Returns in *n_rounds how many
 * rounds were undisturbed, at most CORES_ROUNDS. */
typedef enum status cores_test_fn(void *arg, const int *cpus, int n, double *share,
                                  int *n_rounds, int *n_disturbed, struct err *err);

struct cores_map {
    int n_cpus, n_cores;
    int cpu[TOPO_MAX_CPUS];  /* the requested ones */
    int core[TOPO_MAX_CPUS]; /* of each, 0..n_cores-1 */
    bool complete;           /* no CPU was left undecided: core[] may be relied on */
    int n_pairs;             /* tested; for three and more CPUs only where one of */
    struct cores_pair pair[CORES_MAX_PAIRS]; /* them was slowed by the others */
    int n_group;      /* CPUs run all at once before that; 0: none */
    double min_share; /* the smallest median share among them */
    double seconds;
};

/* Sort cpus[n], n >= 2, into cores by tests, which end after budget_s. With more than
 * two, all run at once first: a CPU that the others do not slow shares its core with
 * none of them. The rest are tested in pairs, likely partners first. Errors: those of
 * the test, ST_USAGE (n < 2). */
enum status cores_sort(struct cores_map *map, const int *cpus, int n, double budget_s,
                       cores_test_fn *test, void *arg, struct err *err);

/* cores_sort() of the CPUs allowed here, by measurement: 0.1 s for two CPUs of a quiet
 * machine, 2 s of a busy one; a test under way is not ended by budget_s. Errors:
 * ST_UNSUPPORTED (fewer than two CPUs), those of thread_pool_start(), ST_INTERRUPTED.
 */
enum status cores_measure(struct cores_map *map, const struct topology *topo,
                          double budget_s, struct err *err);

/* Both for a machine that hides its siblings and lets us have two CPUs: what was found
 * out is in *t then. Errors: ST_INTERRUPTED, ST_NO_MEMORY; that it could not be
 * measured is none. */
enum status cores_find(struct topology *t, double budget_s, struct err *err);

/* "CPUs 0 and 1 together do 1.97 times ...", into buf. */
void cores_pair_text(const struct cores_pair *p, char *buf, size_t cap);
json_t *cores_json(const struct cores_map *map);

/* Put a complete map into a topology that hides its siblings: cores, siblings, the
 * recommended threads, and t->measured. An incomplete one is only remembered. */
void cores_apply(const struct cores_map *map, struct topology *t);

#endif
