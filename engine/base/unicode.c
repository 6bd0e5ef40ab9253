/* SPDX-License-Identifier: MIT
 *
 * unicode.c - the tables of unicode_data.def, and queries
 */
#include "engine/base/unicode_impl.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/unicode_data.def"
#include "engine/base/utf8.h"

#define MAX_MAPPINGS 6000
#define MAX_MAPPED   20000
#define MAX_CASES    4096
#define N_PAIRS      4096 /* slots of a table that is a quarter full */
#define MAX_STANDS   1024
#define MAX_SCRIPTS  2600 /* runs of one script */

struct stand {
    uint32_t first, last, other;
};

struct script {
    uint32_t first;
    int script;
};

struct pair {
    uint32_t a, b, whole;
};

struct cased {
    uint32_t c;
    uint8_t n;
    uint32_t to[UNICODE_MAX_CASE];
};

static struct {
    uint8_t category[UNICODE_END], class[UNICODE_END];
    uint8_t composes[UNICODE_END / 8]; /* bits: see unicode_composes() */
    uint8_t behind[UNICODE_END / 8];   /* bits: see unicode_is_behind() */
    struct unicode_mapping mapping[MAX_MAPPINGS];
    uint32_t mapped[MAX_MAPPED];
    size_t n_mappings, n_mapped;
    struct pair pairs[N_PAIRS];
    struct cased cases[3][MAX_CASES];
    size_t n_cases[3];
    struct stand stands[MAX_STANDS];
    size_t n_stands;
    struct script scripts[MAX_SCRIPTS];
    size_t n_scripts;
    uint8_t new[UNICODE_END / 8]; /* bits: it has a stand-in */
} t;

/* ---- unpacking ------------------------------------------------------------------- */

static uint32_t digit(char c)
{
    if (c <= '9')
        return c == '-' ? 62 : c == '+' ? 63 : (uint32_t)(c - '0');
    return c <= 'Z' ? (uint32_t)(c - 'A' + 10) : (uint32_t)(c - 'a' + 36);
}

static uint32_t number(const char **at)
{
    uint32_t n = 0;

    for (int shift = 0;; shift += 5) {
        const uint32_t d = digit(*(*at)++);

        n |= (d & 31) << shift;
        if (d < 32)
            return n;
    }
}

static uint32_t moved(const char **at, uint32_t from)
{
    const uint32_t n = number(at);

    return n & 1 ? from - (n + 1) / 2 : from + n / 2;
}

static void load_runs(uint8_t *to, const char *from)
{
    for (uint32_t c = 0; *from;) {
        const uint32_t n = number(&from);

        memset(to + c, (int)number(&from), n);
        c += n;
    }
}

static void set_bit(uint8_t *bits, uint32_t c)
{
    bits[c / 8] = (uint8_t)(bits[c / 8] | 1u << c % 8);
}

static bool has_bit(const uint8_t *bits, uint32_t c)
{
    return bits[c / 8] >> c % 8 & 1;
}

static void set_composes(uint32_t c)
{
    set_bit(t.composes, c);
    set_bit(t.behind, c);
}

static struct pair *slot_of(uint32_t a, uint32_t b)
{
    uint32_t i = (a * 2654435761u ^ b * 40503u) % N_PAIRS;

    while (t.pairs[i].whole && (t.pairs[i].a != a || t.pairs[i].b != b))
        i = (i + 1) % N_PAIRS;
    return &t.pairs[i];
}

static void add_mapping(uint32_t c, uint32_t flags, const uint32_t *to, uint32_t n)
{
    struct unicode_mapping *m = &t.mapping[t.n_mappings++];

    assert(t.n_mappings < MAX_MAPPINGS && t.n_mapped + n < MAX_MAPPED);
    *m = (struct unicode_mapping){.c = c,
                                  .at = (uint16_t)t.n_mapped,
                                  .n = (uint8_t)n,
                                  .compat = flags & 1,
                                  .excluded = (flags & 2) != 0};
    memcpy(t.mapped + t.n_mapped, to, n * sizeof *to);
    t.n_mapped += n;
    if (m->compat)
        return;
    if (m->excluded) {
        set_composes(c);
    } else {
        *slot_of(to[0], to[1]) = (struct pair){to[0], to[1], c};
        set_composes(to[1]);
    }
}

