/* SPDX-License-Identifier: MIT
 *
 * sweep.h - many points, one directory of results
 *
 * Model of the world: settings (a YAML file, then options) expand into points. They are
 * measured in rounds: each round launches every point once, models in random order and
 * points in random order within a model, so that no setting is confounded with a slow
 * minute of the machine. Where the disk cannot hold all model files that the sweep
 * makes, one model is measured after the other, each in rounds. The output directory
 * holds everything that is needed to continue after a crash: sweep.csv     one row per
 * measured point, appended and synced: a point is done when its row is there
 *     samples.csv   the raw samples; written before the row they belong to
 *     quality.csv   what bench quality has put there (quality_rows.h)
 *     machine.json  machine, versions, command line and the settings
 *     .lock         held (flock) by the sweep that writes here
 *     .made         model files this sweep has made, and may remove
 *
 * Threading: one sweep at a time.
 */
#ifndef SLM_HARNESS_MEASURE_SWEEP_SWEEP_H
#define SLM_HARNESS_MEASURE_SWEEP_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "harness/base/options.h"
#include "harness/machine/probe.h"
#include "harness/machine/topology.h"
#include "harness/measure/point/point_measure.h"
#include "harness/rows/row.h"

#define SWEEP_MAX_MODELS  64
#define SWEEP_MAX_TEXTS   8
#define SWEEP_MAX_LIMITS  32
#define SWEEP_MAX_ENGINES 8
#define SWEEP_MAX_POINTS  10000 /* a week of points that take a minute */

struct sweep_settings {
    char *models[SWEEP_MAX_MODELS]; /* as modelref_parse() takes them, malloc'ed */
    size_t n_models;
    struct int_list list[SETTING_N];  /* values of swept settings, but for texts;
                                         threads_prefill: those of prefill points, empty:
                                         threads */
    char texts[SWEEP_MAX_TEXTS][256]; /* of speculate points, as test_prompt_find()
                                         takes them */
    int n_texts;
    char engines[SWEEP_MAX_ENGINES]
                [256]; /* other programs, as engine_parse() takes them
                        */
    int n_engines;
    uint64_t mem_limits[SWEEP_MAX_LIMITS]; /* bytes; 0: none */
    int n_mem_limits;                      /* one at least */
    struct point base; /* what all points have alike. seed: for the order, too; 0: a
                          random one. n_tokens: for decode points */
    int n_passes;      /* most passes of a prefill point, runs of a speculate point */
    int n_launches;    /* of each point */
    int max_launches;  /* of a point whose interval is too wide; fewer than n_launches:
                          as many */
    double ci_pct;     /* half width of an interval that is narrow enough */
    int n_repeats;     /* disturbed launches of a point that are replaced */
    bool ctx_usual; /* depths are the default: none beyond what a model was made for */
    bool keep_models;
    char cache_dir[256]; /* "": the usual one */
    char quality[256];   /* results of bench quality to begin with; "": none. Copied
                            when the sweep begins, so no part of what is resumed */
};

/* ---- settings (sweep_config.c, sweep_settings.c) --------------------------------- */

/* Defaults of everything but the models. */
enum status sweep_settings_init(struct sweep_settings *s, const struct topology *topo,
                                struct err *err);
void sweep_settings_free(struct sweep_settings *s);

/* The field of a setting that is no list; *size (may be NULL) is the field's. NULL: a
 * sweep has none. */
void *sweep_field(struct sweep_settings *s, enum setting_id id, size_t *size);

/* One setting from its text, which replaces a whole list; what names the option or key
 * in messages. Thread counts "all": 1, 2, 3 ... to the recommended number, thinned out
 * above 8, and topology_max_threads(). A profile, results of bench quality and texts
 * ("none": none) are read to see that they are there. Errors: ST_USAGE, ST_IO,
 * ST_NO_MEMORY. */
enum status sweep_set(struct sweep_settings *s, enum setting_id id, const char *text,
                      const struct topology *topo, const char *what, struct err *err);
enum status sweep_set_models(struct sweep_settings *s, const char *const *texts,
                             size_t n, const char *what, struct err *err);

