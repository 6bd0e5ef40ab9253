/* SPDX-License-Identifier: MIT
 *
 * cmd_sweep.c - `bench sweep`: the main job
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/outfile.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/options.h"
#include "harness/base/progress.h"
#include "harness/machine/cores.h"
#include "harness/machine/sandbox.h"
#include "harness/machine/measuring.h"
#include "harness/report/recommend.h"
#include "harness/report/report.h"
#include "harness/result/quality_rows.h"
#include "harness/result/report_rows.h"
#include "harness/sweep/sweep.h"
#include "kernels/isa.h"

#define LENGTH(a)        (sizeof(a) / sizeof((a)[0]))
#define PROBE_PASSES     3
#define CORES_BUDGET_S   5
#define PROBE_DISK_BYTES (UINT64_C(512) << 20)

static const struct opt_usage usage = {
    .synopsis = "sweep [-c CONFIG] [-m FILE|SHAPE:QUANT]... [--mem 6G|none] [-o DIR]",
    .about =
        "Measures every combination of models, threads, placements, context depths,\n"
        "prompt lengths and texts of speculative decoding, each in a fresh worker\n"
        "process inside a memory sandbox, and leaves sweep.csv, samples.csv,\n"
        "machine.json and charts in\n"
        "results/<host>-<utc>/ (or -o DIR). Without -c the settings of\n"
        "configs/sweeps/default.yaml hold, which also documents them; options come on\n"
        "top. --resume DIR continues a stopped sweep, on the same machine, under the "
        "same\n"
        "limits and with the same build.\n"
        "A sweep waits while another bench measures on this machine; "
        "SLMBENCH_LOCK=none\n"
        "measures nevertheless.",
    .example = "bench sweep -m yi-1.5-9b:Q4_K_M -m yi-1.5-9b:Q4_0 --mem 6G\n"
               "bench sweep -m model.gguf --threads 1-8 --ctx 0,2048 --mem none\n"
               "bench sweep --resume results/myhost-20250101T120000Z",
    .no_arguments = "models are given by -m, a configuration by -c",
};

struct request {
    struct setting_request settings;
    struct str_list models;
    const char *config, *out, *resume, *cache_dir;
    bool no_charts, no_probe, dry_run;
};

/* ---- settings --------------------------------------------------------------- */

static enum status apply_options(struct sweep_settings *s, const struct request *q,
                                 const struct topology *topo, struct err *err)
{
    enum status status = ST_OK;

    if (q->models.n)
        status = sweep_set_models(s, q->models.v, q->models.n, "--model", err);
    for (enum setting_id id = 0; id < SETTING_N && status == ST_OK; id++) {
        const char *text = setting_given(&q->settings, id);
        char what[40];

        if (!text)
            continue;
        snprintf(what, sizeof what, "--%s", setting_row(id)->option);
        status = sweep_set(s, id, text, topo, what, err);
    }
    return status;
}

/* Files are named absolutely, so that --resume works from anywhere. */
static enum status absolute_models(struct sweep_settings *s, struct err *err)
{
    for (size_t i = 0; i < s->n_models; i++) {
        struct stat st;
        char *path;

        if (stat(s->models[i], &st) || !(path = realpath(s->models[i], NULL)))
            continue;
        if (strlen(path) >= sizeof((struct modelref *)0)->text) {
            free(path);
            continue;
        }
        free(s->models[i]);
        s->models[i] = path;
    }
    return s->n_models ? ST_OK
                       : err_set(err, ST_USAGE,
                                 "name the model: -m FILE.gguf, -m SHAPE:QUANT, or a "
                                 "configuration that names some");
}

/* The directory need not exist yet. */
static enum status absolute_cache_dir(struct sweep_settings *s, const char *dir,
                                      struct err *err)
{
    char *here = dir && *dir != '/' ? getcwd(NULL, 0) : NULL;
    int n = 0;

    if (dir)
        n = snprintf(s->cache_dir, sizeof s->cache_dir, "%s%s%s", here ? here : "",
                     here ? "/" : "", dir);
    free(here);
    if (n >= (int)sizeof s->cache_dir)
        return err_set(err, ST_USAGE, "--cache-dir: %s is too long a name", dir);
    return ST_OK;
}

/* The directory that the environment has chosen: a resumed sweep must find its
 * models where they are, whatever the environment says then. */
static enum status fix_cache_dir(struct sweep_settings *s,
                                 const struct sweep_plan *plan, struct err *err)
{
    for (size_t i = 0; i < plan->n_points && !*s->cache_dir; i++) {
        char dir[sizeof plan->points[i].setup.model.path];
        char *slash;

        snprintf(dir, sizeof dir, "%s", plan->points[i].setup.model.path);
        slash = strrchr(dir, '/');
        if (!plan->points[i].setup.model.synthetic || !slash)
            continue;
        *slash = '\0';
        return absolute_cache_dir(s, *dir ? dir : "/", err);
    }
    return ST_OK;
}