static void load_mappings(void)
{
    uint32_t before[32] = {0}, c = 0;

    for (const char *at = decompositions; *at;) {
        c += number(&at);
        const uint32_t more = number(&at), head = number(&at), n = head / 4 + 1;
        uint32_t to[32];

        for (uint32_t i = 0; i < n; i++)
            to[i] = before[i] = moved(&at, before[i]);
        for (uint32_t k = 0; k <= more; k++, to[0]++)
            add_mapping(c + k, head & 3, to, n);
    }
}

static void load_cases(enum unicode_case kind, const char *at)
{
    struct cased *v = t.cases[kind];
    uint32_t first = 0;

    while (*at) {
        first += number(&at);
        const uint32_t more = number(&at), step = number(&at) + 1;
        const uint32_t to = moved(&at, first);

        for (uint32_t i = 0; i <= more; i++) {
            assert(t.n_cases[kind] < MAX_CASES);
            v[t.n_cases[kind]++] = (struct cased){first + i * step, 1, {to + i * step}};
        }
    }
}

static struct cased *find_case(enum unicode_case kind, uint32_t c)
{
    for (size_t i = 0; i < t.n_cases[kind]; i++)
        if (t.cases[kind][i].c == c)
            return &t.cases[kind][i];
    assert(t.n_cases[kind] < MAX_CASES);
    return &t.cases[kind][t.n_cases[kind]++];
}

static int by_code(const void *a, const void *b)
{
    const struct cased *x = a, *y = b;

    return (x->c > y->c) - (x->c < y->c);
}

static void load_special(void)
{
    uint32_t c = 0;

    for (const char *at = special_case; *at;) {
        c = moved(&at, c);
        const enum unicode_case kind = (enum unicode_case)number(&at);
        struct cased *to = find_case(kind, c);

        *to = (struct cased){.c = c, .n = (uint8_t)number(&at)};
        for (int i = 0; i < to->n; i++)
            to->to[i] = number(&at);
    }
    for (int kind = 0; kind < 3; kind++) /* runs of every other character overlap */
        qsort(t.cases[kind], t.n_cases[kind], sizeof **t.cases, by_code);
}

static void load_stands(void)
{
    uint32_t c = 0;

    for (const char *at = stand_ins; *at;) {
        c += number(&at);
        const uint32_t last = c + number(&at), other = moved(&at, c);

        assert(t.n_stands < MAX_STANDS);
        t.stands[t.n_stands++] = (struct stand){c, last, other};
        for (uint32_t new = c; new <= last; new ++)
            set_bit(t.new, new);
    }
}

static void load_scripts(void)
{
    uint32_t c = 0;

    for (const char *at = scripts; *at;) {
        const uint32_t n = number(&at);

        assert(t.n_scripts < MAX_SCRIPTS);
        t.scripts[t.n_scripts++] = (struct script){c, (int)number(&at)};
        c += n;
    }
}

static void load(void)
{
    load_runs(t.category, categories);
    load_runs(t.class, classes);
    for (uint32_t c = 0; c < UNICODE_END; c++)
        if (t.class[c])
            set_bit(t.behind, c);
    for (uint32_t c = 0x1161; c <= 0x11c2; c++) /* vowels and ends of Hangul */
        set_composes(c);
    load_mappings();
    load_cases(UNICODE_LOWER, lower_case);
    load_cases(UNICODE_TITLE, title_case);
    load_cases(UNICODE_UPPER, upper_case);
    load_special();
    load_stands();
    load_scripts();
}

void unicode_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
}

/* ---- queries --------------------------------------------------------------------- */

enum unicode_category unicode_category(uint32_t c)
{
    unicode_load();
    return c < UNICODE_END ? (enum unicode_category)t.category[c] : UNICODE_Cn;
}

int unicode_script(uint32_t c)
{
    size_t lo = 0, hi;

    unicode_load();
    for (hi = t.n_scripts; lo + 1 < hi;) { /* the last run that begins at or before c */
        const size_t middle = lo + (hi - lo) / 2;

        if (t.scripts[middle].first <= c)
            lo = middle;
        else
            hi = middle;
    }
    return t.scripts[lo].script;
}

