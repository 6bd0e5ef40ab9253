/* SPDX-License-Identifier: MIT
 *
 * answer_tokens.c - texts as tokens, and back, without an answer
 *
 * Source: the README of llama.cpp's server, for the names of fields.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "harness/serve/http/answer_impl.h"

/* A token's text; a control token, which has none, as it is spelled. *spelled is NULL
 * where bytes[] has it. */
static size_t token_bytes(const struct tokenizer *tok, int32_t id, char *bytes,
                          size_t cap, const char **spelled)
{
    const size_t n = tokenizer_piece(tok, id, bytes, cap);
    size_t len = 0;

    *spelled = NULL;
    if (n && n <= cap)
        return n;
    if (!tokenizer_is_unused(tok, id))
        *spelled = tokenizer_text(tok, id, &len);
    return len;
}

static bool is_text(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n;) {
        const int len = utf8_char_len(bytes + i, n - i);

        if (len <= 0)
            return false;
        i += (size_t)len;
    }
    return true;
}

/* A part of a character as its bytes. */
static void put_piece(struct textbuf *out, const char *bytes, size_t n)
{
    if (is_text(bytes, n)) {
        textbuf_put_json(out, bytes, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        textbuf_printf(out, "%c%d", i ? ',' : '[', (unsigned char)bytes[i]);
    textbuf_puts(out, "]");
}

static bool put_tokens(const struct answer_model *m, const struct api_request *r,
                       char *bytes, struct textbuf *out, struct refusal *refusal)
{
    const struct api_prompt *p = r->prompts;
    struct err err = ERR_INIT;
    int32_t *ids = NULL;
    const char *spelled;
    size_t n_ids = 0;

    if (p->len > (size_t)API_MAX_VALUES * m->longest_token ||
        tokenizer_encode(m->tok, p->text, p->len, r->add_special, r->parse_special,
                         &ids, &n_ids, &err) ||
        n_ids > API_MAX_VALUES) {
        free(ids);
        return err.code ? refuse_err(refusal, &err, "content")
                        : refuse(refusal, 400, NULL, "content",
                                 "content has more than %d tokens", API_MAX_VALUES);
    }
    textbuf_puts(out, "{\"tokens\":[");
    for (size_t i = 0; i < n_ids && out->len <= ANSWER_MAX_BYTES; i++) {
        textbuf_printf(out, r->with_pieces ? "%s{\"id\":%d,\"piece\":" : "%s%d",
                       i ? "," : "", (int)ids[i]);
        if (r->with_pieces) {
            const size_t n =
                token_bytes(m->tok, ids[i], bytes, m->longest_token, &spelled);

            put_piece(out, spelled ? spelled : bytes, n);
            textbuf_puts(out, "}");
        }
    }
    textbuf_puts(out, "]}\n");
    free(ids);
    return true;
}

static bool put_content(const struct answer_model *m, const struct api_request *r,
                        char *bytes, struct textbuf *out, struct refusal *refusal)
{
    struct textbuf text = {.text = NULL};
    const char *spelled;
    bool ok;

    textbuf_put(&text, "", 0);
    for (size_t i = 0; i < r->prompts->n_ids && text.len <= ANSWER_MAX_BYTES; i++) {
        const size_t n =
            token_bytes(m->tok, r->prompts->ids[i], bytes, m->longest_token, &spelled);

        textbuf_put(&text, spelled ? spelled : bytes, n);
    }
    ok = answer_fits(text.len, refusal);
    if (ok) {
        textbuf_puts(out, "{\"content\":");
        textbuf_put_json(out, text.text ? text.text : "", text.len);
        textbuf_puts(out, "}\n");
    }
    out->failed |= text.failed;
    textbuf_free(&text);
    return ok;
}

bool answer_tokens(const struct answer_model *m, enum api_kind kind, const char *body,
                   size_t len, struct textbuf *out, struct refusal *refusal)
{
    char *bytes = malloc(m->longest_token + 1);
    struct api_request r;
    bool ok = bytes || refuse(refusal, 503, NULL, NULL, "no memory for a token");

    if (ok && api_request_read(&r, kind, body, len, m->n_vocab, refusal)) {
        ok = answer_check_model(m, &r, refusal);
        if (ok && kind == API_TOKENIZE)
            ok = put_tokens(m, &r, bytes, out, refusal);
        else if (ok)
            ok = put_content(m, &r, bytes, out, refusal);
        api_request_free(&r);
    } else {
        ok = false;
    }
    free(bytes);
    if (ok && out->failed)
        ok = refuse(refusal, 503, NULL, NULL, "no memory for an answer");
    return ok && answer_fits(out->len, refusal);
}