static enum status settings_from_request(struct sweep_settings *s,
                                         const struct request *q,
                                         const struct topology *topo, struct err *err)
{
    enum status status = sweep_settings_init(s, topo, err);

    if (status == ST_OK)
        status = sweep_config_load(s, q->config ? q->config : "default", topo, err);
    if (status == ST_OK)
        status = apply_options(s, q, topo, err);
    if (status)
        return status;
    if (!s->base.setup.seed)
        s->base.setup.seed = (uint64_t)time(NULL);
    s->base.setup.isa_disabled = isa_detected() & ~isa_usable();
    status = absolute_cache_dir(s, q->cache_dir, err);
    return status ? status : absolute_models(s, err);
}

/* ---- before and after ------------------------------------------------------- */

/* What earlier runs that were killed have left behind: memory groups with their
 * processes, and half-written models in the directories this sweep uses. */
static void clean_leftovers(const struct sweep_plan *plan)
{
    const int n = sandbox_clean_leftovers("");

    if (n > 0)
        printf("removed %d memory group%s of an earlier run\n", n, n == 1 ? "" : "s");
    for (size_t m = 0; m < plan->n_models; m++) {
        const struct modelref *ref = &plan->points[plan->first[m]].setup.model;

        if (plan->first[m] < plan->first[m + 1] && ref->synthetic)
            outfile_remove_stale(ref->path);
    }
}

static void on_probe(void *arg, double fraction, const char *what)
{
    progress_update(arg, fraction, what);
}

/* Also where the probe was interrupted: without machine.json nothing could be
 * resumed. */
static enum status write_machine(struct sweep_dir *dir, const struct sweep_settings *s,
                                 const struct request *q, const struct topology *topo,
                                 int argc, char **argv, struct err *err)
{
    struct progress progress;
    struct probe_report report;
    const struct probe_params params = {
        .topo = topo,
        .placement = (enum placement)s->list[SETTING_placement].v[0],
        .max_threads = topology_most_threads(topo),
        .n_passes = PROBE_PASSES,
        .disk_dir = sweep_dir_path(dir),
        .disk_bytes = PROBE_DISK_BYTES,
        .isa_mask = isa_usable(),
        .progress = on_probe,
        .progress_arg = &progress};
    struct err why = ERR_INIT;
    json_t *machine;
    bool probed = false;
    enum status status;

    if (!q->no_probe) {
        progress_begin(&progress, "probe");
        probed = probe_all(&report, &params, &why) == ST_OK;
        progress_end(&progress);
        if (!probed && why.code != ST_INTERRUPTED)
            printf("no probe of the machine: %s\n", why.msg);
    }
    machine = sweep_machine_json(topo, probed ? &report : NULL, s, argc, argv);
    if (probed)
        probe_report_free(&report);
    status = sweep_dir_write_machine(dir, machine, err);
    json_decref(machine);
    if (status == ST_OK && why.code == ST_INTERRUPTED)
        return err_set(err, ST_INTERRUPTED, "%s", why.msg);
    return status;
}

/* The table, with the choice for each model marked. */
static void print_table(const struct row *rows, size_t n,
                        const struct recommend_answers *answers)
{
    const struct row *chosen[RECOMMEND_MAX_MODELS];
    size_t n_chosen = 0;

    for (size_t i = 0; i < answers->n; i++)
        if (!answers->v[i].none.code)
            chosen[n_chosen++] = &answers->v[i].rec.best;
    report_table(stdout, rows, n, chosen, n_chosen);
}

/* Table, recommendations and charts. That they cannot be made does not make the
 * rows worth less. */
static void conclude(struct sweep_dir *dir, bool charts)
{
    struct recommend_params params = {.ctx = -1};
    struct recommend_answers answers;
    struct report_machine machine;
    struct err err = ERR_INIT;
    const struct row *rows;
    size_t n;

    if (sweep_dir_mark_rows(dir, &err))
        printf("%s\n", err.msg);
    err_clear(&err);
    rows = sweep_dir_rows(dir, &n);
    report_machine_read(&machine, sweep_dir_path(dir));
    params.max_threads = machine.max_threads;
    recommend_each(&answers, rows, n, &params, &err);
    putchar('\n');
    print_table(rows, n, err.code ? &(struct recommend_answers){NULL, 0} : &answers);
    putchar('\n');
    if (err.code)
        printf("no recommendation: %s\n", err.msg);
    else
        recommend_print_each(stdout, &answers);
    recommend_answers_free(&answers);
    err_clear(&err);
    if (charts && report_charts(sweep_dir_path(dir), &err))
        printf("%s\n", err.msg);
    printf("results: %s\n", sweep_dir_path(dir));
}

