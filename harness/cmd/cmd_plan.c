/* SPDX-License-Identifier: MIT
 *
 * cmd_plan.c - `bench plan`: memory use and speed before loading a model
 */
#include "harness/cmd/cmd.h"

#include <stdlib.h>

#include "harness/base/interrupt.h"
#include "harness/machine/measuring.h"
#include "harness/measure/plan/plan.h"

static const struct opt_usage usage = {
    .synopsis = "plan -m MODEL [--draft MODEL] [--mem LIMIT] [--ctx D] [-t N] "
                "[--machine FILE]",
    .about = "Predicts before a model is loaded whether it fits into memory, how much "
             "of it must be read again from disk for every token if it does not, and "
             "how many tokens per second to expect. Nothing is loaded; a synthetic "
             "model need not have been made.\n"
             "\n"
             "The limit is the least of --mem, of what memory cgroups leave (see "
             "`bench topo`) and of the available memory. Speed is that of the slower "
             "of memory and disk. Both are measured in a second or two, or read with "
             "--machine from the output of `bench probe --json` or a sweep's "
             "machine.json. Measured speeds are expected within 15 % of the "
             "prediction. What speculative decoding would gain follows from the cost "
             "of passes of several tokens, which are measured, too.\n"
             "\n"
             "Exit code: 0, or 1 if the model does not fit even with all layers "
             "streamed.",
    .example = "bench plan -m yi-1.5-9b:Q6_K --mem 6G --ctx 4096\n"
               "bench plan -m model.gguf --mem 6G --machine machine.json --json",
    .no_arguments = "models are given by -m",
};

#define USUAL_CTX 4096 /* as in a sweep */

struct settings {
    struct point point;
    const char *model, *quant, *draft, *cache_dir, *machine;
    struct modelref draft_ref;
    int ctx;
    bool json;
};

static enum status parse(struct settings *s, int argc, char **argv,
                         struct opt_args *args, struct err *err)
{
    struct model_setup *setup = &s->point.setup;
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STR('m', "model", &s->model, "MODEL", "GGUF file, Hugging Face folder, or SHAPE:QUANT"),
        OPT_STR(0, "quant", &s->quant, "QUANT", "predict for weights quantised while loading"),
        OPT_STR(0, "draft", &s->draft, "MODEL", "predict what this draft model gains"),
        model_setup_option(SETTING_mem, setup),
        OPT_INT(0, "ctx", &s->ctx, "D", "tokens in the KV cache (default: 4096, or the model's context if that is less)", 0, SETTING_MAX(ctx)),
        model_setup_option(SETTING_threads, setup),
        model_setup_option(SETTING_batch, setup),
        model_setup_option(SETTING_weights, setup),
        model_setup_option(SETTING_kv_type, setup),
        model_setup_option(SETTING_prefill_sums, setup),
        OPT_STR(0, "machine", &s->machine, "FILE", "read speeds from FILE (default: measure them)"),
        OPT_STR(0, "cache-dir", &s->cache_dir, "DIR", "where synthetic models are kept"),
        OPT_FLAG(0, "json", &s->json, "print JSON"),
        OPT_END,
    };
    /* clang-format on */
    enum status st = opt_parse(args, argc, argv, opts, &usage, err);

    if (st || args->help)
        return st;
    if (!s->model)
        return err_set(err, ST_USAGE,
                       "name the model: -m FILE.gguf or -m SHAPE:QUANT, as in `bench "
                       "plan -m yi-1.5-9b:Q6_K --mem 6G`");
    st = modelref_parse(&setup->model, s->model, s->cache_dir, err);
    if (st == ST_OK)
        st = modelref_set_quant(&setup->model, s->quant, err);
    if (st == ST_OK && s->draft)
        st = modelref_parse(&s->draft_ref, s->draft, s->cache_dir, err);
    if (st == ST_OK && setup->residency == WEIGHTS_MEMORY && !setup->model.synthetic)
        st = err_set(err, ST_USAGE,
                     "--weights memory makes a synthetic model, but %s is a file; name "
                     "SHAPE:QUANT instead, or use --weights packed",
                     s->model);
    s->point.ctx = s->ctx < 0 ? 0 : s->ctx;
    return st;
}

static enum status find_roofs(struct plan *plan, const struct settings *s,
                              struct topology *topo, struct err *err)
{
    enum status st;

    if (s->machine)
        return plan_read_roofs(plan, s->machine, err);
    st = measuring_begin(err);
    if (st == ST_OK)
        st = plan_measure_roofs(plan, topo, err);
    return st ? st : plan_measure_columns(plan, topo, err);
}

static enum status add_draft(struct plan *plan, const struct settings *s,
                             const struct topology *topo, struct err *err)
{
    struct plan *draft = calloc(1, sizeof *draft);
    struct point *p = malloc(sizeof *p);
    enum status st = ST_OK;

    if (!draft || !p) {
        st = err_set(err, ST_NO_MEMORY, "no memory for a plan");
    } else {
        *p = s->point;
        p->setup.model = s->draft_ref;
        st = plan_make(draft, p, topo, err);
        if (st == ST_OK)
            plan_set_draft(plan, draft);
    }
    free(draft);
    free(p);
    return st;
}

static enum status make(struct plan *plan, struct settings *s, struct topology *topo,
                        struct err *err)
{
    enum status st;

    if (!(s->point.setup.given & SETTING_BIT(threads)))
        s->point.setup.n_threads = topo->threads_default;
    st = plan_make(plan, &s->point, topo, err);
    /* Some models refuse more than they were made for. */
    if (st == ST_OK && s->ctx < 0) {
        const int most = plan->need.model_ctx;

        s->point.ctx = most > 0 && most < USUAL_CTX ? most : USUAL_CTX;
        st = plan_make(plan, &s->point, topo, err);
    }
    if (st || plan->verdict == PLAN_PAGES || plan->verdict == PLAN_NO_FIT)
        return st;
    st = find_roofs(plan, s, topo, err);
    if (st == ST_OK)
        plan_predict(plan);
    return st == ST_OK && s->draft ? add_draft(plan, s, topo, err) : st;
}

static enum status run(struct settings *s, int *code, struct err *err)
{
    struct topology *topo = NULL;
    struct plan *plan = calloc(1, sizeof *plan);
    enum status st = plan ? topology_open(&topo, "", err)
                          : err_set(err, ST_NO_MEMORY, "no memory for a plan");

    if (st == ST_OK)
        st = make(plan, s, topo, err);
    if (st == ST_OK && s->json)
        st = cmd_print_json(plan_json(plan), 6, err);
    else if (st == ST_OK)
        plan_print(stdout, plan);
    *code = st == ST_OK && plan->verdict == PLAN_NO_FIT;
    free(plan);
    free(topo);
    return st;
}

int cmd_plan(int argc, char **argv)
{
    struct settings *s = calloc(1, sizeof *s);
    struct err err = ERR_INIT;
    struct opt_args args = {.help = false};
    int code = 0;

    if (!s) {
        err_set(&err, ST_NO_MEMORY, "no memory for settings");
        return cmd_end(&err);
    }
    interrupt_catch();
    point_init(&s->point);
    s->ctx = -1;
    if (parse(s, argc, argv, &args, &err) == ST_OK && !args.help)
        run(s, &code, &err);
    free(s);
    return err.code ? cmd_end(&err) : code;
}
