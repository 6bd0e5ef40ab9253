/* SPDX-License-Identifier: MIT
 *
 * choose.h - `bench choose`: from one model file to the setting to deploy
 *
 * Model of the world: quantising a model costs divergence from it, and each group of
 * its matrices has a price of its own. One pass measures them: every group is quantised
 * alone to one type, and the divergence is measured (harness/measure/quality). In
 * another type the group diverges in proportion to the square error of its weights,
 * which is found by quantising, without the model. mix_search.h makes mixes of them for
 * several sizes; each is written as a file and measured, as the usual mixes of that
 * size are. What is reported is what was measured; what the search expected is shown
 * next to it.
 *
 * Everything is in one directory. choose.json has each finished step, so a run that was
 * killed continues with its unfinished one, and a run with another budget measures only
 * what it lacks.
 *
 * Threading: one at a time; the main thread.
 */
#ifndef SLM_HARNESS_DECIDE_CHOOSE_CHOOSE_H
#define SLM_HARNESS_DECIDE_CHOOSE_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/machine/topology.h"
#include "harness/measure/session/session.h"

#define CHOOSE_MAX_TYPES  24
#define CHOOSE_MAX_GROUPS 1024
#define CHOOSE_MAX_MIXES  12 /* that are written and measured */
#define CHOOSE_JSON       "choose.json"

struct choose_settings {
    const char *model;   /* F32, F16, BF16 or Q8_0: a file or folder */
    const char *text;    /* that divergence is measured with; NULL: the usual one */
    const char *tasks;   /* that the choice answers, a file of tasks.h; NULL: none */
    const char *imatrix; /* importance matrix, a file; NULL: none */
    const char *calibration; /* a text, to make one of; NULL: none */
    const char *types;       /* "q6_K,q4_K"; NULL: the usual ones */
    const char *out;         /* directory */
    uint64_t room, others;   /* memory that there is, and what is no weights; 0: any */
    uint64_t max_file;       /* bytes of the largest file; 0: the model's own */
    int ctx, n_chunks;       /* of the text, as in quality.h; 0: the usual ones */
    int n_sense_chunks;      /* of these for the pass over the groups */
    int n_groups;            /* at most */
    int n_mixes;             /* at most */
    struct session_params session; /* threads */
};

/* A file and its figures. */
struct choose_file {
    char name[160];   /* "Q4_K_M", or of a mix "4.500 bits" */
    char path[4096];  /* of a mix, or the model's own; "": it is not kept */
    uint64_t bytes;   /* of the file */
    double promised;  /* divergence that the search expected, nats; NAN: none was */
    double kl, kl_se; /* measured */
    double top1_pct;  /* same token most likely */
};

struct choose_result {
    char model[128], quant[24]; /* the source */
    uint64_t bytes, n_params;
    size_t n_groups, n_scored; /* positions of the text */
    double seconds;            /* that all its measurements have taken, in all runs */
    struct choose_file mixes[CHOOSE_MAX_MIXES], usual[CHOOSE_MAX_MIXES];
    size_t n_mixes, n_usual; /* the largest first */
};

/* Make and measure the files, printing each step. It reads the model in this process,
 * which enters the fence. Errors: ST_CHECK (no mix is as small as max_file: with the
 * smallest), ST_USAGE (a model that is quantised already; the directory has another
 * choice's steps), ST_INTERRUPTED, those of quality_run() and gguf_save(). */
enum status choose_files(struct choose_result *r, const struct choose_settings *s,
                         struct err *err);

/* The table of divergence against bytes. */
void choose_print_files(const struct choose_result *r);

/* The usual mix of the least divergence that is no larger (by 0.5 % at most); NULL:
 * none was measured. */
const struct choose_file *choose_rival(const struct choose_result *r,
                                       const struct choose_file *mix);

/* ---- speed, and the decision ----------------------------------------------------- */

/* Where it is to run, and what it must reach. */
struct choose_wish {
    double min_tps, max_ttft_s; /* 0: none */
    int ctx, n_prompt, n_threads;
    const char *mem;               /* as --mem has it; NULL: none */
    uint64_t mem_limit;            /* the same in bytes; 0: none */
    double price;                  /* of the machine, an hour; 0: not known */
    int target;                    /* enum deploy_target */
    const char *budget, *launches; /* of the sweep; NULL: the usual ones */
    bool no_probe;
    int argc; /* the command line, for machine.json */
    char **argv;
};

/* Memory for everything under the limit, and the part of it that is no weights: KV
 * cache of ctx positions, buffers, the process. Depth and prompt become those that the
 * model was made for, at most. Errors: those of plan_make(). */
enum status choose_room(uint64_t *room, uint64_t *others, struct choose_wish *w,
                        const char *model, const struct topology *topo,
                        struct err *err);

/* Sweep the mixes into a directory in out, whose name is dir from then on; one that was
 * begun for these files and wishes is continued. Errors: those of
 * sweep_session_run(). */
enum status choose_sweep(char *dir, size_t cap, const struct choose_result *r,
                         const struct choose_wish *w, const char *out, struct err *err);

/* Tasks answered rightly. */
struct choose_score {
    size_t n, n_right;
    double lo, hi; /* of the share: 90 % of such intervals hold it */
};

/* Let the file answer the tasks that it has not answered yet; one step each, in a
 * directory of their own in s->out. It reads the model in this process. Errors: those
 * of tasks_read(), textmodel_look() and textmodel_open(), ST_INPUT (a prompt that is
 * longer than the model's context). */
enum status choose_answer(struct choose_score *score, const struct choose_file *f,
                          const struct choose_settings *s, struct err *err);

/* Print the decision from the rows in dir, and the command that deploys it. Errors:
 * ST_CHECK (nothing reaches what is wanted: what comes closest), those of
 * deploy_make() and choose_answer(), which the choice and the model itself do apart. */
enum status choose_decide(const struct choose_result *r, const char *dir,
                          const struct choose_settings *s, const struct choose_wish *w,
                          struct err *err);

#endif