static void print_plan(const struct sweep_settings *s, const struct sweep_plan *plan)
{
    char id[96];

    for (size_t i = 0; i < plan->n_points; i++) {
        point_id(&plan->points[i], id, sizeof id);
        printf("%s\n", id);
    }
    printf("%zu points, up to %g s of measuring each, seed %llu\n", plan->n_points,
           s->base.budget_s, (unsigned long long)s->base.setup.seed);
}

/* ---- new, or going on ------------------------------------------------------- */

struct session {
    struct topology topo;
    struct sweep_settings settings;
    struct sweep_plan plan;
    struct sweep_dir *dir;
};

/* Where a virtual machine does not show which CPUs share a core, placements and the
 * recommended threads rest on a measurement; without one they rest on what is shown. */
static enum status find_cores(struct topology *topo, const struct request *q,
                              struct err *err)
{
    struct cores_map *map;
    struct err why = ERR_INIT;
    enum status st;

    if (topo->smt != TOPO_SMT_HIDDEN || topo->n_allowed < 2 || q->no_probe)
        return ST_OK;
    map = calloc(1, sizeof *map);
    if (!map)
        return err_set(err, ST_NO_MEMORY, "no memory to compare CPUs");
    st = measuring_begin(&why);
    if (st == ST_OK)
        st = cores_measure(map, topo, CORES_BUDGET_S, &why);
    if (st == ST_OK)
        cores_apply(map, topo);
    free(map);
    return st == ST_INTERRUPTED ? err_set(err, st, "%s", why.msg) : ST_OK;
}

static enum status begin_new(struct session *x, const struct request *q, int argc,
                             char **argv, struct err *err)
{
    enum status status = find_cores(&x->topo, q, err);

    if (status == ST_OK)
        status = settings_from_request(&x->settings, q, &x->topo, err);
    if (status == ST_OK)
        status = sweep_plan_make(&x->plan, &x->settings, err);
    if (status == ST_OK)
        status = fix_cache_dir(&x->settings, &x->plan, err);
    if (status || q->dry_run)
        return status;
    clean_leftovers(&x->plan);
    status = sweep_check_capacity(&x->settings, &x->plan, &x->topo, err);
    if (status == ST_OK && x->settings.base.setup.mem_limit)
        status = sandbox_check("", x->settings.base.setup.mem_limit, err);
    if (status == ST_OK)
        status = sweep_dir_create(&x->dir, q->out, err);
    if (status == ST_OK && *x->settings.quality)
        status = quality_rows_copy(x->settings.quality, sweep_dir_path(x->dir), err);
    if (status == ST_OK)
        status = measuring_begin(err);
    if (status == ST_OK)
        status = write_machine(x->dir, &x->settings, q, &x->topo, argc, argv, err);
    return status;
}

static enum status stored_settings(struct sweep_settings *s, const json_t *machine,
                                   const char *dir, struct err *err)
{
    struct err why = ERR_INIT;
    const enum status status =
        sweep_settings_from_json(s, json_object_get(machine, "sweep"), &why);

    return status ? err_set(err, status,
                            "%.160s/machine.json: sweep: %s; correct it there, or "
                            "begin a new sweep with -o",
                            dir, why.msg)
                  : ST_OK;
}

/* The folder that models are made in without --cache-dir. */
static enum status usual_cache_dir(char *buf, size_t cap, struct err *err)
{
    const enum status st = modelref_cache_path(buf, cap, NULL, "x", err);

    if (st == ST_OK)
        *strrchr(buf, '/') = '\0';
    return st;
}

/* machine.json may be foreign, and what it calls the cache directory is written into:
 * it counts where it is the usual one or the one that --cache-dir names. */
static enum status check_cache_dir(const struct session *x, const struct request *q,
                                   struct err *err)
{
    struct sweep_settings asked = {.n_models = 0};
    char usual[sizeof((struct modelref *)0)->path];
    bool makes = false;
    enum status st = ST_OK;

    for (size_t i = 0; i < x->plan.n_points; i++)
        makes |= x->plan.points[i].setup.model.synthetic;
    if (!makes || !*x->settings.cache_dir)
        return ST_OK;
    st = q->cache_dir ? absolute_cache_dir(&asked, q->cache_dir, err)
                      : usual_cache_dir(usual, sizeof usual, err);
    if (st || !strcmp(x->settings.cache_dir, q->cache_dir ? asked.cache_dir : usual))
        return st;
    return err_set(err, ST_USAGE,
                   "the sweep in %.160s has its models in %.255s, which is not where "
                   "models are made here; add --cache-dir %.255s if it should be",
                   sweep_dir_path(x->dir), x->settings.cache_dir,
                   x->settings.cache_dir);
}

