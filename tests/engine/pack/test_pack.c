/* SPDX-License-Identifier: MIT
 *
 * test_pack.c - packed files: the model they were made from, where its bytes are, and
 * whatever is wrong with one
 */
#include "tests/support/synth_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "engine/engine.h"
#include "engine/gguf/gguf_panels.h"
#include "engine/pack/pack.h"

#define N_TOKENS 21

/* ---- files --------------------------------------------------------------------- */

struct files {
    char dir[32], from[64], to[64];
};

static void files_make(struct files *f)
{
    snprintf(f->dir, sizeof f->dir, "/tmp/test_pack.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->from, sizeof f->from, "%s/from.gguf", f->dir);
    snprintf(f->to, sizeof f->to, "%s/to.gguf", f->dir);
}

/* The number of files that were left. */
static int files_remove(const struct files *f)
{
    DIR *dir = opendir(f->dir);
    int n = 0;

    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.' && !unlinkat(dirfd(dir), e->d_name, 0);
    closedir(dir);
    rmdir(f->dir);
    return n;
}

static void needs_panels(void)
{
    struct kern_set kern;

    kern_select(&kern, isa_usable());
    if (!kern.pack[KERN_FMT_q8_0])
        skip();
}

static struct pack_result pack_file(const char *from, const char *to, int n_threads)
{
    struct thread_pool *pool = NULL;
    struct pack_result r = {0};
    struct err err = ERR_INIT;
    struct gguf *g;

    if (thread_pool_start(&pool, n_threads, NULL, &err) || gguf_open(&g, from, &err) ||
        pack_write(&r, g, to, pool, NULL, NULL, &err))
        fail_msg("%s: %s", from, err.msg);
    gguf_close(g);
    thread_pool_stop(pool);
    return r;
}

/* ---- the same model ---------------------------------------------------------------
 */

static enum status try_open(struct slm **m, const char *path,
                            enum weights_residency residency, uint32_t isa_mask,
                            struct err *err)
{
    struct slm_params p = slm_params_default();

    p.path = path;
    p.residency = residency;
    p.n_threads = 2;
    p.n_ctx = N_TOKENS;
    p.isa_mask = isa_mask;
    const enum status st = slm_open(m, &p, err);

    return st ? st
              : weights_preload(slm_weights(*m), slm_thread_pool(*m), NULL, NULL, err);
}

static struct slm *open_model(const char *path, enum weights_residency residency,
                              uint32_t isa_mask)
{
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    if (try_open(&m, path, residency, isa_mask, &err))
        fail_msg("%s", err.msg);
    return m;
}

/* Logits of N_TOKENS tokens: the first ones in one batch, the rest one by one. */
static float *logits_of(struct slm *m)
{
    const size_t n_vocab = (size_t)slm_info(m)->n_vocab, first = N_TOKENS - 4;
    float *out = malloc(N_TOKENS * n_vocab * sizeof *out);
    int32_t tokens[N_TOKENS];
    struct err err = ERR_INIT;

    assert_non_null(out);
    for (size_t i = 0; i < N_TOKENS; i++)
        tokens[i] = (int32_t)((1 + 37 * i) % n_vocab);
    for (size_t i = 0; i < N_TOKENS; i += i ? 1 : first) {
        const size_t n = i ? 1 : first;

        if (slm_eval(m, tokens + i, n, SLM_LOGITS_ALL, &err))
            fail_msg("%s", err.msg);
        for (size_t j = 0; j < n; j++)
            memcpy(out + (i + j) * n_vocab, slm_logits(m, j), n_vocab * sizeof *out);
    }
    return out;
}

/* Bit for bit the logits of the original, packed while it is loaded. */
static void assert_same_logits(const char *from, const char *to, const char *what)
{
    static const enum weights_residency ways[] = {WEIGHTS_MMAP, WEIGHTS_PACKED};
    struct slm *original = open_model(from, WEIGHTS_PACKED, isa_usable());
    const size_t n = N_TOKENS * (size_t)slm_info(original)->n_vocab;
    float *want = logits_of(original);

    for (int i = 0; i < 2; i++) {
        struct slm *m = open_model(to, ways[i], isa_usable());
        float *have = logits_of(m);

        if (memcmp(have, want, n * sizeof *want) != 0)
            fail_msg("%s: other logits under %s", what,
                     weights_residency_name(ways[i]));
        free(have);
        slm_close(m);
    }
    free(want);
    slm_close(original);
}

/* The file has the bytes that loading the original makes, and its rows are those of the
 * original. */
static void assert_same_weights(const char *from, const char *to)
{
    struct slm *original = open_model(from, WEIGHTS_PACKED, isa_usable());
    struct err err = ERR_INIT;
    struct gguf *g;

    assert_int_equal(gguf_open(&g, to, &err), ST_OK);
    assert_int_equal(gguf_n_tensors(g), gguf_n_tensors(slm_gguf(original)));
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const struct gguf_tensor *s = gguf_tensor_find(slm_gguf(original), t->name);
        void *rows = malloc((size_t)t->bytes), *want = malloc((size_t)t->bytes);

        assert_true(s && rows && want && s->bytes == t->bytes);
        assert_int_equal(s->ggml_id, t->ggml_id);
        assert_memory_equal(s->ne, t->ne, sizeof t->ne);
        assert_memory_equal(gguf_tensor_data(g, t),
                            weights_data(slm_weights(original), s), t->bytes);
        assert_int_equal(
            gguf_read_rows(g, t, 0, t->n_elems / t->ne[0], false, rows, &err), ST_OK);
        assert_memory_equal(rows, gguf_tensor_data(slm_gguf(original), s), t->bytes);
        free(rows);
        free(want);
    }
    gguf_close(g);
    slm_close(original);
}