/* Read a YAML file over *s; configs/sweeps/default.yaml documents the keys. name
 * is a path, or the name of a file in configs/sweeps. Errors: ST_USAGE (unknown
 * key or wrong value: file and key named), ST_IO. */
enum status sweep_config_load(struct sweep_settings *s, const char *name,
                              const struct topology *topo, struct err *err);

/* What speculate points decode, with commas between; "none": no such points
 * (sweep_models.c). */
enum status sweep_set_texts(struct sweep_settings *s, const char *text,
                            const char *what, struct err *err);

/* One text more. Error: ST_USAGE (too many, or none that can be found). */
enum status sweep_add_text(struct sweep_settings *s, const char *word, const char *what,
                           struct err *err);

/* Other programs that are measured, in place of those before (sweep_engines.c); "none"
 * alone: none. A path is made absolute. Errors: ST_USAGE (too many, two of one name,
 * engine_parse()'s). */
enum status sweep_set_engines(struct sweep_settings *s, const char *const *texts,
                              size_t n, const char *what, struct err *err);

/* Programs stored in a directory, which may be foreign, are started only where the user
 * names the same ones. Error: ST_USAGE (how to). */
enum status sweep_check_engines(const struct sweep_settings *stored,
                                const char *const *given, size_t n_given,
                                const char *dir, struct err *err);

/* Memory limits with commas between, "none" being one of them (sweep_limits.c). Errors:
 * ST_USAGE (no size, none at all, too many), those of "container". */
enum status sweep_set_limits(struct sweep_settings *s, const char *text,
                             const char *what, struct err *err);

/* The largest; 0: points have none. */
uint64_t sweep_max_memory(const struct sweep_settings *s);

/* In machine.json: a number, or a list of several. Errors: ST_USAGE. */
json_t *sweep_limits_json(const struct sweep_settings *s);
enum status sweep_limits_from_json(struct sweep_settings *s, const json_t *value,
                                   const char *what, struct err *err);

/* As machine.json keeps them (sweep_stored.c). The file may be foreign: every value
 * is checked against the ranges of setting.h. Errors: ST_INPUT (which member, and what
 * it may be), ST_NO_MEMORY. */
json_t *sweep_settings_json(const struct sweep_settings *s);
enum status sweep_settings_from_json(struct sweep_settings *s, const json_t *object,
                                     struct err *err);

/* ---- models (sweep_models.c) ----------------------------------------------------- */

struct sweep_model {
    struct modelref ref;
    int max_ctx; /* context that it was made for; 0: not known */
};

struct sweep_models {
    struct sweep_model *v; /* malloc'ed */
    size_t n;
};

/* As the settings name them, each with a name of its own. Errors: modelref_parse()'s,
 * ST_NO_MEMORY. */
enum status sweep_models_read(struct sweep_models *models,
                              const struct sweep_settings *s, struct err *err);
void sweep_models_free(struct sweep_models *models);

/* Opens each of them that is a file, in a fenced process, and learns which are one
 * model, and its context. Errors: those of opening a model; what engines cannot open.
 */
enum status sweep_models_look(struct sweep_models *models,
                              const struct sweep_settings *s,
                              const struct topology *topo, struct err *err);

/* Whether all programs of others can be measured, as engine_check() has it. Errors:
 * engine_check()'s. */
enum status sweep_engines_look(const struct sweep_settings *s, bool start_them,
                               struct err *err);

/* ---- points (sweep_plan.c) ------------------------------------------------------- */

struct sweep_plan {
    struct point *points; /* malloc'ed; models in the order given */
    size_t n_points;
    size_t first[SWEEP_MAX_MODELS + 1]; /* of each model; [n_models]: n_points */
    size_t n_models;
};

/* Expand settings into points: equal settings give equal plans. Duplicates are
 * left out. Errors: ST_USAGE (none, or more than SWEEP_MAX_POINTS), those of
 * modelref_parse(). */
enum status sweep_plan_make(struct sweep_plan *plan, const struct sweep_settings *s,
                            struct err *err);
