/* SPDX-License-Identifier: MIT
 *
 * shares_measure.c - shares from the rows of sweeps and from timed kernels, as YAML
 */
#include "research/shares_measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/jsonfile.h"
#include "engine/quantize/quantmix.h"
#include "harness/base/format.h"
#include "harness/base/sysfile.h"
#include "harness/stats/stats.h"
#include "harness/machine/topology.h"
#include "harness/measure/kernels/kernel_case.h"
#include "harness/rows/report_rows.h"
#include "kernels/kernels.h"
#include "research/research.h"

/* Undisturbed launches below this many have no quantiles worth the name. */
#define MIN_LAUNCHES 3

/* ---- values ---------------------------------------------------------------------- */

/* A share of one launch or kernel; its median is all that counts. */
struct values {
    struct share *v;
    size_t n, cap;
};

static enum status add(struct values *values, const struct share *share,
                       struct err *err)
{
    if (values->n == values->cap) {
        const size_t cap = values->cap ? 2 * values->cap : 256;
        struct share *grown = realloc(values->v, cap * sizeof *grown);

        if (!grown)
            return err_set(err, ST_NO_MEMORY, "no memory for %zu shares", cap);
        values->v = grown;
        values->cap = cap;
    }
    values->v[values->n++] = *share;
    return ST_OK;
}

/* A table may hold any number. */
static bool has_threads(const struct row *r)
{
    return r->n_threads > 0 && r->n_threads <= TOPO_MAX_CPUS;
}

static enum status add_rows(struct values *values, const struct result_part *part,
                            const char *machine, struct err *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < part->n && st == ST_OK; i++) {
        const struct row *r = &part->rows[i];
        struct share s = {.format = quantmix_base_named(r->quant),
                          .n_threads = (int)r->n_threads,
                          .n = 1};

        s.median = share_of_row(r, &s.kind);
        snprintf(s.machine, sizeof s.machine, "%s", machine);
        if (s.median > 0 && s.format != KERN_N_FMT && has_threads(r) &&
            row_trust(r) == ROW_GOOD)
            st = add(values, &s, err);
    }
    return st;
}

/* ---- kernels --------------------------------------------------------------------- */

enum {
    CELL_OP,
    CELL_FORMAT,
    CELL_WEIGHTS,
    CELL_COLUMNS,
    CELL_READ,
    CELL_GOPS,
    N_CELLS
};

static const char *const cell_names[] = {
    [CELL_OP] = "op",       [CELL_FORMAT] = "format",     [CELL_WEIGHTS] = "weights",
    [CELL_COLUMNS] = "n_x", [CELL_READ] = "of_read_roof", [CELL_GOPS] = "gops"};

/* kernels.csv: its rows and their cells, [n][N_CELLS]. */
struct kernels {
    struct row *rows;
    size_t n;
    struct row_extra extra;
    double peak_gops; /* of vectors, one thread; 0: not timed */
    uint32_t levels;  /* of the machine, without tiles; 0: not known */
    const char *path;
    FILE *notes;
};

static const char *cell(const struct kernels *k, size_t i, int which)
{
    const char *text = k->extra.cells[i * N_CELLS + (size_t)which];

    return text ? text : "";
}

static bool is_cold(const struct kernels *k, size_t i, const char *op)
{
    return !strcmp(cell(k, i, CELL_OP), op) &&
           !strcmp(cell(k, i, CELL_WEIGHTS), "cold");
}

/* Tiles have a peak of their own, far above that of vectors. */
static bool is_by_tiles(const struct row *r)
{
    return r->isa == KERN_ISA_amx_int8 || r->isa == KERN_ISA_amx_bf16;
}

/* By "+avx2 -avxvnni ...". */
static uint32_t levels_of(const struct machine_key *key)
{
    uint32_t mask = 0;

    for (int isa = 0; isa < KERN_N_ISA; isa++) {
        char word[32];

        snprintf(word, sizeof word, "+%s", isa_name((enum kern_isa)isa));
        if (text_has_word(key->text[MACHINE_ISA], word))
            mask |= 1u << isa;
    }
    return mask & ~ISA_TILE_LEVELS;
}

/* Whether it is of the level that the engine takes on this machine: a build without
 * some rows times those of a lower level, which are no share of this machine's peak. */