static void assert_same_model(const struct files *f, const char *from, const char *what,
                              int n_threads)
{
    const struct pack_result r = pack_file(from, f->to, n_threads);

    assert_true(r.n_tensors > r.n_in_panels);
    assert_same_weights(from, f->to);
    assert_same_logits(from, f->to, what);
}

static void every_mix(void **state)
{
    struct files f;

    (void)state;
    needs_panels();
    files_make(&f);
    for (int mix = 0; mix < QUANTMIX_N; mix += (int)test_thin()) {
        write_synth_file(f.from, &uneven_shape, (enum quantmix)mix);
        assert_same_model(&f, f.from, quantmix_name((enum quantmix)mix), 1 + mix % 3);
    }
    assert_int_equal(files_remove(&f), 2);
}

static void tied_weights(void **state)
{
    struct synth_shape tied = uneven_shape;
    struct files f;

    (void)state;
    needs_panels();
    files_make(&f);
    tied.tied_output = 1;
    write_synth_file(f.from, &tied, QUANTMIX_Q4_K_M);
    assert_same_model(&f, f.from, "tied", 2);

    struct err err = ERR_INIT;
    struct gguf *g;

    assert_int_equal(gguf_open(&g, f.to, &err), ST_OK);
    assert_int_equal(gguf_tensor_find(g, "token_embd.weight")->panel_rows, 1008);
    gguf_close(g);
    files_remove(&f);
}

/* A packed file in the caller's memory, which may be rewritten or not. */
static void as_an_image(void **state)
{
    struct err err = ERR_INIT;
    struct files f;
    size_t bytes;

    (void)state;
    needs_panels();
    files_make(&f);
    write_synth_file(f.from, &uneven_shape, QUANTMIX_Q6_K);
    pack_file(f.from, f.to, 1);
    struct slm *original = open_model(f.from, WEIGHTS_PACKED, isa_usable());
    const size_t n = N_TOKENS * (size_t)slm_info(original)->n_vocab;
    float *want = logits_of(original);
    void *file = test_read_file(f.to, &bytes);
    void *image = aligned_alloc(4096, bytes);

    assert_non_null(image);
    memcpy(image, file, bytes);
    for (int rewrite = 0; rewrite < 2; rewrite++) {
        struct slm_params p = slm_params_default();
        struct slm *m = NULL;

        p.image = image;
        p.image_bytes = bytes;
        p.image_rewrite = rewrite;
        p.n_ctx = N_TOKENS;
        if (slm_open(&m, &p, &err) ||
            weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err))
            fail_msg("%s", err.msg);
        float *have = logits_of(m);

        assert_memory_equal(have, want, n * sizeof *want);
        assert_memory_equal(image, file, bytes);
        free(have);
        slm_close(m);
    }
    free(want);
    free(file);
    free(image);
    slm_close(original);
    files_remove(&f);
}

