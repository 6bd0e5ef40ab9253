/* SPDX-License-Identifier: MIT
 *
 * test_q2_0.c - the two layouts of type 42 are told apart, and no file is trusted there
 */
#include "tests/support/test.h"

#include "engine/gguf/gguf.h"
#include "tests/support/gguf_build.h"

static struct build start(uint64_t n_tensors)
{
    struct build b = build_new();

    put_header(&b, 3, n_tensors, 0);
    return b;
}

struct q2_0 {
    uint64_t row, n_rows, bytes; /* bytes: up to the next tensor */
    uint32_t type;               /* that it must be given */
};

/* A file with these tensors, one behind another. */
static void check_layouts(const struct q2_0 *t, size_t n, size_t end_less)
{
    struct build b = start(n);
    struct err err = ERR_INIT;
    struct gguf *g = NULL;
    uint64_t at = 0;

    for (size_t i = 0; i < n; i++) {
        const uint64_t ne[2] = {t[i].row, t[i].n_rows};
        char name[24];

        snprintf(name, sizeof name, "t%zu", i);
        put_tensor(&b, name, 42, 2, ne, at);
        at += t[i].bytes;
    }
    put_padding(&b, 32);
    put_zeros(&b, at - end_less);
    if (gguf_parse(&g, b.data, b.n, "q2_0", &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < n; i++) {
        const struct gguf_tensor *made = gguf_tensor_at(g, i);

        if (made->ggml_id != t[i].type)
            fail_msg("tensor %zu is of type %u, not %u", i, made->ggml_id, t[i].type);
        assert_int_equal(made->bytes, t[i].row * t[i].n_rows *
                                          (t[i].type == GGUF_Q2_0 ? 36 : 34) / 128);
        assert_int_equal(made->fmt,
                         t[i].type == GGUF_Q2_0 ? KERN_FMT_q2_0 : KERN_FMT_q2_0_128);
    }
    gguf_close(g);
    build_free(&b);
}

static void tensors_places_tell_the_layouts_of_q2_0_apart(void **state)
{
    const uint32_t now = GGUF_Q2_0, older = GGUF_Q2_0_128;

    (void)state;
    check_layouts((struct q2_0[]){{1024, 8, 2304, now}, {256, 64, 4608, now}}, 2, 0);
    check_layouts((struct q2_0[]){{1024, 8, 2176, older}, {256, 64, 4352, older}}, 2,
                  0);
    /* a last tensor without the padding behind it */
    check_layouts((struct q2_0[]){{1024, 8, 2176, older}, {384, 11, 1152, older}}, 2,
                  30);
    check_layouts((struct q2_0[]){{1024, 8, 2304, now}, {448, 9, 1152, now}}, 2, 18);
    /* a small one that both layouts pad to the same end is like the others */
    check_layouts((struct q2_0[]){{128, 1, 64, older}, {1024, 8, 2176, older}}, 2, 0);
    check_layouts((struct q2_0[]){{128, 1, 64, now}, {1024, 8, 2304, now}}, 2, 0);
    check_layouts((struct q2_0[]){{128, 1, 64, now}}, 1, 0);
    /* rows of 64 are never of the older one */
    check_layouts((struct q2_0[]){{64, 1, 32, now}, {1024, 8, 2176, older}}, 2, 0);
}

/* Cut short, misplaced, or as large as numbers go: a sentence, whatever the layout. */
static void wrong_q2_0(void **state)
{
    static const struct {
        uint64_t ne[2], at, data;
    } cases[] = {
        {{1024, 8}, 0, 2175},           {{1024, 8}, 0, 100},
        {{1024, 8}, 1 << 20, 2304},     {{1024, 8}, UINT64_MAX - 31, 2304},
        {{1ULL << 62, 1}, 0, 2304},     {{96, 8}, 0, 2304},
        {{1024, 1ULL << 50}, 32, 2304},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct build b = start(1);
        struct err err = ERR_INIT;
        struct gguf *g = NULL;

        put_tensor(&b, "t", 42, 2, cases[i].ne, cases[i].at);
        put_padding(&b, 32);
        put_zeros(&b, cases[i].data);
        assert_int_equal(gguf_parse(&g, b.data, b.n, "q2_0", &err), ST_INPUT);
        build_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_places_tell_the_layouts_of_q2_0_apart),
        cmocka_unit_test(wrong_q2_0),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
