/* SPDX-License-Identifier: MIT
 *
 * predict.h - what models do on a machine before they run there
 *
 * Model of the world: `bench plan`'s planner finds for each quantisation, type of
 * KV cache and context depth what fits the machine's memory and what is streamed
 * (harness/measure/plan); the time of a token is token_time.h's with the shares of the
 * roof that measured machines reach (shares.h). Decoding is also no faster than the
 * arithmetic of prefill. Nothing is predicted of what the last-level cache holds, nor
 * of a mapped file that memory does not hold.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_PREDICT_PREDICT_H
#define SLM_HARNESS_DECIDE_PREDICT_PREDICT_H

#include <stdio.h>
#include <jansson.h>

#include "harness/measure/plan/plan.h"
#include "harness/decide/predict/candidate.h"
#include "harness/decide/predict/shares.h"

/* A figure and what nine of ten measured ones are expected between; NAN: none. */
struct range {
    double lo, mid, hi;
};

/* How a figure is known. */
enum predict_label {
    PREDICT_NONE,
    PREDICT_MEASURED,   /* a row of this machine's own sweep, with its 95 % interval */
    PREDICT_CALIBRATED, /* measured roofs, and the share of them that this format
                           reached where it was measured */
    PREDICT_ESTIMATED   /* a data sheet's roofs, or a format or size that was not
                           measured */
};
const char *predict_label_name(enum predict_label label);

/* Rows that shares were measured with read 4.9 to 5.6 GB for a token; what reads less
 * than this is estimated. */
#define PREDICT_MIN_BYTES 1e9

#define PREDICT_MAX_CTX 8

struct predict_params {
    const char *model;         /* a shape, a file or a folder; SHAPE:QUANT too */
    const char *const *quants; /* [n_quants]; n_quants 0: usual ones of a shape, or the
                                  file's own */
    size_t n_quants;
    bool all; /* all quantisations of a shape instead */
    enum kern_kv kv[KERN_N_KV];
    int n_kv;
    int ctx[PREDICT_MAX_CTX];
    int n_ctx;
    int n_prompt;       /* of the time to the first token */
    uint64_t mem_limit; /* 0: what the machine has */
    const char *cache_dir;
};

struct prediction {
    char model[256], quant[24];
    enum kern_kv kv_type;
    int ctx;
    bool too_deep; /* the model was made for less: nothing below holds */
    enum plan_verdict verdict;
    struct point_need need;
    struct token_work work;
    uint64_t room;
    bool in_cache;       /* the last-level cache holds half or more of what a token
                            reads; predict_speeds() fills it in */
    struct range decode; /* tok/s */
    enum predict_label decode_label;
    struct range prefill; /* tok/s of a prompt of n_prompt */
    enum predict_label prefill_label;
    struct range ttft_s; /* lo: the least time */
};

struct predictions {
    struct prediction *v; /* malloc'ed [n]: by size of the file, KV type, depth */
    size_t n;
    int n_prompt;
};

/* Plan all; no speeds yet. *out is for predictions_free() in any case. Errors: those of
 * planner_make(), ST_USAGE (the model or a quantisation is not known, one was given
 * that the model cannot have), ST_NO_MEMORY, ST_INTERRUPTED. */
enum status predict_plan(struct predictions *out, const struct predict_params *p,
                         const struct candidate *c, struct err *err);

/* Whether any of them reads from a disk. */
bool predict_streams(const struct predictions *p);

/* Sets those of most matrices. */
void predict_formats(bool wanted[KERN_N_FMT], const struct predictions *p);

/* Fill in the speeds, of a candidate whose roofs are known. */
void predict_speeds(struct predictions *p, const struct candidate *c,
                    const struct shares *shares);

void predictions_free(struct predictions *p);

/* Speed of decoding with these shares of the roof of memory, each end by itself, and
 * with the disk at the same end of what is expected of it. */
struct range predict_decode(const struct token_work *work,
                            const struct token_roofs *roofs, double roof_lo,
                            double roof_hi, const struct share_band *share);

/* A machine's figures, the answer in a sentence, then a line for each quantisation and
 * KV type. */
void predict_print(FILE *f, const struct predictions *p, const struct candidate *c);
void predict_print_csv_header(FILE *f);
void predict_print_csv(FILE *f, const struct predictions *p);
/* A cell of CSV in quotes, as in RFC 4180; a text that a spreadsheet would run has an
 * apostrophe before it. */
void predict_print_text(FILE *f, const char *text);

json_t *predict_json(const struct predictions *p, const struct candidate *c);

#endif
