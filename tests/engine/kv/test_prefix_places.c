/* SPDX-License-Identifier: MIT
 *
 * test_prefix_places.c - texts that continue from checkpoints alone: which one is
 * found, which one goes, and what goes with it
 */
#include "tests/support/test.h"

#include "engine/kv/prefix.h"

enum { N_PAGES = 12, N_PLACES = 4, N_TOKENS = 6 * (int)KVCACHE_PAGE };

static struct kvpages *pages; /* NULL: no layer has any */
static struct prefix_cache *cache;
static int32_t text_a[N_TOKENS], text_b[N_TOKENS], text_c[N_TOKENS];

static int open_cache(void)
{
    struct err err = ERR_INIT;

    for (int i = 0; i < N_TOKENS; i++) {
        text_a[i] = i;
        text_b[i] = 10000 + i;
        text_c[i] = 20000 + i;
    }
    return prefix_open(&cache, pages, N_PLACES, N_TOKENS, &err);
}

static int open_all(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    return kvpages_open(&pages, N_PAGES, 2, N_TOKENS, &err) || open_cache();
}

static int open_without_pages(void **state)
{
    (void)state;
    pages = NULL;
    return open_cache();
}

static int close_all(void **state)
{
    (void)state;
    prefix_close(cache);
    kvpages_close(pages);
    return 0;
}

/* A sequence computes n tokens of a text with a checkpoint behind them, and ends. Its
 * place; -1: it is not kept. */
static int keep_why(const int32_t *text, size_t n, enum prefix_why why)
{
    const int place = prefix_new_place(cache, text, n, n, why);
    uint32_t from;

    if (place < 0)
        return place;
    for (size_t i = 0; pages && i * KVCACHE_PAGE < n; i++)
        assert_true(kvpages_own(pages, 0, i, &from));
    prefix_add_place(cache, place, text, n, pages ? kvpages_entry(pages, 0, 0) : NULL);
    if (pages)
        kvpages_cut(pages, 0, 0);
    return place;
}

static int keep(const int32_t *text, size_t n)
{
    return keep_why(text, n, PREFIX_END);
}

static size_t look(const int32_t *text, size_t n)
{
    size_t n_common;

    return prefix_look(cache, text, n, &n_common);
}

static void check_kept(size_t n_places, size_t n_pages)
{
    assert_int_equal(prefix_places(cache), n_places);
    assert_int_equal(prefix_free_places(cache), N_PLACES - n_places);
    if (!pages)
        return;
    assert_int_equal(prefix_pages(cache), n_pages);
    assert_int_equal(prefix_own_pages(cache), n_pages);
    assert_int_equal(pages->n_free, N_PAGES - n_pages);
}

static void the_last_one_is_found(void **state)
{
    int32_t other[N_TOKENS];
    uint32_t page[N_TOKENS / (int)KVCACHE_PAGE];
    size_t n_common = 0;
    int first, second, place = -1;

    (void)state;
    memcpy(other, text_a, sizeof other);
    memcpy(other + 300, text_b, (N_TOKENS - 300) * sizeof *other);
    first = keep(text_a, 200);
    check_kept(1, 1);
    second = keep(text_a, 700);
    check_kept(2, 3);
    assert_int_equal(look(text_a, 199), 0);
    assert_int_equal(look(text_a, 200), 200);
    assert_int_equal(look(text_a, 699), 200);
    assert_int_equal(look(text_a, N_TOKENS), 700);
    assert_int_equal(look(text_b, N_TOKENS), 0);
    assert_int_equal(prefix_look(cache, other, N_TOKENS, &n_common), 200);
    assert_int_equal(n_common, 300);
    assert_int_equal(prefix_take(cache, text_b, N_TOKENS, page, &place), 0);
    assert_int_equal(prefix_take(cache, other, N_TOKENS, page, &place), 200);
    assert_int_equal(place, first);
    assert_int_equal(prefix_take(cache, text_a, N_TOKENS, page, &place), 700);
    assert_int_equal(place, second);
    if (pages)
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < i; k++)
                assert_true(page[i] != page[k]);
}

