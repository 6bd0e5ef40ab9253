/* SPDX-License-Identifier: MIT
 *
 * test_panels.c - packed files as the reader of GGUF files sees them: rows out of
 * panels, and every lie about a layout
 */
#include "tests/support/test.h"

#include "engine/gguf/gguf_panels.h"
#include "kernels/isa.h"
#include "tests/support/gguf_build.h"

enum { K = 64, N_ROWS = 40, N_SLICES = 2, ROW = K / 32 * 34 };

/* How a sample lies. All zero: it does not. */
struct lie {
    uint32_t layout, alignment, type, checksum_type, n_rows;
    uint64_t n_checksums, offset;
    bool no_layout, no_head, text_layout, gap;
};

static struct build head_of(const struct lie *lie)
{
    const uint64_t n_sums = lie->n_checksums ? lie->n_checksums : 2;
    const uint32_t sum_type = lie->checksum_type ? lie->checksum_type : GGUF_U64;
    struct build b = build_new();

    put_header(&b, 3, 2, 5 - lie->no_layout - lie->no_head);
    put_kv_str(&b, "general.architecture", "llama");
    put_kv_u32(&b, "general.alignment", lie->alignment ? lie->alignment : 4096);
    if (lie->text_layout)
        put_kv_str(&b, GGUF_KEY_LAYOUT, "1");
    else if (!lie->no_layout)
        put_kv_u32(&b, GGUF_KEY_LAYOUT,
                   lie->layout ? lie->layout - 1 : GGUF_LAYOUT_VERSION);
    if (!lie->no_head) {
        put_key(&b, GGUF_KEY_HEAD, GGUF_U64);
        put_u64(&b, 1);
    }
    put_key(&b, GGUF_KEY_CHECKSUMS, GGUF_ARRAY);
    put_u32(&b, sum_type);
    put_u64(&b, n_sums);
    for (uint64_t i = 0; i < n_sums; i++)
        put(&b, &i, sum_type == GGUF_U64 ? 8 : 4);
    put_tensor(&b, "a.weight", lie->type ? lie->type : GGUF_PANEL_TYPE + 8, 3,
               (uint64_t[]){K, lie->n_rows ? lie->n_rows : N_ROWS, N_SLICES},
               lie->offset);
    put_tensor(&b, "b.weight", 0, 1, (uint64_t[]){5}, lie->gap ? 12288 : 8192);
    put_padding(&b, 4096);
    return b;
}

/* A matrix of two slices, whose leading 32 of 40 rows are in panels, and a vector; the
 * matrix as rows goes to rows[N_SLICES * N_ROWS * ROW]. */
static struct build sample(unsigned char *rows, kern_pack_fn *pack)
{
    struct build b = head_of(&(struct lie){0});
    uint64_t rng = 7;

    for (size_t i = 0; i < N_SLICES * N_ROWS * ROW; i++)
        rows[i] = (unsigned char)test_random(&rng);
    for (size_t r = 0; r < N_SLICES * N_ROWS;) {
        unsigned char panel[KERN_PANEL_ROWS * ROW];

        if (r % N_ROWS < 32) {
            pack(K, rows + r * ROW, ROW, panel);
            put(&b, panel, sizeof panel);
            r += KERN_PANEL_ROWS;
        } else {
            put(&b, rows + r++ * ROW, ROW);
        }
    }
    put_padding(&b, 4096);
    for (int i = 0; i < 5; i++)
        put_f32(&b, (float)i);
    put_padding(&b, 4096);
    return b;
}

static kern_pack_fn *packer(void)
{
    const struct kern_row *row = kern_best(KERN_OP_pack, KERN_FMT_q8_0, isa_usable());

    if (!row)
        skip();
    return row->fn.pack;
}

static void check_rows(const struct gguf *g, const unsigned char *rows)
{
    const struct gguf_tensor *a = gguf_tensor_find(g, "a.weight");
    const struct gguf_tensor *b = gguf_tensor_find(g, "b.weight");
    const size_t n = N_SLICES * N_ROWS;
    unsigned char *have = malloc(n * ROW);
    struct err err = ERR_INIT;

    assert_non_null(have);
    assert_true(gguf_is_packed(g));
    assert_int_equal(a->ggml_id, 8);
    assert_int_equal(a->fmt, KERN_FMT_q8_0);
    assert_int_equal(a->panel_rows, 32);
    assert_int_equal(a->bytes, n * ROW);
    assert_int_equal(b->panel_rows, 0);
    for (size_t first = 0; first < n; first++)
        for (size_t end = first + 1; end <= n; end++) {
            assert_int_equal(
                gguf_read_rows(g, a, first, end - first, first % 2, have, &err), ST_OK);
            assert_memory_equal(have, rows + first * ROW, (end - first) * ROW);
        }
    assert_int_equal(gguf_read_rows(g, b, 0, 1, false, have, &err), ST_OK);
    assert_memory_equal(have, gguf_tensor_data(g, b), 5 * sizeof(float));
    free(have);
}

