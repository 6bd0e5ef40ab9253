/* SPDX-License-Identifier: MIT
 *
 * fuzz_database.c - SQLite databases as files of somebody else, all of their bytes
 *
 * The mutator knows pages: it copies them, makes trees of them in which a page comes
 * twice, repeats cells, and changes the statements that the schema consists of.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/support/history.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/random.h"

static void read_database(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("d.db", data, size);

    history_read_any(path);
    history_read_gates(path);
    history_write_to(path);
    unlink(fuzz_path("d.db-journal"));
    unlink(fuzz_path("d.db-wal"));
    unlink(fuzz_path("d.db-shm"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_database, data, size, HISTORY_BOUND);
}

/* ---- a file as pages (sqlite.org/fileformat2.html) ------------------------------- */

#define HEADER 100 /* bytes of the first page before its tree */

struct pages {
    uint8_t *data;
    size_t page_bytes, n;
};

static unsigned get16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static void put16(uint8_t *at, size_t v)
{
    at[0] = (uint8_t)(v >> 8);
    at[1] = (uint8_t)v;
}

static void put32(uint8_t *at, size_t v)
{
    put16(at, v >> 16);
    put16(at + 2, v);
}

static bool find_pages(struct pages *p, uint8_t *data, size_t size)
{
    if (size < 512 || memcmp(data, "SQLite format 3", 15) != 0)
        return false;
    p->data = data;
    p->page_bytes = get16(data + 16);
    if (p->page_bytes < 512)
        p->page_bytes = 512;
    p->n = size / p->page_bytes;
    return p->n > 0;
}

/* The tree's header in a page; 8 bytes for a leaf, 12 for what has pages below it. */
static uint8_t *tree_of(const struct pages *p, size_t page)
{
    return p->data + page * p->page_bytes + (page ? 0 : HEADER);
}

static bool has_below(const uint8_t *tree)
{
    return tree[0] == 2 || tree[0] == 5;
}

/* A page more that is like another; the header counts it. Returns the new size. */
static size_t add_page(struct pages *p, struct choice_source *c, size_t size,
                       size_t max_size)
{
    const size_t end = p->n * p->page_bytes, from = choose(c, p->n);

    if (end + p->page_bytes > max_size)
        return size;
    memmove(p->data + end, p->data + from * p->page_bytes, p->page_bytes);
    put32(p->data + 28, p->n + 1);
    return end + p->page_bytes;
}

/* A page becomes one with up to 400 others, or one other, below it. */
static void make_interior(const struct pages *p, struct choice_source *c)
{
    const size_t page = choose(c, p->n), below = choose(c, p->n) + 1;
    uint8_t *tree = tree_of(p, page), *begin = p->data + page * p->page_bytes;
    size_t n = choose_count(c), end = p->page_bytes;

    tree[0] = choose(c, 4) ? 5 : 2;
    put32(tree + 8, choose(c, p->n) + 1);
    while (n && (size_t)(tree - begin) + 12 + 2 * n + 5 * n > p->page_bytes)
        n /= 2;
    put16(tree + 3, n);
    for (size_t i = 0; i < n; i++) {
        end -= 5;
        put32(begin + end, choose(c, 8) ? below : choose(c, p->n) + 1);
        begin[end + 4] = (uint8_t)(i & 0x7f);
        put16(tree + 12 + 2 * i, end);
    }
    put16(tree + 5, end);
}

/* A tree's cells: one is all of them, or there are more. */
static void repeat_cell(const struct pages *p, struct choice_source *c)
{
    const size_t page = choose(c, p->n);
    uint8_t *tree = tree_of(p, page), *begin = p->data + page * p->page_bytes;
    uint8_t *cells = tree + (has_below(tree) ? 12 : 8);
    const size_t room = (size_t)(begin + p->page_bytes - cells) / 2;
    const size_t wanted = choose_count(c), n = wanted < room ? wanted : room;
    const unsigned cell = get16(cells);

    for (size_t i = 0; i < n; i++)
        put16(cells + 2 * i, cell);
    put16(tree + 3, n);
}

