/* SPDX-License-Identifier: MIT
 *
 * cmd_synth.c - `bench synth`: a model of a real shape with random weights
 */
#include "harness/cmd/cmd.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/model/modelref.h"

/* "8.83 B", "3.7 M" */
static struct shown_figure params_text(uint64_t n)
{
    struct shown_figure shown;

    if (n >= 1000000000)
        snprintf(shown.text, sizeof shown.text, "%.2f B", (double)n * 1e-9);
    else
        snprintf(shown.text, sizeof shown.text, "%.1f M", (double)n * 1e-6);
    return shown;
}

/* ---- --list ---------------------------------------------------------------------- */

struct listed {
    struct synth_shape shape;
    uint64_t params;
    uint64_t bytes[QUANTMIX_N];
};

static enum status measure(struct listed *l, const char *name, struct err *err)
{
    if (shape_load(&l->shape, name, err))
        return err->code;
    return synth_file_sizes(&l->shape, l->bytes, &l->params, err);
}

/* F32 and BF16 are left out to fit in 80 columns. */
static const enum quantmix shown[] = {
    QUANTMIX_F16,    QUANTMIX_Q8_0,   QUANTMIX_Q6_K,   QUANTMIX_Q5_K_M,
    QUANTMIX_Q5_K_S, QUANTMIX_Q4_K_M, QUANTMIX_Q4_K_S, QUANTMIX_Q4_0,
};
enum { N_SHOWN = sizeof shown / sizeof shown[0] };

static void print_listed(const struct listed *l)
{
    printf("%-16s %7s", l->shape.name, params_text(l->params).text);
    for (int i = 0; i < N_SHOWN; i++) {
        const double size = (double)l->bytes[shown[i]] * 1e-9;

        printf(size < 0.1 ? " %6.4f" : " %6.2f", size);
    }
    printf("\n");
}

static json_t *listed_json(const struct listed *l)
{
    const struct synth_shape *s = &l->shape;
    json_t *bytes = json_object();

    for (int i = 0; i < QUANTMIX_N; i++)
        json_object_set_new(bytes, quantmix_name((enum quantmix)i),
                            json_integer((json_int_t)l->bytes[i]));
    return json_pack(
        "{s:s s:s s:I s:I s:I s:I s:I s:I s:I s:I s:I s:o}", "name", s->name, "arch",
        s->arch, "n_params", (json_int_t)l->params, "n_layers", (json_int_t)s->n_layers,
        "n_embd", (json_int_t)s->n_embd, "n_ff", (json_int_t)s->n_ff, "n_heads",
        (json_int_t)s->n_heads, "n_kv_heads", (json_int_t)s->n_kv_heads, "head_dim",
        (json_int_t)s->head_dim, "n_vocab", (json_int_t)s->n_vocab, "n_ctx_train",
        (json_int_t)s->n_ctx_train, "file_bytes", bytes);
}

static void print_table(const struct listed *all, int n)
{
    printf("%-16s %7s", "SHAPE", "params");
    for (int i = 0; i < N_SHOWN; i++)
        printf(" %6s", quantmix_name(shown[i]));
    printf("\n");
    for (int i = 0; i < n; i++)
        print_listed(&all[i]);
    printf("\nFile sizes in GB. F32 (twice F16) and BF16 (as F16) work, too.\n");
}

static enum status print_json(const struct listed *all, int n, struct err *err)
{
    json_t *shapes = json_array(), *root = json_pack("{s:o}", "shapes", shapes);

    for (int i = 0; i < n; i++)
        json_array_append_new(shapes, listed_json(&all[i]));
    return cmd_print_json(root, 0, err);
}

static enum status list_all(bool as_json, struct err *err)
{
    char **names = NULL;
    int n = 0, i;
    enum status st = shape_list(&names, &n, err);
    struct listed *all = calloc((size_t)n + 1, sizeof *all);

    if (!st && !all)
        st = err_set(err, ST_NO_MEMORY, "no memory for the list of shapes");
    for (i = 0; i < n && !st; i++)
        st = measure(&all[i], names[i], err);
    if (!st && as_json)
        st = print_json(all, n, err);
    else if (!st)
        print_table(all, n);
    for (i = 0; i < n; i++)
        free(names[i]);
    free(names);
    free(all);
    return st;
}

/* ---- writing a model ------------------------------------------------------------- */

static void print_made(const struct synth_plan *plan, const char *path,
                       const char *shape, const char *mix, double seconds, bool embeds)
{
    const double size = (double)synth_plan_bytes(plan) * 1e-9;
    char use[4 * 4096 + 48] = "";

    printf("%s: %s %s, %s parameters, ", format_path(path).text, shape, mix,
           params_text(synth_plan_params(plan)).text);
    if (size < 0.1)
        printf("%.1f MB\n", size * 1e3);
    else
        printf("%.2f GB in %s (%.2f GB/s)\n", size, duration_text(seconds).text,
               size / seconds);
    snprintf(use, sizeof use, "bench %s -m", embeds ? "embed" : "decode");
    shell_word_append(use, sizeof use, path);
    printf("measure it: %s%s\n", use, embeds ? " -f TEXTS" : "");
}