static void rows_come_out_of_panels(void **state)
{
    kern_pack_fn *pack = packer();
    char path[] = "/tmp/test_panels.XXXXXX";
    unsigned char rows[N_SLICES * N_ROWS * ROW];
    struct build b = sample(rows, pack);
    const int fd = mkstemp(path);
    struct err err = ERR_INIT;
    struct gguf *g;

    (void)state;
    assert_int_equal(gguf_parse(&g, b.data, b.n, "image", &err), ST_OK);
    check_rows(g, rows);
    gguf_close(g);
    assert_int_equal(write(fd, b.data, b.n), b.n);
    close(fd);
    assert_int_equal(gguf_open(&g, path, &err), ST_OK);
    check_rows(g, rows);
    gguf_close(g);
    unlink(path);
    build_free(&b);
}

/* ---- what is refused ------------------------------------------------------------- */

static void refuse(const struct lie *lie, const char *text)
{
    struct build b = head_of(lie);
    struct err err = ERR_INIT;
    struct gguf *g = NULL;

    put_zeros(&b, 16384);
    if (gguf_parse(&g, b.data, b.n, "lying.gguf", &err) != ST_INPUT ||
        !strstr(err.msg, text) || !strstr(err.msg, "lying.gguf"))
        fail_msg("not '%s' but '%s'", text, err.msg);
    build_free(&b);
}

static void lies_about_the_layout(void **state)
{
    (void)state;
    refuse(&(struct lie){.layout = GGUF_LAYOUT_VERSION + 2},
           "layout version 2, and this program reads 1; run `bench pack` again");
    refuse(&(struct lie){.layout = 1}, "not a number from 1 on");
    refuse(&(struct lie){.text_layout = true}, "not a number from 1 on");
    refuse(&(struct lie){.alignment = 2048},
           "alignment is 2048, not a multiple of 4096");
    refuse(&(struct lie){.no_head = true}, "without its slmbench.head_checksum");
    refuse(&(struct lie){.n_checksums = 1}, "tensor_checksums are not 2 of u64");
    refuse(&(struct lie){.n_checksums = 3}, "tensor_checksums are not 2 of u64");
    refuse(&(struct lie){.checksum_type = GGUF_U32},
           "tensor_checksums are not 2 of u64");
}

static void lies_about_panels(void **state)
{
    (void)state;
    refuse(&(struct lie){.no_layout = true},
           "tensor 'a.weight' is in panels, in a file without slmbench.layout_version");
    refuse(&(struct lie){.type = GGUF_PANEL_TYPE},
           "is in panels of type f32 (number 0), which has none");
    refuse(&(struct lie){.type = GGUF_PANEL_TYPE + 15},
           "is in panels of type q8_K (number 15), which has none");
    refuse(&(struct lie){.type = GGUF_PANEL_TYPE + 65535},
           "is in panels of type unknown (number 65535), which has none");
    refuse(&(struct lie){.n_rows = 15}, "its 15 rows are less than the 16 of a panel");
    refuse(&(struct lie){.offset = 64}, "offset 64 of the data, not a multiple");
    refuse(&(struct lie){.type = GGUF_PANEL_TYPE + 65536},
           "tensor 'a.weight' of a packed file has an unknown type");
}

static void lies_about_places(void **state)
{
    (void)state;
    refuse(&(struct lie){.offset = 4096}, "a.weight' of a packed file is at byte 8192");
    refuse(&(struct lie){.gap = true},
           "b.weight' of a packed file is at byte 16384, and not at 12288");
    refuse(&(struct lie){.n_rows = 64}, "b.weight' of a packed file is at byte 12288");
}

/* Cut anywhere or with any bit of its head wrong, a file is refused, or all that it
 * promises can be read. */
static void parse_guarded(const unsigned char *image, size_t n, bool whole)
{
    unsigned char *p = guard_alloc(n);
    struct err err = ERR_INIT;
    struct gguf *g;

    memcpy(p, image, n);
    if (gguf_parse(&g, p, n, "image", &err)) {
        assert_false(whole);
        assert_true(err.msg[0]);
    } else {
        for (size_t i = 0; i < gguf_n_tensors(g); i++) {
            const struct gguf_tensor *t = gguf_tensor_at(g, i);
            unsigned char *rows = malloc((size_t)t->bytes + 1);

            assert_non_null(rows);
            assert_true(t->bytes <= n && t->panel_rows % KERN_PANEL_ROWS == 0 &&
                        t->panel_rows <= t->ne[1]);
            if (t->bytes)
                assert_int_equal(
                    gguf_read_rows(g, t, 0, t->n_elems / t->ne[0], false, rows, &err),
                    ST_OK);
            free(rows);
        }
        gguf_close(g);
    }
    guard_free(p, n);
}

static void every_truncation_and_flipped_bit(void **state)
{
    kern_pack_fn *pack = packer();
    unsigned char rows[N_SLICES * N_ROWS * ROW];
    struct build b = sample(rows, pack);

    (void)state;
    for (size_t n = 1; n <= b.n; n += n < 1024 ? 1 : test_thin())
        parse_guarded(b.data, n, n == b.n);
    for (size_t bit = 0; bit < 8 * 600; bit++) {
        b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        parse_guarded(b.data, b.n, false);
        b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    build_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_out_of_panels),
        cmocka_unit_test(lies_about_the_layout),
        cmocka_unit_test(lies_about_panels),
        cmocka_unit_test(lies_about_places),
        cmocka_unit_test(every_truncation_and_flipped_bit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
