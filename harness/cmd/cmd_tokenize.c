/* SPDX-License-Identifier: MIT
 *
 * cmd_tokenize.c - `bench tokenize`: the token ids of a text
 */
#include "harness/cmd/cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer.h"
#include "harness/base/textfile.h"
#include "harness/machine/fence/fence.h"
#include "harness/model/modelref.h"

static void print_ids(const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("%s%" PRId32, i ? " " : "", ids[i]);
    putchar('\n');
}

/* {"n_tokens": 2, "ids": [1, 2], "tokens": ["<s>", "</s>"]}: tokens as the
 * vocabulary spells them. */
static void print_json(const struct tokenizer *t, const int32_t *ids, size_t n)
{
    json_t *numbers = json_array(), *tokens = json_array();

    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *text = tokenizer_text(t, ids[i], &len);
        json_t *token = json_stringn(text, len);
        char shown[256];

        if (!token)
            token = json_string(utf8_printable(shown, sizeof shown, text, len));
        json_array_append_new(numbers, json_integer(ids[i]));
        json_array_append_new(tokens, token);
    }
    json_t *all = json_pack("{s:I, s:o, s:o}", "n_tokens", (json_int_t)n, "ids",
                            numbers, "tokens", tokens);

    textfile_put_json(stdout, all, 0);
    putchar('\n');
    json_decref(all);
}

static enum status load_tokenizer(struct tokenizer **t, const char *model,
                                  struct err *err)
{
    struct modelref ref;
    struct gguf *g;
    enum status st = modelref_parse(&ref, model, NULL, err);

    if (!st)
        st = modelref_make_file(&ref, NULL, err);
    if (!st)
        st = fence_enter_calls(-1, err);
    if (!st)
        st = modelref_open(&ref, &g, err);
    if (st)
        return st;
    st = tokenizer_open(t, g, err);
    gguf_close(g);
    return st;
}

struct request {
    const char *model, *text, *file;
    bool bos, special, json;
};

static enum status tokenize(const struct request *r, struct err *err)
{
    struct tokenizer *t = NULL;
    char *text = NULL;
    size_t len = r->text ? strlen(r->text) : 0;
    int32_t *ids = NULL;
    size_t n = 0;
    enum status st = load_tokenizer(&t, r->model, err);

    if (!st && r->file)
        st = textfile_read(r->file, TEXTFILE_MAX_BYTES, &text, &len, err);
    if (!st)
        st = tokenizer_encode(t, r->file ? text : r->text, len, r->bos, r->special,
                              &ids, &n, err);
    if (!st && r->json)
        print_json(t, ids, n);
    else if (!st)
        print_ids(ids, n);
    free(ids);
    free(text);
    tokenizer_close(t);
    return st;
}

int cmd_tokenize(int argc, char **argv)
{
    struct request r = {0};
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STR('m', "model", &r.model, "MODEL",
                "GGUF file or Hugging Face folder"),
        OPT_STR('f', "file", &r.file, "FILE", "read the text from a file; -: standard input"),
        OPT_FLAG(0, "bos", &r.bos, "prepend the beginning-of-sequence token"),
        OPT_FLAG(0, "special", &r.special, "recognise control tokens in the text, like </s>"),
        OPT_FLAG(0, "json", &r.json, "print ids and tokens as one JSON object"),
        OPT_END
    };
    /* clang-format on */
    const struct opt_usage usage = {
        .synopsis = "tokenize -m MODEL [TEXT | -f FILE] [--bos] [--special] [--json]",
        .about = "Prints the token ids of a text on one line, separated by blanks. The "
                 "text is used as it is, including the last newline of a file. Without "
                 "--bos and --special, all of it is plain text.",
        .example = "bench tokenize -m model.gguf 'Once upon a time'\n"
                   "bench tokenize -m model.gguf -f book.txt | wc -w",
        .no_kernels = true,
    };
    struct err err = ERR_INIT;
    struct opt_args args;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (!r.model)
        err_set(&err, ST_USAGE, "name the model's GGUF file or folder with -m MODEL");
    else if (args.n > 1)
        err_set(&err, ST_USAGE, "%d texts given; put quotes around one text", args.n);
    else if (args.n == 1 && r.file)
        err_set(&err, ST_USAGE,
                "give the text either as an argument or with -f, not both");
    else if (args.n == 0 && !r.file)
        err_set(&err, ST_USAGE,
                "give the text as an argument, or with -f FILE (-f - reads standard "
                "input)");
    if (err.code)
        return cmd_end(&err);
    r.text = args.n ? args.v[0] : NULL;
    return tokenize(&r, &err) ? cmd_end(&err) : 0;
}
