/* SPDX-License-Identifier: MIT
 *
 * unicode_normalize.c - normal forms
 *
 * A text is taken in segments: a character that nothing before it can change, and those
 * behind it that it may compose or change places with. A segment is decomposed, its
 * marks are ordered by their classes, and for NFC and NFKC it is composed again. What
 * needs none of this is copied: for NFC that is all but segments with a character that
 * composes, or with marks that are not in the order of their classes.
 */
#include "engine/base/unicode_impl.h"

#include <stdlib.h>
#include <string.h>

#define S_BASE 0xac00u /* Hangul: 19 x 21 x 28 syllables */
#define L_BASE 0x1100u
#define V_BASE 0x1161u
#define T_BASE 0x11a7u

#define FEW 16 /* marks that are sorted by insertion */

struct normalizer {
    enum unicode_form form;
    uint32_t *v; /* the segment */
    size_t n, cap;
    uint32_t *spare; /* [cap] to sort with */
    char *out;
    size_t n_out, cap_out;
    bool failed;
};

static bool composes(const struct normalizer *z)
{
    return z->form == UNICODE_NFC || z->form == UNICODE_NFKC;
}

static bool reserve_out(struct normalizer *z, size_t more)
{
    if (z->cap_out - z->n_out < more) {
        const size_t cap = (z->n_out + more) * 2;
        char *out = realloc(z->out, cap);

        z->failed |= !out;
        if (!out)
            return false;
        z->out = out;
        z->cap_out = cap;
    }
    return true;
}

static void put_bytes(struct normalizer *z, const char *text, size_t n)
{
    if (!n || !reserve_out(z, n))
        return;
    memcpy(z->out + z->n_out, text, n);
    z->n_out += n;
}

/* ---- segments -------------------------------------------------------------------- */

static void order_few(uint32_t *v, size_t begin, size_t end)
{
    for (size_t i = begin + 1; i < end; i++) {
        const uint32_t c = v[i];
        size_t to = i;

        for (; to > begin && unicode_class(v[to - 1]) > unicode_class(c); to--)
            v[to] = v[to - 1];
        v[to] = c;
    }
}

static void order_many(struct normalizer *z, size_t begin, size_t end)
{
    size_t at[257] = {0};

    for (size_t i = begin; i < end; i++)
        at[unicode_class(z->v[i]) + 1]++;
    for (int c = 1; c < 257; c++)
        at[c] += at[c - 1];
    for (size_t i = begin; i < end; i++)
        z->spare[at[unicode_class(z->v[i])]++] = z->v[i];
    memcpy(z->v + begin, z->spare, (end - begin) * sizeof *z->v);
}

/* Marks between two starters by class, those of one class in their order. */
static void order(struct normalizer *z, size_t begin, size_t end)
{
    if (end - begin <= FEW)
        order_few(z->v, begin, end);
    else
        order_many(z, begin, end);
}

static uint32_t compose(uint32_t a, uint32_t b)
{
    if (a >= L_BASE && a < L_BASE + 19 && b >= V_BASE && b < V_BASE + 21)
        return S_BASE + ((a - L_BASE) * 21 + (b - V_BASE)) * 28;
    if (a >= S_BASE && a < S_BASE + 11172 && (a - S_BASE) % 28 == 0 && b > T_BASE &&
        b < T_BASE + 28)
        return a + (b - T_BASE);
    return unicode_compose(a, b);
}

static void compose_all(struct normalizer *z)
{
    size_t starter = 0, kept = 1;
    int last = unicode_class(z->v[0]) ? 256 : -1; /* class before; -1: the starter */

    for (size_t i = 1; i < z->n; i++) {
        const int class = unicode_class(z->v[i]);
        const uint32_t whole =
            last < class && last < 256 ? compose(z->v[starter], z->v[i]) : 0;

        if (whole) {
            z->v[starter] = whole;
            continue;
        }
        if (!class) {
            starter = kept;
            last = -1;
        } else {
            last = class;
        }
        z->v[kept++] = z->v[i];
    }
    z->n = kept;
}

