/* SPDX-License-Identifier: MIT
 *
 * utf8_stream.c - whole characters from the bytes of tokens: keep incomplete ones
 */
#include "engine/tokenizer/tokenizer.h"

#include <string.h>

#include "engine/base/utf8.h"

size_t utf8_stream_push(struct utf8_stream *s, const char *bytes, size_t len, char *out)
{
    size_t n_out = 0;

    for (size_t i = 0; i < len; i++) {
        s->pending[s->n_pending++] = bytes[i];

        /* One new byte can complete a character, extend an incomplete one, or show
         * that the kept bytes are malformed; then the last byte may begin a new
         * character. */
        int n;

        while (s->n_pending &&
               (n = utf8_char_len(s->pending, (size_t)s->n_pending)) >= 0) {
            const int take = n ? n : 1;

            memcpy(out + n_out, s->pending, (size_t)take);
            n_out += (size_t)take;
            s->n_pending -= take;
            memmove(s->pending, s->pending + take, (size_t)s->n_pending);
        }
    }
    return n_out;
}

size_t utf8_stream_flush(struct utf8_stream *s, char *out)
{
    const size_t n = (size_t)s->n_pending;

    memcpy(out, s->pending, n);
    s->n_pending = 0;
    return n;
}
