/* SPDX-License-Identifier: MIT
 *
 * sweep_session.c - a sweep from its request to its last row: settings, checks, the
 * directory, the machine
 */
#include "harness/measure/sweep/sweep.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/outfile.h"
#include "engine/base/random.h"
#include "harness/base/progress.h"
#include "harness/machine/cache.h"
#include "harness/machine/cores.h"
#include "harness/machine/measuring.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/measure/kernels/kernel_work.h"
#include "harness/model/model_names.h"
#include "harness/rows/quality_rows.h"
#include "harness/rows/result_set.h"
#include "kernels/isa.h"

#define PROBE_PASSES     3
#define CORES_BUDGET_S   5
#define PROBE_DISK_BYTES (UINT64_C(512) << 20)

/* In machine.json: how models share the time of a sweep. */
#define MODELS_INTERLEAVED "interleaved"
#define MODELS_ONE_BY_ONE  "one after the other"

/* ---- settings -------------------------------------------------------------------- */

static enum status apply_options(struct sweep_settings *s,
                                 const struct sweep_request *q,
                                 const struct topology *topo, struct err *err)
{
    enum status status = ST_OK;

    if (q->models.n)
        status = sweep_set_models(s, q->models.v, q->models.n, "--model", err);
    if (status == ST_OK && q->engines.n)
        status = sweep_set_engines(s, q->engines.v, q->engines.n, "--engine", err);
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

/* So that --resume works from anywhere. */
static enum status absolute_models(struct sweep_settings *s, struct err *err)
{
    for (size_t i = 0; i < s->n_models; i++) {
        char *const path = model_absolute(s->models[i]);

        if (!path)
            continue;
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
 * models where they are, whatever the environment is then. */
static enum status fix_cache_dir(struct sweep_settings *s,
                                 const struct sweep_plan *plan, struct err *err)
{
    for (size_t i = 0; i < plan->n_points && !*s->cache_dir; i++) {
        const struct modelref *ref = &plan->points[i].setup.model;
        char dir[sizeof ref->path];
        enum status st;

        if (!ref->synthetic)
            continue;
        if ((st = modelref_check_cache(ref, err)))
            return st;
        snprintf(dir, sizeof dir, "%s", ref->path);
        *strrchr(dir, '/') = '\0';
        return absolute_cache_dir(s, *dir ? dir : "/", err);
    }
    return ST_OK;
}

static enum status settings_from_request(struct sweep_settings *s,
                                         const struct sweep_request *q,
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
        s->base.setup.seed = random_seed();
    s->base.setup.isa_disabled = isa_detected() & ~isa_usable();
    s->ctx_usual = !q->config && !setting_given(&q->settings, SETTING_ctx);
    if (absolute_cache_dir(s, q->cache_dir, err))
        return err->code;
    return absolute_models(s, err);
}

/* ---- before and after ------------------------------------------------------------ */

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

/* How close products come to the peak, for predictions of prompts by other machines'
 * sweeps, for the formats that most models have. NULL: not measured. */
static json_t *products_json(const struct topology *topo)
{
    static const bool common[KERN_N_FMT] = {
        [KERN_FMT_q4_0] = true, [KERN_FMT_q8_0] = true, [KERN_FMT_q4_K] = true,
        [KERN_FMT_q5_K] = true, [KERN_FMT_q6_K] = true, [KERN_FMT_f16] = true};
    struct err ignored = ERR_INIT;
    double share[KERN_N_FMT];
    json_t *products;

    if (kernel_product_shares(share, common, topo, &ignored))
        return NULL;
    products = json_object();
    for (int i = 0; i < KERN_N_FMT; i++)
        if (share[i] > 0)
            json_object_set_new(products, kern_format_info((enum kern_format)i)->name,
                                json_real(share[i]));
    return products;
}

/* Also where the probe was interrupted: without machine.json nothing could be
 * resumed. */
static enum status write_machine(struct sweep_session *x, const struct sweep_request *q,
                                 struct err *err)
{
    const struct topology *topo = &x->topo;
    const struct sweep_settings *s = &x->settings;
    struct progress progress;
    struct probe_report report;
    const struct probe_params params = {
        .topo = topo,
        .placement = (enum placement)s->list[SETTING_placement].v[0],
        .max_threads = topology_max_threads(topo),
        .n_passes = PROBE_PASSES,
        .disk_dir = sweep_dir_path(x->dir),
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
    machine = sweep_machine_json(topo, probed ? &report : NULL, s, q->argc, q->argv);
    json_object_set_new(
        machine, "models",
        json_string(x->one_at_a_time ? MODELS_ONE_BY_ONE : MODELS_INTERLEAVED));
    if (probed) {
        json_object_set_new(json_object_get(machine, "probe"), RESULT_PRODUCTS,
                            products_json(topo));
        probe_report_free(&report);
    }
    status = sweep_dir_write_machine(x->dir, machine, err);
    json_decref(machine);
    if (status == ST_OK && why.code == ST_INTERRUPTED)
        return err_set(err, ST_INTERRUPTED, "%s", why.msg);
    return status;
}

/* ---- new, or continued ----------------------------------------------------------- */

/* A plan waits for nobody, and keeps nobody waiting. */
static enum status find_cores_now(struct topology *topo, struct err *err)
{
    enum status st;

    if (!measuring_try()) {
        printf("which CPUs share a core is not known: another process measures on this "
               "machine; the sweep may choose other threads\n");
        return ST_OK;
    }
    st = cores_find(topo, CORES_BUDGET_S, err);
    measuring_end();
    return st;
}

/* Placements and threads rest on which CPUs share a core, verdicts on the cache. */
static enum status find_cores(struct topology *topo, const struct sweep_request *q,
                              struct err *err)
{
    const bool hides = topo->smt == TOPO_SMT_HIDDEN && topo->n_allowed > 1;

    if (q->no_probe || (q->dry_run && !hides))
        return ST_OK;
    if (q->dry_run)
        return find_cores_now(topo, err);
    if (measuring_begin(err) || cores_find(topo, CORES_BUDGET_S, err))
        return err->code;
    return cache_find(topo, err);
}

/* A sweep that measures one model after the other continues that way: its rounds are of
 * one model each. */
static enum status check_capacity(struct sweep_session *x, struct err *err)
{
    bool one_at_a_time = false;
    const enum status status =
        sweep_check_capacity(&x->settings, &x->plan, &x->topo, &one_at_a_time, err);

    if (status == ST_OK && one_at_a_time && x->plan.n_models > 1)
        printf(
            "the disk does not hold all model files at once: models are measured one "
            "after the other, and differences between them include those of the "
            "machine between these times\n");
    x->one_at_a_time |= one_at_a_time;
    return status;
}

/* Whether a sandbox of each limit, and of each quota, can be made. */
static enum status check_limits(const struct sweep_settings *s, struct err *err)
{
    enum status status = ST_OK;

    for (int i = 0; i < s->n_mem_limits && status == ST_OK; i++)
        if (s->mem_limits[i])
            status = sandbox_check("", s->mem_limits[i], err);
    for (size_t i = 0; i < s->list[SETTING_cpus_quota].n && status == ST_OK; i++) {
        const struct sandbox_limits limits = {
            .quota_cpus = s->list[SETTING_cpus_quota].v[i] / 100.0};

        status = sandbox_check_with("", &limits, err);
    }
    return status;
}

/* What can fail without a measurement fails before the first one. The plan is of all
 * models and programs there are. */
static enum status check_all(struct sweep_session *x, const struct sweep_request *q,
                             struct err *err)
{
    if (sweep_models_read(&x->models, &x->settings, err) ||
        sweep_models_look(&x->models, &x->settings, &x->topo, err) ||
        sweep_engines_look(&x->settings, !q->dry_run, err) ||
        sweep_plan_of(&x->plan, &x->settings, &x->models, err))
        return err->code;
    if (q->dry_run)
        return ST_OK;
    if (fix_cache_dir(&x->settings, &x->plan, err))
        return err->code;
    clean_leftovers(&x->plan);
    return check_capacity(x, err) ? err->code : check_limits(&x->settings, err);
}

/* Where cores were found settings depend on them, as the default threads do. */
static enum status plan_again(struct sweep_session *x, const struct sweep_request *q,
                              struct err *err)
{
    enum status status;

    sweep_plan_free(&x->plan);
    sweep_settings_free(&x->settings);
    status = settings_from_request(&x->settings, q, &x->topo, err);
    if (status == ST_OK)
        status = sweep_plan_of(&x->plan, &x->settings, &x->models, err);
    return status || q->dry_run ? status : fix_cache_dir(&x->settings, &x->plan, err);
}

static enum status begin_new(struct sweep_session *x, const struct sweep_request *q,
                             struct err *err)
{
    enum status status = settings_from_request(&x->settings, q, &x->topo, err);

    if (status == ST_OK)
        status = check_all(x, q, err);
    if (status == ST_OK && !q->dry_run)
        status = sweep_dir_create(&x->dir, q->out, err);
    if (status)
        return status;
    sweep_print_memory(stdout, &x->settings, &x->topo);
    status = find_cores(&x->topo, q, err);
    if (status == ST_OK)
        status = plan_again(x, q, err);
    if (status == ST_OK && !q->dry_run)
        sweep_print_effort(stdout, &x->settings, &x->plan);
    if (status && x->dir) {
        sweep_dir_discard(x->dir);
        x->dir = NULL;
    }
    if (status || q->dry_run)
        return status;
    if (*x->settings.quality)
        status = quality_rows_copy(x->settings.quality, sweep_dir_path(x->dir), err);
    if (status == ST_OK)
        status = measuring_begin(err);
    if (status == ST_OK)
        status = write_machine(x, q, err);
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
static enum status check_cache_dir(const struct sweep_session *x,
                                   const struct sweep_request *q, struct err *err)
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

static enum status begin_again(struct sweep_session *x, const struct sweep_request *q,
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
    const char *models = json_string_value(json_object_get(machine, "models"));
    x->one_at_a_time = models && !strcmp(models, MODELS_ONE_BY_ONE);
    json_decref(machine);
    if (status == ST_OK &&
        (sweep_check_engines(&x->settings, q->engines.v, q->engines.n,
                             sweep_dir_path(x->dir), err) ||
         check_all(x, q, err) || check_cache_dir(x, q, err) ||
         find_cores(&x->topo, q, err)))
        status = err->code;
    return status || q->dry_run ? status : measuring_begin(err);
}

enum status sweep_session_run(struct sweep_session *x, const struct sweep_request *q,
                              struct err *err)
{
    enum status status = topology_read(&x->topo, "", err);

    if (status == ST_OK)
        status = q->resume ? begin_again(x, q, err) : begin_new(x, q, err);
    if (status)
        return status;
    return q->dry_run ? sweep_print_plan(&x->settings, &x->plan, &x->topo, err)
                      : sweep_run(&x->settings, &x->plan, &x->topo, x->dir,
                                  x->one_at_a_time, err);
}

void sweep_session_close(struct sweep_session *x)
{
    sweep_dir_close(x->dir);
    sweep_plan_free(&x->plan);
    sweep_models_free(&x->models);
    sweep_settings_free(&x->settings);
}
