/* SPDX-License-Identifier: MIT
 *
 * test_prompt.c - finding a text, splitting it and cutting it into tokens
 */
#include "harness/model/test_prompt.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/synth/synth.h"
#include "harness/base/program.h"
#include "harness/base/format.h"
#include "harness/base/textfile.h"

#define MARK        "<answer>"
#define MAX_LETTERS 8
#define MAX_FIGURES 3

/* ---- the file -------------------------------------------------------------------- */

/* The names of all texts, "copy, free", into buf. */
static const char *list_texts(char *buf, size_t cap)
{
    struct err ignored = ERR_INIT;
    struct path_list names = {0};

    buf[0] = '\0';
    data_names(&names, "texts", ".txt", &ignored);
    for (size_t i = 0; i < names.n; i++)
        text_append(buf, cap, "%s%s", i ? ", " : "", names.path[i]);
    path_list_free(&names);
    return buf;
}

enum status test_prompt_find(const char *name, char *path, size_t cap, struct err *err)
{
    char file[300], shipped[4096], known[200];

    if (strchr(name, '/') || strchr(name, '.')) {
        if (snprintf(path, cap, "%s", name) >= (int)cap)
            return err_set(err, ST_USAGE, "%.60s...: too long a name for a text", name);
        if (!data_file_is_there(path))
            return err_set_errno(err, ST_USAGE, "cannot open the text %s", name);
        return ST_OK;
    }
    snprintf(file, sizeof file, "%.250s.txt", name);
    if (!data_file_find(shipped, sizeof shipped, "texts", file) ||
        snprintf(path, cap, "%s", shipped) >= (int)cap)
        return err_set(err, ST_USAGE,
                       "there is no text '%.60s'; name a file, or one of those that "
                       "come with the program: %s",
                       name, list_texts(known, sizeof known));
    return ST_OK;
}

/* Finds the line "<answer>": *end is where the prompt ends; returns the text after the
 * line, or NULL. */
static const char *find_answer(const char *text, size_t len, size_t *end)
{
    for (size_t at = 0; at < len;) {
        const char *line = text + at, *stop = memchr(line, '\n', len - at);
        const size_t n = stop ? (size_t)(stop - line) : len - at;

        if (n == strlen(MARK) && !memcmp(line, MARK, n)) {
            *end = at;
            return stop ? stop + 1 : line + n;
        }
        at += n + 1;
    }
    *end = len;
    return NULL;
}

/* ---- tokens by rule -------------------------------------------------------------- */

static size_t run_of(int (*is)(int), const char *text, size_t len, size_t most)
{
    size_t n = 0;

    while (n < len && n < most && is((unsigned char)text[n]))
        n++;
    return n;
}

/* Bytes of the next token; beyond ASCII each byte is a letter. */
static int is_letter(int c)
{
    return isalpha(c) || c >= 128;
}

static size_t token_bytes(const char *text, size_t len)
{
    const size_t blank = len > 1 && text[0] == ' ' && text[1] != ' ';
    size_t n = run_of(is_letter, text + blank, len - blank, MAX_LETTERS);

    if (!n)
        n = run_of(isdigit, text + blank, len - blank, MAX_FIGURES);
    return blank + (n ? n : 1);
}

struct piece {
    const char *text;
    size_t len;
};

/* Equal pieces get equal ids, from the end of the vocabulary, which in a synthetic one
 * has no control tokens. */
static enum status cut_by_rule(const char *text, size_t len, struct piece *known,
                               size_t *n_known, int32_t *ids, size_t *n, int n_vocab,
                               struct err *err)
{
    for (size_t at = 0; at < len;) {
        const struct piece p = {text + at, token_bytes(text + at, len - at)};
        size_t i = 0;

        while (i < *n_known &&
               (known[i].len != p.len || memcmp(known[i].text, p.text, p.len)))
            i++;
        if (i == *n_known)
            known[(*n_known)++] = p;
        if (*n_known >= (size_t)n_vocab)
            return err_set(err, ST_USAGE,
                           "the text has more than %d different words, the model's "
                           "vocabulary; take a shorter text",
                           n_vocab - 1);
        ids[(*n)++] = (int32_t)((size_t)n_vocab - 1 - i);
        at += p.len;
    }
    return ST_OK;
}

