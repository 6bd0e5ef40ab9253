/* SPDX-License-Identifier: MIT
 *
 * test_charsmap.c - tables of characters: which are looked up together, and tables that
 * lie
 */
#include "tests/support/test.h"

#include "engine/tokenizer/tokenizer_charsmap.h"

#define MAX_STATES 40
#define MAX_UNITS  (256 * (MAX_STATES + 1))

/* A double array with a block of 256 units for each state, and its texts. */
struct table {
    uint32_t units[MAX_UNITS];
    uint32_t base[MAX_STATES];
    size_t n_states;
    char texts[200];
    size_t n_texts;
    unsigned char bytes[4 * MAX_UNITS + 300]; /* as in a file */
    size_t n;
};

static uint32_t new_state(struct table *t)
{
    assert_true(t->n_states < MAX_STATES);
    t->n_states++;
    return (uint32_t)t->n_states * 256;
}

static void add_entry(struct table *t, const char *key, const char *value)
{
    uint32_t at = 256;
    uint32_t *unit = NULL;

    for (const char *c = key; *c; c++) {
        const uint32_t byte = (unsigned char)*c;

        at ^= byte;
        unit = &t->units[at];
        if (!*unit)
            *unit = (at ^ new_state(t)) << 10 | byte;
        at ^= *unit >> 10;
    }
    *unit |= 1u << 8;
    t->units[at] = 1u << 31 | (uint32_t)t->n_texts;
    memcpy(t->texts + t->n_texts, value, strlen(value) + 1);
    t->n_texts += strlen(value) + 1;
}

static void put_u32_at(unsigned char *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(v >> 8 * i);
}

static struct charsmap *open_units(struct table *t, size_t n_units)
{
    struct err err = ERR_INIT;
    struct charsmap *m;

    put_u32_at(t->bytes, (uint32_t)(4 * n_units));
    for (size_t i = 0; i < n_units; i++)
        put_u32_at(t->bytes + 4 + 4 * i, t->units[i]);
    memcpy(t->bytes + 4 + 4 * n_units, t->texts, t->n_texts);
    t->n = 4 + 4 * n_units + t->n_texts;
    if (charsmap_open(&m, t->bytes, t->n, "model", &err))
        fail_msg("%s", err.msg);
    return m;
}

struct text {
    char bytes[200];
    size_t n;
};

static void append(void *arg, const char *text, size_t n)
{
    struct text *t = arg;

    assert_true(t->n + n < sizeof t->bytes);
    memcpy(t->bytes + t->n, text, n);
    t->n += n;
    t->bytes[t->n] = '\0';
}

static void expect(const struct charsmap *m, const char *text, size_t len,
                   const char *want)
{
    struct text got = {.n = 0};

    charsmap_apply(m, text, len, append, &got);
    if (strcmp(got.bytes, want) != 0)
        fail_msg("'%s' is '%s', not '%s'", text, got.bytes, want);
}

/* What is looked up together with the character before it vanishes with that; the
 * shortest entry counts. */
static void characters_are_looked_up_together(void **state)
{
    static const char *const cases[][2] = {
        {"a", "1"},
        {"ax", "1x"},
        {"xa", "x1"},
        {"abx", "1x"},
        {"", ""},
        {"a\u0301x", "1x"},           /* Mn */
        {"a\u0903x", "1x"},           /* Mc */
        {"a\u102bx", "1\u102bx"},     /* Mc that is a letter */
        {"a\u20ddx", "1x"},           /* Me */
        {"a\u200dx", "1x"},           /* a joiner */
        {"a\u0e33x", "1x"},           /* a vowel that is a letter */
        {"a\u00e9x", "1\u00e9x"},     /* a letter */
        {"a\u00adx", "1Sx"},          /* Cf */
        {"a\xc2\x85x", "1\xc2\x85x"}, /* Cc */
        {"a\u2028x", "1\u2028x"},     /* Zl */
        {"a\u2029x", "1\u2029x"},     /* Zp */
        {"\u00ad\u0301", "S\u0301"},  /* a mark is not joined to it */
        {"\u0600xa", "N1"},           /* one that goes before */
        {"\u0600\u00ad", "NS"},       /* but not before that */
        {"\r\nx", "Rx"},              /* a line's end is one */
        {"\rx", "Rx"},
        {"\r", "R"},
        {"\r\u0301", "R\u0301"},
        {"a\u0301\u0302\u0303", "1\u0301\u0302\u0303"}, /* six bytes are not */
        {"\xff"
         "a",
         "\xff"
         "1"},
        {"a\xc3", "1\xc3"},
        {"\u0301", "\u0301"},
    };
    struct table *t = calloc(1, sizeof *t);

    (void)state;
    t->units[0] = 256 << 10;
    new_state(t);
    add_entry(t, "a", "1");
    add_entry(t, "b", "");
    add_entry(t, "\r", "R");
    add_entry(t, "\u0600", "N");
    add_entry(t, "\u00ad", "S");
    struct charsmap *m = open_units(t, MAX_UNITS);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect(m, cases[i][0], strlen(cases[i][0]), cases[i][1]);
    expect(m, "\0a", 2, "");
    charsmap_close(m);
    free(t);
}

/* Letters of a syllable are joined: with a mark they have more than six bytes, and each
 * character is looked up alone. Behind one letter the mark vanishes with it. */
