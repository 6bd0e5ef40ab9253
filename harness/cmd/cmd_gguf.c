/* SPDX-License-Identifier: MIT
 *
 * cmd_gguf.c - `bench gguf`: describe a GGUF file, or extract a tensor
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/utf8.h"
#include "engine/gguf/gguf.h"
#include "engine/quantize/dequant.h"
#include "engine/text/chat.h"
#include "harness/base/interrupt.h"
#include "harness/base/newfile.h"
#include "harness/base/suggest.h"
#include "harness/machine/fence/fence.h"
#include "harness/model/gguf_report.h"
#include "harness/model/modelref.h"

struct output {
    const char *path; /* "-": standard output */
    struct newfile file;
};

static enum status write_floats(void *arg, const float *v, size_t n, struct err *err)
{
    const struct output *out = arg;

    if (fwrite(v, sizeof *v, n, out->file.f) != n)
        return err_set_errno(err, ST_IO, "cannot write to %s", out->path);
    return ST_OK;
}

/* A model by its name; a synthetic one is made. The output is none of its files, which
 * are mapped. */
static enum status find_model(struct modelref *ref, const char *model, const char *out,
                              struct err *err)
{
    enum status st = modelref_parse(ref, model, NULL, err);

    if (st == ST_OK)
        st = modelref_check_output(ref, out, err);
    return st ? st : modelref_make_file(ref, NULL, err);
}

static enum status output_open(struct output *out, const char *path, struct err *err)
{
    out->path = path;
    if (!strcmp(path, "-") && isatty(STDOUT_FILENO))
        return err_set(
            err, ST_USAGE,
            "raw float32 values would garble a terminal; name a file with -o");
    return newfile_open(&out->file, path, err);
}

/* Removes a file that could not be completed. */
static enum status output_close(struct output *out, enum status st, struct err *err)
{
    if (st)
        newfile_abort(&out->file);
    else
        st = newfile_commit(&out->file, out->path, err);
    return st;
}

static enum status no_such_tensor(const struct gguf *g, const char *name,
                                  struct err *err)
{
    const size_t n = gguf_n_tensors(g);
    const char **names = calloc(n + 1, sizeof *names);
    char shown[96], hint[128] = "; `bench gguf FILE --tensors` lists them";

    for (size_t i = 0; names && i < n; i++)
        names[i] = gguf_tensor_at(g, i)->name;
    const char *near = names ? suggest(name, names, (int)n) : NULL;

    if (near) {
        utf8_printable(shown, sizeof shown, near, strlen(near));
        snprintf(hint, sizeof hint, "; did you mean '%s'?", shown);
    }
    free(names);
    return err_set(err, ST_USAGE, "%s has no tensor '%s'%s", gguf_path(g), name, hint);
}

static enum status extract(const struct gguf *g, const char *name, const char *path,
                           struct err *err)
{
    const struct gguf_tensor *t = gguf_tensor_find(g, name);
    struct output out;
    enum status st;

    if (!t)
        return no_such_tensor(g, name, err);
    if (t->fmt == KERN_N_FMT) /* before the file is created */
        return dequant_tensor(g, t, isa_usable(), NULL, NULL, err);
    if ((st = output_open(&out, path, err)))
        return st;
    st = dequant_tensor(g, t, isa_usable(), write_floats, &out, err);
    return output_close(&out, st, err);
}

static enum status compare(const struct gguf *g, const struct modelref *with,
                           bool tensors, struct err *err)
{
    struct gguf *ref;
    enum status st = modelref_open(with, &ref, err);

    if (st)
        return st;
    interrupt_catch();
    st = gguf_compare_print(g, ref, tensors, err);
    gguf_close(ref);
    return st;
}

