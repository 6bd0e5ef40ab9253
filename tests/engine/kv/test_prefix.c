/* SPDX-License-Identifier: MIT
 *
 * test_prefix.c - the tree of what texts begin with: what is found, what is forgotten
 * first, and whose pages are free then
 */
#include "tests/support/test.h"

#include "engine/kv/prefix.h"

enum { N_PAGES = 8, N_TOKENS = 3 * (int)KVCACHE_PAGE };

static struct kvpages *pages;
static struct prefix_cache *cache;

/* texts that have nothing in common */
static int32_t text_a[N_TOKENS], text_b[N_TOKENS], text_c[N_TOKENS];

static int open_all(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    for (int i = 0; i < N_TOKENS; i++) {
        text_a[i] = i;
        text_b[i] = 10000 + i;
        text_c[i] = 20000 + i;
    }
    return kvpages_open(&pages, N_PAGES, 2, N_TOKENS, &err) ||
           prefix_open(&cache, pages, 0, N_TOKENS, &err);
}

static int close_all(void **state)
{
    (void)state;
    prefix_close(cache);
    kvpages_close(pages);
    return 0;
}

/* A sequence computes a text in pages of its own, which are kept, and ends. */
static void keep(const int32_t *text, size_t n)
{
    uint32_t from;

    for (size_t i = 0; i * KVCACHE_PAGE < n; i++)
        assert_true(kvpages_own(pages, 0, i, &from));
    prefix_add(cache, text, n, kvpages_entry(pages, 0, 0));
    kvpages_cut(pages, 0, 0);
}

static size_t find(const int32_t *text, size_t n, uint32_t *page)
{
    uint32_t ignored[N_TOKENS];

    return prefix_find(cache, text, n, page ? page : ignored);
}

static void check_pages(size_t n, size_t n_own)
{
    assert_int_equal(prefix_pages(cache), n);
    assert_int_equal(prefix_own_pages(cache), n_own);
    assert_int_equal(pages->n_free, N_PAGES - n);
}

static void the_longest_is_found(void **state)
{
    uint32_t of_a[N_TOKENS], of_other[N_TOKENS];
    int32_t other[N_TOKENS];

    (void)state;
    memcpy(other, text_a, sizeof other);
    memcpy(other + 300, text_b, (N_TOKENS - 300) * sizeof *other);
    assert_int_equal(find(text_a, 600, NULL), 0);
    keep(text_a, 600);
    check_pages(3, 3);
    assert_int_equal(find(other, 600, of_other), 300);
    assert_int_equal(find(text_a, N_TOKENS, of_a), 600);
    assert_memory_equal(of_a, of_other, 2 * sizeof *of_a);
    assert_int_equal(find(text_a, 100, NULL), 100);
    assert_int_equal(find(text_a, KVCACHE_PAGE, NULL), KVCACHE_PAGE);
    assert_int_equal(find(text_b, 600, NULL), 0);
    /* of the other one only what it does not have in common */
    keep(other, 500);
    check_pages(4, 4);
    assert_int_equal(find(other, 600, of_other), 500);
    assert_int_equal(of_a[0], of_other[0]);
    assert_true(of_a[1] != of_other[1]);
    assert_int_equal(find(text_a, 600, of_other), 600);
    assert_memory_equal(of_a, of_other, 3 * sizeof *of_a);
}

static void a_page_goes_on(void **state)
{
    uint32_t before[N_TOKENS], after[N_TOKENS];

    (void)state;
    keep(text_a, 300);
    assert_int_equal(find(text_a, 600, before), 300);
    keep(text_a, 400);
    check_pages(2, 2);
    assert_int_equal(find(text_a, 600, after), 400);
    assert_true(before[0] == after[0] && before[1] != after[1]);
    keep(text_a, 350); /* known */
    check_pages(2, 2);
    assert_int_equal(find(text_a, 600, before), 400);
    assert_memory_equal(before, after, 2 * sizeof *before);
    keep(text_a, 600);
    check_pages(3, 3);
    assert_int_equal(find(text_a, 700, NULL), 600);
}

static void what_was_used_longest_ago_is_forgotten_first(void **state)
{
    (void)state;
    keep(text_a, 200);
    keep(text_b, 200);
    keep(text_c, 200);
    assert_int_equal(find(text_a, 200, NULL), 200);
    prefix_forget(cache, N_PAGES - 3);
    check_pages(3, 3);
    prefix_forget(cache, N_PAGES - 2);
    check_pages(2, 2);
    assert_int_equal(find(text_b, 200, NULL), 0);
    keep(text_c, 100); /* used, though it is known */
    prefix_forget(cache, N_PAGES - 1);
    assert_int_equal(find(text_a, 200, NULL), 0);
    assert_int_equal(find(text_c, 200, NULL), 200);
    prefix_forget(cache, N_PAGES);
    check_pages(0, 0);
}

/* The last page of a text first, and never one that others go on from. */
static void the_end_is_forgotten_first(void **state)
{
    int32_t other[N_TOKENS];

    (void)state;
    memcpy(other, text_a, sizeof other);
    memcpy(other + 256, text_b, (N_TOKENS - 256) * sizeof *other);
    keep(text_a, 700);
    keep(other, 400);
    check_pages(4, 4);
    prefix_forget(cache, N_PAGES - 3);
    assert_int_equal(find(text_a, 700, NULL), 512);
    prefix_forget(cache, N_PAGES - 2);
    assert_int_equal(find(other, 700, NULL), 256);
    assert_int_equal(find(text_a, 700, NULL), 512);
    prefix_forget(cache, N_PAGES - 1);
    assert_int_equal(find(text_a, 700, NULL), 256);
    /* nodes are used again */
    for (int i = 0; i < 3 * N_PAGES; i++) {
        keep(i % 2 ? text_b : text_c, 100 + (size_t)i);
        prefix_forget(cache, N_PAGES - 1);
    }
    check_pages(1, 1);
}

/* A page that a sequence has is not free when it is forgotten. */
static void pages_in_use_stay(void **state)
{
    uint32_t page[N_TOKENS];

    (void)state;
    keep(text_a, 400);
    assert_int_equal(find(text_a, 400, page), 400);
    kvpages_share(pages, 1, 0, page[0]);
    assert_int_equal(prefix_pages(cache), 2);
    assert_int_equal(prefix_own_pages(cache), 1);
    prefix_forget(cache, N_PAGES);
    assert_int_equal(prefix_pages(cache), 0);
    assert_int_equal(pages->n_free, N_PAGES - 1);
    assert_int_equal(find(text_a, 400, NULL), 0);
    kvpages_cut(pages, 1, 0);
    assert_int_equal(pages->n_free, N_PAGES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_longest_is_found, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_page_goes_on, open_all, close_all),
        cmocka_unit_test_setup_teardown(what_was_used_longest_ago_is_forgotten_first,
                                        open_all, close_all),
        cmocka_unit_test_setup_teardown(the_end_is_forgotten_first, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(pages_in_use_stay, open_all, close_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