static void letters_of_hangul_are_one(void **state)
{
    static const struct {
        const char *before, *letter;
        int joined;
    } cases[] = {
        {"\u1100", "\u1161", 1}, {"\u1100", "\ud7b0", 1}, {"\ua960", "\u1161", 1},
        {"\uac00", "\u11a8", 1}, {"\uac00", "\ud7b0", 1}, {"\u1100", "\u1100", 1},
        {"\u1100", "\uac00", 1}, {"\ua960", "\u1100", 1}, {"\u1100", "\u115f", 1},
        {"\u1161", "\u1100", 0}, {"\uac00", "\u1100", 0}, {"\uac00", "\uac00", 0},
        {"\ud7fc", "\u1161", 0}, {"\ua97d", "\u1161", 0}, {"\ua95f", "\u1161", 0},
        {"\u10ff", "\u1161", 0}, {"\u1100", "\u10ff", 0}, {"\u1100", "\u1200", 0},
        {"\u1100", "\ud7fc", 0}, {"\u1100", "\ud7a4", 0}, {"\u1200", "\u1161", 0},
    };
    static const char *const letters[] = {"\u1161", "\ud7b0", "\u11a8", "\u1100",
                                          "\uac00", "\u115f", "\u10ff", "\u1200",
                                          "\ud7fc", "\ud7a4"};
    struct table *t = calloc(1, sizeof *t);
    struct charsmap *m;

    (void)state;
    t->units[0] = 256 << 10;
    new_state(t);
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        add_entry(t, letters[i], "V");
    m = open_units(t, MAX_UNITS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[32], want[240];
        struct text alone = {.n = 0};

        snprintf(text, sizeof text, "%s%s\u0301", cases[i].before, cases[i].letter);
        charsmap_apply(m, cases[i].before, 3, append, &alone);
        snprintf(want, sizeof want, "%sV%s", alone.bytes,
                 cases[i].joined ? "\u0301" : "");
        expect(m, text, strlen(text), want);
    }
    charsmap_close(m);
    free(t);
}

/* Units that lead out of the table, or to no text, are no entries. */
static void tables_that_lie_are_harmless(void **state)
{
    static const uint32_t unit_of_a[] = {
        5000u << 10 | 'a',          /* beyond the table */
        5000u << 10 | 1 << 9 | 'a', /* further */
        1u << 31 | 'a',             /* a value, not a label */
        96u << 10 | 1 << 8 | 'a',   /* to unit 1, which is no text's */
        'b',
    };
    struct table *t = calloc(1, sizeof *t);
    struct charsmap *m;

    (void)state;
    t->units[0] = 0;
    m = open_units(t, 1);
    expect(m, "a", 1, "a");
    charsmap_close(m);
    t->units[1] = 1u << 31 | 1000;
    for (size_t i = 0; i < sizeof unit_of_a / sizeof *unit_of_a; i++) {
        t->units['a'] = unit_of_a[i];
        m = open_units(t, 'a' + 1);
        expect(m, "a", 1, "a");
        charsmap_close(m);
    }
    t->units['a'] = 96u << 10 | 1 << 8 | 'a'; /* and of a text */
    t->units[1] = 1u << 31 | 0;
    memcpy(t->texts, "yes", t->n_texts = 4);
    m = open_units(t, 'a' + 1);
    expect(m, "aa", 2, "yesyes");
    charsmap_close(m);
    free(t);
}

static void what_is_no_table_is_refused(void **state)
{
    static const struct {
        unsigned char bytes[12];
        size_t n;
    } tables[] = {
        {{0}, 0},           {{4, 0, 0}, 3}, {{4, 0, 0, 0, 0, 0, 0}, 7}, {{8}, 8},
        {{0, 0, 0, 0}, 12}, {{6}, 12},      {{0, 0, 0, 0x80}, 12},
    };
    static const struct {
        const char *text, *message;
    } texts[] = {
        {"!!!!", "precompiled_charsmap is not base64"},
        {"AAAA=x", "precompiled_charsmap is not base64"},
        {"AAAA", "of 3 bytes is cut short"},
        {"", "of 0 bytes is cut short"},
        {"BAAAAA==", "of 4 bytes is cut short"},
    };
    struct charsmap *m = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        struct err err = ERR_INIT;

        assert_int_equal(charsmap_open(&m, tables[i].bytes, tables[i].n, "model", &err),
                         ST_INPUT);
        assert_non_null(strstr(err.msg, "is cut short"));
        assert_null(m);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct err err = ERR_INIT;

        assert_int_equal(charsmap_open_base64(&m, texts[i].text, "model", &err),
                         ST_INPUT);
        if (!strstr(err.msg, texts[i].message))
            fail_msg("%s: '%s'", texts[i].text, err.msg);
        assert_null(m);
    }
    struct err err = ERR_INIT;

    assert_int_equal(charsmap_open_base64(&m, "BAAAAAAAAAB5AA==", "model", &err),
                     ST_OK);
    expect(m, "a", 1, "a");
    charsmap_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_looked_up_together),
        cmocka_unit_test(letters_of_hangul_are_one),
        cmocka_unit_test(tables_that_lie_are_harmless),
        cmocka_unit_test(what_is_no_table_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