static bool is_of_best_level(const struct kernels *k, size_t i)
{
    const enum kern_format format = kern_format_by_name(cell(k, i, CELL_FORMAT));
    const int isa = (int)k->rows[i].isa;
    int best = isa;
    size_t n;
    const struct kern_entry *e = kern_entries(&n);

    for (size_t j = 0; j < n; j++)
        if (e[j].what == (int)format && (int)e[j].isa > best &&
            (k->levels >> e[j].isa & 1) &&
            !strcmp(kern_op_name(e[j].op), cell(k, i, CELL_OP)))
            best = (int)e[j].isa;
    if (best > isa && k->notes)
        fprintf(k->notes,
                "%s: %s of %s is left out, as it is by %s and the machine has %s\n",
                k->path, cell(k, i, CELL_OP), cell(k, i, CELL_FORMAT),
                row_isa_text(&k->rows[i]), isa_name((enum kern_isa)best));
    return best == isa;
}

static void find_peak(struct kernels *k)
{
    for (size_t i = 0; i < k->n; i++)
        if (!strcmp(cell(k, i, CELL_OP), "roof") && k->rows[i].n_threads == 1 &&
            !strcmp(cell(k, i, CELL_FORMAT), "int8") && !is_by_tiles(&k->rows[i]))
            k->peak_gops = fmax(k->peak_gops, strtod(cell(k, i, CELL_GOPS), NULL));
}

/* A product of weights outside the caches with one column, as a share of the read
 * bandwidth; or with many, by vectors, as a share of their peak. */
static enum status add_kernel(struct values *values, const struct kernels *k, size_t i,
                              const char *machine, struct err *err)
{
    const struct row *r = &k->rows[i];
    struct share s = {.kind = SHARE_KERNEL,
                      .format = kern_format_by_name(cell(k, i, CELL_FORMAT)),
                      .n_threads = (int)r->n_threads,
                      .n = 1};

    if (is_cold(k, i, "gemv_x16")) {
        s.median = strtod(cell(k, i, CELL_READ), NULL);
    } else if (is_cold(k, i, "gemm_x16") && k->peak_gops > 0 && !is_by_tiles(r) &&
               strtol(cell(k, i, CELL_COLUMNS), NULL, 10) >= KERNEL_MANY_COLUMNS) {
        s.kind = SHARE_PRODUCT;
        s.median = strtod(cell(k, i, CELL_GOPS), NULL) / k->peak_gops;
    }
    snprintf(s.machine, sizeof s.machine, "%s", machine);
    return s.median > 0 && isfinite(s.median) && s.format != KERN_N_FMT &&
                   has_threads(r) && is_of_best_level(k, i)
               ? add(values, &s, err)
               : ST_OK;
}

static enum status add_kernels(struct values *values, const char *dir,
                               const struct machine_key *key, FILE *notes,
                               struct err *err)
{
    char path[4096], machine[SHARES_MACHINE_MAX];
    struct kernels k = {.extra = {.names = cell_names, .n = N_CELLS},
                        .levels = levels_of(key),
                        .path = path,
                        .notes = notes};
    enum status st;

    snprintf(path, sizeof path, "%s/kernels.csv", dir);
    if (access(path, F_OK))
        return ST_OK;
    share_machine_name(key, machine, sizeof machine);
    st = row_csv_read_extra(path, &k.rows, &k.n, &k.extra, err);
    if (st == ST_OK)
        find_peak(&k);
    for (size_t i = 0; i < k.n && st == ST_OK; i++)
        st = add_kernel(values, &k, i, machine, err);
    row_extra_free(&k.extra, k.n);
    free(k.rows);
    return st;
}

/* A directory of kernels alone, with the machine.json of their machine. */
static bool has_kernels_only(const char *dir)
{
    char kernels[4096], sweep[4096];

    snprintf(kernels, sizeof kernels, "%s/kernels.csv", dir);
    snprintf(sweep, sizeof sweep, "%s/sweep.csv", dir);
    return !access(kernels, F_OK) && access(sweep, F_OK);
}

static enum status add_kernels_only(struct values *values, const char *dir, FILE *notes,
                                    struct err *err)
{
    char path[4096];
    struct machine_key key;
    struct jsonfile f;
    enum status st;

    snprintf(path, sizeof path, "%s/machine.json", dir);
    st = jsonfile_read(&f, path, MACHINE_JSON_LIMIT, err);
    if (st)
        return st;
    if (machine_key_read(&key, json_member(f.root, "topology")))
        st = add_kernels(values, dir, &key, notes, err);
    else
        st = err_set(err, ST_INPUT, "%s does not describe a machine", path);
    jsonfile_free(&f);
    return st;
}

/* ---- records --------------------------------------------------------------------- */

static int compare(const void *x, const void *y)
{
    const struct share *a = x, *b = y;
    const int by_name = strcmp(a->machine, b->machine);

    if (by_name)
        return by_name;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->format != b->format)
        return a->format < b->format ? -1 : 1;
    if (a->n_threads != b->n_threads)
        return a->n_threads < b->n_threads ? -1 : 1;
    return (a->median > b->median) - (a->median < b->median);
}

