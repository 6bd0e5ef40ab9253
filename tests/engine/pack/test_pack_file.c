/* SPDX-License-Identifier: MIT
 *
 * test_pack_file.c - packed files: where their bytes are, how they are loaded and
 * verified, and what is wrong with one
 */
#include "tests/support/packed_file.h"
#include "tests/support/preload_calls.h"

/* ---- where bytes are ------------------------------------------------------------- */

static int layer_of(const struct gguf_tensor *t)
{
    int layer = -1;

    return sscanf(t->name, "blk.%d.", &layer) == 1 ? layer : -1;
}

static void layers_are_contiguous_pages(void **state)
{
    struct synth_shape shape = uneven_shape;
    struct err err = ERR_INIT;
    struct files f;
    struct gguf *g;

    (void)state;
    needs_panels();
    files_make(&f);
    shape.n_layers = 12; /* "blk.10." sorts before "blk.2." */
    write_synth_file(f.from, &shape, QUANTMIX_Q6_K);
    const struct pack_result r = pack_file(f.from, f.to, 2);

    assert_int_equal(gguf_open(&g, f.to, &err), ST_OK);
    assert_int_equal(r.bytes, gguf_image_bytes(g));
    assert_int_equal(r.bytes % 4096, 0);
    assert_int_equal(gguf_data_offset(g) % 4096, 0);
    uint64_t end = gguf_data_offset(g);
    int layer = -1;
    size_t n = 0;

    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        assert_int_equal(t->offset, end);
        assert_true(layer_of(t) == layer || layer_of(t) == layer + 1);
        layer = layer_of(t);
        end = (t->offset + t->bytes + 4095) / 4096 * 4096;
        n += t->panel_rows > 0;
    }
    assert_int_equal(layer, 11);
    assert_int_equal(end, r.bytes);
    assert_int_equal(n, r.n_in_panels);
    /* seven matrices a layer, and the output; the embedding is only looked up */
    assert_int_equal(n, 12 * 7 + 1);
    assert_int_equal(gguf_tensor_find(g, "token_embd.weight")->panel_rows, 0);
    gguf_close(g);
    files_remove(&f);
}

static void same_file_whoever_makes_it(void **state)
{
    struct synth_shape large = uneven_shape;
    size_t n, m;
    struct files f;
    char again[80];

    (void)state;
    needs_panels();
    files_make(&f);
    large.n_vocab = 50013; /* several chunks */
    write_synth_file(f.from, &large, QUANTMIX_Q8_0);
    pack_file(f.from, f.to, 1);
    void *want = test_read_file(f.to, &n);

    snprintf(again, sizeof again, "%s/again.gguf", f.dir);
    for (int i = 0; i < 3; i++) {
        /* with 3 and 4 threads, and of a packed file */
        pack_file(i < 2 ? f.from : f.to, again, 3 + i % 2);
        void *have = test_read_file(again, &m);

        assert_int_equal(m, n);
        assert_memory_equal(have, want, n);
        free(have);
    }
    free(want);
    assert_int_equal(files_remove(&f), 3);
}

/* ---- loading --------------------------------------------------------------------- */

/* Some 40 MB: several chunks, each for another thread. */
static void make_large(const struct files *f)
{
    struct synth_shape large = uneven_shape;

    large.n_vocab = 70013;
    write_synth_file(f->from, &large, QUANTMIX_Q8_0);
    pack_file(f->from, f->to, 2);
}

static void request_panels(struct weights *w, const struct gguf *g)
{
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        if (t->panel_rows)
            assert_int_equal(weights_panel_rows(w, t), t->panel_rows);
    }
}

static void assert_loaded(const struct weights *w, const struct gguf *g)
{
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        assert_memory_equal(weights_data(w, t), gguf_tensor_data(g, t), t->bytes);
    }
}

/* From the page cache, from the disk, and with half of the file in the page cache;
 * stopped, and begun again. */
