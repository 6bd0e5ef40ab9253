/* SPDX-License-Identifier: MIT
 *
 * test_weights.c - weights by residency, what tensors add up to, and tensors as
 * float32
 */
#include "tests/support/test.h"

#include "engine/engine.h"
#include "engine/gguf/census.h"
#include "engine/quantize/dequant.h"
#include "engine/weights/weights.h"
#include "tests/support/gguf_build.h"
#include "tests/support/preload_calls.h"

#define STORIES TEST_DATA "models/stories260K-f32.gguf"

static const struct weights_params as_mapped = {.residency = WEIGHTS_MMAP};
static const struct weights_params as_memory = {.residency = WEIGHTS_MEMORY};

static void mapped(void **state)
{
    struct err err = ERR_INIT;
    struct calls calls = {0};
    struct weights *w = NULL;
    struct gguf *g;

    (void)state;
    assert_int_equal(gguf_open(&g, STORIES, &err), ST_OK);
    assert_int_equal(weights_open(&w, g, &as_memory, &err), ST_USAGE);
    assert_null(w);
    err_clear(&err);
    assert_int_equal(weights_open(&w, g, &as_mapped, &err), ST_OK);
    assert_int_equal(weights_preload(w, NULL, NULL, NULL, &err), ST_OK);
    assert_int_equal(weights_preload(w, NULL, note, &calls, &err), ST_OK);
    assert_true(calls.n >= 1);
    assert_int_equal(calls.done, calls.total);
    assert_int_equal(calls.total, weights_bytes(w));

    const struct gguf_tensor *t = gguf_tensor_find(g, "output_norm.weight");

    assert_ptr_equal(weights_data(w, t), (const char *)gguf_image(g) + t->offset);
    calls = (struct calls){.stop_at = 1};
    assert_int_equal(weights_preload(w, NULL, note, &calls, &err), ST_INTERRUPTED);
    weights_close(w);
    weights_close(NULL);
    gguf_close(g);
    assert_string_equal(weights_residency_name(WEIGHTS_MMAP), "mmap");
    assert_string_equal(weights_residency_name(WEIGHTS_MEMORY), "memory");
}

/* A file that shrinks while it is open is an error of preloading, not a signal. */
static void shrunk(void **state)
{
    char path[] = "/tmp/test_weights.XXXXXX";
    const size_t data = (size_t)9 << 20;
    struct err err = ERR_INIT;
    struct build b = build_new();
    struct weights *w;
    struct gguf *g;
    const int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    put_header(&b, 3, 1, 0);
    put_tensor(&b, "w", 24, 1, (uint64_t[]){data}, 0); /* i8 */
    put_padding(&b, 32);
    assert_int_equal(write(fd, b.data, b.n), b.n);
    assert_int_equal(ftruncate(fd, (off_t)(b.n + data)), 0);
    assert_int_equal(gguf_open(&g, path, &err), ST_OK);
    assert_int_equal(weights_open(&w, g, &as_mapped, &err), ST_OK);
    struct calls calls = {0};

    assert_int_equal(weights_preload(w, NULL, note, &calls, &err), ST_OK);
    assert_true(calls.n >= 3);
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(weights_preload(w, NULL, NULL, NULL, &err), ST_IO);
    assert_non_null(strstr(err.msg, "shrink"));
    weights_close(w);
    gguf_close(g);
    close(fd);
    unlink(path);
    build_free(&b);
}

static void in_memory(void **state)
{
    struct build b = build_new();
    struct err err = ERR_INIT;
    struct calls calls = {0};
    struct weights *w = NULL;
    struct gguf *g;

    (void)state;
    put_header(&b, 3, 1, 0);
    put_tensor(&b, "w", 0, 1, (uint64_t[]){8}, 0);
    put_padding(&b, 32);
    put_zeros(&b, 32);
    assert_int_equal(gguf_parse(&g, b.data, b.n, "memory", &err), ST_OK);
    assert_int_equal(weights_open(&w, g, &as_mapped, &err), ST_USAGE);
    err_clear(&err);
    assert_int_equal(weights_open(&w, g, &as_memory, &err), ST_OK);
    assert_int_equal(weights_bytes(w), 32);
    assert_int_equal(weights_preload(w, NULL, note, &calls, &err), ST_OK);
    assert_int_equal(calls.n, 1);
    assert_ptr_equal(weights_data(w, gguf_tensor_at(g, 0)),
                     b.data + gguf_tensor_at(g, 0)->offset);
    weights_close(w);
    gguf_close(g);
    build_free(&b);
}

/* ---- census ---------------------------------------------------------------------- */