static bool same_group(const struct share *a, const struct share *b)
{
    return !strcmp(a->machine, b->machine) && a->kind == b->kind &&
           a->format == b->format && a->n_threads == b->n_threads;
}

/* v[n] are of one group, in order of their medians. A kernel's fastest ISA level
 * counts. */
static void summarise(struct share *out, const struct share *v, size_t n,
                      double *scratch)
{
    *out = v[0];
    out->n = (int)n;
    for (size_t i = 0; i < n; i++)
        scratch[i] = v[i].median;
    out->lo = stats_quantile_sorted(scratch, n, 0.05);
    out->median = stats_quantile_sorted(scratch, n, 0.5);
    out->hi = stats_quantile_sorted(scratch, n, 0.95);
    if (out->kind < SHARE_KERNEL)
        return;
    out->n = 1;
    out->lo = out->median = out->hi = scratch[n - 1];
}

static enum status reduce(struct shares *s, struct values *values, struct err *err)
{
    struct share *out = calloc(values->n + 1, sizeof *out);
    double *scratch = calloc(values->n + 1, sizeof *scratch);
    size_t n = 0;

    if (!out || !scratch) {
        free(out);
        free(scratch);
        return err_set(err, ST_NO_MEMORY, "no memory for %zu shares", values->n);
    }
    if (values->n)
        qsort(values->v, values->n, sizeof *values->v, compare);
    for (size_t i = 0, end; i < values->n; i = end) {
        for (end = i + 1; end < values->n && same_group(&values->v[i], &values->v[end]);
             end++) {
        }
        if (values->v[i].kind >= SHARE_KERNEL || end - i >= MIN_LAUNCHES)
            summarise(&out[n++], values->v + i, end - i, scratch);
    }
    free(scratch);
    *s = (struct shares){out, n};
    return ST_OK;
}

static enum status add_path(struct values *values, const char *path, FILE *notes,
                            struct err *err)
{
    struct result_set set;
    enum status st;

    if (has_kernels_only(path))
        return add_kernels_only(values, path, notes, err);
    st = result_set_open(&set, path, RESULT_BY_RUN, err);
    for (size_t i = 0; i < set.n_parts && st == ST_OK; i++) {
        const struct result_part *part = &set.parts[i];
        char machine[SHARES_MACHINE_MAX];

        st = share_machine_of_run(machine, sizeof machine, part->run, path, err);
        if (st == ST_OK)
            st = add_rows(values, part, machine, err);
        if (st == ST_OK && part->run->dir)
            st = add_kernels(values, part->run->dir, &part->run->machine, notes, err);
    }
    result_set_free(&set);
    return st;
}

enum status shares_measure(struct shares *s, const char *const *paths, size_t n,
                           FILE *notes, struct err *err)
{
    struct values values = {NULL, 0, 0};
    enum status st = ST_OK;

    for (size_t i = 0; i < n && st == ST_OK; i++)
        st = add_path(&values, paths[i], notes, err);
    if (st == ST_OK)
        st = reduce(s, &values, err);
    free(values.v);
    return st;
}

/* ---- writing --------------------------------------------------------------------- */

/* YAML in single quotes, where nothing but the quote itself is special. */
static void print_quoted(FILE *f, const char *text)
{
    putc('\'', f);
    for (; *text; text++) {
        if (*text == '\'')
            putc('\'', f);
        putc(*text, f);
    }
    putc('\'', f);
}

void shares_print(FILE *f, const struct shares *s)
{
    fprintf(f, "# Shares of the read bandwidth (decode) and of the peak of arithmetic "
               "(prefill)\n# that launches reached, as quantiles 0.05, 0.5 and 0.95; "
               "kernel: a\n# product with one column alone; product: with many, of the "
               "peak.\n# Made by `bench-research shares`.\n"
               "shares:\n");
    for (size_t i = 0; i < s->n; i++) {
        const struct share *v = &s->v[i];

        fprintf(f, "- {machine: ");
        print_quoted(f, v->machine);
        fprintf(f,
                ", kind: %s, format: %s, threads: %d, n: %d, lo: %.4f, median: "
                "%.4f, hi: %.4f}\n",
                share_kind_name(v->kind), kern_format_info(v->format)->name,
                v->n_threads, v->n, v->lo, v->median, v->hi);
    }
}

enum status research_shares(const struct research_options *o, struct err *err)
{
    struct shares shares = {NULL, 0};
    enum status st = shares_measure(&shares, o->paths, o->n_paths, stderr, err);

    if (st == ST_OK && !shares.n)
        st = err_set(err, ST_INPUT,
                     "no format was measured in three undisturbed launches");
    if (st == ST_OK)
        shares_print(stdout, &shares);
    shares_free(&shares);
    return st;
}