/* What the chat template can do, by running it. */
static void print_chat(const struct gguf *g)
{
    struct chat_template *c = NULL;
    struct tokenizer *tok = NULL;
    struct chat_abilities can;
    struct err err = ERR_INIT;

    if (!chat_template_exists(g)) {
        puts("\nchat template: none");
    } else if (tokenizer_open(&tok, g, &err) ||
               chat_template_open(&c, g, tok, NULL, &err)) {
        printf("\nchat template: cannot be used: %s\n", err.msg);
    } else {
        can = chat_template_abilities(c);
        printf("\nchat template: %s, %s, %s\n",
               can.system ? "writes a system message" : "has no system message",
               can.tools ? "lists tools" : "has no tools",
               !can.thinking         ? "has no thinking"
               : can.thinking_switch ? "has thinking, which enable_thinking switches"
                                     : "has thinking");
        if (*chat_template_variants(c))
            printf("chat templates by name: %s\n", chat_template_variants(c));
    }
    chat_template_close(c);
    tokenizer_close(tok);
}

int cmd_gguf(int argc, char **argv)
{
    const char *tensor = NULL, *out = NULL, *rmse = NULL;
    bool json = false, tensors = false, metadata = false;
    /* clang-format off */
    const struct opt opts[] = {
        OPT_FLAG(0, "metadata", &metadata, "list only the metadata"),
        OPT_FLAG(0, "tensors", &tensors, "list only the tensors"),
        OPT_FLAG(0, "json", &json, "print one JSON object"),
        OPT_STR(0, "tensor", &tensor, "NAME", "write the dequantised values of this tensor"),
        OPT_STR(0, "rmse", &rmse, "REF", "error against REF by format, or with --tensors by tensor"),
        OPT_STR('o', "output", &out, "OUT", "file for the values; -: standard output"),
        OPT_END
    };
    /* clang-format on */
    const struct opt_usage usage = {
        .synopsis = "gguf FILE [--metadata] [--tensors] [--json]\n"
                    "       bench gguf FILE --tensor NAME -o OUT\n"
                    "       bench gguf FILE --rmse REF [--tensors]",
        .about =
            "Describes a GGUF file, or a Hugging Face folder or SHAPE:QUANT as one: "
            "header, metadata, tensors, totals per type, and the bytes read to decode "
            "one token; for an architecture that is unknown here the nearest known "
            "one, and what differs. Every count and offset in the file is checked "
            "first.\n\n--tensor writes the values of one tensor as raw little-endian "
            "float32, the fastest dimension first. --rmse compares the weights with "
            "those of REF, the file or folder that FILE was quantised from, by any "
            "program: root mean square of the differences, also relative to that of "
            "the weights.",
        .example = "bench gguf model.gguf\n"
                   "bench gguf model.gguf --tensor blk.0.attn_q.weight -o q.f32\n"
                   "bench gguf model-q4.gguf --rmse model-f16.gguf",
    };
    struct err err = ERR_INIT;
    struct opt_args args;
    struct modelref model, reference;
    struct gguf *g;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (args.n != 1)
        err_set(&err, ST_USAGE, "name one GGUF file, as in: bench gguf model.gguf");
    else if (tensor && !out)
        err_set(&err, ST_USAGE, "--tensor needs -o OUT, the file for its values");
    else if (out && !tensor)
        err_set(&err, ST_USAGE, "-o needs --tensor NAME, the tensor to write");
    else if (rmse && (tensor || json || metadata))
        err_set(&err, ST_USAGE, "--rmse accepts no other option than --tensors");
    if (err.code || find_model(&model, args.v[0], out, &err) ||
        (rmse && find_model(&reference, rmse, NULL, &err)) ||
        fence_enter_calls(-1, &err) || modelref_open(&model, &g, &err))
        return cmd_end(&err);

    if (tensor) {
        extract(g, tensor, out, &err);
    } else if (rmse) {
        compare(g, &reference, tensors, &err);
    } else {
        const bool both = metadata == tensors; /* neither requested: all */
        const struct gguf_report_parts parts = {.metadata = both || metadata,
                                                .tensors = both || tensors};

        if (json)
            gguf_report_json(g, parts, &err);
        else
            gguf_report_text(g, parts);
        if (!json && parts.metadata)
            print_chat(g);
        if (!json && both)
            gguf_nearest_text(g, &err);
    }
    gguf_close(g);
    return cmd_end(&err);
}