/* Texts that part within a page have a page each; what is before that is found for
 * both, whichever has the longer text. */
static void one_within_a_page_is_for_all(void **state)
{
    int32_t other[N_TOKENS];

    (void)state;
    memcpy(other, text_a, sizeof other);
    memcpy(other + 400, text_b, (N_TOKENS - 400) * sizeof *other);
    keep(text_a, 300);
    keep(text_a, 500);
    keep(other, 510);
    check_kept(3, 3);
    assert_int_equal(look(text_a, N_TOKENS), 500);
    assert_int_equal(look(other, N_TOKENS), 510);
    assert_int_equal(look(text_a, 499), 300);
    assert_int_equal(look(other, 505), 300);
}

static void few_tokens_and_known_ones_take_no_place(void **state)
{
    (void)state;
    assert_int_equal(keep(text_a, PREFIX_MIN_SAVED - 1), -1);
    assert_true(keep(text_a, PREFIX_MIN_SAVED) >= 0);
    assert_int_equal(keep(text_a, 2 * PREFIX_MIN_SAVED - 1), -1);
    check_kept(1, 1);
    keep(text_a, PREFIX_MIN_SAVED);
    check_kept(1, 1);
    /* a pass that failed gives its place back */
    for (int i = 0; i < 2 * N_PLACES; i++)
        prefix_drop_place(cache, prefix_new_place(cache, text_b, 0, 300, PREFIX_END));
    check_kept(1, 1);
}

/* The first of a conversation goes before the last of it, though it is the longest;
 * one for a few tokens before one for many. */
static void the_cheapest_goes(void **state)
{
    (void)state;
    keep(text_a, 300);
    keep(text_b, 250);
    keep(text_a, 500);
    keep(text_c, 200);
    check_kept(4, 4);
    keep(text_b, 350);
    check_kept(4, 5);
    assert_int_equal(look(text_b, 300), 0); /* it continues at 350 */
    assert_int_equal(look(text_b, 400), 350);
    assert_int_equal(look(text_a, 400), 300);
    keep(text_b, 500);
    assert_int_equal(look(text_a, 400), 0);
    assert_int_equal(look(text_a, 600), 500);
    assert_int_equal(look(text_b, 400), 350);
    assert_int_equal(look(text_c, 600), 200);
    assert_int_equal(look(text_b, 600), 500);
}

/* What was placed because it was a while ago goes for any other; and is not kept
 * instead of one. */
static void an_interval_is_worth_less(void **state)
{
    (void)state;
    keep(text_a, 250);
    keep(text_b, 250);
    keep(text_a + 20, 250);
    assert_true(keep_why(text_c, 800, PREFIX_INTERVAL) >= 0);
    assert_int_equal(look(text_c, 900), 800);
    keep(text_b + 20, 150);
    assert_int_equal(look(text_c, 900), 0);
    assert_int_equal(keep_why(text_c, 800, PREFIX_INTERVAL), -1);
    check_kept(4, 4);
    /* but it counts: what nobody has used makes room */
    assert_true(keep_why(text_c, 800, PREFIX_INTERVAL) >= 0);
    check_kept(4, 3 + 4);
}

/* What several texts began with is used, and stays; what nobody uses goes in the end,
 * however long it is. */
static void what_is_used_stays(void **state)
{
    uint32_t page[N_TOKENS / (int)KVCACHE_PAGE];
    int32_t other[N_TOKENS];
    int place, last_place = -1;

    (void)state;
    keep(text_a, 1000);
    keep(text_b, 300);
    memcpy(other, text_b, sizeof other);
    for (int i = 0; i < 60; i++) {
        for (int k = 300; k < N_TOKENS; k++)
            other[k] = 1000 * (i + 50) + k;
        assert_int_equal(prefix_take(cache, other, 450, page, &place), 300);
        assert_true(i == 0 || place == last_place);
        last_place = place;
        keep(other, 450);
    }
    assert_int_equal(look(text_a, N_TOKENS), 0);
    assert_int_equal(look(text_b, N_TOKENS), 300);
    check_kept(N_PLACES, 2 + N_PLACES - 1);
}

