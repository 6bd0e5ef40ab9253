/* SPDX-License-Identifier: MIT
 *
 * point_options.c - the options of `bench decode`
 */
#include "harness/measure/point/point_measure.h"

#include <string.h>

#include "harness/base/options.h"
#include "harness/rows/settings/setting.h"
#include "kernels/isa.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static const struct opt_usage usage = {
    .no_arguments = "models are given by -m",
    .synopsis = "decode -m MODEL [-t N] [--ctx D] [-n N] [--mem LIMIT]",
    .about =
        "Measures one point in a new process: tokens per second, and how close that is "
        "to the memory bandwidth probed in the same run. FILE:QUANT quantises while "
        "loading. A file of --speculate holds a prompt, a line <answer>, and the "
        "answer.\n\n"
        "Exit code: 0 for a measured row, 1 without one (status no_fit, oom or "
        "error), 2 for wrong input, 3 if the machine or its permissions forbid it.",
    .example = "bench decode -m yi-1.5-9b:Q4_K_M -t 2 --ctx 1024 --mem 6G\n"
               "bench decode -m model.gguf --prefill 128 --cpus-quota 1.5\n"
               "bench decode -m yi-1.5-9b:Q4_K_M --speculate copy --budget 60",
};

struct raw {
    struct setting_request settings;
    const char *model, *quant, *cpus, *cache_dir;
};

/* A prefill point has only the threads of prefill; a decode point with equal counts is
 * one with one count. */
static void simplify_threads(struct point *p)
{
    if (p->kind == POINT_PREFILL && p->setup.n_threads_prefill)
        p->setup.n_threads = p->setup.n_threads_prefill;
    if (p->setup.n_threads_prefill == p->setup.n_threads)
        p->setup.n_threads_prefill = 0;
}

static enum status check_exclusive(const struct raw *raw, struct err *err)
{
    const char *const *given = raw->settings.text;

    if (!raw->model)
        return err_set(err, ST_USAGE,
                       "name the model: -m FILE.gguf or -m SHAPE:QUANT, as in "
                       "`bench decode -m tinyllama-1.1b:Q4_K_M`");
    if (raw->cpus && given[SETTING_placement])
        return err_set(err, ST_USAGE, "--cpus and --placement exclude each other");
    if (given[SETTING_speculate] && given[SETTING_prefill])
        return err_set(err, ST_USAGE,
                       "--speculate and --prefill exclude each other: one point is one "
                       "measurement");
    return ST_OK;
}

/* Every setting that was given; a text makes it a speculate point. */
static enum status apply_settings(struct point *p, const struct setting_request *given,
                                  struct err *err)
{
    enum status st = ST_OK;

    for (enum setting_id id = 0; id < SETTING_N && st == ST_OK; id++) {
        const char *text = setting_given(given, id);
        char what[40];
        size_t size;
        void *field;

        if (!text)
            continue;
        snprintf(what, sizeof what, "--%s", setting_row(id)->option);
        field = point_field(p, id, &size);
        if (id == SETTING_speculate)
            st = point_set_text(p, text, err);
        else if (model_setup_field(&p->setup, id, NULL))
            st = model_setup_set(&p->setup, id, text, what, err);
        else
            st = setting_parse(id, text, what, field, size, err);
    }
    if (given->text[SETTING_prefill])
        p->kind = POINT_PREFILL;
    return st ? st : point_check_sequences(p, err);
}

/* Within the requested quota, too. */
static int usual_threads(const struct point *p, const struct topology *topo)
{
    const int quota = p->setup.quota_hundredths, whole = quota < 100 ? 1 : quota / 100;

    return quota && whole < topo->threads_default ? whole : topo->threads_default;
}

static enum status apply(struct point *p, const struct raw *raw,
                         const struct topology *topo, struct err *err)
{
    const bool n_given = raw->settings.text[SETTING_threads];
    enum status status = check_exclusive(raw, err);

    if (status == ST_OK)
        status = apply_settings(p, &raw->settings, err);
    if (status)
        return status;
    if (!n_given)
        p->setup.n_threads = raw->cpus ? 0 : usual_threads(p, topo);
    p->setup.isa_disabled = isa_detected() & ~isa_usable();
    status = modelref_parse(&p->setup.model, raw->model, raw->cache_dir, err);
    if (status == ST_OK)
        status = modelref_set_quant(&p->setup.model, raw->quant, err);
    if (status == ST_OK && raw->cpus) {
        p->setup.explicit_cpus = true;
        status = placement_parse_cpus(raw->cpus, topo, &p->setup.n_threads,
                                      p->setup.n_threads_prefill, p->setup.cpus, err);
    }
    simplify_threads(p);
    if (status == ST_OK && p->setup.residency == WEIGHTS_MEMORY &&
        !p->setup.model.synthetic)
        status = err_set(err, ST_USAGE,
                         "--weights memory makes a synthetic model, but %s is a file; "
                         "name SHAPE:QUANT instead, or use --weights packed",
                         raw->model);
    return status;
}

enum status point_options_parse(struct point_options *o, int argc, char **argv,
                                const struct topology *topo, struct err *err)
{
    struct raw raw = {.model = NULL};
    struct point *p = &o->point;
    /* clang-format off */
    const struct opt model[] = {
        OPT_STR('m', "model", &raw.model, "MODEL", "GGUF file, Hugging Face folder, or SHAPE:QUANT"),
        OPT_STR(0, "quant", &raw.quant, "QUANT", "quantise F32, F16 or BF16 weights while loading"),
    };
    const struct opt others[] = {
        OPT_STR(0, "cpus", &raw.cpus, "LIST", "pin the threads to these CPUs, in this order"),
        OPT_STR(0, "cache-dir", &raw.cache_dir, "DIR", "where synthetic models are kept"),
        OPT_FLAG(0, "all", &o->all, "print every column, which `bench fields` explains"),
        OPT_FLAG(0, "json", &o->json, "print every column as JSON"),
        OPT_END
    };
    /* clang-format on */
    struct opt opts[LENGTH(model) + SETTING_N + LENGTH(others)];
    struct opt_args args;
    enum status status;
    size_t n = LENGTH(model);

    memset(o, 0, sizeof *o);
    point_init(p);
    memcpy(opts, model, sizeof model);
    n += setting_options(opts + n, &raw.settings, SETTING_DECODE);
    memcpy(opts + n, others, sizeof others);
    status = opt_parse(&args, argc, argv, opts, &usage, err);
    o->help = status == ST_OK && args.help;
    if (status || o->help)
        return status;
    return apply(p, &raw, topo, err);
}