/* Experts are slices; other families have views, fused and biased tensors. */
static void every_family(void **state)
{
    static const char *const models[] = {"llama-moe", "qwen2moe", "qwen3moe", "gemma2",
                                         "phi2",      "phi3",     "stablelm", "qwen3"};
    struct files f;
    char path[256];

    (void)state;
    needs_panels();
    files_make(&f);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        snprintf(path, sizeof path, TEST_DATA "models/%s.gguf", models[i]);
        assert_same_model(&f, path, models[i], 3);
    }
    files_remove(&f);
}

/* ---- where bytes are ---------------------------------------------------------------
 */

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

/* ---- loading ------------------------------------------------------------------------
 */

struct calls {
    int n, stop_at;
    size_t done, total;
};

static int note(void *arg, size_t done, size_t total)
{
    struct calls *c = arg;

    assert_true(done > c->done && done <= total);
    c->done = done;
    c->total = total;
    return ++c->n == c->stop_at;
}

/* Some 40 MB: several chunks, each for another thread. */
static void make_large(const struct files *f)
{
    struct synth_shape large = uneven_shape;

    large.n_vocab = 70013;
    write_synth_file(f->from, &large, QUANTMIX_Q8_0);
    pack_file(f->from, f->to, 2);
}

static void ask_for_panels(struct weights *w, const struct gguf *g)
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
        ask_for_panels(w, g);
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

static void shrunk_before_it_is_loaded(void **state)
{
    struct err err = ERR_INIT;
    struct files f;
    struct gguf *g;

    (void)state;
    needs_panels();
    files_make(&f);
    make_large(&f);
    assert_int_equal(gguf_open(&g, f.to, &err), ST_OK);
    assert_int_equal(truncate(f.to, 20 << 20), 0);
    for (int drop = 0; drop < 2; drop++) {
        const struct weights_params how = {
            .residency = WEIGHTS_PACKED, .isa_mask = isa_usable(), .drop_cached = drop};
        struct weights *w;

        err_clear(&err);
        assert_int_equal(weights_open(&w, g, &how, &err), ST_OK);
        ask_for_panels(w, g);
        assert_int_equal(weights_preload(w, NULL, NULL, NULL, &err), ST_IO);
        assert_non_null(strstr(err.msg, "did it shrink?"));
        assert_false(weights_ready(w));
        weights_close(w);
    }
    gguf_close(g);
    files_remove(&f);
}

/* ---- verifying ----------------------------------------------------------------------
 */

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

/* ---- refusals ----------------------------------------------------------------------
 */

static bool stop(void *arg, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    return ++*(int *)arg == 5;
}

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

/* Levels without panels: mapped weights cannot be used, packed ones are unpacked. */
static void levels_without_panels(void **state)
{
    const uint32_t scalar = 1u << KERN_ISA_scalar;
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    struct files f;

    (void)state;
    needs_panels();
    files_make(&f);
    write_synth_file(f.from, &uneven_shape, QUANTMIX_Q4_K_M);
    pack_file(f.from, f.to, 2);
    assert_int_equal(try_open(&m, f.to, WEIGHTS_MMAP, scalar, &err), ST_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "no kernels for its panels of"));
    err_clear(&err);

    struct slm *original = open_model(f.from, WEIGHTS_PACKED, scalar);
    const size_t n = N_TOKENS * (size_t)slm_info(original)->n_vocab;
    float *want = logits_of(original);

    m = open_model(f.to, WEIGHTS_PACKED, scalar);
    float *have = logits_of(m);

    assert_memory_equal(have, want, n * sizeof *want);
    free(want);
    free(have);
    slm_close(original);
    slm_close(m);
    files_remove(&f);
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
    assert_int_equal(try_open(&m, f.to, WEIGHTS_MMAP, isa_usable(), &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "token_embd.weight is in panels, and the llama "
                                    "architecture reads its rows"));
    free(image);
    files_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mix),
        cmocka_unit_test(tied_weights),
        cmocka_unit_test(as_an_image),
        cmocka_unit_test(every_family),
        cmocka_unit_test(layers_are_contiguous_pages),
        cmocka_unit_test(same_file_whoever_makes_it),
        cmocka_unit_test(copied_as_it_is),
        cmocka_unit_test(shrunk_before_it_is_loaded),
        cmocka_unit_test(a_flipped_bit_is_found),
        cmocka_unit_test(interrupted_leaves_nothing),
        cmocka_unit_test(levels_without_panels),
        cmocka_unit_test(panels_where_rows_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