/* Pages that are forgotten take their checkpoints with them, and pages before them
 * that are for nothing then. */
static void pages_and_checkpoints_go_together(void **state)
{
    (void)state;
    keep(text_a, 200);
    keep(text_a, 900);
    keep(text_b, 400);
    check_kept(3, 6);
    prefix_forget(cache, N_PAGES - 5);
    check_kept(2, 3); /* of text_a the pages behind the first */
    assert_int_equal(look(text_a, N_TOKENS), 200);
    prefix_forget(cache, N_PAGES - 2);
    check_kept(1, 2);
    assert_int_equal(look(text_a, N_TOKENS), 0);
    assert_int_equal(look(text_b, N_TOKENS), 400);
    prefix_forget(cache, N_PAGES);
    check_kept(0, 0);
    for (int i = 0; i < N_PLACES; i++) /* all are free again */
        assert_true(keep(i % 2 ? text_a : text_b, 100 + (size_t)i * 200) >= 0);
}

/* Random texts of a random tree, kept and taken: what is found is behind tokens that
 * were kept, and nothing is lost. */
static void random_texts(void **state)
{
    enum { N_KEPT = 400, N_BASES = 6 };
    static int32_t kept[N_KEPT][N_TOKENS];
    static size_t length[N_KEPT];
    uint64_t random = 3, n_made, n_taken;
    int n_found = 0, n_kept = 0;

    (void)state;
    for (int i = 0; i < N_KEPT; i++) {
        const int like = i ? (int)(test_random(&random) % (uint64_t)i) : 0;
        const size_t same = test_random(&random) % 1000;
        size_t known, n_common;
        uint32_t page[N_TOKENS / (int)KVCACHE_PAGE];
        int place;

        for (size_t k = 0; k < N_TOKENS; k++)
            kept[i][k] =
                i && k < same ? kept[like][k] : (int32_t)(i * N_TOKENS + (int)k);
        length[i] = 40 + test_random(&random) % 1100;
        known = prefix_look(cache, kept[i], length[i] - 1, &n_common);
        assert_true(known <= n_common && n_common < length[i]);
        if (prefix_take(cache, kept[i], length[i] - 1, page, &place)) {
            bool was_kept = false;

            for (int k = 0; k < i; k++)
                was_kept |= length[k] == known &&
                            !memcmp(kept[k], kept[i], known * sizeof **kept);
            assert_true(was_kept && place >= 0 && place < N_PLACES);
            n_found++;
        }
        if (pages)
            prefix_forget(cache, (length[i] + KVCACHE_PAGE - 1) / KVCACHE_PAGE);
        n_kept += keep_why(kept[i], length[i], (enum prefix_why)(i % 3)) >= 0;
        assert_int_equal(prefix_places(cache) + prefix_free_places(cache), N_PLACES);
        if (pages) {
            assert_int_equal(pages->n_free + prefix_pages(cache), N_PAGES);
            assert_int_equal(prefix_own_pages(cache), prefix_pages(cache));
        }
    }
    assert_true(n_found > 10);
    prefix_count(cache, &n_made, &n_taken);
    assert_int_equal(n_made, n_kept);
    assert_int_equal(n_taken, n_found);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)
#define WITHOUT(test)                                                     \
    {                                                                     \
#test " without pages", test, open_without_pages, close_all, NULL \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(the_last_one_is_found),
        WITH(one_within_a_page_is_for_all),
        WITH(few_tokens_and_known_ones_take_no_place),
        WITH(the_cheapest_goes),
        WITH(an_interval_is_worth_less),
        WITH(what_is_used_stays),
        WITH(pages_and_checkpoints_go_together),
        WITH(random_texts),
        WITHOUT(the_last_one_is_found),
        WITHOUT(one_within_a_page_is_for_all),
        WITHOUT(few_tokens_and_known_ones_take_no_place),
        WITHOUT(the_cheapest_goes),
        WITHOUT(an_interval_is_worth_less),
        WITHOUT(what_is_used_stays),
        WITHOUT(random_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
