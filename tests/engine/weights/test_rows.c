/* SPDX-License-Identifier: MIT
 *
 * test_rows.c - a table of which tokens need a row each: a mapped or streamed model
 * leaves it in the file
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <unistd.h>

#include "engine/weights/weights.h"
#include "tests/support/gguf_build.h"
#include "tests/support/preload_calls.h"

#define I8 24

enum { OTHER = 1 << 20, TABLE = 8 << 20 };

static char path[] = "/tmp/test_rows.XXXXXX";
static struct gguf *g;

/* Two tensors with a table between them; a sparse file of zeros. */
static int make(void **state)
{
    const uint64_t sizes[] = {OTHER, TABLE, OTHER};
    static const char *const names[] = {
        "token_embd.weight", "per_layer_token_embd.weight", "blk.0.attn_q.weight"};
    struct err err = ERR_INIT;
    struct build b = build_new();
    const int fd = mkstemp(path);
    uint64_t at = 0;

    (void)state;
    put_header(&b, 3, 3, 0);
    for (int i = 0; i < 3; i++) {
        put_tensor(&b, names[i], I8, 1, &sizes[i], at);
        at += sizes[i];
    }
    put_padding(&b, 32);
    if (fd < 0 || write(fd, b.data, b.n) != (ssize_t)b.n ||
        ftruncate(fd, (off_t)(b.n + at)))
        return 1;
    close(fd);
    build_free(&b);
    return gguf_open(&g, path, &err);
}

static int clean(void **state)
{
    (void)state;
    gguf_close(g);
    return unlink(path);
}

/* Whether the page of a byte is in this process's page table. */
static bool is_present(const void *at)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const int fd = open("/proc/self/pagemap", O_RDONLY);
    uint64_t entry = 0;

    if (fd < 0 ||
        pread(fd, &entry, 8, (off_t)((uintptr_t)at / page * sizeof entry)) != 8)
        skip();
    close(fd);
    return entry >> 63;
}

static const unsigned char *data_of(const struct weights *w, const char *name)
{
    return weights_data(w, gguf_tensor_find(g, name));
}

static void mapped(void **state)
{
    const struct weights_params params = {.residency = WEIGHTS_MMAP};
    struct err err = ERR_INIT;
    struct calls calls = {0};
    struct weights *w;

    (void)state;
    assert_int_equal(weights_open(&w, g, &params, &err), ST_OK);
    assert_int_equal(weights_preload(w, NULL, note, &calls, &err), ST_OK);
    assert_int_equal(calls.done, calls.total);
    assert_true(is_present(data_of(w, "token_embd.weight") + OTHER / 2));
    assert_true(is_present(data_of(w, "blk.0.attn_q.weight") + OTHER / 2));

    const unsigned char *row = data_of(w, "per_layer_token_embd.weight") + TABLE / 2;

    assert_false(is_present(row));
    assert_true(weights_is_mapped(w, gguf_tensor_at(g, 1)));
    weights_read_ahead(row, 10000);
    size_t bytes;
    const unsigned char *memory = weights_memory(w, &bytes);

    assert_true(bytes > OTHER && bytes < 2 * OTHER);
    assert_true(memory + bytes <= row || memory > row);
    assert_int_equal(*row, 0);
    assert_true(is_present(row));
    weights_close(w);
}

static void streamed(void **state)
{
    struct residency_plan plan;
    struct residency_bounds bounds;
    struct err err = ERR_INIT;
    struct weights *w;

    (void)state;
    assert_int_equal(residency_bounds_find(&bounds, g, 1, &err), ST_OK);
    assert_int_equal(bounds.disk_bytes, TABLE);
    assert_int_equal(residency_plan_make(&plan, g, 1, 2 * OTHER + 4096, &err), ST_OK);
    assert_int_equal(plan.n_streamed, 0);
    assert_int_equal(plan.memory_bytes, 2 * OTHER);

    const struct weights_params params = {
        .residency = WEIGHTS_STREAM, .isa_mask = 1, .plan = &plan};

    assert_int_equal(weights_open(&w, g, &params, &err), ST_OK);
    assert_int_equal(weights_preload(w, NULL, NULL, NULL, &err), ST_OK);
    assert_ptr_equal(data_of(w, "per_layer_token_embd.weight"),
                     gguf_tensor_data(g, gguf_tensor_at(g, 1)));
    assert_true(weights_is_mapped(w, gguf_tensor_at(g, 1)));
    assert_false(weights_is_mapped(w, gguf_tensor_at(g, 0)));
    weights_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mapped),
                                       cmocka_unit_test(streamed)};

    return cmocka_run_group_tests(tests, make, clean);
}