static enum status begin_again(struct session *x, const struct request *q,
                               struct err *err)
{
    json_t *machine = NULL;
    enum status status = sweep_dir_resume(&x->dir, q->resume, err);

    if (status == ST_OK)
        status = sweep_dir_read_machine(x->dir, &machine, err);
    if (status == ST_OK)
        status = stored_settings(&x->settings, machine, sweep_dir_path(x->dir), err);
    if (status == ST_OK) {
        isa_disable(x->settings.base.setup.isa_disabled);
        x->topo.isa_mask = isa_usable();
        status = sweep_machine_check(machine, &x->topo, sweep_dir_path(x->dir), err);
    }
    json_decref(machine);
    if (status == ST_OK)
        status = find_cores(&x->topo, q, err);
    if (status == ST_OK)
        status = sweep_plan_make(&x->plan, &x->settings, err);
    if (status == ST_OK)
        status = check_cache_dir(x, q, err);
    if (status)
        return status;
    clean_leftovers(&x->plan);
    status = sweep_check_capacity(&x->settings, &x->plan, &x->topo, err);
    if (status == ST_OK && x->settings.base.setup.mem_limit)
        status = sandbox_check("", x->settings.base.setup.mem_limit, err);
    return status ? status : measuring_begin(err);
}

static void print_how_to_continue(const struct session *x, const struct request *q)
{
    char again[1400] = "bench sweep --resume";

    shell_word_append(again, sizeof again, sweep_dir_path(x->dir));
    if (q->cache_dir) {
        shell_word_append(again, sizeof again, "--cache-dir");
        shell_word_append(again, sizeof again, x->settings.cache_dir);
    }
    fprintf(stderr, "bench: to continue: %s\n", again);
}

static int run(struct session *x, const struct request *q, int argc, char **argv)
{
    struct err err = ERR_INIT;
    enum status status = topology_read(&x->topo, "", &err);

    if (status == ST_OK)
        status =
            q->resume ? begin_again(x, q, &err) : begin_new(x, q, argc, argv, &err);
    if (status == ST_OK && q->dry_run) {
        print_plan(&x->settings, &x->plan);
        return 0;
    }
    if (status == ST_OK)
        status = sweep_run(&x->settings, &x->plan, &x->topo, x->dir, &err);
    if (status) {
        const int code = cmd_end(&err);

        if (status == ST_INTERRUPTED && x->dir)
            print_how_to_continue(x, q);
        return code;
    }
    conclude(x->dir, !q->no_charts);
    return 0;
}

int cmd_sweep(int argc, char **argv)
{
    struct request q = {.config = NULL};
    /* clang-format off */
    const struct opt model[] = {
        OPT_STR('c', "config", &q.config, "CONFIG", "YAML file, or a name in configs/sweeps (default: default)"),
        OPT_STRS('m', "model", &q.models, "MODEL", "GGUF file, Hugging Face folder, either with :QUANT, or SHAPE:QUANT; may be repeated"),
    };
    const struct opt others[] = {
        OPT_STR('o', "output", &q.out, "DIR", "where the results go (default: results/<host>-<utc>)"),
        OPT_STR(0, "resume", &q.resume, "DIR", "continue the sweep in DIR; of other options only --cache-dir counts"),
        OPT_STR(0, "cache-dir", &q.cache_dir, "DIR", "where synthetic models are made"),
        OPT_FLAG(0, "no-probe", &q.no_probe, "leave out the probe of the machine at the start, and of which CPUs share a core"),
        OPT_FLAG(0, "no-charts", &q.no_charts, "draw no charts"),
        OPT_FLAG(0, "dry-run", &q.dry_run, "print the points in their order, measure nothing"),
        OPT_END
    };
    /* clang-format on */
    struct opt opts[LENGTH(model) + SETTING_N + LENGTH(others)];
    size_t n = LENGTH(model);
    struct opt_args args;
    struct err err = ERR_INIT;
    struct session *x;
    int code;

    memcpy(opts, model, sizeof model);
    n += setting_options(opts + n, &q.settings, SETTING_OPTION_SWEEP);
    memcpy(opts + n, others, sizeof others);
    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    x = calloc(1, sizeof *x);
    if (!x)
        return cmd_end((err_set(&err, ST_NO_MEMORY, "no memory"), &err));
    interrupt_catch();
    code = run(x, &q, argc, argv);
    sweep_dir_close(x->dir);
    sweep_plan_free(&x->plan);
    sweep_settings_free(&x->settings);
    free(x);
    free(q.models.v);
    return code;
}