static void copied_as_it_is(void **state)
{
    struct thread_pool *pool = NULL;
    struct err err = ERR_INIT;
    struct files f;
    struct gguf *g;

    (void)state;
    needs_panels();
    files_make(&f);
    make_large(&f);
    assert_int_equal(thread_pool_start(&pool, 3, NULL, &err), ST_OK);
    assert_int_equal(gguf_open(&g, f.to, &err), ST_OK);
    for (int i = 0; i < 12; i++) {
        const struct weights_params how = {.residency = WEIGHTS_PACKED,
                                           .isa_mask = isa_usable(),
                                           .drop_cached = i % 2};
        struct calls calls = {.stop_at = i % 3 == 2 ? 1 : 0};
        struct weights *w;
        const off_t dropped = (off_t)gguf_image_bytes(g) / (i / 4 + 1);

        posix_fadvise(gguf_fd(g), 0, i < 4 ? 1 : dropped, POSIX_FADV_DONTNEED);
        assert_int_equal(weights_open(&w, g, &how, &err), ST_OK);
        request_panels(w, g);
        if (calls.stop_at) {
            assert_int_equal(weights_preload(w, pool, note, &calls, &err),
                             ST_INTERRUPTED);
            assert_false(weights_ready(w));
            err_clear(&err);
            calls = (struct calls){0};
        }
        assert_int_equal(weights_preload(w, i < 6 ? pool : NULL, note, &calls, &err),
                         ST_OK);
        assert_true(weights_ready(w) && calls.n > 0 && calls.done == calls.total);
        assert_loaded(w, g);
        weights_close(w);
    }
    gguf_close(g);
    thread_pool_stop(pool);
    files_remove(&f);
}

static enum status verify(const char *path, struct err *err)
{
    struct pack_result r;
    struct gguf *g;
    enum status st = gguf_open(&g, path, err);

    if (st)
        return st;
    st = pack_verify(&r, g, NULL, NULL, err);
    if (!st)
        assert_int_equal(r.bytes, gguf_image_bytes(g));
    gguf_close(g);
    return st;
}

static void shrunk_before_it_is_loaded(void **state)
{
    struct err err = ERR_INIT;
    struct files f;
    struct gguf *g;

    (void)state;
    needs_panels();
    files_make(&f);
    make_large(&f);
    assert_int_equal(verify(f.to, &err), ST_OK);
    assert_int_equal(gguf_open(&g, f.to, &err), ST_OK);
    assert_int_equal(truncate(f.to, 20 << 20), 0);
    for (int drop = 0; drop < 2; drop++) {
        const struct weights_params how = {
            .residency = WEIGHTS_PACKED, .isa_mask = isa_usable(), .drop_cached = drop};
        struct weights *w;

        err_clear(&err);
        assert_int_equal(weights_open(&w, g, &how, &err), ST_OK);
        request_panels(w, g);
        assert_int_equal(weights_preload(w, NULL, NULL, NULL, &err), ST_IO);
        assert_non_null(strstr(err.msg, "did it shrink?"));
        assert_false(weights_ready(w));
        weights_close(w);
    }
    gguf_close(g);
    files_remove(&f);
}

/* ---- verifying ------------------------------------------------------------------- */

static bool stop(void *arg, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    return ++*(int *)arg == 5;
}

/* From memory, interrupted, and with ever less of the file there. */
static void a_file_that_is_not_there_is_not_verified(void **state)
{
    struct err err = ERR_INIT;
    struct pack_result r;
    struct files f;
    struct gguf *g, *image;
    size_t n_bytes;
    int n = 0;

    (void)state;
    needs_panels();
    files_make(&f);
    write_synth_file(f.from, &uneven_shape, QUANTMIX_Q8_0);
    pack_file(f.from, f.to, 2);
    unsigned char *bytes = test_read_file(f.to, &n_bytes);
    unsigned char *aligned = aligned_alloc(64, (n_bytes + 63) / 64 * 64);

    memcpy(aligned, bytes, n_bytes);
    assert_int_equal(gguf_parse(&image, aligned, n_bytes, "memory", &err), ST_OK);
    assert_int_equal(pack_verify(&r, image, NULL, NULL, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "memory is no packed file"));
    gguf_close(image);
    free(aligned);
    free(bytes);

    assert_int_equal(gguf_open(&g, f.to, &err), ST_OK);
    err_clear(&err);
    assert_int_equal(pack_verify(&r, g, stop, &n, &err), ST_INTERRUPTED);
    assert_int_equal(n, 5);
    const off_t rests[] = {(off_t)gguf_tensor_at(g, 1)->offset, 64};

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(truncate(f.to, rests[i]), 0);
        err_clear(&err);
        assert_int_equal(pack_verify(&r, g, NULL, NULL, &err), ST_IO);
    }
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        unsigned char *rows = malloc(t->bytes);

        err_clear(&err);
        assert_int_equal(
            gguf_read_rows(g, t, 0, t->n_elems / t->ne[0], true, rows, &err), ST_IO);
        free(rows);
    }
    gguf_close(g);
    files_remove(&f);
}

