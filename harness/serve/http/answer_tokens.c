/* SPDX-License-Identifier: MIT
 *
 * answer_tokens.c - texts as tokens, and back
 *
 * Source: the README of llama.cpp's server, for the names of fields.
 */
#include <stdlib.h>

#include "engine/base/utf8.h"
#include "harness/serve/http/answer_impl.h"

/* A part of a character as its bytes. */
static void put_piece(struct textbuf *out, const char *bytes, size_t n)
{
    if (utf8_is_valid(bytes, n)) {
        textbuf_put_json(out, bytes, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        textbuf_printf(out, "%c%d", i ? ',' : '[', (unsigned char)bytes[i]);
    textbuf_puts(out, "]");
}

bool answer_put_tokens(const struct answer_model *m, const struct api_request *r,
                       struct textbuf *out, struct refusal *refusal)
{
    const struct api_prompt *p = r->prompts;
    char *bytes = malloc(m->longest_token);
    struct err err = ERR_INIT;
    int32_t *ids = NULL;
    size_t n_ids = 0;
    bool ok = bytes || refuse(refusal, 503, NULL, NULL, "no memory for a token");

    if (ok &&
        (tokenizer_encode_up_to(m->tok, p->text, p->len, r->add_special,
                                r->parse_special, API_MAX_VALUES, &ids, &n_ids, &err) ||
         n_ids > API_MAX_VALUES))
        ok = err.code ? refuse_err(refusal, &err, "content")
                      : refuse(refusal, 400, NULL, "content",
                               "content has more than %d tokens", API_MAX_VALUES);
    textbuf_puts(out, "{\"tokens\":[");
    for (size_t i = 0; ok && i < n_ids && out->len <= m->memory->answer; i++) {
        textbuf_printf(out, r->with_pieces ? "%s{\"id\":%d,\"piece\":" : "%s%d",
                       i ? "," : "", (int)ids[i]);
        if (r->with_pieces) {
            put_piece(out, bytes, reply_token(m->tok, ids[i], bytes, m->longest_token));
            textbuf_puts(out, "}");
        }
    }
    textbuf_puts(out, "]}\n");
    free(ids);
    free(bytes);
    return ok;
}

bool answer_put_content(const struct answer_model *m, const struct api_request *r,
                        struct textbuf *out, struct refusal *refusal)
{
    struct textbuf text = {.text = NULL};
    char *bytes = malloc(m->longest_token);
    bool ok = bytes || refuse(refusal, 503, NULL, NULL, "no memory for a token");

    for (size_t i = 0; ok && i < r->prompts->n_ids && text.len <= m->memory->answer;
         i++)
        textbuf_put(&text, bytes,
                    reply_token(m->tok, r->prompts->ids[i], bytes, m->longest_token));
    ok = ok && answer_fits(m, text.len, refusal);
    textbuf_puts(out, "{\"content\":");
    textbuf_add_json(out, &text);
    textbuf_puts(out, "}\n");
    textbuf_free(&text);
    free(bytes);
    return ok;
}
