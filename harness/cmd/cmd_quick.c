/* SPDX-License-Identifier: MIT
 *
 * cmd_quick.c - `bench quick`: this machine in a minute
 */
#include "harness/cmd/cmd.h"

#include <stdlib.h>

#include "harness/base/interrupt.h"
#include "harness/model/modelref.h"
#include "harness/decide/quick/quick.h"

static const struct opt_usage usage = {
    .synopsis = "quick [-m MODEL...] [--seconds S] [--json]",
    .about = "Measures within about a minute how fast this machine runs language "
             "models: its cores and limits, how fast a small model and a model of 9 "
             "billion parameters (or the largest that fits into memory) decode and "
             "read a prompt, and estimates for other sizes. The models are synthetic "
             "and made in memory: nothing is downloaded or written.\n"
             "\n"
             "Rounds are repeated while time is left. Figures are medians of the "
             "rounds; disturbances are reported. `bench sweep` measures the settings "
             "of a model properly.",
    .example = "bench quick\n"
               "bench quick --mem 6G --min-tps 10\n"
               "bench quick -m model.gguf --seconds 20 --json",
    .no_arguments = "models are given by -m",
};

static enum status print(const struct quick_answer *a, const struct topology *topo,
                         bool json, struct err *err)
{
    json_t *object;

    if (!json) {
        quick_print(stdout, a);
        return ST_OK;
    }
    object = quick_json(a);
    if (object)
        json_object_set_new(object, "machine", topology_json(topo));
    return cmd_print_json(object, 6, err);
}

static enum status run(const struct quick_settings *s, bool json, struct err *err)
{
    struct topology *topo = NULL;
    struct quick_answer a = {.models = NULL};
    enum status st = topology_open(&topo, "", err);

    if (st == ST_OK)
        st = quick_run(&a, s, topo, err);
    if (st == ST_OK && !json)
        quick_print_machine(stdout, topo);
    if (st == ST_OK)
        st = print(&a, topo, json, err);
    quick_free(&a);
    free(topo);
    return st;
}

int cmd_quick(int argc, char **argv)
{
    struct quick_settings *s = calloc(1, sizeof *s);
    struct err err = ERR_INIT;
    struct opt_args args;
    bool json = false;

    if (!s) {
        err_set(&err, ST_NO_MEMORY, "no memory for settings");
        return cmd_end(&err);
    }
    point_init(&s->base);
    s->base.setup.n_threads = 0;
    *s = (struct quick_settings){.base = s->base,
                                 .seconds = 60,
                                 .want_tok_per_s = 20,
                                 .ctx = 4096,
                                 .n_prompt = 512};
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STRS('m', "model", &s->models, "MODEL", "model to measure: GGUF file, or SHAPE:QUANT,...; may be repeated"),
        OPT_SECONDS(0, "seconds", &s->seconds, "S", "total time, about (default 60); at least one round", 0.5, 3600),
        OPT_DOUBLE(0, "min-tps", &s->want_tok_per_s, "X", "also report the model size that reaches X tok/s (default 20)", 0.01, 1e6),
        OPT_INT(0, "ctx", &s->ctx, "D", "tokens in the KV cache (default 4096)", 0, SETTING_MAX(ctx)),
        OPT_INT(0, "prompt", &s->n_prompt, "N", "length of the prompt (default 512)", 1, SETTING_MAX(prefill)),
        model_setup_option(SETTING_threads, &s->base.setup),
        model_setup_option(SETTING_mem, &s->base.setup),
        model_setup_option(SETTING_cpus_quota, &s->base.setup),
        OPT_FLAG(0, "json", &json, "print JSON"),
        OPT_END,
    };
    /* clang-format on */

    if (opt_parse(&args, argc, argv, opts, &usage, &err) == ST_OK && !args.help) {
        interrupt_catch();
        if (modelref_expand_list(&s->models, &err) == ST_OK)
            run(s, json, &err);
    }
    free(s->models.v);
    free(s);
    return cmd_end(&err);
}