static enum status encode_by_rule(struct test_prompt *s, const char *prompt,
                                  size_t prompt_len, const char *answer,
                                  size_t answer_len, int n_vocab, struct err *err)
{
    const size_t most = prompt_len + answer_len + 1;
    struct piece *known = malloc(most * sizeof *known);
    size_t n_known = 0, n = 0;
    enum status st = ST_OK;

    s->ids = malloc(most * sizeof *s->ids);
    if (!known || !s->ids)
        st = err_set(err, ST_NO_MEMORY, "no memory for the tokens of a text");
    if (st == ST_OK)
        st = cut_by_rule(prompt, prompt_len, known, &n_known, s->ids, &n, n_vocab, err);
    s->n_prompt = n;
    if (st == ST_OK)
        st = cut_by_rule(answer, answer_len, known, &n_known, s->ids, &n, n_vocab, err);
    s->n_answer = n - s->n_prompt;
    free(known);
    return st;
}

/* ---- tokens by the vocabulary ---------------------------------------------------- */

static enum status encode(struct test_prompt *s, const char *prompt, size_t prompt_len,
                          const char *answer, size_t answer_len, struct err *err)
{
    int32_t *ids = NULL, *more = NULL, *both;
    size_t n = 0, n_more = 0;
    enum status st = tokenizer_encode(s->tok, prompt, prompt_len,
                                      tokenizer_adds_bos(s->tok), false, &ids, &n, err);

    if (st == ST_OK && answer_len)
        st = tokenizer_encode(s->tok, answer, answer_len, false, false, &more, &n_more,
                              err);
    both = st ? NULL : realloc(ids, (n + n_more + 1) * sizeof *ids);
    if (!st && !both)
        st = err_set(err, ST_NO_MEMORY, "no memory for the tokens of a text");
    if (st) {
        free(ids);
    } else {
        if (n_more)
            memcpy(both + n, more, n_more * sizeof *more);
        s->ids = both;
        s->n_prompt = n;
        s->n_answer = n_more;
    }
    free(more);
    return st;
}

/* The model's own vocabulary, where that knows words. */
static void open_tokenizer(struct test_prompt *s, const struct gguf *g, int n_vocab)
{
    struct err ignored = ERR_INIT;

    if (!g || synth_is_made(g) || tokenizer_open(&s->tok, g, &ignored))
        return;
    if (tokenizer_n_vocab(s->tok) > n_vocab) {
        tokenizer_close(s->tok);
        s->tok = NULL;
    }
}

enum status test_prompt_read(struct test_prompt *out, const char *name,
                             const struct gguf *g, int n_vocab, struct err *err)
{
    struct test_prompt s = {.ids = NULL};
    char path[4096], *text = NULL;
    const char *answer = NULL;
    size_t len = 0, prompt_len = 0, answer_len = 0;
    enum status st = test_prompt_find(name, path, sizeof path, err);

    if (st == ST_OK)
        st = textfile_read(path, TEXTFILE_MAX_BYTES, &text, &len, err);
    if (st)
        return st;
    answer = find_answer(text, len, &prompt_len);
    if (answer)
        answer_len = (size_t)(text + len - answer);
    open_tokenizer(&s, g, n_vocab);
    st = s.tok ? encode(&s, text, prompt_len, answer, answer_len, err)
               : encode_by_rule(&s, text, prompt_len, answer ? answer : "", answer_len,
                                n_vocab, err);
    if (st == ST_OK && !s.n_prompt)
        st = err_set(err, ST_INPUT, "%s holds no prompt before its answer", path);
    if (st == ST_OK && answer && s.n_answer < 2)
        st = err_set(err, ST_INPUT, "%s: nothing follows the line %s", path, MARK);
    free(text);
    if (st)
        test_prompt_free(&s);
    else
        *out = s;
    return st;
}

void test_prompt_free(struct test_prompt *s)
{
    free(s->ids);
    tokenizer_close(s->tok);
    memset(s, 0, sizeof *s);
}