static void flush(struct normalizer *z)
{
    for (size_t i = 0; i < z->n;) {
        size_t end = i;

        while (end < z->n && unicode_class(z->v[end]))
            end++;
        order(z, i, end);
        i = end + 1;
    }
    if (z->n && composes(z))
        compose_all(z);
    for (size_t i = 0; i < z->n && reserve_out(z, 4); i++)
        z->n_out += unicode_put(z->v[i], z->out + z->n_out);
    z->n = 0;
}

static void push(struct normalizer *z, uint32_t c)
{
    if (z->n && !unicode_is_behind(c))
        flush(z);
    if (z->n == z->cap) {
        const size_t cap = z->cap * 2 + 64;
        uint32_t *v = realloc(z->v, cap * sizeof *v);

        z->v = v ? v : z->v;
        free(z->spare);
        z->spare = v ? malloc(cap * sizeof *v) : NULL;
        z->failed |= !z->spare;
        if (!z->spare)
            return;
        z->cap = cap;
    }
    z->v[z->n++] = c;
}

/* Mappings of mappings are a few deep. */
static void decompose(struct normalizer *z, uint32_t c)
{
    const bool compat = z->form == UNICODE_NFKC || z->form == UNICODE_NFKD;
    const struct unicode_mapping *m;

    if (c >= S_BASE && c < S_BASE + 11172) {
        const uint32_t s = c - S_BASE;

        push(z, L_BASE + s / 588);
        push(z, V_BASE + s % 588 / 28);
        if (s % 28)
            push(z, T_BASE + s % 28);
        return;
    }
    m = c < 0xa0 ? NULL : unicode_mapping(c);
    if (!m || (m->compat && !compat)) {
        push(z, c);
        return;
    }
    for (int i = 0; i < m->n; i++)
        decompose(z, unicode_mapped(m)[i]);
}

/* Bytes of text[len] that stay as they are in NFC, whatever follows. */
static size_t unchanged_nfc(const char *text, size_t len)
{
    size_t at = 0, segment = 0;
    int last = 0; /* class of the mark before */

    for (size_t n; at < len; at += n ? n : 1) {
        const size_t plain = unicode_below(text + at, len - at, 0xcc); /* U+0300 */

        if (plain) {
            at += plain;
            segment = at - 1; /* not the last one, which may compose */
            last = 0;
        }
        if (at == len)
            return len;
        const uint32_t c = unicode_at(text + at, len - at, &n);
        const bool behind = n && unicode_is_behind(c);
        const int class = behind ? unicode_class(c) : 0;

        if (behind && (class < last || unicode_composes(c)))
            break;
        if (!class)
            segment = at;
        last = class;
    }
    if (at >= len)
        return len;
    while (segment > 0 && ((unsigned char)text[segment] & 0xc0) == 0x80)
        segment--;
    return segment;
}

/* The same in the other forms: one character may be behind any other. */
static size_t unchanged(enum unicode_form form, const char *text, size_t len)
{
    if (form == UNICODE_NFC)
        return unchanged_nfc(text, len);
    const size_t at = unicode_below(text, len, 0x80);

    return at < len && at ? at - 1 : at;
}

bool unicode_is_normal(enum unicode_form form, const char *text, size_t len)
{
    unicode_load();
    return unchanged(form, text, len) == len;
}

enum status unicode_normalize(enum unicode_form form, const char *text, size_t len,
                              char **out, size_t *n_out, struct err *err)
{
    struct normalizer z = {.form = form};

    unicode_load();
    reserve_out(&z, len + 1);
    for (size_t at = 0; at < len && !z.failed;) {
        size_t n = z.n ? 0 : unchanged(form, text + at, len - at);

        put_bytes(&z, text + at, n);
        at += n;
        for (bool first = true; at < len && !z.failed; first = false) {
            const uint32_t c = unicode_at(text + at, len - at, &n);

            if (!n || (!first && form == UNICODE_NFC && !unicode_is_behind(c)))
                break;
            decompose(&z, c);
            at += n;
        }
        flush(&z);
        if (at < len && !n)
            put_bytes(&z, text + at++, 1);
    }
    free(z.v);
    free(z.spare);
    if (z.failed) {
        free(z.out);
        return err_set(err, ST_NO_MEMORY, "no memory to normalise %zu bytes", len);
    }
    *out = z.out;
    *n_out = z.n_out;
    return ST_OK;
}
