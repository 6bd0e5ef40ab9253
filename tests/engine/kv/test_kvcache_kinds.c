/* SPDX-License-Identifier: MIT
 *
 * test_kvcache_kinds.c - a cache whose layers with a window have other heads than those
 * without: what is stored is what is there, and sizes are those of both kinds
 */
#include "tests/support/test.h"

#include "engine/kv/kvcache.h"
#include "kernels/half.h"

enum { N_CTX = 200, N_WHOLE = 2, N_RINGS = 3, HEADS = 1, DIM = 48 };
enum { RING_HEADS = 4, RING_DIM = 20, WINDOW = 40, SPARE = 8 };

static const struct kvcache_shape shape = {
    .type = KERN_KV_f16,
    .n_layers = N_WHOLE + N_RINGS,
    .n_kv_heads = HEADS,
    .head_dim = DIM,
    .n_window_layers = N_RINGS,
    .window = WINDOW,
    .n_spare = SPARE,
    .n_window_heads = RING_HEADS,
    .window_dim = RING_DIM,
};

static int heads_of(int layer)
{
    return layer < N_WHOLE ? HEADS : RING_HEADS;
}

static int dim_of(int layer)
{
    return layer < N_WHOLE ? DIM : RING_DIM;
}

/* A half that no other element of the cache has near it. */
static float element(int seq, int layer, int head, int pos, int i)
{
    return (float)((seq * 977 + layer * 331 + head * 101 + pos * 13 + i * 7) % 2039);
}

static void store_all(struct kvcache *kv, const struct kern_set *kern, int seq, int pos)
{
    float k[DIM], v[DIM];

    for (int layer = 0; layer < shape.n_layers; layer++)
        for (int head = 0; head < heads_of(layer); head++) {
            for (int i = 0; i < dim_of(layer); i++) {
                k[i] = element(seq, layer, head, pos, i);
                v[i] = -k[i];
            }
            kvcache_store(kv, kern, seq, layer, head, (size_t)pos, k, v);
        }
}

static void check(const struct kvcache *kv, int seq, int layer, int head, int pos)
{
    const struct kvcache_heads *h = kvcache_heads(kv, layer);
    const size_t lane = (size_t)pos % KVCACHE_PANEL;
    const void *key = kvcache_k(kv, seq, layer, head, (size_t)pos);
    const void *value = kvcache_v(kv, seq, layer, head, (size_t)pos);

    assert_int_equal(h->dim, dim_of(layer));
    for (int i = 0; i < dim_of(layer); i++) {
        const float want = element(seq, layer, head, pos, i);
        const float k =
            half_to_f32(((const uint16_t *)key)[(size_t)i * KVCACHE_PANEL + lane]);
        const float v =
            half_to_f32(((const uint16_t *)value)[lane * h->value_dim + (size_t)i]);

        if (k != want || v != -want)
            fail_msg("sequence %d, layer %d, head %d, position %d, element %d: %g %g, "
                     "and %g was stored",
                     seq, layer, head, pos, i, (double)k, (double)v, (double)want);
    }
}

static void check_all(const struct kvcache *kv, int seq, int n)
{
    for (int layer = 0; layer < shape.n_layers; layer++)
        for (int head = 0; head < heads_of(layer); head++)
            for (int pos = layer < N_WHOLE ? 0 : n - WINDOW; pos < n; pos++)
                check(kv, seq, layer, head, pos);
}

static void layers_keep_what_is_stored(void **state)
{
    struct kern_set kern;
    struct err err = ERR_INIT;
    struct kvcache kv;

    (void)state;
    kern_select(&kern, isa_usable());
    assert_int_equal(kvcache_open(&kv, &shape, N_CTX, &err), ST_OK);
    for (int pos = 0; pos < N_CTX; pos++)
        store_all(&kv, &kern, 0, pos);
    check_all(&kv, 0, N_CTX);
    kvcache_close(&kv);
}

/* Pages are shared until one of the two writes; rings are copied. */
static void sequences_are_apart(void **state)
{
    struct kvcache_shape two = shape;
    struct kern_set kern;
    struct err err = ERR_INIT;
    struct kvcache kv;

    (void)state;
    two.n_sequences = 2;
    kern_select(&kern, isa_usable());
    assert_int_equal(kvcache_open(&kv, &two, N_CTX, &err), ST_OK);
    assert_true(kvcache_reserve(&kv, 0, 0, 100));
    for (int pos = 0; pos < 100; pos++)
        store_all(&kv, &kern, 0, pos);
    kvcache_fork(&kv, 0, 1, 100);
    assert_true(kvcache_reserve(&kv, 1, 100, 150));
    for (int pos = 100; pos < 150; pos++)
        store_all(&kv, &kern, 1, pos);
    check_all(&kv, 0, 100);
    for (int layer = 0; layer < N_WHOLE; layer++)
        check(&kv, 1, layer, 0, 149);
    for (int head = 0; head < RING_HEADS; head++)
        check(&kv, 1, N_WHOLE, head, 149);
    kvcache_close(&kv);
}

static void sizes_are_of_both(void **state)
{
    const uint64_t whole = HEADS * (DIM + DIM) * 2; /* values in 16s, too */
    const uint64_t ring = RING_HEADS * (RING_DIM + 32) * 2;
    uint64_t bytes;

    (void)state;
    assert_int_equal(kvcache_pos_bytes(&shape), N_WHOLE * whole + N_RINGS * ring);
    assert_int_equal(kvcache_window_bytes(&shape), N_RINGS * ring);
    assert_int_equal(kvcache_more_bytes(&shape, N_CTX), N_WHOLE * whole);
    assert_true(kvcache_bytes(&bytes, &shape, N_CTX));
    /* 200 positions are 13 panels, 48 are 3 and one more */
    assert_int_equal(bytes, N_WHOLE * whole * 208 + N_RINGS * ring * 64);
}

static void synthetic_contents(void **state)
{
    struct kern_set kern;
    struct err err = ERR_INIT;
    struct kvcache kv, pool;

    (void)state;
    kern_select(&kern, isa_usable());
    assert_int_equal(kvcache_open(&kv, &shape, N_CTX, &err), ST_OK);
    assert_int_equal(kvcache_make_pool(&pool, &kv, &kern, 1, &err), ST_OK);
    for (int layer = 0; layer < shape.n_layers; layer++)
        for (int head = 0; head < heads_of(layer); head++) {
            kvcache_fill(&kv, &kern, 0, layer, head, 0, N_CTX, &pool, 1);
            const uint16_t *key = (const uint16_t *)(const void *)kvcache_k(
                &kv, 0, layer, head, N_CTX - 20);

            for (int i = 0; i < dim_of(layer); i++)
                assert_true(half_to_f32(key[i]) != 0.0f);
        }
    kvcache_close(&pool);
    kvcache_close(&kv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_keep_what_is_stored),
        cmocka_unit_test(sequences_are_apart),
        cmocka_unit_test(sizes_are_of_both),
        cmocka_unit_test(synthetic_contents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