struct request {
    const char *out;
    uint64_t seed;
    double router_skew; /* NaN: the shape's */
};

static enum status make(const char *shape_name, const char *mix_name,
                        const struct request *r, struct err *err)
{
    struct synth_shape shape;
    struct synth_plan *plan;
    enum quantmix mix;
    struct path_list inputs = {0};
    enum status st = path_list_add(&inputs, shape_name, err);

    if (!st)
        st = path_list_check_output(&inputs, r->out, err);
    path_list_free(&inputs);
    if (!st)
        st = shape_load(&shape, shape_name, err);
    if (!st)
        st = mix_parse(&mix, mix_name, err);
    if (!st && !isnan(r->router_skew))
        shape.router_skew = (float)r->router_skew;
    if (!st)
        st = synth_plan_make(&plan, &shape, mix, r->seed, err);
    if (st)
        return st;

    const uint64_t begin = clock_ns();
    st = modelref_write_plan(plan, r->out, err);
    if (!st)
        print_made(plan, r->out, shape.name, quantmix_name(mix),
                   (double)(clock_ns() - begin) * 1e-9, *shape.pooling);
    synth_plan_free(plan);
    return st;
}

/* SHAPE QUANT, or SHAPE:QUANT as everywhere else; *text owns what is cut. */
static enum status shape_and_mix(const struct opt_args *args, char **text,
                                 const char *name[2], struct err *err)
{
    const char *colon = args->n == 1 ? strrchr(args->v[0], ':') : NULL;

    if (args->n == 2) {
        name[0] = args->v[0];
        name[1] = args->v[1];
        return ST_OK;
    }
    if (colon == NULL || colon == args->v[0] || colon[1] == '\0')
        return err_set(err, ST_USAGE,
                       "synth needs SHAPE:QUANT, as yi-1.5-9b:Q4_K_M, or SHAPE QUANT; "
                       "%d argument%s given; `bench synth --list` shows the shapes",
                       args->n, args->n == 1 ? " was" : "s were");
    if (!(*text = strdup(args->v[0])))
        return err_set(err, ST_NO_MEMORY, "out of memory");
    (*text)[colon - args->v[0]] = '\0';
    name[0] = *text;
    name[1] = *text + (colon - args->v[0]) + 1;
    return ST_OK;
}

int cmd_synth(int argc, char **argv)
{
    struct request r = {.seed = MODELREF_SEED, .router_skew = NAN};
    bool list = false, json = false;
    const char *name[2] = {NULL, NULL};
    char *text = NULL;
    const struct opt opts[] = {
        OPT_STR('o', "output", &r.out, "FILE", "the GGUF file to write"),
        OPT_U64(0, "seed", &r.seed, "N", "seed of the weights (default: 1)"),
        OPT_DOUBLE(0, "router-skew", &r.router_skew, "S",
                   "popularity of experts, 1/rank^S; 0: all alike (default: 0.7)", 0,
                   SYNTH_MAX_SKEW),
        OPT_FLAG(0, "list", &list, "list the shapes and their file sizes"),
        OPT_FLAG(0, "json", &json, "print the list as JSON"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "synth SHAPE:QUANT -o FILE [--seed N] [--router-skew S] | synth "
                    "--list [--json]",
        .about = "Writes a GGUF file of a real model's shape with random weights, for "
                 "measuring speed and memory; its text is meaningless. QUANT is a mix "
                 "of formats as in published files (Q4_K_M, Q8_0, ...); SHAPE is a "
                 "name from --list or a .yaml file like those in configs/models. "
                 "Routers of mixtures of experts prefer some experts, and tend to take "
                 "the same ones for token after token, as trained routers do.",
        .example = "bench synth yi-1.5-9b:Q4_K_M -o yi.gguf",
    };
    struct opt_args args;
    struct err err = ERR_INIT;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (list && args.n)
        err_set(&err, ST_USAGE, "unexpected argument '%s'; --list takes none",
                args.v[0]);
    else if (list)
        list_all(json, &err);
    else if (json)
        err_set(&err, ST_USAGE, "--json requires --list");
    else if (shape_and_mix(&args, &text, name, &err))
        ;
    else if (!r.out || !r.out[0])
        err_set(&err, ST_USAGE, "name the output file: -o FILE");
    else {
        interrupt_catch();
        make(name[0], name[1], &r, &err);
    }
    free(text);
    return cmd_end(&err);
}