/* sweep_plan_make() with what is known of the models. */
enum status sweep_plan_of(struct sweep_plan *plan, const struct sweep_settings *s,
                          const struct sweep_models *models, struct err *err);
void sweep_plan_free(struct sweep_plan *plan);

/* Order of a round, from 1: order[n_points] receives indices of points, those of a
 * model next to each other. The first round has the plan's order within a model. */
void sweep_round_order(const struct sweep_plan *plan, uint64_t seed, int round,
                       size_t *order);

/* ---- what is due (sweep_due.c) --------------------------------------------------- */

/* The launches of one point so far; all zero: none. */
struct sweep_tally {
    int n_good, n_disturbed; /* with a figure */
    int n_paging;            /* of these, that paged from disk */
    int n_rows;              /* these, and failed ones */
    bool is_ended;           /* another launch would show nothing new */
    double half_width;       /* of the interval, relative; 0: not known */
};

/* One launch more. One that failed, or ended before its first sample, only counts as a
 * row. A point that does not fit its limit is ended: every launch of it shows the same.
 */
void sweep_tally_add(struct sweep_tally *t, const struct row *r);

/* Which launch is due, 1..; 0: none. That is the round it belongs to. Due are
 * n_launches undisturbed ones, more up to max_launches while the interval is wider than
 * ci_pct, and one for each of up to n_repeats disturbed ones. A point that paged from
 * disk in every launch gets two at most: one may have done so by chance, two show that
 * it does not fit. */
int sweep_tally_due(const struct sweep_tally *t, const struct sweep_settings *s);

/* How many launches will be due at least. */
int sweep_tally_left(const struct sweep_tally *t, const struct sweep_settings *s);

/* Tallies of all points, tally[n_points], with the intervals of their combined launches
 * (launches.h). Rows of points that the plan does not have are passed over. Error:
 * ST_NO_MEMORY. */
enum status sweep_tally_all(struct sweep_tally *tally, const struct sweep_plan *plan,
                            const struct row *rows, size_t n_rows, struct err *err);

/* ---- before it starts (sweep_capacity.c) ----------------------------------------- */

/* Is there memory for the limit, and disk for all model files that will be made, or at
 * least (without keep_models) for the largest of them: *one_at_a_time then? Error:
 * ST_NO_MEMORY, offering the next smaller shape that would do. */
enum status sweep_check_capacity(const struct sweep_settings *s,
                                 const struct sweep_plan *plan,
                                 const struct topology *topo, bool *one_at_a_time,
                                 struct err *err);

/* ---- the directory (sweep_dir.c) ------------------------------------------------- */

struct sweep_dir;

/* Make path (or results/<host>-<utc> when path is NULL) for a new sweep. One that was
 * killed before it had machine.json, and so any row, is written over. Errors: ST_USAGE
 * (a sweep is there already, or runs there), ST_IO. */
enum status sweep_dir_create(struct sweep_dir **dir, const char *path, struct err *err);

/* Open the directory of a sweep that ended early: cut torn lines off, drop
 * samples without a row, read the rows. Errors: ST_USAGE (no sweep there, or one
 * runs there), ST_IO, ST_INPUT. */
enum status sweep_dir_resume(struct sweep_dir **dir, const char *path, struct err *err);
void sweep_dir_close(struct sweep_dir *dir);

/* Closes one that sweep_dir_create() has made and that got no row, and removes what it
 * has put there, with the directory where that was not there before: the next run may
 * have the name. */
void sweep_dir_discard(struct sweep_dir *dir);

const char *sweep_dir_path(const struct sweep_dir *dir);
const struct row *sweep_dir_rows(const struct sweep_dir *dir, size_t *n);

/* A file in it, for close(); flags: as of invoker_open(). Errors: ST_USAGE (that
 * refuses what stands there), ST_IO. */
enum status sweep_dir_open_file(const struct sweep_dir *dir, const char *name,
                                int flags, int *fd, struct err *err);

/* roof_mark_all() on the rows in memory; the file keeps what was known then. Error:
 * ST_NO_MEMORY. */
enum status sweep_dir_mark_roofs(struct sweep_dir *dir, struct err *err);

