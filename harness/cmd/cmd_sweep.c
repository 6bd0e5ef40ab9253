/* SPDX-License-Identifier: MIT
 *
 * cmd_sweep.c - `bench sweep`: the main job
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/progress.h"
#include "harness/base/interrupt.h"
#include "harness/decide/history/history_db.h"
#include "harness/decide/history/history_options.h"
#include "harness/measure/sweep/sweep.h"
#include "harness/rows/result_set.h"
#include "harness/show/report/report.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static const struct opt_usage usage = {
    .synopsis = "sweep -m MODEL... [-c CONFIG] [--mem 6G|none] [-o DIR]",
    .about =
        "Measures all combinations of the lists, in rounds. Defaults (default.yaml "
        "in configs/sweeps): all threads, --ctx 0,4096, --prefill 64, 3 launches, "
        "24 tokens or 6 s each. Exit code 1: no point measured; 3: none fits; 4: "
        "some failed.",
    .example = "bench sweep -m yi-1.5-9b:Q4_K_M,Q4_0 -m own.gguf --mem 6G",
    .no_arguments = "models are given by -m, a configuration by -c",
};

/* From the rows as they are stored, so that `recommend` and `plot` agree later:
 * roofs that were low compared with an earlier round need not be low compared with all.
 * Where they or their side files cannot be read, that is printed and those in memory
 * are used. Error: where no point has a figure. */
static enum status conclude(const struct sweep_session *x, bool charts, struct err *err)
{
    struct err why = ERR_INIT;
    struct result_set stored;
    const struct result_run here = {
        .dir = (char *)(uintptr_t)sweep_dir_path(x->dir)}; /* is only read */
    struct result_part part = {.run = &here};
    enum status st;

    if (result_set_open(&stored, here.dir, RESULT_LAST, &why) == ST_OK) {
        part = stored.parts[0];
    } else {
        printf("%s\n", why.msg);
        part.rows = (struct row *)(uintptr_t)sweep_dir_rows(x->dir, &part.n);
    }
    st = report_sweep(stdout, &part, x->one_at_a_time, charts, err);
    result_set_free(&stored);
    return st;
}

static void print_how_to_draw(const struct sweep_session *x)
{
    char again[1400] = "bench plot";

    shell_word_append(again, sizeof again, sweep_dir_path(x->dir));
    fprintf(stderr, "bench: all points are measured; to draw the charts: %s\n", again);
}

static void print_how_to_continue(const struct sweep_session *x,
                                  const struct sweep_request *q)
{
    char again[4000] = "bench sweep --resume";

    shell_word_append(again, sizeof again, sweep_dir_path(x->dir));
    if (q->cache_dir) {
        text_append(again, sizeof again, " --cache-dir");
        shell_word_append(again, sizeof again, x->settings.cache_dir);
    }
    for (int i = 0; i < x->settings.n_engines; i++) {
        text_append(again, sizeof again, " --engine");
        shell_word_append(again, sizeof again, x->settings.engines[i]);
    }
    fprintf(stderr, "bench: to continue: %s\n", again);
}

/* The rows, also those of a sweep without a figure. */
static void add_to_database(const struct sweep_session *x, const char *path,
                            struct err *err)
{
    const char *const dir = sweep_dir_path(x->dir);
    const struct history_options options = {
        .path = path, .rows = {.v = (const char *[]){dir}, .n = 1}};
    struct err why = ERR_INIT;

    if (path && history_add(&options, &why) && err->code == ST_OK)
        err_set(err, why.code, "%s", why.msg);
    else if (why.code)
        message_print(why.msg);
}

struct request {
    struct sweep_request sweep;
    const char *add_to;
    bool no_charts;
};

/* A database that the rows could not be added to is refused before they are measured.
 */
static int run(struct sweep_session *x, const struct request *q)
{
    const bool measures = !q->sweep.dry_run;
    struct err err = ERR_INIT;
    bool done = false;
    int code;

    if (!measures || !q->add_to || history_db_check_output(q->add_to, &err) == ST_OK)
        done = sweep_session_run(x, &q->sweep, &err) == ST_OK;
    if (done && measures) {
        conclude(x, !q->no_charts, &err);
        add_to_database(x, q->add_to, &err);
    }
    code = cmd_end(&err);
    if (err.code == ST_INTERRUPTED && done)
        print_how_to_draw(x);
    else if (err.code == ST_INTERRUPTED && x->dir)
        print_how_to_continue(x, &q->sweep);
    return code;
}

/* A sweep continues with the settings in its machine.json: another one that is named is
 * not dropped without a word. Error: ST_USAGE. */
static enum status check_resume(const struct sweep_request *q, struct err *err)
{
    const char *given = q->config     ? "config"
                        : q->models.n ? "model"
                        : q->out      ? "output"
                                      : NULL;

    for (int id = 0; id < SETTING_N && !given; id++)
        if (setting_given(&q->settings, (enum setting_id)id))
            given = setting_row((enum setting_id)id)->option;
    return !q->resume || !given
               ? ST_OK
               : err_set(err, ST_USAGE,
                         "--%s and --resume exclude each other: a sweep continues with "
                         "its own settings",
                         given);
}

int cmd_sweep(int argc, char **argv)
{
    struct request q = {.sweep = {.argc = argc, .argv = argv}};
    /* clang-format off */
    const struct opt model[] = {
        OPT_STR('c', "config", &q.sweep.config, "CONFIG", "YAML file, or a name in configs/sweeps"),
        OPT_STRS('m', "model", &q.sweep.models, "MODEL", "GGUF file, Hugging Face folder, or SHAPE:QUANT,..."),
        OPT_STRS(0, "engine", &q.sweep.engines, "NAME=CMD", "also measure NAME=PATH/llama-bench (or llama-server)"),
    };
    const struct opt others[] = {
        OPT_STR('o', "output", &q.sweep.out, "DIR", "output directory (default: results/<host>-<utc>)"),
        OPT_STR(0, "resume", &q.sweep.resume, "DIR", "continue the sweep in DIR, with its settings"),
        OPT_STR(0, "add-to", &q.add_to, "DB", "add the rows to this database of `bench history`"),
        OPT_STR(0, "cache-dir", &q.sweep.cache_dir, "DIR", "where synthetic models are made"),
        OPT_FLAG(0, "no-probe", &q.sweep.no_probe, "skip the bandwidth, cache and SMT probes"),
        OPT_FLAG(0, "no-charts", &q.no_charts, "draw no charts"),
        OPT_FLAG(0, "dry-run", &q.sweep.dry_run, "print the points in their order, measure none"),
        OPT_END
    };
    /* clang-format on */
    struct opt opts[LENGTH(model) + SETTING_N + LENGTH(others)];
    size_t n = LENGTH(model);
    struct opt_args args;
    struct err err = ERR_INIT;
    struct sweep_session *x;
    int code;

    memcpy(opts, model, sizeof model);
    n += setting_options(opts + n, &q.sweep.settings, SETTING_OPTION_SWEEP);
    memcpy(opts + n, others, sizeof others);
    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help ||
        check_resume(&q.sweep, &err))
        return cmd_end(&err);
    x = calloc(1, sizeof *x);
    if (!x)
        return cmd_end((err_set(&err, ST_NO_MEMORY, "no memory"), &err));
    interrupt_catch();
    code = run(x, &q);
    sweep_session_close(x);
    free(x);
    free(q.sweep.models.v);
    free(q.sweep.engines.v);
    return code;
}
