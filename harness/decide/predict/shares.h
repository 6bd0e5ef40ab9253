/* SPDX-License-Identifier: MIT
 *
 * shares.h - how much of a roof measured machines reach, and what to expect of another
 *
 * Model of the world: decoding reads weights at a share of the bandwidth that the same
 * threads were probed to read with; prefill computes at a share of the peak of
 * arithmetic. The shares of undisturbed rows are kept for each machine, weight format
 * and number of threads, as a median and the quantiles that nine tenths of the launches
 * lie between. What another machine will reach is expected at the mean of the machines'
 * medians (of logarithms), in a band of two parts: how launches of one machine scatter,
 * and how medians of machines do. Few machines show little of the second, so its
 * variance is moderated by a usual one, as in launches.h.
 *
 * Kernels timed on weights outside the caches (`bench kernels`, kernels.csv) stand for
 * formats without a sweep: their speed relative to formats with one.
 *
 * CPUs differ less in how close prefill comes to products of its format alone than in
 * how close these come to the peak of arithmetic: unpacking takes the units that
 * multiply in some, and others in others. So prefill is expected at the share of the
 * machine's own products (kernel_work.h), or of those of its CPU's next of kin.
 *
 * Threading: data; pure functions.
 */
#ifndef SLM_HARNESS_DECIDE_PREDICT_SHARES_H
#define SLM_HARNESS_DECIDE_PREDICT_SHARES_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "engine/quantize/quantmix.h"
#include "harness/machine/machine_key.h"
#include "harness/rows/result_set.h"
#include "harness/rows/row.h"

#define SHARES_MACHINE_MAX 200
#define SHARES_MAX         2000 /* records of one file */

/* SHARE_KERNEL: products with one column over the read bandwidth; SHARE_PRODUCT: with
 * many columns, by vectors, over their int8 peak. */
enum share_kind {
    SHARE_DECODE,
    SHARE_PREFILL,
    SHARE_KERNEL,
    SHARE_PRODUCT,
    SHARE_N_KINDS
};
const char *share_kind_name(enum share_kind kind);

/* One machine, format and number of threads. */
struct share {
    char machine[SHARES_MACHINE_MAX]; /* share_machine_name() */
    enum share_kind kind;
    enum kern_format format; /* of most matrices */
    int n_threads;
    int n;                 /* launches, or kernels: 1 */
    double lo, median, hi; /* quantiles 0.05, 0.5 and 0.95 */
};

struct shares {
    struct share *v; /* malloc'ed [n]: by machine, kind, format, threads */
    size_t n;
};

/* CPU and caches: what distinguishes machines by their speed, and no host's name. "":
 * not known. Returns buf. */
const char *share_machine_name(const struct machine_key *key, char *buf, size_t cap);
/* share_machine_name() of a run. Error: ST_INPUT (its machine is not known; path is
 * named). */
enum status share_machine_of_run(char *buf, size_t cap, const struct result_run *run,
                                 const char *path, struct err *err);

/* Share of its roof that a row reached; NAN: it has none, failed, or was limited by a
 * disk. *kind (may be NULL): that of the roof. */
double share_of_row(const struct row *r, enum share_kind *kind);

/* The file that comes with the program (configs/shares.yaml, which `bench-research
 * shares` prints), or another.
 * Errors: those of yaml_load_file(), ST_INPUT. */
enum status shares_load(struct shares *s, const char *path, struct err *err);

void shares_free(struct shares *s);

/* What a share is wanted for. */
struct share_want {
    enum share_kind kind;    /* SHARE_DECODE or SHARE_PREFILL */
    enum kern_format format; /* KERN_N_FMT: not known */
    int n_threads;           /* 0: as many as were measured */
    const char *machine;     /* share_machine_name(); "": not known */
    bool leave_out;          /* as if no sweep had measured that machine */
    double product_share;    /* of a prefill, that of the machine's own products of
                                that format, one thread; 0: not known */
};

enum share_basis {
    SHARE_SAME_CPU,      /* measured on this CPU, with this format */
    SHARE_SAME_FORMAT,   /* on others */
    SHARE_OTHER_FORMATS, /* with others */
};

struct share_band {
    double lo, mid, hi; /* nine of ten launches are expected between */
    enum share_basis basis;
    int n_machines;
};

/* False: nothing was measured of that kind. */
bool shares_expect(const struct shares *s, const struct share_want *want,
                   struct share_band *band);

#endif
