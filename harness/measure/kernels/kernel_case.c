/* SPDX-License-Identifier: MIT
 *
 * kernel_case.c - the cases of every row, and their names
 */
#include "harness/measure/kernels/kernel_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "kernels/probe/probe.h"

#define HOT_BYTES   ((size_t)256 << 10)
#define COLD_ROWS   4096
#define BLOCK_ROWS  256 /* with many columns: the work of a call stays bounded */
#define HEAD_DIM    128
#define FFN_WIDTH   11008
#define N_POSITIONS 1024
#define N_TOKENS    32 /* of linear attention */
#define COUNT(a)    (sizeof(a) / sizeof(a)[0])

static const struct kernel_product products[] = {
    {KERN_OP_gemv, false, false, false},    {KERN_OP_gemm, true, false, false},
    {KERN_OP_gemv_x16, false, true, false}, {KERN_OP_gemm_x16, true, true, false},
    {KERN_OP_gemm_int8, true, false, true}, {KERN_OP_gemm_x16_int8, true, true, true},
};

/* 2..16: tokens checked at once in speculative decoding, sequences; then prefill. */
static const int columns[] = {2, 3, 4, 5, 6, 8, 16, 64, 128, 512, 2048};

/* clang-format off */
#define DISTANCES(hint, n)                                               \
    {2048, KERN_PREFETCH_##hint, n}, {4096, KERN_PREFETCH_##hint, n},    \
    {8192, KERN_PREFETCH_##hint, n}, {16384, KERN_PREFETCH_##hint, n}
#define PREFETCHES(n) \
    {0, KERN_PREFETCH_T0, n}, DISTANCES(T0, n), DISTANCES(T1, n), DISTANCES(NTA, n), \
    DISTANCES(2T0, n)
/* clang-format on */

static const struct kern_prefetch prefetches[] = {PREFETCHES(1), PREFETCHES(2),
                                                  PREFETCHES(4)};

const struct kernel_product *kernel_product(enum kern_op op)
{
    for (size_t i = 0; i < COUNT(products); i++)
        if (products[i].op == op)
            return &products[i];
    return NULL;
}

enum kern_act kernel_product_act(const struct kernel_product *p,
                                 enum kern_format format)
{
    return p->requantises ? KERN_ACT_q8_256 : kern_format_info(format)->act;
}

const int *kernel_columns(size_t *n)
{
    *n = COUNT(columns);
    return columns;
}

const struct kern_prefetch *kernel_prefetches(size_t *n)
{
    *n = COUNT(prefetches);
    return prefetches;
}

bool kernel_case_is_roof(const struct kernel_case *c)
{
    return !strcmp(c->op, "roof");
}

/* ---- names ----------------------------------------------------------------------- */

struct kernel_name kernel_prefetch_name(struct kern_prefetch prefetch)
{
    struct kernel_name name = {"off"};

    if (prefetch.distance)
        snprintf(name.text, sizeof name.text, "%s-%u",
                 kern_prefetch_hint_name(prefetch.hint), (unsigned)prefetch.distance);
    return name;
}

#define ADD(...) text_append(name.text, sizeof name.text, __VA_ARGS__)

struct kernel_name kernel_case_name(const struct kernel_case *c)
{
    struct kernel_name name = {""};

    ADD("%s%s%s/%s", c->op, c->what[0] ? "/" : "", c->what, c->isa);
    if (c->rows)
        ADD("/rows:%d/cols:%d", c->rows, c->cols);
    if (c->n_x != 1)
        ADD("/n_x:%d", c->n_x);
    if (c->n)
        ADD("/n:%d", c->n);
    if (c->cache != KERNEL_ANY_CACHE)
        ADD("%s", c->cache == KERNEL_COLD ? "/cold" : "/hot");
    if (c->prefetch.n_panels)
        ADD("/prefetch:%s/panels:%d", kernel_prefetch_name(c->prefetch).text,
            (int)c->prefetch.n_panels);
    if (c->n_threads != 1)
        ADD("/threads:%d", c->n_threads);
    return name;
}

static bool copy_word(char *to, size_t cap, const char *word, size_t len)
{
    if (len == 0 || len >= cap)
        return false;
    memcpy(to, word, len);
    to[len] = '\0';
    return true;
}

/* "off" or a hint and a distance, "T0-4096". */
static bool parse_prefetch(struct kern_prefetch *prefetch, const char *word, size_t len)
{
    char *end;

    if (len == 3 && !memcmp(word, "off", 3))
        return true;
    for (int i = 0; i < KERN_N_PREFETCH; i++) {
        const char *hint = kern_prefetch_hint_name((enum kern_prefetch_hint)i);
        const size_t n = strlen(hint);

        if (len < n + 2 || memcmp(word, hint, n) != 0 || word[n] != '-')
            continue;
        const long distance = strtol(word + n + 1, &end, 10);
        if (end != word + len || distance < 1 || distance > 1 << 30)
            return false;
        prefetch->distance = (uint32_t)distance;
        prefetch->hint = (enum kern_prefetch_hint)i;
        return true;
    }
    return false;
}

/* One "/key:value", "/hot" or "/cold". */
static bool parse_size(struct kernel_case *c, const char *word, size_t len)
{
    int n_panels = 0;
    const struct {
        const char *key;
        int *value;
    } keys[] = {{"rows:", &c->rows},         {"cols:", &c->cols},
                {"n_x:", &c->n_x},           {"n:", &c->n},
                {"threads:", &c->n_threads}, {"panels:", &n_panels}};

    if ((len == 3 && !memcmp(word, "hot", 3)) ||
        (len == 4 && !memcmp(word, "cold", 4))) {
        c->cache = len == 4 ? KERNEL_COLD : KERNEL_HOT;
        return true;
    }
    if (len > 9 && !memcmp(word, "prefetch:", 9))
        return parse_prefetch(&c->prefetch, word + 9, len - 9);
    for (size_t i = 0; i < COUNT(keys); i++) {
        const size_t key_len = strlen(keys[i].key);
        char *end;

        if (len <= key_len || memcmp(word, keys[i].key, key_len) != 0)
            continue;
        const long value = strtol(word + key_len, &end, 10);
        if (end != word + len || value < 1 || value > 1 << 30)
            return false;
        *keys[i].value = (int)value;
        if (n_panels)
            c->prefetch.n_panels = (uint32_t)n_panels;
        return n_panels <= KERN_MAX_INTERLEAVED;
    }
    return false;
}

bool kernel_case_parse(struct kernel_case *c, const char *name)
{
    struct kernel_case new = {.n_x = 1, .n_threads = 1};
    const char *word[3], *const whole = name;
    size_t len[3], n_words = 0;

    while (n_words < 3) { /* the words before the sizes */
        const size_t n = strcspn(name, "/");

        if (memchr(name, ':', n) || n == 0)
            break;
        word[n_words] = name;
        len[n_words++] = n;
        name += n;
        if (!*name)
            break;
        name++;
    }
    if (n_words < 2 || !copy_word(new.op, sizeof new.op, word[0], len[0]) ||
        !copy_word(new.isa, sizeof new.isa, word[n_words - 1], len[n_words - 1]) ||
        (n_words == 3 && !copy_word(new.what, sizeof new.what, word[1], len[1])))
        return false;
    while (*name) {
        const size_t n = strcspn(name, "/");

        if (!parse_size(&new, name, n))
            return false;
        name += n + (name[n] == '/');
    }
    if ((strstr(whole, "/prefetch:") != NULL) != (new.prefetch.n_panels > 0))
        return false;
    *c = new;
    return true;
}

const struct kern_entry *kernel_case_entry(const struct kernel_case *c)
{
    char name[KERNEL_NAME_MAX];
    size_t n;
    const struct kern_entry *entries = kern_entries(&n);

    snprintf(name, sizeof name, "%s%s%s/%s", c->op, c->what[0] ? "/" : "", c->what,
             c->isa);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(entries[i].name, name))
            return &entries[i];
    return NULL;
}

/* ---- roofs ----------------------------------------------------------------------- */

static void set_roof(struct kernel_case *roof, const char *what, enum kern_isa isa,
                     int n_threads)
{
    *roof = (struct kernel_case){.op = "roof", .n_x = 1, .n_threads = n_threads};
    snprintf(roof->what, sizeof roof->what, "%s", what);
    snprintf(roof->isa, sizeof roof->isa, "%s", isa_name(isa));
}

static bool is_product(const struct kern_entry *e)
{
    return e && kernel_product(e->op);
}

bool kernel_case_peak(struct kernel_case *roof, const struct kernel_case *c)
{
    const struct kern_entry *e = kernel_case_entry(c);

    if (!is_product(e))
        return false;
    const bool is_float =
        kern_format_info((enum kern_format)e->what)->act == KERN_ACT_f32;
    const enum probe_op op = is_float ? PROBE_OP_peak_f32 : PROBE_OP_peak_int8;
    const uint32_t levels = isa_included(e->isa);
    const enum kern_isa best = probe_kernel_best(op, levels)->isa;

    set_roof(roof, is_float ? "f32" : "int8", best, c->n_threads);
    return levels >> best & 1; /* a build may lack the level */
}

bool kernel_case_read_roof(struct kernel_case *roof, const struct kernel_case *c)
{
    if (!is_product(kernel_case_entry(c)))
        return false;
    set_roof(roof, "read", probe_kernel_best(PROBE_OP_stream_read, isa_usable())->isa,
             c->n_threads);
    return true;
}

bool kernel_case_roof(struct kernel_case *roof, const struct kernel_case *c)
{
    if (c->cache == KERNEL_COLD && c->n_x < KERNEL_MANY_COLUMNS)
        return kernel_case_read_roof(roof, c);
    return kernel_case_peak(roof, c);
}

/* ---- all of them ----------------------------------------------------------------- */

struct list {
    struct kernel_case *v;
    size_t n, cap;
    bool failed;
};

static void add(struct list *l, const struct kernel_case *c)
{
    struct kernel_case *v = array_grow(l->v, l->n, &l->cap, sizeof *v);

    l->failed |= !v;
    if (!v)
        return;
    l->v = v;
    l->v[l->n++] = *c;
}

static void add_for_threads(struct list *l, struct kernel_case c, const int *threads,
                            size_t n_threads)
{
    for (size_t i = 0; i < n_threads; i++) {
        c.n_threads = threads[i];
        add(l, &c);
    }
}

int kernel_hot_rows(enum kern_format format)
{
    return (int)(HOT_BYTES / kern_format_bytes(format, KERNEL_COLS) / 16 * 16);
}

static void add_product(struct list *l, struct kernel_case c,
                        const struct kernel_product *p, enum kern_format format,
                        const int *threads, size_t n_threads)
{
    c.cols = KERNEL_COLS;
    if (!p->has_columns) {
        c.cache = KERNEL_HOT;
        c.rows = kernel_hot_rows(format);
        add(l, &c);
    }
    c.cache = KERNEL_COLD;
    for (size_t i = 0; i < (p->has_columns ? COUNT(columns) : 1); i++) {
        c.n_x = p->has_columns ? columns[i] : 1;
        c.rows = c.n_x < KERNEL_MANY_COLUMNS ? COLD_ROWS : BLOCK_ROWS;
        add_for_threads(l, c, threads, n_threads);
    }
    for (size_t i = 0; p->packed && !p->has_columns && i < COUNT(prefetches); i++) {
        c.prefetch = prefetches[i];
        add_for_threads(l, c, threads, n_threads);
    }
}

/* How many elements an operation is timed on; attention: positions, or tokens. */
static int usual_n(enum kern_op op)
{
    switch (op) {
    case KERN_OP_rope:
    case KERN_OP_rope_neox:
    case KERN_OP_l2norm:
    case KERN_OP_hadamard:
        return HEAD_DIM;
    case KERN_OP_delta_rule:
    case KERN_OP_ssm_scan:
        return N_TOKENS;
    case KERN_OP_silu_mul:
    case KERN_OP_gelu_mul:
    case KERN_OP_gelu:
    case KERN_OP_relu_squared:
    case KERN_OP_xielu:
        return FFN_WIDTH;
    case KERN_OP_softcap:
        return N_POSITIONS;
    case KERN_OP_attn_dot:
    case KERN_OP_attn_mix:
    case KERN_OP_attn_mix_keys:
        return N_POSITIONS;
    default:
        return KERNEL_COLS;
    }
}

enum status kernel_cases_all(struct kernel_case **cases, size_t *n_cases,
                             const int *threads, size_t n_threads, struct err *err)
{
    struct list l = {NULL, 0, 0, false};
    size_t n_entries, n_probes;
    const struct kern_entry *entries = kern_entries(&n_entries);
    const struct probe_kernel *probes = probe_kernels(&n_probes);
    struct kernel_case c;

    for (const struct kern_entry *e = entries; e < entries + n_entries; e++) {
        const struct kernel_product *p = kernel_product(e->op);

        kernel_case_parse(&c, e->name);
        if (p) {
            add_product(&l, c, p, (enum kern_format)e->what, threads, n_threads);
        } else {
            c.n = usual_n(e->op);
            add(&l, &c);
        }
    }
    for (size_t i = 0; i < n_probes; i++) {
        set_roof(&c,
                 probes[i].op == PROBE_OP_stream_read ? "read"
                 : probes[i].op == PROBE_OP_peak_int8 ? "int8"
                                                      : "f32",
                 probes[i].isa, 1);
        add_for_threads(&l, c, threads, n_threads);
    }
    if (l.failed) {
        free(l.v);
        return err_set(err, ST_NO_MEMORY, "no memory for the list of kernels");
    }
    *cases = l.v;
    *n_cases = l.n;
    return ST_OK;
}