static void flip(int fd, uint64_t byte, int bit)
{
    unsigned char b;

    assert_int_equal(pread(fd, &b, 1, (off_t)byte), 1);
    b ^= (unsigned char)(1 << bit);
    assert_int_equal(pwrite(fd, &b, 1, (off_t)byte), 1);
}

static void a_flipped_bit_is_found(void **state)
{
    struct err err = ERR_INIT;
    struct files f;
    struct gguf *g;
    uint64_t rng = 5;

    (void)state;
    needs_panels();
    files_make(&f);
    write_synth_file(f.from, &uneven_shape, QUANTMIX_Q4_K_M);
    pack_file(f.from, f.to, 2);
    assert_int_equal(verify(f.to, &err), ST_OK);
    assert_int_equal(gguf_open(&g, f.to, &err), ST_OK);
    const int fd = open(f.to, O_RDWR);

    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const uint64_t at[] = {t->offset, t->offset + t->bytes - 1,
                               t->offset + test_random(&rng) % t->bytes};

        for (int k = 0; k < 3; k++) {
            const int bit = (int)(test_random(&rng) % 8);

            flip(fd, at[k], bit);
            err_clear(&err);
            if (verify(f.to, &err) != ST_CHECK || !strstr(err.msg, t->name) ||
                !strstr(err.msg, "does not match its checksum"))
                fail_msg("byte %d of %s: '%s'", (int)(at[k] - t->offset), t->name,
                         err.msg);
            flip(fd, at[k], bit);
        }
    }
    /* Of the head: refused by the parser, or found. */
    for (uint64_t byte = 0; byte < gguf_data_offset(g); byte += 3) {
        flip(fd, byte, (int)(byte % 8));
        err_clear(&err);
        assert_int_not_equal(verify(f.to, &err), ST_OK);
        flip(fd, byte, (int)(byte % 8));
    }
    err_clear(&err);
    assert_int_equal(verify(f.to, &err), ST_OK);
    assert_int_equal(verify(f.from, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "is no packed file"));
    close(fd);
    gguf_close(g);
    files_remove(&f);
}

/* ---- refusals -------------------------------------------------------------------- */

static void interrupted_leaves_nothing(void **state)
{
    struct thread_pool *pool = NULL;
    struct err err = ERR_INIT;
    struct pack_result r;
    struct files f;
    struct gguf *g;
    int n = 0;

    (void)state;
    needs_panels();
    files_make(&f);
    write_synth_file(f.from, &uneven_shape, QUANTMIX_Q8_0);
    assert_int_equal(thread_pool_start(&pool, 2, NULL, &err), ST_OK);
    assert_int_equal(gguf_open(&g, f.from, &err), ST_OK);
    assert_int_equal(pack_write(&r, g, f.to, pool, stop, &n, &err), ST_INTERRUPTED);
    gguf_close(g);
    thread_pool_stop(pool);
    assert_int_equal(files_remove(&f), 1);
}

/* A tensor in panels that the model reads as rows. */
static void panels_where_rows_are_read(void **state)
{
    static const char name[] = "token_embd.weight";
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    struct files f;
    uint32_t type;
    size_t n;

    (void)state;
    needs_panels();
    files_make(&f);
    write_synth_file(f.from, &uneven_shape, QUANTMIX_Q8_0);
    pack_file(f.from, f.to, 2);
    unsigned char *image = test_read_file(f.to, &n);
    unsigned char *at = memmem(image, n, name, strlen(name));

    assert_non_null(at);
    at += strlen(name) + 4 + 2 * 8; /* behind the dimensions */
    memcpy(&type, at, sizeof type);
    assert_int_equal(type, 8);
    type += GGUF_PANEL_TYPE;
    const int fd = open(f.to, O_WRONLY);

    assert_int_equal(pwrite(fd, &type, sizeof type, at - image), sizeof type);
    close(fd);
    assert_int_equal(try_open(&m, f.to, WEIGHTS_MMAP, 2, isa_usable(), &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "token_embd.weight is in panels, and the llama "
                                    "architecture reads its rows"));
    free(image);
    files_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_contiguous_pages),
        cmocka_unit_test(same_file_whoever_makes_it),
        cmocka_unit_test(copied_as_it_is),
        cmocka_unit_test(shrunk_before_it_is_loaded),
        cmocka_unit_test(a_file_that_is_not_there_is_not_verified),
        cmocka_unit_test(a_flipped_bit_is_found),
        cmocka_unit_test(interrupted_leaves_nothing),
        cmocka_unit_test(panels_where_rows_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