bool unicode_is_blank(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= '\t' && c <= '\r');
    return c == 0x85 || (unicode_category(c) >= UNICODE_Zl);
}

bool unicode_is_word(uint32_t c)
{
    const enum unicode_category is = unicode_category(c);

    return (is >= UNICODE_Ll && is <= UNICODE_Nl) || is == UNICODE_Pc || c == 0x200c ||
           c == 0x200d;
}

static uint32_t well_formed_at(const char *text, size_t *n)
{
    const unsigned char *s = (const unsigned char *)text;

    if (s[0] < 0xe0) {
        *n = 2;
        return (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
    }
    if (s[0] < 0xf0) {
        *n = 3;
        return (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    }
    *n = 4;
    return (s[0] & 7u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 |
           (s[3] & 0x3fu);
}

uint32_t unicode_at(const char *text, size_t len, size_t *n)
{
    const unsigned char *s = (const unsigned char *)text;
    const int bytes = utf8_char_len(text, len);

    *n = bytes > 0 ? (size_t)bytes : 0;
    return bytes > 1 ? well_formed_at(text, n) : s[0];
}

size_t unicode_put(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    const unsigned first[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(first[n] | c);
    return n;
}

size_t unicode_case(uint32_t c, enum unicode_case to, uint32_t out[UNICODE_MAX_CASE])
{
    unicode_load();
    const struct cased key = {.c = c};
    const struct cased *found =
        bsearch(&key, t.cases[to], t.n_cases[to], sizeof key, by_code);

    if (!found && to == UNICODE_TITLE)
        return unicode_case(c, UNICODE_UPPER, out);
    out[0] = c;
    if (found)
        memcpy(out, found->to, sizeof found->to);
    return found ? found->n : 1;
}

static bool is_new(uint32_t c)
{
    return has_bit(t.new, c);
}

uint32_t unicode_stand_in(uint32_t c)
{
    size_t lo = 0, hi;

    unicode_load();
    if (c >= UNICODE_END || !is_new(c))
        return c;
    for (hi = t.n_stands; lo < hi;) {
        const size_t middle = lo + (hi - lo) / 2;

        if (t.stands[middle].last < c)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < t.n_stands && t.stands[lo].first <= c ? t.stands[lo].other : c;
}

size_t unicode_below(const char *text, size_t len, unsigned char limit)
{
    size_t at = utf8_ascii(text, len);

    while (at < len && (unsigned char)text[at] < limit)
        at++;
    return at;
}

enum status unicode_stand_ins(const char *text, size_t len, char **out, struct err *err)
{
    char *copy = NULL;

    unicode_load();
    for (size_t at = 0, n; at < len; at += n) {
        n = 1;
        if ((unsigned char)text[at] < 0xd5) { /* before U+0540 all are old */
            at += unicode_below(text + at, len - at, 0xd5) - 1;
            continue;
        }
        const uint32_t c = well_formed_at(text + at, &n);

        if (!is_new(c))
            continue;
        if (!copy) {
            copy = malloc(len);
            if (!copy)
                return err_set(err, ST_NO_MEMORY,
                               "no memory to cut a text of %zu bytes", len);
            memcpy(copy, text, len);
        }
        unicode_put(unicode_stand_in(c), copy + at);
    }
    *out = copy;
    return ST_OK;
}

uint8_t unicode_class(uint32_t c)
{
    return c < UNICODE_END ? t.class[c] : 0;
}

const struct unicode_mapping *unicode_mapping(uint32_t c)
{
    size_t lo = 0, hi = t.n_mappings;

    while (lo < hi) {
        const size_t middle = lo + (hi - lo) / 2;

        if (t.mapping[middle].c < c)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < t.n_mappings && t.mapping[lo].c == c ? &t.mapping[lo] : NULL;
}

const uint32_t *unicode_mapped(const struct unicode_mapping *m)
{
    return t.mapped + m->at;
}

uint32_t unicode_compose(uint32_t a, uint32_t b)
{
    return slot_of(a, b)->whole;
}

bool unicode_composes(uint32_t c)
{
    return c < UNICODE_END && has_bit(t.composes, c);
}

bool unicode_is_behind(uint32_t c)
{
    return c < UNICODE_END && has_bit(t.behind, c);
}
