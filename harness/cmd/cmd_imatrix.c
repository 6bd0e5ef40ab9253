/* SPDX-License-Identifier: MIT
 *
 * cmd_imatrix.c - `bench imatrix`: importance matrices
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/measure/session/calibration.h"

static const struct opt_usage usage = {
    .synopsis = "imatrix -m MODEL --text FILE -o OUT.gguf [--ctx N] [--chunks N]",
    .about = "Evaluates the text with the model and writes the mean squares of the "
             "inputs of every matrix by column: an importance matrix, by which `bench "
             "quantize` weights errors. Use the F16 or Q8_0 model and a text of the "
             "intended kind; 100 chunks suffice. Ctrl-C writes what has been collected "
             "and prints how to continue.",
    .example = "bench imatrix -m model-f16.gguf --text some.txt -o im.gguf\n"
               "bench quantize model-f16.gguf model-iq2.gguf IQ2_XS --imatrix im.gguf",
    .no_arguments = "name the text with --text",
};

static void print_result(const struct calibration *c, const struct imatrix *im,
                         const struct calibration_result *r)
{
    size_t unseen = 0;

    for (size_t i = 0; i < imatrix_n_entries(im); i++)
        for (uint64_t s = 0; s < imatrix_entry_at(im, i)->n_slices; s++)
            unseen += !(imatrix_entry_at(im, i)->counts[s] > 0);
    printf("%s: %zu matrices, %zu chunk%s of %zu tokens in %s",
           format_path(c->out).text, imatrix_n_entries(im), r->done,
           r->done == 1 ? "" : "s", r->text.ctx, duration_text(r->seconds).text);
    if (imatrix_n_chunks(im) > r->done)
        printf(", %u with those of --in", imatrix_n_chunks(im));
    printf("\n");
    if (unseen)
        fprintf(stderr,
                "bench: %zu matrices of experts had no input; a longer text reaches "
                "more of them\n",
                unseen);
    if (r->done < r->text.n_chunks) {
        char in[4 * 4096 + 8] = "--in";

        shell_word_append(in, sizeof in, c->out);
        fprintf(stderr,
                "bench: stopped; continue with %s --from-chunk %zu, with another -o\n",
                in, r->text.from_chunk + r->done);
    } else {
        char use[8 * 4096 + 64] = "bench quantize --imatrix";

        shell_word_append(use, sizeof use, c->out);
        shell_word_append(use, sizeof use, c->session.model);
        printf("use it: %s OUT.gguf Q4_K_M\n", use);
    }
}

static enum status run(struct calibration *c, struct err *err)
{
    struct calibration_result r;
    struct imatrix *im = NULL;
    const enum status st = calibrate(&im, &r, c, err);

    if (im)
        print_result(c, im, &r);
    imatrix_free(im);
    return st;
}

static enum status check_options(const struct calibration *c, struct err *err)
{
    if (!c->session.model)
        return err_set(err, ST_USAGE, "name the model: -m FILE");
    if (!c->text)
        return err_set(err, ST_USAGE, "name the text: --text FILE");
    if (!c->out)
        return err_set(err, ST_USAGE, "name the output file: -o FILE");
    return ST_OK;
}

int cmd_imatrix(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct calibration c = {.session = {.n_ctx = CALIBRATION_CTX, .n_logits = 1}};
    struct opt_args args;
    const struct opt opts[] = {
        OPT_STR('m', "model", &c.session.model, "MODEL", "the GGUF file"),
        OPT_STR(0, "text", &c.text, "FILE", "the text, UTF-8; - is standard input"),
        OPT_STR('o', "output", &c.out, "OUT.gguf", "the importance matrix to write"),
        OPT_INT(0, "ctx", &c.session.n_ctx, "N", "tokens of a chunk (default: 512)", 8,
                1 << 20),
        OPT_INT(0, "chunks", &c.n_chunks, "N",
                "maximum number of chunks (default: all)", 1, 1 << 30),
        OPT_INT(0, "from-chunk", &c.from_chunk, "N", "skip the first N chunks", 0,
                1 << 30),
        OPT_STRS(0, "in", &c.in, "FILE", "add this importance matrix; may be repeated"),
        SESSION_OPT(c.session, threads),
        SESSION_OPT(c.session, weights),
        OPT_END,
    };

    if (opt_parse(&args, argc, argv, opts, &usage, &err) == ST_OK && !args.help) {
        interrupt_catch();
        if (check_options(&c, &err) == ST_OK)
            run(&c, &err);
    }
    free(c.in.v);
    return cmd_end(&err);
}