/* A number of the file's header, of a tree's, or of the first bytes of a cell. */
static void change_number(const struct pages *p, struct choice_source *c)
{
    static const uint8_t header[] = {16, 18, 19, 20, 21, 24, 28, 32, 36, 40,
                                     44, 48, 52, 56, 60, 64, 68, 92, 96};
    static const size_t edge[] = {0,    1,     2,      3,          4,         127,
                                  0xff, 0xfff, 0xffff, 0x7fffffff, 0xffffffff};
    const size_t v = choose(c, 2) ? edge[choose(c, sizeof edge / sizeof *edge)]
                                  : choose(c, p->n + 2);
    const size_t page = choose(c, p->n);
    uint8_t *tree = tree_of(p, page), *begin = p->data + page * p->page_bytes;
    size_t at;

    switch (choose(c, 4)) {
    case 0:
        put32(p->data + header[choose(c, sizeof header)], v);
        return;
    case 1:
        put16(tree + 1 + 2 * choose(c, 3), v);
        return;
    case 2: /* pages below, overflow */
        at = p->page_bytes - 4 - choose(c, p->page_bytes - HEADER - 12);
        put32(begin + at, v);
        return;
    default: /* lengths, row numbers, types of columns */
        at = get16(tree + (has_below(tree) ? 12 : 8));
        if (at + 8 < p->page_bytes)
            begin[at + choose(c, 8)] = (uint8_t)v;
    }
}

/* Another statement in the place of one, filled up with spaces. */
static void change_schema(const struct pages *p, struct choice_source *c)
{
    static const char *const statements[] = {
        "CREATE VIEW rows AS SELECT * FROM machines",
        "CREATE VIEW rows AS WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 2 FROM r)",
        "CREATE VIRTUAL TABLE rows USING fts5(run)",
        "CREATE VIRTUAL TABLE rows USING dbstat",
        "CREATE TABLE rows (run, point AS (randomblob(99999999)))",
        "CREATE TABLE rows (run CHECK (length(hex(zeroblob(9999999)))), point)",
        "CREATE TABLE rows (run, point, PRIMARY KEY (run, point)) WITHOUT ROWID",
        "CREATE TABLE rows (run DEFAULT (load_extension('x')), point)",
        "CREATE INDEX i ON rows (abs(run))",
        "CREATE TRIGGER t AFTER INSERT ON rows BEGIN DELETE FROM rows; END",
        "CREATE TABLE sqlite_stat1 (tbl, idx, stat)",
        "CREATE TABLE machines (machine, profile)",
    };
    const char *text = statements[choose(c, sizeof statements / sizeof *statements)];
    uint8_t *at = p->data, *end = p->data + p->page_bytes * p->n;
    size_t skip = choose(c, 6), length = 0;

    while ((at = memmem(at, (size_t)(end - at), "CREATE ", 7)) && skip--)
        at += 7;
    if (!at)
        return;
    while (at + length < end && at[length] >= ' ' && at[length] < 0x7f)
        length++;
    if (strlen(text) > length)
        return;
    memset(at, ' ', length);
    memcpy(at, text, strlen(text));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    struct choice_source c = choices_from(seed);
    struct pages p;

    if (!find_pages(&p, data, size))
        return LLVMFuzzerMutate(data, size, max_size);
    for (size_t n = 1 + choose(&c, 3); n; n--)
        switch (choose(&c, 8)) {
        case 0:
            size = LLVMFuzzerMutate(data, size, max_size);
            return size;
        case 1:
            size = add_page(&p, &c, size, max_size);
            p.n = size / p.page_bytes;
            break;
        case 2:
            memmove(p.data + choose(&c, p.n) * p.page_bytes,
                    p.data + choose(&c, p.n) * p.page_bytes, p.page_bytes);
            break;
        case 3:
            make_interior(&p, &c);
            break;
        case 4:
            repeat_cell(&p, &c);
            break;
        case 5:
            change_schema(&p, &c);
            break;
        default:
            change_number(&p, &c);
        }
    return size;
}