static void census_of_experts_and_tables(void **state)
{
    struct build b = build_new();
    struct err err = ERR_INIT;
    struct census c;
    struct gguf *g;

    (void)state;
    put_header(&b, 3, 6, 3);
    put_kv_str(&b, "general.architecture", "llama");
    put_kv_u32(&b, "llama.expert_count", 4);
    put_kv_u32(&b, "llama.expert_used_count", 2);
    put_tensor(&b, "token_embd.weight", 0, 2, (uint64_t[]){8, 10}, 0);     /* 320 B */
    put_tensor(&b, "output.weight", 8, 2, (uint64_t[]){32, 10}, 320);      /* 340 B */
    put_tensor(&b, "position_embd.weight", 0, 2, (uint64_t[]){8, 3}, 672); /* 96 B */
    put_tensor(&b, "blk.0.ffn_up_exps.weight", 0, 3, (uint64_t[]){8, 2, 4},
               768);                                                       /* 256 B */
    put_tensor(&b, "blk.0.attn_norm.weight", 0, 1, (uint64_t[]){8}, 1024); /* 32 B */
    put_tensor(&b, "strange", 99, 1, (uint64_t[]){5}, 1056);
    put_padding(&b, 32);
    put_zeros(&b, 1056);
    assert_int_equal(gguf_parse(&g, b.data, b.n, "census", &err), ST_OK);
    census_take(&c, g);
    assert_int_equal(c.n_params, 80 + 320 + 24 + 64 + 8 + 5);
    assert_int_equal(c.bytes, 320 + 340 + 96 + 256 + 32);
    assert_false(c.tied_output);
    assert_int_equal(c.n_experts, 4);
    assert_int_equal(c.token_bytes, 32 + 340 + 32 + 128 + 32);
    assert_int_equal(c.n_types, 3);
    assert_int_equal(c.types[0].ggml_id, 0);
    assert_int_equal(c.types[0].n_tensors, 4);
    assert_int_equal(c.types[1].bytes, 340);
    assert_int_equal(c.types[2].ggml_id, CENSUS_UNKNOWN_TYPES);
    assert_int_equal(c.types[2].bytes, 0);
    gguf_close(g);
    build_free(&b);
}

static void census_of_a_tied_model(void **state)
{
    struct err err = ERR_INIT;
    struct census c;
    struct gguf *g;

    (void)state;
    assert_int_equal(gguf_open(&g, STORIES, &err), ST_OK);
    census_take(&c, g);
    assert_true(c.tied_output);
    assert_int_equal(c.n_params, 260032);
    assert_int_equal(c.bytes, 4 * 260032);
    /* The matrices, the norms, and the row of the token that is read. */
    assert_int_equal(c.token_bytes, c.bytes + 64 * 4);

    const struct slm_params params = slm_params_default();
    struct slm_info info;

    assert_int_equal(slm_plan(&info, g, &params, &err), ST_OK);
    assert_int_equal(c.token_bytes, info.weight_token_bytes);
    gguf_close(g);
}

/* ---- dequantising ---------------------------------------------------------------- */

struct collected {
    float v[200000];
    size_t n, n_calls, stop_after;
};

static enum status collect(void *arg, const float *v, size_t n, struct err *err)
{
    struct collected *c = arg;

    assert_true(c->n + n <= sizeof c->v / sizeof c->v[0]);
    memcpy(c->v + c->n, v, n * sizeof *v);
    c->n += n;
    if (++c->n_calls == c->stop_after)
        return err_set(err, ST_IO, "the disk is full");
    return ST_OK;
}

static void dequantises_in_pieces(void **state)
{
    const uint64_t shape[2] = {1000, 150}; /* more than two pieces of 65536 */
    const uint64_t n = shape[0] * shape[1];
    struct collected *c = calloc(1, sizeof *c);
    struct build b = build_new();
    struct err err = ERR_INIT;
    struct gguf *g;

    (void)state;
    assert_non_null(c);
    put_header(&b, 3, 2, 0);
    put_tensor(&b, "w", 0, 2, shape, 0);
    put_tensor(&b, "strange", 99, 1, (uint64_t[]){5}, 0);
    put_padding(&b, 32);

    unsigned char *image = aligned_alloc(64, (b.n + n * 4 + 63) / 64 * 64);

    assert_non_null(image);
    memcpy(image, b.data, b.n);
    for (uint64_t i = 0; i < n; i++)
        memcpy(image + b.n + i * 4, &(float){(float)i}, 4);
    assert_int_equal(gguf_parse(&g, image, b.n + n * 4, "floats", &err), ST_OK);
    const struct gguf_tensor *w = gguf_tensor_find(g, "w");

    assert_int_equal(dequant_tensor(g, w, 1u << KERN_ISA_scalar, collect, c, &err),
                     ST_OK);
    assert_int_equal(c->n, n);
    assert_int_equal(c->n_calls, 3);
    for (uint64_t i = 0; i < n; i++)
        assert_true(c->v[i] == (float)i);

    *c = (struct collected){.stop_after = 2};
    assert_int_equal(dequant_tensor(g, w, isa_usable(), collect, c, &err), ST_IO);
    assert_int_equal(c->n_calls, 2);
    err_clear(&err);
    assert_int_equal(dequant_tensor(g, gguf_tensor_find(g, "strange"), isa_usable(),
                                    collect, c, &err),
                     ST_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "number 99"));
    gguf_close(g);
    free(image);
    free(c);
    build_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mapped),
        cmocka_unit_test(shrunk),
        cmocka_unit_test(in_memory),
        cmocka_unit_test(census_of_experts_and_tables),
        cmocka_unit_test(census_of_a_tied_model),
        cmocka_unit_test(dequantises_in_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