/* Samples, then the row, synced to disk. Error: ST_IO; the files then end with
 * their last whole line. */
enum status sweep_dir_append(struct sweep_dir *dir, const struct row *row,
                             const struct point_samples *samples, struct err *err);

/* Write machine.json, through a temporary file; read it back. */
enum status sweep_dir_write_machine(struct sweep_dir *dir, json_t *machine,
                                    struct err *err);
enum status sweep_dir_read_machine(struct sweep_dir *dir, json_t **machine,
                                   struct err *err);

/* Remember that this sweep makes a model file; whether it did. .made comes with the
 * directory, which may be foreign: who removes calls modelref_remove(), too. */
enum status sweep_dir_will_make(struct sweep_dir *dir, const char *path,
                                struct err *err);
bool sweep_dir_has_made(const struct sweep_dir *dir, const char *path);

/* ---- running it (sweep_machine.c, sweep.c) --------------------------------------- */

/* Everything known about this machine and build. probe may be NULL. */
json_t *sweep_machine_json(const struct topology *topo,
                           const struct probe_report *probe,
                           const struct sweep_settings *s, int argc, char **argv);

/* Whether machine.json, as it was read from the directory dir, is of this machine, as
 * topology_read() has it, under these limits, and of this build: otherwise rows would
 * be compared that differ in more than their settings. Errors: ST_USAGE (which
 * difference), ST_INPUT (no machine is described). */
enum status sweep_machine_check(const json_t *machine, const struct topology *topo,
                                const char *dir, struct err *err);

/* The line of a launch that is done, the n-th of n_round: on a terminal of `columns`
 * columns, where it does not fit, several, indented; 0: no terminal, one line
 * (sweep_print.c). */
void sweep_print_row(FILE *f, const struct row *row, size_t n, size_t n_round,
                     int columns);

/* One paragraph: points, launches, their measuring, and the disk. */
void sweep_print_effort(FILE *f, const struct sweep_settings *s,
                        const struct sweep_plan *plan);

/* The points in their order, and the rest of --dry-run. Error: ST_NO_MEMORY. */
enum status sweep_print_plan(const struct sweep_settings *s,
                             const struct sweep_plan *plan, const struct topology *topo,
                             struct err *err);

/* One line: which memory limit points have, or whose memory it is without one. */
void sweep_print_memory(FILE *f, const struct sweep_settings *s,
                        const struct topology *topo);

/* Measure every launch that is due, in rounds over all models, or over one model after
 * the other. Errors: ST_INTERRUPTED (the directory can be resumed), ST_IO (results
 * cannot be written). What goes wrong with a point or a model is a row; such a point is
 * tried again only if it could be measured before, as often as n_repeats, or by the
 * next --resume. */
enum status sweep_run(const struct sweep_settings *s, const struct sweep_plan *plan,
                      const struct topology *topo, struct sweep_dir *dir,
                      bool one_at_a_time, struct err *err);

/* ---- a whole sweep, as a command line wants it ----------------------------------- */

/* What can fail without a measurement fails before the first one. It prints what a
 * person must know, and each row as it is measured. */

/* What its user wants; it borrows. Texts that are not given are NULL. */
struct sweep_request {
    struct setting_request settings;
    struct str_list models, engines;
    const char *config, *out, *resume, *cache_dir;
    bool no_probe, dry_run;
    int argc; /* the command line, for machine.json */
    char **argv;
};

/* Zeroed before; for sweep_session_close() in any case. */
struct sweep_session {
    struct topology topo;
    struct sweep_settings settings;
    struct sweep_models models;
    struct sweep_plan plan;
    struct sweep_dir *dir; /* NULL: it got none */
    bool one_at_a_time;    /* models, as the disk does not hold the files of all */
};

/* Measures all points that are due; with dry_run prints them. Errors: ST_USAGE,
 * ST_UNSUPPORTED, ST_INTERRUPTED, those of sweep_dir_create() and sweep_run(). */
enum status sweep_session_run(struct sweep_session *x, const struct sweep_request *q,
                              struct err *err);
void sweep_session_close(struct sweep_session *x);

#endif
